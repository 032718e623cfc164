"""Transition tables: read, turned into policies that mean the same, written, and a flow told in their words."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ashep.config import ConfigErrors, check, load, read, write_starter
from ashep.config.presets import PRESETS, preset
from ashep.core.facts import issues, runs
from ashep.core.facts.outcome import read_outcome
from ashep.core.policy.agents import Agent, Agents
from ashep.core.policy.policies import Phase, Policies, Policy
from ashep.extras.interchange.policy_tables import imported, table_of
from ashep.extras.interchange.state_names import NamedPhase, States
from ashep.extras.interchange.transition_table import (
    CODING,
    PRESET,
    STATE_SCHEMA,
    TRANSITIONS,
    Row,
    Table,
    files_of_preset,
    read_table,
    schema_of,
)
from tests.core.playbook import Playbook
from tests.full import amount

ISSUE = """
| IDLE | task_received | PLANNING | planner |
| PLANNING | impl_summary.done | READY_FOR_IMPLEMENTATION | implementer |
| PLANNING | blocked | BLOCKED | human |
| IMPLEMENTING | impl_summary.done | READY_FOR_REVIEW | code-reviewer |
| IMPLEMENTING | blocked | BLOCKED | human |
| REVIEWING | review_result.approve | APPROVED | complete |
| REVIEWING | review_result.needs_changes | NEEDS_FIXES | implementer |
| REVIEWING | blocked | BLOCKED | human |
| NEEDS_FIXES | any | IMPLEMENTING | implementer |
"""
TEAM = Agents(
    version=1,
    agents=(Agent(id="all", capabilities=("plan", "implement", "review", "test", "arbitrate"), read_write="write"),),
)
EVENTS = ("task_received", "impl_summary.done", "blocked", "review_result.approve", "review_result.needs_changes")


def policies_of(text: str) -> Policies:
    return read(Policies, text, Path("policies.yaml"))


def import_of(table: Table | str, tmp_path: Path, name: str = PRESET) -> Policies:
    file = tmp_path / "table.json"
    file.write_text(table if isinstance(table, str) else table.as_json())
    return policies_of(imported(read_table(file), name).files["policies.yaml"])


# --- the table, its files, and there and back ------------------------------------------------------------------------


def test_the_table_is_that_of_the_specification_and_what_init_writes() -> None:
    rows = [tuple(cell.strip() for cell in line.strip("| ").split("|")) for line in ISSUE.strip().splitlines()]
    assert [tuple(row) for row in CODING.rows] == rows
    written = json.loads(files_of_preset(PRESET)[TRANSITIONS])
    assert [tuple(row.values()) for row in written["transitions"]] == rows
    assert all(list(row) == ["from", "event", "to", "route_to"] for row in written["transitions"])
    assert json.loads(files_of_preset(PRESET)[STATE_SCHEMA]) == schema_of(CODING)
    assert [name for name in PRESETS if files_of_preset(name)] == [PRESET]


@pytest.mark.promise("F20")
def test_the_preset_and_its_table_are_the_same() -> None:
    policy = policies_of(preset(PRESET)).policies[PRESET]
    assert table_of(PRESET, policy)[0] == CODING


def test_there_and_back_is_the_same_table(tmp_path: Path) -> None:
    policies = import_of(CODING, tmp_path)
    assert table_of(PRESET, policies.policies[PRESET])[0] == CODING


def test_an_import_loads_beside_the_starters_agents(tmp_path: Path) -> None:
    write_starter(tmp_path / "project")
    file = tmp_path / "coding.json"
    file.write_text(CODING.as_json())
    made = imported(read_table(file), "coding")
    (tmp_path / "project" / "policies.yaml").write_text(made.files["policies.yaml"])
    loaded = load(tmp_path / "project")
    assert loaded.warnings == ()
    assert [phase.name for phase in loaded.policies.policies["coding"].phases] == [
        "planner", "implementer", "code-reviewer", "blocked",
    ]  # fmt: skip
    assert [str(note) for note in made.notes] == [
        "changed: line 9: BLOCKED: no row says what follows it; either answer of a person begins anew with planner"
    ]
    assert f"# {made.notes[0]}" in made.files["policies.yaml"].splitlines()


def test_bare_rows_are_enough_and_words_tell_what_waits_for_whom(tmp_path: Path) -> None:
    bare = [dict(zip(("from", "event", "to", "route_to"), row, strict=True)) for row in CODING.rows]
    policies = import_of(json.dumps(bare, indent="\t"), tmp_path)
    assert table_of("coding", policies.policies[PRESET])[0].rows == CODING.rows


@pytest.mark.parametrize("name", [name for name in PRESETS if name != PRESET])
def test_every_preset_has_a_table_that_means_the_same_when_it_is_read_again(name: str, tmp_path: Path) -> None:
    table, _ = table_of(name, policies_of(preset(name)).policies[name])
    again, _ = table_of(name, import_of(table, tmp_path, name).policies[name])
    assert {*again.rows} == {*table.rows}


# --- both run ---------------------------------------------------------------------------------------------------------


class Machine:
    """A small interpreter of a table: what an issue and its agents report, and dispatch, move it."""

    def __init__(self, table: Table) -> None:
        self.edges = {(row.source, row.event): row.target for row in table.rows}
        self.dispatched = dict(table.at_dispatch) | {row.source: row.target for row in table.rows if row.event == "any"}
        self.initial = table.initial

    def next(self, state: str, event: str) -> str | None:
        """The state in which somebody is at work after an event; None: the event is refused."""
        target = self.edges.get((state, event))
        return None if target is None else self.dispatched.get(target, target)


def core_after(policies: Policies, events: tuple[str, ...]) -> Playbook:
    """The real core after these events, each of which it took."""
    book = Playbook(policies, TEAM)
    for event in events:
        if event == "task_received":
            book.looked()
            continue
        _ = book >> book.reports(verdict=event.rpartition(".")[2])
        book.answered()
    return book


def state_of(book: Playbook) -> str:
    """Where the core has an issue, in the words of the table: by who is at work, or by what is waited for."""
    flow = book.world.flows.get("t-1")
    if flow is None:
        return "IDLE"
    if flow.stage == "work" and flow.run is not None and flow.run.state == "running":
        return {"planner": "PLANNING", "implementer": "IMPLEMENTING", "code-reviewer": "REVIEWING"}[flow.run.phase]
    return {"person": "BLOCKED", "closed": "APPROVED"}[flow.stage]


def takes(book: Playbook, event: str) -> bool:
    """Whether the core takes an event here; what it refuses moves nothing."""
    flow = book.world.flows.get("t-1")
    if event == "task_received" or flow is None:
        return event == "task_received" and flow is None
    if flow.run is None or flow.stage != "work":
        return False
    phase = book.world.policies.policies[PRESET].phase(flow.run.phase)  # type: ignore[union-attr]
    assert phase is not None
    block = json.dumps({"result": "success", "summary": "done", "verdict": event.rpartition(".")[2]})
    if not isinstance(read_outcome(block, phase.verdicts), str):
        return True
    before = state_of(book)
    _ = book >> book.turn("finished", block=block)
    assert [type(body) for body in book.left][:1] == [runs.OutcomeRejected]
    assert not any(
        isinstance(body, issues.PhaseEntered | issues.PersonAsked | issues.IssueFinished) for body in book.left
    )
    assert state_of(book) == before
    return False


def compare(table: Table, policies: Policies, longest: int) -> int:
    """Run table and core over all sequences of events up to this length; give how many that were.

    Sequences that were accepted alike lead to the same place, as what is refused changes neither: so many are looked at
    together. Where both refuse an event both stay.
    """
    machine = Machine(table)
    at: Counter[tuple[str, ...]] = Counter({(): 1})
    state: dict[tuple[str, ...], str] = {(): machine.initial}
    compared = 1
    assert state_of(core_after(policies, ())) == machine.initial
    for _ in range(longest):
        after: Counter[tuple[str, ...]] = Counter()
        for accepted, many in at.items():
            for event in EVENTS:
                to = machine.next(state[accepted], event)
                assert takes(core_after(policies, accepted), event) == (to is not None), (accepted, event)
                following = accepted if to is None else (*accepted, event)
                if to is not None and following not in state:
                    assert state_of(core_after(policies, following)) == to, following
                    state[following] = to
                after[following] += many
        at = after
        compared += sum(at.values())
    return compared


def from_import(tmp_path: Path) -> Policies:
    return import_of(CODING, tmp_path)


def from_preset(_: Path) -> Policies:
    return policies_of(preset(PRESET))


@pytest.mark.promise("F20")
@pytest.mark.slow
@pytest.mark.parametrize("policies", [from_import, from_preset])
def test_table_and_policy_go_the_same_way_over_all_sequences_of_eight_events(
    policies: Callable[[Path], Policies], tmp_path: Path
) -> None:
    assert compare(CODING, policies(tmp_path), 8) == sum(len(EVENTS) ** length for length in range(9))


@pytest.mark.slow
def test_a_policy_that_goes_another_way_is_found_out() -> None:
    policy = from_preset(Path()).policies[PRESET]
    for phase in policy.phases[:3]:
        for verdict, target in phase.next.items():
            other = "implementer" if target == "close" else "close"
            wrong = phase.model_copy(update={"next": dict(phase.next) | {verdict: other}})
            phases = tuple(wrong if one is phase else one for one in policy.phases)
            mutant = Policies(version=1, policies={PRESET: policy.model_copy(update={"phases": phases})})
            with pytest.raises(AssertionError, match="assert "):
                compare(CODING, mutant, 5)


# --- what is refused, and what is named ------------------------------------------------------------------------------


NEITHER = "expected a list of rows with from, event, to and route_to, or a mapping with `transitions`"


def told(text: str, tmp_path: Path) -> str:
    file = tmp_path / "t.json"
    file.write_text(text)
    with pytest.raises(ConfigErrors) as caught:
        imported(read_table(file), "t")
    return str(caught.value).removeprefix(f"{file}:")


def rows(*more: tuple[str, str, str, str]) -> str:
    every = [*CODING.rows, *more]
    return (
        "[\n"
        + ",\n".join(json.dumps(dict(zip(("from", "event", "to", "route_to"), r, strict=True))) for r in every)
        + "\n]"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "1: not valid JSON: Expecting property name enclosed in double quotes, column 2"),
        ('{\n"a": 1,\n"a": 2}', "3: a: duplicate key, it stands on line 2 already; keep one of them"),
        ("[]", f"1: no transition table: {NEITHER}"),
        ("[[1]]", "1: [0]: a row has a word for each of from, event, to, route_to; from is missing"),
        ('[\n{"from": "A", "event": "b", "to": "C"}]',
         "2: [0]: a row has a word for each of from, event, to, route_to; route_to is missing"),
        (rows(("PLANNING", "blocked", "APPROVED", "complete")),
         "11: [9]: blocked in PLANNING stands on line 4 already; keep one"),
        (rows(("APPROVED", "again", "PLANNING", "planner")),
         "11: [9]: APPROVED is an end (complete on line 7); nothing leads out of it"),
        (rows(("TESTING", "done", "APPROVED", "complete")), "11: [9]: no row leads to TESTING; nobody works there"),
        (rows(("REVIEWING", "x", "IMPLEMENTING", "fixer")),
         "11: [9]: IMPLEMENTING is implementer's on line 3 and fixer's here; a state has one"),
        (rows(("REVIEWING", "x", "PARKED", "tester")),
         "11: [9]: PARKED has no rows, and it is not known what it becomes when its agent begins; say it in "
         "`at_dispatch`"),
        (rows(("REVIEWING", "x", "WAITING", "tester"), ("WAITING", "any", "TESTING", "tester")),
         "12: [10]: TESTING has no event that says that its work is done"),
        (rows(("REVIEWING", "x", "WAITING", "tester"), ("WAITING", "any", "WAITING", "tester")),
         "12: [10]: WAITING has no event that says that its work is done"),
        (json.dumps({"initial": "X", "transitions": json.loads(rows())}),
         "1: initial: no row begins in this state; expected one of IDLE, PLANNING, IMPLEMENTING, REVIEWING, "
         "NEEDS_FIXES"),
        (json.dumps({"version": 2, "transitions": json.loads(rows())}),
         "1: version: expected version 1, the only one that this ashep reads"),
    ],
)  # fmt: skip
def test_what_is_no_table_is_refused_with_file_and_line(text: str, said: str, tmp_path: Path) -> None:
    assert told(text, tmp_path) == said


@pytest.mark.promise("F20")
def test_nothing_is_dropped_silently(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    table = json.loads(
        rows(("BLOCKED", "approved", "PLANNING", "planner"), ("BLOCKED", "cancelled", "IDLE", "planner"))
    )
    table[0]["guard"] = {"labels": ["x"], "none": []}
    file.write_text(json.dumps({"owner": "me", "transitions": table, "extra": [1, {"deep": None}]}))
    made = imported(read_table(file), "t")
    assert {(note.kind, note.key) for note in made.notes} == {
        ("lost", "owner"), ("lost", "extra[0]"), ("lost", "extra[1].deep"), ("lost", "transitions[0].guard.labels[0]"),
        ("lost", "transitions[0].guard.none"), ("lost", "BLOCKED cancelled"), ("changed", "cancelled"),
        ("changed", "approved"),
    }  # fmt: skip
    text = made.files["policies.yaml"]
    assert all(str(note) in " ".join(text.replace("\n#", "").split()) for note in made.notes)


def test_other_words_are_carried_over_and_an_export_calls_them_by_ours(tmp_path: Path) -> None:
    table = [
        ("NEW", "start", "WRITING", "coder"),
        ("WRITING", "ok", "TO_CHECK", "checker"),
        ("WRITING", "report.failed", "HELP", "human"),
        ("CHECKING", "a.ok", "END", "complete"),
        ("CHECKING", "b.ok", "WRITING", "coder"),
    ]
    listed = [dict(zip(("from", "event", "to", "route_to"), row, strict=True)) for row in table]
    file = tmp_path / "t.json"
    file.write_text(json.dumps({"transitions": listed, "at_dispatch": {"TO_CHECK": "CHECKING"}}))
    made = imported(read_table(file), "t")
    policy = policies_of(made.files["policies.yaml"]).policies["t"]
    write, check, help_ = policy.phases
    assert (write.name, write.needs, write.writes, dict(write.next)) == (
        "coder", ("implement",), True, {"ok": "checker", "failed": "help"},
    )  # fmt: skip
    assert (check.needs, check.writes, dict(check.next)) == (("checker",), False, {"a_ok": "close", "b_ok": "coder"})
    assert help_.human is not None
    whys = {note.key: note.why for note in made.notes}
    assert "the attempts of `retry` are used up" in whys["event: report.failed"]
    assert "may not write files" in whys["route_to: checker"]
    assert whys["WRITING"] == "an export of this policy calls it otherwise"


def test_names_of_states_are_never_the_same() -> None:
    places = [
        NamedPhase("a-b", ("plan",), False),
        NamedPhase("a_b", ("plan",), False),
        NamedPhase("fixes", ("x",), False),
    ]
    places += [NamedPhase("idle", (), True), NamedPhase("in_a_b", (), True), NamedPhase("code", ("code",), False)]
    states = States(places)
    names = (
        [states.name_state(place.name) for place in places]
        + list(states.dispatched())
        + list(states.sent_back().values())
    )
    assert len(names) == len(set(names)) == 6 + 2 * 4


def test_a_policys_bounds_are_named_because_no_table_has_them() -> None:
    phases = (
        Phase(name="implement", max_visits=2, allow_suggested=("test",)),
        Phase(name="test", next={"failed": "implement"}),
    )
    table, unsaid = table_of("p", Policy(phases=phases))
    assert table.rows == (
        Row("IDLE", "task_received", "IMPLEMENTING", "implement"),
        Row("IMPLEMENTING", "impl_summary.done", "READY_FOR_TEST", "test"),
        Row("TESTING", "test_result.done", "DONE", "complete"),
        Row("TESTING", "test_result.failed", "NEEDS_FIXES", "implement"),
        Row("NEEDS_FIXES", "any", "IMPLEMENTING", "implement"),
    )
    assert "implement: at most 2 visits, then it is parked" in unsaid
    assert "implement: `allow_suggested`" in unsaid
    assert not any(what.startswith("test: attempts") for what in unsaid)


def test_the_schema_takes_a_state_and_refuses_others() -> None:
    schema: Any = schema_of(CODING)
    jsonschema.Draft202012Validator.check_schema(schema)
    step = {
        "seq": 7, "at": "2026-01-01T22:00:00.000000Z", "from": "IDLE", "event": "task_received", "to": "PLANNING",
        "route_to": "planner", "run": None, "why": "ready",
    }  # fmt: skip
    state = {
        "version": 1, "issue": "t-1", "title": "one", "policy": PRESET, "state": "PLANNING", "route_to": "planner",
        "phase": "planner", "run": None, "since": step["at"], "history": [step],
    }  # fmt: skip
    jsonschema.validate(state, schema)
    for wrong in ({"state": "SLEEPING"}, {"route_to": "me"}, {"history": [step | {"to": "X"}]}, {"more": 1}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(state | wrong, schema)


# --- tables of all kinds ----------------------------------------------------------------------------------------------

WORKING = ("ALPHA", "BETA", "GAMMA")
GOALS = st.sampled_from([*WORKING, "WAIT_ALPHA", "WAIT_BETA", "WAIT_GAMMA", "BACK_BETA", "BOARD", "HELP", "END", "NEW"])
ROLES = {"ALPHA": "planner", "BETA": "coder", "GAMMA": "critic"}


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Tables over three states of work, with states that wait, two that ask people, and an end."""
    rows = [Row("NEW", "taken", draw(st.sampled_from(WORKING)), "")]
    for state in WORKING:
        events = draw(st.lists(st.sampled_from("uvwxy"), min_size=1, max_size=4, unique=True))
        rows += [Row(state, f"{draw(st.sampled_from(['a.', 'b.', '']))}{event}", draw(GOALS), "") for event in events]
    answers = draw(st.lists(st.sampled_from(["approved", "changes_requested"]), unique=True))
    rows += [Row("HELP", answer, draw(GOALS), "") for answer in answers]
    rows += [Row("BACK_BETA", "any", "BETA", "")]
    at = {f"WAIT_{state}": state for state in WORKING} | {"BACK_BETA": "BETA"}
    first = rows[0].target

    def route(target: str) -> str:
        ends = {"BOARD": "human", "HELP": "human", "END": "complete", "NEW": ROLES[first]}
        return ends.get(target) or ROLES[at.get(target, target)]

    waiting = {state: to for state, to in at.items() if state.startswith("WAIT_")}
    return Table(tuple(row._replace(route_to=route(row.target)) for row in rows), "NEW", waiting)


