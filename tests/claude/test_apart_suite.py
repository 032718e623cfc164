"""What every runner keeps, over the real Claude Code in a sandbox."""

from collections.abc import AsyncIterator, Iterator

import pytest

from ashep.extras.testing.runners import *  # noqa: F403 - its tests
from ashep.extras.testing.worlds import RunnerWorld
from tests.conformance.claudes import ApartWorld, ClaudeWorld, in_folder, standing
from tests.places import has_bubblewrap

pytestmark = [
    pytest.mark.real,
    pytest.mark.anyio,
    pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap cannot be used here"),
]


@pytest.fixture(scope="module")
def apart_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClaudeWorld]:
    yield from in_folder(ApartWorld(tmp_path_factory.mktemp("apart")))


@pytest.fixture(scope="module")
async def apart_world(apart_place: ClaudeWorld) -> AsyncIterator[ClaudeWorld]:
    async for world in standing(apart_place):
        yield world


@pytest.fixture
def world(apart_world: ClaudeWorld) -> RunnerWorld:
    return apart_world
