"""Fills the submodules of a place, and reports changes in them, which are on no branch."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio.to_thread

from ashep.adapters.git.repository import WorkspacePaths
from ashep.adapters.git.submodules import Submodule, fill
from ashep.adapters.git.tree_scan import FILLED, Stat, read_stats, walk, write_stats
from ashep.adapters.git.workspaces.setup_steps import refuse_links
from ashep.adapters.system.folders import delete
from ashep.core.policy.settings import SetupStep
from ashep.core.text import clean
from ashep.errors import AshepError

Draft = Callable[[], AbstractAsyncContextManager[Path]]
"""Gives an empty folder on the place's disk, in which nobody works."""

_MARK = Stat(0, 0, 0, 0)
"""What our note has for a submodule itself, by its path and commit."""


def is_filled_by(steps: Sequence[SetupStep]) -> bool:
    """Say whether the set-up fills submodules itself, which git does in empty folders only."""
    return any("submodule" in word for step in steps for word in step.run)


async def fill_place(place: WorkspacePaths, submodules: Sequence[Submodule], draft: Draft, floor: int) -> None:
    """Fill those submodules of a place that are empty, or as they were filled with another commit; all else stays."""
    note = await anyio.to_thread.run_sync(read_stats, place.notes / FILLED)
    for submodule in submodules:
        path, target = submodule.path, place.path / os.fsdecode(submodule.path)
        mark = b"%s@%s" % (path, submodule.commit.encode())
        if submodule.source is None or mark in note:
            continue
        if await anyio.to_thread.run_sync(_is_free, place, target, _below(note, path), path):
            async with draft() as folder:
                filled, _ = await fill([submodule], folder / "tree", folder, floor)

                def put(path: bytes = path, target: Path = target, folder: Path = folder, mark: bytes = mark) -> None:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    delete(target)
                    (folder / "tree" / os.fsdecode(path)).rename(target)
                    old = {*_below(note, path), *(name for name in note if name.startswith(path + b"@"))}
                    rest = {file: about for file, about in note.items() if file not in old}
                    note.clear()
                    note.update(rest | _files(target, path) | {mark: _MARK})
                    write_stats(place.notes / FILLED, note)

                if filled:
                    await anyio.to_thread.run_sync(put)


def _is_free(place: WorkspacePaths, target: Path, filled: Mapping[bytes, Stat], path: bytes) -> bool:
    """Say whether nobody loses anything where a submodule is filled, and nothing is written elsewhere."""
    try:
        refuse_links(place.path, target)
        return not (target.exists() and any(target.iterdir())) or _files(target, path) == filled
    except (AshepError, OSError):  # a link, or a file
        return False


def _files(folder: Path, path: bytes) -> dict[bytes, Stat]:
    repository = {b".git": _MARK} if os.path.lexists(folder / ".git") else {}  # somebody's
    return {path + b"/" + name: about for name, about in (walk(folder) | repository).items()}


def _below(note: Mapping[bytes, Stat], path: bytes) -> dict[bytes, Stat]:
    return {file: about for file, about in note.items() if file.startswith(path + b"/")}


def changed_submodules(place: WorkspacePaths) -> list[str]:
    """Tell of the files of submodules that were changed or deleted in a place. Blocks."""
    note, words = read_stats(place.notes / FILLED), list[str]()
    for path in [mark.rpartition(b"@")[0] for mark, about in note.items() if about == _MARK]:
        target = place.path / os.fsdecode(path)
        there = _files(target, path) if target.is_dir() and not target.is_symlink() else note
        changed = sorted(file for file, about in _below(note, path).items() if there.get(file, _MARK)[:3] != about[:3])
        if changed:
            first, name = clean(os.fsdecode(changed[0]))[:200], clean(os.fsdecode(path))[:100]
            more = f" and {len(changed) - 1} more" if changed[1:] else ""
            what = f"{first}{more} of the submodule {name} is changed there, and on no branch"
            words.append(f"{what}: a submodule is changed in its own repository")
    return words
