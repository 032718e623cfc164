"""Take trees away: at once, and those of issues that landed, where nothing that they hold is lost by that."""

import os
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from datetime import timedelta
from itertools import count
from pathlib import Path

import anyio.to_thread

from ashep.adapters.git import tree_scan
from ashep.adapters.git.repository import (
    SEALED,
    Repository,
    TreeRepository,
    WorkspacePaths,
    moved_aside_path,
    size_of,
    under_way,
)
from ashep.adapters.git.workspaces import salvage, seal, setup_steps
from ashep.adapters.system import filesystems, process_table
from ashep.adapters.system.folders import delete
from ashep.core.state.branches import BASES, folder_of
from ashep.core.text import clean
from ashep.errors import AshepError
from ashep.ports.workspaces import Landed, Removed

TRASH = ".removing"
"""In the place of trees: what was taken away, saved, and is not deleted yet."""

_numbers = count()


async def take_away(repository: Repository, root: Path, place: WorkspacePaths) -> None:
    """Take a tree away: out of sight at once, so that a kill in the midst leaves no half of it in its place."""
    trash, common = root / TRASH, (await repository.folders()).common

    def move() -> None:
        if os.path.lexists(place.path):
            _discard(place.path, trash)
        if not place.whole:
            _discard(place.admin, common / "ashep" / "removing")  # `git worktree prune` takes those of others too
        if place.beside is not None and place.beside.exists():
            _discard(place.beside, trash)
        _trim(place.path.parent, root)

    try:
        await anyio.to_thread.run_sync(move)
    except OSError as error:
        raise AshepError(f"{place.path} cannot be taken away: {error}. Everything in it is saved.") from error


def _trim(folder: Path, root: Path) -> None:
    with suppress(OSError):
        while folder != root.resolve():
            folder.rmdir()
            folder = folder.parent


def _discard(folder: Path, trash: Path) -> None:
    """Move a folder out of sight, and delete it with what a call that was killed left there."""
    trash.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = trash / f"{os.getpid()}-{next(_numbers)}"
    while os.path.lexists(target):  # left by another process of that number
        target = trash / f"{os.getpid()}-{next(_numbers)}"
    os.rename(folder, target)
    for left in trash.iterdir():
        delete(left)


# --- what landed ---


Known = Mapping[bytes, tree_scan.Stat]
Save = Callable[[TreeRepository, str, Collection[str], Collection[str], Known], Awaitable[tuple[str, ...]]]
"""Saves a tree of a branch, whose refs are dropped, but for what commits reach and for files that are known."""


async def retire(
    repository: Repository,
    root: Path,
    inner: TreeRepository | None,
    save: Save,
    landed: Landed,
    base: str | None,
    quiet: timedelta,
) -> Removed:
    """Take a tree and its branch away, and what lies next to it; whoever calls it holds the branch.

    `inner`: the repository as it is seen from the tree; None: there is no tree. `save`: how it is saved.

    The order is: look at everything, save what no ref holds, take the folders away, then the refs, all or none, each
    only where it is still what was looked at, and the base, too. Whatever a kill leaves out, another call does.
    """
    branch = landed.branch
    await repository.unname(branch)
    ref, sealed = f"refs/heads/{branch}", f"{SEALED}{branch}"
    there = await repository.refs(ref, sealed, f"{BASES}{branch}")
    holder, proven = None, list[str]()
    for name, commit in [(name, there[name]) for name in (ref, sealed) if name in there]:
        if (found := await _holder(repository, commit, landed, base)) is not None:
            holder, proven = found, [*proven, commit]
        elif name == ref:
            raise AshepError(f"{branch} has commits that the base branch does not hold")
    top = await anyio.to_thread.run_sync(root.resolve)
    known, freed = dict[bytes, tree_scan.Stat](), 0
    beside, saved = moved_aside_path(inner.place.path if inner is not None else top / folder_of(branch)), ()
    lies_beside = await anyio.Path(beside).is_dir() and not await anyio.Path(beside).is_symlink()
    if inner is not None and await anyio.Path(inner.place.path).is_dir():
        head = (await inner.refs(ref)).get(ref) if inner.place.whole else None  # which may not have come out
        if head is not None and not any([head == one or await inner.contains(one, head) for one in there.values()]):
            raise AshepError(f"{branch} has commits that the base branch does not hold")
        known = await _unused(inner, ref, quiet)
    if lies_beside:
        files = await anyio.to_thread.run_sync(tree_scan.walk, beside)
        await anyio.to_thread.run_sync(_quiet, beside, files, quiet)
        place = WorkspacePaths(beside, (await repository.folders()).common)
        saved, kept = await salvage.save_beside(await repository.open_tree(place), branch, files)
        if lost := files.keys() - kept:
            some = clean(os.fsdecode(min(lost)))[:100]
            raise AshepError(f"{some} in {beside} cannot be saved, or is too much; move what you want to keep")
    if inner is None:
        saved += await salvage.save_commits(repository, branch, there, proven)
    else:
        saved += await save(inner, branch, there, proven, known)
        freed = await anyio.to_thread.run_sync(size_of, *inner.place.folders)
        await take_away(repository, root, inner.place)
    if lies_beside:
        freed += await anyio.to_thread.run_sync(size_of, beside)
        await anyio.to_thread.run_sync(_discard, beside, root / TRASH)
        await anyio.to_thread.run_sync(_trim, beside.parent, root)
    lines = [f"delete {name} {sha}" for name, sha in there.items()]
    await repository.update_refs([holder, *lines] if lines and holder else lines)
    return Removed(saved, freed)


