"""Port of the verifier, and that of a check of the user's own type (see `ashep.ports.tracker` for the others)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from pydantic import JsonValue

from ashep.core.facts.delivery import Cause, CheckResult, CheckStatus, Verification, failed_before, passed_before
from ashep.core.policy.checks import Check, Criteria, asks_elsewhere, passes_without_work


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
    of_base: bool = False
    """The commit is from before any work: what could not be carried out there is remembered, too."""

    def before_work(self, commit: str, checks: Iterable[Check]) -> "VerifyRequest":
        """Make the request for these checks on a commit from before the work."""
        ids = frozenset(check.id for check in checks)
        criteria = Criteria(checks=tuple(check for check in self.criteria.checks if check.id in ids))
        return replace(self, commit=commit, criteria=criteria, known=None, afresh=False, of_base=True)

    def is_excusable(self, result: CheckResult) -> bool:
        """Whether the base may be to blame for a failure.

        The machine likely is, or a project's own check failed that is to pass without any work. One that stands in an
        issue's text fails there as a rule: that is what the work is for.
        """
        check = next(check for check in self.criteria.checks if check.id == result.check_id)
        own = check.id not in self.strangers and passes_without_work(check)
        return result.fails and (bool(result.cause) or own)


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
    """Carry the checks out, and flag those that came to the same without the work.

    What passed before the work already says nothing about it, and what fails on the base, too, is not its fault.

    `before`: the commit that passing ones are compared with; by default the base. For all that is found of one issue
    give the one that its work began from: it is known then, and what lands on a base that moves costs one verification
    each. Failing ones are compared with the base, on which others may have landed.
    """
    found, before = await verifier.verify(request), before or request.base
    if before is None:
        return found
    # what runs by itself answers the same, whatever was worked on, or does not answer
    checks = [check for check in request.criteria.checks if not asks_elsewhere(check)]
    away = {check.id for check in request.criteria.checks} - {check.id for check in checks}
    silent = (replace(result, on_base=result.check_id in away and result.status == "error") for result in found.results)
    found = replace(found, results=tuple(silent))
    results = {result.check_id: result for result in found.results}
    for of_issue in (False, True):  # apart: the project's are known of the base, whatever an issue adds
        part = [check for check in checks if (check.id in request.strangers) is of_issue]
        if any(results[check.id].status == "passed" for check in part):
            found = passed_before(found, await verifier.verify(request.before_work(before, part)))
        if names := {check.id for check in part if request.is_excusable(results[check.id])}:
            base = await verifier.verify(request.before_work(request.base or before, part))
            found = failed_before(found, base, names)
    return found


# --- checks of the user's own -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Found:
    """What a check found."""

    status: CheckStatus
    message: str
    """One line: what was expected and what was found."""
    output: str = ""
    """What there is to read about it; it is capped and loses secrets before it is kept."""
    cause: Cause = ""
    """Why it likely failed, where the machine is to blame; empty: that is read from its output."""


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
