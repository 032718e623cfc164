"""The agent server in a whole daemon, over memory and virtual time: it leaks, dies at once each time, and goes away."""

import itertools
from collections.abc import AsyncIterator, Collection
from datetime import timedelta
from functools import partial
from pathlib import Path

import anyio
import pytest

from ashep.core.facts.issues import IssueHeld, IssueParked, RetryScheduled
from ashep.core.facts.resources import RecycleWanted, RunnerSeen, ServerEnded, ServerFailed, ServerRestartPlanned
from ashep.core.facts.runs import PromptSent, RunEnded, TurnDied
from ashep.core.facts.tracker import TrackerSeen
from ashep.core.resources.agent_server import DRAIN, LONGEST_DELAY
from ashep.daemon.runner_monitor import CATALOGUE
from ashep.errors import RunnerUnavailable, ServerNotStarted, TrackerUnavailable
from ashep.extras.simulation.memory.runner import MemoryRunner, Play
from ashep.ports.runner import Sign
from tests.loop_world import World, minutes, policy, said

pytestmark = [pytest.mark.slow, pytest.mark.virtual]

GIB = 1024**3
PHASE: dict[str, object] = {"name": "check", "capabilities": ["review"], "timeout": "3h", "stall": {"after": "1d"}}
ALONE = "version: 1\nworker: {max_concurrent_runs: 2, lock_work_tree: false}\n"


def place(folder: Path, *, config: str = ALONE, delay: float = 600.0, issues: int = 1) -> World:
    world = World(folder, policies=policy(PHASE | {"retry": {"max_attempts": 1}}), config=config, issues=issues)
    world.answer = lambda _, asked: Play(text=said("check"), delay=delay)
    return world


async def leaks(world: World, gib: int, after: float) -> None:
    """The agent server needs so much memory from then on."""
    await anyio.sleep(after)
    world.runner.memory = gib * GIB


def took(world: World) -> float:
    """The seconds from the prompt until its run has ended."""
    sent = next(entry for entry in world.journal() if isinstance(entry.body, PromptSent))
    ended = next(entry for entry in world.journal() if isinstance(entry.body, RunEnded))
    return (ended.at - sent.at).total_seconds()


def turns(world: World) -> int:
    return sum(world.runner.began.values())


@pytest.mark.promise("E3")
async def test_a_tracker_and_a_server_that_are_upgraded_are_told_and_nothing_is_lost(tmp_path: Path) -> None:
    world = place(tmp_path / "p", issues=3)

    async def upgrade() -> None:
        await anyio.sleep(60)
        world.tracker.fail("look", TrackerUnavailable("bd cannot be started: Text file busy"), times=3)
        world.tracker.version = "memory 2"
        await world.runner.stop_server()
        world.runner.version = "memory 2"

    await world.finish(beside=upgrade, restarts=1)
    told = "memory 2 answers where memory did"
    assert [one.replaced for one in world.bodies(TrackerSeen) if one.replaced] == [told]
    assert [one.replaced for one in world.bodies(RunnerSeen) if one.replaced] == [told]
    assert not [one for one in world.bodies(RunEnded) if one.state != "succeeded"]


class Starting(MemoryRunner):
    """Its server takes two seconds to start, and before that there is nobody to ask about a turn."""

    ready = False

    async def start(self) -> None:
        await anyio.sleep(2)
        await super().start()
        self.ready = True

    async def busy(self, sessions: Collection[str]) -> frozenset[str]:
        if not self.ready:
            raise RunnerUnavailable("it was not started")
        return await super().busy(sessions)


async def test_a_server_that_still_starts_is_not_away_although_a_turn_is_under_way(tmp_path: Path) -> None:
    world = place(tmp_path / "p", delay=60)
    world.runner = runner = Starting(world.clock, world.play)
    await world.live(lambda: bool(world.bodies(PromptSent)))
    runner.ready = False
    await world.finish()
    assert not [one.detail for one in world.bodies(RunnerSeen) if one.state != "up"]
    assert turns(world) == 1


