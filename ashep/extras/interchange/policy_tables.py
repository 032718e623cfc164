"""A transition table -> a policy that means the same, and back.

The events are verdicts: an agent reports one and never the next step. A state in which an agent is at work is a phase;
a state that only waits for its agent (`READY_FOR_REVIEW`) is no phase of its own, because an issue leaves it when a run
is dispatched. A state that routes to `human` is a human phase, and one that routes to `complete` is the end.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from ashep.config.findings import ConfigErrors
from ashep.core.issues.routing import following, writer_before
from ashep.core.policy.base_types import format_duration, is_name
from ashep.core.policy.policies import CLOSE, Phase, Policies, Policy
from ashep.extras.interchange import state_names
from ashep.extras.interchange.import_report import Imported, Note
from ashep.extras.interchange.state_names import NamedPhase, States, event_of, named_phases, route_of
from ashep.extras.interchange.transition_table import Row, Table, TableRow, TransitionTable
from ashep.extras.interchange.yaml_writer import as_yaml

_ROLES = {
    "plan": ("planner", "architect", "plan"),
    "implement": ("implementer", "coder", "developer", "builder", "engineer", "implement"),
    "review": ("reviewer", "code-reviewer", "review"),
    "test": ("tester", "qa", "test"),
    "arbitrate": ("arbiter", "arbitrate"),
    "debug": ("debugger", "debug"),
    "doc": ("writer", "documenter", "doc"),
    "analyze": ("analyst", "analyzer", "analyze"),
}
"""By capability, the names that agents of a table usually have."""

_WRITERS = ("implement", "test", "debug", "doc")
_RESULTS = ("failed", "partial")
_UNSAID = ("allow_suggested", "verify", "checks", "when_flags")
"""Keys of an agent phase that lead an issue elsewhere than its events do."""
_STEM = 4
"""Letters that READY_FOR_REVIEW and REVIEWING have in common, at least."""


# --- a policy -> a table ----------------------------------------------------------------------------------------------


def table_of(name: str, policy: Policy) -> tuple[Table, list[str]]:
    """Give a policy's transitions, and what of it no table can say."""
    states = States(named_phases(policy.model_dump()))
    first = states.places[0]
    rows = [Row(state_names.IDLE, state_names.TAKEN, states.name_state(first.name), route_of(first))]
    for phase, place in zip(policy.phases, states.places, strict=True):
        for edge, target in [] if place.anew else _edges(policy, phase):
            to, route = _target(states, place, edge, target, policy)
            rows.append(Row(states.name_state(phase.name), event_of(place, edge), to, route))
    waits = {row.target for row in rows}
    back = [(state, phase) for phase, state in states.sent_back().items() if state in waits]
    rows += [Row(state, state_names.ANY, states.name_state(phase), phase) for state, phase in back]
    dispatched = {state: at for state, at in states.dispatched().items() if state in waits}
    return Table(tuple(rows), state_names.IDLE, dispatched, name, policy.description), _unsaid(policy)


def _edges(policy: Policy, phase: Phase) -> list[tuple[str, str]]:
    if phase.human is not None:
        back = phase.human.changes_requested or writer_before(policy, phase)
        late = [] if phase.human.on_deadline == "park" else [("deadline", phase.human.on_deadline)]
        return [("approved", phase.human.approved), ("changes_requested", back), *late]
    edges = [(verdict, phase.next[verdict]) for verdict in phase.verdicts if verdict in phase.next]
    if not phase.verdicts:
        edges = [("success", phase.next.get("success") or following(policy, phase))]
    return edges + [(result, phase.next[result]) for result in _RESULTS if result in phase.next]


def _target(states: States, source: NamedPhase, edge: str, target: str, policy: Policy) -> tuple[str, str]:
    if target == CLOSE:
        return (state_names.DONE if edge == "success" else state_names.APPROVED), state_names.COMPLETE
    phase = policy.phase(target)
    human = phase is not None and phase.human is not None
    return states.towards(source.name, target), state_names.HUMAN if human else target


def _unsaid(policy: Policy) -> list[str]:
    limits = policy.limits
    said = [f"at most {limits.max_runs} runs and {format_duration(limits.max_wall_time)} in a cycle, then it is parked"]
    agents = [phase for phase in policy.phases if phase.human is None]
    said += [f"{phase.name}: at most {phase.max_visits} visits, then it is parked" for phase in agents]
    said += [
        f"{phase.name}: at most {phase.retry.max_attempts} attempts of a visit, then it is parked"
        for phase in agents
        if "failed" not in phase.next
    ]
    said += [f"{phase.name}: `{key}`" for phase in agents for key in _UNSAID if getattr(phase, key)]
    return said


