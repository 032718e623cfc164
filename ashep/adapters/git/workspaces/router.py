"""Linked trees and places side by side: `ashep.ports.workspaces.Workspaces` over both, by branch."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from pathlib import Path

from ashep.adapters.git.workspaces.clones import Clones
from ashep.adapters.git.workspaces.linked import Worktrees
from ashep.core.facts.delivery import Amendment, Ground
from ashep.ports.workspaces import Amended, Changes, Landed, Prepared, Removed, SealedBranch, WorkspaceInfo


class GitWorkspaces:
    """What stands for a branch goes on where it is, whatever is made for new ones, which is what `anew` makes."""

    def __init__(self, linked: Worktrees, places: Clones, *, anew: Worktrees) -> None:
        self._linked, self._places, self.anew = linked, places, anew

    async def _of(self, branch: str) -> Worktrees:
        for one in (self._linked, self._places):
            if await one.stands(branch):
                return one
        return self.anew

    async def prepare(self, branch: str, base: str | None, slot: int, ground: Ground = "own") -> Prepared:
        return await (await self._of(branch)).prepare(branch, base, slot, ground)

    async def seal(self, branch: str, run: str, message: str) -> SealedBranch:
        return await (await self._of(branch)).seal(branch, run, message)

    async def amend(self, branch: str, run: str, head: str, wanted: Amendment) -> Amended:
        return await (await self._of(branch)).amend(branch, run, head, wanted)

    async def changes(self, branch: str, base: str) -> Changes:
        return await (await self._of(branch)).changes(branch, base)

    async def copy(self, branch: str, begun: str, folder: Path) -> str:
        """Make a repository with what a place has committed (`Clones.copy`)."""
        return await self._places.copy(branch, begun, folder)

    async def restore(self, branch: str, head: str) -> tuple[str, ...]:
        return await (await self._of(branch)).restore(branch, head)

    async def knows(self, branch: str) -> bool:
        """Say whether there is such a branch, or a tree of it."""
        return await (await self._of(branch)).knows(branch)

    async def remove(
        self,
        branch: str,
        *,
        forget: bool = False,
        drop_ignored: bool = False,
        unless: Callable[[], Awaitable[None]] | None = None,
    ) -> Removed:
        """Save the tree and take it away. `unless`: raises where it must not be; asked while the branch is held."""
        return await (await self._of(branch)).remove(branch, forget=forget, drop_ignored=drop_ignored, unless=unless)

    async def retire(self, landed: Landed, quiet: timedelta) -> Removed:
        return await (await self._of(landed.branch)).retire(landed, quiet)

    async def list(self, landed: Mapping[str, str] | None = None) -> tuple[WorkspaceInfo, ...]:
        found = (*await self._linked.list(landed), *await self._places.list(landed))
        return tuple(sorted(found, key=lambda standing: standing.branch))
