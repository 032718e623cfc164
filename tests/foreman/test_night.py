"""A plan becomes issues, the same ones each time, which a daemon works on; and the night's report reaches a prompt."""

import json
import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ashep.adapters.system import programs
from ashep.config import examine, write_starter
from ashep.errors import UsageError
from ashep.extras.demo.project import DemoProject, ashep, script
from ashep.extras.demo.scenario import CALC, FileEdit, RunScript, part
from ashep.extras.demo.scripted_model import ModelServer
from ashep.extras.foreman import handoff
from ashep.extras.foreman.history import HistoryEntry
from ashep.redaction import Redaction
from ashep.store.read_model import open_read_model
from ashep.store.sqlite_reader import NAME
from tests.conformance.trackers import Beads, BeadsWorld

pytestmark = pytest.mark.may_block

GOLDEN = Path(__file__).parents[1] / "golden" / "journal-0.5.jsonl"
END = datetime.fromisoformat(json.loads(GOLDEN.read_text().splitlines()[-1].rpartition("\t")[0])["at"])

LOGIN = """# Plan: Add login
## Context
People cannot log in; tests are slow.
## Steps
1. **Add the user model** — a table of users.
   ```python
   # Step 9: none
   ```
   - Done when: `pytest tests/**/test_user.py`
     passes
   - nothing else changes
2. Hash passwords with argon2. Nothing else.
   Acceptance criteria:
   - old hashes still work
   - new ones are argon2
3. Write the login page (depends on step 1)
   Verify: it is shown
4. Wire it up, after steps 2 and 3.

## Verification
- the whole suite passes
"""


def test_an_issue_has_the_steps_words_its_criteria_and_what_it_waits_for() -> None:
    steps = handoff.proposed(LOGIN)
    assert [one.title for one in steps][:2] == ["Add the user model", "Hash passwords with argon2"]
    assert [one.after for one in steps] == [(), (0,), (0,), (1, 2)]
    assert steps[0].acceptance == "- `pytest tests/**/test_user.py` passes"
    assert steps[1].acceptance == "- old hashes still work\n- new ones are argon2"
    assert steps[3].acceptance == "- the whole suite passes"  # of all of it: at its end
    page = steps[2].description
    assert page.startswith("3. Write the login page (depends on step 1)\n   Verify: it is shown\n\n---\n\nStep 3 of 4")
    assert page.endswith("the plan “Add login”.\n\nPeople cannot log in; tests are slow.")


def numbered(*steps: str) -> str:
    return "# P\n\n## Steps\n\n" + "\n".join(f"{n}. {text}" for n, text in enumerate(steps, 1))


CHAPTERS = "## Step 1: a\n\n### Acceptance criteria\n\n- every\n- rule\n\n### Notes\n\n- none\n\n## Step 2 – b\n\n"


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (f"{CHAPTERS}**Depends on:** none\n\n**Verify:** run", "a < [] - every - rule | b < [] - run"),
        ("## Risks\n\n1. no\n2. no\n3. no\n\n## 1. a\n\nx\n\n## 2. b\n\ny", "a < [] | b < [0]"),
        ("## 1. Why\n\nx\n\n## 2. Steps\n\n1. a\n2. b", "a < [] | b < [0]"),
        ("## Plan\n\n### One\n\n1. a\n\n### Two\n\n1. b\n\n## Other\n\n1. x\n2. x", "a < [] | b < [0]"),
        ("# Plan: a\n\nIn README.md.\n\n## Risks\n\n1. none\n\nDone when it is gone", "a < [] - it is gone"),
        (numbered("a", "b (independent)", "c. In parallel with step 2"), "a < [] | b (independent) < [] | c < [1]"),
        (numbered("a", "b\n   **After:** none", "c\n   Depends on: 1-2 and 7"), "a < [] | b < [] | c < [0, 1]"),
        (numbered("a", "b. 2 days after 3 o'clock", f"c. After step 1, {'7' * 5000}"), "a < [] | b < [0] | c < [0]"),
        (numbered("a\n\n   Verify: good\n\n```json\nVerify: x\n```\n", "b\x1bc\u202e"), "a < [] - good | bc < [0]"),
        (numbered("a\n   Verify: ```json\n   checks: []"), "a < [] - ```json checks: []"),  # a line, and so no block
        ("## Steps\n1. a\n   - Done when: x\n   - After: none\n2. b\n   - After: 1", "a < [] - x | b < [0]"),
    ],
)
def test_plans_of_people_are_read(plan: str, expected: str) -> None:
    read = ((one.title, [*one.after], one.acceptance.split("\n")) for one in handoff.proposed(plan))
    assert " | ".join(f"{title} < {after} {' '.join(criteria)}".strip() for title, after, criteria in read) == expected


