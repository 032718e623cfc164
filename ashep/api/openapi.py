"""Endpoints: what one is, and the OpenAPI document that is made of the table of them (`ashep.api.routes`)."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue

from ashep import __version__
from ashep.api.handlers.actions import ActionHandlers
from ashep.api.handlers.events import Live
from ashep.api.handlers.queries import QueryHandlers
from ashep.api.handlers.tickets import Tickets
from ashep.api.schemas import verification
from ashep.api.sessions import Scope, Session, Sessions

PATTERNS: Mapping[str, str] = {
    "ticket_id": verification.TICKET,
    "id": verification.TICKET,
    "issue": verification.TICKET,
    "run": r"^[A-Za-z][A-Za-z0-9_-]{0,99}\.[1-9][0-9]{0,8}\.[1-9][0-9]{0,8}$",
    "policy": r"^[A-Za-z][A-Za-z0-9_-]{0,63}$",
    "seq": r"^[0-9]{1,15}$",
    "n": r"^[1-9][0-9]{0,5}$",
}
"""What the parts of a path look like, by their names."""


@dataclass(frozen=True, slots=True)
class ApiServices:
    """What endpoints work with."""

    tickets: Tickets
    pictures: QueryHandlers
    acts: ActionHandlers
    live: Live
    sessions: Sessions


@dataclass(frozen=True, slots=True)
class RequestContext:
    """A request that has been read."""

    place: Mapping[str, str]
    """The parts of the path by their names."""
    given: Any
    """What stands in the body, or in the query."""
    session: Session
    """Who asks."""
    authorization: str = ""
    key: str | None = None
    """By which the same request is known when it is made again."""
    agent: str = ""
    """What asks, as it says itself."""


Carry = Callable[[ApiServices, RequestContext], Awaitable[Any]]
"""Does what is asked."""


@dataclass(frozen=True, slots=True)
class ApiRoute:
    """An endpoint."""

    method: str
    path: str
    name: str
    what: str
    answer: type[Any]
    carry: Carry
    scope: Scope | None
    """What whoever asks must be allowed; None: it is answered without a token."""
    body: type[BaseModel] | None = None
    query: type[BaseModel] | None = None
    status: int = 200
    """Of the answer; with 201 its place is told."""
    problems: tuple[int, ...] = ()
    """Statuses of problems, next to those that every endpoint can have."""
    names: str = ""
    """Where in the answer an issue is named, as a JSON pointer: from there other endpoints are reached."""

    @property
    def adapter(self) -> TypeAdapter[Any]:
        """Writes an answer as JSON: its keys in their order, and no other key."""
        return _adapter(self.answer)

    @property
    def parameters(self) -> list[str]:
        """The names of the parts of the path that are asked for."""
        return [part.partition("}")[0] for part in self.path.split("{")[1:]]


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


OF_BODIES = (400, 408, 413, 415, 422)
"""Statuses of problems with a body."""

PROBLEM = "application/problem+json"
"""The media type of a problem."""

_ALWAYS = (400, 403, 421, 500, 502)
_WITH_TOKEN = (401, 503)


class _Schema(GenerateJsonSchema):
    """Names a component as its class, without `Json` at the end."""

    def normalize_name(self, name: str) -> str:
        return super().normalize_name(name).removesuffix("Json")

    def typed_dict_schema(self, schema: Any) -> JsonSchemaValue:
        found = super().typed_dict_schema(schema)
        return found | {"title": found["title"].removesuffix("Json")}


def document(operations: Sequence[ApiRoute]) -> dict[str, Any]:
    """Make the OpenAPI document of the table and the models: nothing of it is written twice."""
    wanted = [(verification.ProblemAnswer, True), *((one.answer, True) for one in operations)]
    wanted += [(one.body, False) for one in operations if one.body is not None]
    adapters: list[tuple[type[Any], JsonSchemaMode, TypeAdapter[Any]]] = [
        (kind, "serialization" if is_answer else "validation", _adapter(kind)) for kind, is_answer in wanted
    ]
    model = "#/components/schemas/{model}"
    places, definitions = TypeAdapter.json_schemas(adapters, ref_template=model, schema_generator=_Schema)
    paths: dict[str, dict[str, Any]] = {}
    for one in operations:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, operations, places)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Agent Shepherd", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": definitions.get("$defs", {}),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(one: ApiRoute, every: Sequence[ApiRoute], places: Mapping[Any, Any]) -> dict[str, Any]:
    statuses = sorted({*one.problems, *_ALWAYS, *(() if one.scope is None else _WITH_TOKEN)})
    problem = places[verification.ProblemAnswer, "serialization"]
    answers: dict[str, Any] = {
        str(one.status): _content("What was asked for.", "application/json", places[one.answer, "serialization"])
    }
    if one.names:
        place = f"$response.body#{one.names}"
        answers[str(one.status)]["links"] = {
            to.name: {"operationId": to.name, "parameters": {"issue": place}}
            for to in every
            if to.parameters == ["issue"]
        }
    answers |= {str(status): _content(HTTPStatus(status).phrase, PROBLEM, problem) for status in statuses}
    described: dict[str, Any] = {"operationId": one.name, "summary": one.what, "responses": answers}
    given: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "pattern": PATTERNS[name]}}
        for name in one.parameters
    ]
    if one.query is not None:
        asked = one.query.model_json_schema()["properties"]
        given += [{"name": name, "in": "query", "schema": schema} for name, schema in asked.items()]
    if one.status == HTTPStatus.CREATED:
        schema = {"type": "string", "pattern": verification.KEY}
        given.append({"name": "Idempotency-Key", "in": "header", "schema": schema})
    if given:
        described["parameters"] = given
    if one.body is not None:
        body = {"application/json": {"schema": places[one.body, "validation"]}}
        described["requestBody"] = {"required": True, "content": body}
    if one.scope is None:
        described["security"] = []
    else:
        described["x-scope"] = one.scope
    return described


def _content(what: str, media: str, schema: Any) -> dict[str, Any]:
    return {"description": what, "content": {media: {"schema": schema}}}
