"""JSON that is shown, a TypedDict an object: commands print these, the API and the types of the page are made of them.

The keys stand in the order in which the API gives them. It imports pydantic, so the views know it by name alone.
"""

from typing import Annotated, Literal, NotRequired

from pydantic import GetPydanticSchema, SerializeAsAny, SkipValidation, with_config
from typing_extensions import TypedDict

from ashep.core.analysis.issue_status import State
from ashep.core.runs.run_record import RunRecord
from ashep.store.row_types import (
    BudgetLimitJson,
    CheckJson,
    DaemonJson,
    FilesJson,
    LandingJson,
    LookedIntoJson,
    QuestionJson,
    VerificationJson,
    doc,
)
from ashep.views import Data

RunJson = Annotated[Data, GetPydanticSchema(lambda _, handler: handler(SkipValidation[SerializeAsAny[RunRecord]]))]
"""A run, as the database and runs.jsonl have it: a `RunRecord` that was written as JSON, and is not read again."""


@with_config(extra="forbid", use_attribute_docstrings=True)
class PicturedJson(TypedDict):
    """A picture of the journal, of one moment."""

    seq: Annotated[int, doc("The number of the last record of the journal that this is a picture of.")]


# --- where issues stand -------------------------------------------------------------------------------------------


class CountedJson(TypedDict):
    """Results of checks, counted; one that could not run counts as failed."""

    total: int
    passed: int
    failed: int
    skipped: int


class ProofJson(TypedDict):
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
    summary: CountedJson


class WorkChangesJson(TypedDict):
    """What the work changes."""

    files: int
    added: int | None
    """Lines; null: nobody counted."""
    removed: int | None


class IssueJson(TypedDict):
    """An issue, and its state."""

    issue: str
    title: str
    state: State
    code: str
    reason: str
    since: str | None
    due: str | None
    phase: str | None
    policy: str | None
    run: Annotated[str | None, doc("The run that works on it.")]
    type: str
    priority: int
    tracker_status: str
    question: QuestionJson | None
    waits_for: Annotated[int, doc("How many issues it depends on.")]
    cycle: int
    runs: int
    verification: ProofJson | None
    flags: list[str]
    changes: WorkChangesJson | None
    landing: LandingJson | None


class GivenAnswerJson(TypedDict):
    """An answer of a person: approved, changes_requested, or (words) answered."""

    answer: str
    by: str
    at: str


class StatusIssueJson(IssueJson):
    """An issue of the status."""

    answer: GivenAnswerJson | None


class StatusJson(TypedDict):
    """The state of every known issue, as `ashep status --json` has it."""

    daemon: DaemonJson
    issues: list[StatusIssueJson]


class UsedJson(TypedDict):
    """What runs used."""

    runs: int
    tokens: int
    cost: float


class WaitingJson(IssueJson):
    """An issue that waits for a person."""

    used: UsedJson


class AtWorkJson(TypedDict):
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


class RunningJson(WaitingJson):
    """An issue that is worked on."""

    at_work: AtWorkJson | None


class FirstJson(TypedDict):
    """How many issues stand how, and those that wait for a person or run."""

    counts: dict[State, int]
    waiting: list[IssueJson]
    running: list[IssueJson]


class DashboardJson(TypedDict):
    """What a person looks at first."""

    daemon: DaemonJson
    counts: dict[State, int]
    waiting: list[WaitingJson]
    running: list[RunningJson]


class IssuesJson(PicturedJson):
    """Issues, those whose standing changed last first."""

    total: int
    next: str | None
    """Where the next page goes on; null: this is the last."""
    items: list[IssueJson]


# --- an issue -----------------------------------------------------------------------------------------------------


class SentenceJson(TypedDict):
    """A line of an issue's story."""

    seq: int
    at: str
    type: str
    fact: str
    reason: str
    trace: int
    decision: bool
    """Whether it is one of ashep's."""


class DependencyJson(TypedDict):
    """An issue that this one depends on."""

    issue: str
    type: str
    state: State | None


class EvidenceJson(TypedDict):
    """What is known of an issue's work, and of its way to the base."""

    verification: VerificationJson | None
    verification_log: list[LookedIntoJson]
    files: FilesJson | None
    flags: list[str]
    landing: LandingJson | None


class StandingJson(TypedDict):
    """The state of an issue, and what is under way for it."""

    state: State
    code: str
    reason: str
    since: str | None
    phase: str | None
    policy: str | None
    run: str | None
    due: str | None
    under_way: list[str]


class StoryJson(EvidenceJson):
    """Why an issue is where it is, as `ashep why --json` has it."""

    issue: str
    title: str
    depends_on: list[DependencyJson]
    kept_since: str | None
    """From when on the story goes; null: from its beginning."""
    story: list[SentenceJson]
    now: StandingJson


# --- runs ---------------------------------------------------------------------------------------------------------


class RunsJson(PicturedJson):
    """Runs, the newest first."""

    total: int
    states: dict[str, int]
    """How many there would be, were this state asked for in place of what is; the same of agents."""
    agents: dict[str, int]
    next: int | None
    items: list[RunJson]


class AskedJson(TypedDict):
    """A question to a person, and the answer."""

    seq: int
    at: str
    phase: str
    question: str
    answer: str | None
    by: str | None
    answered: str | None


class DeliveryStepJson(TypedDict):
    """Checks that failed after a run, or a step of the landing."""

    seq: int
    at: str
    phase: Literal["checks", "landing"]
    passed: bool
    result: str
    detail: str


