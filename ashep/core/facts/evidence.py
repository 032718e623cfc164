"""What checks found, and of what: evidence is bound to the hash of a git tree, so that it holds for exactly that."""

from dataclasses import dataclass, replace
from typing import Literal

CheckStatus = Literal["passed", "failed", "skipped", "error"]
"""skipped: it is a person's · error: it could not be carried out, which proves nothing."""

Status = Literal["passing", "failing", "blocked"]
"""passing: something was checked, and nothing failed · failing: a check failed · blocked: one could not be carried out,
or nothing was checked at all."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check found."""

    check_id: str
    status: CheckStatus
    message: str
    """One line: what was expected and what was found."""
    duration_ms: int
    output: str = ""
    """The blob of what it printed, capped and without secrets; empty where it printed nothing."""
    proves_nothing: bool = False
    """It passed on the base already, before any work."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Results, counted; an error counts as failed."""

    total: int
    passed: int
    failed: int
    skipped: int


@dataclass(frozen=True, slots=True)
class Verification:
    """What the checks of one list found in one tree."""

    commit: str
    tree: str
    """The git tree's hash: what was verified, whatever commit brings it."""
    checks: str
    """The hash of the list of checks and of all that their answer depends on beside the tree: the scripts of the base,
    the sandbox, the network, the environment, the classes of the user's own. With the same tree and hash nothing is
    verified twice."""
    results: tuple[CheckResult, ...]
    isolated: bool | None
    """Whether their programs ran in a sandbox; None: none of them ran a program."""


def against(found: Verification, base: Verification) -> Verification:
    """Flag the checks that passed on the base already: they say nothing about the work."""
    green = {result.check_id for result in base.results if result.status == "passed"}
    results = (replace(one, proves_nothing=one.status == "passed" and one.check_id in green) for one in found.results)
    return replace(found, results=tuple(results))


def status_of(results: tuple[CheckResult, ...]) -> Status:
    """Say what results come to."""
    found = {result.status for result in results}
    if "failed" in found:
        return "failing"
    return "passing" if "passed" in found and "error" not in found else "blocked"


def green_before(results: tuple[CheckResult, ...]) -> int:
    """Count those that passed, and did so before any work: they prove nothing about it."""
    return sum(one.status == "passed" and one.proves_nothing for one in results)


def summary_of(results: tuple[CheckResult, ...]) -> Summary:
    """Count results."""
    passed, skipped = (sum(one.status == status for one in results) for status in ("passed", "skipped"))
    return Summary(len(results), passed, len(results) - passed - skipped, skipped)
