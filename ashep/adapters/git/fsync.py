"""Puts on the disk what refs name: after a power cut none of them leads to an object that is empty, or gone.

Git flushes what it writes itself, where it is told to, but never a folder, so that a file may be there and its name
not; and nobody flushed what an agent's git wrote. So before a ref of ours moves, all that it will reach and that is not
there for sure yet is flushed, files first and then the folders that name them; and after that the ref itself.
"""

import ctypes
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import anyio.to_thread

from ashep.errors import AshepError

REACHED = ("rev-list", "--objects", "--no-object-names", "--exclude-promisor-objects", "--ignore-missing", "--stdin")
"""Arguments of git that list all objects which commits reach: `reached` is its input."""
SETTINGS = {"core.fsync": "committed", "core.fsyncMethod": "batch"}
"""What an agent's git is told, by its environment: less is lost when power fails before we have flushed it."""

_MOST = 64  # with more files than this the file system is flushed at once, instead of each file
_TRIES = 3
_ALTERNATES = 5  # as deep as git follows them
_libc = ctypes.CDLL(None, use_errno=True)
_packs = set[tuple[int, int, int, int]]()  # packs that this process has flushed; git writes none twice


def reached(new: Iterable[str], old: Iterable[str]) -> bytes:
    """Say what git is to list or pack: what the new objects reach and the old ones do not."""
    return "".join([*(f"{one}\n" for one in new), *(f"^{one}\n" for one in old)]).encode()


async def objects(common: Path, listed: bytes) -> None:
    """Flush objects, wherever they lie. `listed`: their ids, a line each.

    Raises `AshepError` where one is empty, as a power cut leaves them, or the disk does not take it.
    """
    await _flushed(lambda: _objects(common / "objects", listed.decode().split()))


async def refs(common: Path, names: Collection[str]) -> None:
    """Flush refs, those that were deleted too. Raises `AshepError` where the disk does not take it."""
    await files(common, [b"packed-refs", *map(os.fsencode, names)])


async def files(top: Path, names: Collection[bytes]) -> None:
    """Flush files below a folder, and the folders that name them; those that were deleted, too.

    Raises `AshepError` where the disk does not take it.
    """
    await _flushed(lambda: _files(top, names))


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Give the variables by which an agent's git is told to flush, next to those that tell it something already."""
    told = environ.get("GIT_CONFIG_COUNT", "0")
    first = int(told) if told.isdecimal() else 0
    given = {"GIT_CONFIG_COUNT": str(first + len(SETTINGS))}
    for number, (name, value) in enumerate(SETTINGS.items(), first):
        given |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return given


async def _flushed(work: Callable[[], None]) -> None:
    try:
        await anyio.to_thread.run_sync(work)
    except OSError as error:
        raise AshepError(f"{error.filename or 'the disk'} cannot be flushed: {error.strerror}") from error


def _objects(store: Path, ids: Collection[str]) -> None:
    for tries in reversed(range(_TRIES)):
        try:
            for place in stores(store):
                kept = [path for name in ("pack", "info") for path in (place / name).rglob("*") if path.is_file()]
                loose = [file for one in ids if (file := place / one[:2] / one[2:]).exists()]
                _all_flushed(place, [file for file in kept if _mark(file) not in _packs], loose)
                _packs.update(map(_mark, kept))
            return
        except FileNotFoundError:  # it was packed meanwhile, or a pack became a part of another
            if not tries:
                raise


def stores(store: Path, depth: int = _ALTERNATES) -> Iterator[Path]:
    """Name a folder of objects, and those that it borrows from. Blocks."""
    yield store
    with suppress(OSError):
        for line in (store / "info" / "alternates").read_bytes().splitlines():
            if line and not line.startswith(b"#") and depth:
                yield from stores(Path(os.path.normpath(store / os.fsdecode(line))), depth - 1)


def _mark(file: Path) -> tuple[int, int, int, int]:
    about = file.stat()
    return about.st_dev, about.st_ino, about.st_size, about.st_ctime_ns


def _all_flushed(place: Path, kept: Collection[Path], loose: Collection[Path]) -> None:
    for file in loose:
        with file.open("rb") as content:
            if content.read(1) in (b"", b"\0"):
                raise AshepError(
                    f"{file} is empty: power failed before it was on the disk. `git fsck` says what else is; delete "
                    "them, and bring them back from where the commits are, or commit the work anew"
                )
    if len(kept) + len(loose) > _MOST:
        _flush(place, disk=True)
        return
    for path in (*kept, *loose, *sorted({place, *(file.parent for file in (*kept, *loose))})):
        _flush(path)


def _files(top: Path, names: Collection[bytes]) -> None:
    if len(names) > _MOST:
        _flush(top, disk=True)
        return
    paths = [top / os.fsdecode(name) for name in names]
    for path in paths:
        if path.is_file() and not path.is_symlink():
            _flush(path)
    for folder in sorted({above for path in paths for above in path.parents if above.is_relative_to(top)}):
        if folder.is_dir() and not folder.is_symlink():
            _flush(folder)


def _flush(path: Path, *, disk: bool = False) -> None:
    """Flush a file or folder. `disk`: all of the file system that it is on."""
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if not disk:
            os.fsync(opened)
        elif _libc.syncfs(opened):
            raise OSError(ctypes.get_errno(), "")
    except OSError as error:
        raise OSError(error.errno, os.strerror(error.errno or 0), os.fspath(path)) from error
    finally:
        os.close(opened)