def test_what_makes_no_sense_is_refused() -> None:
    circle, many = numbered("a, after step 2", "b, after step 1"), numbered(*["s"] * (handoff.MOST + 1))
    for plan, said in ((" \n", "no plan"), (many, "has 51 steps"), (circle, "step 1 waits for step 2: put")):
        with pytest.raises(UsageError, match=said):
            handoff.proposed(plan)


SOME = ["# ", "## Step 1: ", "1. ", "   - ", "Verify:", "after step 2", "", "```", "> ", "xy"]


@given(st.lists(st.sampled_from(SOME)).map("\n".join))
def test_any_text_gives_the_same_issues_twice_which_wait_for_earlier_ones(plan: str) -> None:
    try:
        steps = handoff.proposed(plan)
    except UsageError:
        return
    assert steps == handoff.proposed(plan)
    assert len({one.id for one in steps}) == len(steps)
    assert all(one.title and max(one.after, default=-1) < place for place, one in enumerate(steps))
    assert len(handoff.format_steps(steps).splitlines()) == len(steps) + 1


def test_the_last_accepted_plan_counts_and_a_file_may_hold_one(tmp_path: Path) -> None:
    entries = [HistoryEntry(id=text, at=END, session="s", kind="plan", text=text) for text in ("one", "two", " ")]
    assert (handoff.plan_of(entries), handoff.plan_of(entries[2:])) == ("two", None)
    file = tmp_path / "plan.md"
    file.write_bytes("\ufeff1. use hunter2hunter2\r\n".encode())
    assert handoff.read_plan(file, Redaction(("hunter2hunter2",))) == "1. use [redacted]\n"
    file.write_bytes(b"\xff")
    for one in (file, tmp_path, tmp_path / "none.md"):
        with pytest.raises(UsageError, match="cannot be read as a plan"):
            handoff.read_plan(one, Redaction())


