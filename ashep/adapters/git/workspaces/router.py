"""Linked trees and places side by side: `ashep.ports.workspaces.Workspaces` over both, by branch."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from ashep.adapters.git.workspaces.clones import Clones
from ashep.adapters.git.workspaces.linked import Worktrees
from ashep.ports.forwarding import forward
from ashep.ports.workspaces import Landed, Removed, WorkspaceInfo

_Answer = TypeVar("_Answer")


class GitWorkspaces:
    """What stands for a branch goes on where it is, whatever is made for new ones, which is what `anew` makes."""

    def __init__(self, linked: Worktrees, places: Clones, *, anew: Worktrees) -> None:
        self._linked, self._places, self.anew = linked, places, anew

    async def route(self, branch: str, call: Callable[[Worktrees, str], Awaitable[_Answer]]) -> _Answer:
        """Call whichever of the two has the branch."""
        for one in (self._linked, self._places):
            if await one.stands(branch):
                return await call(one, branch)
        return await call(self.anew, branch)

    prepare, seal, amend = forward(Worktrees.prepare), forward(Worktrees.seal), forward(Worktrees.amend)
    changes, restore, knows = forward(Worktrees.changes), forward(Worktrees.restore), forward(Worktrees.knows)
    remove = forward(Worktrees.remove)

    async def copy(self, branch: str, begun: str, folder: Path) -> str:
        """Make a repository with what a place has committed (`Clones.copy`)."""
        return await self._places.copy(branch, begun, folder)

    async def retire(self, landed: Landed, quiet: timedelta) -> Removed:
        return await self.route(landed.branch, lambda tree, _: tree.retire(landed, quiet))

    async def list(self, landed: Mapping[str, str] | None = None) -> tuple[WorkspaceInfo, ...]:
        found = (*await self._linked.list(landed), *await self._places.list(landed))
        return tuple(sorted(found, key=lambda standing: standing.branch))
