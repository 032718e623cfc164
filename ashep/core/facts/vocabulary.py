"""Facts: what happened, in the past tense, as the journal keeps it. A decision is a fact too, with its reason in `why`.

Facts are plain frozen dataclasses; their JSON is made in `ashep.core.facts.records`. A field that is added later needs a
default, so that old journals fold for ever (tests/golden/).
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from ashep.core.facts.file_map import FileMap
from ashep.core.facts.finding import Finding
from ashep.core.facts.landing_events import (
    CriteriaAdopted,
    CriteriaChanged,
    LandingRefused,
    VerificationWanted,
    WorkConflicted,
    WorkIntegrated,
    WorkLanded,
    WorkVerified,
)
from ashep.core.facts.outcome import Outcome
from ashep.core.facts.pull_events import PullRequestMerged, PullRequestOpened, PullRequestReturned, PullRequestSeen
from ashep.core.facts.question import About
from ashep.core.facts.requests import Request, Verdict
from ashep.core.facts.tree_events import TreeKept, TreeRemoved, TreeRests
from ashep.core.policy.settings import (
    Change,
    Comment,
    Difference,
    Issue,
    LabelEvent,
    Life,
    Model,
    NewIssue,
    NoticeKind,
    Refusal,
    Tree,
)

# --- the daemon and its rules ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JournalBegun:
    """The first record of a journal: its instance id, which every key and id derives from."""

    instance: str
    secret: str
    """Makes the fences of foreign text in prompts unguessable; never leaves the state folder but in prompts."""
    actor: str = ""
    """The name under which this state folder claims, where the settings give none: kept when the folder moves."""


@dataclass(frozen=True, slots=True)
class DaemonStarted:
    """A daemon took over the journal."""

    pid: int
    version: str
    only: tuple[str, ...] = ()
    """The issues it was asked to work on; empty: all."""
    max_issues: int | None = None
    """How many issues it may take."""
    trees: bool = False
    """Whether it can make work trees of issues' own."""


@dataclass(frozen=True, slots=True)
class DaemonStopped:
    """A daemon ended in order."""

    why: str


@dataclass(frozen=True, slots=True)
class Adopted:
    """Policies, agents, settings or templates came into force. `content` is their normal form, `text` the blob of the
    file or files; of templates `content` holds their hashes, and `text` is what prompts are made of.
    """

    kind: Literal["policies", "agents", "settings", "prompts"]
    content: str
    text: str
    rules: int


@dataclass(frozen=True, slots=True)
class EditRefused:
    """The user's files were edited so that they cannot be used: what was good stays in force. By difference."""

    problems: tuple[str, ...]
    """What is wrong, each with its place; the first of them."""
    more: int = 0
    """How many more there are."""


@dataclass(frozen=True, slots=True)
class EditMended:
    """The user's files can be used again; what differs in them was adopted."""


@dataclass(frozen=True, slots=True)
class JournalPruned:
    """What precedes a number was given up: those archived files are deleted, and the journal begins there."""

    first: int
    """The sequence number of the first line that is kept."""
    files: tuple[str, ...]
    keep: timedelta | None = None
    """By itself, for all in them is so old (`journal.keep`); None: the owner said so."""


@dataclass(frozen=True, slots=True)
class DiskSeen:
    """How much room there is where the state folder lies. By difference of its state."""

    state: Literal["ok", "low"]


@dataclass(frozen=True, slots=True)
class TimerDue:
    """A due time in the World has passed. Ignored where that wait no longer stands."""

    key: str
    due: datetime


@dataclass(frozen=True, slots=True)
class ClockJumped:
    """Wall and monotonic time parted by this much (suspend, clock set): running deadlines move with it."""

    gap: timedelta


@dataclass(frozen=True, slots=True)
class WorkPaused:
    """No run starts and no issue is taken from now on: a person asked for it, or quiet hours began."""

    by: str
    why: str = ""
    until: datetime | None = None
    """None: until somebody resumes."""
    provider: str | None = None
    """Only runs on this provider; None: all."""
    drain: bool = False
    """Somebody waits for the last run to end."""
    window: str = ""
    """The window of the configuration that begins; empty: a person paused."""


