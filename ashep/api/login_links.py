"""Entrance for people: a socket of this user's alone, over which `ashep ui` is given the link of the page.

The code in the link stands nowhere on the disk. Of several servers of a project the first is the one that lets people
in: it holds the lock next to the socket.
"""

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ashep.actions.systemd_unit import PORT
from ashep.adapters.system import control_socket, process_table
from ashep.adapters.system.control_socket import UI, NotListening
from ashep.api.browser_sessions import BrowserSessions
from ashep.api.paired_devices import ALL, Devices
from ashep.api.sessions import Sessions
from ashep.core.issues.human_overrides import AGENT_ACTORS
from ashep.core.text import clean
from ashep.errors import AshepError, UsageError

LOCK = "ui.lock"

_NO_ORIGIN = (
    "no other device reaches this server: name the proxy with TLS in front of it in config.yaml, and start the server "
    "anew. With Tailscale: `tailscale serve --bg {port}`, which prints the name, and `ui: {{origins: "
    '["https://MACHINE.TAILNET.ts.net"]}}` in config.yaml. Without a proxy, from a computer: '
    "`ssh -L {port}:127.0.0.1:{port} THERE`, and `ashep ui` here"
)


def no_origin(port: int) -> str:
    """Say why no device can be paired, and what to do."""
    return _NO_ORIGIN.format(port=port)


class _Wanted(BaseModel):
    """A link for a person, or something about devices."""

    model_config = ConfigDict(extra="forbid")

    person: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    pair: bool = False
    """With a device that is known from then on."""
    origin: Annotated[str, Field(max_length=300)] | None = None
    """Where that reaches the server; null: by the first that the server has."""
    place: Annotated[str, Field(pattern=r"^/(issues|runs)/[A-Za-z0-9._/-]{1,500}$")] = ""
    """The page that it leads to; empty: the first one."""
    devices: bool = False
    revoke: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    where: bool = False
    """By which address people come to the page."""


@contextmanager
def lock_entrance(state: Path) -> Generator[bool]:
    """Hold the entrance, or say that another server does."""
    file = os.open(state / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        yield process_table.locked(file)
    finally:
        os.close(file)


@dataclass(frozen=True)
class LoginLinks:
    """How people come to a server."""

    sessions: Sessions
    address: str
    """For who is on this machine, or has its port brought to theirs."""
    origins: Sequence[str] = ()
    """For everybody else."""

    def link(self, person: str, *, pairs: bool = False, origin: str | None = None, place: str = "") -> str:
        """Give a link for a person, with a code. Raises `UsageError` where no device reaches the server."""
        if pairs and (not self.origins or (origin or self.origins[0]) not in self.origins):
            known = f"; it knows {', '.join(self.origins)}" if self.origins else ""
            raise UsageError(f"{no_origin(urlsplit(self.address).port or PORT)}{known}")
        address = (origin or self.origins[0]) if pairs else self.address
        return link(address, self.sessions.code(person, pairs=pairs), place)

    async def answer(self, line: bytes) -> dict[str, Any]:
        """Answer who may use the socket."""
        try:
            wanted = _Wanted.model_validate_json(line)
            if wanted.where:
                return {"where": (*self.origins, self.address)[0], "address": self.address}
            if (devices := self.sessions.devices) is not None and (wanted.devices or wanted.revoke is not None):
                revoked = revoke_named(devices, self.sessions.browsers, wanted.revoke)
                await self.sessions.save()
                return _list(devices, self.sessions.browsers, revoked)
            if wanted.person is None or not wanted.person.isprintable() or wanted.person.startswith(AGENT_ACTORS):
                return {"error": "a name is asked for"}
            return {"link": self.link(wanted.person, pairs=wanted.pair, origin=wanted.origin, place=wanted.place)}
        except ValidationError:
            return {"error": "that is no request of this version"}
        except AshepError as error:
            return {"error": str(error)}


def link(address: str, code: str, place: str = "") -> str:
    """Give the address of the page with a code, which no browser sends to anybody."""
    return f"{address}{place or '/'}#enter={code}"


def ask(state: Path, request: Mapping[str, Any]) -> dict[str, Any] | None:
    """Ask the server; None: none listens. Raises `AshepError`."""
    with suppress(NotListening):
        return control_socket.ask(state, request, UI)
    return None


def devices(state: Path, revoke: str | None, now: Callable[[], datetime]) -> dict[str, Any]:
    """List devices and browsers, or revoke some: by the server, else in its place. Blocks; raises `AshepError`."""
    answer = ask(state, {"devices": True, "revoke": revoke})
    if answer is not None or not state.is_dir():
        return answer or {"devices": [], "browsers": [], "revoked": []}
    with lock_entrance(state) as alone:
        if not alone:
            raise AshepError("a server of this project does not answer: try again, or end it first")
        paired, browsers = Devices(state, now), BrowserSessions(state, now)
        paired.load()
        browsers.load()
        if revoked := revoke_named(paired, browsers, revoke):
            paired.write()
            browsers.write()
        return _list(paired, browsers, revoked)


def revoke_named(paired: Devices, browsers: BrowserSessions, name: str | None) -> list[str]:
    """Know a device or a browser no more; give the names. Raises `UsageError`."""
    revoked = [] if name is None else [*paired.revoke(name), *browsers.revoke(name)]
    if name not in (None, ALL) and not revoked:
        raise UsageError(f"there is no device {clean(name)[:64]}: `ashep ui --devices` lists them")
    return revoked


def _list(paired: Devices, browsers: BrowserSessions, revoked: list[str]) -> dict[str, Any]:
    return {"devices": paired.listed(), "browsers": browsers.listed(), "revoked": revoked}