@pytest.mark.promise("X12")
async def test_a_server_that_leaks_is_begun_anew_between_turns_and_no_turn_is_lost(tmp_path: Path) -> None:
    world = place(tmp_path / "p", issues=5)
    await world.finish(beside=partial(leaks, world, 5, 300))
    assert turns(world) == 5
    assert not world.bodies(TurnDied)
    assert not world.bodies(ServerFailed)
    assert [fact.why for fact in world.bodies(ServerEnded)] == ["recycled"]
    assert len({fact.instance for fact in world.bodies(RunnerSeen) if fact.instance}) == 2
    assert {fact.code for fact in world.bodies(IssueHeld)} >= {"slot", "recycling"}
    wanted = next(entry for entry in world.journal() if isinstance(entry.body, RecycleWanted))
    ended = next(entry for entry in world.journal() if isinstance(entry.body, ServerEnded))
    assert (wanted.at - world.journal()[0].at).total_seconds() <= 300 + CATALOGUE + 5
    assert (ended.at - wanted.at).total_seconds() <= 600


async def test_at_twice_its_limit_it_is_begun_anew_at_once_and_no_attempt_is_burnt(tmp_path: Path) -> None:
    world = place(tmp_path / "p", delay=7200.0)
    await world.finish(beside=partial(leaks, world, 9, 600), restarts=1)
    assert len(world.bodies(TurnDied)) == 1
    assert [fact.state for fact in world.bodies(RunEnded)] == ["succeeded"]


@pytest.mark.promise("X12")
async def test_a_drain_does_not_wait_for_a_long_turn_for_ever(tmp_path: Path) -> None:
    world = place(tmp_path / "p", issues=5)
    world.answer = lambda _, asked: Play(text=said("check"), delay=10_000.0 if "t-1/" in asked.key else 600.0)
    await world.finish(beside=partial(leaks, world, 5, 300))
    assert turns(world) == 5, "no healthy turn was ended"
    first, again = [e.at for e in world.journal() if isinstance(e.body, RecycleWanted)][:2]
    began = [run.at for run in world.journal() if isinstance(run.body, RunEnded)]
    assert any(DRAIN < at - first < again - first for at in began), "others went on in between"


@pytest.mark.promise("X9")
async def test_a_server_that_dies_at_once_each_time_is_not_started_in_a_hot_loop(tmp_path: Path) -> None:
    """For some minutes it dies a second after each start; then it lives."""
    world = place(tmp_path / "p")
    broken = True

    async def dies() -> None:
        nonlocal broken
        end = world.clock.monotonic() + minutes(4)
        while world.clock.monotonic() < end:
            await anyio.sleep(1)
            world.runner.kill()
        broken = False

    await world.live(beside=dies)
    assert not broken
    world.check(restarts=10)
    starts = len({fact.instance for fact in world.bodies(RunnerSeen) if fact.instance})
    assert 5 <= starts <= 11
    delays = [(entry.body.due - entry.at).total_seconds() for entry in world.journal()
              if isinstance(entry.body, ServerRestartPlanned)]  # fmt: skip
    assert delays == sorted(delays)
    assert delays[-1] >= 32
    assert not world.bodies(RetryScheduled)
    assert not world.bodies(IssueParked)
    assert world.all_closed()


@pytest.mark.promise("X9")
async def test_a_server_that_does_not_start_is_tried_at_growing_intervals(tmp_path: Path) -> None:
    world = place(tmp_path / "p")
    tries = list[float]()

    def fault(method: str, when: str) -> Exception | None:
        if method != "start" or when != "before":
            return None
        tries.append(world.clock.monotonic())
        return ServerNotStarted("the program is broken") if len(tries) < 14 else None

    world.runner.fault = fault
    await world.finish()
    assert len(world.bodies(ServerFailed)) == 13
    gaps = [later - before for before, later in itertools.pairwise(tries)]
    assert all(gap <= LONGEST_DELAY.total_seconds() + 60 for gap in gaps)
    assert gaps[12] >= LONGEST_DELAY.total_seconds()


