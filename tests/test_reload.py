"""The user's files are read again while the daemon runs: the last good ones stay in force."""

import os
import signal
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from ashep.core.events import Adopted, RunPlanned, WorkPaused
from ashep.demo.virtual import ImmediateJournal
from ashep.reload import HEED, Reload
from tests.loop_world import World, minutes, policy, simulate

LOOK = policy({"name": "look", "capabilities": ["review"]})
CHECK = policy({"name": "check", "capabilities": ["review"]})


def test_an_edit_counts_at_once_and_a_mistake_is_told_once_and_changes_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path, policies=LOOK)
        said: list[str] = []
        async with world.living() as running:
            journal = cast("ImmediateJournal", running.shepherd._journal)  # pyright: ignore[reportPrivateUsage] - the one that is written to
            reload = Reload(tmp_path, journal, running.shepherd, said.append)
            await anyio.sleep(1)
            start = len(world.bodies(Adopted))
            await reload.again()
            assert said == []
            (tmp_path / "policies.yaml").write_text("version: 1\npolicies: {x: [nonsense}\n")
            for _ in range(3):
                await reload.again()
            assert said[-1] == "the configuration stays as it was"
            assert len(said) == 2
            assert "policies.yaml:2" in said[0]
            assert len(world.bodies(Adopted)) == start
            (tmp_path / "policies.yaml").write_text(CHECK)
            await reload.again()
            assert said[2:] == ["read again, and in force now: policies"]
            world.tracker.add("first")
            await anyio.sleep(minutes(1))
            assert [fact.phase for fact in world.bodies(RunPlanned)] == ["check"]
            assert len(world.bodies(Adopted)) == start + 1

    simulate(scenario)


def test_what_the_parts_were_made_of_counts_from_the_next_start(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path, policies=LOOK)
        said: list[str] = []
        async with world.living() as running:
            journal = cast("ImmediateJournal", running.shepherd._journal)  # pyright: ignore[reportPrivateUsage] - as above
            reload = Reload(tmp_path, journal, running.shepherd, said.append)
            await anyio.sleep(1)
            quiet = '{at: "* * * * *", lasts: 1h, name: always}'
            text = f"tracker: {{timeout: 7s}}\nworker: {{max_concurrent_runs: 1, quiet_hours: [{quiet}]}}\n"
            text += "budgets: {warn_at: 0.5}\n"
            (tmp_path / "config.yaml").write_text(text)
            for _ in range(2):
                await reload.again()
                await anyio.sleep(1)
            assert said == [
                "read again, and in force now: settings",
                "config.yaml: tracker will count from the next start",
            ]
            settings = world.world.settings
            assert (settings.worker.max_concurrent_runs, settings.tracker.timeout.seconds) == (1, 30)
            assert settings.budgets.warn_at == 0.5
            assert [fact.why for fact in world.bodies(WorkPaused)] == ["always"]

    simulate(scenario)


class Counting(Reload):
    """Counts how often it would have read."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, cast("Any", None), cast("Any", None), print)
        self.read = 0

    async def again(self) -> None:
        self.read += 1


@pytest.mark.slow
async def test_a_signal_and_a_change_of_a_file_are_seen_and_others_are_not(tmp_path: Path) -> None:
    reload = Counting(tmp_path)
    asked = anyio.current_time()
    async with anyio.create_task_group() as group:
        group.start_soon(reload.run)
        await anyio.sleep(1)
        os.kill(os.getpid(), signal.SIGHUP)
        with anyio.fail_after(20):
            while reload.read < 1:
                await anyio.sleep(0.05)
        (tmp_path / "runs.jsonl").write_text("x")
        await anyio.sleep(2)
        assert reload.read == 1
        fresh = tmp_path / "policies.yaml.new"
        fresh.write_text("x")
        fresh.replace(tmp_path / "policies.yaml")  # as editors write
        with anyio.fail_after(20):
            while reload.read < 2:
                await anyio.sleep(0.05)
        group.cancel_scope.cancel()
        asked = anyio.current_time()
    assert anyio.current_time() - asked < HEED / 1000 + 0.5, "a stop waits for the watch"
