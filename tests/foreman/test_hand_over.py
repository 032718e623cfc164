"""A plan becomes issues: the same ones each time, which a daemon works on in their order."""

import itertools
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ashep.adapters import programs
from ashep.config import write_starter
from ashep.demo.model import Ask, ModelServer, Reply
from ashep.demo.stage import Stage, ashep, script
from ashep.demo.story import CALC, Edit, Part, part
from ashep.errors import UsageError
from ashep.foreman.history import Entry
from ashep.foreman.night import MOST, at_the_terminal, command, hand_over, plan_of, proposed, read_plan, shown
from ashep.redaction import Redaction
from tests.conformance.trackers import Beads, BeadsWorld

LOGIN = """# Plan: Add login

## Context

People cannot log in; the tests run in parallel with the build.

## Steps

1. **Add the user model** — a table of users.

   ```python
   # Step 9: none
   ```

   - Done when: `pytest tests/test_user.py` passes
2. Hash passwords with argon2. Nothing else.

   Acceptance criteria:

   - old hashes still work
   - new ones are argon2
3. Write the login page (depends on step 1)
4. Wire it up, after steps 2 and 3.

## Verification

- the whole suite passes
"""

HEADINGS = """# Move to the new parser

Why: the old one is slow.

## Risks

1. none
2. none either

## Step 1: Read the grammar

Its rules.

### Acceptance criteria

- every rule is read
- no rule is read twice

### Notes

- a note

## Step 2 – Write the parser

**Depends on:** Step 1

**Verify:** run `make test`

## Step 3: Drop the old one

In parallel with step 2. It does not depend on step 2.

## Step 4: Tell people

Depends on: 2, 3
"""


def after(plan: str) -> list[tuple[int, ...]]:
    return [one.after for one in proposed(plan)]


def numbered(*steps: str, before: str = "") -> str:
    return f"# P\n\n{before}\n\n## Steps\n\n" + "\n".join(f"{n}. {text}" for n, text in enumerate(steps, 1))


def test_a_numbered_list_under_a_heading_is_the_steps() -> None:
    steps = proposed(LOGIN)
    assert [one.title for one in steps] == [
        "Add the user model",
        "Hash passwords with argon2",
        "Write the login page (depends on step 1)",
        "Wire it up, after steps 2 and 3",
    ]
    assert [one.after for one in steps] == [(), (0,), (0,), (1, 2)]
    assert [one.acceptance.splitlines() for one in steps] == [
        ["- `pytest tests/test_user.py` passes"],
        ["- old hashes still work", "- new ones are argon2"],
        [],
        ["- the whole suite passes"],  # of all of it: at its end
    ]
    assert steps[0].description == (
        "**Add the user model** — a table of users.\n\n```python\n# Step 9: none\n```\n\n"
        "- Done when: `pytest tests/test_user.py` passes\n\n---\n\nStep 1 of 4 of the plan “Add login”.\n\n"
        "People cannot log in; the tests run in parallel with the build."
    )


def test_headings_that_say_so_are_the_steps() -> None:
    steps = proposed(HEADINGS)
    assert [one.title for one in steps] == ["Read the grammar", "Write the parser", "Drop the old one", "Tell people"]
    assert [one.after for one in steps] == [(), (0,), (0,), (1, 2)]
    assert [one.acceptance for one in steps] == [
        "- every rule is read\n- no rule is read twice",
        "- run `make test`",
        "",
        "",
    ]
    assert "- a note" in steps[0].description
    assert "Why: the old one is slow." in steps[3].description
    assert [one.title for one in proposed("## 1. Read\n\na\n\n## 2. Write\n\nb")] == ["Read", "Write"]
    assert [one.title for one in proposed("## 1. Why\n\na\n\n## 2. Steps\n\n1. Read\n2. Write")] == ["Read", "Write"]


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (numbered("a", "b", "c"), [(), (0,), (1,)]),
        (numbered("a", "b", "c", before="The steps can all be done in parallel."), [(), (), ()]),
        (numbered("a", "b", "c", before="The steps cannot be done in parallel."), [(), (0,), (1,)]),
        (numbered("a", "b", "c", before="All tests run in parallel."), [(), (0,), (1,)]),
        (numbered("a", "b (independent)", "c"), [(), (), (1,)]),
        (numbered("a", "Depends on: none. b", "c; depends on steps 1-2"), [(), (), (0, 1)]),
        (numbered("a", "b, 2 days after 3 o'clock", "c, after step 9"), [(), (0,), (1,)]),
        (numbered("a, after step 2", "Independent of step 1: b"), [(1,), ()]),
    ],
)
def test_a_step_waits_for_what_it_says_else_for_the_one_before(plan: str, expected: list[tuple[int, ...]]) -> None:
    assert after(plan) == expected


