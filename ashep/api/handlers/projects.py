"""Projects of this machine whose daemon or page this user runs: what waits there, and where their pages are.

Nobody keeps a list of them: their sockets are asked, and their databases read as they lie there. It is told to people
who came in on this machine: a paired phone learns of its own project alone, and a program of none.
"""

import os
import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path

from anyio import to_thread

from ashep.adapters.system import control_socket
from ashep.adapters.system.control_socket import LINK, UI
from ashep.api.handlers.queries import QueryHandlers
from ashep.api.schemas import page
from ashep.core.text import clean
from ashep.journal.lock import holder
from ashep.store.sqlite_reader import VERSION, open_read_only, read_meta
from ashep.views import status

_ADDRESS = r"https?://[A-Za-z0-9.:\[\]-]{1,300}"


async def list_projects(
    pictures: QueryHandlers, device: str | None, environ: Mapping[str, str] | None = None
) -> page.Projects:
    """Give the projects, those first where most waits."""
    counts = await pictures.read(lambda model: status.count_states(model.database))
    project = pictures.folder.parent.resolve()
    own = page.Project(
        name=clean(project.name), folder=None if device else clean(str(project)), here=True, waiting=counts["person"],
        running=counts["running"], works=await to_thread.run_sync(holder, pictures.state) is not None,
    )  # fmt: skip
    others = () if device else await to_thread.run_sync(_find_others, pictures.state, environ or os.environ)
    found = sorted((own, *others), key=lambda one: (-(one.waiting or 0), not one.here, one.name, one.folder or ""))
    return page.Projects(projects=tuple(found))


def _find_others(state: Path, environ: Mapping[str, str]) -> list[page.Project]:
    running = control_socket.running(environ)
    running.pop(state.resolve(), None)
    found = (_look(other, links) for other, links in running.items())
    return [one for one in found if one is not None]


def _look(state: Path, links: set[str]) -> page.Project | None:
    """Look at another project; None: it is no project of ours."""
    project = state.parent.parent
    with suppress(OSError):
        if state.parts[-2:] == (".agent-shepherd", "state") and state.stat().st_uid == os.getuid():
            waiting, running = _count(state)
            return page.Project(
                name=clean(project.name), folder=clean(str(project)), here=False, works=LINK in links,
                waiting=waiting, running=running,
                url=_find_page(state) if UI in links else None,
            )  # fmt: skip
    return None


def _count(state: Path) -> tuple[int | None, int | None]:
    """Count issues that wait for a person, and that run, as they were drawn last; None: that cannot be read."""
    if read_meta(state).get("version") == VERSION:
        with suppress(sqlite3.Error), closing(open_read_only(state)) as database:
            counts = status.count_states(database)
            return counts["person"], counts["running"]
    return None, None


def _find_page(state: Path) -> str | None:
    address = control_socket.address_of(state)
    return address if address is not None and re.fullmatch(_ADDRESS, address) else None
