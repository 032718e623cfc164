"""A world of its own for each test over the real Claude Code."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conformance.claudes import ClaudeWorld
from tests.full import leave_to_deep


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


ORDINARY = {
    "test_apart_suite": {
        "test_a_turn_goes_from_missing_to_finished",
        "test_a_permission_is_answered_once_and_the_turn_goes_on",
    },
}
"""The tests of the suite that `make test` plays in a sandbox, too; `make deep` plays all."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the rest to `make deep`: the same suite is played in full without a sandbox."""
    leave_to_deep(items, Path(__file__).parent, ORDINARY)