def test_what_has_no_steps_is_one_issue_and_what_makes_no_sense_is_refused() -> None:
    (only,) = proposed("# Plan: Fix the typo\n\nIn README.md.\n\n## Risks\n\n1. none\n\nDone when it is gone")
    assert (only.title, only.acceptance, only.after) == ("Fix the typo", "- it is gone", ())
    assert "README.md" in only.description
    assert len(proposed(numbered(*["s"] * MOST))) == MOST
    for plan, said in [
        (" \n", "is empty"),
        (numbered(*["s"] * (MOST + 1)), f"has {MOST + 1} steps"),
        (numbered("a, after step 2", "b, after step 1"), "steps 1, 2 of the plan wait for each other"),
    ]:
        with pytest.raises(UsageError, match=said):
            proposed(plan)


def test_what_a_plan_says_to_a_machine_is_no_check() -> None:
    checks = '```json\n{"checks": [{"id": "x", "type": "test_pass"}]}\n```'
    (step, _) = proposed(numbered(f"a\n\n   Acceptance:\n\n   - good\n\n{checks}\n", "b\x1b[2Jc\u202e"))
    assert step.acceptance == "- good"
    assert proposed(numbered("a", "b\x1b[2Jc\u202e"))[1].title == "b[2Jc"


@given(
    st.lists(
        st.sampled_from(["# ", "## Step 1: ", "1. ", "   - ", "Acceptance:", "after step 2", "", "```", "> ", "xy"]),
        max_size=30,
    ).map("\n".join)
)  # fmt: skip
def test_any_text_gives_the_same_issues_twice_and_waits_for_no_later_place_in_a_circle(plan: str) -> None:
    try:
        steps = proposed(plan)
    except UsageError:
        return
    assert steps == proposed(plan)
    assert len({one.id for one in steps}) == len(steps)
    assert all(one.title for one in steps)
    assert len(shown(steps).splitlines()) == len(steps) + 1


def test_the_last_accepted_plan_counts_and_a_file_may_hold_one(tmp_path: Path) -> None:
    at = "2026-01-01T00:00:00Z"
    said = [("plan", "one"), ("plan", "two"), ("plan", " "), ("answer", "three")]
    entries = [
        Entry.model_validate({"id": str(n), "at": at, "session": "s", "kind": kind, "text": text})
        for n, (kind, text) in enumerate(said)
    ]
    assert plan_of(entries) == "two"
    assert plan_of(entries[2:]) is None
    file = tmp_path / "plan.md"
    file.write_bytes("\ufeff1. use hunter2hunter2\r\n".encode())
    assert read_plan(file, Redaction(("hunter2hunter2",))) == "1. use [redacted]\n"
    file.write_bytes(b"\xff")
    for one in (file, tmp_path, tmp_path / "none.md"):
        with pytest.raises(UsageError, match="cannot be read as a plan"):
            read_plan(one, Redaction())


# --- a real database ------------------------------------------------------------------------------------------------


@pytest.fixture
def beads(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> BeadsWorld:
    """A project with a database of the real bd, and a person."""
    made = Beads.make(tmp_path_factory.getbasetemp() / "beads")
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "user.name")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "pat")
    monkeypatch.setenv("PATH", f"{made.program.parent}:{os.environ['PATH']}")
    return BeadsWorld(made, tmp_path / "project")


def listed(world: BeadsWorld) -> dict[str, Any]:
    rows = json.loads(world.bd("person", "list", "--all", "--limit=0", "--json"))
    return {row["id"]: row for row in rows}


@pytest.mark.real
@pytest.mark.may_block
async def test_issues_are_created_once_whatever_was_cut_off(beads: BeadsWorld) -> None:
    steps = proposed(LOGIN)
    said = await command(beads.project, LOGIN, "", os.environ)
    assert "these 4 issues" in said
    assert said.endswith("type: /foreman:hand-over yes")
    assert listed(beads) == {}
    first = await hand_over(beads.project, steps[:2], os.environ)  # killed behind the second write
    folder = beads.project / ".agent-shepherd"
    assert first.untaken == (f"nothing takes them yet: `ashep init` in {beads.project} makes it a project of ashep",)
    write_starter(folder)
    for _ in range(2):
        said = await command(beads.project, LOGIN, " yes ", os.environ)
        assert len(listed(beads)) == 4
    assert "nothing was created; 4 were there already." in said
    assert "`ashep work` takes them" in said
    rows, ids = listed(beads), [f"t-{one.id}" for one in steps]
    assert all(one in said for one in ids)
    assert [rows[one]["title"] for one in ids] == [one.title for one in steps]
    assert [rows[one]["description"] for one in ids] == [one.description for one in steps]
    assert [rows[one].get("acceptance_criteria", "") for one in ids] == [one.acceptance for one in steps]
    assert {rows[one]["created_by"] for one in ids} == {"pat"}
    waits = [{edge["depends_on_id"] for edge in rows[one].get("dependencies", ())} for one in ids]
    assert waits == [{ids[place] for place in one.after} for one in steps]

    (folder / "policies.yaml").write_text(
        "version: 1\npolicies: {night: {match: {labels: [night]}, phases: [implement]}}\n"
    )
    said = await command(beads.project, LOGIN, "yes", os.environ)
    assert f"`ashep work` does not take {', '.join(ids)}: no policy claims a task like this" in said
    assert said.endswith("(labels that policies here want: night)")
    (folder / "policies.yaml").write_text("policies: 1\n")
    assert "`ashep policy check` says what is wrong" in await command(beads.project, LOGIN, "yes", os.environ)


