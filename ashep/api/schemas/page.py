"""What the page and programs are shown: answers of `pictures`, each with the `seq` of the journal that it is of."""

from typing import Annotated, Any, Literal

from pydantic import Field

from ashep.api.schemas.daemon import Daemon
from ashep.api.schemas.evidence import Files, Result, Verification
from ashep.api.schemas.verification import Answer, Given, LookedInto, TicketId
from ashep.core.analysis.answer_preview import Reply
from ashep.core.runs.run_record import RunRecord
from ashep.views.lists import MOST
from ashep.views.usage import KINDS

State = Literal["person", "running", "time", "parked", "not_eligible", "closed"]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Since = Annotated[str, Field(min_length=1, max_length=40)]
Limit = Annotated[int, Field(ge=1, le=MOST)]
Seq = Annotated[int, Field(ge=0, le=2**53)]


class Pictured(Answer):
    """A picture of the journal, of one moment."""

    seq: int
    """The number of the last record of the journal that this is a picture of."""


# --- where issues stand -------------------------------------------------------------------------------------------


class Way(Answer):
    """Where an answer leads, by the rules of the core as they are now."""

    answer: Reply
    kind: Literal["phase", "person", "close", "park", "run"]
    """run: the run that asked goes on."""
    target: str
    visit: int | None
    """The how manieth of the phase that would be."""
    times: int | None
    """The how manieth of its cycle, which may have `most`."""
    most: int | None
    afresh: bool
    """A cycle begins with it: limits and visits count from one."""
    onto: str | None
    """The branch that the work is to land on."""
    by_pull_request: bool
    why: str | None
    """Of parking."""


class Question(Answer):
    """What a person is asked."""

    phase: str
    text: str
    kind: Literal["approval", "input"]
    """approval: a yes or no · input: words, for a run that waits in its session, or for the phase that asks."""
    about: Literal["phase", "proof", "change", "base", "permission", "question"]
    """Of an approval what it is about: a phase of the policy; whether work passes that falls short (proof); whether it
    lands (change). Of an input: leave to use a tool, or a question of a run, or (phase) of an agent that has ended."""
    options: list[str]
    """What an agent offers as answers; another text answers it, too."""
    several: bool
    """More than one option may be chosen, with commas."""
    asked: str | None
    follows: list[Way]


class Counted(Answer):
    """Results of checks, counted; one that could not run counts as failed."""

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
    on_base: list[str]
    """Checks that fail before any work, too, each with the likely cause in words."""
    summary: Counted


class Changes(Answer):
    """What the work changes."""

    files: int
    added: int | None
    """Lines; null: nobody counted."""
    removed: int | None


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
    changes: Changes | None
    landing: Landing | None


class Used(Answer):
    """What runs used."""

    runs: int
    tokens: int
    cost: float


class Waiting(Issue):
    """An issue that waits for a person."""

    used: Used


class AtWork(Answer):
    """A run that is under way."""

    run: str
    agent: str
    runner: str
    provider: str | None
    model: str | None
    planned_at: str
    started_at: str | None
    tokens: int
    cost: float
    last: str | None
    """When a record last told of it."""
    deadline: str | None
    """When it is stopped."""


class Running(Waiting):
    """An issue that is worked on."""

    at_work: AtWork | None


class Now(Pictured):
    """What a person looks at first."""

    at: str
    daemon: Daemon
    counts: dict[State, int]
    waiting: list[Waiting]
    running: list[Running]
    policies: list[str]


class Issues(Pictured):
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
    decision: bool
    """Whether it is one of ashep's."""


class Dependency(Answer):
    """An issue that this one depends on."""

    issue: str
    type: str
    state: State | None


class IssueStory(Pictured):
    """An issue: why it is where it is, and what there is of its work."""

    issue: Issue
    depends_on: list[Dependency]
    kept_since: str | None
    """From when on the story is told; null: from its beginning."""
    story: list[Sentence]
    under_way: list[str]
    verification: Verification | None
    verification_log: list[LookedInto]
    files: Files | None
    flags: list[str]
    landing: Landing | None
    usage: Used


# --- runs ---------------------------------------------------------------------------------------------------------


class Runs(Pictured):
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


class Course(Pictured):
    """An issue's runs, what people were asked between them, and what led from each to the next."""

    runs: list[RunRecord]
    asked: list[Asked]
    edges: list[Step]


class Other(Answer):
    """An agent that was not chosen."""

    agent: str
    why: str


class OneModel(Answer):
    """A provider's model."""

    provider: str
    model: str


class Choice(Answer):
    """Why an agent was chosen."""

    agent: str
    why: str
    others: list[Other]
    slug: str | None
    model: OneModel | None
    capabilities: list[str]
    timeout: str


class Verified(Answer):
    """What checks found in what a run left."""

    at: str
    commit: str | None
    tree: str | None
    changed: bool | None
    isolated: bool | None
    results: list[Result]


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


class Run(Pictured):
    """Everything that is known of a run."""

    run: RunRecord
    choice: Choice | None
    """Why this agent, and why not the others."""
    prompts: list[PromptSent]
    turns: list[TurnRead]
    rejected: list[Rejected]
    commits: list[str]
    verified: list[Verified]


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


class Timeline(Pictured):
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


class Report(Pictured):
    """What became of the night, as `ashep report --json` has it."""

    since: str
    until: str
    sections: dict[str, list[Line | CostLine]]
    closes: dict[str, int]
    journal: str
    """The head of the journal's chain, `SEQ:HASH`; empty: there is none."""


class WhichUsage(From):
    """What is counted, and how."""

    by: Literal["provider", "issue", "phase", "agent", "day"] = "provider"


assert set(KINDS) == {"provider", "issue", "phase", "agent", "day"}


class UsageRow(Used):
    """What runs of one name used."""

    name: str | None


class Usage(Pictured):
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
    states: dict[State, int] | None
    """How many of the issues there are in which state."""


class Move(Answer):
    """What leads from one box to another."""

    source: str
    move: str
    target: str
    kind: str
    findings: list[str]
    taken: int | None
    """How often issues went along it, as far as records are kept."""


class Finding(Answer):
    """What a check of the policy found."""

    code: str
    severity: str
    phase: str | None
    message: str


class Policy(Pictured):
    """A policy with how many issues are where, as `ashep policy graph --format json --live` has it."""

    policy: str
    phases: list[Phase]
    edges: list[Move]
    findings: list[Finding]


class Record(Answer):
    """A record of the journal."""

    seq: int
    at: str
    kind: str
    type: str
    issue: str | None
    run: str | None
    body: dict[str, Any]


class OneRecord(Pictured):
    """One record."""

    record: Record


class Records(Pictured):
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
    device: str | None
    """The name under which this device is paired, and known after a restart, too; null: it is not."""


class Left(Answer):
    """The session has ended."""

    left: bool = True
