"""What the page and programs are shown: answers of `pictures`, each with the `seq` of the journal that it is of."""

from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue

from ashep.core.runs.record import RunRecord
from ashep.http.models import Answer, Given, TicketId
from ashep.views.listing import MOST
from ashep.views.usage import KINDS

State = Literal["person", "running", "time", "parked", "not_eligible", "closed"]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Since = Annotated[str, Field(min_length=1, max_length=40)]
Limit = Annotated[int, Field(ge=1, le=MOST)]
Seq = Annotated[int, Field(ge=0, le=2**53)]


class _Picture(Answer):
    seq: int
    """The number of the last record of the journal that this is a picture of."""


# --- where issues stand -------------------------------------------------------------------------------------------


class Question(Answer):
    """What a person is asked."""

    phase: str
    text: str
    asked: str | None


class Counted(Answer):
    """Results of checks, counted; one that could not be carried out counts as failed."""

    total: int
    passed: int
    failed: int
    skipped: int


class Proof(Answer):
    """What was last found about an issue's work."""

    status: str
    tree: str | None
    changed: bool | None
    """Whether the work differs from its base; null: that is not known."""
    waived: list[str]
    """Checks that a person let pass."""
    green_before: int
    """Checks that passed before any work, too, and so prove nothing."""
    summary: Counted


class Landing(Answer):
    """How far the work is on its way to the base."""

    state: str
    onto: str | None
    commit: str | None
    due: str | None


class Issue(Answer):
    """Where an issue stands."""

    issue: str
    title: str
    state: State
    code: str
    reason: str
    since: str | None
    due: str | None
    phase: str | None
    policy: str | None
    run: str | None
    """The run that works on it."""
    type: str
    priority: int
    tracker_status: str
    question: Question | None
    waits_for: int
    """How many issues it depends on."""
    cycle: int
    runs: int
    verification: Proof | None
    flags: list[str]
    landing: Landing | None


class Trees(Answer):
    """Work trees of closed issues that are kept."""

    kept: int
    next: str | None
    """When the next of them goes."""


class Daemon(Answer):
    """What is true of everything, as `ashep status --json` has it."""

    running: bool
    pid: int | None = None
    since: str | None = None
    version: str | None = None
    behind: bool = False
    """It has not drawn everything yet."""
    ended: str | None = None
    why: str | None = None
    """Why it ended."""
    disk: Literal["ok", "low"] = "ok"
    findings: int
    """Of the last audit."""
    pauses: list[dict[str, JsonValue]]
    budgets: list[dict[str, JsonValue]]
    """Limits that were passed and still count."""
    notices: list[dict[str, JsonValue]]
    runners: list[dict[str, JsonValue]]
    workspace: str | None
    edit: dict[str, JsonValue] | None
    """The last edit of the user's files, where it cannot be used."""
    providers: list[dict[str, JsonValue]]
    """Those that take nothing."""
    journal: dict[str, JsonValue] | None
    trees: Trees
    servers: dict[str, JsonValue] | None = None


class Now(_Picture):
    """What a person looks at first."""

    at: str
    daemon: Daemon
    counts: dict[State, int]
    waiting: list[Issue]
    running: list[Issue]
    policies: list[str]


class Issues(_Picture):
    """Issues, those whose standing changed last first."""

    total: int
    next: str | None
    """Where the next page goes on; null: this is the last."""
    items: list[Issue]


class WhichIssues(Given):
    """Which issues are listed."""

    state: State | None = None
    phase: Name | None = None
    policy: Name | None = None
    q: Annotated[str, Field(max_length=200)] = ""
    """What stands in an id or a title."""
    after: Annotated[str, Field(max_length=300)] | None = None
    """The `next` of the page before."""
    limit: Limit = 100


class Sentence(Answer):
    """A line of an issue's story."""

    seq: int
    at: str
    type: str
    fact: str
    reason: str
    trace: int


class Dependency(Answer):
    """An issue that this one depends on."""

    issue: str
    type: str
    state: State | None


class Used(Answer):
    """What runs used."""

    runs: int
    tokens: int
    cost: float


class IssueStory(_Picture):
    """An issue: why it is where it is, and what there is of its work."""

    issue: Issue
    depends_on: list[Dependency]
    kept_since: str | None
    """From when on the story is told; null: from its beginning."""
    story: list[Sentence]
    under_way: list[str]
    verification: dict[str, JsonValue] | None
    verification_log: list[dict[str, JsonValue]]
    files: dict[str, JsonValue] | None
    flags: list[str]
    landing: Landing | None
    usage: Used


# --- runs ---------------------------------------------------------------------------------------------------------


class Runs(_Picture):
    """Runs, the newest first."""

    total: int
    states: dict[str, int]
    """How many there would be, were this state asked for in place of what is; the same of agents."""
    agents: dict[str, int]
    next: int | None
    items: list[RunRecord]


class WhichRuns(Given):
    """Which runs are listed."""

    issue: TicketId | None = None
    state: Name | None = None
    agent: Name | None = None
    before: Seq | None = None
    """The `next` of the page before."""
    limit: Limit = 100


class Asked(Answer):
    """A question to a person, and the answer."""

    seq: int
    at: str
    phase: str
    question: str
    answer: str | None
    by: str | None
    answered: str | None


class Step(Answer):
    """What led from one step to the next; a question's name is `#` and its number."""

    source: str
    target: str
    kind: Literal["next", "retry", "back", "cycle"]
    why: str


class Course(_Picture):
    """An issue's runs, what people were asked between them, and what led from each to the next."""

    runs: list[RunRecord]
    asked: list[Asked]
    edges: list[Step]


