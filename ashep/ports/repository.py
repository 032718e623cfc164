"""Port of the repository that issues have trees of: what keeps all of them from one, and what its base follows."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Upstream:
    """A branch next to the branch of a remote that it follows, as that was fetched last."""

    name: str
    """As `origin/main`."""
    ahead: int
    behind: int
    fetched: datetime | None = None
    """When it was fetched; None: nobody knows."""


class Checkup(Protocol):
    """Looks at the repository. Errors: `AshepError` where git cannot say it now: it timed out, or is locked."""

    error: str
    """Why the last fetch failed; empty: it did not."""

    async def find_fault(self, *, thorough: bool = False) -> str:
        """Say what keeps every issue from a tree, and what to do; empty: nothing that is known.

        `thorough`: a tree is made and taken away, by which everything is found.
        """
        ...

    async def read_upstream(self, base: str) -> Upstream | None:
        """Compare a branch with the one that it follows; None: it follows none, or there is no such branch."""
        ...

    async def fetch(self, base: str) -> str | None:
        """Fetch what a branch follows, which moves no branch of the user's, and give its commit as it is known now.

        What fails is kept in `error`. None: it follows none.
        """
        ...

    async def has_fetched(self, base: str, commit: str) -> bool:
        """Whether what a branch follows, as it was fetched last, holds a commit."""
        ...
