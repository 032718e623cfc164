"""Landing in memory, on the branches of `MemoryWorkspaces`."""

from ashep.errors import AshepError
from ashep.ports.landing import HEAD, Advanced, AlreadyLanded, Candidate, Conflict, Integrated, Refused
from ashep.simulation.memory.workspaces import MemoryWorkspaces


class MemoryLanding:
    """Lands on the base branch of `workspaces`; conflicts are files that both sides changed.

    `refuses` is what `advance` says instead of moving, as where a person has uncommitted changes; None: it moves.
    `edited` are files that a person has changed where the base is checked out.
    """

    def __init__(self, workspaces: MemoryWorkspaces, base_branch: str = "main") -> None:
        self.refuses: Refused | None = None
        self.edited = set[str]()
        self._workspaces, self._base_branch = workspaces, base_branch

    async def settle(self) -> None:
        """Nothing is ever half done here."""

    async def tip(self, base_branch: str) -> str | None:
        """Give the base's newest commit."""
        return self._workspaces.base if base_branch == self._base_branch else None

    async def landed(self, head: str, base_branch: str) -> bool:
        """Say whether the base holds all that `head` brings, or held it once."""
        base = await self.tip(base_branch)
        return base is not None and self.holds(base, head)

    def holds(self, base: str, head: str) -> bool:
        """Say whether a base holds all that `head` brings, or held it once."""
        held = self._workspaces.holds(base, head) or self._workspaces.claimed(_claim(head), base)
        return held or self._workspaces.brings_nothing(head, base)

    async def integrate(self, candidate: Candidate) -> Integrated | Conflict | AlreadyLanded:
        """Bring a candidate onto the newest base; rebasing is squashing here."""
        base, head = await self.tip(candidate.base_branch), candidate.head
        if base is None:
            raise AshepError(f"there is no branch {candidate.base_branch}")
        if self.holds(base, head):
            return AlreadyLanded(base)
        subject = f"{candidate.message.partition(chr(10))[0] or f'Land {candidate.branch}'} {_claim(head)}"
        made = self._workspaces.merge(head, base, subject, squash=candidate.method != "merge")
        if isinstance(made, str):
            return Integrated(base, made, self._workspaces.tree_of(made))
        sides = (
            (candidate.base_branch, self._workspaces.files(base)),
            (candidate.branch, self._workspaces.files(head)),
        )
        lines = [f"{candidate.branch} and {candidate.base_branch} are in conflict in {len(made)} files:"]
        lines += [f"{path}: {name} has {files.get(path)!r}" for path in made for name, files in sides]
        return Conflict(base, made, "\n".join(lines))

    async def advance(self, base_branch: str, old: str, new: str) -> Advanced | Refused:
        """Move the base."""
        now = await self.tip(base_branch)
        if now is None:
            return Refused("gone", f"there is no branch {base_branch}")
        if self._workspaces.holds(now, new):
            return Advanced(now)
        was, becomes = self._workspaces.files(old), self._workspaces.files(new)
        if mine := sorted(path for path in self.edited if was.get(path) != becomes.get(path)):
            return Refused("dirty", f"{base_branch} is checked out, and there are uncommitted changes: {mine[0]}")
        if now != old or not self._workspaces.holds(new, old):
            return Refused("moved", f"{base_branch} is at {now[:12]}, not at {old[:12]}, or is not held")
        if self.refuses is not None:
            return self.refuses
        self._workspaces.advance(old, new)
        return Advanced(new)

    async def forget(self, branch: str) -> None:
        """Nothing is kept here."""


def _claim(head: str) -> str:
    return f"[{HEAD}: {head}]"
