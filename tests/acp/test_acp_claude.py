"""What every runner keeps, over the real Claude Code behind its adapter, with a scripted model."""

import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from ashep.extras.testing.runners import *  # noqa: F403 - its tests
from tests.acp.worlds import ClaudeWorld

pytestmark = [pytest.mark.anyio, pytest.mark.real]


@pytest.fixture(scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ClaudeWorld]:
    async with AsyncExitStack() as stack:
        world = ClaudeWorld(tmp_path_factory.mktemp("acp"))
        await stack.enter_async_context(world.model)
        world.configure()
        stack.push_async_callback(world.aclose)
        yield world
    shutil.rmtree(world.place.folder, ignore_errors=True)


async def test_its_turns_are_begun_once(world: ClaudeWorld) -> None:
    await world.runner.start()
    assert world.runner.guarantee == "once"
