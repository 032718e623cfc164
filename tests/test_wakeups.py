"""Sources of facts sleep until something concerns them; `Shepherd.until` says what that is."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ashep.daemon.shepherd import Shepherd
from tests.loop_world import World

pytestmark = pytest.mark.virtual


async def test_a_batch_wakes_only_those_whom_it_concerns(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With each source woken by each batch there were 9.3 wake-ups a turn."""
    counts = Counter[str]()

    def count(name: str) -> None:
        original: Any = getattr(Shepherd, name)

        async def counted(self: Shepherd, *args: Any, **named: Any) -> None:
            await original(self, *args, **named)
            counts[name] += 1

        monkeypatch.setattr(Shepherd, name, counted)

    for name in ("_sleep_until", "_turn"):
        count(name)
    world = World(folder)
    world.tracker.add("one")
    await world.finish(person=True)
    assert counts["_turn"] > 20
    assert counts["_sleep_until"] - counts["_turn"] < counts["_turn"], "the test itself wakes once a turn"
