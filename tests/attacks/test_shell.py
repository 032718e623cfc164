"""What a program can do in a place, in the sandbox that the daemon starts an agent's server in, and without one."""

from collections.abc import AsyncIterator

import pytest

from ashep.adapters.opencode.isolated import folder_for
from tests.attacks.stage import OTHER, SHOP, Agent, Stage, changed
from tests.attacks.ways import SHELL, Way
from tests.places import has_bubblewrap

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
