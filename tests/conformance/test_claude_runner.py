"""What every runner keeps, over the real Claude Code."""

import pytest

from ashep.extras.testing.runners import *  # noqa: F403 - its tests
from ashep.extras.testing.worlds import RunnerWorld
from tests.conformance.claudes import ClaudeWorld, claude_place, claude_world

__all__ = ["claude_place", "claude_world"]

pytestmark = [pytest.mark.real, pytest.mark.anyio]


@pytest.fixture
def world(claude_world: ClaudeWorld) -> RunnerWorld:
    return claude_world
