"""What a program can do in a place, in the sandbox that the daemon starts an agent's server in, and without one."""

import os
import signal
from collections.abc import AsyncIterator

import pytest

from ashep.adapters.opencode.isolated import folder_for, forget
from tests.attacks.stage import LATER, OTHER, SHOP, Agent, Stage, changed
from tests.attacks.ways import LEFT, SHELL, Way
from tests.places import has_bubblewrap
from tests.test_isolated import sleepers

pytestmark = [
    pytest.mark.real, pytest.mark.may_block,
    pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap cannot be used here"),
]  # fmt: skip

WAYS = [way for ways in SHELL.values() for way in ways]


@pytest.fixture(scope="module", params=["bwrap", "none"])
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


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name.replace(" ", "-"))
async def test_a_program_in_a_place(working: tuple[Stage, Agent], way: Way) -> None:
    stage, agent = working
    expected = way.boxed if stage.sandbox == "bwrap" else way.bare
    if expected == "machine":
        pytest.skip("that hangs on the machine")
    own = (agent.place, folder_for(stage.servers, agent.place), stage.home / ".cache")
    before = stage.seen(own)
    said = await stage.run(agent, way.code)
    after = stage.seen(own)
    got = stage.told(said) + changed(before, after)
    stage.restore(before, after)
    assert ("open" if got else "contained") == expected, (got, said)


@pytest.mark.parametrize("way", LEFT, ids=lambda way: way.name.replace(" ", "-"))
async def test_what_is_left_behind(working: tuple[Stage, Agent], way: Way) -> None:
    stage, _ = working
    agent = await stage.begin(LATER)
    if stage.sandbox == "none" and "link" in way.name:
        pytest.skip("there is no sandbox to get out of, and its home is the user's")
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
