"""Projects of this machine whose daemon or page this user runs: what waits there, and where their pages are.

Nobody keeps a list of them: their sockets are asked, and their databases read as they lie there. People learn of it
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
) -> page.ProjectList:
    """Give the projects, those first where most waits."""
    counts = await pictures.read(lambda model: status.count_states(model.database))
    folder = pictures.folder.parent.resolve()
    current = page.ProjectRow(
        name=clean(folder.name), folder=None if device else clean(str(folder)), current=True, waiting=counts["person"],
        running=counts["running"], works=await to_thread.run_sync(holder, pictures.state) is not None,
    )  # fmt: skip
    rows = [current]
    if device is None:
        running = await to_thread.run_sync(control_socket.running, environ or os.environ)
        running.pop(pictures.state.resolve(), None)
        for state, links in running.items():
            rows += filter(None, [await to_thread.run_sync(_look, state, links)])
    rows.sort(key=lambda row: (-(row.waiting or 0), not row.current, row.name, row.folder or ""))
    return page.ProjectList(projects=tuple(rows))


def _look(state: Path, links: set[str]) -> page.ProjectRow | None:
    """Look at another project; None: it is none of this user's."""
    folder = state.parent.parent
    with suppress(OSError):
        if state.parts[-2:] == (".agent-shepherd", "state") and state.stat().st_uid == os.getuid():
            waiting, running = _count(state)
            url = control_socket.address_of(state) if UI in links else None
            return page.ProjectRow(
                name=clean(folder.name), folder=clean(str(folder)), current=False, works=LINK in links,
                waiting=waiting, running=running, url=url if re.fullmatch(_ADDRESS, url or "") else None,
            )  # fmt: skip
    return None


def _count(state: Path) -> tuple[int | None, int | None]:
    """Count issues that wait for a person, and that run, as they were drawn last; None: that cannot be read."""
    if read_meta(state).get("version") == VERSION:
        with suppress(sqlite3.Error), closing(open_read_only(state)) as database:
            counts = status.count_states(database)
            return counts["person"], counts["running"]
    return None, None
