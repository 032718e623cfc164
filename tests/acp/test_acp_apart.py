"""What every runner keeps, over the real `opencode acp` in a sandbox."""

import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from ashep.extras.testing.runners import *  # noqa: F403 - its tests
from tests.acp.worlds import ApartWorld
from tests.places import has_bubblewrap

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.real,
    pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap cannot be used here"),
]


@pytest.fixture(scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ApartWorld]:
    async with AsyncExitStack() as stack:
        world = ApartWorld(tmp_path_factory.mktemp("acp"))
        await stack.enter_async_context(world.model)
        world.configure()
        stack.push_async_callback(world.aclose)
        yield world
    shutil.rmtree(world.place.folder, ignore_errors=True)
