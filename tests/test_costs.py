"""What a run costs in calls of the tracker and the agent server: counted in virtual time, as no clock can tell it."""

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from ashep.core.facts.requests import Request
from ashep.core.facts.runs import PromptSent, RunEnded
from ashep.daemon.daemon import WorkOptions
from ashep.daemon.runner_monitor import QUESTION
from ashep.ports.runner import Sign
from tests.loop_world import Points, World, policy

pytestmark = [pytest.mark.promise("T2"), pytest.mark.virtual]

PHASES: tuple[dict[str, object], ...] = (
    {"name": "one", "capabilities": ["review"]},
    {"name": "two", "capabilities": ["review"]},
    {"name": "three", "capabilities": ["review"]},
)
ISSUES, RUNS = 20, 60
CONFIG = "version: 1\nworker: {max_concurrent_runs: 3, lock_work_tree: false, workspace: shared}\n"


def place(folder: Path, *, delay: float) -> World:
    world = World(folder, policies=policy(*PHASES), config=CONFIG)
    world.delay = delay
    return world


async def test_what_a_run_costs_where_nothing_goes_wrong(tmp_path: Path) -> None:
    """`make bench` does the same work on the real tools (docs/benchmarks.md)."""
    world, points = place(tmp_path / "p", delay=0.4), Points()
    for number in range(ISSUES):
        world.tracker.add(f"part {number}")
    told, signs = [], world.runner.signs

    async def counted() -> AsyncGenerator[Sign]:
        async with aclosing(signs()) as source:
            async for sign in source:
                told.append(sign.session)
                yield sign

    world.runner.signs = counted  # type: ignore[method-assign]
    async with world.living(points, sources=False) as running:
        options = WorkOptions(until_idle=True, idle_grace=timedelta())
        assert await running.until(await world.tracker.check(), options, world.said.append) == 0
    world.check_done()
    took = (world.entries[-1].at - world.entries[0].at).total_seconds()
    calls = Counter(points.calls)
    assert (calls["claim"], calls["update"], calls["open_session"], calls["send"]) == (ISSUES, 60, RUNS, RUNS)
    assert calls["look"] <= 2 + took / 10, "one at the start, one at the end, and those of `poll_every` between"
    assert not calls.keys() & {"issue", "commented", "comment"}
    assert calls["turn"] <= len(told), "what was told is believed after one read, and nothing else is read"
    assert calls["requests"] <= len(told) - RUNS, "whose turn is over asks nothing"
    assert calls["busy"] == 0, "every end was told within the time of a look"


async def test_a_start_without_work_looks_twice_and_one_with_work_once(tmp_path: Path) -> None:
    async def looks(world: World) -> int:
        points, options = Points(), WorkOptions(until_idle=True, idle_grace=timedelta())
        async with world.living(points, options, sources=False) as running, anyio.create_task_group() as group:
            group.start_soon(running.until, await world.tracker.check(), options, world.said.append)
            await anyio.sleep(8)
            group.cancel_scope.cancel()
        return points.calls.count("look")

    assert await looks(place(tmp_path / "empty", delay=60.0)) == 2
    world = place(tmp_path / "full", delay=60.0)
    world.tracker.add("part")
    assert await looks(world) == 1


@pytest.mark.parametrize("apart", [0.3, 0.9, 1.6])
async def test_turns_of_which_nothing_is_told_are_each_found_within_a_check_by_lists_that_they_share(
    tmp_path: Path, apart: float
) -> None:
    """The stream stands, and tells nothing. Three sessions whose prompts went out at different times."""
    world, points = place(tmp_path / "p", delay=100.0), Points()

    async def silent() -> AsyncIterator[Sign]:
        yield Sign(None)
        await anyio.sleep_forever()

    world.runner.signs = silent  # type: ignore[method-assign]
    listed: list[float] = []
    busy = world.runner.busy

    async def listing(sessions: list[str]) -> frozenset[str]:
        listed.append(world.clock.monotonic())
        return await busy(sessions)

    world.runner.busy = listing  # type: ignore[method-assign,assignment]
    async with world.living(points):
        for number in range(3):
            world.tracker.add(f"part {number}")
            await anyio.sleep(apart)
        await anyio.sleep(150)
    sent = {one.body.run: one.at for one in world.entries if isinstance(one.body, PromptSent)}
    ended = {one.body.run: one.at for one in world.entries if isinstance(one.body, RunEnded)}
    assert len(ended) >= 3
    for run, at in ended.items():
        assert 100 <= (at - sent[run]).total_seconds() <= 100 + 2 + 0.5
    assert all(later - earlier >= 0.9 for earlier, later in pairwise(listed)), "one list tells of all that are due"


async def test_what_a_turn_asks_is_seen_at_its_sign_and_without_one_soon(tmp_path: Path) -> None:
    async def scenario(told: bool) -> float:
        world = place(tmp_path / str(told), delay=100.0)
        world.tracker.add("part")
        seen: list[float] = []
        asked = anyio.Event()

        async def signs() -> AsyncIterator[Sign]:
            yield Sign(None)
            await asked.wait()
            if told:
                yield Sign(next(iter(world.runner.sessions)))
            await anyio.sleep_forever()

        async def requests(_: object) -> tuple[Request, ...]:
            if asked.is_set():
                seen.append(world.clock.monotonic())
            await anyio.lowlevel.checkpoint()
            return ()

        world.runner.signs = signs  # type: ignore[method-assign]
        world.runner.requests = requests  # type: ignore[method-assign]
        async with world.living():
            await anyio.sleep(31)
            asked.set()
            at = world.clock.monotonic()
            await anyio.sleep(20)
        return seen[0] - at

    assert await scenario(told=True) < 0.5
    assert await scenario(told=False) <= QUESTION + 2 + 0.5
