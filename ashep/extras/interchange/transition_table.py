"""A transition table: rows of state, event, next state and whom it routes to, as JSON; and the one of a preset."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ashep.config.yaml_tree import Node
from ashep.extras.interchange.import_report import ImportReading, read_json
from ashep.extras.interchange.session_state import OTHERS
from ashep.extras.interchange.state_names import BLOCKED, COMPLETE, DONE, HUMAN, IDLE, TAKEN

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


class TableRow(NamedTuple):
    """A row, and where it stands."""

    row: Row
    node: Node


@dataclass(frozen=True, slots=True)
class TransitionTable:
    """A table as it was read."""

    table: Table
    placed: tuple[TableRow, ...]
    reading: ImportReading


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def read_table(file: Path) -> TransitionTable:
    """Read a table: a list of rows, or a mapping with `transitions`. Raises `ConfigErrors`, with file and line."""
    reading = read_json(file)
    root = reading.root
    listed = root if isinstance(root.value, list) else root.child("transitions")
    if listed is None or not listed.items:
        expected = "expected a list of rows with from, event, to and route_to, or a mapping with `transitions`"
        raise reading.refuse(listed or root, f"no transition table: {expected}")
    placed = tuple(TableRow(_row(reading, node), node) for node in listed.items)
    first: dict[tuple[str, str], Node] = {}
    for row, node in placed:
        other = first.setdefault((row.source, row.event), node)
        if other is not node:
            raise reading.refuse(node, f"{row.event} in {row.source} stands on line {other.line} already; keep one")
    rows = tuple(row for row, _ in placed)
    dispatch, version = root.child("at_dispatch") or Node({}, 1, ""), root.child("version")
    if not isinstance(dispatch.value, dict) or not all(isinstance(state.value, str) for state in dispatch.children):
        expected = "expected what each waiting state becomes, such as READY_FOR_REVIEW: REVIEWING"
        raise reading.refuse(dispatch, expected)
    waiting = {key: str(state.value) for key, state in dispatch.entries.items()}
    reading.take(dispatch)
    words = [str(reading.take(root.child(key)) or "") for key in ("policy", "description")]
    if version is not None and (type(version.value) is not int or reading.take(version) != 1):
        raise reading.refuse(version, "expected version 1, the only one that this ashep reads")
    return TransitionTable(Table(rows, _initial(reading, rows), waiting, *words), placed, reading)


def _row(reading: ImportReading, node: Node) -> Row:
    values: list[str] = []
    for column in COLUMNS:
        cell = node.child(column)
        if cell is None or not isinstance(cell.value, str) or not cell.value.strip():
            message = f"a row has a word for each of {', '.join(COLUMNS)}; {column} is missing"
            raise reading.refuse(cell or node, message)
        values.append(str(reading.take(cell)).strip())
    return Row(*values)


def _initial(reading: ImportReading, rows: tuple[Row, ...]) -> str:
    initial = reading.root.child("initial")
    sources = dict.fromkeys(row.source for row in rows)
    if initial is not None:
        if initial.value not in list(sources):
            raise reading.refuse(initial, f"no row begins in this state; expected one of {', '.join(sources)}")
        return str(reading.take(initial))
    targets = {row.target for row in rows}
    first = [row.source for row in rows if row.source == IDLE or row.event == TAKEN]
    first += [row.source for row in rows if row.source not in targets and row.route_to != HUMAN]
    if not first:
        raise reading.refuse(reading.root, "no state is one in which an issue begins; name it in `initial`")
    return first[0]


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
