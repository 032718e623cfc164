"""Blobs: long texts next to the journal, each under the SHA-256 of its bytes: `state/blobs/<first two
digits>/<digits>`.

A record names a blob by its hash, so the blob is made durable before the record is appended.
"""

import threading
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from hashlib import sha256
from pathlib import Path

import anyio
from anyio import CapacityLimiter, to_thread

from ashep.errors import DiskFailed, JournalDamaged
from ashep.journal.durable_io import make_folder, replace

Aside = Callable[[Callable[[], None], CapacityLimiter | None], Awaitable[None]]
"""Executes what blocks, next to the event loop."""


async def in_thread(work: Callable[[], None], limiter: CapacityLimiter | None) -> None:
    """Carry it out in a worker thread."""
    await to_thread.run_sync(work, limiter=limiter)


GRACE = 24 * 3600.0
"""Seconds for which a text that this process has kept stays: the record that is to name it may still come."""


class Blobs:
    """The blobs of a state folder."""

    def __init__(self, folder: Path, aside: Aside = in_thread) -> None:
        """`aside`: executes what blocks."""
        self.folder, self._aside = folder, aside
        self.redact: Callable[[str], str] = str
        """Takes secrets out of what is to be kept."""
        self._kept: set[str] = set()
        self._made: set[Path] = set()
        """Folders that this process knows to be durable."""
        self._limiter = anyio.CapacityLimiter(1)
        self._asked: dict[str, float] = {}
        """When a text was to be kept last, by the event loop's time; older ones go with a sweep."""
        self._deleting = threading.Lock()

    async def keep(self, text: str) -> str:
        """Make a text durable and give its hash; keeping it again is cheap. Raises `DiskFailed`.

        A lone surrogate, which UTF-8 cannot hold, becomes a question mark.
        """
        data = self.redact(text).encode(errors="replace")
        name = sha256(data).hexdigest()
        with self._deleting:
            self._asked[name] = anyio.current_time()  # no sweep takes it from now on, for a while
            is_kept = name in self._kept
        if not is_kept:
            with anyio.CancelScope(shield=True):
                await self._aside(partial(self._write, name, data), self._limiter)
        return name

    def sweep(self, needed: Collection[str], now: float = 0.0) -> int:
        """Delete the texts that nothing needs, but for those that this process kept lately; count them. `now` is the
        event loop's time.

        Blocks; raises OSError. Where the machine goes down in its midst, the next sweep does the rest.
        """
        with self._deleting:
            self._asked = {name: asked for name, asked in self._asked.items() if now - asked < GRACE}
        gone = 0
        for path in self.folder.glob("[0-9a-f][0-9a-f]/*"):
            if len(path.name) == sha256().digest_size * 2 and path.name not in needed:
                with self._deleting:
                    if path.name not in self._asked:
                        self._kept.discard(path.name)
                        path.unlink()
                        gone += 1
        return gone

    def has(self, name: str) -> bool:
        """Say whether a text is there. Blocks."""
        return self.path(name).exists()

    def text(self, name: str) -> str:
        """Read a text; raises `JournalDamaged` where it is missing or is not what was kept. Blocks."""
        path = self.path(name)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise JournalDamaged(f"{path} is missing, but the journal needs it. Restore it from a backup.") from None
        except OSError as error:
            raise DiskFailed(f"reading {path} failed: {error}") from error
        if sha256(data).hexdigest() != name:
            raise JournalDamaged(f"{path} is not what was written. Restore it from a backup.")
        return data.decode()

    def path(self, name: str) -> Path:
        """Say where a blob lies."""
        return self.folder / name[:2] / name

    def _write(self, name: str, data: bytes) -> None:
        # A file that an earlier process left may not be durable, so it is written again.
        path = self.path(name)
        try:
            if path.parent not in self._made:
                make_folder(path.parent)
                self._made.add(path.parent)
            replace(path, data)
        except OSError as error:
            raise DiskFailed(f"writing {path} failed: {error}. Nothing that needs it was acted on.") from error
        self._kept.add(name)
