"""The wrapper, Claude Code, or both are killed: nothing is left, no line is lost (in full: `tests.foreman.killed`)."""

from pathlib import Path

import pytest

from tests.foreman.killed import sweep

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.may_block]


async def test_whoever_is_killed_nothing_is_left_and_nothing_lost(tmp_path: Path) -> None:
    assert await sweep(tmp_path, (2.5, 2.5, 3.5)) == []
