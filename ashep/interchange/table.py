"""A transition table: rows of state, event, next state and whom it routes to, as JSON; and the one of a preset."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ashep.config import nodes
from ashep.config.nodes import Node, Problem, Unreadable
from ashep.interchange.naming import BLOCKED, COMPLETE, DONE, HUMAN, IDLE, TAKEN
from ashep.interchange.notes import Reading, read_text, refused
from ashep.interchange.state import OTHERS

_TIME = {"type": "string", "format": "date-time"}
COLUMNS = ("from", "event", "to", "route_to")


class Row(NamedTuple):
    """A transition."""

    source: str
    event: str
    target: str
    route_to: str


@dataclass(frozen=True, slots=True)
class Table:
    """Rows, where an issue begins, and what becomes of a waiting state once an agent is there."""

    rows: tuple[Row, ...]
    initial: str
    at_dispatch: Mapping[str, str]
    policy: str = ""
    description: str = ""

    def as_json(self) -> str:
        """Write the file, one row a line."""
        head = {"version": 1, "policy": self.policy, "description": self.description, "initial": self.initial}
        lines = [f"  {_text(key)}: {_text(value)}," for key, value in head.items() if value]
        dispatch = ",\n".join(f"    {_text(state)}: {_text(to)}" for state, to in self.at_dispatch.items())
        rows = ",\n".join(
            "    {" + ", ".join(f"{_text(key)}: {_text(value)}" for key, value in zip(COLUMNS, row, strict=True)) + "}"
            for row in self.rows
        )
        parts = [*lines, '  "transitions": [', rows, "  ],", '  "at_dispatch": {', dispatch, "  }"]
        return "\n".join(["{", *parts, "}"]) + "\n"


def schema_of(table: Table) -> dict[str, Any]:
    """Give the JSON schema of the state of a flow under this table."""
    states = [state for row in table.rows for state in (row.source, row.target)]
    states = list(dict.fromkeys([*states, *table.at_dispatch, *table.at_dispatch.values(), BLOCKED, DONE]))
    events = list(dict.fromkeys([row.event for row in table.rows] + list(OTHERS)))
    routes = list(dict.fromkeys([row.route_to for row in table.rows] + [HUMAN, COMPLETE]))
    state = {"enum": states, "description": "A state of the transition table."}
    route = {"enum": [*routes, None], "description": "Whose turn it is; null: nobody's, as it was not taken yet."}
    run = {"type": ["string", "null"], "description": "The run whose report it was, or which began."}
    step = {
        "seq": {"type": "integer", "minimum": 1, "description": "The number of the record in the journal."},
        "at": _TIME | {"description": "When it happened, in UTC."},
        "from": state,
        "event": {"enum": events, "description": "What an agent reported, or what else happened."},
        "to": state,
        "route_to": route,
        "run": run,
        "why": {"type": "string", "description": "The reason, in the words of whoever gave it."},
    }
    whole = {
        "version": {"const": 1, "description": "The version of this form."},
        "issue": {"type": "string", "minLength": 1, "description": "The issue's id."},
        "title": {"type": "string", "description": "Its title."},
        "policy": {"type": ["string", "null"], "description": "The policy that it is worked on under."},
        "state": state,
        "route_to": route,
        "phase": {"type": ["string", "null"], "description": "The phase that it is in."},
        "run": run,
        "since": {"type": ["string", "null"], "format": "date-time", "description": "Since when it is in this state."},
        "history": {"type": "array", "items": _closed(step), "description": "Every change of the state, in order."},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "session state",
        "description": f"Where an issue is under the table of {table.policy or 'a policy'}, and how it got there.",
        **_closed(whole),
    }


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object", "properties": properties, "required": list(properties), "additionalProperties": False,
    }  # fmt: skip


class Placed(NamedTuple):
    """A row, and where it stands."""

    row: Row
    node: Node


@dataclass(frozen=True, slots=True)
class Document:
    """A table as it was read."""

    table: Table
    placed: tuple[Placed, ...]
    reading: Reading


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def read_table(file: Path) -> Document:
    """Read a table: a list of rows, or a mapping with `transitions`. Raises `ConfigErrors`, with file and line."""
    reading = Reading(file, _tree(file))
    root = reading.root
    listed = root if isinstance(root.value, list) else root.child("transitions")
    if listed is None or not isinstance(listed.value, list) or not listed.value:
        expected = "expected a list of rows with from, event, to and route_to, or a mapping with `transitions`"
        raise reading.refuse(listed or root, f"no transition table: {expected}")
    placed = tuple(Placed(_row(reading, node), node) for node in listed.value)
    _once(reading, placed)
    rows = tuple(one.row for one in placed)
    dispatch = _words(reading, root.child("at_dispatch"))
    named = reading.take(root.child("policy"))
    said = reading.take(root.child("description"))
    version = root.child("version")
    if version is not None and (type(version.value) is not int or version.value != 1):
        raise reading.refuse(version, "expected version 1, the only one that this ashep reads")
    reading.take(version)
    table = Table(rows, _initial(reading, rows), dispatch, str(named or ""), str(said or ""))
    return Document(table, placed, reading)


def _tree(file: Path) -> Node:
    text = read_text(file)
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        problem = Problem("syntax", f"not valid JSON: {error.msg}, column {error.colno}", error.lineno, None)
        raise refused(file, problem) from error
    except RecursionError as error:
        raise refused(file, Problem("depth", "nested too deep; is this the right file?", 1, None)) from error
    try:  # JSON is YAML, but for tabs, which stand only between its parts; the reader of YAML knows the lines
        root, problems = nodes.read(text.replace("\t", " "))
    except Unreadable as error:
        raise refused(file, error.problem) from error
    if problems:
        raise refused(file, *problems)
    return root


def _row(reading: Reading, node: Node) -> Row:
    values: list[str] = []
    for column in COLUMNS:
        cell = node.child(column)
        if cell is None or not isinstance(cell.value, str) or not cell.value.strip():
            raise reading.refuse(
                cell or node, f"a row has a word for each of {', '.join(COLUMNS)}; {column} is missing"
            )
        reading.take(cell)
        values.append(cell.value.strip())
    return Row(*values)


def _once(reading: Reading, placed: Iterable[Placed]) -> None:
    """Refuse a state in which one event leads to two places."""
    seen: dict[tuple[str, str], int] = {}
    for row, node in placed:
        pair = (row.source, row.event)
        if pair in seen:
            raise reading.refuse(node, f"{row.event} in {row.source} stands on line {seen[pair]} already; keep one")
        seen[pair] = node.line


def _initial(reading: Reading, rows: tuple[Row, ...]) -> str:
    given = reading.root.child("initial")
    sources = [row.source for row in rows]
    if given is not None:
        if given.value not in sources:
            raise reading.refuse(
                given, f"no row begins in this state; expected one of {', '.join(dict.fromkeys(sources))}"
            )
        return str(reading.take(given))
    targets = {row.target for row in rows}
    taken = [row.source for row in rows if row.source == IDLE or row.event == TAKEN]
    first = taken + [row.source for row in rows if row.source not in targets and row.route_to != HUMAN]
    if not first:
        raise reading.refuse(reading.root, "no state is one in which an issue begins; name it in `initial`")
    return first[0]


def _words(reading: Reading, node: Node | None) -> dict[str, str]:
    if node is None:
        return {}
    if not isinstance(node.value, dict) or not all(isinstance(child.value, str) for child in node.value.values()):
        raise reading.refuse(node, "expected what each waiting state becomes, such as READY_FOR_REVIEW: REVIEWING")
    reading.take(node)
    return {key: str(child.value) for key, child in node.value.items()}


PRESET = "multi-tier"
"""The preset that means this table; a test runs both."""

CODING = Table(
    rows=(
        Row(IDLE, TAKEN, "PLANNING", "planner"),
        Row("PLANNING", "impl_summary.done", "READY_FOR_IMPLEMENTATION", "implementer"),
        Row("PLANNING", "blocked", "BLOCKED", HUMAN),
        Row("IMPLEMENTING", "impl_summary.done", "READY_FOR_REVIEW", "code-reviewer"),
        Row("IMPLEMENTING", "blocked", "BLOCKED", HUMAN),
        Row("REVIEWING", "review_result.approve", "APPROVED", COMPLETE),
        Row("REVIEWING", "review_result.needs_changes", "NEEDS_FIXES", "implementer"),
        Row("REVIEWING", "blocked", "BLOCKED", HUMAN),
        Row("NEEDS_FIXES", "any", "IMPLEMENTING", "implementer"),
    ),
    initial=IDLE,
    at_dispatch={"READY_FOR_IMPLEMENTATION": "IMPLEMENTING", "READY_FOR_REVIEW": "REVIEWING"},
    policy=PRESET,
    description="planner, implementer, code-reviewer; a person where one of them is blocked",
)

TRANSITIONS = ".opencode/schemas/coding-workflow-transitions.json"
STATE_SCHEMA = ".opencode/schemas/state.schema.json"


def files_of_preset(name: str) -> dict[str, str]:
    """Give what `ashep init --preset` writes beside `.agent-shepherd`, by the path in the project."""
    if name != PRESET:
        return {}
    schema = json.dumps(schema_of(CODING), indent=2, ensure_ascii=False) + "\n"
    return {TRANSITIONS: CODING.as_json(), STATE_SCHEMA: schema}
