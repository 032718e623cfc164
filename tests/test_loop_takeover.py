"""The whole daemon, over memory and virtual time: a person takes a session, or an issue, and is left alone there."""

import shutil
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from ashep.core.facts.issues import IssueHeld, PhaseEntered
from ashep.core.facts.runs import ReleaseWanted, RunEnded, RunPlanned, RunWithdrawn, SessionReleased, SessionTaken
from ashep.errors import RunnerUnavailable
from tests.full import amount
from tests.loop_world import Points, World, minutes, policy
from tests.waiting import meanwhile

pytestmark = pytest.mark.virtual

PAUSED = "ashep:paused"
ISSUE = "t-1"


def world_of(folder: Path, **takeover: str) -> World:
    phases: list[dict[str, object]] = [{"name": "implement"}, {"name": "test"}]
    world = World(folder, policies=policy(*phases, takeover=takeover), issues=1)
    world.delay = 30.0
    return world


async def busy_session(world: World) -> str:
    """The session in which an agent is at work."""
    while True:
        with suppress(RunnerUnavailable):
            if busy := await world.runner.busy(world.runner.sessions):
                return next(iter(busy))
        await anyio.sleep(1)


def labels(world: World) -> set[str]:
    return set(world.issues()[ISSUE].labels)


def prompts(world: World, session: str) -> list[str]:
    """The texts of our prompts in a session."""
    return [message.text for message in world.runner.sessions[session].messages if message.who != "person"]


@pytest.mark.promise("P11")
@pytest.mark.parametrize("action", ["resume", "pause", "review"])
async def test_a_person_is_left_alone_and_then_the_agent_goes_on(folder: Path, action: str) -> None:
    """They write every four minutes for an hour, and let turns of two minutes run; the cool-down is five."""
    world = world_of(folder, action=action, cooldown="5m")
    last = 0.0
    session = ""

    async def person() -> None:
        nonlocal last, session
        session = await busy_session(world)
        await anyio.sleep(5)
        for _ in range(15):
            world.runner.person_writes(session, "and this", delay=120)
            last = world.clock.monotonic()
            assert len(prompts(world, session)) == 1
            await anyio.sleep(240)
            assert (PAUSED in labels(world)) == (action == "pause")
            assert world.stands(ISSUE) == "person"

    await world.finish(beside=person)
    released = next(entry for entry in world.entries if isinstance(entry.body, SessionReleased))
    quiet = world.clock.monotonic() - (world.clock.now() - released.at).total_seconds() - last
    assert 120 + 300 <= quiet <= 120 + 300 + 25
    told = prompts(world, session)
    assert ["A person has worked in this session" in one for one in told] == [False, True][: len(told)]
    assert len(told) == (1 if action == "review" else 2)
    assert [fact.state for fact in world.bodies(RunEnded)].count("aborted") == 1
    assert len(world.bodies(SessionTaken)) == 1


@pytest.mark.promise("P10")
@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("action", ["resume", "pause", "review"])
async def test_who_writes_at_the_end_of_a_turn_is_not_passed_over(folder: Path, action: str, restart: bool) -> None:
    """The stream does not tell of it, and the turn has ended before the next look at people, or before a restart."""
    world = world_of(folder, action=action, cooldown="5m")
    wrote = False

    async def person() -> None:
        nonlocal wrote
        session = await busy_session(world)
        await anyio.sleep(25)
        world.runner.person_writes(session, "not like this", delay=60, unheard=True)
        wrote = True
        await anyio.sleep(120)
        assert [fact.phase for fact in world.bodies(PhaseEntered)] == ["implement"]
        if action == "pause":
            assert PAUSED in labels(world)

    async with meanwhile(person):
        if restart:
            await world.live(lambda: wrote)
            await anyio.sleep(10)
        await world.live()
    world.check_done()
    (taken,) = world.bodies(SessionTaken)
    assert taken.outcome
    order = [type(entry.body) for entry in world.entries]
    entered = [place for place, kind in enumerate(order) if kind is PhaseEntered]
    assert entered[0] < order.index(RunEnded) < order.index(SessionReleased) < entered[1]
    assert [(fact.run, fact.state) for fact in world.bodies(RunEnded)] == [
        ("t-1/implement.1.1", "succeeded"), ("t-1/test.1.1", "succeeded"),
    ]  # fmt: skip


@pytest.mark.promise("P13")
async def test_the_label_takes_an_issue_over_and_gives_it_back(folder: Path) -> None:
    world = world_of(folder)
    world.delay = 600.0
    session = ""

    async def person() -> None:
        nonlocal session
        session = await busy_session(world)
        world.tracker.person_sets(ISSUE, "pat", add_labels=(PAUSED,))
        await anyio.sleep(60)
        assert not await world.runner.busy(world.runner.sessions)
        world.runner.person_writes(session, "I do it", delay=200)
        await anyio.sleep(minutes(90))
        assert world.stands(ISSUE) == "person"
        assert world.world.lock == ISSUE
        assert len(prompts(world, session)) == 1
        world.delay = 5.0
        world.tracker.person_sets(ISSUE, "pat", remove_labels=(PAUSED,))

    await world.finish(beside=person)
    assert len(prompts(world, session)) == 2
    assert [fact.by for fact in world.bodies(SessionReleased)] == ["label"]
    assert len(world.bodies(ReleaseWanted)) == 1
    assert [fact.attempt for fact in world.bodies(RunPlanned)] == [1, 2, 1]


