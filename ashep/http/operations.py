"""Endpoints: one table, of which the routes and the OpenAPI document are made."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

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

PROBLEM = "application/problem+json"
"""The media type of a problem."""

_ALWAYS = (500,)
_WITH_TOKEN = (401,)


def document() -> dict[str, Any]:
    """Make the OpenAPI document of the table and the models: nothing of it is written twice."""
    wanted: list[tuple[type[BaseModel], JsonSchemaMode]] = [(models.ProblemAnswer, "serialization")]
    for one in OPERATIONS:
        wanted.append((one.answer, "serialization"))
        if one.body is not None:
            wanted.append((one.body, "validation"))
    places, definitions = models_json_schema(wanted, ref_template="#/components/schemas/{model}")
    paths: dict[str, dict[str, Any]] = {}
    for one in OPERATIONS:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, places)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Agent Shepherd: verification", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": definitions.get("$defs", {}),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(one: Operation, places: Mapping[Any, Any]) -> dict[str, Any]:
    statuses = sorted({*one.problems, *_ALWAYS, *(() if one.open else _WITH_TOKEN)})
    problem = places[models.ProblemAnswer, "serialization"]
    answers: dict[str, Any] = {
        str(one.status): _content("What was asked for.", "application/json", places[one.answer, "serialization"])
    }
    answers |= {str(status): _content(HTTPStatus(status).phrase, PROBLEM, problem) for status in statuses}
    described: dict[str, Any] = {"operationId": one.name, "summary": one.what, "responses": answers}
    if one.parameter is not None:
        schema = {"type": "string", "pattern": models.TICKET}
        described["parameters"] = [{"name": one.parameter, "in": "path", "required": True, "schema": schema}]
    if one.query is not None:
        asked = one.query.model_json_schema()["properties"]
        described["parameters"] = [{"name": name, "in": "query", "schema": schema} for name, schema in asked.items()]
    if one.status == HTTPStatus.CREATED:
        schema = {"type": "string", "pattern": models.KEY}
        described["parameters"] = [{"name": "Idempotency-Key", "in": "header", "schema": schema}]
    if one.body is not None:
        body = {"application/json": {"schema": places[one.body, "validation"]}}
        described["requestBody"] = {"required": True, "content": body}
    if one.open:
        described["security"] = []
    return described


def _content(what: str, media: str, schema: Any) -> dict[str, Any]:
    return {"description": what, "content": {media: {"schema": schema}}}
