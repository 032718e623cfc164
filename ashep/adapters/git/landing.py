"""Landing in a git repository on this machine."""

from pathlib import Path

from ashep.adapters.git.advance import Advance
from ashep.adapters.git.integrate import Integration
from ashep.adapters.git.objects import tip
from ashep.adapters.git.program import Git
from ashep.ports.landing import Advanced, AlreadyLanded, Candidate, Conflict, Integrated, Refused
from ashep.redaction import Redaction


class GitLanding:
    """Lands in the repository that holds the folder `project`; each call of git is bound by `timeout` seconds.

    No hook of the repository runs: agents can write them, and one that fails or hangs would stand between a branch and
    its files. Ways of merging that `.gitattributes` of the base and the person's settings name are kept.
    `protected` are patterns of branches that only people move.
    """

    def __init__(
        self,
        project: Path,
        timeout: float = 60.0,
        redaction: Redaction | None = None,
        protected: tuple[str, ...] = (),
    ) -> None:
        self._git = Git(project, timeout, redaction or Redaction())
        self._integration, self._advance = Integration(self._git), Advance(self._git, protected)

    async def settle(self) -> None:
        """Undo what earlier lives left half done."""
        await self._advance.settle()

    async def tip(self, base_branch: str) -> str | None:
        """Give a branch's newest commit."""
        return await tip(self._git, base_branch)

    async def landed(self, head: str, base_branch: str) -> bool:
        """Say whether the base holds all that `head` brings, or held it once."""
        return await self._integration.landed(head, base_branch)

    async def integrate(self, candidate: Candidate) -> Integrated | Conflict | AlreadyLanded:
        """Bring a candidate onto the newest base."""
        return await self._integration.integrate(candidate)

    async def advance(self, base_branch: str, old: str, new: str) -> Advanced | Refused:
        """Move the base."""
        return await self._advance.advance(base_branch, old, new)

    async def forget(self, branch: str) -> None:
        """Let go of what was integrated for a branch."""
        await self._integration.forget(branch)
