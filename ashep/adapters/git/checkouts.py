"""Finds the work trees in which a branch is checked out, and what stands in the way of moving it there."""

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import anyio.to_thread

from ashep.adapters.git.command import Git
from ashep.adapters.git.locks import linked
from ashep.adapters.git.objects import LINK, PathChange, changes
from ashep.adapters.git.repository import WorkspacePaths, under_way
from ashep.adapters.git.tree_scan import find_present, hidden, parents


async def checkouts(git: Git, branch: str) -> list[WorkspacePaths]:
    """List the work trees that have the branch checked out; those that were deleted don't count."""
    printed = (await git.bare("worktree", "list", "--porcelain", "-z")).stdout
    common = await git.common()
    found: list[WorkspacePaths] = []
    for number, entry in enumerate(printed.decode(errors="surrogateescape").split("\0\0")):
        words = {key: rest for key, _, rest in (line.partition(" ") for line in entry.strip("\0").split("\0"))}
        if words.get("branch") != f"refs/heads/{branch}" or "bare" in words:
            continue
        top = Path(words["worktree"])
        if number == 0 and (main := await git.main()) != common.parent:
            found.append(WorkspacePaths(main or common, common, unknown=main is None))
        elif (folder := await anyio.to_thread.run_sync(_folder, top)) is not None:
            found.append(WorkspacePaths(top, folder))
        elif "locked" in words:
            found.append(WorkspacePaths(top, common, away=True))
    return found


async def rebased_in(git: Git, branch: str) -> str | None:
    """Say where the branch is being rebased: its HEAD is detached meanwhile, and it comes back."""
    common = await git.common()

    def look() -> str | None:
        for folder in (common, *(admin for admin, _ in linked(common))):
            for name in ("rebase-merge/head-name", "rebase-apply/head-name"):
                with suppress(OSError):
                    if (folder / name).read_text(errors="replace").strip() == f"refs/heads/{branch}":
                        return str(folder.parent if folder == common else folder)
        return None

    return await anyio.to_thread.run_sync(look)


def _folder(top: Path) -> Path | None:
    """Find git's own folder of a work tree; None where the tree is not there."""
    place = top / ".git"
    with suppress(OSError, UnicodeDecodeError):
        if place.is_dir():
            return place
        return (top / place.read_text().removeprefix("gitdir:").strip()).resolve()
    return None


async def half_done(tree: WorkspacePaths) -> str | None:
    """Say what somebody has under way in a work tree, if that keeps its files from moving."""
    _, what = await under_way(tree)
    return f"{what} under way there" if what else None


# --- obstacles ---

_NAMED = 5
_AT_ONCE = 500
_SPARE = 16 * 1024**2
"""Bytes that must be free next to the new files: for what a disk keeps of a file, and for the index."""
_SPARE_FILES = 100  # files that must be possible next to the new ones: git's own


async def obstacle(git: Git, top: Path, index: Path, old: str, new: str) -> str | None:
    """Say what keeps the work tree, whose HEAD is `old`, from `new`, as the end of a sentence; None: nothing does.

    What is to change and differs from HEAD does, staged or not. Files that git does not know, ignored ones too, are in
    the way where a new one is to stand.
    """
    touched = await changes(git, old, new)
    if small := await _small(git, top, touched):
        return small
    if dirty := await edited(git, top, index, touched):
        return dirty
    added = [change.path for change in touched if change.old is None]
    known = {change.path for change in touched if change.old is not None}
    former = [one.path for one in touched if LINK in (one.old or ()) and one.new and LINK not in one.new]
    if filled := await anyio.to_thread.run_sync(_filled, os.fsencode(top), former):
        return (
            f"a file takes the place of the submodule {name_files(git, filled)}, whose folder git would delete with "
            "all that is in it; move away what you want to keep, and empty the folder with `git submodule deinit`"
        )
    found = await anyio.to_thread.run_sync(lambda: set(_in_the_way(os.fsencode(top), added, known)))
    unknown = {place for place, folder in found if not folder}
    folders = sorted(place for place, folder in found if folder)
    for start in range(0, len(folders), _AT_ONCE):
        paths = [f":(top,literal){os.fsdecode(path)}" for path in folders[start : start + _AT_ONCE]]
        unknown |= set(await _names(git, top, index, "ls-files", "-z", "--others", "--", *paths))
    if unknown:
        return f"files that git does not know stand where new ones come: {name_files(git, sorted(unknown))}"
    return None


