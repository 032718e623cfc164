"""The endpoints: one table, of which the routes and the OpenAPI document are made."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from ashep import __version__
from ashep.http import models
from ashep.http.tickets import Tickets


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that has been read."""

    issue: str
    """The issue that stands in the path; empty: none does."""
    given: Any
    """What stands in the body, or in the query."""
    key: str | None = None
    """By which the same request is known when it is made again."""


Carry = Callable[[Tickets, Asked], Awaitable[BaseModel]]
"""Does what is asked."""


@dataclass(frozen=True, slots=True)
class Operation:
    """An endpoint."""

    method: str
    path: str
    name: str
    what: str
    answer: type[BaseModel]
    carry: Carry
    body: type[BaseModel] | None = None
    query: type[BaseModel] | None = None
    status: int = 200
    """Of the answer; with 201 its place is told."""
    problems: tuple[int, ...] = ()
    """Statuses of problems, beside those that every endpoint can have."""
    open: bool = False
    """Whether it is answered without a token."""

    @property
    def parameter(self) -> str | None:
        """The name of the part of the path that is an issue."""
        return self.path.partition("{")[2].partition("}")[0] or None


async def _health(_: Tickets, __: Asked) -> BaseModel:
    return models.HealthAnswer(version=__version__)


OF_BODIES = (400, 408, 413, 415, 422)
"""Statuses of problems with a body."""

OPERATIONS = (
    Operation(
        "POST", "/verify", "verify", "Carry out the checks of an issue on the tip of a branch; wait for the result.",
        models.VerificationAnswer,
        lambda tickets, asked: tickets.verify(asked.given.ticket_id, asked.given.branch_name, asked.given.repo_url),
        models.Verify, problems=(403, 404, 409, 502, 503, 504, *OF_BODIES),
    ),
    Operation(
        "GET", "/status/{ticket_id}", "status", "How an issue stands after its last verification.",
        models.StatusAnswer,
        lambda tickets, asked: tickets.status(asked.issue),
        problems=(404, 503),
    ),
    Operation("GET", "/health", "health", "Whether the service answers.", models.HealthAnswer, _health, open=True),
    Operation(
        "GET", "/tickets", "list", "Issues, and what their last verifications came to.",
        models.TicketsAnswer,
        lambda tickets, asked: tickets.listed(asked.given.status),
        query=models.Listing, problems=(422, 503),
    ),
    Operation(
        "POST", "/tickets", "create", "Create an issue, with acceptance criteria; once for each Idempotency-Key.",
        models.TicketAnswer,
        lambda tickets, asked: tickets.create(asked.given, asked.key),
        models.NewTicket, status=201, problems=(503, *OF_BODIES),
    ),
    Operation(
        "GET", "/tickets/{id}", "ticket", "An issue, its acceptance criteria, and the checks in them.",
        models.TicketAnswer,
        lambda tickets, asked: tickets.ticket(asked.issue),
        problems=(404, 503),
    ),
    Operation(
        "PUT", "/tickets/{id}", "edit", "Replace words, priority or acceptance criteria of an issue.",
        models.TicketAnswer,
        lambda tickets, asked: tickets.edit(asked.issue, asked.given),
        models.Edit, problems=(404, 503, *OF_BODIES),
    ),
    Operation(
        "GET", "/tickets/{id}/verification", "history", "The verifications of an issue, the last ten.",
        models.HistoryAnswer,
        lambda tickets, asked: tickets.history(asked.issue),
        problems=(404, 503),
    ),
)  # fmt: skip
