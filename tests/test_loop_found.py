"""The whole daemon, over adapters in memory: what checks and landing find reaches the agent that is to mend it."""

from pathlib import Path
from typing import Any

import pytest

from ashep.api.handlers import ticket_history
from ashep.core.facts.delivery import UNTESTED, TreeSealed, WorkVerified
from ashep.core.state.branches import branch_of
from ashep.extras.simulation.memory.scripted_sessions import Play, Prompted
from ashep.extras.simulation.memory.workspaces import MemoryWorkspaces
from ashep.ports.tracker import IssueText
from tests.loop_world import World, policy, said

pytestmark = [pytest.mark.promise("W5"), pytest.mark.virtual]

CONFIG = "version: 1\nworker: {workspace: worktree}\n"
CHECK = {"id": "made", "type": "file_exists", "verify": {"path": "calc.py", "contains": ["better"]}}


def told(folder: Path, **implement: object) -> tuple[World, list[tuple[str, str]]]:
    """A world in which an agent does what it is told, and each prompt's phase and text."""
    phases = ({"name": "implement", "capabilities": ["implement"], "access": "write", **implement}, LOOK)
    world = World(folder, config=CONFIG, policies=policy(*phases))
    world.workspaces = MemoryWorkspaces({"calc.py": "1"})
    world.tracker.add("first", id="t-1")
    prompts = list[tuple[str, str]]()

    def play(world: World, asked: Prompted) -> Play:
        issue, _, rest = asked.key.split(":", 1)[1].partition("/")
        phase, spaces, branch = rest.partition(".")[0], world.own_trees, branch_of(issue)
        assert spaces is not None
        prompts.append((phase, asked.text))
        if phase == "implement":
            if "git merge main" in asked.text:
                spaces.take_in(branch)
            spaces.edit(branch, "calc.py", "better" if "What must be mended" in asked.text else "worse")
        elif len(prompts) == 2:  # while it is looked at, a person changes the same file
            spaces.commit("calc.py", "a person's")
        return Play(text=said(phase), delay=world.delay)

    world.answer = play
    return world, prompts


LOOK = {"name": "look", "capabilities": ["test"], "access": "read", "next": {"success": "close"}}


async def test_checks_that_fail_are_in_the_next_prompt_and_their_evidence_in_the_readers(folder: Path) -> None:
    world, prompts = told(folder, verify=True, checks=[CHECK])
    await world.finish()
    assert [phase for phase, _ in prompts][:3] == ["implement", "implement", "look"]
    first, second, third = (text for _, text in prompts[:3])
    assert "What must be mended" not in first
    assert "made: failed: calc.py lacks ['better']" in second
    assert "made: passed: as expected" in third
    assert f"(git tree {world.own_trees.tree_of(world.own_trees.base)})" in third


@pytest.mark.promise("W5")
async def test_while_an_issue_waits_the_tracker_says_what_failed_what_is_touched_and_that_a_person_was_asked(
    folder: Path,
) -> None:
    never = {**CHECK, "verify": {"path": "calc.py", "contains": ["best"]}}
    world, prompts = told(folder, verify={"max_attempts": 2}, checks=[never])
    await world.live(lambda: len(prompts) == 2)
    meanwhile: dict[str, Any] = world.tracker.metadata("t-1")
    assert (meanwhile["verification_status"], world.issues()["t-1"].status) == ("failing", "in_progress")
    assert [(entry["n"], entry["failures"]) for entry in meanwhile["verification_log"]] == [(1, ["made"])]
    await world.live(lambda: world.issues()["t-1"].status == "blocked")
    assert [phase for phase, _ in prompts] == ["implement", "implement"]
    assert {"needs:human_answer", "needs:human_approval", "phase:implement"} == {*world.issues()["t-1"].labels}
    told_of: dict[str, Any] = world.tracker.metadata("t-1")
    assert (told_of["verification_status"], told_of["impact_flags"]) == ("failing", [])
    assert told_of["ticket_files"] == {"created": [], "modified": ["calc.py"], "deleted": [], "more": 0}
    (check,) = told_of["verification"]["checks"]
    assert (check["check_id"], check["status"], check["message"]) == ("made", "failed", "calc.py lacks ['best']")
    log = told_of["verification_log"]
    assert [(one["n"], one["status"], one.get("action")) for one in log] == [
        (1, "failing", None), (2, "failing", None), (3, "failing", "escalated"),
    ]  # fmt: skip
    assert (log[2]["reason"], log[2]["attempts"]) == ("max_verification_attempts", 2)
    assert [one.action for one in ticket_history.read(told_of)] == [None, None, "escalated"], "the service reads it"


