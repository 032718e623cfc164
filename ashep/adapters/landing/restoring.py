"""Undoes a move that was cut off: files and index of a work tree go back to where the branch still is.

Only what can be of the move is undone: a file is taken back if it is what the new commit has, or the beginning of it,
or missing. Whatever else stands there a person wrote since; it stays, and shows as their change.
"""

import os
import stat
from pathlib import Path

import anyio.to_thread

from ashep.adapters.landing.git import Git
from ashep.adapters.landing.indexes import Held
from ashep.adapters.landing.obstacles import LINK, Change, changes


async def restore(git: Git, top: Path, held: Held, old: str, new: str) -> None:
    """Take files and index of a work tree back from `new`, or from anywhere between, to `old`."""
    touched = await changes(git, old, new)
    await held.renew()
    listed = await git.within(top, "ls-files", "-z", "--stage", index=held.copy)
    staged = dict(_entry(line) for line in listed.stdout.split(b"\0") if line)
    ours = [change for change in touched if staged.get(change.path) in (change.old, change.new)]
    files = [change for change in ours if LINK not in (*(change.old or ()), *(change.new or ()))]
    unlike_new = await _unlike(git, top, held, ours, files, old=False)
    unlike_old = await _unlike(git, top, held, ours, files, old=True)
    partial = [change for change in files if change.path in unlike_new & unlike_old]
    cut_off = {change.path for change in partial if await _begins(git, top, change)}
    back = [change for change in files if change.path not in unlike_new or change.path in cut_off]
    gone = [change.path for change in back if change.old is None]
    await anyio.to_thread.run_sync(_delete, os.fsencode(top), gone)
    wanted = [change.path for change in back if change.old is not None]
    again = b"".join(path + b"\0" for path in await anyio.to_thread.run_sync(_free, os.fsencode(top), wanted))
    # the index of the copy has the old entries now: `_unlike` asked for them last
    await git.within(top, "checkout-index", "-f", "-q", "-z", "--stdin", index=held.copy, stdin=again, accepted=(0, 1))
    await git.within(top, "update-index", "-q", "--refresh", index=held.copy, accepted=(0, 1))
    await held.publish()


def _entry(line: bytes) -> tuple[bytes, tuple[bytes, bytes]]:
    head, _, path = line.partition(b"\t")
    mode, name, _ = head.split(b" ")
    return path, (mode, name)


async def _unlike(
    git: Git, top: Path, held: Held, entries: list[Change], files: list[Change], *, old: bool
) -> set[bytes]:
    """Set the copy's entries to those of one side, and give the files that differ from it."""
    lines: list[bytes] = []
    for change in entries:
        side, other = (change.old, change.new) if old else (change.new, change.old)
        mode, name = side or (b"0", b"0" * len((other or (b"", b""))[1]))
        lines.append(mode + b" " + name + b"\t" + change.path + b"\0")
    # removals first: a file cannot come where the index still has a folder
    lines.sort(key=lambda line: not line.startswith(b"0 "))
    await git.within(top, "update-index", "-z", "--index-info", index=held.copy, stdin=b"".join(lines))
    differ = await git.within(top, "diff-files", "--name-only", "-z", "--ignore-submodules=all", index=held.copy)
    found = set(differ.stdout.split(b"\0"))
    absent = [change.path for change in files if (change.old if old else change.new) is None]
    there = await anyio.to_thread.run_sync(lambda: {path for path in absent if _is_file(os.fsencode(top), path)})
    return found | there


async def _begins(git: Git, top: Path, change: Change) -> bool:
    """Say whether a file is missing, or was cut off while it was written."""
    try:
        stands = await anyio.Path(os.fsdecode(os.path.join(os.fsencode(top), change.path))).read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return True  # it is not there: where a folder or file takes its place, `_free` asks whose that is
    except OSError:
        return False
    if change.new is None:
        return False
    whole = (await git.bare("cat-file", "blob", change.new[1].decode())).stdout
    return whole.startswith(stands)


def _is_file(top: bytes, path: bytes) -> bool:
    """Say whether something else than a folder stands there."""
    try:
        return not stat.S_ISDIR(os.lstat(os.path.join(top, path)).st_mode)
    except OSError:
        return False


def _free(top: bytes, paths: list[bytes]) -> list[bytes]:
    """Give those whose place is free or a file: git would take away what else stands there, whoever made it."""
    found: list[bytes] = []
    for path in paths:
        above, place = path.split(b"/")[:-1], os.path.join(top, path)
        blocked = any(_is_file(top, b"/".join(above[: length + 1])) for length in range(len(above)))
        if not blocked and (_is_file(top, path) or not os.path.lexists(place)):
            found.append(path)
    return found


def _delete(top: bytes, paths: list[bytes]) -> None:
    """Delete files, and the folders that are empty then."""
    for path in paths:
        place = os.path.join(top, path)
        try:
            os.unlink(place)
            while (place := os.path.dirname(place)) != top:
                os.rmdir(place)
        except OSError:
            continue
