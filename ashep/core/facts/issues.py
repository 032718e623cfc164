"""Facts of an issue: claims, questions, answers, retries, parking, and its end."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ashep.core.facts import Decision, OfIssue, tracker
from ashep.core.facts.approvals import Signature


@dataclass(frozen=True, slots=True)
class IssueCancelled(OfIssue):
    """A person wants no more to be done for the issue, or for this run of it."""

    by: str
    run: str | None = None


# --- decisions ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IssueHeld(OfIssue, Decision):
    """The issue does not start, for a reason that changed. `code` is stable, `why` is for people."""

    code: str
    why: str
    of: str = ""
    """What stands in the way, where a hold of this code may be of several: a pause's key, a provider, whose cap."""


@dataclass(frozen=True, slots=True)
class IssueTaken(OfIssue, Decision):
    """A ready issue was chosen to be worked on under a policy."""

    policy: str
    why: str


@dataclass(frozen=True, slots=True)
class IssueAdopted(OfIssue, Decision):
    """An issue that is ours in the tracker, and of which this journal knows nothing, is gone on with.

    How far it had got stands in its stamp: this happens where a state folder was lost.
    """

    policy: str
    phase: str
    kind: Literal["work", "ask", "park"]
    visit: int
    attempt: int
    cycle_runs: int
    why: str
    orphan: str | None = None
    """The key of the old run's session, which is stopped before a new run starts."""
    question: str = ""
    due: datetime | None = None
    human_phase: bool = False
    branch: str | None = None
    """The branch on which it was worked on, where issues have work trees of their own."""
    onto: str | None = None
    """The branch that the user's checkout has now."""


@dataclass(frozen=True, slots=True)
class TakeoverWanted(OfIssue, Decision):
    """The claim of a daemon that died is to be taken back, so that the issue is free again."""

    holder: str
    why: str


@dataclass(frozen=True, slots=True)
class CycleBegan(OfIssue, Decision):
    """Limits and visits count afresh."""

    cycle: int
    why: str
    keeps: bool = False
    """What phases ended with goes on to count for `requires`: a person did not want changes."""


@dataclass(frozen=True, slots=True)
class PhaseEntered(OfIssue, Decision):
    """The issue is in this phase now: an agent phase wants a run."""

    phase: str
    visit: int
    why: str


@dataclass(frozen=True, slots=True)
class RetryScheduled(OfIssue, Decision):
    """Another attempt of the phase is due."""

    phase: str
    failures: int
    due: datetime
    why: str
    code: str = "retry"
    """What it waits for, where that is no attempt's delay."""
    disbelieved: str = ""
    """The run that reported a success which does not hold."""


About = Literal["phase", "proof", "change", "base"]
"""phase: what a human phase, or an agent, asks · proof: whether work is let pass whose checks failed · change: whether
work may land that touches what a person is always asked about · base: whether work may land although checks fail, which
fail on the base, too."""


@dataclass(frozen=True, slots=True)
class PersonAsked(OfIssue, Decision):
    """A question to a person, of a human phase or of the agent phase that asked."""

    phase: str
    question: str
    due: datetime
    human_phase: bool
    why: str
    remind: datetime | None = None
    """When people are to be reminded of it."""
    about: About = "phase"
    disbelieved: str = ""
    """The run that reported a success which does not hold."""


@dataclass(frozen=True, slots=True)
class PersonReminded(OfIssue, Decision):
    """The question is still open, and people are reminded of it."""

    phase: str
    question: str
    due: datetime
    """When it is given up."""
    remind: datetime | None
    """When they are to be reminded again, if that is before."""
    why: str


@dataclass(frozen=True, slots=True)
class PersonAnswered(OfIssue, Decision):
    """A person's label answered the question."""

    answer: Literal["approved", "changes_requested"]
    actor: str
    why: str
    signature: Signature | None = None


@dataclass(frozen=True, slots=True)
class AnswerRefused(OfIssue, Decision):
    """An answer label counts for nothing: ashep, an agent or nobody known has set it. It is taken off."""

    labels: tuple[str, ...]
    why: str
    judged: tuple[str, ...] = ()
    """The label events that were looked at: a later answer is not judged by them, whatever the clock was set to."""


@dataclass(frozen=True, slots=True)
class IssueParked(OfIssue, Decision):
    """Shepherd gave up on the issue, with a reason; a person takes `ashep:parked` off to start afresh."""

    code: str
    why: str


@dataclass(frozen=True, slots=True)
class IssueGivenBack(OfIssue, Decision):
    """The issue is put back to `open` without our name (guarded)."""

    code: str
    why: str
    not_before: datetime | None = None
    """It is not taken again before this."""


@dataclass(frozen=True, slots=True)
class IssueLeft(OfIssue, Decision):
    """The issue is a person's now; nothing is written to it."""

    code: str
    why: str
    not_before: datetime | None = None
    """It is not taken again before this."""


@dataclass(frozen=True, slots=True)
class IssueFinished(OfIssue, Decision):
    """The policy leads to `close`; `why` is the evidence."""

    why: str
    onto: str = ""
    """The branch on which its work is to land first; empty: on none."""
    verify: bool = False
    """Whether something must be checked first."""
    into: str = ""
    """The branch into which people are to merge its pull request first; empty: there is to be none."""


@dataclass(frozen=True, slots=True)
class IssueClosed(OfIssue, Decision):
    """The issue is closed in the tracker: by us with evidence, or by somebody else."""

    by: Literal["shepherd", "somebody"]
    why: str


@dataclass(frozen=True, slots=True)
class CommentWanted(OfIssue, Decision):
    """A comment is to be posted; `name` is unique within the issue."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class CreationWanted(OfIssue, Decision):
    """An issue is to be created under this id."""

    id: str
    new: tracker.NewIssue
    depth: int
    parked: bool


Passed = tuple[tuple[str, str], ...]
"""Phases, each with the verdict, the result or the person's answer that it last ended with."""
