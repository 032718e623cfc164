"""What a program can do in a place, in the sandbox that the daemon starts an agent's server in, and without one."""

import os
import signal
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import pytest

from ashep.adapters.runners.opencode.isolated_runner import folder_for, forget
from ashep.adapters.runners.opencode.server import LOG_LIMIT
from chaos.attacks.stage import LATER, OTHER, SHOP, Agent, Stage, changed
from chaos.attacks.ways import LEFT, OUTPUT, SHELL, UNTRIED, Way
from tests.places import has_bubblewrap
from tests.test_isolated import sleepers

pytestmark = [
    pytest.mark.real, pytest.mark.may_block,
    pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap cannot be used here"),
]  # fmt: skip

WAYS = [way for ways in SHELL.values() for way in ways]


def each(ways: Iterable[Way]) -> list[object]:
    return [pytest.param(way, id=way.name.replace(" ", "-")) for way in ways]


def without(ways: Iterable[Way]) -> list[object]:
    return each(way for way in ways if way.bare not in UNTRIED)


@asynccontextmanager
async def working(factory: pytest.TempPathFactory, sandbox: str) -> AsyncIterator[tuple[Stage, Agent]]:
    with Stage(factory.mktemp("shell"), sandbox).open() as stage:
        other = await stage.begin(OTHER)
        await stage.leave(other)
        stage.write_records()
        (other.place / ".secret").write_text(stage.word("a file of another place"))
        agent = await stage.begin(SHOP)
        yield stage, agent
        await stage.leave(agent)


@pytest.fixture(scope="module")
async def boxed(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Stage, Agent]]:
    async with working(tmp_path_factory, "bwrap") as made:
        yield made


@pytest.fixture(scope="module")
async def bare(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Stage, Agent]]:
    async with working(tmp_path_factory, "none") as made:
        yield made


async def tried(stage: Stage, agent: Agent, way: Way) -> tuple[str, object]:
    """Give the verdict, and why."""
    own = (agent.place, folder_for(stage.state, agent.place, {"HOME": str(stage.home)}), stage.home / ".cache")
    before = stage.seen(own)
    said = await stage.run(agent, way.code)
    after = stage.seen(own)
    got = stage.told(said) + changed(before, after)
    stage.restore(before, after)
    return "open" if got else "contained", (got, said)


async def left(stage: Stage, way: Way) -> tuple[str, object]:
    """Give what came of what was left behind, once its server was ended and begun anew."""
    agent = await stage.begin(LATER)
    own = (agent.place, folder_for(stage.state, agent.place, {"HOME": str(stage.home)}), stage.home / ".cache")
    before = stage.seen(own)
    said = await stage.run(agent, way.code)
    await stage.leave(agent)
    await stage.leave(await stage.begin(LATER))
    got = changed(before, stage.seen(own))
    for pid in sleepers(stage.sleep):
        got.append(f"process {pid}")
        os.kill(pid, signal.SIGKILL)
    await forget(stage.state, agent.place)
    return "open" if got else "contained", (got, said)


@pytest.mark.parametrize("way", each(WAYS))
async def test_a_program_in_a_place(boxed: tuple[Stage, Agent], way: Way) -> None:
    verdict, why = await tried(*boxed, way)
    assert verdict == way.boxed, why


@pytest.mark.parametrize("way", each(LEFT))
async def test_what_is_left_behind(boxed: tuple[Stage, Agent], way: Way) -> None:
    verdict, why = await left(boxed[0], way)
    assert verdict == way.boxed, why


@pytest.mark.parametrize("way", without(WAYS))
async def test_a_program_in_a_place_without_a_sandbox(bare: tuple[Stage, Agent], way: Way) -> None:
    verdict, why = await tried(*bare, way)
    assert verdict == way.bare, why


@pytest.mark.parametrize("way", without(LEFT))
async def test_what_is_left_behind_without_a_sandbox(bare: tuple[Stage, Agent], way: Way) -> None:
    verdict, why = await left(bare[0], way)
    assert verdict == way.bare, why


@pytest.mark.parametrize("way", each(OUTPUT))
@pytest.mark.parametrize("kind", ["boxed", "bare"])
async def test_much_output(kind: str, boxed: tuple[Stage, Agent], bare: tuple[Stage, Agent], way: Way) -> None:
    stage, agent = boxed if kind == "boxed" else bare
    assert "Traceback" not in await stage.run(agent, way.code)
    log = folder_for(stage.state, agent.place, {"HOME": str(stage.home)}) / "server.log"
    assert log.stat().st_size > LOG_LIMIT
    await agent.runner.endpoint.memory()
    assert log.stat().st_size < LOG_LIMIT