class Other(Answer):
    """An agent that was not chosen."""

    agent: str
    why: str


class PromptSent(Answer):
    """A prompt of a run."""

    n: int
    sent: str | None


class TurnRead(Answer):
    """A turn of a run that has ended."""

    n: int
    at: str
    error: str | None
    provider: str | None
    model: str | None
    tokens: int | None
    cost: float | None
    answered: bool
    """Whether its words are kept."""


class Rejected(Answer):
    """An outcome that could not be used."""

    at: str
    n: int
    why: str
    then: str


class Run(_Picture):
    """Everything that is known of a run."""

    run: RunRecord
    choice: dict[str, JsonValue]
    """Why this agent, and why not the others."""
    prompts: list[PromptSent]
    turns: list[TurnRead]
    rejected: list[Rejected]
    commits: list[str]
    verified: list[dict[str, JsonValue]]


class Words(Answer):
    """A text of a run."""

    text: str | None
    """Null: it is gone."""
    cut: bool
    """There is more of it."""


class Opening(Answer):
    """How a session is opened."""

    said: str
    """The command, and what is to be known of it; or why there is none."""
    command: str | None
    """The command alone, without a password."""
    link: str | None = None
    """Where a browser shows it."""
    why: str | None = None
    """Why there is no link."""


class Timeline(_Picture):
    """Every run, as columns."""

    epoch: float
    """Seconds since 1970 from which `begin` counts."""
    at: float
    """Seconds since 1970 to which runs reach that go on: then this was made, or no daemon wrote any more."""
    issues: list[str]
    states: list[str]
    agents: list[str]
    run: list[str]
    issue: list[int]
    state: list[int]
    agent: list[int]
    begin: list[int]
    held: list[int]
    """Seconds, each: how long the issue had waited when the run was planned, how long it took until it began, how long
    it worked, and how long that was verified."""
    starting: list[int]
    length: list[int]
    verified: list[int]


# --- the rest -----------------------------------------------------------------------------------------------------


class From(Given):
    """From when on."""

    since: Since | None = None
    """A time (18:00), a span (12h), a date or both; by default as the command has it."""


class Line(Answer):
    """A line of the report."""

    text: str
    issue: str | None
    at: str | None
    seqs: list[int]
    """The records that it rests on."""


class CostLine(Line):
    """A line of the report about what a provider's runs cost."""

    provider: str | None
    runs: int
    tokens: int
    cost: float


class Report(_Picture):
    """What became of the night, as `ashep report --json` has it."""

    since: str
    until: str
    sections: dict[str, list[Line | CostLine]]
    closes: dict[str, int]


class WhichUsage(From):
    """What is counted, and how."""

    by: Literal["provider", "issue", "phase", "agent", "day"] = "provider"


assert set(KINDS) == {"provider", "issue", "phase", "agent", "day"}


class UsageRow(Used):
    """What runs of one name used."""

    name: str | None


class Usage(_Picture):
    """What runs used, as `ashep usage --json` has it."""

    by: str
    since: str | None
    rows: list[UsageRow]
    total: Used


class Phase(Answer):
    """A box of a policy."""

    name: str
    kind: Literal["agent", "human", "end"]
    capabilities: list[str]
    issues: int | None
    findings: list[str]


class Move(Answer):
    """What leads from one box to another."""

    source: str
    move: str
    target: str
    kind: str
    findings: list[str]


class Finding(Answer):
    """What a check of the policy found."""

    code: str
    severity: str
    phase: str | None
    message: str


class Policy(_Picture):
    """A policy with how many issues are where, as `ashep policy graph --format json --live` has it."""

    policy: str
    phases: list[Phase]
    edges: list[Move]
    findings: list[Finding]


class WhichMoment(Given):
    """Which moment is told."""

    at: Since
    """A time (03:00), a span (12h), a date or both."""
    issue: TicketId | None = None
    """An issue that is to be told of, too."""


class Then(_Picture):
    """How everything stood at a moment, in the words of `now` and of policies."""

    at: str
    last: str | None
    """When the last record until then was written."""
    kept_from: str | None
    """From when on the journal tells; null: there is none."""
    ready: bool
    """Whether the moment can be told by now; else checkpoints of the journal are still being made."""
    progress: float
    """How much of that is done, of 1."""
    counts: dict[State, int] | None
    """Null: the journal does not say, or not yet."""
    waiting: list[Issue]
    running: list[Issue]
    policies: list[Policy]
    """Those that were in force."""
    issue: Issue | None
    """The one that was asked for, if it was known."""


class Record(Answer):
    """A record of the journal."""

    seq: int
    at: str
    kind: str
    type: str
    issue: str | None
    run: str | None
    body: dict[str, Any]


class OneRecord(_Picture):
    """One record."""

    record: Record


class Records(_Picture):
    """Records, in order."""

    next: int | None
    items: list[Record]


class WhichRecords(Given):
    """Which records are listed."""

    issue: TicketId | None = None
    after: Seq = 0
    limit: Limit = 100


class Changed(Answer):
    """The data of an event `changed`."""

    seq: int
    issues: list[str] | None
    """Those that records since are about; null: ask for everything again."""


# --- coming in ----------------------------------------------------------------------------------------------------


class Code(Given):
    """What `ashep ui` put into the link."""

    code: Annotated[str, Field(min_length=1, max_length=200)]


class Entered(Answer):
    """Who came in."""

    token: str
    """For `Authorization: Bearer …`, until nobody has asked with it for twelve hours."""
    person: str
    """The name under which answers are written."""


class Left(Answer):
    """The session has ended."""

    left: bool = True
