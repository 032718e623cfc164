"""Lock of a state folder, for one daemon: an flock on `state/lock`, which the kernel lets go when its holder dies.

Reading commands ask `holder` whether a daemon runs; so this module imports nothing heavy.
"""

import fcntl
import json
import os
import time
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from ashep import __version__
from ashep.errors import AlreadyRunning

_TRIES = 25  # half a second: a reader that asks for the holder has the lock itself for a moment


@dataclass(frozen=True, slots=True)
class Holder:
    """The daemon that holds a state folder."""

    pid: int
    started: str
    """ISO 8601, UTC; empty where it has not said so yet."""
    version: str


class Lock:
    """The state folder is ours until `release`, or until this process ends. A context manager."""

    def __init__(self, file: int, path: Path) -> None:
        """Use `Lock.acquire`."""
        self._file, self.path = file, path

    @classmethod
    def acquire(cls, state: Path, started: datetime) -> "Lock":
        """Take the folder (made if need be); raises `AlreadyRunning` where a live process has it.

        May block for half a second.
        """
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(state / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            for _ in range(_TRIES):
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    time.sleep(0.02)  # noqa: TID251 - before there is a loop or a clock; the kernel offers no bounded flock
                else:
                    break
            else:
                raise _build_error(state, _read(file))
            us = Holder(os.getpid(), started.isoformat(timespec="seconds"), __version__)
            data = json.dumps(asdict(us)).encode() + b"\n"
            os.ftruncate(file, 0)
            os.pwrite(file, data, 0)
        except BaseException:
            os.close(file)
            raise
        return cls(file, state / "lock")

    def stands(self) -> bool:
        """Whether the folder is still the one that was taken: one that was deleted or moved may be another's now."""
        try:
            return os.path.samestat(os.stat(self.path), os.fstat(self._file))
        except OSError:
            return False

    def release(self) -> None:
        """Let the folder go; the file stays, for an flock is on a file and not on its name."""
        os.ftruncate(self._file, 0)
        os.close(self._file)

    def __enter__(self) -> "Lock":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def holder(state: Path) -> Holder | None:
    """Say which daemon holds the folder; None: no live one does."""
    try:
        file = os.open(state / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read(file)
    else:
        return None
    finally:
        os.close(file)


def refuse_held(state: Path) -> None:
    """Raise `AlreadyRunning` where a live daemon holds the folder; it is not taken, and may be a moment later."""
    if who := holder(state):
        raise _build_error(state, who)


def _build_error(state: Path, who: Holder) -> AlreadyRunning:
    process = f"process {who.pid}, started {who.started or 'just now'}, ashep {who.version}"
    return AlreadyRunning(f"another daemon holds {state}: {process}")


def _read(file: int) -> Holder:
    try:
        data = json.loads(os.pread(file, 4096, 0))
        return Holder(int(data["pid"]), str(data["started"]), str(data["version"]))
    except (ValueError, KeyError, TypeError):
        return Holder(0, "", "")
