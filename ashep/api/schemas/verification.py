"""Requests and answers of the service: the OpenAPI document is made of these."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from ashep.core.facts.delivery import Cause, CheckStatus, Status
from ashep.core.policy.checks import Criteria

TICKET = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$"
KEY = r"^[!-~]{1,200}$"
TITLE = r"^[^\x00-\x20\x7f][^\x00-\x1f\x7f]*$"
BRANCH = r"^[A-Za-z0-9][A-Za-z0-9._/+@%#=-]{0,199}$"

LONGEST_TEXT = 60_000
"""Characters of an issue's acceptance criteria."""

LONGEST_TITLE = 500
"""Characters of an issue's title."""

AcceptanceText = Annotated[str, Field(max_length=LONGEST_TEXT)]
"""An issue's acceptance criteria."""

Title = Annotated[str, Field(min_length=1, max_length=LONGEST_TITLE, pattern=TITLE)]
"""An issue's title."""

Description = Annotated[str, Field(max_length=LONGEST_TEXT, pattern=r"^[^\x00]*$")]
"""An issue's description."""

Priority = Annotated[int, Field(ge=0, le=4)]
"""An issue's priority in bd."""

Standing = Literal["pending", "passing", "failing", "blocked", "unverified"]
"""pending: its work was not looked into yet · unverified: it was closed so, or there was nothing to check in it."""

TicketId = Annotated[str, Field(pattern=TICKET)]
"""The id of an issue."""


class Given(BaseModel):
    """What is asked for."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)


class Answer(BaseModel):
    """What is answered."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Verify(Given):
    """What is to be verified."""

    ticket_id: TicketId
    """The issue whose checks are executed."""
    branch_name: Annotated[str, Field(pattern=BRANCH)] | None = None
    """The branch, whose tip is the candidate; without it the one on which ashep works on the issue."""
    repo_url: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    """The repository: the project's path, or one that `verification.repositories` names; without it the project, or the
    only one that is named there."""


class Checks(Given):
    """A list of checks, as the block in an issue's acceptance criteria has it."""

    checks: Annotated[list[dict[str, Any]], Field(max_length=100)]
    """The checks; see docs/guides/criteria.md."""


class Edit(Given):
    """What is to stand on an issue, at least one of these; what is not given (or null) stays as it is."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    title: Title | None = None
    """What is to be done: one line."""
    description: Description | None = None
    """Words for whoever does it."""
    priority: Priority | None = None
    """0 goes first."""
    acceptance_criteria: AcceptanceText | Checks | None = None
    """The whole text; or a list of checks, which takes the place of the block that stands there."""

    @model_validator(mode="after")
    def _something(self) -> Self:
        if all(one is None for one in (self.title, self.description, self.priority, self.acceptance_criteria)):
            names = "title, description, priority, acceptance_criteria"
            raise PydanticCustomError("nothing", "nothing is to change: give one of {names}", {"names": names})
        return self


class NewTicket(Given):
    """An issue that is to be created."""

    title: Title
    """What is to be done: one line."""
    description: Description = ""
    """Words for whoever does it."""
    type: Literal["task", "bug", "feature", "chore", "epic", "story", "spike", "decision", "milestone"] = "task"
    """Its type in bd."""
    priority: Priority = 2
    """0 goes first."""
    acceptance_criteria: AcceptanceText | Checks = ""
    """The whole text; or a list of checks."""


class Listing(Given):
    """Which issues are listed."""

    status: Literal["open", "in_progress", "blocked", "deferred", "closed", "all"] | None = None
    """Those with this status in bd; without it those that are not closed."""


class CheckAnswer(Answer):
    """What one check found."""

    check_id: str
    type: str
    status: CheckStatus
    message: str
    duration_ms: int
    output: str
    """What it printed, capped and without secrets."""
    proves_nothing: bool
    """It passed on the base, before the work, too."""
    cause: Cause
    """Why it likely failed, where the machine is to blame; empty: that is not known."""
    on_base: bool
    """It failed on the base, before the work, too: no work is to blame."""


class SummaryAnswer(Answer):
    """Results, counted; one that could not run counts as failed."""

    total: int
    passed: int
    failed: int
    skipped: int


class VerificationAnswer(Answer):
    """What the checks of an issue found in one tree."""

    ticket_id: str
    verification_status: Status
    checks: tuple[CheckAnswer, ...]
    summary: SummaryAnswer
    commit: str
    tree: str
    """The git tree: what was verified, whatever commit brings it."""
    base: str | None
    """The commit before the work; null: not known."""
    criteria: str
    """The hash of the checks that were executed."""
    changed: bool | None
    """Whether the commit differs from its base; null: that is not known."""
    isolated: bool | None
    """Whether the programs of checks ran in a sandbox; null: no program ran."""


class Entry(Answer):
    """A verification of an issue, as it is kept in its metadata."""

    at: str
    status: Status
    branch: str
    commit: str
    tree: str
    criteria: str
    passed: int
    failed: int
    skipped: int
    failures: tuple[str, ...]
    """Checks that failed or could not run, the first ten."""
    n: int
    """Its number; those that are missing were dropped for newer ones."""
    action: Literal["escalated"] | None = None
    """A person was asked what is to become of it; null: it is a verification."""
    reason: str | None = None
    """Why: `max_verification_attempts`, `base_failure` (no work is to blame), or `nothing_changed` since the attempt
    before."""
    attempts: int | None = None
    """How often the work had fallen short then."""


class LastCheck(Answer):
    """What a check said when the issue was last verified."""

    check_id: str
    status: CheckStatus
    message: str
    duration_ms: int


class RowAnswer(Answer):
    """An issue, and what its last verification came to."""

    ticket_id: str
    title: str
    status: str
    """Its status in bd."""
    verification_status: Standing


class TicketsAnswer(Answer):
    """Issues."""

    tickets: tuple[RowAnswer, ...]


class _OfTicket(Answer):
    ticket_id: str
    verification_status: Standing
    """What its last verification came to."""
    current: bool | None
    """Whether that was with the checks that stand there now; null: there was none."""
    running: bool
    """Whether it is verified right now."""


class StatusAnswer(_OfTicket):
    """How an issue stands."""

    checks: tuple[LastCheck, ...]
    """What each check said when it was last verified: those that did not pass, and others while there is room for them
    in bd's metadata."""
    failed_attempts: tuple[Entry, ...]
    """The verifications among the last ten that did not pass, the oldest first, also while work goes on."""


class HistoryAnswer(_OfTicket):
    """How an issue stands, and how it came to that."""

    verification_log: tuple[Entry, ...]
    """Verifications, the oldest first."""


class TicketAnswer(_OfTicket):
    """An issue and its checks."""

    title: str
    description: str
    priority: int
    status: str
    acceptance_criteria: str
    criteria: str | None
    """The hash of its checks; null: there are none, or they are wrong."""
    checks: Criteria | None
    problems: tuple[str, ...]
    """What is wrong with them, each with its line and key."""


class HealthAnswer(Answer):
    """The service answers."""

    status: Literal["ok"] = "ok"
    version: str


class ProblemAnswer(Answer):
    """Why something was not done (RFC 9457)."""

    type: Literal["about:blank"] = "about:blank"
    title: str
    status: int
    detail: str
    errors: tuple[str, ...] = ()
    """Every mistake, where there are several."""
    progress: float | None = None
    """How far the journal is read, from 0 to 1, where the answer must wait for that."""
