"""Says what of a person's stands in the way of new files in their work tree."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from ashep.adapters.landing.git import Git

_OWN = (b".beads/", b".agent-shepherd/state/")
_OWN_FILES = (b".beads.gate.lock", b".agent-shepherd/runs.jsonl")
_NAMED = 5
_AT_ONCE = 500
LINK = b"160000"
"""The mode of a submodule, which has no file of its own."""


@dataclass(frozen=True, slots=True)
class Change:
    """A path that differs between two commits."""

    path: bytes
    old: tuple[bytes, bytes] | None
    """Mode and object; None: it is not there."""
    new: tuple[bytes, bytes] | None


async def changes(git: Git, old: str, new: str) -> list[Change]:
    """List what differs between two commits, file by file."""
    done = await git.bare("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old, new)
    fields = iter(done.stdout.split(b"\0"))
    found: list[Change] = []
    for head in fields:
        if head:
            modes_and_objects = head.removeprefix(b":").split(b" ")
            before, after, was, becomes, _ = modes_and_objects
            found.append(Change(next(fields), _side(before, was), _side(after, becomes)))
    return found


def _side(mode: bytes, name: bytes) -> tuple[bytes, bytes] | None:
    return None if mode == b"000000" else (mode, name)


async def obstacle(git: Git, top: Path, index: Path, old: str, new: str) -> str | None:
    """Say what keeps the work tree, whose HEAD is `old`, from `new`, as the end of a sentence; None: nothing does.

    All that differs from `old` does, staged or not, but for files of bd and of ashep itself, which change all the
    time, unless they are to change. Files that git does not know, ignored ones too, are in the way where a new one
    is to stand.
    """
    touched = await changes(git, old, new)
    paths = {change.path for change in touched}
    look = ("status", "--porcelain", "-z", "--untracked-files=no", "--ignore-submodules=all", "--no-renames")
    differ = {entry[3:] for entry in await _names(git, top, index, *look)}
    if dirty := sorted(path for path in differ if path in paths or not _is_own(path)):
        return f"there are uncommitted changes: {_named(git, dirty)}"
    added = [change.path for change in touched if change.old is None]
    known = {change.path for change in touched if change.old is not None}
    found = await anyio.to_thread.run_sync(lambda: set(_in_the_way(os.fsencode(top), added, known)))
    unknown = {place for place, folder in found if not folder}
    folders = sorted(place for place, folder in found if folder)
    for start in range(0, len(folders), _AT_ONCE):
        paths = map(_literal, folders[start : start + _AT_ONCE])
        unknown |= set(await _names(git, top, index, "ls-files", "-z", "--others", "--", *paths))
    if unknown:
        return f"files that git does not know stand where new ones come: {_named(git, sorted(unknown))}"
    return None


async def _names(git: Git, top: Path, index: Path, *arguments: str) -> list[bytes]:
    done = await git.within(top, *arguments, index=index)
    return [name for name in done.stdout.split(b"\0") if name]


def _is_own(path: bytes) -> bool:
    return path.startswith(_OWN) or path in _OWN_FILES


def _literal(path: bytes) -> str:
    return f":(top,literal){os.fsdecode(path)}"


def _named(git: Git, paths: list[bytes]) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return ", ".join(git.shown(path) for path in paths[:_NAMED]) + more


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
