"""Facts of an attempt: its plan, session, prompts, turns, what it asks, and its end."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from ashep.core.facts import Answer, Decision, OfIssue, OfRun, RunAnswer, requests
from ashep.core.facts.outcome import Ending, Outcome
from ashep.core.policy.agents import Sandbox
from ashep.core.policy.runner_kinds import OPENCODE


@dataclass(frozen=True, slots=True)
class Life:
    """How alive a busy session was found to be. Spans, no times: its server may have another clock."""

    quiet: timedelta
    """Since its last sign, or a subagent's; where nobody watched for so long, since it is watched."""
    tool: str | None = None
    """A tool at work in it."""
    tool_for: timedelta = timedelta()
    """How long that has been seen at work, at least."""
    retry_in: timedelta | None = None
    """Until the provider is asked again, where it said when."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A provider did not take what a turn asked of it."""

    kind: Literal["limited", "down", "unauthorized"]
    """limited: too much was asked, or the quota is used up · down: it fails · unauthorized: it wants other
    credentials."""
    why: str
    """Its words."""
    again_in: timedelta | None = None
    """Until it is asked again, or may be, where somebody said when."""
    attempt: int = 1
    """How often the turn was refused in a row."""
    until: datetime | None = None
    """The time that the provider named: it takes nothing before."""

    def wait(self, now: datetime) -> timedelta | None:
        """Return how long nothing is asked of the provider: up to the later of both times; None without one."""
        if self.until is None:
            return self.again_in
        return max(self.until - now, self.again_in or timedelta())


Allowance = Literal["allowed", "allowed_warning", "rejected"]
"""What a provider answers to the next request: it takes it, does so for not much longer, or refuses it."""


@dataclass(frozen=True, slots=True)
class QuotaWindow:
    """A window of a login's quota, as the provider counts it."""

    name: str
    """The provider's own word: `five_hour`, `seven_day`."""
    used: float
    """The share that is used: 1 is all of it, and some providers go beyond."""
    resets: datetime
    """When the window begins again."""
    status: Allowance | None = None


