"""Budgets in the whole daemon, over memory and virtual time."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from ashep.core.facts.commands import WRITES
from ashep.core.facts.issues import IssueParked
from ashep.core.facts.resources import BudgetReached, BudgetWarned, WriteDelayed
from ashep.core.facts.runs import RunEnded, RunPlanned, TurnSeen
from ashep.core.state.spending import day_of
from ashep.daemon.runner_monitor import PEOPLE_EVERY
from ashep.extras.simulation.memory.runner import MemoryRunner, Play, Prompted
from ashep.ports.runner import Turn
from tests.loop_world import Points, World

pytestmark = [pytest.mark.slow, pytest.mark.virtual]


class Growing(MemoryRunner):
    """An agent server that tells what a running turn has used so far: 10 tokens a second."""

    async def turn(self, session: str, message_id: str, ours: frozenset[str] = frozenset()) -> Turn:
        """Read a turn."""
        turn = await super().turn(session, message_id, ours)
        if turn.state != "running":
            return turn
        asked = next(message.at for message in self.sessions[session].messages if message.id == message_id)
        return replace(turn, tokens=int((self._clock.now() - asked).total_seconds() * 10))


async def lived(world: World, days: float = 5.0, points: Points | None = None) -> bool:
    """Live until all is closed, with a person who approves."""
    return await world.live(points=points, patience=days * 86400, beside=world.person)


@pytest.mark.promise("B1")
async def test_a_turn_that_grows_beyond_its_runs_budget_is_stopped_while_it_runs(folder: Path) -> None:
    world = World(folder, config="version: 1\nbudgets: {run: {tokens: 1000}}\n")
    world.runner = Growing(world.clock, world.play)
    wild = world.tracker.add("first")

    def answer(_: World, asked: Prompted) -> Play | None:
        return Play(delay=3600.0, tokens=36_000) if f"{wild}/implement" in asked.key else None

    world.answer = answer
    await world.live(lambda: bool(world.comments(wild)))
    assert world.stands(wild) == "parked"
    ended = next(entry for entry in world.entries if isinstance(entry.body, RunEnded))
    began = next(entry.at for entry in world.entries if isinstance(entry.body, TurnSeen))
    assert timedelta(seconds=95) <= ended.at - began <= timedelta(seconds=100 + PEOPLE_EVERY + 5)
    assert isinstance(ended.body, RunEnded)
    assert (ended.body.state, world.bodies(IssueParked)[0].code) == ("aborted", "budget")
    assert [type(fact) for fact in world.bodies(BudgetWarned) + world.bodies(BudgetReached)] == [
        BudgetWarned, BudgetReached,
    ]  # fmt: skip
    assert any("used up: the tokens of run" in text for text in world.comments(wild))
    world.check()


@pytest.mark.promise("B4")
@pytest.mark.parametrize("crash_at", [None, 150, 400])
async def test_a_spent_day_ends_at_midnight_and_everything_goes_on(folder: Path, crash_at: int | None) -> None:
    """Four turns a day for three issues of three turns each, whatever falls over midnight."""
    world = World(folder, config="version: 1\nbudgets: {day: {cost: 0.004}}\n")
    for name in ("first", "second", "third"):
        world.tracker.add(name)
    if not await lived(world, points=Points(crash_at)):
        await lived(world)
    world.check_done()
    entries = world.journal()
    reached = [(entry.seq, entry.body.name) for entry in entries if isinstance(entry.body, BudgetReached)]
    assert len(reached) >= 2
    assert len({name for _, name in reached}) == len(reached), "once a day"
    for seq, day in reached:
        late = [e.body for e in entries if isinstance(e.body, RunPlanned) and e.seq > seq and day_of(e.at) == day]
        assert late == [], "a run began on a day whose budget was used up"
    assert {end.state for end in world.bodies(RunEnded)} <= {"succeeded", "aborted"}


async def test_the_fuse_of_writes_holds_back_and_drops_nothing(folder: Path) -> None:
    world = World(folder, config="version: 1\nbudgets: {writes_per_minute: 3}\n", issues=4)
    world.delay = 1.0
    await lived(world)
    world.check_done()
    writes = [entry.at for entry in world.journal() if isinstance(entry.body, WRITES)]
    most = max(sum(at <= other < at + timedelta(minutes=1) for other in writes) for at in writes)
    assert most == 3
    assert world.bodies(WriteDelayed)
