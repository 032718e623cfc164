"""Room on the disk: how much there is, and a reserve that is given up for the last records.

A failed write is never tried again, so that the reserve must go *before* a write that would fail: who writes looks how
much is free, and frees the reserve where that is less than what is to be written. Where a disk promises nothing
(quotas, copies on write) it may help nothing, and nothing depends on it.
"""

import os
from contextlib import suppress
from pathlib import Path

from ashep.core.policy.disk_limits import room
from ashep.journal.durable_io import sync_folder

RESERVE = 1024 * 1024
"""Bytes of the reserve."""

MARGIN = 64 * 1024
"""Bytes that a write may take next to its own: the file system's, and a new file's."""

_NAME = "reserve"


def free(folder: Path) -> int:
    """Give the bytes that may still be written where a folder lies, in files that may still be made; raises OSError."""
    found = os.statvfs(folder)
    return room(found.f_bavail * found.f_frsize, found.f_files, found.f_favail)


class Reserve:
    """The file `state/reserve`."""

    def __init__(self, state: Path) -> None:
        self._path = state / _NAME
        self.held = self._path.exists() and self._path.stat().st_blocks * 512 >= RESERVE

    def see_to(self, needed: int, plenty: int) -> None:
        """Free the reserve where so many bytes would not fit any more, and lay it aside where plenty is free.

        Raises OSError where freeing fails.
        """
        left = free(self._path.parent)
        if self.held and left < needed + MARGIN:
            self._path.unlink()
            sync_folder(self._path.parent)
            self.held = False
        elif not self.held and left >= plenty + RESERVE:
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with suppress(OSError):  # this disk cannot, or is full after all
                os.posix_fallocate(file, 0, RESERVE)
                self.held = True
            os.close(file)
