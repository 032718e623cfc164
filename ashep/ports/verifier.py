"""Port of the verifier, and that of a check of the user's own type (see `ashep.ports.tracker` for the others)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from pydantic import JsonValue

from ashep.core.facts.delivery import CheckStatus, Verification, against
from ashep.core.policy.checks import Criteria, asks_elsewhere


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
    known: Verification | None = None
    """What was found before, in an earlier life too: on the same ground, the same tree and checks are not verified
    again."""
    strangers: frozenset[str] = frozenset()
    """Names of checks that stand in an issue's text: without a sandbox none of their programs runs, unless the user
    chose to have none."""
    afresh: bool = False
    """Carry the checks out whatever is known: what failed may hold now, because a person put this machine in order."""


class Verifier(Protocol):
    """Carries checks out on a clean checkout of a commit. It writes nothing into the repository or its work trees.

    What a check says is a result: one that cannot be carried out has the status `error`. Errors: `AshepError` where no
    checkout can be made (no such commit, no room), with the reason. Everything is bound by the checks' own times;
    whatever ends the call, no process and no folder of it is left.
    """

    async def verify(self, request: VerifyRequest) -> Verification:
        """Carry the checks out, in order."""
        ...


async def verify_against_base(verifier: Verifier, request: VerifyRequest, before: str | None = None) -> Verification:
    """Carry the checks out, and flag those that passed before the work already: they say nothing about it.

    `before`: the commit that they are compared with; by default the base. For all that is found of one issue give the
    one that its work began from: it is known then, and what lands on a base that moves costs one verification each.
    """
    found, before = await verifier.verify(request), before or request.base
    if before is None or all(one.status != "passed" for one in found.results):
        return found
    there = Criteria(checks=tuple(one for one in request.criteria.checks if not asks_elsewhere(one)))
    if not there.checks:  # what runs by itself answers the same, whatever was worked on
        return found
    base = replace(request, commit=before, criteria=there, known=None, afresh=False)
    return against(found, await verifier.verify(base))


# --- checks of the user's own -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Found:
    """What a check found."""

    status: CheckStatus
    message: str
    """One line: what was expected and what was found."""
    output: str = ""
    """What there is to read about it; it is capped and loses secrets before it is kept."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A program that a check ran."""

    code: int | None
    """Its exit code, the number of a signal below zero; None: it was ended, or could not be started."""
    output: str
    """What it printed on both streams, capped and without secrets."""
    why: str = ""
    """Why it was ended, or could not be started; empty: it ended by itself."""


class Ground(Protocol):
    """What a check of the user's own stands on."""

    @property
    def tree(self) -> Path:
        """The checkout of the candidate: a folder that is removed afterwards."""
        ...

    @property
    def commit(self) -> str:
        """The candidate."""
        ...

    async def run(self, argv: Sequence[str], timeout: timedelta) -> Ended:
        """Run a program in the checkout as those of other checks: in the sandbox, within limits, with their
        environment. Nothing that it started lives afterwards.
        """
        ...


class CheckType(Protocol):
    """A type of checks of the user's own, registered under `verification.types` (docs/extending.md)."""

    async def check(self, verify: Mapping[str, JsonValue], ground: Ground) -> Found:
        """Carry one check out. `verify`: what stands under that key in the check. An exception is the status `error`;
        so is more time than the check's `timeout`.
        """
        ...
