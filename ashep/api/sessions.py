"""Sessions: who a token is, and what it may do. In memory alone, but for the machine's, and hashes of paired devices'.

A person comes in by a code that `ashep ui` is given over a socket of this user's alone; it is good once, and not for
long, for it stands in an address. What it is exchanged for stays in the page. The machine's token lies in a file, for
programs; it reads, and has issues verified, and never answers what a person is asked.
"""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from secrets import compare_digest, token_urlsafe
from typing import Literal

from ashep.api.paired_devices import Device, Devices
from ashep.errors import AshepError

Scope = Literal["read", "verify", "tickets", "answer", "control"]

MACHINE: frozenset[Scope] = frozenset({"read", "verify", "tickets"})
"""What the token in the file may do."""

PERSON: frozenset[Scope] = frozenset({"read", "answer", "control"})
"""What a person may do who came in by a code."""

CODE_LASTS = 120.0
"""Seconds in which a code is good."""

IDLE = 12 * 3600.0
"""Seconds without a request after which a session ends."""

MOST = 64
"""Sessions, and codes that nobody has used, at one time; of more the oldest goes."""


class WrongCode(AshepError):
    """The code is none of ours, was used, or is too old."""


@dataclass(frozen=True, slots=True)
class Session:
    """Who asks."""

    scopes: frozenset[Scope]
    person: str | None = None
    """The name under which a person writes; None: it is a program."""
    device: str | None = None
    """The name of the paired device."""


NOBODY = Session(frozenset())
"""Who gave no token."""


@dataclass(slots=True)
class _Open:
    session: Session
    until: float


class Sessions:
    """Those of one server."""

    def __init__(self, machine: str, now: Callable[[], float], devices: Devices | None = None) -> None:
        """`machine`: the token in the file; `now`: seconds on a clock that only grows; `devices`: the paired ones."""
        self._machine, self._now, self.devices = _sum(machine), now, devices
        self._codes = dict[str, tuple[str, float, bool]]()
        self._open = dict[str, _Open]()

    def code(self, person: str, *, pairs: bool = False) -> str:
        """Make a code by which this person comes in, once; `pairs`: with a device that is known again."""
        made = token_urlsafe(24)
        self._codes[_sum(made)] = person, self._now() + CODE_LASTS, pairs
        _bound(self._codes)
        return made

    def enter(self, code: str, agent: str = "") -> tuple[str, Session]:
        """Exchange a code for a token; `agent`: what asks, as it says itself. Raises `WrongCode`."""
        person, until, pairs = self._codes.pop(_sum(code), ("", 0.0, False))
        if until <= self._now() or not person:
            raise WrongCode("this link is not good any more: `ashep ui` gives a fresh one")
        made = token_urlsafe(32)
        if pairs and self.devices is not None:
            return made, _make_session(self.devices.pair(_sum(made), person, agent))
        session = Session(PERSON, person)
        self._open[_sum(made)] = _Open(session, self._now() + IDLE)
        _bound(self._open)
        return made, session

    def find_session(self, authorization: str, *, asks: bool = True) -> Session | None:
        """Say whose token a request gives, by its `Authorization`; None: nobody's.

        `asks`: it is a request, after which a session lasts for another while; else it is only looked at.
        """
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return None
        token_hash = _sum(token.strip())
        if compare_digest(token_hash, self._machine):
            return Session(MACHINE)
        if self.devices is not None and (device := self.devices.find_device(token_hash, asks=asks)) is not None:
            return _make_session(device)
        session = self._open.get(token_hash)
        if session is None or session.until <= self._now():
            self._open.pop(token_hash, None)
            return None
        if asks:
            session.until = self._now() + IDLE
        return session.session

    def leave(self, authorization: str) -> None:
        """End the session of this token; a device is known no more."""
        known = _sum(authorization.partition(" ")[2].strip())
        self._open.pop(known, None)
        if self.devices is not None:
            self.devices.forget(known)

    async def save(self) -> None:
        """Write down what has changed of devices. Raises `AshepError`."""
        if self.devices is not None:
            await self.devices.save()


def _make_session(device: Device) -> Session:
    return Session(PERSON, device.person, device.name)


def _sum(token: str) -> str:
    """Look tokens up by what tells nothing of them, however long a comparison takes."""
    return sha256(token.encode(errors="replace")).hexdigest()


def _bound(kept: dict[str, tuple[str, float, bool]] | dict[str, _Open]) -> None:
    while len(kept) > MOST:
        del kept[next(iter(kept))]
