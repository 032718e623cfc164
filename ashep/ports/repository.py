"""Port of the repository that issues have trees of: what keeps all of them from one, and what its base follows."""

from collections.abc import Sequence
from typing import Protocol

from ashep.core.facts.delivery import RepositorySeen


class Checkup(Protocol):
    """Looks at the repository. Errors: `AshepError` where git cannot answer now: it timed out, or is locked."""

    async def look(self, base: str, merges: Sequence[str] = (), *, thorough: bool = False) -> RepositorySeen:
        """Look for what keeps every issue from a tree, and compare a branch with the one that it follows.

        `merges`: commits that the latter may hold. `thorough`: a tree is made and removed, by which every fault shows.
        """
        ...

    async def fetch(self, base: str) -> str | None:
        """Fetch what a branch follows and return its commit as it is known now. No branch of the user's moves.

        The next look has the error of a fetch that failed. None: the branch follows none.
        """
        ...