@dataclass(frozen=True, slots=True)
class Quota:
    """How much of its quota a login has used, and whether its next request is taken."""

    provider: str
    login: str
    """Where the login comes from: a variable or a folder; empty: nobody knows. Equal logins share a quota."""
    status: Allowance
    window: str | None = None
    """The window that decides the status."""
    resets: datetime | None = None
    """When that window begins again."""
    windows: tuple[QuotaWindow, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnSeen(OfRun):
    """What a read of a run's session showed. By difference of its state."""

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
    starting: bool = False
    """The process that is to answer the prompt is starting; its runner bounds that."""
    not_started: str = ""
    """Why that process could not start; no turn began then."""
    ending: Ending | None = None
    """Why the end of the turn looks like none of its work."""
    agent_message_at: datetime | None = None
    """When the agent wrote last, by the clock of its server."""
    human_message_at: datetime | None = None
    """When a person wrote last in the session, behind the prompt."""
    steps: str | None = None
    """The blob of what was said and done in it, for when its server has ended; null: nothing was kept."""


@dataclass(frozen=True, slots=True)
class QuotaSeen(OfRun):
    """What a run's session shows of the quota of its login. By difference from what that run showed before."""

    runner: str
    quota: Quota


@dataclass(frozen=True, slots=True)
class SessionSeen(OfIssue):
    """What a person does in a session that they took, by difference; or that they are quiet still, when it is asked."""

    session: str
    people: tuple[str, ...]
    """Ids of their messages after our prompt."""
    busy: bool
    """Whether a turn runs in it."""
    as_of: int


@dataclass(frozen=True, slots=True)
class RequestOpened(OfRun):
    """A run's session asks for leave to use a tool, or a question. By difference."""

    request: requests.Request
    as_of: int


@dataclass(frozen=True, slots=True)
class RequestGone(OfRun):
    """The server does not list the request any more: it was answered in OpenCode, or its turn is over."""

    request: str
    as_of: int


@dataclass(frozen=True, slots=True)
class Model:
    """A provider's model."""

    provider: str
    model: str


@dataclass(frozen=True, slots=True)
class RunPlanned(OfRun, Decision):
    """An agent was chosen for an attempt; this fact's sequence number is the run's trace id."""

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
    sandbox: Sandbox | None = None
    """Where its agent runs; None: where all do that may change files, or it only reads."""
    sign_after: timedelta | None = None
    """How long its prompts may show no sign of a turn; None: 30 s."""


@dataclass(frozen=True, slots=True)
class RunWithdrawn(OfRun, Decision):
    """A planned run did not start, for a reason that is no fault of an agent's."""

    code: str
    why: str
    leave: str | None = None
    """The session that it was to go on in, and that is used no more."""


@dataclass(frozen=True, slots=True)
class OutcomeRejected(OfRun, Decision):
    """The final message held no valid outcome, or one of work that may go on; `then` says what is tried next."""

    n: int
    why: str
    then: Literal["recover", "extract", "continue"]
    extractor: str | None = None
    slug: str | None = None
    model: Model | None = None
    runner: str = OPENCODE
    """That of the extractor."""


@dataclass(frozen=True, slots=True)
class DiagnosisWanted(OfRun, Decision):
    """A turn has stalled: it is stopped, and another agent is asked why, before the run ends."""

    n: int
    why: str
    agent: str
    slug: str | None = None
    model: Model | None = None
    runner: str = OPENCODE


@dataclass(frozen=True, slots=True)
class TurnDied(OfRun, Decision):
    """The turn ended without an end because its server did; the same ids are sent again."""

    n: int
    why: str


@dataclass(frozen=True, slots=True)
class PromptAbandoned(OfRun, Decision):
    """No turn of a prompt began: no sign of one in time, an abort and a second read; or its process did not start. The
    prompt is sent again under a new id.
    """

    n: int
    why: str
    sign_after: timedelta | None = None
    """How long it may then show no sign of a turn; None: 30 s, as before this was decided."""
    due: datetime | None = None
    """It is not sent again before."""


@dataclass(frozen=True, slots=True)
class DeadlineReached(OfRun, Decision):
    """The run's time is up; it is aborted once a fresh read shows that it still runs."""


@dataclass(frozen=True, slots=True)
class RunEnded(OfRun, Decision):
    """The run is over."""

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
    doubt: bool = False
    """ashep stopped its turn because it seemed not to begin: that is no agent's failure, and no person's doing."""


@dataclass(frozen=True, slots=True)
class SessionTaken(OfIssue, Decision):
    """A person took the issue's session, or the issue: nothing is sent there until they are done."""

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
class ReleaseWanted(OfIssue, Decision):
    """The person is done: what is still at work in the session is waited for."""

    why: str


@dataclass(frozen=True, slots=True)
class SessionReleased(OfIssue, Decision):
    """The person is done, and the issue goes on."""

    by: Literal["label", "quiet"]
    why: str
    leave: bool = False
    """Something is still at work in the session: the issue goes on in another one."""


@dataclass(frozen=True, slots=True)
class RequestJudged(OfRun, Decision):
    """What becomes of a session's request: rules and prepared answers say it, a person, or the end of their time."""

    request: str
    verdict: requests.Verdict
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
    judged: tuple[str, ...] = ()
    """The comments that answer it: none of them is an answer to a later question."""


@dataclass(frozen=True, slots=True)
class InputWanted(OfRun, Decision):
    """A run waits in its session: its request is put to a person."""

    request: str
    question: str
    due: datetime
    why: str


@dataclass(frozen=True, slots=True)
class InputEnded(OfRun, Decision):
    """The run waits for no person any more: the issue is worked on again."""

    why: str


@dataclass(frozen=True, slots=True)
class SessionOpened(RunAnswer):
    """The run has its session."""

    session: str
    reused: bool = False


@dataclass(frozen=True, slots=True)
class PromptPrepared(RunAnswer):
    """The prompt's text is kept as a blob, fsynced."""

    n: int
    blob: str
    comments: tuple[str, ...] = field(default=())
    """Ids of comments that it shows."""
    before: tuple[str, ...] = ()
    """User messages that its session holds already: where the clock is set back, they will stand behind it."""


@dataclass(frozen=True, slots=True)
class PromptSent(RunAnswer):
    """The server has taken the prompt."""

    n: int
    instance: str


@dataclass(frozen=True, slots=True)
class TurnBegun(OfRun):
    """A runner asked whether the turn of a prompt may begin, and it may: nothing of it reaches a model before this is
    durable, and none begins twice.
    """

    n: int
    message: str
    """The prompt's message id."""


@dataclass(frozen=True, slots=True)
class TurnStopped(RunAnswer):
    """An abort was verified: the session is not busy. What its turn had used by then is known no sooner."""

    n: int = 0
    """The prompt whose turn it was; 0: what it used was not read."""
    tokens: int = 0
    cost: float = 0.0
    provider: str | None = None
    state: str = ""
    """How its turn was read then, as in `TurnSeen`; empty: it was not read."""
    steps: str | None = None
    """As in `TurnSeen`."""


@dataclass(frozen=True, slots=True)
class RequestAnswered(RunAnswer):
    """The answer was delivered; `taken` False: the server does not know the request any more."""

    request: str
    taken: bool = True


@dataclass(frozen=True, slots=True)
class OrphanStopped(Answer):
    """The session of a run that another journal knew is at rest; `found`: our server had one."""

    found: bool
