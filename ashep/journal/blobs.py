"""Long texts beside the journal, each under the SHA-256 of its bytes: `state/blobs/<first two digits>/<digits>`.

A record names a blob by its hash, so the blob is made durable before the record is appended.
"""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import anyio
from anyio import to_thread

from ashep.errors import DiskFailed, JournalDamaged
from ashep.journal.paths import make_folder, replace


class Blobs:
    """The blobs of a state folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.redact: Callable[[str], str] = str
        """Takes secrets out of what is to be kept."""
        self._kept: set[str] = set()
        self._made: set[Path] = set()
        """Folders that this process knows to be durable."""
        self._limiter = anyio.CapacityLimiter(1)

    async def keep(self, text: str) -> str:
        """Make a text durable and give its hash; keeping it again is cheap. Raises `DiskFailed`.

        A lone surrogate, which UTF-8 cannot hold, becomes a question mark.
        """
        data = self.redact(text).encode(errors="replace")
        name = sha256(data).hexdigest()
        if name not in self._kept:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(self._write, name, data, limiter=self._limiter)
        return name

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
        # A file that an earlier process left may not be durable, so it is written anew.
        path = self.path(name)
        try:
            if path.parent not in self._made:
                make_folder(path.parent)
                self._made.add(path.parent)
            replace(path, data)
        except OSError as error:
            raise DiskFailed(f"writing {path} failed: {error}. Nothing that needs it was acted on.") from error
        self._kept.add(name)
