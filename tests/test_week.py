"""Two weeks of landing issues, in virtual time: trees and branches stay within their bound by themselves.

A person left something uncommitted in some of them: those stand for ever.
"""

from pathlib import Path

import anyio
import pytest

from ashep.core.facts.delivery import TreeKept, TreeRemoved
from ashep.core.state.branches import branch_of
from ashep.errors import AshepError
from ashep.extras.simulation.memory.workspaces import MemoryWorkspaces
from tests.core.mutants import Mutant, planted
from tests.full import amount
from tests.loop_hands import Hands, landing_world
from tests.loop_world import simulate

pytestmark = pytest.mark.promise("Z5")

ISSUES, DAY = amount(100, 200), 24 * 3600.0
EVERY = 14 * DAY / ISSUES
CONFIG = (
    "version: 1\nworker: {workspace: worktree, max_concurrent_runs: 3}\nlanding: {mode: merge}\n"
    "tracker: {poll_every: 30m}\nmonitor: {check_every: 15s}\n"
)
A_DAY = ISSUES / 14


def fortnight(folder: Path) -> None:
    """Live it, and look at what is left."""

    async def scenario() -> None:
        world = landing_world(folder, Hands(lambda issue: (f"{issue}.py",)), config=CONFIG)
        trees = world.own_trees
        most, theirs = 0, dict[str, str]()

        async def come_in() -> None:
            nonlocal most
            for number in range(ISSUES):
                issue = world.tracker.add(f"issue {number}")
                await anyio.sleep(EVERY)
                standing = {one.branch for one in trees.standing()}
                if number % (ISSUES // 10) == 7 and branch_of(issue) in standing:
                    trees.edit(branch_of(issue), "mine.txt", issue)
                    theirs[branch_of(issue)] = issue
                most = max(most, len(standing - set(theirs)))

        until = world.clock.monotonic() + 15 * DAY
        await world.live(lambda: world.clock.monotonic() >= until, patience=30 * DAY, beside=come_in)
        assert len(theirs) == 10
        assert A_DAY * 6 < most < A_DAY * 8, most
        assert {branch: trees.read(branch).get("mine.txt") for branch in theirs} == theirs
        gone, kept = world.bodies(TreeRemoved), world.bodies(TreeKept)
        assert len(gone) > ISSUES / 3
        assert not {one.branch for one in gone} & set(theirs)
        assert {one.branch for one in kept} <= set(theirs)
        assert kept
        world.check()

    simulate(scenario)


@pytest.mark.slow
def test_two_weeks_of_landed_issues_leave_a_weeks_trees_and_what_is_a_persons(folder: Path) -> None:
    fortnight(folder)


@pytest.mark.slow
def test_unmerged_work_that_goes_is_seen(folder: Path) -> None:
    careless = Mutant("unmerged work goes", MemoryWorkspaces.retire, "known.tree != self.files(known.head)", "False")
    with planted(careless), pytest.raises((AssertionError, AshepError)):
        fortnight(folder)
