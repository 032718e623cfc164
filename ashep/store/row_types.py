"""JSON that rows hold, a TypedDict an object: rows, commands, the API and the types of the page are made of these.

The keys stand in the order in which the API gives them. `ashep.views.json_types` has what no row holds.
"""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from ashep.core.analysis.answer_preview import Reply
from ashep.core.facts.delivery import Cause, CheckStatus, Status
from ashep.core.facts.runs import Allowance
from ashep.core.resources.budgets import Scope, Unit


def doc(text: str) -> Any:
    """Say what a key means that other objects inherit: pydantic reads a docstring for the class alone that has it."""
    return Field(description=text)


# --- an issue -----------------------------------------------------------------------------------------------------


class WayJson(TypedDict):
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


class QuestionJson(TypedDict):
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
    follows: list[WayJson]


class CheckJson(TypedDict):
    """What a check found."""

    check_id: str
    status: CheckStatus
    message: str
    duration_ms: int
    proves_nothing: Annotated[bool, doc("It passed before any work, too.")]
    cause: Annotated[
        Cause,
        doc("Why it likely failed, where the machine is to blame: network, program, submodule, memory, time, setup."),
    ]
    on_base: Annotated[bool, doc("It failed before any work, too, so that no work is to blame.")]


class VerificationJson(TypedDict):
    """The evidence about an issue's work."""

    status: str
    commit: str | None
    tree: str | None
    changed: bool | None
    isolated: bool | None
    """Whether the programs of checks ran in a sandbox; null: none ran."""
    checks: list[CheckJson]
    log: str | None
    waived: list[str]


class LookedIntoJson(TypedDict):
    """A verification of an issue's work."""

    at: str
    status: Status
    branch: str
    commit: str
    tree: str
    criteria: str
    passed: int
    failed: int
    skipped: int
    failures: list[str]
    """Checks that failed or could not run, the first ten."""


class FilesJson(TypedDict):
    """The files that a change touches."""

    created: list[str]
    modified: list[str]
    deleted: list[str]
    more: int
    """How many are not named."""
    lines: list[int] | None
    """Added and removed; null: nobody counted."""


class LandingJson(TypedDict):
    """How far the work is on its way to the base."""

    state: str
    onto: str | None
    commit: str | None
    due: str | None


class RestingTreeJson(TypedDict):
    """When the tree of a closed issue goes by itself, and why it was kept before."""

    branch: str
    due: str | None
    why: str


class IssueBodyJson(TypedDict):
    """The column `body` of an issue."""

    status: str
    type: str
    priority: int
    labels: list[str]
    assignee: str | None
    blocked_by: list[str]
    created_at: str
    stage: str
    cycle: int
    visit: int
    attempt: int
    runs: int
    question: QuestionJson | None
    verification: VerificationJson | None
    verification_log: list[LookedIntoJson]
    flags: list[str]
    files: FilesJson | None
    landing: LandingJson | None
    tree: RestingTreeJson | None
    deadline: str | None


# --- the daemon ---------------------------------------------------------------------------------------------------


class BudgetJson(TypedDict):
    """A limit that was passed and still counts."""

    scope: str
    name: str
    unit: str
    used: float
    limit: float
    reached: bool
    """False: only the share `warn_at`."""
    until: str | None


class BudgetLimitJson(TypedDict):
    """A limit of `budgets`, as the daemon has it."""

    scope: Scope
    name: Annotated[str, doc("The provider and the day, or the day; empty of the others.")]
    unit: Unit
    used: Annotated[float | None, doc("Null: of each run, or issue, its own.")]
    limit: float
    warn_at: Annotated[float, doc("From when on a person is warned.")]
    until: Annotated[str | None, doc("When it begins again.")]


class NoticeJson(TypedDict):
    """A target of `notify` that was not told something."""

    target: str
    error: str
    failures: int
    given_up: int
    since: str | None
    waiting: int
    due: str | None


