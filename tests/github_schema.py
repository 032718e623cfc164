"""Holds what the played GitHub answers, and what is asked of it, to what GitHub publishes (`tools/github_schema.py`).

The played one answers with the fields that `ashep` reads and no others: each must be there in GitHub's answer, with a
value that GitHub may give. What `ashep` sends must be complete.
"""

import json
import re
from functools import cache
from typing import Any, cast

from jsonschema import Draft202012Validator

from tools.github_schema import FILE


@cache
def _operations() -> list[tuple[str, re.Pattern[str], dict[str, Any]]]:
    document = json.loads(FILE.read_text())
    rows = list[tuple[str, re.Pattern[str], dict[str, Any]]]()
    for name, operation in document["operations"].items():
        method, _, path = name.partition(" ")
        rows.append((method.upper(), re.compile(re.sub(r"\{\w+\}", "[^/]+", path)), operation))
    return rows


@cache
def _definitions() -> dict[str, Any]:
    definitions: dict[str, Any] = json.loads(FILE.read_text())["definitions"]
    return {name: _strict(schema) for name, schema in definitions.items()}


def _strict(node: Any, *, closed: bool = True) -> Any:
    """Rewrite a schema of OpenAPI 3.0 as JSON Schema that knows no other fields than those that are named."""
    if isinstance(node, list):
        return [_strict(item, closed=closed) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    schema = {name: value for name, value in cast("dict[str, Any]", node).items() if name not in ("nullable", "enum")}
    schema = {name if name != "oneOf" else "anyOf": value for name, value in schema.items()}
    for name, value in schema.items():
        if name == "properties":
            schema[name] = {key: _strict(item) for key, item in value.items()}
        elif name != "type":
            schema[name] = _strict(value, closed=closed and name != "allOf")
    if closed and "properties" in schema:
        schema.setdefault("additionalProperties", False)
    if node.get("nullable"):
        return {"anyOf": [schema, {"type": "null"}]}
    return schema


def find_problem(method: str, path: str, query: set[str], sent: Any, status: int, answer: bytes) -> str:
    """Say what of a request or its answer GitHub does not publish; empty: all of it is there."""
    matches = [row for verb, pattern, row in _operations() if verb == method and pattern.fullmatch(path)]
    if not matches:
        return f"{method} {path} is no operation of tests/github-schema.json"
    operation = matches[0]
    if unknown := query - {*operation["query"]}:
        return f"{method} {path} knows no parameters {sorted(unknown)}"
    parts = [("sent", operation["body"], sent)] if sent is not None else []
    if status in (200, 201):
        schema = operation["answers"].get(str(status))
        if schema is None:
            return f"{method} {path} is not answered with {status}"
        parts.append(("answered", schema, json.loads(answer)))
    for name, schema, data in parts:
        whole = {"definitions": _definitions(), **_strict(schema)}
        error = next(iter(Draft202012Validator(whole).iter_errors(data)), None)
        if error is not None:
            return f"{method} {path}, {name}: {error.json_path}: {error.message[:300]}"
    return ""