# --- a table -> a policy ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Reader:
    document: TransitionTable
    notes: list[Note]
    phase_at: dict[str, str] = field(default_factory=dict[str, str])
    """The phase of each state in which somebody works or is asked."""
    role_at: dict[str, str] = field(default_factory=dict[str, str])
    """Who works there."""

    @property
    def rows(self) -> tuple[TableRow, ...]:
        return self.document.placed

    def refuse(self, placed: TableRow, message: str) -> ConfigErrors:
        return self.document.reading.refuse(placed.node, message)

    def find_rows(self, state: str) -> list[TableRow]:
        return [placed for placed in self.rows if placed.row.source == state]

    def waits(self, state: str) -> bool:
        return all(placed.row.event == state_names.ANY for placed in self.find_rows(state))

    def begins(self, placed: TableRow) -> str:
        """Name the state in which the one that a row routes to is at work."""
        state, table = placed.row.target, self.document.table
        if state == table.initial and placed.row.source != state:
            return self.begins(self.find_rows(state)[0])
        if not self.waits(state):
            return state
        rows = self.find_rows(state)
        if rows:
            if self.waits(state := rows[0].row.target):
                raise self.refuse(rows[0], f"{state} has no event that says that its work is done")
            return state
        found = table.at_dispatch.get(state) or self._named_like(state)
        if found is None or self.waits(found):
            message = f"{state} has no rows, and it is not known what it becomes when its agent begins"
            raise self.refuse(placed, f"{message}; say it in `at_dispatch`")
        return found

    def _named_like(self, state: str) -> str | None:
        stem = state.removeprefix("READY_FOR_").removeprefix("READY_TO_")
        working = dict.fromkeys(row.row.source for row in self.rows if not self.waits(row.row.source))
        alike = {state: _count_shared(state, stem) for state in working}
        best = [state for state, length in alike.items() if length >= _STEM and length == max(alike.values())]
        return best[0] if len(best) == 1 else None


def _count_shared(state: str, stem: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(state, stem, strict=False)))


def policy_of(document: TransitionTable) -> dict[str, Any]:
    """Give a policy, as policies.yaml holds it, that means the same; raises `ConfigErrors` where there is none."""
    reader = _Reader(document, document.reading.notes)
    _roles(reader)
    table = document.table
    start = reader.find_rows(table.initial)
    if len(start) != 1 or start[0].row.route_to in (state_names.HUMAN, state_names.COMPLETE):
        raise reader.refuse(
            start[0], f"{table.initial}, where an issue begins, has one row, to the agent that takes it"
        )
    agents = [_phase(reader, state) for state in reader.role_at if reader.role_at[state] != state_names.HUMAN]
    people = [_human(reader, state) for state in reader.role_at if reader.role_at[state] == state_names.HUMAN]
    first = reader.phase_at[reader.begins(start[0])]
    agents.sort(key=lambda phase: phase["name"] != first)
    policy: dict[str, Any] = {"description": table.description} if table.description else {}
    return policy | {"phases": agents + people}


def _roles(reader: _Reader) -> None:
    """Find every state in which somebody is at work, in the order in which issues come to them."""
    seen: dict[str, TableRow] = {}
    for placed in reader.rows:
        row = placed.row
        if row.route_to == state_names.COMPLETE:
            if left := reader.find_rows(row.target):
                end = (
                    f"{row.target} is an end ({state_names.COMPLETE} on line {placed.node.line}); "
                    "nothing leads out of it"
                )
                raise reader.refuse(left[0], end)
            continue
        state = row.target if row.route_to == state_names.HUMAN else reader.begins(placed)
        role = reader.role_at.setdefault(state, row.route_to)
        if role != row.route_to:
            line = seen[state].node.line
            message = f"{state} is {role}'s on line {line} and {row.route_to}'s here; a state has one"
            raise reader.refuse(placed, message)
        seen.setdefault(state, placed)
    for placed in reader.rows:
        state = placed.row.source
        if state != reader.document.table.initial and not reader.waits(state) and state not in reader.role_at:
            raise reader.refuse(placed, f"no row leads to {state}; nobody works there")
    shared = list(reader.role_at.values())
    for state, role in reader.role_at.items():
        own = shared.count(role) == 1 and role != state_names.HUMAN and is_name(role)
        name = role if own else _word(state)
        if name in (*reader.phase_at.values(), CLOSE, *_RESULTS, "success", "park"):
            message = f"the phase of {state} cannot be called {name}; rename the state, or whom it routes to"
            raise reader.refuse(seen[state], message)
        reader.phase_at[state] = name


def _phase(reader: _Reader, state: str) -> dict[str, Any]:
    role = reader.role_at[state]
    capability = next((need for need, names in _ROLES.items() if role.lower() in names), None)
    edges = _verdicts(reader, state)
    verdicts = [verdict for verdict in edges if verdict not in _RESULTS]
    if capability is None:
        why = f"no capability is known for {role}: it takes an agent with one of that name, which may not write files"
        reader.notes.append(Note("changed", f"route_to: {role}", reader.find_rows(state)[0].node.line, why))
    phase: dict[str, Any] = {
        "name": reader.phase_at[state],
        "capabilities": [capability or _word(role)],
        "access": "write" if capability in _WRITERS else "read",
        "verdicts": verdicts,
        "next": edges,
    }
    if not verdicts:
        placed = reader.find_rows(state)[0]
        raise reader.refuse(placed, f"{state} has no event that says that its work is done")
    return phase