@dataclass(frozen=True, slots=True)
class WorkResumed:
    """A person resumed; or a window (by its name) is not in the configuration any more."""

    by: str
    why: str = ""
    provider: str | None = None
    """Only this provider's pause ends; None: every one."""
    window: str = ""


@dataclass(frozen=True, slots=True)
class IssueCancelled:
    """A person wants no more to be done for the issue, or for this run of it."""

    issue: str
    by: str
    run: str | None = None


@dataclass(frozen=True, slots=True)
class AccountAudited:
    """The daemon checked the account (`ashep.core.analysis.audit`). By difference: nothing is said of what is still so."""

    findings: tuple[Finding, ...] = ()
    more: int = 0
    """How many findings are not listed."""


@dataclass(frozen=True, slots=True)
class QuietSeen:
    """Nobody is to be told anything before this time. By difference; None: the configuration has no such hours now."""

    until: datetime | None = None


# --- what was seen ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TrackerSeen:
    """The tracker answered. By difference."""

    actor: str
    prefix: str
    version: str
    unread: tuple[tuple[str, str], ...] = ()
    """Issues that it lists and that are too big to be read, by id, and how big: nothing is known of them."""
    lacks: str = ""
    """Why it could not be read what is ready, look after look; the rest was."""
    replaced: str = ""
    """Which version answers where another one did before; empty: the same does."""


@dataclass(frozen=True, slots=True)
class TrackerLost:
    """The tracker stopped answering; nothing is started until it was seen again."""

    error: str


@dataclass(frozen=True, slots=True)
class RunnerSeen:
    """The agent server's state and what it lists. By difference."""

    state: Literal["up", "away", "unauthorized"]
    detail: str = ""
    instance: str = ""
    agents: tuple[str, ...] = ()
    models: tuple[Model, ...] = ()
    default: Model | None = None
    times: int = 0
    """How often it has come back in a row, each time but this one for less than a minute."""
    replaced: str = ""
    """Which version answers where another one did before; empty: the same does."""


@dataclass(frozen=True, slots=True)
class ServerFailed:
    """The managed agent server ended by itself, did not answer any more and was ended, or did not start."""

    instance: str
    """The life that is over; empty: none began."""
    why: str


@dataclass(frozen=True, slots=True)
class ServerEnded:
    """ashep ended its agent server of its own accord."""

    instance: str
    why: Literal["idle", "recycled"]


@dataclass(frozen=True, slots=True)
class ServerMemorySeen:
    """How much memory the managed agent server holds. By difference of how often its limit goes into that."""

    instance: str
    used: int
    """Bytes."""
    limit: int


@dataclass(frozen=True, slots=True)
class ChangeHinted:
    """Something may have changed in the tracker: the ready view is no longer good for a start."""


@dataclass(frozen=True, slots=True)
class ReadySeen:
    """A complete read of what is ready. Written no more: it named all of it at every change."""

    ids: tuple[str, ...]
    as_of: int


@dataclass(frozen=True, slots=True)
class ReadyChanged:
    """A complete read of what is ready, by difference: also one that shows no change, after a hint of one."""

    added: tuple[str, ...]
    """In the tracker's order."""
    removed: tuple[str, ...]
    """Sorted."""
    as_of: int


@dataclass(frozen=True, slots=True)
class IssueSeen:
    """An issue as the tracker showed it. By difference."""

    issue: str
    view: Issue
    as_of: int
    key: str | None = None
    """The command that asked for this read; it is recorded although nothing may differ."""


@dataclass(frozen=True, slots=True)
class IssueGone:
    """A complete read did not list the issue among those that are not closed; with a key: there is none of this id."""

    issue: str
    as_of: int
    key: str | None = None


@dataclass(frozen=True, slots=True)
class TreeSeen:
    """The user's work tree. By difference at a look; always before and after a write run, with that run's id."""

    tree: Tree
    moment: Literal["look", "before", "after"] = "look"
    issue: str | None = None
    run: str | None = None
    commits: tuple[str, ...] = ()
    """After a run: the commits made since it began, oldest first."""


