"""The port of the work tree: what its adapter must keep (see `ashep.ports` for the others)."""

from dataclasses import dataclass, field
from typing import Protocol

from ashep.core.model import Tree


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of an issue."""

    sha: str
    subject: str


@dataclass(frozen=True, slots=True)
class Changes:
    """What an issue's runs changed."""

    commits: tuple[Commit, ...] = ()
    stat: str = ""
    """`git diff --stat` of them, capped."""
    left_over: tuple[str, ...] = field(default=())
    """Paths that its runs left changed and uncommitted."""
    diff: str = ""
    """The patches of its commits and of what was left over, capped: a reader of the tree has no shell to ask git."""


class WorkTree(Protocol):
    """The user's work tree; only read, never reset, stashed or committed to."""

    async def read(self) -> Tree:
        """HEAD and the dirty paths now; `present=False` outside a repository."""
        ...

    async def changes(
        self, base: str | None, issue: str, commits: tuple[str, ...], left_over: tuple[str, ...]
    ) -> Changes:
        """The commits after `base` whose trailer `Ashep-Run` names this issue, and `commits` themselves, with their
        patches; of the paths `left_over` those that are still changed and uncommitted, with theirs.
        """
        ...

    async def between(self, before: str | None, after: str | None) -> tuple[str, ...]:
        """Commit ids after `before` up to `after`, oldest first; empty where they are equal or unknown."""
        ...
