"""A flow told in the words of its policy's transition table: `ashep policy state`."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ashep.config import write_starter
from ashep.core.facts.tracker import IssueSeen
from ashep.core.policy.policies import Phase
from ashep.extras.interchange.policy_tables import table_of
from ashep.extras.interchange.session_state import OTHERS, session_state
from ashep.extras.interchange.transition_table import CODING, PRESET, Table, schema_of
from ashep.store.journal_reader import JournalView
from ashep.store.sqlite_reader import NAME, open_read_only
from ashep.store.writer import Store
from tests.core import given
from tests.core.chances import WILD
from tests.loop_world import World, simulate
from tests.recorded import Recorded, draw

Data = dict[str, Any]


def lived(folder: Path, outcomes: dict[str, list[str]], policies: str = PRESET) -> Data:
    """Lead an issue through a preset, with a person who says yes, and tell its state."""

    async def scenario() -> Data:
        issue = world.tracker.add("one")
        await world.live(beside=lambda: world.person("human:approved"))
        return state_of(folder / "state", issue)

    write_starter(folder, policies)
    world = World(folder)
    world.outcomes = {phase: [{"verdict": word} for word in words] for phase, words in outcomes.items()}
    return simulate(scenario)


def state_of(state: Path, issue: str) -> Data:
    Store.open(state, JournalView(state / "journal")).close()
    with closing(open_read_only(state)) as database:
        told = session_state(database, issue)
    assert told is not None
    return told


def check(told: Data, table: Table) -> None:
    """The state is valid, its history hangs together, and what agents reported goes along the table's rows."""
    jsonschema.validate(told, schema_of(table), format_checker=jsonschema.FormatChecker())
    at, rows = "IDLE", {(row.source, row.event, row.target, row.route_to) for row in table.rows}
    for step in told["history"]:
        assert step["from"] == at
        at = step["to"]
        if step["event"] not in OTHERS:
            assert (step["from"], step["event"], step["to"], step["route_to"]) in rows, step
        if step["event"] == "dispatch":
            waiting = {row.source: row.target for row in table.rows if row.event == "any"} | dict(table.at_dispatch)
            assert waiting[step["from"]] == at
    assert told["state"] == at
    assert [step["seq"] for step in told["history"]] == sorted(step["seq"] for step in told["history"])


@pytest.mark.promise("F21")
@pytest.mark.slow
def test_an_issue_that_is_blocked_and_sent_back_is_told_with_its_history(folder: Path) -> None:
    words = {"planner": ["blocked", "done"], "implementer": ["done"], "code-reviewer": ["needs_changes", "approve"]}
    told = lived(folder, words)
    check(told, CODING)
    assert [(step["event"], step["to"], step["route_to"]) for step in told["history"]] == [
        ("task_received", "PLANNING", "planner"),
        ("blocked", "BLOCKED", "human"),
        ("approved", "PLANNING", "planner"),
        ("impl_summary.done", "READY_FOR_IMPLEMENTATION", "implementer"),
        ("dispatch", "IMPLEMENTING", "implementer"),
        ("impl_summary.done", "READY_FOR_REVIEW", "code-reviewer"),
        ("dispatch", "REVIEWING", "code-reviewer"),
        ("review_result.needs_changes", "NEEDS_FIXES", "implementer"),
        ("dispatch", "IMPLEMENTING", "implementer"),
        ("impl_summary.done", "READY_FOR_REVIEW", "code-reviewer"),
        ("dispatch", "REVIEWING", "code-reviewer"),
        ("review_result.approve", "APPROVED", "complete"),
    ]
    assert told["state"] == "APPROVED"
    assert told["run"] == f"{told['issue']}/code-reviewer.2.1"
    assert told["history"][-1]["run"] == told["run"]
    assert "code-reviewer said approve" in told["history"][-1]["why"]


@pytest.mark.promise("F21")
@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 8, 14, 27, 39, 57])
def test_wild_lives_are_told_along_the_table_too(folder: Path, seed: int) -> None:
    folder.mkdir()
    state = folder / "state"
    made = Recorded(state, seed=seed, chances=WILD)
    made.begin()
    made.open("t-1")
    made.live(150)
    draw(state, made.journal)
    made.journal.close()
    told = state_of(state, "t-1")
    table, _ = table_of("standard", given.STANDARD)
    assert told["history"]
    check(told, table)


def test_a_phase_that_came_with_another_policy_is_told_by_that_one(folder: Path) -> None:
    folder.mkdir()
    made = Recorded(folder / "state")
    made.begin()
    made.open("t-1")
    while made.world.flows.get("t-1") is None or made.world.flows["t-1"].phase != "implement":
        made.tick()
    first, *others = given.STANDARD.phases
    longer = (first.model_copy(update={"next": {"success": "extra"}}), Phase(name="extra", capabilities=("arbitrate",)))
    made.turn(given.adopted(given.policies(given.STANDARD.model_copy(update={"phases": (*longer, *others)}))))
    made.live(40)
    draw(folder / "state", made.journal)
    made.journal.close()
    steps = [(step["from"], step["event"], step["to"]) for step in state_of(folder / "state", "t-1")["history"]]
    assert steps[:3] == [
        ("IDLE", "task_received", "IMPLEMENTING"),
        ("IMPLEMENTING", "impl_summary.done", "READY_FOR_EXTRA"),
        ("READY_FOR_EXTRA", "dispatch", "IN_EXTRA"),
    ]


@pytest.mark.parametrize(
    "kinds", ["'Adopted'", "'Adopted', 'IssueTaken', 'CycleBegan'", "'IssueTaken', 'PhaseEntered'"]
)
def test_what_was_pruned_or_is_unknown_ends_nothing(folder: Path, kinds: str) -> None:
    folder.mkdir()
    made = Recorded(folder / "state")
    made.begin()
    made.open("t-1")
    made.live(60)
    draw(folder / "state", made.journal)
    made.journal.close()
    with closing(sqlite3.connect(folder / "state" / NAME)) as database:
        database.execute(f"DELETE FROM facts WHERE type IN ({kinds})")
        database.commit()
    with closing(open_read_only(folder / "state")) as database:
        told = session_state(database, "t-1")
    assert told is not None
    assert [step["to"] for step in told["history"][:-1]] == [step["from"] for step in told["history"][1:]]


def test_nothing_is_told_of_what_is_not_known(folder: Path) -> None:
    assert session_state(None, "t-1") is None


def test_the_state_is_json(folder: Path) -> None:
    folder.mkdir()
    made = Recorded(folder / "state")
    made.begin()
    made.turn(IssueSeen("t-1", given.issue("t-1", "deferred"), made.world.seq))
    draw(folder / "state", made.journal)
    made.journal.close()
    told = state_of(folder / "state", "t-1")
    assert told == json.loads(json.dumps(told))
    assert (told["state"], told["route_to"], told["since"], told["history"]) == ("IDLE", None, None, [])
    check(told, CODING)
