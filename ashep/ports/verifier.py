"""Port of the verifier, and that of a check of the user's own type (see `ashep.ports.tracker` for the others)."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from pydantic import JsonValue

from ashep.core.facts.delivery import Cause, CheckStatus, Verification, failed_before, passed_before
from ashep.core.policy.checks import Criteria, asks_elsewhere, passes_without_work


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
    """The commit is from before any work: what could not run there is remembered, too."""

    def before_work(self, commit: str, ids: Container[str]) -> "VerifyRequest":
        """Make the request for these checks on a commit from before the work."""
        criteria = Criteria(checks=tuple(check for check in self.criteria.checks if check.id in ids))
        return replace(self, commit=commit, criteria=criteria, known=None, afresh=False, of_base=True)

    def excusable(self, found: Verification) -> set[str]:
        """Name the failures for which the base may be to blame.

        The machine likely is, or a project's own check failed that is to pass without any work. One that stands in an
        issue's text fails there as a rule: that is what the work is for.
        """
        own = {check.id for check in self.criteria.checks if passes_without_work(check)} - self.strangers
        failures = [result for result in found.results if result.fails]
        return {result.check_id for result in failures if result.cause or result.check_id in own}


class Verifier(Protocol):
    """Carries checks out on a clean checkout of a commit. It writes nothing into the repository or its work trees.

    What a check says is a result: one that cannot be executed has the status `error`. Errors: `AshepError` where no
    checkout can be made (no such commit, no room), with the reason. Everything is bound by the checks' own times;
    whatever ends the call, no process and no folder of it is left.
    """

    async def verify(self, request: VerifyRequest) -> Verification:
        """Carry the checks out, in order."""
        ...


async def verify_before_work(verifier: Verifier, request: VerifyRequest) -> Verification:
    """Run the checks on a commit from before any work, and flag the failures that no work is to blame for."""
    ids = {check.id for check in request.criteria.checks if not asks_elsewhere(check)}
    of_base = request.before_work(request.commit, ids)
    found = await verifier.verify(replace(of_base, known=request.known, afresh=request.afresh))
    return failed_before(found, found, request.excusable(found))


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
    away = {check.id for check in request.criteria.checks if asks_elsewhere(check)}
    silent = {result.check_id for result in found.results if result.status == "error"} & away
    ids, excusable = {result.check_id for result in found.results} - away, request.excusable(found)
    found = failed_before(found, found, silent)
    passed = {result.check_id for result in found.results if result.status == "passed"}
    for part in (ids - request.strangers, ids & request.strangers):  # a project's are known, whatever an issue adds
        if passed & part:
            found = passed_before(found, await verifier.verify(request.before_work(before, part)))
        if excusable & part:
            base = await verifier.verify(request.before_work(request.base or before, part))
            found = failed_before(found, base, excusable)
    return found


# --- checks of the user's own -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """What a check found."""

    status: CheckStatus
    message: str
    """One line: what was expected and what was found."""
    output: str = ""
    """What there is to read about it; it is capped and loses secrets before it is kept."""
    cause: Cause = ""
    """Why it likely failed, where the machine is to blame; empty: that is read from its output."""


Found = CheckFinding
"""The name of `CheckFinding` for check types that were written before it."""


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

    async def check(self, verify: Mapping[str, JsonValue], ground: Ground) -> CheckFinding:
        """Carry one check out. `verify`: what stands under that key in the check. An exception is the status `error`;
        so is more time than the check's `timeout`.
        """
        ...