async def _holder(repository: Repository, commit: str, landed: Landed, base: str | None) -> str | None:
    """Give the line that verifies the branch that holds a commit, or what it brought where that is just what was
    sealed; empty: HEAD does, which is on no branch. None: none does.
    """
    names = [f"refs/heads/{name}" for name in (landed.onto, base) if name]
    for name in [*names, "HEAD"] if base is None else names:
        if (onto := await repository.commit_of(name)) is None:
            continue
        holds = await repository.contains(onto, commit)
        if holds or (commit == landed.head and await repository.has(onto, commit, landed.commit or None)):
            ref = name if name != "HEAD" else await repository.main_ref()
            return f"verify {ref} {onto}" if ref else ""
    return None


async def uncommitted(repository: TreeRepository) -> str | None:
    """Name something in a tree that is not committed, or give git's words where it cannot tell; None: all is."""
    words = ("status", "--porcelain", "-z", "--untracked-files=normal", "--", ".")
    status = await repository.ask(*words, *await seal.not_ours(repository))
    if not (status.returncode or status.stdout):
        return None
    return (
        clean(status.stdout.split(b"\0")[0][3:].decode(errors="replace"))[:100]
        or repository.git.redact_stderr(status)[:200]
    )


async def _unused(repository: TreeRepository, ref: str, quiet: timedelta) -> dict[bytes, tree_scan.Stat]:
    """Raise where a tree is in use, or holds what is not committed; give the ignored files that need not be saved.

    Those are what its runs left: what they built, say. What somebody put there later is saved.
    """
    place = repository.place
    if place.ref != ref:
        raise AshepError(f"its HEAD is on {place.ref or 'no branch'}, and not on its own")
    state, _ = await under_way(place)
    if state is not None:
        raise AshepError(f"somebody is in the midst of a {state} in it")
    if (first := await uncommitted(repository)) is not None:
        raise AshepError(f"something in it is not committed: {first}")
    content = await tree_scan.look(repository)
    await anyio.to_thread.run_sync(_quiet, place.path, content.files, quiet)
    used = place.notes / "used"
    until = await anyio.to_thread.run_sync(lambda: used.stat().st_mtime_ns if used.exists() else 0)
    old = {path: about for path, about in content.files.items() if path in content.ignored and about.ctime <= until}
    return old | await anyio.to_thread.run_sync(setup_steps.made_by_set_up, place)


def _quiet(folder: Path, files: dict[bytes, tree_scan.Stat], quiet: timedelta) -> None:
    """Raise where a folder is in use, or something in it changed a short while ago, by its file system's own clock."""
    if mounted := filesystems.find_mount(folder):
        raise AshepError(f"something is mounted in it: {mounted}")
    if (found := process_table.inside(folder)) is not None:
        raise AshepError(f"process {found[0]} ({clean(found[1])}) works in {folder}")
    if not files:
        return
    path, about = max(files.items(), key=lambda item: item[1].ctime)
    mark = folder.parent / f".{folder.name}.looked"
    mark.touch()
    now = mark.stat().st_ctime_ns
    mark.unlink()
    if now - about.ctime < quiet / timedelta(microseconds=1) * 1000:
        raise AshepError(f"{clean(os.fsdecode(path))[:100]} in it was changed lately")
