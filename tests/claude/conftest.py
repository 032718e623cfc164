"""A world of its own for each test over the real Claude Code."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conformance.claudes import ClaudeWorld


@pytest.fixture
def place(tmp_path: Path) -> ClaudeWorld:
    """A world in which nothing runs yet."""
    return ClaudeWorld(tmp_path / "claude")


@pytest.fixture
async def world(place: ClaudeWorld) -> AsyncIterator[ClaudeWorld]:
    """The same once its model and its gate are open."""
    async with place.model:
        await place.runner.start()
        yield place
        await place.end()
