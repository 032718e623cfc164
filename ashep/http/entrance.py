"""Entrance for people: a socket of this user's alone, over which `ashep ui` is given the link of the page.

The code in the link stands nowhere on the disk. Of several servers of a project the first is the one that lets people
in: it holds the lock beside the socket.
"""

import fcntl
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from ashep.adapters import control_socket
from ashep.adapters.control_socket import UI, NotListening
from ashep.core.issues.people import AGENT_ACTORS
from ashep.http.sessions import Sessions

LOCK = "ui.lock"


class _Wanted(BaseModel):
    person: Annotated[str, Field(min_length=1, max_length=200)]


@contextmanager
def held(state: Path) -> Generator[bool]:
    """Hold the entrance, or say that another server does."""
    file = os.open(state / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(file)


async def let_in(
    state: Path, environ: Mapping[str, str], sessions: Sessions, address: str, say: Callable[[str], None]
) -> None:
    """Give links to whoever asks, for ever; call it while holding the entrance."""

    async def answer(line: bytes) -> dict[str, Any]:
        person = _name(line)
        return {"error": "a name is asked for"} if person is None else {"link": link(address, sessions.code(person))}

    await control_socket.serve(state, environ, answer, say, UI)


def _name(line: bytes) -> str | None:
    try:
        name = _Wanted.model_validate_json(line).person
    except ValidationError:
        return None
    return name if name.isprintable() and not name.startswith(AGENT_ACTORS) else None


def link(address: str, code: str) -> str:
    """Give the address of the page with a code, which no browser sends to anybody."""
    return f"{address}/#enter={code}"


def ask(state: Path, person: str) -> str | None:
    """Ask the server for a link for this person; None: none listens. Raises `AshepError`."""
    try:
        return str(control_socket.ask(state, {"person": person}, UI)["link"])
    except NotListening:
        return None