@dataclass(frozen=True, slots=True)
class TreePrepared:
    """The issue's own work tree stands, for a run to begin in it."""

    issue: str
    run: str
    key: str
    branch: str
    path: str
    base: str
    """The commit that the branch began from."""
    head: str


@dataclass(frozen=True, slots=True)
class TreeSealed:
    """What a run left in the issue's own work tree is committed on its branch."""

    issue: str
    run: str
    key: str
    head: str
    tree: str
    """The git tree hash of `head`."""
    commits: tuple[str, ...]
    """All after the base, oldest first."""
    told: tuple[str, ...] = ()
    """What was found out of order, and what was done about it."""
    flags: tuple[str, ...] = ()
    """What all its changes since the base touch (`ashep.core.policy.flags`)."""
    files: FileMap | None = None
    """The files that they touch; None: it is not known."""
    lacking: tuple[str, ...] = ()
    """Of what was told, what its branch lacks, where that is, and what to do."""
    unwritable: tuple[str, ...] = ()
    """Files among them that git would write to no work tree: with them it cannot land."""


@dataclass(frozen=True, slots=True)
class TreeLeft:
    """What a run left could not be sealed, or its tree not be read: it stays as it is, and nobody tries any more."""

    issue: str
    run: str
    why: str


@dataclass(frozen=True, slots=True)
class TurnSeen:
    """What a read of a run's session showed. By difference of its state."""

    issue: str
    run: str
    n: int
    message: str
    """The prompt's message id."""
    as_of: int
    state: Literal["missing", "stored", "running", "incomplete", "finished"]
    instance: str
    block: str | None = None
    """The last fenced json block of the final message."""
    text: str | None = None
    """The blob of the final message."""
    error: str | None = None
    provider: str | None = None
    model: str | None = None
    tokens: int = 0
    cost: float = 0.0
    people: tuple[str, ...] = ()
    life: Life | None = None
    """Signs of life, where it was read whether there are any."""
    refused: Refusal | None = None
    """The provider did not take it: it is asked again in the turn, or that was the turn's end."""


@dataclass(frozen=True, slots=True)
class SessionSeen:
    """What a person does in a session that they took, by difference; or that they are quiet still, when it is asked."""

    issue: str
    session: str
    people: tuple[str, ...]
    """Ids of their messages after our prompt."""
    busy: bool
    """Whether a turn runs in it."""
    as_of: int


@dataclass(frozen=True, slots=True)
class RequestOpened:
    """A run's session asks for leave to use a tool, or a question. By difference."""

    issue: str
    run: str
    request: Request
    as_of: int


@dataclass(frozen=True, slots=True)
class RequestGone:
    """The server does not list the request any more: it was answered in OpenCode, or its turn is over."""

    issue: str
    run: str
    request: str
    as_of: int


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
class LeaseLost:
    """The tracker refused a heartbeat: the issue may be another daemon's. Nothing is written before a fresh read."""

    issue: str
    why: str


@dataclass(frozen=True, slots=True)
class LeaseExpired:
    """Another daemon's lease on the issue ran out long ago. By difference."""

    issue: str
    holder: str
    expired: datetime


# --- decisions ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IssueHeld:
    """The issue does not start, for a reason that changed. `code` is stable, `why` is for people."""

    issue: str
    code: str
    why: str
    of: str = ""
    """What stands in the way, where a hold of this code may be of several: a pause's key, a provider."""


@dataclass(frozen=True, slots=True)
class IssueTaken:
    """A ready issue was chosen to be worked on under a policy."""

    issue: str
    policy: str
    why: str


@dataclass(frozen=True, slots=True)
class IssueAdopted:
    """An issue that is ours in the tracker, and of which this journal knows nothing, is gone on with.

    How far it had got stands in its stamp: this happens where a state folder was lost.
    """

    issue: str
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
class TakeoverWanted:
    """The claim of a daemon that died is to be taken back, so that the issue is free again."""

    issue: str
    holder: str
    why: str


@dataclass(frozen=True, slots=True)
class CycleBegan:
    """Limits and visits count afresh (design section 7)."""

    issue: str
    cycle: int
    why: str
    keeps: bool = False
    """What phases ended with goes on to count for `requires`: a person did not want changes."""