class StepJson(TypedDict):
    """What led from one step to the next; questions and steps of the delivery are named `#` and their number."""

    source: str
    target: str
    kind: Literal["next", "retry", "back", "cycle"]
    why: str


class CourseJson(PicturedJson):
    """An issue's runs, questions to people and steps of the delivery, and what led from each to the next."""

    runs: list[RunJson]
    asked: list[AskedJson]
    delivery: list[DeliveryStepJson]
    edges: list[StepJson]


class RunReportJson(TypedDict):
    """What an agent says of its run."""

    run: str
    phase: str
    agent: str
    ended_at: str | None
    result: Annotated[str, doc("Its verdict, where it gave one.")]
    summary: str


class OtherJson(TypedDict):
    """An agent that was not chosen."""

    agent: str
    why: str


class OneModelJson(TypedDict):
    """A provider's model."""

    provider: str
    model: str


class ChoiceJson(TypedDict):
    """Why an agent was chosen."""

    agent: str
    why: str
    others: list[OtherJson]
    slug: str | None
    model: OneModelJson | None
    capabilities: list[str]
    timeout: str


class ResultJson(CheckJson):
    """What a check found, and where that lies."""

    output: str
    """The blob of what it printed; empty: it printed nothing."""


class VerifiedJson(TypedDict):
    """What checks found in what a run left."""

    at: str
    commit: str | None
    tree: str | None
    changed: bool | None
    isolated: bool | None
    results: list[ResultJson]


class PromptSentJson(TypedDict):
    """A prompt of a run."""

    n: int
    sent: str | None


class PromptJson(PromptSentJson):
    """A prompt of a run, and where its text lies."""

    blob: str
    file: str
    text: NotRequired[str | None]


class TurnJson(TypedDict):
    """A turn of a run that has ended."""

    n: int
    at: str
    error: str | None
    provider: str | None
    model: str | None
    tokens: int | None
    cost: float | None


class TurnAnswerJson(TurnJson):
    """A turn of a run that has ended, and where its words lie."""

    answer: str | None


class RejectedJson(TypedDict):
    """An outcome that could not be used."""

    at: str
    n: int
    why: str
    then: str


class RunStoryJson(TypedDict):
    """Everything that is known of a run, as `ashep show --json` has it."""

    run: RunJson
    choice: ChoiceJson | None
    """Why this agent, and why not the others."""
    prompts: list[PromptJson]
    turns: list[TurnAnswerJson]
    rejected: list[RejectedJson]
    commits: list[str]
    verified: list[VerifiedJson]


class TimelineJson(PicturedJson):
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


class LineJson(TypedDict):
    """A line of the report."""

    text: str
    issue: str | None
    at: str | None
    seqs: Annotated[list[int], doc("The records that it rests on.")]
    summary: Annotated[str | None, doc("What the agent that worked on the issue last says it did, in a sentence.")]


class CostLineJson(LineJson):
    """A line of the report about what a provider's runs cost."""

    provider: str | None
    runs: int
    tokens: int
    cost: float


class NightReportJson(TypedDict):
    """What became of the night, as `ashep report --json` has it."""

    since: str
    until: str
    sections: dict[str, list[LineJson | CostLineJson]]
    closes: dict[str, int]
    journal: Annotated[str, doc("The head of the journal's chain, `SEQ:HASH`; empty: there is none.")]


class UsageRowJson(UsedJson):
    """What runs of one name used."""

    name: str | None


class UsageTableJson(TypedDict):
    """What runs used, as `ashep usage --json` has it."""

    by: str
    since: str | None
    rows: list[UsageRowJson]
    total: UsedJson


class DayRowJson(UsageRowJson):
    """What runs on a provider used on a day."""

    day: str


class DaysJson(PicturedJson):
    """What runs used, by day and provider."""

    rows: list[DayRowJson]


class LimitJson(BudgetLimitJson):
    """A limit of `budgets`, as the daemon has it."""

    reached: bool
    holds: list[str]
    """Issues that it keeps from going on, the first hundred."""
    held: int
    """How many these are."""


class BudgetsJson(PicturedJson):
    """Every limit."""

    limits: list[LimitJson]


class PhaseJson(TypedDict):
    """A box of a policy."""

    name: str
    kind: Literal["agent", "human", "end"]
    capabilities: list[str]
    issues: int | None
    findings: list[str]
    states: dict[State, int] | None
    """How many of the issues there are in which state."""


class MoveJson(TypedDict):
    """What leads from one box to another."""

    source: str
    move: str
    target: str
    kind: str
    findings: list[str]
    taken: int | None
    """How often issues went along it, as far as records are kept."""


class FindingJson(TypedDict):
    """What a check of the policy found."""

    code: str
    severity: str
    phase: str | None
    message: str


class LivePolicyJson(TypedDict):
    """A policy with how many issues are where."""

    policy: str
    phases: list[PhaseJson]
    edges: list[MoveJson]
    findings: list[FindingJson]


class RecordJson(TypedDict):
    """A record of the journal."""

    seq: int
    at: str
    kind: str
    type: str
    issue: str | None
    run: str | None
    body: Data


class RecordsJson(PicturedJson):
    """Records, in order."""

    next: int | None
    items: list[RecordJson]


# --- a moment -----------------------------------------------------------------------------------------------------


class PolicyJson(PicturedJson, LivePolicyJson):
    """A policy with how many issues are where, as `ashep policy graph --format json --live` has it."""


class ThenJson(PicturedJson):
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
    waiting: list[IssueJson]
    running: list[IssueJson]
    policies: list[PolicyJson]
    """Those that were in force."""
    issue: IssueJson | None
    """The one that was asked for, if it was known."""
