"""What a program can do in a place, in the sandbox that the daemon starts an agent's server in, and without one."""

import os
import signal
from collections.abc import AsyncIterator, Iterable

import pytest

from ashep.adapters.opencode.isolated import folder_for, forget
from ashep.adapters.opencode.server import LOG_LIMIT
from tests.attacks.stage import LATER, OTHER, SHOP, Agent, Stage, changed
from tests.attacks.ways import LEFT, OUTPUT, SHELL, UNTRIED, Way
from tests.places import has_bubblewrap
from tests.test_isolated import sleepers

pytestmark = [
    pytest.mark.real, pytest.mark.may_block,
    pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap cannot be used here"),
]  # fmt: skip

WAYS = [way for ways in SHELL.values() for way in ways]


def both(ways: Iterable[Way]) -> list[object]:
    """With a sandbox, and without one where that is to be tried."""
    tried = [("bwrap", way) for way in ways] + [("none", way) for way in ways if way.bare not in UNTRIED]
    return [pytest.param(kind, way, id=f"{kind}-{way.name.replace(' ', '-')}") for kind, way in tried]


@pytest.fixture(scope="module")
async def working(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[
    tuple[Stage, Agent]
]:  # fmt: skip
    with Stage(tmp_path_factory.mktemp("shell"), request.param).open() as stage:
        other = await stage.begin(OTHER)
        await stage.leave(other)
        stage.write_records()
        (other.place / ".secret").write_text(stage.word("a file of another place"))
        agent = await stage.begin(SHOP)
        yield stage, agent
        await stage.leave(agent)


@pytest.mark.parametrize(("working", "way"), both(WAYS), indirect=["working"])
async def test_a_program_in_a_place(working: tuple[Stage, Agent], way: Way) -> None:
    stage, agent = working
    expected = way.boxed if stage.sandbox == "bwrap" else way.bare
    own = (agent.place, folder_for(stage.servers, agent.place), stage.home / ".cache")
    before = stage.seen(own)
    said = await stage.run(agent, way.code)
    after = stage.seen(own)
    got = stage.told(said) + changed(before, after)
    stage.restore(before, after)
    assert ("open" if got else "contained") == expected, (got, said)


@pytest.mark.parametrize(("working", "way"), both(LEFT), indirect=["working"])
async def test_what_is_left_behind(working: tuple[Stage, Agent], way: Way) -> None:
    stage, _ = working
    agent = await stage.begin(LATER)
    own = (agent.place, folder_for(stage.servers, agent.place), stage.home / ".cache")
    before = stage.seen(own)
    said = await stage.run(agent, way.code)
    await stage.leave(agent)
    await stage.leave(await stage.begin(LATER))
    got = changed(before, stage.seen(own))
    for pid in sleepers("4327"):
        got.append(f"process {pid}")
        os.kill(pid, signal.SIGKILL)
    await forget(stage.servers, agent.place)
    assert ("open" if got else "contained") == (way.boxed if stage.sandbox == "bwrap" else way.bare), (got, said)


@pytest.mark.parametrize(("working", "way"), both(OUTPUT), indirect=["working"])
async def test_much_output(working: tuple[Stage, Agent], way: Way) -> None:
    stage, agent = working
    assert "Traceback" not in await stage.run(agent, way.code)
    log = folder_for(stage.servers, agent.place) / "server.log"
    assert log.stat().st_size > LOG_LIMIT
    await agent.runner.memory()
    assert log.stat().st_size < LOG_LIMIT
