"""Sessions of people in browsers: a restart of the server keeps them, by hashes of tokens, for at most twelve hours.

Who listens on a port of loopback after a server has ended could be anybody, an agent too. So a session is known again
only where the same project is served at the same address, and a page that lost its server sends no token before that
has shown that it knows the token's hash (`Sessions.prove`).
"""

from collections.abc import Callable, Collection
from datetime import datetime
from pathlib import Path

from ashep.api.paired_devices import AHEAD, IDLE, Device, Devices, StoredDevices

FILE = "sessions.json"

MOST = 64
"""Sessions; of more the one that was seen longest ago goes."""


class _StoredSessions(StoredDevices):
    place: str
    """Which project was served, and where."""


class BrowserSessions(Devices):
    """Those of one server, and of the one before it."""

    most = MOST
    problem = "it is no list of sessions"
    remedy = "who had come in comes in again by `ashep ui`"

    def __init__(self, state: Path | None, now: Callable[[], datetime], address: str | None = None) -> None:
        """`address`: where the server is reached; None: no server asks, and the file's own is kept."""
        super().__init__(state, now, FILE)
        self._project, self._address = str(state and state.resolve()), address
        self._entered = set[str]()
        """Hashes of those who came in since the start."""

    def parse(self, text: str) -> list[Device]:
        """Read the sessions of this project at this address."""
        stored = _StoredSessions.model_validate_json(text)
        if self._address is None:
            self._address = stored.place.removeprefix(f"{self._project} ")
        return stored.devices if stored.place == f"{self._project} {self._address}" else []

    def document(self, devices: list[Device]) -> StoredDevices:
        """Give what the file holds."""
        return _StoredSessions(devices=devices, place=f"{self._project} {self._address}")

    def is_alive(self, device: Device) -> bool:
        """Say whether a session is good; that of an earlier server twelve hours after the person came in at most."""
        age = self._now() - device.paired
        return super().is_alive(device) and (device.hash in self._entered or -AHEAD <= age < IDLE)

    def pair(self, token_hash: str, person: str, agent: str, names: Collection[str] = ()) -> Device:
        """Know a browser from now on."""
        device = super().pair(token_hash, person, agent, names)
        self._entered = {token_hash, *self._entered.intersection(self._known)}
        return device