async def edited(git: Git, top: Path, index: Path | None, touched: list[PathChange]) -> str | None:
    """Say what of the files that are to change somebody has changed there; `index`: None is the work tree's own."""
    look = ("status", "--porcelain", "-z", "--untracked-files=no", "--ignore-submodules=all", "--no-renames")
    differ = {entry[3:] for entry in await _names(git, top, index, *look)}
    paths = {change.path for change in touched}
    above = {parent for path in paths for parent in parents(path)}
    dirty = [path for path in differ if path in paths | above or any(parent in paths for parent in parents(path))]
    return f"there are uncommitted changes: {name_files(git, sorted(dirty))}" if dirty else None


async def _small(git: Git, top: Path, touched: list[PathChange]) -> str | None:
    """Say whether the disk has too little room. A move that it cuts off could be taken back only once it has more."""
    names = {change.new[1] for change in touched if change.new and LINK not in change.new}
    asked = b"".join(name + b"\n" for name in sorted(names))
    sizes = (await git.bare("cat-file", "--batch-check=%(objectsize)", stdin=asked)).stdout.split(b"\n")
    wanted = sum(int(size) for size in sizes if size.isdigit()) + _SPARE
    free = (await anyio.to_thread.run_sync(shutil.disk_usage, top)).free
    files = sum(change.new is not None for change in touched) + _SPARE_FILES
    found = await anyio.to_thread.run_sync(os.statvfs, top)
    if found.f_files and found.f_favail < files:
        return f"its disk has no room for the new files: {files} (inodes) are needed, {found.f_favail} are free"
    if free >= wanted:
        return None
    return f"its disk has no room for the new files: {wanted // 1024**2 + 1} MiB are needed, {free // 1024**2} are free"


async def hidden_of(git: Git, top: Path, index: Path, old: str, new: str) -> str:
    """Name the files that are to change and that git was told not to look at, as the end of what is said; or nothing.

    `git status` shows none of them as changed, so that a person would look for the reason in vain.
    """
    unseen = {*hidden((await git.run_in_tree(top, "ls-files", "-z", "-v", index=index)).stdout)}
    touched = sorted(change.path for change in await changes(git, old, new) if change.path in unseen)
    there = await anyio.to_thread.run_sync(find_present, top, touched)
    if not there:
        return ""
    how = "git update-index --no-assume-unchanged --no-skip-worktree"
    return f" (git was told not to look at {name_files(git, there)}; `{how}` ends that)"


async def _names(git: Git, top: Path, index: Path | None, *arguments: str) -> list[bytes]:
    done = await git.run_in_tree(top, *arguments, index=index)
    return [name for name in done.stdout.split(b"\0") if name]


def name_files(git: Git, paths: list[bytes]) -> str:
    """Name the first of some files, and say how many more there are."""
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return ", ".join(git.redact_bytes(path) for path in paths[:_NAMED]) + more


def _in_the_way(top: bytes, added: list[bytes], known: set[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Give what stands where a file is to be added, or where a folder above it is to be, and whether it is a folder."""
    for path in added:
        parts = path.split(b"/")
        for length in range(1, len(parts) + 1):
            place = b"/".join(parts[:length])
            try:
                mode = os.lstat(os.path.join(top, place)).st_mode
            except OSError:
                break  # nothing there, and so nothing below it
            folder = stat.S_ISDIR(mode)
            if length == len(parts) or not folder:
                if place not in known:
                    yield place, folder
                break


def _filled(top: bytes, paths: list[bytes]) -> list[bytes]:
    there = ((path, os.path.join(top, path)) for path in paths)
    return [path for path, place in there if os.path.isdir(place) and not os.path.islink(place) and os.listdir(place)]
