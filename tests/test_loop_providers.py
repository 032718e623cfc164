"""Providers that refuse, in the whole daemon, over memory and virtual time."""

import shutil
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from ashep.core.facts.issues import IssueHeld
from ashep.core.facts.resources import ProviderRecovered, ProviderRefused
from ashep.core.facts.runs import Refusal, RunEnded, RunPlanned
from ashep.extras.simulation.memory.scripted_sessions import Play, Prompted
from tests.full import half
from tests.loop_world import Points, World

pytestmark = [pytest.mark.slow, pytest.mark.virtual]

ISSUES = 6
LIMIT = timedelta(hours=4)


class Night:
    """A world whose provider takes nothing from the first minute on, for hours."""

    def __init__(self, folder: Path, *, says_when: bool = False, words: bool = False) -> None:
        config = "version: 1\nworker: {max_concurrent_runs: 3, lock_work_tree: false}\n"
        self.world = World(folder, config=config)
        self.says_when, self.words = says_when, words
        self.begins = self.world.clock.now() + timedelta(seconds=40)
        self.ends = self.begins + LIMIT
        if words:  # which leave seconds out
            self.ends = self.ends.replace(second=0, microsecond=0)
        self.world.answer = self._answer
        self.refused: list[datetime] = []
        for number in range(ISSUES):
            self.world.tracker.add(f"issue {number}")

    def _answer(self, world: World, asked: Prompted) -> Play | None:
        now = world.clock.now()
        if not self.begins <= now < self.ends:
            return None
        self.refused.append(now)
        if self.says_when:
            left = self.ends - now
            return Play(
                text="late", delay=left.total_seconds() + 20, refused=Refusal("limited", "quota", left), tokens=0
            )
        if self.words:
            words = f"You've hit your 5-hour limit · resets {self.ends:%-I:%M%p} (UTC)"
            return Play(error=f"APIError: {words}", delay=1.0, refused=Refusal("limited", words), tokens=0)
        return Play(error="APIError: overloaded", delay=1.0, refused=Refusal("down", "overloaded"), tokens=0)

    async def live(self, points: Points | None = None) -> bool:
        return await self.world.live(points=points, patience=86400, beside=self.world.person)

    def check(self) -> None:
        """Nothing is blamed, nothing is lost, and everything is done."""
        self.world.check_done()
        states = {fact.state for fact in self.world.bodies(RunEnded)}
        assert states == {"succeeded", "aborted"}
        assert all(flow.failures == 0 for flow in self.world.world.flows.values())
        assert self.world.world.outages == ()
        assert {fact.code for fact in self.world.bodies(IssueHeld)} & {"provider_limited", "provider_down"}

    def planned_after(self, when: datetime) -> list[datetime]:
        return [one.at for one in self.world.journal() if isinstance(one.body, RunPlanned) and one.at >= when]


@pytest.mark.promise("U1")
async def test_four_hours_of_a_limit_are_waited_out_and_cost_no_attempt(folder: Path) -> None:
    night = Night(folder, says_when=True)
    assert await night.live()
    night.check()
    resumed = night.planned_after(night.ends)
    assert resumed[0] - night.ends <= timedelta(seconds=10)
    assert len(night.refused) <= 3, "what was under way, and nobody else"
    waited = [at for at in night.planned_after(night.begins) if at < night.ends]
    assert len(waited) <= 3
    assert resumed[1] - resumed[0] >= timedelta(seconds=10), "one tries before the rest"
    assert len(night.world.bodies(ProviderRecovered)) == 1


@pytest.mark.promise("U1")
async def test_a_time_that_stands_in_a_providers_words_is_waited_for(folder: Path) -> None:
    night = Night(folder, words=True)
    assert await night.live()
    night.check()
    assert {fact.until for fact in night.world.bodies(ProviderRefused)} == {night.ends}
    assert len(night.refused) <= 3, "what was under way, and nobody else"


async def test_an_outage_without_a_time_is_tried_less_and_less_often(folder: Path) -> None:
    night = Night(folder, says_when=False)
    assert await night.live()
    night.check()
    resumed = night.planned_after(night.ends)
    assert resumed[0] - night.ends <= timedelta(minutes=16)
    tries = len(night.refused)
    assert tries <= 3 + 5 + 4 * LIMIT / timedelta(hours=1) + 1, f"{tries} tries in four hours"
    rows = [fact.refusals for fact in night.world.bodies(ProviderRefused)]
    assert rows == sorted(rows)


@pytest.mark.promise("U1")
async def test_a_crash_at_any_moment_of_a_limit_changes_nothing(folder: Path) -> None:
    for crash in half(range(150, 420, 30)):
        shutil.rmtree(folder, ignore_errors=True)
        night = Night(folder, says_when=True)
        if not await night.live(Points(crash_at=crash)):
            assert await night.live()
        night.check()
        assert len(night.refused) <= 3