class RunnerStandsJson(TypedDict):
    """How a runner is."""

    runner: str
    state: str
    detail: str
    since: str | None
    failures: int
    start_after: str | None
    recycling: str | None
    replaced: str
    tracker_replaced: str


class RefusedJson(TypedDict):
    """An edit of the user's files that cannot be used."""

    since: str
    problems: list[str]
    more: int


class OutageJson(TypedDict):
    """A provider that takes nothing."""

    provider: str
    state: Literal["limited", "down", "unauthorized"]
    why: str
    since: str
    until: str | None
    tried: bool
    waiting: int
    """How many issues wait for it."""


class SourceTroubleJson(TypedDict):
    """A source of issues that does not answer."""

    source: str
    reason: str


class QuotaWindowJson(TypedDict):
    """A window of a quota."""

    name: str
    used: float
    """The share that is used: 1 is all of it."""
    resets: str
    status: Allowance | None


class QuotaJson(TypedDict):
    """How much of its quota a login has used, as its provider said last."""

    runner: str
    provider: str
    login: str
    """Where the login comes from; empty: that is not known."""
    status: Allowance
    window: str | None
    """The one that decides the status."""
    resets: str | None
    seen: str
    windows: list[QuotaWindowJson]


class RepositorySeenJson(TypedDict):
    """What was seen of the repository that issues have trees of. By difference."""

    fault: str
    """What keeps every issue from a tree, and what to do; empty: nothing."""
    behind: str
    """How far the base is behind the remote's branch that it follows, as fetched last; empty: it is not."""
    error: str
    """Why that could not be fetched now."""
    merges: list[str]
    """Commits of merged pull requests that others wait for, and that the remote's branch holds."""


# --- known without the journal ---------------------------------------------------------------------------------------


class ServersJson(TypedDict):
    """Agent servers that live."""

    count: int
    bytes: int


class ServersSeenJson(TypedDict, total=False):
    """Agent servers, where any live."""

    servers: ServersJson


class DiskStateJson(TypedDict, total=False):
    """Whether there is room where the state folder lies."""

    disk: Literal["ok", "low"]


class ProcessJson(DiskStateJson, ServersSeenJson):
    """What is known of the daemon without the journal."""

    running: bool
    pid: NotRequired[int]
    since: NotRequired[str | None]
    version: NotRequired[str]
    behind: NotRequired[bool]


class PauseJson(TypedDict):
    """What lets no run start."""

    by: str
    why: str
    since: str
    until: str | None
    """Null: until somebody resumes."""
    provider: str | None
    """Null: all of them."""
    drain: bool


class EndJson(TypedDict, total=False):
    """When and why the last daemon ended, where that is known."""

    ended: str
    why: str


class KeptJson(TypedDict):
    """From where on records are kept."""

    first: int
    since: str | None


class TreesJson(TypedDict):
    """Work trees of closed issues that are kept."""

    kept: int
    next: str | None
    """When the next of them goes."""


class DaemonJson(TypedDict):
    """What is true of everything, as `ashep status --json` has it."""

    running: bool
    pid: NotRequired[int | None]
    since: NotRequired[str | None]
    version: NotRequired[str | None]
    behind: NotRequired[bool]
    """It has not drawn everything yet."""
    ended: NotRequired[str | None]
    why: NotRequired[str | None]
    """Why it ended."""
    disk: NotRequired[Literal["ok", "low"]]
    findings: int
    """Of the last audit."""
    pauses: list[PauseJson]
    budgets: list[BudgetJson]
    """Limits that were passed and still count."""
    notices: list[NoticeJson]
    runners: list[RunnerStandsJson]
    workspace: str | None
    repository: RepositorySeenJson | None
    """None: no daemon runs, or it has not looked yet."""
    edit: RefusedJson | None
    """The last edit of the user's files, where it cannot be used."""
    providers: list[OutageJson]
    """Those that take nothing."""
    sources: list[SourceTroubleJson]
    """Those of issues that do not answer."""
    quotas: list[QuotaJson]
    journal: KeptJson | None
    trees: TreesJson
    servers: NotRequired[ServersJson | None]