@dataclass(frozen=True, slots=True)
class PhaseEntered:
    """The issue is in this phase now: an agent phase wants a run."""

    issue: str
    phase: str
    visit: int
    why: str


@dataclass(frozen=True, slots=True)
class RunPlanned:
    """An agent was chosen for an attempt; this fact's sequence number is the run's trace id."""

    issue: str
    run: str
    phase: str
    visit: int
    attempt: int
    agent: str
    runner: str
    slug: str | None
    model: Model | None
    capabilities: tuple[str, ...]
    access: Literal["read", "write"]
    timeout: timedelta
    reuse: str | None
    """The session to continue in."""
    lock: bool
    """Whether the work tree's lock is held by the issue from now on."""
    why: str
    others: tuple[tuple[str, str], ...] = ()
    """Every agent that was not chosen, with the reason."""
    stall_after: timedelta | None = None
    """How long a turn may show no sign of life; None: no such rule was in force."""
    tool_timeout: timedelta | None = None
    """How long one call of a tool may run that shows nothing."""
    prompt: Literal["task", "resume"] = "task"
    """resume: a person had the session that it goes on in, and the agent is told so."""
    branch: str | None = None
    """The branch in whose own work tree it runs; None: in the shared one."""
    slot: int = 0
    """The number that such a tree has among those in use."""
    onto: str | None = None
    """The branch that the user has checked out."""


@dataclass(frozen=True, slots=True)
class RunWithdrawn:
    """A planned run did not start, for a reason that is no fault of an agent's."""

    issue: str
    run: str
    code: str
    why: str
    leave: str | None = None
    """The session that it was to go on in, and that is used no more."""


@dataclass(frozen=True, slots=True)
class OutcomeRejected:
    """The final message held no valid outcome; `then` says what is tried next."""

    issue: str
    run: str
    n: int
    why: str
    then: Literal["recover", "extract"]
    extractor: str | None = None
    slug: str | None = None
    model: Model | None = None


@dataclass(frozen=True, slots=True)
class DiagnosisWanted:
    """A turn has stalled: it is stopped, and another agent is asked why, before the run ends."""

    issue: str
    run: str
    n: int
    why: str
    agent: str
    slug: str | None = None
    model: Model | None = None


@dataclass(frozen=True, slots=True)
class TurnDied:
    """The turn ended without an end because its server did; the same ids are sent again."""

    issue: str
    run: str
    n: int
    why: str


@dataclass(frozen=True, slots=True)
class PromptAbandoned:
    """A prompt was never begun: 30 s without a sign, an abort, and a second read. A new id is used."""

    issue: str
    run: str
    n: int
    why: str


@dataclass(frozen=True, slots=True)
class DeadlineReached:
    """The run's time is up; it is aborted once a fresh read shows that it still runs."""

    issue: str
    run: str


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The run is over."""

    issue: str
    run: str
    state: Literal["succeeded", "failed", "timed_out", "stalled", "aborted", "lost"]
    why: str
    outcome: Outcome | None = None
    error: str | None = None
    abort: bool = False
    """Its session may still be at work and is aborted."""
    counts: bool = True
    """Whether it is one of the cycle's `max_runs`."""
    diagnosis: Outcome | None = None
    """What another agent made of a stall; its verdict is retry, change_agent or ask_person."""


@dataclass(frozen=True, slots=True)
class SessionTaken:
    """A person took the issue's session, or the issue: nothing is sent there until they are done."""

    issue: str
    action: Literal["pause", "review", "resume"]
    """What follows when they are done."""
    label: Literal["none", "ours", "theirs"]
    """Whether the label for it is to be set by us, or a person has set it, and ends it by taking it off."""
    why: str
    cooldown: timedelta | None = None
    """How long they must have been quiet in the session to be done; None: that ends nothing."""
    session: str | None = None
    message: str | None = None
    """The last prompt's message id: what people wrote stands behind it."""
    outcome: bool = False
    """What the run had reported by then counts when they are done."""


@dataclass(frozen=True, slots=True)
class ReleaseWanted:
    """The person is done: what is still at work in the session is waited for."""

    issue: str
    why: str