@pytest.mark.promise("X11")
async def test_an_attached_server_that_is_away_for_hours_burns_no_attempt(tmp_path: Path) -> None:
    """It goes on with its turns meanwhile, and nobody can see it: it accepts connections and never answers."""
    config = "version: 1\nrunners: {opencode: {managed: false, url: 'http://127.0.0.1:4096'}}\n"
    world = place(tmp_path / "p", config=config, delay=minutes(100), issues=2)
    away = world.away("no answer within 1 s")

    async def outage() -> None:
        await anyio.sleep(minutes(10))
        away.now = True
        await anyio.sleep(minutes(8 * 60))
        away.now = False

    await world.finish(patience=minutes(15 * 60), beside=outage)
    assert [fact.state for fact in world.bodies(RunEnded)] == ["succeeded", "succeeded"]
    assert not world.bodies(RetryScheduled)
    assert not world.bodies(ServerFailed)


@pytest.mark.promise("I4")
async def test_a_server_on_a_full_disk_loses_a_turn_and_burns_no_attempt(tmp_path: Path) -> None:
    """It answers as ever, and what it takes comes to nothing: only looks at the turn and the disk show that."""
    line = "No space left on device, on the disk of /data: make room there; it is tried again"
    world = place(tmp_path / "p", delay=60.0)
    full = world.away(line, "start", "turn", "catalog")
    world.answer = lambda _, asked: Play(text=said("check"), delay=60.0, fate="stored" if full.now else "ends")

    async def fill() -> None:
        while not world.runner.sessions:
            await anyio.sleep(0.01)
        full.now = True
        await anyio.sleep(minutes(5))
        world.tracker.add("second")
        await anyio.sleep(minutes(8 * 60))
        assert not world.bodies(RunEnded)
        assert len(world.runner.sessions) == 1
        full.now = False

    await world.finish(patience=minutes(15 * 60), beside=fill)
    assert [fact.detail for fact in world.bodies(RunnerSeen) if fact.state != "up"] == [line]
    assert "runner_away" in {fact.code for fact in world.bodies(IssueHeld)}
    assert [fact.state for fact in world.bodies(RunEnded)] == ["succeeded", "succeeded"]
    assert not world.bodies(RetryScheduled)
    assert not world.bodies(ServerFailed)


@pytest.mark.promise("X11")
async def test_a_night_without_tracker_and_server_is_waited_out(tmp_path: Path) -> None:
    """More than a thousand failures in a row of each: waits are bounded, and so are the numbers that they come of."""
    world = place(tmp_path / "p")
    away = world.away()
    away.now = True
    world.tracker.fail("look", TrackerUnavailable("away"), times=10**6)

    async def outage() -> None:
        await anyio.sleep(minutes(20 * 60))
        away.now = False
        world.tracker._failures.clear()  # pyright: ignore[reportPrivateUsage]

    await world.finish(patience=minutes(21 * 60), beside=outage)


@pytest.mark.promise("T2", "X15")
async def test_what_no_stream_tells_of_is_read_within_a_check(tmp_path: Path) -> None:
    """The stream stands, and tells nothing: the end of a turn is seen all the same."""
    world = place(tmp_path / "p", delay=100.0)

    async def silent() -> AsyncIterator[Sign]:
        yield Sign(None)
        await anyio.sleep_forever()

    world.runner.signs = silent  # type: ignore[method-assign]
    await world.finish()
    assert 100 <= took(world) <= 100 + 2 + 1


@pytest.mark.promise("X15")
async def test_after_a_gap_of_the_stream_every_turn_is_read_at_once(tmp_path: Path) -> None:
    """It ends in the gap; the stream that stands again is what tells, before the next check."""
    world = place(tmp_path / "p", config=ALONE + "monitor: {check_every: 10m}\n", delay=100.0)

    async def cut() -> AsyncIterator[Sign]:
        yield Sign(None)
        await anyio.sleep(130)
        yield Sign(None)
        await anyio.sleep_forever()

    world.runner.signs = cut  # type: ignore[method-assign]
    await world.finish()
    assert 100 <= took(world) <= 135


async def test_a_server_that_was_away_while_the_clock_was_set_back_is_back_when_it_answers(tmp_path: Path) -> None:
    world = place(tmp_path / "p", delay=60.0)
    gone = world.away("no answer")

    async def leaves() -> None:
        while not world.runner.sessions:
            await anyio.sleep(0.01)
        gone.now = True
        await anyio.sleep(minutes(2))
        world.clock.jump(timedelta(hours=-9))
        gone.now = False

    await world.live(patience=minutes(30), beside=leaves)
