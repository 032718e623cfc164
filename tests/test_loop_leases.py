"""Whole daemons over memory and virtual time: leases, lost state folders, and several daemons on one database."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import pytest

from ashep.core.facts.issues import IssueAdopted
from ashep.core.facts.runs import OrphanStopped, RunEnded, RunPlanned
from ashep.core.facts.tracker import IssueReclaimed, LeaseLost
from tests.loop_world import ACTOR, Points, World, minutes
from tests.waiting import meanwhile, wait_until

pytestmark = pytest.mark.virtual


def lose(world: World) -> None:
    """The state folder is gone, and all that the test kept in mind of it."""
    shutil.rmtree(world.folder / "state")
    world.entries.clear()


async def lived_for(world: World, seconds: float) -> None:
    """Live so long, and be killed."""
    points = Points()

    async def end() -> None:
        await anyio.sleep(seconds)
        points.dead = True

    assert not await world.live(points=points, beside=end)


async def until(fact: Callable[[], bool]) -> None:
    """Wait for something; the test's own patience is virtual."""
    await wait_until(fact, minutes(60), 1)


def beside(world: World, folder: Path, actor: str = "ashep-other") -> World:
    """Another daemon on the same database, with a state folder, a server and a work tree of its own."""
    other = World(folder)
    other.clock, other.tracker, other.people = world.clock, world.tracker.as_actor(actor), world.people
    return other


# --- leases -------------------------------------------------------------------------------------------------------


@pytest.mark.promise("O1")
async def test_a_lease_is_renewed_for_as_long_as_a_run_takes_and_nothing_is_written_of_it(folder: Path) -> None:
    world = World(folder)
    world.delay = minutes(25)
    issue = world.tracker.add("first")
    async with meanwhile(partial(world.live, person=True)):
        await anyio.sleep(minutes(24))
        beats, size = world.tracker.calls["heartbeat"], len(world.entries)
        assert 11 <= beats <= 13
        (seen,) = (await world.people.look()).issues
        assert seen.lease is not None
        assert (seen.lease - world.clock.now()).total_seconds() > 120
        await anyio.sleep(20)
        assert len(world.entries) == size
    assert world.issues()[issue].status == "in_progress"
    assert not world.bodies(LeaseLost)


@pytest.mark.promise("O1")
async def test_a_question_needs_no_lease(folder: Path) -> None:
    world, issue = World(folder, issues=1), "t-1"
    async with world.living():
        await until(lambda: world.issues()[issue].status == "blocked")
        await anyio.sleep(5)
        beats = world.tracker.calls["heartbeat"]
        await anyio.sleep(minutes(60))
        assert world.tracker.calls["heartbeat"] == beats


async def test_an_issue_that_somebody_takes_is_left_for_good_however_long_ago_its_lease_ran_out(folder: Path) -> None:
    world = World(folder)
    world.delay = minutes(20)
    issue = world.tracker.add("first")
    async with world.living():
        await until(lambda: bool(world.runner.began))
        world.tracker.person_sets(issue, "bob", assignee="bob")
        await until(lambda: world.stands(issue) == "not_eligible")
        written = world.tracker.calls["update"]
        await anyio.sleep(10)
        assert not await world.runner.busy(world.runner.sessions)
        await anyio.sleep(minutes(30))
        assert world.tracker.calls["update"] == written
        assert world.issues()[issue].assignee == "bob"


# --- a state folder that is lost ----------------------------------------------------------------------------------


@pytest.mark.promise("O3")
@pytest.mark.parametrize("at", [2.0, 12.0, 30.0, 55.0])
async def test_a_lost_state_folder_strands_nothing(folder: Path, at: float) -> None:
    world = World(folder, issues=1)
    await lived_for(world, at)
    lose(world)
    await world.finish(person=True)
    assert len(world.bodies(IssueAdopted)) <= 1


@pytest.mark.promise("O3")
async def test_three_issues_in_different_places_survive_the_loss_of_the_state_folder(folder: Path) -> None:
    world = World(folder)
    world.delay = minutes(3)
    asked, parked = world.tracker.add("asked"), world.tracker.add("parked")
    world.outcomes = {f"{parked}/implement": [{"result": "failed"}], "implement": [{}]}
    points = Points()

    async def end() -> None:
        await until(lambda: [world.issues()[one].status for one in (asked, parked)] == ["blocked"] * 2)
        world.tracker.add("working", id="t-x")
        await until(lambda: any("t-x" in key for key in world.told))
        points.dead = True

    assert not await world.live(points=points, beside=end)
    began = world.runner.began.total()
    lose(world)
    world.outcomes = {}
    world.tracker.person_sets(parked, "pat", remove_labels=("ashep:parked",))
    await world.finish(person=True)
    adopted = {fact.issue: fact.kind for fact in world.bodies(IssueAdopted)}
    assert adopted == {asked: "ask", parked: "park", "t-x": "work"}
    assert [fact.found for fact in world.bodies(OrphanStopped)] == [True]
    first, *_ = [fact.run for fact in world.bodies(RunPlanned) if fact.issue == "t-x"]
    assert first == "t-x/implement.1.2"
    # t-x: another implement, a review, an arbitration; parked: the three of them; asked: nothing any more
    assert world.runner.began.total() - began == 6


# --- several daemons on one database ------------------------------------------------------------------------------


@pytest.mark.promise("O5")
async def test_two_daemons_share_the_issues_and_no_run_is_made_twice(folder: Path) -> None:
    world = World(folder, issues=6)
    other = beside(world, folder.parent / "other" / ".agent-shepherd")

    async def both(one: World) -> None:
        await one.live(lambda: all(issue.status == "closed" for issue in world.issues().values()))
        await anyio.sleep(5)

    async with meanwhile(world.person), anyio.create_task_group() as pair:
        pair.start_soon(both, world)
        pair.start_soon(both, other)
    ended = [{fact.run for fact in one.bodies(RunEnded) if fact.state == "succeeded"} for one in (world, other)]
    assert all(ended)
    assert not ended[0] & ended[1]
    assert len(ended[0] | ended[1]) == 18
    for one in (world, other):
        assert set(one.runner.began.values()) == {1}


@pytest.mark.promise("O4")
async def test_the_issue_of_a_daemon_that_died_is_taken_over_with_a_comment_once_its_lease_is_long_gone(
    folder: Path,
) -> None:
    world = World(folder)
    other = beside(world, folder.parent / "other" / ".agent-shepherd")
    issue = world.tracker.add("first")
    await lived_for(world, 12)
    began = world.clock.now()
    await other.live(lambda: world.issues()[issue].status == "closed", beside=world.person)
    assert [fact.done for fact in other.bodies(IssueReclaimed)] == [True]
    waited = (next(e.at for e in other.journal() if isinstance(e.body, IssueReclaimed)) - began).total_seconds()
    assert 14 * 60 < waited < 16 * 60
    assert any(f"lease of {ACTOR} ran out" in text for text in world.comments(issue))
    # the first one comes back: it sees that the issue is closed, and does no harm
    async with world.living():
        await until(lambda: world.stands(issue) == "closed")
    other.check()


@pytest.mark.promise("O4")
async def test_a_daemon_that_comes_back_in_time_keeps_its_issue(folder: Path) -> None:
    world = World(folder, issues=1)
    other = beside(world, folder.parent / "other" / ".agent-shepherd")
    await lived_for(world, 12)
    async with other.living():
        await anyio.sleep(minutes(13))
        await world.finish(person=True)
    assert not other.bodies(RunPlanned)