@dataclass(frozen=True, slots=True)
class SessionReleased:
    """The person is done, and the issue goes on."""

    issue: str
    by: Literal["label", "quiet"]
    why: str
    leave: bool = False
    """Something is still at work in the session: the issue goes on in another one."""


@dataclass(frozen=True, slots=True)
class RetryScheduled:
    """Another attempt of the phase is due."""

    issue: str
    phase: str
    failures: int
    due: datetime
    why: str
    code: str = "retry"
    """What it waits for, where that is no attempt's delay."""
    disbelieved: str = ""
    """The run that reported a success which does not hold."""


@dataclass(frozen=True, slots=True)
class BudgetWarned:
    """A share of a limit is used up: once for each scope, period and limit."""

    scope: str
    """run, issue, provider, day or total."""
    name: str
    """Which run, issue, provider and day, or day."""
    unit: str
    """tokens or cost."""
    used: float
    limit: float
    why: str
    until: datetime | None = None
    """When its period is over."""
    issue: str | None = None


@dataclass(frozen=True, slots=True)
class BudgetReached:
    """A limit is used up: what is under way of that scope is stopped, or no more starts."""

    scope: str
    """run, issue, provider, day, total or runs_per_hour."""
    name: str
    unit: str
    """tokens, cost or runs."""
    used: float
    limit: float
    why: str
    until: datetime | None = None
    """When there is budget again by itself."""
    issue: str | None = None


@dataclass(frozen=True, slots=True)
class WriteDelayed:
    """A write to the tracker waits: as many were made as may be in a minute."""

    issue: str
    write: str
    """The key of the command."""
    due: datetime
    why: str


@dataclass(frozen=True, slots=True)
class ProviderRefused:
    """A provider takes nothing: nothing starts on it until it may be tried, then one run before the rest."""

    provider: str
    kind: Literal["limited", "down", "unauthorized"]
    why: str
    """Its words."""
    until: datetime | None
    """When it may be tried; None: when its credentials may be others."""
    refusals: int
    """How often in a row it refused one that tried."""
    run: str
    """The run that it refused."""


@dataclass(frozen=True, slots=True)
class ProviderRecovered:
    """A provider takes again what it is asked."""

    provider: str
    why: str
    run: str
    """The run that shows it."""


@dataclass(frozen=True, slots=True)
class PersonAsked:
    """A question to a person, of a human phase or of the agent phase that asked."""

    issue: str
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
class PersonReminded:
    """The question is still open, and people are reminded of it."""

    issue: str
    phase: str
    question: str
    due: datetime
    """When it is given up."""
    remind: datetime | None
    """When they are to be reminded again, if that is before."""
    why: str


@dataclass(frozen=True, slots=True)
class PersonAnswered:
    """A person's label answered the question."""

    issue: str
    answer: Literal["approved", "changes_requested"]
    actor: str
    why: str


@dataclass(frozen=True, slots=True)
class AnswerRefused:
    """An answer label counts for nothing: ashep, an agent or nobody known has set it. It is taken off."""

    issue: str
    labels: tuple[str, ...]
    why: str
    judged: tuple[str, ...] = ()
    """The label events that were looked at: a later answer is not judged by them, whatever the clock was set to."""


@dataclass(frozen=True, slots=True)
class ChangeDoubted:
    """The issue was changed in a way that would move it: whether a person did it is to be looked up first."""

    issue: str
    changes: tuple[Difference, ...]
    """None: what was doubted is as it was again."""


@dataclass(frozen=True, slots=True)
class ChangeJudged:
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
class RequestJudged:
    """What becomes of a session's request: rules and prepared answers say it, a person, or the end of their time."""

    issue: str
    run: str
    request: str
    verdict: Verdict
    why: str
    answers: tuple[tuple[str, ...], ...] = ()
    """To each of its questions."""
    message: str = ""
    """What the agent is told with it."""
    due: datetime | None = None
    """`ask`: until when a person may answer."""
    by: str = ""
    """The person who answered."""
    used: tuple[int, ...] = ()
    """Which of the phase's prepared answers were used."""


