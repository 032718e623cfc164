"""Finds the work trees in which a branch is checked out, and what stands in the way of moving it there."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from ashep.adapters.git.program import Git

_UNDER_WAY = {
    "MERGE_HEAD": "a merge is",
    "CHERRY_PICK_HEAD": "a cherry-pick is",
    "REVERT_HEAD": "a revert is",
    "sequencer": "several cherry-picks or reverts are",
    "rebase-merge": "a rebase is",
    "rebase-apply": "a rebase is",
}
"""What git leaves in a work tree's own folder while something is half done."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A work tree."""

    top: Path
    folder: Path
    """Git's own folder for it: its index, HEAD and what is half done there."""
    away: bool = False
    """It is locked and not there: on a disk that comes back, say."""
    unknown: bool = False
    """Nothing tells where its files are; `top` is git's own folder then."""


async def checkouts(git: Git, branch: str) -> list[Checkout]:
    """List the work trees that have the branch checked out; those that were deleted don't count."""
    printed = (await git.bare("worktree", "list", "--porcelain", "-z")).stdout
    common = await git.common()
    found: list[Checkout] = []
    for number, entry in enumerate(printed.decode(errors="surrogateescape").split("\0\0")):
        words = {key: rest for key, _, rest in (line.partition(" ") for line in entry.strip("\0").split("\0"))}
        if words.get("branch") != f"refs/heads/{branch}" or "bare" in words:
            continue
        top = Path(words["worktree"])
        if number == 0 and (main := await git.main()) != common.parent:
            found.append(Checkout(main or common, common, unknown=main is None))
        elif (folder := await anyio.to_thread.run_sync(_folder, top)) is not None:
            found.append(Checkout(top, folder))
        elif "locked" in words:
            found.append(Checkout(top, common, away=True))
    return found


async def rebased_in(git: Git, branch: str) -> str | None:
    """Say where the branch is being rebased: its HEAD is detached meanwhile, and it comes back."""
    common = await git.common()

    def look() -> str | None:
        for folder in (common, *_folders(common / "worktrees")):
            for name in ("rebase-merge/head-name", "rebase-apply/head-name"):
                try:
                    if (folder / name).read_text(errors="replace").strip() == f"refs/heads/{branch}":
                        return str(folder.parent if folder == common else folder)
                except OSError:
                    continue
        return None

    return await anyio.to_thread.run_sync(look)


def _folder(top: Path) -> Path | None:
    """Find git's own folder of a work tree; None where the tree is not there."""
    place = top / ".git"
    try:
        if place.is_dir():
            return place
        return (top / place.read_text().removeprefix("gitdir:").strip()).resolve()
    except (OSError, UnicodeDecodeError):
        return None


def _folders(place: Path) -> Iterator[Path]:
    try:
        yield from sorted(place.iterdir())
    except OSError:
        return


async def half_done(checkout: Checkout) -> str | None:
    """Say what somebody has under way in a work tree, if anything."""
    for name, what in _UNDER_WAY.items():
        if await anyio.Path(checkout.folder, name).exists():
            return f"{what} under way there"
    return None