async def test_a_conflict_is_in_the_next_prompt_and_resolved_on_the_issues_own_branch(folder: Path) -> None:
    world, prompts = told(folder)
    await world.finish()
    assert [phase for phase, _ in prompts] == ["implement", "look", "implement", "look"]
    mends = prompts[2][1]
    assert "contradicts main in calc.py" in mends
    assert 'calc.py: main has "a person\'s"' in mends
    assert "What must be mended" not in prompts[3][1]
    assert world.own_trees.files(world.own_trees.base)["calc.py"] == "better"


MANUAL = """```yaml
checks:
  - {id: seen, type: manual, verify: {question: "Does it look\n    right?"}}
```"""


async def test_the_issues_own_questions_are_put_to_whoever_decides(folder: Path) -> None:
    review = {"name": "human_review", "human": {"ask": "Merge this?", "approved": "close"}}
    ask = {"name": "implement", "capabilities": ["implement"], "access": "write"}
    world = World(folder, config=CONFIG + "landing: {mode: branch}\n", policies=policy(ask, review))
    world.workspaces = MemoryWorkspaces({"calc.py": "1"})
    world.outcomes = {"implement": [{"needs_human": True, "summary": "Which way?"}, {}]}
    world.tracker.add("first", text=IssueText(acceptance=MANUAL))
    world.tracker.add("second")
    await world.finish(person=True)
    for issue, listed in zip(world.issues(), (True, False), strict=True):
        asked, decided = (text for text in world.comments(issue) if "Answer by label" in text)
        assert asked.startswith("**Which way?**")
        assert "make sure" not in asked, "an agent's question is not the time"
        assert decided.startswith(f"**{UNTESTED} Merge this?**")
        assert ("to approve says that it is so:\n- Does it look right?\n" in decided) is listed


async def test_what_a_branch_took_in_from_the_base_is_no_work_of_its_own(folder: Path) -> None:
    world, prompts = told(folder)
    play = world.answer
    assert play is not None

    def meanwhile(world: World, asked: Prompted) -> Play | None:
        if len(prompts) == 1 and world.workspaces is not None:
            world.own_trees.commit(".github/workflows/ci.yml", "a person's", "Test")
        return play(world, asked)

    world.answer = meanwhile
    await world.finish()
    again = prompts[3][1]
    assert "calc.py" in again
    assert "ci.yml" not in again, "it is the person's"
    assert world.bodies(TreeSealed)[-1].flags == (), "the issue touches no CI"
    assert world.tracker.metadata("t-1")["ticket_files"] == {
        "created": [], "modified": ["calc.py"], "deleted": [], "more": 0,
    }  # fmt: skip


async def test_who_only_takes_the_base_in_has_changed_nothing(folder: Path) -> None:
    world, _ = told(folder, verify={"max_attempts": 1})

    def idle(world: World, asked: Prompted) -> Play:
        world.own_trees.commit("other.py", "a person's")
        world.own_trees.take_in(branch_of("t-1"))
        return Play(text=said("implement"), delay=world.delay)

    world.answer = idle
    await world.live(lambda: "t-1" in world.world.flows and world.world.flows["t-1"].stage == "person")
    assert [fact.changed for fact in world.bodies(WorkVerified)] == [False]
