"""What every runner keeps, over the real Claude Code in a sandbox."""

import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import pytest

from ashep.testing.runners import *  # noqa: F403 - its tests
from ashep.testing.worlds import RunnerWorld
from tests.conformance.claudes import ApartWorld
from tests.places import has_bubblewrap

pytestmark = [
    pytest.mark.real,
    pytest.mark.anyio,
    pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap cannot be used here"),
]


@pytest.fixture(scope="module")
def apart_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApartWorld]:
    """A world in which nothing runs yet."""
    world = ApartWorld(tmp_path_factory.mktemp("apart"))
    yield world
    shutil.rmtree(world.folder, ignore_errors=True)


@pytest.fixture(scope="module")
async def apart_world(apart_place: ApartWorld) -> AsyncIterator[ApartWorld]:
    """The same once its model and its gate are open."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(apart_place.model)
        stack.push_async_callback(apart_place.end)
        await apart_place.runner.start()
        yield apart_place


@pytest.fixture
def world(apart_world: ApartWorld) -> RunnerWorld:
    return apart_world
