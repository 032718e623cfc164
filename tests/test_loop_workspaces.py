"""The whole daemon where issues have work trees of their own, killed at its boundaries, over adapters in memory."""

from pathlib import Path

import anyio
import pytest

from ashep.core.facts.delivery import TreePrepared, TreeSealed
from ashep.core.facts.runs import RunPlanned
from ashep.core.state.branches import branch_of
from ashep.daemon.daemon import WorkOptions, narrator
from ashep.extras.simulation.memory.workspaces import MemoryWorkspaces
from tests.loop_world import Points, World, crash_at_each, crossed, lose_each, some
from tests.test_loop import until

pytestmark = pytest.mark.virtual

CONFIG = "version: 1\nworker: {workspace: worktree, max_concurrent_runs: 3}\nlanding: {mode: branch}\n"


def apart(folder: Path, issues: int = 1, config: str = CONFIG) -> World:
    """A world with trees of their own, in which a person is at work in the shared one."""
    world = World(folder, config=config)
    world.workspaces = MemoryWorkspaces({"calc.py": "1"})
    world.tree.write("calc.py", "a person's")
    world.delay = 4.0
    world.outcomes = {
        "review": [{"verdict": "needs_changes"}, {"verdict": "approve"}],
        "arbitrate": [{"verdict": "needs_work"}, {"verdict": "pass"}],
    }
    for number in range(issues):
        world.tracker.add(f"issue {number}")
    return world


async def holds_what_was_worked(world: World) -> None:
    """Each branch has one commit of each run that wrote, and the last of them stands; the shared tree is as it was."""
    world.check_done()
    assert dict((await world.tree.read()).dirty).keys() == {"calc.py"}
    for issue in world.issues():
        wrote = [fact.run for fact in world.bodies(RunPlanned) if fact.issue == issue and fact.access == "write"]
        base = next(fact.base for fact in world.bodies(TreePrepared) if fact.issue == issue)
        changes = await world.own_trees.changes(branch_of(issue), base)
        assert [commit.subject for commit in changes.commits] == [f"{issue}: what {run} left" for run in wrote]
        sealed = [fact for fact in world.bodies(TreeSealed) if fact.issue == issue][-1]
        assert world.own_trees.files(sealed.head)["calc.py"] == wrote[-1]
        assert sealed.commits == tuple(commit.sha for commit in changes.commits)


async def test_three_issues_at_once_stay_apart(folder: Path) -> None:
    world = apart(folder, issues=3)
    await world.live(person=True)
    await holds_what_was_worked(world)
    planned = [fact for fact in world.bodies(RunPlanned) if fact.phase == "implement" and fact.visit == 1]
    assert sorted(fact.slot for fact in planned) == [0, 1, 2]


@pytest.mark.promise("I7")
async def test_where_agents_are_isolated_judges_read_what_was_sealed(folder: Path) -> None:
    places = CONFIG.replace("workspace: worktree", "workspace: place")
    world = apart(folder, config=f"{places}agents: {{sandbox: auto}}\n")
    await world.live(person=True)
    await holds_what_was_worked(world)
    writes = {fact.run for fact in world.bodies(RunPlanned) if fact.access == "write"}
    made = world.bodies(TreePrepared)
    assert {(fact.ground, fact.run in writes) for fact in made if fact.run} == {("own", True), ("sealed", False)}
    assert {fact.path.split("/")[1] for fact in made if fact.ground == "sealed"} == {"grounds"}


async def lived(folder: Path, points: Points) -> None:
    """A life through which what was worked is held, whatever happens at its points."""
    world = apart(folder)
    await world.live_on(points, world.person)
    await holds_what_was_worked(world)


@pytest.mark.slow
def test_a_crash_at_each_kind_of_boundary(folder: Path) -> None:
    names = crossed(lived, folder).names
    assert {"prepare asked", "prepare done", "seal asked", "seal done"} <= {*names}
    crash_at_each(lived, folder, some(names, 2))


@pytest.mark.slow
@pytest.mark.parametrize("which", ["before", "after"])
def test_a_lost_answer_of_each_kind_of_call(folder: Path, which: str) -> None:
    lose_each(lived, folder, which)


async def test_three_trees_that_cannot_be_sealed_end_no_night_and_go_on_when_a_person_says_so(folder: Path) -> None:
    world = apart(folder, issues=6)
    world.outcomes = {}
    issues = list(world.issues())
    bad, sound = issues[:3], issues[3:]
    world.own_trees.resisting |= {branch_of(issue) for issue in bad}
    for _ in range(2):  # and once more after a restart
        said: list[str] = []
        assert await until(world, WorkOptions(until_idle=True), said) == 0, said
        assert [world.stands(issue) for issue in bad] == ["parked"] * 3
        assert [world.stands(issue) for issue in sound] == ["person"] * 3, "they are asked about what was done"
    assert world.clock.monotonic() < 900
    prompts = [fact.run for fact in world.bodies(RunPlanned)]
    assert len(prompts) == len({*prompts}) == 3 + 3 * 3
    world.own_trees.resisting.clear()
    for issue in bad:
        world.tracker.person_sets(issue, "pat", remove_labels=("ashep:parked",))
    assert await until(world, WorkOptions(until_idle=True), []) == 0
    assert [world.stands(issue) for issue in bad] == ["person"] * 3
    assert world.own_trees.read(branch_of(bad[0]))["calc.py"].startswith(f"{bad[0]}/implement.")


async def test_the_log_tells_the_first_failure_of_a_row_and_what_failed(folder: Path) -> None:
    world, told = apart(folder), list[str]()
    world.own_trees.room = False
    async with world.living() as running:
        running.shepherd.show(narrator(told.append))
        with anyio.fail_after(100):
            while "t-1" not in world.world.flows or world.world.flows["t-1"].infra < 4:
                await running.shepherd.changed()
    (line,) = [line for line in told if "cannot" in line]
    assert line == "t-1: cannot prepare its work tree (failed once, tried again): no new work tree: the disk " \
        "has less room than worker.disk_floor asks for"  # fmt: skip
