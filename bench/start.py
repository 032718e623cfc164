"""A start, from the beginning of the process to the first look: `python -m bench.start start STATE 0`.

In a module of its own, which imports nothing but what a daemon does, and a tracker and a runner in memory.
"""

import json
import os
import resource
import sys
import time
from pathlib import Path

import anyio

import ashep.app  # everything that the real one imports
from ashep.config import load
from ashep.extras.simulation.memory.runner import MemoryRunner, Play
from ashep.extras.simulation.memory.tracker import MemoryTracker
from ashep.extras.simulation.memory.work_tree import MemoryTree
from ashep.journal.writer import Journal
from ashep.ports.tracker import Look


class _LookedError(Exception):
    """The first look has begun."""


class _Tracker(MemoryTracker):
    looked = 0.0

    async def look(self) -> Look:
        """End here: whoever asks has started."""
        self.looked = time.clock_gettime(time.CLOCK_BOOTTIME)
        raise _LookedError


def began() -> float:
    """When this process began, by the clock that counts from the start of the machine."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return ticks / os.sysconf("SC_CLK_TCK")


def start(state: Path) -> dict[str, float]:
    """Start a daemon on a state folder; wall time until it looks, and until all was imported."""
    imported = time.clock_gettime(time.CLOCK_BOOTTIME)
    configuration, clock = load(state / "settings"), ashep.app.RealClock()

    tracker = _Tracker(clock.now, "ashep-bench", "t")

    async def work() -> None:
        journal = Journal.open(state, clock.now())
        parts = ashep.app.Adapters(tracker, MemoryRunner(clock, lambda _: Play()), MemoryTree(), clock)
        async with ashep.app.daemon(parts, configuration, journal, ashep.app.WorkOptions()) as running:
            await running.poller.run(await tracker.check())

    try:
        anyio.run(work)
    except* _LookedError:
        pass
    looked, memory = tracker.looked, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"wall": looked - began(), "imported": imported - began(), "memory": memory}


if __name__ == "__main__":
    print(json.dumps(start(Path(sys.argv[2]))))