@pytest.mark.real
@pytest.mark.may_block
async def test_what_cannot_be_handed_over_is_said(
    beads: BeadsWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "no plan was accepted" in await command(tmp_path, None, "yes", os.environ)
    (tmp_path / "empty").mkdir()
    said = await command(tmp_path / "empty", LOGIN, "yes", os.environ)
    assert "run `bd init`" in said
    said = await command(beads.project, LOGIN, "yes", {"BEADS_ACTOR": "ashep-agent"})
    assert "only a person answers" in said
    other = proposed(LOGIN)[0].id
    beads.add("somebody's", id=f"t-{other}")
    assert f"there is an issue t-{other}, which is no step" in await command(beads.project, LOGIN, "yes", os.environ)
    assert len(listed(beads)) == 1


@pytest.mark.real
@pytest.mark.may_block
async def test_at_the_terminal_it_asks_first(beads: BeadsWorld) -> None:
    told = list[str]()

    async def asked(*, yes: bool = False, answer: bool | None = None) -> int:
        confirm = None if answer is None else lambda _: answer
        return await at_the_terminal(beads.project, "Do it.", os.environ, yes=yes, say=told.append, confirm=confirm)

    assert await asked() == 2
    assert told[-1] == "nothing was created: --yes creates them"
    assert await asked(answer=False) == 0
    assert told[-1] == "nothing was created"
    assert await asked(answer=True) == 0
    assert "1 issue created." in told[-1]
    assert [row["title"] for row in listed(beads).values()] == ["Do it"]
    assert await asked(yes=True) == 0
    assert "nothing was created; 1 was there already." in told[-1]


# --- worked on by a daemon ------------------------------------------------------------------------------------------

FOUR = """# Plan: Say what was done

## Goal

README.md says which steps were done.

## Steps

1. Begin the list in README.md.
   - Done when: it says `step 1`
2. Write the second step.
3. Write the third step, after step 2.
4. Write the last step. It depends on step 3.
"""


POLICIES = """version: 1
policies:
  night:
    phases:
      - {name: implement, access: write, capabilities: [implement]}
      - name: review
        capabilities: [review]
        verdicts: [approve, needs_changes]
        next: {approve: close, needs_changes: implement}
"""
"""Nobody is awake to be asked."""


def plays(run: str, prompt: str) -> Part:
    """What an agent does: a step's edit fits only where the one before has landed."""
    if "/implement." not in run:
        return part(run, prompt)
    number = next(n for n in range(1, 5) if f"Step {n} of 4 of the plan" in prompt)
    before = "Numbers about numbers.\n" if number == 1 else f"step {number - 1}\n"
    return Part(f"step {number}", edits=(Edit("README.md", before, f"{before}step {number}\n"),))


@pytest.mark.real
@pytest.mark.may_block
@pytest.mark.full
async def test_four_steps_are_closed_in_their_order_by_the_demos_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    piece = replace(CALC, issues=(), part=plays)

    def answers(ask: Ask) -> Reply:
        return script(ask, piece)

    async with ModelServer(answers) as model:
        stage = Stage.at(tmp_path, piece)
        await stage.build(model.url)
        (stage.project / ".agent-shepherd" / "policies.yaml").write_text(POLICIES)
        for name, value in stage.environ.items():
            monkeypatch.setenv(name, value)
        handed = await hand_over(stage.project, proposed(FOUR), stage.environ)
        assert len(handed.new) == 4
        assert not handed.untaken
        try:
            done = await programs.run(ashep("work", "--until-idle"), cwd=stage.project, env=stage.environ, timeout=400)
        finally:
            await stage.ashep("stop", "--server", check=False)
        assert done.returncode == 0, (done.stdout, done.stderr)
        rows: Mapping[str, Any] = {row["id"]: row for row in await stage.issues()}
    assert {one: rows[one]["status"] for one in rows} == dict.fromkeys(handed.ids, "closed")
    readme = (stage.project / "README.md").read_text()
    assert readme.endswith("step 1\nstep 2\nstep 3\nstep 4\n"), readme
    journal = sorted((stage.project / ".agent-shepherd" / "state" / "journal").glob("*.jsonl"))
    lines = [line for file in journal for line in file.read_text().splitlines()]
    facts = [json.loads(line.rpartition("\t")[0]) for line in lines]
    closed = [one["issue"] for one in facts if one.get("type") == "IssueClosed"]
    assert [one for one, _ in itertools.groupby(closed)] == list(handed.ids)
