"""What is known of an issue's work beyond what its agents say: evidence, and how far its landing is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal

from ashep.core.facts.approvals import Signature
from ashep.core.facts.delivery import CheckResult, FileMap, Remark, Status, status_of, summary_of
from ashep.core.state.branches import SHARED

if TYPE_CHECKING:
    from ashep.core.policy.policies import Policy


@dataclass(frozen=True, slots=True)
class Rest:
    """Until when the tree of a closed issue stands (`ashep.core.delivery.workspace_retention`)."""

    due: datetime | None
    keep: timedelta | None
    tries: int = 0
    why: str = ""
    """Why it was kept when it was to go."""
    asked: int = 0
    """The number at which its time was over: it is being looked at. 0: it is not."""


@dataclass(frozen=True, slots=True)
class OwnTree:
    """The work tree of an issue's own, as far as it is known."""

    branch: str
    slot: int
    """A small number that no other issue has which is being worked on: for ports and other scarce things."""
    path: str = ""
    """Where it stands; empty until it was prepared."""
    base: str = ""
    """The commit that the branch began from."""
    head: str = ""
    """The commit that the branch had when it was last looked at."""
    tree: str = ""
    """The git tree hash of `head`, once a run's work was sealed."""
    flags: tuple[str, ...] = ()
    """What its changes since the base touched, when it was sealed last."""
    files: FileMap | None = None
    """The files that they touched; None: it is not known."""
    approved: str = ""
    """The head that a person approved last."""
    since: str = ""
    """The commit of the branch that its work must fit, when the two were last brought together; empty: they never were.
    What its branch took in of that is not the issue's own. It is not asked for again: an agent can move branches."""
    left: bool = False
    """What its last run left there could not be sealed: `head` lacks it."""
    rest: Rest | None = None
    """Its issue is closed, and it has its time."""
    onto: str | None = None
    """The branch that the user's checkout had when it was prepared: the work is to go there. None: it had none."""
    ground: str = ""
    """Where its present run only reads, if that is elsewhere."""

    @property
    def fits(self) -> str:
        """The commit that its work is compared with: since the two last were one, all is the issue's.

        It is one that the journal knows, and not the base branch as it stands: whoever may write to the repository,
        agents too, can move that to where nothing differs.
        """
        return self.since or self.base

    @property
    def is_empty(self) -> bool:
        """Whether the issue changed nothing in it, as far as its last seal knows."""
        return self.head in ("", self.base) if self.files is None else self.files == FileMap()


def is_shared(branch: str) -> bool:
    """Whether several issues may be worked on there, one after the other."""
    return branch.startswith(SHARED)


MOST_NAMED = 10
"""Checks or files that a reason names."""

MOST_PROOFS = 10
"""Verifications that are remembered of an issue, here and in its log; the oldest ones are dropped."""

UNCHANGED = "unchanged"
"""Stands among the names of checks that failed where a tree does not differ from its base."""


def failing(results: Iterable[CheckResult]) -> tuple[str, ...]:
    """Name the checks that did not pass; one that could not run proves nothing."""
    return tuple(result.check_id for result in results if result.fails)


def name_failing(results: Iterable[CheckResult]) -> str:
    """Name the checks that fail on the base, too, each with the likely cause."""
    named = [f"{result.check_id} {result.blame}" for result in results if result.on_base]
    more = [f"and {len(named) - MOST_NAMED} more"] if len(named) > MOST_NAMED else []
    return "; ".join([*named[:MOST_NAMED], *more])


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
    ignore: bool = False
    """Whether what fails on the base, too, counts for nothing."""

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
        excused = (*waived, *(self.blameless if self.ignore else ()))
        return tuple(name for name in (*unchanged, *self.failed) if name not in excused)

    @property
    def blameless(self) -> tuple[str, ...]:
        """Name the checks that fail on the base, too, so that no work is to blame."""
        return tuple(result.check_id for result in self.results if result.on_base)

    def blamed(self, waived: tuple[str, ...]) -> tuple[str, ...]:
        """Name what does not hold, no person let pass, and the work is to blame for."""
        return tuple(name for name in self.lacking(waived) if name not in self.blameless)


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
    time: datetime, branch: str, commit: str, tree: str, criteria: str, results: tuple[CheckResult, ...]
) -> Proof:
    """Sum up what checks found."""
    counted = summary_of(results)
    numbers = counted.passed, counted.failed, counted.skipped
    return Proof(time, status_of(results), branch, commit, tree, criteria, *numbers, failing(results))


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
    def is_over(self) -> bool:
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


def must_change(policy: Policy | None) -> bool:
    """Whether work that lands is to change something: as soon as the success of one phase is."""
    return policy is not None and any(phase.verify is not None for phase in policy.phases)


@dataclass(frozen=True)
class Work:
    """What an issue's work is made of, and how far it is on its way to the base."""

    base: str | None = None
    """HEAD before the first write run."""
    own: OwnTree | None = None
    criteria: Criteria | None = None
    """The issue's own checks; None: they were not read yet."""
    verifying: str = ""
    """The run whose success is to be verified before anything follows from it."""
    unproven: int = 0
    """How often work fell short in this visit."""
    waived: tuple[str, ...] = ()
    """Checks that a person let fail."""
    evidence: Evidence | None = None
    proofs: tuple[Proof, ...] = ()
    """How often its work was looked into, and what came of it: the last ones."""
    flaw: Flaw | None = None
    landing: Landing | None = None
    landed: tuple[str, str] | None = None
    """The branch on which its work landed last, and that branch's commit then."""
    signed: Signature | None = None
    """The signature of the last approval, where it has one."""
    landed_onto: str = ""
    """The commit that the branch had before; empty: ashep did not move it."""
    empty: bool = False
    """There was nothing to land there."""
    pull: Pull | None = None
    """Its last pull request."""
    commits: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing was changed: nothing landed, and nothing is on a branch of the issue's own."""
        return self.empty if self.landed is not None else self.own is not None and self.own.is_empty


NO_WORK = Work()