def goes(table: Table, row: Row) -> str:
    """Where a row leads: to who works then, to who is asked, or to the end."""
    if row.route_to in ("human", "complete"):
        return row.target
    at = dict(table.at_dispatch) | {one.source: one.target for one in table.rows if one.event == "any"}
    target = next(one.target for one in table.rows if one.source == "NEW") if row.target == "NEW" else row.target
    return at.get(target, target)


@settings(max_examples=amount(40, 1000), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables())
def test_any_table_is_refused_or_its_policy_leads_where_it_leads(tmp_path_factory: Any, table: Table) -> None:
    file = tmp_path_factory.mktemp("table") / "t.json"
    file.write_text(table.as_json())
    begun = {row.source for row in table.rows} - {"NEW", "BACK_BETA"}
    if begun - {goes(table, row) for row in table.rows}:
        with pytest.raises(ConfigErrors, match="nobody works there"):
            imported(read_table(file), "t")
        return
    policies = policies_of(imported(read_table(file), "t").files["policies.yaml"])
    assert not [str(one) for one in check(policies, None, None) if one.severity == "error"]
    policy = policies.policies["t"]
    names = ROLES | {"BOARD": "board", "HELP": "help", "END": "close"}
    assert policy.phases[0].name == names[goes(table, table.rows[0])]
    for row in table.rows[1:]:
        phase = policy.phase(names.get(row.source, ""))
        if row.event == "any":
            continue
        assert phase is not None
        if phase.human is not None:
            assert getattr(phase.human, row.event) == names[goes(table, row)]
        else:
            short = row.event.rpartition(".")[2]
            assert phase.next[short] == names[goes(table, row)]
    for phase in policy.phases:
        if phase.human is None:
            assert len(phase.next) == sum(names.get(row.source) == phase.name for row in table.rows)
