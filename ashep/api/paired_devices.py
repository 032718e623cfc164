"""Paired devices: who came in by a code of `ashep ui --pair` is known again after a restart, by a hash of their token.

The file is this user's alone, and no sandbox has the state folder in it. It has one writer: the server that lets people
in, and, where none runs, the command that holds its place (`ashep.api.login_links.held`).
"""

import os
import re
import stat
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal

import anyio
from anyio import to_thread
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from ashep.core.policy.base_types import name_of
from ashep.errors import AshepError, UsageError
from ashep.journal.durable_io import replace
from ashep.views.times import stamp

FILE = "devices.json"

IDLE = timedelta(hours=12)
"""Without a request for so long a device is known no more."""

AHEAD = timedelta(minutes=5)
"""So far a clock may go back; whoever was seen further ahead of it is known no more: nobody could say when they end."""

MOST = 16
"""Devices; of more the one that was seen longest ago goes."""

LARGEST = 64 * 1024
"""Bytes of the file."""

EVERY = 60.0
"""Seconds after which it is written when somebody was seen."""

ALL = "all"
"""Every device: no device has this name."""


class Device(BaseModel):
    """A device."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")]
    person: Annotated[str, Field(min_length=1, max_length=200)]
    """Who paired it, and so under whose name it answers."""
    hash: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    paired: AwareDatetime
    seen: AwareDatetime


class StoredDevices(BaseModel):
    """What the file holds."""

    model_config = ConfigDict(extra="forbid")

    v: Literal[1] = 1
    devices: list[Device]


class Devices:
    """Those of one project."""

    most = MOST
    problem = "it is no list of devices"
    """What is wrong with a file that cannot be read."""
    remedy = "no device is known, pair them again"

    def __init__(self, state: Path | None, now: Callable[[], datetime], name: str = FILE) -> None:
        """`state`: the folder of the file; None: nothing is kept."""
        self._file, self._now = state and state / name, now
        self._known = dict[str, Device]()
        self._changed, self._saving = False, anyio.Lock()

    def load(self) -> None:
        """Read who was paired; nobody is, where that cannot be believed. Blocks; raises `AshepError`."""
        try:
            text = self._file and read_private(self._file, LARGEST)
            devices = [] if text is None else self.parse(text)
        except UsageError as error:
            raise AshepError(f"{error}: {self.remedy}") from error
        except (ValidationError, OSError) as error:
            problem = error.strerror if isinstance(error, OSError) else self.problem
            raise AshepError(f"{self._file} cannot be used ({problem}): {self.remedy}") from error
        self._known = {device.hash: device for device in devices if self.is_alive(device)}

    def parse(self, text: str) -> list[Device]:
        """Read what the file holds. Raises `ValidationError`."""
        return StoredDevices.model_validate_json(text).devices

    def document(self, devices: list[Device]) -> StoredDevices:
        """Give what the file holds."""
        return StoredDevices(devices=devices)

    def is_alive(self, device: Device) -> bool:
        """Say whether a device is known still."""
        return -AHEAD <= self._now() - device.seen < IDLE

    def listed(self) -> list[dict[str, str]]:
        """Say who is known."""
        devices = (device for device in self._known.values() if self.is_alive(device))
        return [
            {"name": device.name, "person": device.person, "paired": stamp(device.paired), "seen": stamp(device.seen)}
            for device in devices
        ]

    def find_device(self, token_hash: str, *, asks: bool = True) -> Device | None:
        """Give the device whose token has this hash; `asks`: it is there, and so is known for another while."""
        device = self._known.get(token_hash)
        if device is None or not self.is_alive(device):
            return None
        if asks:
            device.seen, self._changed = self._now(), True
        return device

    def find_hash(self, fits: Callable[[str], bool]) -> str | None:
        """Give the hash of a token that is known and fits; None: there is none."""
        return next(
            (device.hash for device in self._known.values() if self.is_alive(device) and fits(device.hash)), None
        )

    def pair(self, token_hash: str, person: str, agent: str, names: Collection[str] = ()) -> Device:
        """Know a device from now on; `agent`: what it says itself that it is; `names`: those that it does not get."""
        self._known = {key: device for key, device in self._known.items() if self.is_alive(device)}
        while len(self._known) >= self.most:
            del self._known[min(self._known.values(), key=lambda device: device.seen).hash]
        used, name, time = {ALL, *names, *(device.name for device in self._known.values())}, _name(agent), self._now()
        candidates = (name, *(f"{name}-{n}" for n in range(2, len(used) + 3)))
        free = next(candidate for candidate in candidates if candidate not in used)
        device = Device(name=free, person=person, hash=token_hash, paired=time, seen=time)
        self._known[token_hash], self._changed = device, True
        return device

    def forget(self, of: str) -> None:
        """Know a device no more, by its hash."""
        self._changed |= self._known.pop(of, None) is not None

    def revoke(self, name: str) -> list[str]:
        """Know a device no more, or all of them; give their names."""
        revoked = [device for device in self._known.values() if name in (device.name, ALL)]
        for device in revoked:
            self.forget(device.hash)
        return [device.name for device in revoked]

    def write(self) -> None:
        """Write who is known, whole or not at all. Blocks; raises `AshepError`."""
        self._write(self._text())

    def _text(self) -> str:
        self._changed = False
        return self.document([device for device in self._known.values() if self.is_alive(device)]).model_dump_json()

    def _write(self, text: str) -> None:
        if self._file is None:
            return
        try:
            replace(self._file, text.encode())
        except OSError as error:
            self._changed = True
            raise AshepError(f"{self._file} cannot be written: {error.strerror}") from error

    async def save(self) -> None:
        """Write it where something has changed. Raises `AshepError`."""
        async with self._saving:
            if self._changed:
                await to_thread.run_sync(self._write, self._text())

    async def keep(self, say: Callable[[str], None]) -> None:
        """Write now and then who was seen, for ever."""
        while True:
            await anyio.sleep(EVERY)
            try:
                await self.save()
            except AshepError as error:
                say(f"warning: {error}")


def _name(agent: str) -> str:
    """Make a name of what a browser says that it is: the first of its notes that tells more than the family."""
    noted = re.search(r"\(([^()]*)\)", agent[:1000])
    parts = [part.strip() for part in (noted[1] if noted else agent[:1000]).split(";")]
    told = next((part for part in parts if part not in ("", "Linux", "X11", "U")), "")
    return name_of(told, "device", 32) or "device"


def read_private(file: Path, longest: int) -> str | None:
    """Read a file that is this user's alone; None: there is none. Blocks; raises `UsageError` where it is not."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    with open(descriptor, encoding="utf-8", errors="replace") as stream:
        seen = os.fstat(stream.fileno())
        if not stat.S_ISREG(seen.st_mode) or seen.st_uid != os.getuid() or stat.S_IMODE(seen.st_mode) & 0o077:
            raise UsageError(f"{file} is not this user's alone: delete it, and a new one is written")
        text = stream.read(longest + 1)
    if len(text) > longest:
        raise UsageError(f"{file} is larger than what is written there: delete it, and a new one is written")
    return text
