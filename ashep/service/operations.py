"""The endpoints: one table, of which the routes and the OpenAPI document are made."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from ashep import __version__
from ashep.service import models
from ashep.service.tickets import Tickets

Carry = Callable[[Tickets, str, Any], Awaitable[BaseModel]]
"""Does what is asked, of the issue that stands in the path, with what stands in the body."""


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
    problems: tuple[int, ...] = ()
    """Statuses of problems, beside those that every endpoint can have."""
    open: bool = False
    """Whether it is answered without a token."""

    @property
    def parameter(self) -> str | None:
        """The name of the part of the path that is an issue."""
        return self.path.partition("{")[2].partition("}")[0] or None


async def _verify(tickets: Tickets, _: str, body: models.Verify) -> BaseModel:
    return await tickets.verify(body.ticket_id, body.branch_name, body.repo_url)


async def _status(tickets: Tickets, issue: str, _: None) -> BaseModel:
    return await tickets.status(issue)


async def _health(_: Tickets, __: str, ___: None) -> BaseModel:
    return models.HealthAnswer(version=__version__)


async def _ticket(tickets: Tickets, issue: str, _: None) -> BaseModel:
    return await tickets.ticket(issue)


async def _edit(tickets: Tickets, issue: str, body: models.Edit) -> BaseModel:
    return await tickets.edit(issue, body.acceptance_criteria)


async def _history(tickets: Tickets, issue: str, _: None) -> BaseModel:
    return await tickets.history(issue)


OF_BODIES = (400, 408, 413, 415, 422)
"""Statuses of problems with a body."""

OPERATIONS = (
    Operation(
        "POST", "/verify", "verify", "Carry out the checks of an issue on the tip of a branch; wait for the result.",
        models.VerificationAnswer, _verify, models.Verify, (403, 404, 409, 502, 503, 504, *OF_BODIES),
    ),
    Operation(
        "GET", "/status/{ticket_id}", "status", "How an issue stands after its last verification.",
        models.StatusAnswer, _status, problems=(404, 503),
    ),
    Operation("GET", "/health", "health", "Whether the service answers.", models.HealthAnswer, _health, open=True),
    Operation(
        "GET", "/tickets/{id}", "ticket", "An issue, its acceptance criteria, and the checks in them.",
        models.TicketAnswer, _ticket, problems=(404, 503),
    ),
    Operation(
        "PUT", "/tickets/{id}", "edit", "Replace an issue's acceptance criteria, or the checks in them.",
        models.TicketAnswer, _edit, models.Edit, (404, 503, *OF_BODIES),
    ),
    Operation(
        "GET", "/tickets/{id}/verification", "history", "The verifications of an issue, the last ten.",
        models.HistoryAnswer, _history, problems=(404, 503),
    ),
)  # fmt: skip