def _verdicts(reader: _Reader, state: str) -> dict[str, str]:
    rows = reader.find_rows(state)
    short = [placed.row.event.rpartition(".")[2] for placed in rows]
    edges: dict[str, str] = {}
    for placed, word in zip(rows, short, strict=True):
        row = placed.row
        if row.event == state_names.ANY:
            message = "`any` is for a state that only waits for its agent; name the event"
            raise reader.refuse(placed, message)
        verdict = _word(word if short.count(word) == 1 else row.event)
        if verdict == "success":
            verdict = _word(row.event) if "." in row.event else "done"
        if verdict in edges:
            raise reader.refuse(placed, f"{row.event} is {verdict} here, as another event of {state}")
        if verdict in _RESULTS:
            why = f"it is the result {verdict} here, which leads there once the attempts of `retry` are used up"
            reader.notes.append(Note("changed", f"event: {row.event}", placed.node.line, why))
        edges[verdict] = _leads(reader, placed)
    return edges


def _leads(reader: _Reader, placed: TableRow) -> str:
    row = placed.row
    if row.route_to == state_names.COMPLETE:
        return CLOSE
    if row.target == reader.document.table.initial:
        why = f"it is not given back to be taken anew: it goes on at once where {row.target} leads to"
        reader.notes.append(Note("changed", f"{row.source} {row.event}", placed.node.line, why))
    return reader.phase_at[row.target if row.route_to == state_names.HUMAN else reader.begins(placed)]


def _human(reader: _Reader, state: str) -> dict[str, Any]:
    """Give a human phase; where the table has no rows for it, everything begins again after an answer."""
    rows = {placed.row.event: placed for placed in reader.find_rows(state)}
    first = reader.phase_at[reader.begins(reader.find_rows(reader.document.table.initial)[0])]
    human: dict[str, Any] = {"ask": f"{state}: say in a comment how to go on. Go on?"}
    for answer in ("approved", "changes_requested"):
        known = rows.pop(answer, None) or rows.get(state_names.ANY)
        human[answer] = _leads(reader, known) if known else first
    late = rows.pop("deadline", None)
    if late is not None:
        human["on_deadline"] = _leads(reader, late)
    rows.pop(state_names.ANY, None)
    for event, placed in rows.items():
        why = "a person answers approved or changes_requested, and nothing else"
        reader.notes.append(Note("lost", f"{state} {event}", placed.node.line, why))
    if not reader.find_rows(state):
        line = next(placed.node.line for placed in reader.rows if placed.row.target == state)
        why = f"no row says what follows it; either answer of a person begins anew with {first}"
        reader.notes.append(Note("changed", state, line, why))
    return {"name": reader.phase_at[state], "human": human}


def _word(text: str) -> str:
    word = re.sub(r"[^A-Za-z0-9_-]+", "_", text.lower() if text.isupper() else text).strip("_-")[:64]
    word = word if word[:1].isalpha() else f"x_{word}"[:64]
    return f"{word}_" if word in (CLOSE, "park") else word


# --- files ------------------------------------------------------------------------------------------------------------


def imported(document: TransitionTable, name: str) -> Imported:
    """Give policies.yaml for a table; raises `ConfigErrors`."""
    whole = {"version": 1, "default_policy": name, "policies": {name: policy_of(document)}}
    document.reading.rest()
    notes = [*document.reading.notes, *_renamed(document, name, whole)]
    head = [
        f"The transitions of {document.reading.file.name}, as a policy. Events are verdicts: an agent reports one, and "
        "never the next step.",
        "A table has no bounds; here the defaults hold: visits of a phase, runs and time of a cycle, attempts, and how "
        "long a question stays open. What runs out is parked for a person.",
    ]
    ordered = sorted(notes, key=lambda note: note.line)
    return Imported({"policies.yaml": as_yaml(whole, head, ordered)}, tuple(ordered))


def _renamed(document: TransitionTable, name: str, whole: dict[str, Any]) -> Iterable[Note]:
    """Note the words that an export of the policy would write otherwise."""
    table, _ = table_of(name, Policies.model_validate_json(json.dumps(whole)).policies[name])
    before = {word for row in document.table.rows for word in row[:3]}
    after = {word for row in table.rows for word in row[:3]}
    placed = {word: one.node.line for one in document.placed for word in reversed(one.row[:3])}
    for word in sorted(before - after, key=lambda word: (placed[word], word)):
        yield Note("changed", word, placed[word], "an export of this policy calls it otherwise")
