"""What every runner keeps, over the real `opencode acp` with a scripted model; and what only agents of that kind do."""

import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from ashep.testing.runners import *  # noqa: F403 - its tests
from ashep.testing.worlds import Act, begun, settled
from tests.acp.worlds import OpencodeWorld

pytestmark = [pytest.mark.anyio, pytest.mark.real]


@pytest.fixture(scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[OpencodeWorld]:
    async with AsyncExitStack() as stack:
        world = OpencodeWorld(tmp_path_factory.mktemp("acp"))
        await stack.enter_async_context(world.model)
        world.configure()
        stack.push_async_callback(world.aclose)
        yield world
    shutil.rmtree(world.place.folder, ignore_errors=True)


async def test_its_turns_are_begun_once(world: OpencodeWorld) -> None:
    await world.runner.start()
    assert world.runner.guarantee == "once"


async def test_a_providers_words_are_the_error_that_ends_a_turn(world: OpencodeWorld) -> None:
    session, _, sent = await begun(world, Act(does="fails"))
    turn = await settled(world, session, sent.message_id)
    assert (turn.error, turn.text) == ("APIError: no", "")