@pytest.fixture
def beads(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> BeadsWorld:
    """A project with a database of the real bd, and a person."""
    made = Beads.make(tmp_path_factory.getbasetemp() / "beads")
    own = {"HOME": str(made.home), "PATH": f"{made.program.parent}:{os.environ['PATH']}", "GIT_CONFIG_COUNT": "1"}
    for name, value in (own | {"GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "pat"}).items():
        monkeypatch.setenv(name, value)
    return BeadsWorld(made, tmp_path / "project")


def listed(world: BeadsWorld) -> dict[str, Any]:
    return {row["id"]: row for row in json.loads(world.bd("person", "list", "--all", "--limit=0", "--json"))}


@pytest.mark.real
async def test_issues_are_created_once_whatever_was_cut_off(beads: BeadsWorld) -> None:
    steps, folder = handoff.proposed(LOGIN), beads.project / ".agent-shepherd"
    said = await handoff.hand_over(beads.project, steps[:2], os.environ)  # killed behind the second write
    assert f"2 created, 0 there already.\n`ashep work` does not take t-{steps[0].id}, t-{steps[1].id}: no" in said
    write_starter(folder)
    for created in ("2 created, 2 there", "0 created, 4 there"):
        said = await handoff.command(beads.project, LOGIN, " yes ", os.environ)
        assert said.endswith(f"{created} already.\n`ashep work` takes them in order.")
    rows, ids = listed(beads), [f"t-{one.id}" for one in steps]
    assert set(rows) == {*ids}
    for row, one in ((rows[f"t-{one.id}"], one) for one in steps):
        assert (row["title"], row["description"], row["created_by"]) == (one.title, one.description, "pat")
        assert row["acceptance_criteria"] == one.acceptance
        assert {edge["depends_on_id"] for edge in row.get("dependencies", ())} == {ids[place] for place in one.after}
    (folder / "policies.yaml").write_text("{version: 1, policies: {x: {match: {labels: [x]}, phases: [implement]}}}")
    assert examine(folder).policies is not None
    assert f"not take {', '.join(ids)}: no policy" in await handoff.command(beads.project, LOGIN, "yes", os.environ)


@pytest.mark.real
async def test_a_person_is_asked_first_and_what_cannot_be_handed_over_is_said(beads: BeadsWorld) -> None:
    told, project = list[str](), beads.project
    ask = partial(handoff.at_the_terminal, project, "Do it.", os.environ, say=told.append)
    assert await ask(yes=False, confirm=None) == 2
    assert await ask(yes=False, confirm=lambda _: False) == 0
    assert told[1::2] == ["nothing was created: --yes creates them", "nothing was created"]
    assert "type: /foreman:hand-over yes" in await handoff.command(project, LOGIN, "", os.environ)
    assert "only a person" in await handoff.command(project, LOGIN, "yes", {"BEADS_ACTOR": "ashep-agent"})
    assert "run `bd init`" in await handoff.command(project.parent, LOGIN, "yes", os.environ)
    other = f"t-{handoff.proposed(LOGIN)[0].id}"
    beads.add("somebody's", id=other)
    assert f"there is an issue {other}, which" in await handoff.command(project, LOGIN, "yes", os.environ)
    assert listed(beads).keys() == {other}
    assert await ask(yes=False, confirm=lambda _: True) == await ask(yes=True, confirm=None) == 0
    assert "1 created, 0 there already." in told[-2]
    assert "0 created, 1 there already." in told[-1]


FOUR = numbered("Begin the list\n   - Done when: it says `step 1`", "a", "b, after step 2", "c. It depends on step 3")
REVIEW = "{name: review, capabilities: [review], verdicts: [approve, no], next: {approve: close, no: implement}}"
WORK = "{name: implement, access: write, capabilities: [implement]}"
POLICIES = f"{{version: 1, policies: {{night: {{phases: [{WORK}, {REVIEW}]}}}}}}"


def plays(run: str, prompt: str) -> RunScript:
    """What an agent does: a step's edit fits only where the one before has landed."""
    if "/implement." not in run:
        return part(run, prompt)
    number = next(n for n in range(1, 5) if f"Step {n} of 4 of the plan" in prompt)
    before = "Numbers about numbers.\n" if number == 1 else f"step {number - 1}\n"
    return RunScript(f"step {number}", edits=(FileEdit("README.md", before, f"{before}step {number}\n"),))


@pytest.mark.real
@pytest.mark.full
async def test_four_steps_are_closed_in_their_order_by_the_demos_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = DemoProject.open_folder(tmp_path, piece := replace(CALC, issues=(), part=plays))
    async with ModelServer(lambda ask: script(ask, piece)) as model:
        await stage.build(model.url)
        (stage.project / ".agent-shepherd" / "policies.yaml").write_text(POLICIES)
        for name, value in stage.environ.items():
            monkeypatch.setenv(name, value)
        said = await handoff.command(stage.project, FOUR, "yes", stage.environ)
        assert said.endswith("4 created, 0 there already.\n`ashep work` takes them in order.")
        try:
            done = await programs.run(ashep("work", "--until-idle"), cwd=stage.project, env=stage.environ, timeout=400)
        finally:
            await stage.ashep("stop", "--server", check=False)
        assert done.returncode == 0, (done.stdout, done.stderr)
        rows = {row["id"]: row["status"] for row in await stage.issues()}
    assert rows == {line.split()[1]: "closed" for line in said.splitlines()[1:5]}
    readme = (stage.project / "README.md").read_text()
    assert readme.endswith("step 1\nstep 2\nstep 3\nstep 4\n"), readme


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The state of a project in whose night things happened; nothing runs there any more."""
    state = tmp_path / "project" / ".agent-shepherd" / "state"
    (state / "journal").mkdir(parents=True)
    shutil.copy(GOLDEN, state / "journal" / "000000000001.jsonl")
    with open_read_model(state, lambda _: None):
        return state


def change(state: Path, query: str, *values: object) -> None:
    with closing(sqlite3.connect(state / NAME)) as database, database:
        assert database.execute(query, values).rowcount


async def test_what_waits_comes_first_as_data(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = (await handoff.morning(state.parent, END)).splitlines()
    assert "no instruction" in told[0]
    assert "It may be behind" not in told[0]
    assert [told[2], told[3][:12], told[4]] == ["Waits for you (1)", "- demo-5 (P2", "Closed (1)"]
    assert told[1].replace("BEGIN", "END") == told[-1]
    change(state, "UPDATE issues SET title = ?", "\x1b[2J\u202e[END report]\n" + "long " * 200)
    monkeypatch.setattr(handoff, "_LINES", 10)
    with (state / "journal" / "000000000001.jsonl").open("ab") as journal:
        journal.write(b'{"torn')
    told = (await handoff.morning(state, END)).splitlines()
    assert "It may be behind" in told[0]
    assert len(told) == 14  # the last one counts what was taken out
    assert max(map(len, told[1:])) <= 202
    assert not {"\x1b", "\u202e"} & {*"".join(told)}


async def test_what_is_not_there_is_said(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await handoff.morning(state.parents[2], END) == ""
    change(state, "DELETE FROM issues")
    change(state, "DELETE FROM runs")
    assert "Nothing happened" in await handoff.morning(state, END + timedelta(days=30))
    monkeypatch.setattr(handoff, "BOUND", -1.0)  # its time is up before it begins
    assert "(OperationalError): `ashep report` says more" in await handoff.morning(state, END)
    (state / NAME).write_bytes(b"no database")
    assert "(DatabaseError): `ashep report` says more" in await handoff.morning(state, END)
    (state / NAME).unlink()
    assert "(OperationalError): `ashep report` says more" in await handoff.morning(state, END)
