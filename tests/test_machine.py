"""The machine's load: how it is read, and what of it becomes a fact."""

from pathlib import Path

import anyio
import pytest

from ashep.adapters.system.load import cpu_pressure
from ashep.core.facts.resources import MachineSeen
from ashep.daemon.load_monitor import MachineLoad
from tests.loop_world import World

KERNEL = "some avg10=12.00 avg60=97.31 avg300=50.00 total=206648444\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"


def test_the_pressure_is_the_kernels(tmp_path: Path) -> None:
    file = tmp_path / "cpu"
    assert cpu_pressure(file) is None
    for text, pressure in ((KERNEL, 97.31), ("", None), ("some avg60", None), ("some avg10=1\n", None)):
        file.write_text(text)
        assert cpu_pressure(file) == pressure


@pytest.mark.virtual
@pytest.mark.promise("D11")
async def test_what_a_minute_of_load_comes_to_is_told_once(folder: Path) -> None:
    world, figures = World(folder, issues=0), [97.0, 97.0, 90.0, 60.0, 60.0]
    async with world.living() as running, anyio.create_task_group() as group:
        load = MachineLoad(running.shepherd, world.clock, lambda: figures.pop(0) if figures else None)
        group.start_soon(load.run)
        await anyio.sleep(60)
        group.cancel_scope.cancel()
    assert [fact.state for fact in world.bodies(MachineSeen)] == ["busy", "ok"]
