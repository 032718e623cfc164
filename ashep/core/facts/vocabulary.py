"""Facts: what happened, in the past tense, as the journal keeps it. A decision is a fact too, with its reason in `why`.

Facts are plain frozen dataclasses; their JSON is made in `ashep.core.facts.records`. A field that is added later needs
a default, so that old journals fold for ever (tests/golden/).
"""

from dataclasses import dataclass
from typing import Literal, get_args

from ashep.core.facts import Answer, Decision, OfIssue, OfRun, delivery, issues, resources, runs, sources, tracker


@dataclass(frozen=True, slots=True)
class TreeLeft(OfRun, Decision):
    """What a run left could not be sealed, or its tree not be read: it stays as it is, and nobody tries any more."""

    why: str


@dataclass(frozen=True, slots=True)
class ReadRefused(OfRun):
    """The agent server refuses to show something of a run: what its sessions ask, or its turn. Told once of each, and
    of a turn again where a verdict waits for a read.
    """

    what: Literal["requests", "turn"]
    why: str
    as_of: int
    away: bool = False
    """The session's own server did not answer."""


@dataclass(frozen=True, slots=True)
class ChangeDoubted(OfIssue, Decision):
    """The issue was changed in a way that would move it: whether a person did it is to be looked up first."""

    changes: tuple[tracker.Difference, ...]
    """None: what was doubted is as it was again."""


@dataclass(frozen=True, slots=True)
class ChangeJudged(OfIssue, Decision):
    """Who made the changes that were doubted: a person's count, an agent's do not."""

    counts: tuple[tracker.Difference, ...]
    refused: tuple[tracker.Difference, ...]
    why: str
    judged: tuple[str, ...] = ()
    """The records of refused changes: a later one of a person's is not judged by them."""
    undo: bool = True
    """What is refused is put back; False: a person's change moves the issue on, which settles it."""


@dataclass(frozen=True, slots=True)
class AuthorsRead(Answer):
    """Who made the changes that were asked about, the newest first."""

    changes: tuple[tracker.Change, ...]


Fact = (
    tracker.TrackerSeen | tracker.TrackerLost | tracker.ChangeHinted | tracker.ReadySeen | tracker.ReadyChanged
    | tracker.IssueSeen | tracker.IssueGone | tracker.LeaseLost | tracker.LeaseExpired | tracker.IssueReclaimed
    | tracker.EffectFailed | tracker.IssueClaimed | tracker.ClaimRefused | tracker.IssueWritten | tracker.GuardRefused
    | tracker.WriteRefused | tracker.CommentPosted | tracker.IssueCreated | tracker.LabelsTakenOff
    | tracker.AnswerRead
    | issues.IssueCancelled | issues.IssueAdopted | issues.TakeoverWanted | issues.IssueHeld | issues.IssueTaken
    | issues.CycleBegan | issues.PhaseEntered | issues.RetryScheduled | issues.PersonAsked | issues.PersonReminded
    | issues.PersonAnswered | issues.AnswerRefused | issues.IssueParked | issues.IssueGivenBack | issues.IssueLeft
    | issues.IssueFinished | issues.IssueClosed | issues.CommentWanted | issues.CreationWanted
    | runs.DiagnosisWanted | runs.TurnSeen | runs.QuotaSeen | runs.SessionSeen | runs.SessionTaken | runs.ReleaseWanted
    | runs.SessionReleased | runs.OrphanStopped | runs.RunPlanned | runs.RunWithdrawn | runs.OutcomeRejected
    | runs.TurnDied | runs.PromptAbandoned | runs.DeadlineReached | runs.RunEnded | runs.RequestOpened
    | runs.RequestGone | runs.RequestJudged | runs.InputWanted | runs.InputEnded | runs.RequestAnswered
    | runs.SessionOpened | runs.PromptPrepared | runs.PromptSent | runs.TurnBegun | runs.TurnStopped
    | delivery.TreePrepared | delivery.TreeSealed | delivery.TreeRests | delivery.TreeRemoved | delivery.TreeKept
    | delivery.CriteriaAdopted | delivery.CriteriaChanged | delivery.VerificationWanted | delivery.WorkVerified
    | delivery.WorkIntegrated | delivery.WorkConflicted | delivery.WorkLanded | delivery.LandingRefused
    | delivery.PullRequestOpened | delivery.PullRequestSeen | delivery.PullRequestReturned
    | delivery.PullRequestMerged | delivery.TreeSeen | delivery.BaseChecked | delivery.RepositorySeen
    | resources.JournalBegun | resources.DaemonStarted | resources.DaemonStopped | resources.Adopted
    | resources.TimerDue | resources.ClockJumped | resources.JournalPruned | resources.DiskSeen | resources.FolderLeft
    | resources.MachineSeen | resources.BacklogHeld
    | resources.EditRefused | resources.EditMended | resources.AccountAudited | resources.WorkPaused
    | resources.WorkResumed | resources.ServerFailed | resources.ServerEnded | resources.ServerMemorySeen
    | resources.ServerRestartPlanned | resources.RecycleWanted | resources.RunnerSeen | resources.BudgetWarned
    | resources.BudgetReached | resources.WriteDelayed | resources.ProviderRefused | resources.ProviderRecovered
    | resources.QuietSeen | resources.NoticeWanted | resources.NoticesGathered | resources.NoticesDelayed
    | resources.NoticesGivenUp | resources.NoticeSent | resources.NoticeFailed
    | TreeLeft | ChangeDoubted | ChangeJudged | ReadRefused | AuthorsRead
    | sources.SourceFact
)  # fmt: skip
"""Everything that can happen."""

DECISIONS: tuple[type, ...] = tuple(kind for kind in get_args(Fact) if issubclass(kind, Decision))
"""The facts that the core makes; a replay derives them again."""
