"""Quiet hours: when they begin and end by the configuration, and that nothing starts in them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import anyio
import pytest

from ashep.config import load
from ashep.config.cron import never
from ashep.config.findings import ConfigErrors
from ashep.core.facts.resources import WorkPaused, WorkResumed
from ashep.core.facts.runs import RunPlanned
from ashep.core.policy.settings import QuietHours
from ashep.daemon.control import Control
from ashep.daemon.schedules import in_force
from tests.loop_world import World, minutes, policy

NIGHTS = QuietHours(at="0 22 * * *", lasts=timedelta(hours=8), name="nights")
BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str, zone: Any = UTC) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zone).astimezone(UTC)


@pytest.mark.promise("K3")
@pytest.mark.parametrize(("now", "end", "begins"), [
    ("2026-03-01T21:59:59", None, "2026-03-01T22:00"),
    ("2026-03-01T22:00:00", "2026-03-02T06:00", "2026-03-02T22:00"),
    ("2026-03-02T05:59:59", "2026-03-02T06:00", "2026-03-02T22:00"),
    ("2026-03-02T06:00:00", None, "2026-03-02T22:00"),
])  # fmt: skip
def test_a_window_is_in_force_from_its_beginning_while_it_lasts(now: str, end: str | None, begins: str) -> None:
    standing, following = in_force([NIGHTS], at(now), UTC)
    assert standing == ({"nights": at(end)} if end else {})
    assert following == at(begins)


@pytest.mark.promise("K3")
def test_a_window_is_of_its_zone_and_lasts_as_long_when_the_clocks_change() -> None:
    standing, following = in_force([NIGHTS], at("2026-03-28T23:30", BERLIN), BERLIN)
    assert standing == {"nights": at("2026-03-28T21:00") + timedelta(hours=8)}  # 07:00 there: an hour was left out
    assert following == at("2026-03-29T22:00", BERLIN) == at("2026-03-29T20:00")


def test_windows_of_one_name_are_one_and_overlapping_ones_end_last() -> None:
    often = QuietHours(at="*/10 * * * *", lasts=timedelta(minutes=25), name="nights")
    standing, following = in_force([NIGHTS, often], at("2026-03-01T12:09"), UTC)
    assert standing == {"nights": at("2026-03-01T12:25")}
    assert following == at("2026-03-01T12:10")
    weekend = QuietHours(at="0 18 * * fri", lasts=timedelta(days=2))
    assert in_force([weekend], at("2026-03-07T12:00"), UTC)[0] == {
        "quiet hours, 0 18 * * fri": at("2026-03-08T18:00")  # that Saturday
    }
    assert in_force([], at("2026-03-07T12:00"), UTC) == ({}, None)


@pytest.mark.parametrize(("text", "said"), [
    ("22:00", "got 1, expected 5"),
    ("0 25 * * *", "higher than the maximum value"),
    ("0 22 * * 5", "mon, tue, wed"),
    ("0 22 * * 1-5", "mon, tue, wed"),
    ("0 22 31 feb *", "never comes round"),
])  # fmt: skip
def test_a_cron_that_is_none_is_told_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    World(tmp_path)
    (tmp_path / "config.yaml").write_text(f'worker:\n  quiet_hours:\n    - {{at: "{text}", lasts: 8h}}\n')
    with pytest.raises(ConfigErrors) as raised:
        load(tmp_path)
    (error,) = raised.value.errors
    assert said in str(error)
    assert "config.yaml:3: worker.quiet_hours[0].at" in str(error)


def test_a_rare_cron_is_a_cron() -> None:
    assert not never("0 22 29 feb *")
    assert not never("0 22 * * mon-fri")


@pytest.mark.virtual
@pytest.mark.promise("K3")
async def test_nothing_starts_in_quiet_hours_and_a_person_may_end_them(tmp_path: Path) -> None:
    look = policy({"name": "look", "capabilities": ["review"]})
    begins = World(tmp_path).clock.now() + timedelta(minutes=10)
    cron = f'at: "{begins:%M} * * * *", lasts: 30m, name: nights'
    world = World(tmp_path, policies=look, config=f"worker:\n  quiet_hours:\n    - {{{cron}}}\n")
    async with world.living() as running:
        await anyio.sleep(minutes(12))
        world.tracker.add("first")
        await anyio.sleep(minutes(5))
        (pause,) = world.bodies(WorkPaused)
        assert (pause.by, pause.why, pause.window) == ("the configuration", "nights", "nights")
        assert not world.bodies(RunPlanned)
    async with world.living() as running:  # nothing is told again
        await anyio.sleep(minutes(5))
        assert len(world.bodies(WorkPaused)) == 1
        await Control(running.shepherd).answer(b'{"do": "resume", "by": "ann"}')
        await anyio.sleep(minutes(5))
        assert len(world.bodies(RunPlanned)) == 1
    async with world.living():  # a person went on: so it stays
        await anyio.sleep(minutes(5))
        world.tracker.add("second")
        await anyio.sleep(minutes(5))
        assert len(world.bodies(RunPlanned)) == 2
        await anyio.sleep(minutes(35))
        assert len(world.bodies(WorkPaused)) == 2
    (tmp_path / "config.yaml").write_text("version: 1\n")
    world = World(tmp_path, policies=look)
    async with world.living():
        await anyio.sleep(minutes(1))
        assert [fact.window for fact in world.bodies(WorkResumed)] == ["", "nights"]
        assert not world.world.pauses
