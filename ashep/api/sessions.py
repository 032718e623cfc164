"""Sessions: who a token is, and what it may do. On the disk are the machine's, and hashes of those of people.

A person comes in by a code that `ashep ui` is given over a socket of this user's alone; it is good once, and not for
long, for it stands in an address. What it is exchanged for stays in the page. The machine's token lies in a file, for
programs; it reads, and has issues verified, and never answers what a person is asked.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from hmac import digest
from secrets import compare_digest, token_urlsafe
from typing import Literal

from ashep.api.browser_sessions import BrowserSessions
from ashep.api.paired_devices import Devices
from ashep.errors import AshepError

Scope = Literal["read", "verify", "tickets", "answer", "control", "look around"]

MACHINE: frozenset[Scope] = frozenset({"read", "verify", "tickets"})
"""What the token in the file may do."""

PERSON: frozenset[Scope] = frozenset({"read", "answer", "control", "look around"})
"""What a person may do who came in by a code."""

CODE_LASTS = 120.0
"""Seconds in which a code is good."""

MOST = 64
"""Codes that nobody has used, at one time; of more the oldest goes."""

_BEGAN = datetime(2000, 1, 1, tzinfo=UTC)  # of a clock that only grows


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


class Sessions:
    """Those of one server."""

    def __init__(
        self,
        machine: str,
        now: Callable[[], float],
        devices: Devices | None = None,
        browsers: BrowserSessions | None = None,
    ) -> None:
        """`machine`: the token in the file; `now`: seconds on a clock that only grows; `devices`: the paired ones;
        `browsers`: everybody else, by default of this server alone.
        """
        self._machine, self._now, self.devices = _sum(machine), now, devices
        self._codes = dict[str, tuple[str, float, bool]]()
        self.browsers = browsers or BrowserSessions(None, lambda: _BEGAN + timedelta(seconds=now()))

    @property
    def people(self) -> tuple[Devices, ...]:
        """Those of people: the paired devices, and the browsers."""
        return (self.browsers,) if self.devices is None else (self.devices, self.browsers)

    def code(self, person: str, *, pairs: bool = False) -> str:
        """Make a code by which this person comes in, once; `pairs`: with a device that is known again."""
        made = token_urlsafe(24)
        self._codes[_sum(made)] = person, self._now() + CODE_LASTS, pairs
        while len(self._codes) > MOST:
            del self._codes[next(iter(self._codes))]
        return made

    def enter(self, code: str, agent: str = "") -> tuple[str, Session]:
        """Exchange a code for a token; `agent`: what asks, as it says itself. Raises `WrongCode`."""
        person, until, pairs = self._codes.pop(_sum(code), ("", 0.0, False))
        if until <= self._now() or not person:
            raise WrongCode("this link is not good any more: `ashep ui` gives a fresh one")
        made, names = token_urlsafe(32), [device["name"] for kind in self.people for device in kind.listed()]
        if pairs and self.devices is not None:
            device = self.devices.pair(_sum(made), person, agent, names)
            return made, Session(PERSON, person, device.name)
        self.browsers.pair(_sum(made), person, agent, names)
        return made, Session(PERSON, person)

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
            return Session(PERSON, device.person, device.name)
        browser = self.browsers.find_device(token_hash, asks=asks)
        return browser and Session(PERSON, browser.person)

    def leave(self, authorization: str) -> None:
        """End the session of this token; a device is known no more."""
        for kind in self.people:
            kind.forget(_sum(authorization.partition(" ")[2].strip()))

    def prove(self, name: str, nonce: str) -> str | None:
        """Show who has a person's token that this is no stranger who took the port; None: the token is nobody's.

        `name`: the hash of the token's hash, which tells neither; `nonce`: what they have just thought of.
        """
        known = (kind.find_hash(lambda token_hash: compare_digest(_sum(token_hash), name)) for kind in self.people)
        token_hash = next(filter(None, known), None)
        return token_hash and digest(token_hash.encode(), nonce.encode(), "sha256").hex()

    async def save(self) -> None:
        """Write down what has changed of people's. Raises `AshepError`."""
        for kind in self.people:
            await kind.save()


def _sum(token: str) -> str:
    """Look tokens up by what tells nothing of them, however long a comparison takes."""
    return sha256(token.encode(errors="replace")).hexdigest()
