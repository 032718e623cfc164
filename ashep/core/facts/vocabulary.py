"""Facts: what happened, in the past tense, as the journal keeps it. A decision is a fact too, with its reason in `why`.

Facts are plain frozen dataclasses; their JSON is made in `ashep.core.facts.records`. A field that is added later needs
a default, so that old journals fold for ever (tests/golden/).
"""

from dataclasses import dataclass
from typing import Literal, get_args

from ashep.core.facts import Decision
from ashep.core.facts.delivery import (
    CriteriaAdopted,
    CriteriaChanged,
    LandingRefused,
    PullRequestMerged,
    PullRequestOpened,
    PullRequestReturned,
    PullRequestSeen,
    TreeKept,
    TreePrepared,
    TreeRemoved,
    TreeRests,
    TreeSealed,
    TreeSeen,
    VerificationWanted,
    WorkConflicted,
    WorkIntegrated,
    WorkLanded,
    WorkVerified,
)
from ashep.core.facts.issues import (
    AnswerRefused,
    CommentWanted,
    CreationWanted,
    CycleBegan,
    IssueAdopted,
    IssueCancelled,
    IssueClosed,
    IssueFinished,
    IssueGivenBack,
    IssueHeld,
    IssueLeft,
    IssueParked,
    IssueTaken,
    PersonAnswered,
    PersonAsked,
    PersonReminded,
    PhaseEntered,
    RetryScheduled,
    TakeoverWanted,
)
from ashep.core.facts.resources import (
    AccountAudited,
    Adopted,
    BudgetReached,
    BudgetWarned,
    ClockJumped,
    DaemonStarted,
    DaemonStopped,
    DiskSeen,
    EditMended,
    EditRefused,
    JournalBegun,
    JournalPruned,
    NoticeFailed,
    NoticesDelayed,
    NoticeSent,
    NoticesGathered,
    NoticesGivenUp,
    NoticeWanted,
    ProviderRecovered,
    ProviderRefused,
    QuietSeen,
    RecycleWanted,
    RunnerSeen,
    ServerEnded,
    ServerFailed,
    ServerMemorySeen,
    ServerRestartPlanned,
    TimerDue,
    WorkPaused,
    WorkResumed,
    WriteDelayed,
)
from ashep.core.facts.runs import (
    DeadlineReached,
    DiagnosisWanted,
    InputEnded,
    InputWanted,
    OrphanStopped,
    OutcomeRejected,
    PromptAbandoned,
    PromptPrepared,
    PromptSent,
    ReleaseWanted,
    RequestAnswered,
    RequestGone,
    RequestJudged,
    RequestOpened,
    RunEnded,
    RunPlanned,
    RunWithdrawn,
    SessionOpened,
    SessionReleased,
    SessionSeen,
    SessionTaken,
    TurnDied,
    TurnSeen,
    TurnStopped,
)
from ashep.core.facts.tracker import (
    AnswerRead,
    Change,
    ChangeHinted,
    ClaimRefused,
    CommentPosted,
    Difference,
    EffectFailed,
    GuardRefused,
    IssueClaimed,
    IssueCreated,
    IssueGone,
    IssueReclaimed,
    IssueSeen,
    IssueWritten,
    LabelsTakenOff,
    LeaseExpired,
    LeaseLost,
    ReadyChanged,
    ReadySeen,
    TrackerLost,
    TrackerSeen,
    WriteRefused,
)


@dataclass(frozen=True, slots=True)
class TreeLeft(Decision):
    """What a run left could not be sealed, or its tree not be read: it stays as it is, and nobody tries any more."""

    issue: str
    run: str
    why: str


@dataclass(frozen=True, slots=True)
class ReadRefused:
    """The agent server refuses to show something of a run: what its sessions ask, or its turn. Told once of each, and
    of a turn again where a verdict waits for a read.
    """

    issue: str
    run: str
    what: Literal["requests", "turn"]
    why: str
    as_of: int


@dataclass(frozen=True, slots=True)
class ChangeDoubted(Decision):
    """The issue was changed in a way that would move it: whether a person did it is to be looked up first."""

    issue: str
    changes: tuple[Difference, ...]
    """None: what was doubted is as it was again."""


@dataclass(frozen=True, slots=True)
class ChangeJudged(Decision):
    """Who made the changes that were doubted: a person's count, an agent's do not."""

    issue: str
    counts: tuple[Difference, ...]
    refused: tuple[Difference, ...]
    why: str
    judged: tuple[str, ...] = ()
    """The records of refused changes: a later one of a person's is not judged by them."""
    undo: bool = True
    """What is refused is put back; False: a person's change moves the issue on, which settles it."""


@dataclass(frozen=True, slots=True)
class AuthorsRead:
    """Who made the changes that were asked about, the newest first."""

    issue: str
    key: str
    changes: tuple[Change, ...]


Fact = (
    JournalBegun | DaemonStarted | DaemonStopped | Adopted | TimerDue | ClockJumped | JournalPruned | DiskSeen
    | EditRefused | EditMended | AccountAudited | WorkPaused | WorkResumed | IssueCancelled
    | ServerFailed | ServerEnded | ServerMemorySeen | ServerRestartPlanned | RecycleWanted
    | TrackerSeen | TrackerLost | RunnerSeen | ChangeHinted | ReadySeen | ReadyChanged | IssueSeen | IssueGone
    | TreePrepared | TreeSealed | TreeLeft | TreeRests | TreeRemoved | TreeKept
    | CriteriaAdopted | CriteriaChanged | VerificationWanted | WorkVerified
    | WorkIntegrated | WorkConflicted | WorkLanded | LandingRefused
    | PullRequestOpened | PullRequestSeen | PullRequestReturned | PullRequestMerged
    | DiagnosisWanted | TreeSeen | TurnSeen | SessionSeen | SessionTaken | ReleaseWanted | SessionReleased
    | LeaseLost | LeaseExpired | IssueAdopted | TakeoverWanted | OrphanStopped | IssueReclaimed
    | IssueHeld | IssueTaken | CycleBegan | PhaseEntered | RunPlanned | RunWithdrawn | OutcomeRejected | TurnDied
    | PromptAbandoned | DeadlineReached | RunEnded | RetryScheduled | PersonAsked | PersonReminded
    | PersonAnswered | AnswerRefused | ChangeDoubted | ChangeJudged
    | IssueParked | IssueGivenBack | IssueLeft | IssueFinished | IssueClosed | CommentWanted | CreationWanted
    | BudgetWarned | BudgetReached | WriteDelayed | ProviderRefused | ProviderRecovered
    | QuietSeen | NoticeWanted | NoticesGathered | NoticesDelayed | NoticesGivenUp | NoticeSent | NoticeFailed
    | RequestOpened | RequestGone | ReadRefused | RequestJudged | InputWanted | InputEnded | RequestAnswered
    | EffectFailed | IssueClaimed | ClaimRefused | IssueWritten | GuardRefused | WriteRefused | CommentPosted
    | IssueCreated | LabelsTakenOff | AnswerRead | AuthorsRead | SessionOpened | PromptPrepared | PromptSent
    | TurnStopped
)  # fmt: skip
"""Everything that can happen."""


DECISIONS: tuple[type, ...] = tuple(kind for kind in get_args(Fact) if issubclass(kind, Decision))
"""The facts that the core makes; a replay derives them again."""
