"""What the page and programs are shown: JSON of the views, each answer with the `seq` of the journal that it is of."""

from typing import Annotated, Literal

from pydantic import Field

from ashep.api.schemas.verification import Answer, Given, TicketId
from ashep.store import row_types
from ashep.views import json_types
from ashep.views.json_types import State
from ashep.views.lists import MOST
from ashep.views.project import ProjectJson
from ashep.views.usage import KINDS

Name = Annotated[str, Field(min_length=1, max_length=200)]
Since = Annotated[str, Field(min_length=1, max_length=40)]
Limit = Annotated[int, Field(ge=1, le=MOST)]
Seq = Annotated[int, Field(ge=0, le=2**53)]

# --- where issues stand -------------------------------------------------------------------------------------------


class _Moment(json_types.PicturedJson):
    at: str


class Now(_Moment, json_types.DashboardJson):
    """What a person looks at first."""

    policies: list[str]
    project: ProjectJson


class WhichIssues(Given):
    """Which issues are listed."""

    state: State | None = None
    phase: Name | None = None
    policy: Name | None = None
    q: Annotated[str, Field(max_length=200)] = ""
    """Words that stand in an id or a title."""
    after: Annotated[str, Field(max_length=300)] | None = None
    """The `next` of the page before."""
    limit: Limit = 100


class IssueStory(json_types.PicturedJson):
    """An issue: why it is where it is, and what there is of its work."""

    issue: json_types.IssueJson
    depends_on: list[json_types.DependencyJson]
    kept_since: str | None
    """From when on the story goes; null: from its beginning."""
    story: list[json_types.SentenceJson]
    under_way: list[str]
    verification: row_types.VerificationJson | None
    verification_log: list[row_types.LookedIntoJson]
    files: row_types.FilesJson | None
    flags: list[str]
    landing: row_types.LandingJson | None
    usage: json_types.UsedJson
    answered: json_types.GivenAnswerJson | None
    """The last answer of a person that the daemon has followed."""


class IssueTexts(Answer):
    """What an issue asks for, in the words of the tracker."""

    error: str | None
    """Why they cannot be read."""
    description: str = ""
    acceptance: str = ""
    design: str = ""
    notes: str = ""


class IssueWork(json_types.PicturedJson):
    """What was asked of agents, and what they say they did."""

    words: IssueTexts
    summaries: list[json_types.RunReportJson]
    """Of the last runs, the newest first."""


# --- runs ---------------------------------------------------------------------------------------------------------


class WhichRuns(Given):
    """Which runs are listed."""

    issue: TicketId | None = None
    state: Name | None = None
    agent: Name | None = None
    q: Annotated[str, Field(max_length=200)] = ""
    """Words that stand in its id."""
    before: Seq | None = None
    """The `next` of the page before."""
    limit: Limit = 100


class TurnRead(json_types.TurnJson):
    """A turn of a run that has ended."""

    answered: bool
    """Whether its words are kept."""


class Run(json_types.PicturedJson):
    """Everything that is known of a run."""

    run: json_types.RunJson
    choice: json_types.ChoiceJson | None
    """Why this agent, and why not the others."""
    prompts: list[json_types.PromptSentJson]
    turns: list[TurnRead]
    rejected: list[json_types.RejectedJson]
    commits: list[str]
    verified: list[json_types.VerifiedJson]


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


# --- the rest -----------------------------------------------------------------------------------------------------


class From(Given):
    """From when on."""

    since: Since | None = None
    """A time (18:00), a span (12h), a date or both; by default as the command has it."""


class Report(json_types.PicturedJson, json_types.NightReportJson):
    """What became of the night, as `ashep report --json` has it."""


class WhichUsage(From):
    """What is counted, and how."""

    by: Literal["provider", "issue", "phase", "agent", "day"] = "provider"


assert set(KINDS) == {"provider", "issue", "phase", "agent", "day"}


class Usage(json_types.PicturedJson, json_types.UsageTableJson):
    """What runs used, as `ashep usage --json` has it."""


class OneRecord(json_types.PicturedJson):
    """One record."""

    record: json_types.RecordJson


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


class ProjectRow(Answer):
    """A project of this machine."""

    name: str
    folder: str | None
    """Null: this device is not told."""
    current: bool
    """It is the one that answers."""
    works: bool
    """Its daemon runs."""
    waiting: int | None
    """Issues that wait for a person; null: that cannot be read, by this version."""
    running: int | None
    url: str | None = None
    """Where its page is, on this machine; null: none runs, or it is this one."""


class ProjectList(Answer):
    """Projects whose daemon or page this user runs, those first where most waits."""

    projects: tuple[ProjectRow, ...]


class Doubt(Given):
    """Who has a token asks a server that was away for a proof before sending it: anybody could have taken its port."""

    name: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """SHA-256, in hex, of the SHA-256, in hex, of the token."""
    nonce: Annotated[str, Field(min_length=16, max_length=200)]


class ServerProof(Answer):
    """What only who knows the token's hash can say."""

    proof: str | None
    """HMAC-SHA-256, in hex, of the nonce, by the token's SHA-256, in hex; null: no session has this token."""


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
