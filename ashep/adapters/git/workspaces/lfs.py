"""Contents of Git LFS: what git has of them is a pointer, and the filter that git calls keeps them next to its objects.

They go into a place for the pointers of a commit that it is given, as copies, and come out of it for pointers that are
new there. Whoever works in the place writes its folders, so that each is opened by itself and no link is followed.
"""

import hashlib
import os
import re
import shutil
import stat
from collections.abc import Collection, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import anyio.to_thread

from ashep.adapters.git import fsync
from ashep.adapters.git.command import LONG, NOTHING
from ashep.adapters.git.export import drafting
from ashep.adapters.git.repository import Repository, WorkspacePaths
from ashep.errors import TreeRefused

MOST = 4 * 1024**3
"""Bytes of contents that come out of a place at once."""

_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:ext-[^\n]*\n)*oid sha256:([0-9a-f]{64})\nsize (\d{1,15})\n?"
)
_LARGEST = 1024  # bytes: what is as large or larger is no pointer
_AT_ONCE = 20_000  # blobs of a call of git
_PIECE = 1024**2
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

Pointers = dict[str, tuple[int, str]]
"""By the hash of the contents: their size, and the blob that names them."""


MOST_SHOWN = 1024**3
"""Bytes of contents that are written for a judge at once."""


async def store_of(repository: Repository) -> Path:
    """Give the folder in which the user's git keeps contents; it need not be there."""
    said = await repository.shared("config", "--type=path", "lfs.storage", absent=NOTHING)
    return Path((await repository.folders()).common, said or "lfs", "objects")


def write_contents(store: Path, tree: Path, paths: Iterable[bytes]) -> None:
    """Write contents over the pointers below `tree`, as far as they are in the store. Blocks; raises `OSError`."""
    room = MOST_SHOWN
    for path in paths:
        file = tree / os.fsdecode(path)
        if not file.is_file() or file.is_symlink() or file.stat().st_size >= _LARGEST:
            continue
        if match := _POINTER.fullmatch(file.read_bytes()):
            source, size = _locate_content(store, match[1].decode()), int(match[2])
            if size <= room and source.is_file() and source.stat().st_size == size:
                shutil.copyfile(source, file)
                room -= size


async def give(repository: Repository, place: WorkspacePaths, commits: Iterable[str]) -> None:
    """Copy the contents that the trees of commits name into a place: git could not write their files there else."""
    store = await store_of(repository)
    if not await anyio.Path(store).is_dir():
        return
    listed = [await repository.git.bare("ls-tree", "-r", "-z", commit, timeout=LONG) for commit in commits]
    entries = {entry.partition(b"\t")[0] for done in listed for entry in done.stdout.split(b"\0")[:-1]}
    blobs = [entry.split()[2] for entry in entries]
    pointers = await _pointers(repository, blobs, {"GIT_DIR": str((await repository.folders()).common)})
    await anyio.to_thread.run_sync(_put, place, store, pointers)


def _put(place: WorkspacePaths, store: Path, pointers: Pointers) -> None:
    for oid, (size, _) in pointers.items():
        # what the user does not have is fetched there or not; whoever put something in the way of ours goes without
        there = suppress(FileNotFoundError, FileExistsError, NotADirectoryError, PermissionError)
        with there, _locate_content(store, oid).open("rb") as source, _folder(place, oid, make=True) as folder:
            if oid in os.listdir(folder) or os.fstat(source.fileno()).st_size != size:
                continue
            with suppress(FileNotFoundError):
                os.unlink("ashep", dir_fd=folder)
            made = os.open("ashep", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=folder)
            with open(made, "wb") as target:
                shutil.copyfileobj(source, target, _PIECE)
            os.rename("ashep", oid, src_dir_fd=folder, dst_dir_fd=folder)


