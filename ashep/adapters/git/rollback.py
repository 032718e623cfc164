"""Undoes a move that was cut off: files and index of a work tree go back to where the branch still is.

Only what can be of the move is undone: a file is taken back if it is what the new commit has, or the beginning of it,
or missing. Whatever else stands there a person wrote since; it stays, and shows as their change.
"""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path

import anyio.to_thread

from ashep.adapters.git import checkouts, index_lock, objects
from ashep.adapters.git.command import Git
from ashep.adapters.git.tree_scan import find_present
from ashep.errors import AshepError

MOST_READ = 16 * 1024**2
"""Bytes of a file that are held in memory to be compared."""
_CHUNK = 1024**2


async def restore(git: Git, top: Path, held: index_lock.Held, old: str, new: str) -> None:
    """Take files and index of a work tree back from `new`, or from anywhere between, to `old`.

    Raises `AshepError` where a file cannot be written. What is not done yet the next call does.
    """
    try:
        await _restore(git, top, held, old, new)
    except AshepError as error:
        raise AshepError(
            f"{top}: a landing was cut off, and its files cannot be put back now: {error}. Once nothing is in the way "
            "it is tried again; until then what `git status` shows there may be of the landing, not yours"
        ) from error


async def _restore(git: Git, top: Path, held: index_lock.Held, old: str, new: str) -> None:
    touched = await objects.changes(git, old, new)
    await held.renew()
    listed = await git.run_in_tree(top, "ls-files", "-z", "--stage", "-v", index=held.copy)
    staged = dict[bytes, tuple[bytes, tuple[bytes, bytes]]]()  # what git was told of a path, as a letter; its entry
    for line in filter(None, listed.stdout.split(b"\0")):
        head, _, path = line.partition(b"\t")
        tag, mode, name, _ = head.split(b" ")
        staged[path] = tag, (mode, name)
    ours = [change for change in touched if staged.get(change.path, (b"", None))[1] in (change.old, change.new)]
    tags = {change.path: staged[change.path][0] for change in ours if change.old and change.path in staged}
    sparse = {path for path in tags if tags[path] in b"Ss"}  # where they are not there a sparse checkout left them out
    absent = sparse.difference(await anyio.to_thread.run_sync(find_present, top, sparse))
    files = [one for one in ours if objects.LINK not in (*(one.old or ()), *(one.new or ())) and one.path not in absent]
    unlike_new = await _unlike(git, top, held, ours, files, old=False)
    unlike_old = await _unlike(git, top, held, ours, files, old=True)
    partial = [change for change in files if change.path in unlike_new & unlike_old]
    cut_off = {change.path for change in partial if await _begins(git, top, change)}
    back = [change for change in files if change.path not in unlike_new or change.path in cut_off]
    gone = [change.path for change in back if change.old is None]
    await anyio.to_thread.run_sync(_delete, os.fsencode(top), gone)
    wanted = [change.path for change in back if change.old is not None]
    free = await anyio.to_thread.run_sync(_free, os.fsencode(top), wanted)
    # the index of the copy has the old entries now: `_unlike` asked for them last
    again = ("checkout-index", "-f", "-q", "-z", "--stdin")
    done = await git.run_in_tree(top, *again, index=held.copy, stdin=_listed(free), accepted=(0, 1, 128), writes=True)
    await git.run_in_tree(top, "update-index", "-q", "--refresh", index=held.copy, accepted=(0, 1))
    if done.returncode:  # what was begun must not be forgotten where a file is not there as it was
        differ = await git.run_in_tree(
            top, "diff-files", "--name-only", "-z", "--ignore-submodules=all", index=held.copy
        )
        if left := sorted({*differ.stdout.split(b"\0")} & {*free}):
            raise AshepError(f"git does not write {checkouts.name_files(git, left)}: {git.redact_stderr(done)[:300]}")
    for flag, letters in (("--skip-worktree", b"Ss"), ("--assume-unchanged", b"hs")):
        if told := [path for path, tag in tags.items() if tag in letters]:
            await git.run_in_tree(top, "update-index", flag, "-z", "--stdin", index=held.copy, stdin=_listed(told))
    await held.publish()


def _listed(paths: Iterable[bytes]) -> bytes:
    return b"".join(path + b"\0" for path in paths)


async def _unlike(
    git: Git,
    top: Path,
    held: index_lock.Held,
    entries: list[objects.PathChange],
    files: list[objects.PathChange],
    *,
    old: bool,
) -> set[bytes]:
    """Set the copy's entries to those of one side, and give the files that differ from it."""
    lines: list[bytes] = []
    for change in entries:
        side, other = (change.old, change.new) if old else (change.new, change.old)
        mode, name = side or (b"0", b"0" * len((other or (b"", b""))[1]))
        lines.append(mode + b" " + name + b"\t" + change.path + b"\0")
    # removals first: a file cannot come where the index still has a folder
    lines.sort(key=lambda line: not line.startswith(b"0 "))
    await git.run_in_tree(top, "update-index", "-z", "--index-info", index=held.copy, stdin=b"".join(lines))
    differ = await git.run_in_tree(top, "diff-files", "--name-only", "-z", "--ignore-submodules=all", index=held.copy)
    found = set(differ.stdout.split(b"\0"))
    absent = [change.path for change in files if (change.old if old else change.new) is None]
    there = await anyio.to_thread.run_sync(lambda: {path for path in absent if _is_file(os.fsencode(top), path)})
    return found | there


async def _begins(git: Git, top: Path, change: objects.PathChange) -> bool:
    """Say whether a file is missing, or was cut off while it was written."""
    file = anyio.Path(os.fsdecode(os.path.join(os.fsencode(top), change.path)))
    try:
        stands = (await file.stat(follow_symlinks=False)).st_size
        if change.new is None:
            return False
        name = change.new[1].decode()
        whole = int(await git.word("cat-file", "-s", name))
        if max(stands, whole) > MOST_READ:
            return stands <= whole and await _begins_large(git, file, name)
        content = await file.read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return True  # it is not there: where a folder or file takes its place, `_free` asks whose that is
    except OSError:
        return False
    if (await git.bare("cat-file", "blob", name)).stdout.startswith(content):
        return True
    # with line ends of the system, or by a filter
    filtered = ("cat-file", "--filters", f"--path={os.fsdecode(change.path)}", name)
    written = await git.run_in_tree(top, *filtered, accepted=(0, 1, 128))
    return written.returncode == 0 and written.stdout.startswith(content)


async def _begins_large(git: Git, file: anyio.Path, name: str) -> bool:
    """Say whether a file is the beginning of a blob that is too large to be held in memory."""
    draft = Path(await git.common(), await git.word("unpack-file", name))

    def compare() -> bool:
        with Path(file).open("rb") as part, draft.open("rb") as whole:
            return all(chunk == whole.read(len(chunk)) for chunk in iter(partial(part.read, _CHUNK), b""))

    try:
        return await anyio.to_thread.run_sync(compare)
    finally:
        await anyio.Path(draft).unlink(missing_ok=True)


def _is_file(top: bytes, path: bytes) -> bool:
    """Say whether something else than a folder stands there."""
    with suppress(OSError):
        return not stat.S_ISDIR(os.lstat(os.path.join(top, path)).st_mode)
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
    for path in paths:
        place = os.path.join(top, path)
        with suppress(OSError):
            os.unlink(place)
            while (place := os.path.dirname(place)) != top:
                os.rmdir(place)
