"""The OpenAPI document, made of the table of endpoints and the models: nothing of it is written twice."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from ashep import __version__
from ashep.http.models import KEY, TICKET, ProblemAnswer
from ashep.http.operations import OPERATIONS, Operation

PROBLEM = "application/problem+json"
"""The media type of a problem."""

_ALWAYS = (500,)
_WITH_TOKEN = (401,)


def document() -> dict[str, Any]:
    """Make the document."""
    wanted: list[tuple[type[BaseModel], JsonSchemaMode]] = [(ProblemAnswer, "serialization")]
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
    problem = places[ProblemAnswer, "serialization"]
    answers: dict[str, Any] = {
        str(one.status): _content("What was asked for.", "application/json", places[one.answer, "serialization"])
    }
    answers |= {str(status): _content(HTTPStatus(status).phrase, PROBLEM, problem) for status in statuses}
    described: dict[str, Any] = {"operationId": one.name, "summary": one.what, "responses": answers}
    if one.parameter is not None:
        schema = {"type": "string", "pattern": TICKET}
        described["parameters"] = [{"name": one.parameter, "in": "path", "required": True, "schema": schema}]
    if one.query is not None:
        asked = one.query.model_json_schema()["properties"]
        described["parameters"] = [{"name": name, "in": "query", "schema": schema} for name, schema in asked.items()]
    if one.status == HTTPStatus.CREATED:
        schema = {"type": "string", "pattern": KEY}
        described["parameters"] = [{"name": "Idempotency-Key", "in": "header", "schema": schema}]
    if one.body is not None:
        body = {"application/json": {"schema": places[one.body, "validation"]}}
        described["requestBody"] = {"required": True, "content": body}
    if one.open:
        described["security"] = []
    return described


def _content(what: str, media: str, schema: Any) -> dict[str, Any]:
    return {"description": what, "content": {media: {"schema": schema}}}