@pytest.mark.parametrize("moment", [1, 3, 6, 11, 20, 45, 100, 330, 345, 360])
async def test_a_restart_in_the_midst_of_a_takeover_changes_nothing(folder: Path, moment: float) -> None:
    world = world_of(folder, action="resume", cooldown="5m")
    wrote = False

    async def person() -> None:
        nonlocal wrote
        world.runner.person_writes(await busy_session(world), "wait", delay=20)
        wrote = True

    async with meanwhile(person):
        await world.live(lambda: wrote)
        until = world.clock.monotonic() + moment
        await world.live(lambda: world.clock.monotonic() >= until or world.all_closed())
        await world.live()
    world.check_done()
    assert len(world.bodies(SessionTaken)) == 1
    assert len(world.bodies(RunPlanned)) == 3


@pytest.mark.promise("P11")
@pytest.mark.slow
@pytest.mark.parametrize("action", ["resume", "pause"])
async def test_a_crash_at_each_boundary_of_a_takeover(folder: Path, action: str) -> None:
    boundary = 0
    while True:
        boundary += amount(13, 7)
        shutil.rmtree(folder, ignore_errors=True)
        world = world_of(folder, action=action, cooldown="1m")

        async def person(world: World = world) -> None:
            session = await busy_session(world)
            await anyio.sleep(2)
            world.runner.person_writes(session, "wait", delay=20)

        async with meanwhile(person):
            done = await world.live(points=Points(boundary))
            if not done:
                await world.live()
        world.check_done()
        assert all(count == 1 for count in world.runner.deliveries.values())
        if done:
            return


@pytest.mark.promise("P12")
async def test_what_a_person_changes_in_the_tree_is_the_issues(folder: Path) -> None:
    world = world_of(folder, action="resume", cooldown="5m")

    async def person() -> None:
        world.runner.person_writes(await busy_session(world), "wait", delay=20)
        await anyio.sleep(100)
        world.tree.write("calc.py", "by hand")

    await world.finish(beside=person)
    assert not [fact for fact in world.bodies(IssueHeld) if fact.code == "tree_dirty"]
    assert not world.bodies(RunWithdrawn)


async def test_a_person_who_stops_the_turn_in_opencode_is_waited_for(folder: Path) -> None:
    world = world_of(folder, action="resume", cooldown="5m")
    world.delay = 100.0
    stopped = 0.0

    async def person() -> None:
        nonlocal stopped
        session = await busy_session(world)
        await anyio.sleep(20)
        stopped = world.clock.monotonic()
        await world.runner.abort(session)

    await world.finish(beside=person)
    again = next(entry for entry in world.entries if isinstance(entry.body, RunPlanned) and entry.body.attempt == 2)
    waited = world.clock.monotonic() - (world.clock.now() - again.at).total_seconds() - stopped
    assert timedelta(minutes=5).total_seconds() <= waited <= 330


@pytest.mark.promise("P12")
async def test_a_session_that_is_used_again_is_not_written_to_while_a_person_is_in_it(folder: Path) -> None:
    """They write there after the first attempt has failed, and before the second one begins."""
    phase: dict[str, object] = {"name": "implement", "session": "reuse", "retry": {"initial_delay": "30s"}}
    world = World(folder, policies=policy(phase, takeover={"action": "resume", "cooldown": "2m"}), issues=1)
    world.outcomes = {"implement": [{"result": "failed"}, {}]}
    wrote = session = None

    async def person() -> None:
        nonlocal wrote, session
        session = await busy_session(world)
        while await world.runner.busy(world.runner.sessions):
            await anyio.sleep(1)
        world.runner.person_writes(session, "let me see", delay=300)
        wrote = world.clock.now()

    await world.finish(beside=person)
    assert wrote is not None
    assert session is not None
    assert [message.who for message in world.runner.sessions[session].messages] == ["ashep", "person"]
    assert [fact.state for fact in world.bodies(RunEnded)] == ["failed", "succeeded"]
    assert [fact.leave for fact in world.bodies(RunWithdrawn)] == [session]


async def test_no_server_is_ended_in_which_a_person_works(folder: Path) -> None:
    """A managed server is ended when nothing ran for `idle_stop`; and with its daemon, where nothing runs on it."""
    config = "version: 1\nrunners: {opencode: {idle_stop: 2m}}\n"
    world = World(folder, policies=policy({"name": "implement"}), config=config, issues=1)

    async def person() -> None:
        world.runner.person_writes(await busy_session(world), "wait", delay=1000)
        await anyio.sleep(minutes(30))
        assert await world.runner.has_session(world.bodies(SessionTaken)[0].session or "")
        life = world.runner.instance
        world.tracker.person_sets(ISSUE, "pat", remove_labels=(PAUSED,))
        await anyio.sleep(20)
        assert world.runner.instance == life

    await world.finish(beside=person)
