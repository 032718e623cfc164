"""Sessions of people in browsers: a restart of the server keeps them, by hashes of tokens, for at most twelve hours.

Who listens on a port of loopback after a server has ended could be anybody, an agent too. So a session is known again
only where the same project is served at the same address, and a page that lost its server sends no token before that
has shown that it knows the token's hash (`Sessions.prove`).
"""

from collections.abc import Callable, Collection
from datetime import datetime
from pathlib import Path

from ashep.api.paired_devices import AHEAD, IDLE, Device, Devices, Kept

FILE = "sessions.json"

MOST = 64
"""Sessions; of more the one that was seen longest ago goes."""


class _KeptSessions(Kept):
    place: str
    """Which project was served, and where."""


class BrowserSessions(Devices):
    """Those of one server, and of the one before it."""

    most = MOST
    lost = "it is no list of sessions", "who had come in comes in again by `ashep ui`"

    def __init__(self, state: Path | None, now: Callable[[], datetime], address: str | None = None) -> None:
        """`address`: where the server is reached; None: no server asks, and the file's own is kept."""
        super().__init__(state, now, FILE)
        self._project, self._address = str(state and state.resolve()), address
        self._here = set[str]()
        """Hashes of those who came in since the start."""

    def _read(self, text: str) -> list[Device]:
        kept = _KeptSessions.model_validate_json(text)
        address = kept.place.removeprefix(f"{self._project} ")
        if self._address is None:
            self._address = address
        return kept.devices if kept.place == f"{self._project} {self._address}" else []

    def _kept(self, devices: list[Device]) -> Kept:
        return _KeptSessions(devices=devices, place=f"{self._project} {self._address}")

    def _lives(self, one: Device) -> bool:
        return super()._lives(one) and (one.hash in self._here or -AHEAD <= self._now() - one.paired < IDLE)

    def pair(self, of: str, person: str, agent: str, others: Collection[str] = ()) -> Device:
        """Know a browser from now on."""
        made = super().pair(of, person, agent, others)
        self._here = {of, *self._here.intersection(self._known)}
        return made