@dataclass(frozen=True, slots=True)
class InputWanted:
    """A run waits in its session: its request is put to a person."""

    issue: str
    run: str
    request: str
    question: str
    due: datetime
    why: str


@dataclass(frozen=True, slots=True)
class InputEnded:
    """The run waits for no person any more: the issue is worked on again."""

    issue: str
    run: str
    why: str


@dataclass(frozen=True, slots=True)
class IssueParked:
    """Shepherd gave up on the issue, with a reason; a person takes `ashep:parked` off to start afresh."""

    issue: str
    code: str
    why: str


@dataclass(frozen=True, slots=True)
class IssueGivenBack:
    """The issue is put back to `open` without our name (guarded)."""

    issue: str
    code: str
    why: str
    not_before: datetime | None = None
    """It is not taken again before this."""


@dataclass(frozen=True, slots=True)
class IssueLeft:
    """The issue is a person's now; nothing is written to it."""

    issue: str
    code: str
    why: str
    not_before: datetime | None = None
    """It is not taken again before this."""


@dataclass(frozen=True, slots=True)
class IssueFinished:
    """The policy leads to `close`; `why` is the evidence."""

    issue: str
    why: str
    onto: str = ""
    """The branch on which its work is to land first; empty: on none."""
    verify: bool = False
    """Whether something must be checked first."""
    into: str = ""
    """The branch into which people are to merge its pull request first; empty: there is to be none."""


@dataclass(frozen=True, slots=True)
class IssueClosed:
    """The issue is closed in the tracker: by us with evidence, or by somebody else."""

    issue: str
    by: Literal["shepherd", "somebody"]
    why: str


@dataclass(frozen=True, slots=True)
class CommentWanted:
    """A comment is to be posted; `name` is unique within the issue."""

    issue: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class CreationWanted:
    """An issue is to be created under this id."""

    issue: str
    id: str
    new: NewIssue
    depth: int
    parked: bool


@dataclass(frozen=True, slots=True)
class NoticeWanted:
    """Something happened that is worth a person."""

    event: NoticeKind
    text: str
    to: tuple[str, ...]
    """The targets of `notify` that are to be told."""
    issue: str | None = None
    about: str = ""
    """What it is about, where that is no issue: a server, say."""
    cause: int = 0
    """The sequence number of what happened."""


@dataclass(frozen=True, slots=True)
class NoticesGathered:
    """What a target is told now, in one message; what is over by now is left out."""

    target: str
    notices: tuple[int, ...]
    why: str
    left_out: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class NoticesDelayed:
    """A target could not be told: it is tried again, with whatever is to be told by then."""

    target: str
    due: datetime
    why: str


@dataclass(frozen=True, slots=True)
class NoticesGivenUp:
    """A target is not told of these any more."""

    target: str
    notices: tuple[int, ...]
    why: str


@dataclass(frozen=True, slots=True)
class ServerRestartPlanned:
    """An agent server that failed is started again, not before a time where it did so several times in a row."""

    failures: int
    due: datetime
    why: str


@dataclass(frozen=True, slots=True)
class RecycleWanted:
    """The agent server is to be ended and begun anew: between turns, or at once."""

    instance: str
    until: datetime
    """Until then no run starts on it; then this is given up for a while."""
    at_once: bool
    why: str


# --- answers of effects -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EffectFailed:
    """An effect did not happen, or cannot be told to have. `infra`: it is tried again and burns no attempt."""

    issue: str
    key: str
    error: str
    infra: bool
    lock: str = ""
    """The file, where it is another git's lock that keeps it from happening."""


@dataclass(frozen=True, slots=True)
class IssueClaimed:
    """The claim stands, with the first phase's label and our stamp."""

    issue: str
    key: str
    view: Issue
    text: str | None = None
    """The blob of the issue's words."""


@dataclass(frozen=True, slots=True)
class ClaimRefused:
    """Somebody else has the issue, or it is not claimable any more."""

    issue: str
    key: str
    error: str


@dataclass(frozen=True, slots=True)
class IssueWritten:
    """A transition, question, parking, giving back or close stands in the tracker."""

    issue: str
    key: str
    posture: int
    """The sequence number of the decision whose posture was written."""
    view: Issue
    text: str | None = None