async def take(
    repository: Repository, place: WorkspacePaths, reached: bytes, beside: Mapping[str, str], known: Collection[str]
) -> list[str]:
    """Bring out the contents that new objects name, and tell of those that are not there. `beside`: where git has them.

    Raises `TreeRefused` where they are too large, or the user's and never in the place: a hash would show a file else.
    """
    store = await store_of(repository)
    if not (await anyio.Path(store).is_dir() or await anyio.Path(place.admin, "lfs").exists()):
        return []
    pointers = await _pointers(repository, reached.split(), beside)
    if not pointers:
        return []
    drafts = store.parent / "tmp" / f"ashep-{place.notes.name}"  # whoever calls this holds the branch
    async with drafting(drafts):
        found = await anyio.to_thread.run_sync(_copied, place, drafts, pointers)
        absent = {oid: blob for oid, (_, blob) in pointers.items() if oid not in found}
        theirs = {blob: oid for oid, blob in absent.items() if await anyio.Path(_locate_content(store, oid)).exists()}
        if theirs:  # it may be what the history names, which git does not leave out of what is new as a rule
            asked = "".join(f"{one}\n" for one in known).encode()
            had = await repository.shared("rev-list", "--objects", "--no-object-names", "--stdin", stdin=asked)
            if foreign := theirs.keys() - {*had.split()}:
                oid = theirs[min(foreign)]
                words = "is named there, and was never in it; commit the file itself"
                raise TreeRefused(f"{place.path}: the Git LFS object {oid} {words}")
        new = [oid for oid in found if not await anyio.Path(_locate_content(store, oid)).exists()]
        await anyio.to_thread.run_sync(_move, drafts, store, new)
        top = store.parent.parent
        await fsync.files(top, [os.fsencode(_locate_content(store, oid).relative_to(top)) for oid in new])
    if not (lost := sorted(absent.keys() - {*theirs.values()})):
        return []
    words = f"Git LFS has no contents of {lost[0]}{f' and {len(lost) - 1} more' if lost[1:] else ''} here: the pointer "
    return [f"{words}alone is on the branch. `git lfs fetch` gets what a server has; else commit the file anew"]


def _copied(place: WorkspacePaths, drafts: Path, pointers: Pointers) -> set[str]:
    """Copy what a place has of contents; give what is as its pointer says."""
    found, room = set[str](), MOST
    for oid, (size, _) in pointers.items():
        if (source := _opened(place, oid)) is None:
            continue
        with source, (drafts / oid).open("wb") as target:
            digest, left = hashlib.sha256(), size if os.fstat(source.fileno()).st_size == size else -1
            room -= max(left, 0)
            if room < 0:
                most = f"{MOST // 1024**3} GiB"
                raise TreeRefused(
                    f"{place.path}: more than {most} of Git LFS is new there; take out what does not belong"
                )
            while left >= 0 and (piece := source.read(min(_PIECE, left + 1))):
                digest.update(piece)
                target.write(piece)
                left -= len(piece)
            target.flush()
            os.fsync(target.fileno())
        if not left and digest.hexdigest() == oid:
            found.add(oid)
    return found


def _opened(place: WorkspacePaths, oid: str) -> BinaryIO | None:
    with suppress(OSError), _folder(place, oid) as folder:
        opened = os.open(oid, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        if stat.S_ISREG(os.fstat(opened).st_mode):
            return open(opened, "rb")
        os.close(opened)
    return None


def _move(drafts: Path, store: Path, new: Iterable[str]) -> None:
    for oid in new:
        target = _locate_content(store, oid)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.rename(drafts / oid, target)


def _locate_content(store: Path, oid: str) -> Path:
    return store / oid[:2] / oid[2:4] / oid


@contextmanager
def _folder(place: WorkspacePaths, oid: str, *, make: bool = False) -> Generator[int]:
    """Open the folder in which a place has contents. Raises `OSError` where a link is on the way to it."""
    at = os.open(place.path, _FOLDER)
    try:
        for name in (".git", "lfs", "objects", oid[:2], oid[2:4]):
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o755, dir_fd=at)
            at, above = os.open(name, _FOLDER, dir_fd=at), at
            os.close(above)
        yield at
    finally:
        os.close(at)


async def _pointers(repository: Repository, objects: Iterable[bytes], env: Mapping[str, str]) -> Pointers:
    common = (await repository.folders()).common
    asked = b"".join(one + b"\n" for one in objects)
    words = ("cat-file", "--buffer", "--batch-check=%(objecttype) %(objectsize) %(objectname)")
    said = await repository.git.raw(*words, cwd=common, env=env, stdin=asked, timeout=LONG)
    lines = [line.split() for line in said.splitlines()]
    small = [line[2] for line in lines if line[0] == b"blob" and 0 < int(line[1]) < _LARGEST]
    found = Pointers()
    for first in range(0, len(small), _AT_ONCE):
        asked = b"".join(one + b"\n" for one in small[first : first + _AT_ONCE])
        said = await repository.git.raw("cat-file", "--buffer", "--batch", cwd=common, env=env, stdin=asked)
        at = 0
        while at < len(said):
            begin = said.index(b"\n", at) + 1
            blob, _, size = said[at:begin].split()
            at = begin + int(size) + 1
            if match := _POINTER.fullmatch(said, begin, at - 1):
                found[match[1].decode()] = int(match[2]), blob.decode()
    return found
