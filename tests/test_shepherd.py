"""The shepherd by itself: what is told, and when it counts."""

from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from ashep.core.facts.resources import DaemonStarted, JournalBegun
from ashep.core.facts.tracker import TrackerSeen
from ashep.daemon.effects.executor import Effects
from ashep.daemon.effects.trees import TreeEffects
from ashep.daemon.leases import Leases
from ashep.daemon.shepherd import Shepherd
from ashep.extras.simulation.memory.runner import MemoryRunner, Play
from ashep.extras.simulation.memory.tracker import MemoryTracker
from ashep.extras.simulation.memory.work_tree import MemoryTree
from ashep.journal.writer import Journal
from tests.memory import ManualClock


@pytest.mark.may_block  # a journal looks how much room there is
async def test_what_is_taken_in_is_known_also_where_a_turn_was_under_way(tmp_path: Path) -> None:
    clock = ManualClock()
    tracker = MemoryTracker(clock.now)
    journal = await to_thread.run_sync(Journal.open, tmp_path, clock.now())
    runner = MemoryRunner(clock, lambda _: Play())
    leases = Leases(tracker, clock)
    effects = Effects(
        tracker=tracker, runner=runner, trees=TreeEffects(MemoryTree()), blobs=journal.blobs, leases=leases
    )
    shepherd = Shepherd(journal, effects, clock)
    async with shepherd.running(JournalBegun("i", "s", "me"), DaemonStarted(1, "0")):
        for number in range(10):
            shepherd.tell(TrackerSeen("me", "t", str(number)))
            await anyio.lowlevel.checkpoint()  # the turn begins, and writes in a thread
            seen = TrackerSeen("me", "t", f"{number} and on")
            await shepherd.ask(lambda _, seen=seen: [seen])
            assert shepherd.world.tracker == seen
    await to_thread.run_sync(journal.close)