@dataclass(frozen=True, slots=True)
class GuardRefused:
    """A person was faster; nothing was written. The issue is read again and obeyed."""

    issue: str
    key: str


@dataclass(frozen=True, slots=True)
class WriteRefused:
    """The tracker's rules forbid the write."""

    issue: str
    key: str
    error: str


@dataclass(frozen=True, slots=True)
class CommentPosted:
    """The comment stands."""

    issue: str
    key: str
    name: str


@dataclass(frozen=True, slots=True)
class IssueCreated:
    """The issue stands."""

    issue: str
    key: str
    id: str


@dataclass(frozen=True, slots=True)
class LabelsTakenOff:
    """Refused answer labels are gone."""

    issue: str
    key: str


@dataclass(frozen=True, slots=True)
class AnswerRead:
    """Who set the answer labels, and what people have said."""

    issue: str
    key: str
    view: Issue
    events: tuple[LabelEvent, ...]
    comments: tuple[Comment, ...] = ()


@dataclass(frozen=True, slots=True)
class AuthorsRead:
    """Who made the changes that were asked about, the newest first."""

    issue: str
    key: str
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class SessionOpened:
    """The run has its session."""

    issue: str
    run: str
    key: str
    session: str
    reused: bool = False


@dataclass(frozen=True, slots=True)
class PromptPrepared:
    """The prompt's text is kept as a blob, fsynced."""

    issue: str
    run: str
    key: str
    n: int
    blob: str
    comments: tuple[str, ...] = field(default=())
    """Ids of comments that it shows."""
    before: tuple[str, ...] = ()
    """User messages that its session holds already: where the clock is set back, they will stand behind it."""


@dataclass(frozen=True, slots=True)
class PromptSent:
    """The server has taken the prompt."""

    issue: str
    run: str
    key: str
    n: int
    instance: str


@dataclass(frozen=True, slots=True)
class TurnStopped:
    """An abort was verified: the session is not busy."""

    issue: str
    run: str
    key: str


@dataclass(frozen=True, slots=True)
class RequestAnswered:
    """The answer was delivered; `taken` False: the server does not know the request any more."""

    issue: str
    run: str
    key: str
    request: str
    taken: bool = True


@dataclass(frozen=True, slots=True)
class OrphanStopped:
    """The session of a run that another journal knew is at rest; `found`: our server had one."""

    issue: str
    key: str
    found: bool


@dataclass(frozen=True, slots=True)
class IssueReclaimed:
    """The tracker was asked to free a dead daemon's issue; `done`: the claim was taken back."""

    issue: str
    key: str
    holder: str
    done: bool


@dataclass(frozen=True, slots=True)
class NoticeSent:
    """A target took the message."""

    key: str
    target: str


@dataclass(frozen=True, slots=True)
class NoticeFailed:
    """A target did not take the message, or cannot be told to have."""

    key: str
    target: str
    error: str


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

DECISIONS = (
    IssueHeld, IssueTaken, CycleBegan, PhaseEntered, RunPlanned, RunWithdrawn, OutcomeRejected, TurnDied,
    PromptAbandoned, DeadlineReached, RunEnded, RetryScheduled, PersonAsked, PersonReminded,
    PersonAnswered, AnswerRefused, ChangeDoubted, ChangeJudged, IssueParked,
    IssueGivenBack, IssueLeft, IssueFinished, IssueClosed, CommentWanted, CreationWanted, IssueAdopted, TakeoverWanted,
    BudgetWarned, BudgetReached, WriteDelayed, NoticeWanted, NoticesGathered, NoticesDelayed, NoticesGivenUp,
    ServerRestartPlanned, RecycleWanted, ProviderRefused, ProviderRecovered, SessionTaken, ReleaseWanted,
    PullRequestReturned, PullRequestMerged,
    SessionReleased, RequestJudged, InputWanted, InputEnded, DiagnosisWanted, VerificationWanted,
    TreeLeft, TreeRests,
)  # fmt: skip
"""The facts that the core makes; a replay derives them again."""
