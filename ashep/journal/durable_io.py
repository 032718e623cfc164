"""Durable folders and bytes: they outlive a power cut. All of it blocks and raises OSError."""

import errno
import os
import stat
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import BinaryIO


def make_folder(path: Path) -> None:
    """Make a folder for this user only, with the folders above it, so that it is still there after a power cut.

    One that is there already is synced too: who made it may have been killed before that.
    """
    if not path.is_dir():
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)  # two runners that begin make it at the same time
        path.mkdir(mode=0o700, exist_ok=True)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_all(file: int, data: bytes) -> None:
    """Write all bytes, however few the system takes at a time."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def replace(path: Path, data: bytes | Iterable[bytes], mode: int = 0o600) -> None:
    """Give a file this content, all of it or none, durably."""
    draft = path.with_name(path.name + ".tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC  # a link there is somebody else's
    file = os.open(draft, flags, mode)
    try:
        for piece in [data] if isinstance(data, bytes) else data:
            write_all(file, piece)
        os.fsync(file)
    finally:
        os.close(file)
    draft.rename(path)
    sync_folder(path.parent)


def copy(path: Path, target: Path, size: int | None = None) -> None:
    """Copy a file, or so many of its first bytes, all of that or none, durably."""
    with path.open("rb") as source:
        replace(target, iter(partial(source.read, 1 << 20), b"") if size is None else source.read(size))


def opened(path: Path) -> BinaryIO:
    """Open a regular file to be read that somebody else may have put something in the stead of: a pipe keeps nobody
    waiting, and a link leads nowhere. Raises `OSError`.
    """
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "no regular file", str(path))
    return os.fdopen(file, "rb")
