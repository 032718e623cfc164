"""The port of the verifier: what its adapter must keep (see `ashep.ports` for the others)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ashep.core.criteria import Criteria
from ashep.core.evidence import Verification


@dataclass(frozen=True, slots=True)
class VerifyRequest:
    """Check a commit."""

    repository: Path
    """Any work tree of the repository that holds both commits; it is only read."""
    commit: str
    """The candidate."""
    base: str | None
    """Where the checks' own scripts are taken from: the commit before any work. None: there is none."""
    criteria: Criteria


class Verifier(Protocol):
    """Carries checks out on a clean checkout of a commit. It writes nothing into the repository or its work trees.

    What a check says is a result: one that cannot be carried out has the status `error`. Errors: `AshepError` where no
    checkout can be made (no such commit, no room), with the reason. Everything is bound by the checks' own times;
    whatever ends the call, no process and no folder of it is left.
    """

    async def verify(self, request: VerifyRequest) -> Verification:
        """Carry the checks out, in order."""
        ...
