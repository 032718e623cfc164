"""What is known of an issue's work beyond what its agents say: evidence, and how far its landing is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from ashep.core.facts.evidence import CheckResult, Status, Verification, status_of, summary_of
from ashep.core.facts.pull_events import Remark

if TYPE_CHECKING:
    from ashep.core.policy.settings import Phase, Policy
    from ashep.core.state.flow import Flow

MOST_PROOFS = 10
"""Verifications that are remembered of an issue, here and in its log; the oldest ones are dropped."""

UNCHANGED = "unchanged"
"""Stands among the names of checks that failed where a tree does not differ from its base."""


def failing(results: Iterable[CheckResult]) -> tuple[str, ...]:
    """Name the checks that did not pass; one that could not be carried out proves nothing."""
    return tuple(one.check_id for one in results if one.status in ("failed", "error"))


@dataclass(frozen=True, slots=True)
class Criteria:
    """The checks of the issue's own, as they were adopted when it was taken."""

    hash: str
    blob: str
    manual: tuple[str, ...] = ()
    seen: str = ""
    """The hash of others that the issue was last seen to have."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was last found about the issue's work."""

    commit: str
    tree: str
    results: tuple[CheckResult, ...]
    changed: bool
    isolated: bool | None
    log: str
    """The blob of what failed."""
    run: str = ""
    checks: str = ""
    """The hash of what was checked."""
    must_change: bool = True
    """Whether it falls short where it changes nothing."""

    @property
    def status(self) -> Status | Literal["unverified"]:
        """What it comes to."""
        return status_of(self.results) if self.results else "unverified"

    @property
    def failed(self) -> tuple[str, ...]:
        """The checks that did not pass."""
        return failing(self.results)

    def lacking(self, waived: tuple[str, ...]) -> tuple[str, ...]:
        """What does not hold, and no person let pass."""
        unchanged = () if self.changed or not self.must_change else (UNCHANGED,)
        return tuple(name for name in (*unchanged, *self.failed) if name not in waived)


@dataclass(frozen=True, slots=True)
class Proof:
    """That work was looked into, and what came of it, in short."""

    at: datetime
    status: Status
    branch: str
    commit: str
    tree: str
    criteria: str
    """The hash of the issue's own checks."""
    passed: int
    failed: int
    skipped: int
    failures: tuple[str, ...]


def proof_of(
    at: datetime, branch: str, commit: str, tree: str, criteria: str, results: tuple[CheckResult, ...]
) -> Proof:
    """Sum up what checks found."""
    counted = summary_of(results)
    numbers = counted.passed, counted.failed, counted.skipped
    return Proof(at, status_of(results), branch, commit, tree, criteria, *numbers, failing(results))


@dataclass(frozen=True, slots=True)
class Flaw:
    """What ashep found wrong about the issue's work: input for its next write run."""

    kind: Literal["checks", "conflict", "ci", "review", "names"]
    why: str
    log: str
    """The blob of the whole of it."""
    onto: str = ""
    """The branch that its work must fit."""


@dataclass(frozen=True, slots=True)
class Landing:
    """How far the work of a finished issue is on its way."""

    seq: int
    """The decision to finish: names its effects."""
    onto: str
    """The branch that it is to land on; empty: on none."""
    verify: bool
    """Whether something must be checked first."""
    round: int = 0
    """How often it was brought onto a base."""
    base: str = ""
    commit: str = ""
    """The commit that is to be the base's next one, or the branch's where it lands nowhere; empty: not made yet."""
    verified: bool = False
    landed: bool = False
    refused: int = 0
    """How often in a row the base was not moved."""
    failed: int = 0
    """How often in a row because git failed."""
    due: datetime | None = None
    """Before that nothing is tried again."""
    into: str = ""
    """The branch that a pull request asks to be merged into; empty: none does."""
    asked: bool = False
    """That pull request stands, with this very work."""

    @property
    def over(self) -> bool:
        """Whether the issue may be closed."""
        return (self.landed or not (self.onto or self.into)) and (self.verified or not self.verify)


@dataclass(frozen=True, slots=True)
class Pull:
    """The issue's last pull request, and what is known of it."""

    number: int
    url: str
    name: str
    """By which it is found again."""
    base: str
    head: str
    """What was last pushed."""
    seq: int
    """When that was: reads that began earlier are stale."""
    heads: tuple[str, ...]
    """All that was pushed to its branch; anything else there is a person's."""
    heard: frozenset[str] = frozenset()
    """Ids of remarks that were made before the last push."""
    state: Literal["open", "merged", "closed", "gone"] = "open"
    seen: str = ""
    """The newest commit there."""
    ci: Literal["none", "pending", "passing", "failing"] = "none"
    failing: tuple[str, ...] = ()
    remarks: tuple[Remark, ...] = ()
    """What was said since."""

    @property
    def theirs(self) -> bool:
        """Whether its newest commit is none of ours."""
        return bool(self.seen) and self.seen not in self.heads


def about_to_land(flow: Flow) -> str:
    """Give the commit that is on its way, or done where it lands nowhere; empty: none is, or it was not made yet."""
    if flow.landing is None:
        return ""
    return flow.landing.commit if flow.landing.onto else flow.own.head if flow.own is not None else ""


def found_before(flow: Flow) -> tuple[Verification | None, bool]:
    """Give what is known of the work already, and whether even that is to be found afresh: a person wants it again."""
    known = flow.evidence
    if known is None or not known.checks:
        return None, flow.cycle > 1
    return Verification(known.commit, known.tree, known.checks, known.results, known.isolated), False


def claims(phase: Phase) -> tuple[str, ...]:
    """What an agent ends with who says that the work holds: `success`, or the verdicts that `must_pass` names."""
    return tuple(word for word in phase.verdicts if word in phase.must_pass) if phase.verdicts else ("success",)


def is_looked_into(phase: Phase) -> bool:
    """Whether that is not believed before ashep itself has looked."""
    return bool(claims(phase)) and bool(phase.verify or phase.checks or phase.when_flags)


def is_proven(phase: Phase, flow: Flow, said: str | None) -> bool:
    """Whether what the agent of this phase ended with is not believed before it was looked into."""
    in_own_tree = flow.run is not None and flow.run.branch is not None
    return in_own_tree and is_looked_into(phase) and said in claims(phase)


def must_change(policy: Policy | None) -> bool:
    """Whether work that lands is to change something: as soon as the success of one phase is."""
    return policy is not None and any(phase.verify is not None for phase in policy.phases)


def is_checked(policy: Policy | None, flow: Flow) -> bool:
    """Whether what lands must be checked: the policy says so, or the issue has checks, or that is not known yet."""
    declared = policy is not None and any(phase.verify or phase.checks for phase in policy.phases)
    return declared or flow.criteria is None or bool(flow.criteria.hash)
