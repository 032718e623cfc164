"""A day of virtual time: one life of the daemon, over the memory adapters, with a population that does not grow.

Issues that are closed are opened again by a person, so that what is known stays the same and what grows is a leak. Of
the simulated tools only what is about the present is kept: what belongs to the test is not measured.
"""

import asyncio
import gc
import os
import random
import shutil
import threading
import tracemalloc
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import yaml

from ashep.config import write_starter
from ashep.extras.simulation.memory.runner import Play, Prompted
from chaos.soak.figures import Bound, Flat, Sample, judge
from tests.loop_world import Points, World, policy, said, simulate
from tests.places import made as new_folder

ISSUES = 24
OURS = [
    tracemalloc.Filter(True, "*/ashep/*"),
    tracemalloc.Filter(False, "*/ashep/extras/simulation/memory/*"),
    tracemalloc.Filter(
        False, "*/ashep/journal/framing.py"
    ),  # pydantic's JSON reader keeps some 16,000 strings, no more
]
"""Memory that the daemon's own lines asked for."""

BOUNDS = {
    "ashep's memory (KiB)": Bound(0.10, 128),  # it remembers the name of every text that it keeps: 113 bytes each
    "resident memory (MiB)": Bound(0.10, 8),
    "descriptors": Bound(0, 1),
    "threads": Bound(0, 1),
    "tasks": Bound(0, 4),
    "sessions at work": Bound(0, 4),
    "intents without an answer": Bound(0, 4),
    "notices to be told": Bound(0, 2),
    "journal's files": Bound(0, 2),
}
CONFIG: dict[str, Any] = {
    "version": 1,
    "worker": {"max_concurrent_runs": 4, "lock_work_tree": False},
    "journal": {"max_file_size": "1MiB", "keep": "2MiB"},
    "budgets": {"day": {"tokens": 10**9}, "writes_per_minute": 200},
    "notify": {"targets": [{"name": "pager", "command": ["pager"]}]},
}


def soak(hours: float, *, issues: int = ISSUES, every: float = 900.0) -> list[Flat]:
    """Live so many virtual hours, and judge them; `every`: virtual seconds between samples."""
    place = new_folder("ashep-soak")
    samples: list[Sample] = []
    tracemalloc.start()
    try:
        simulate(lambda: _live(place / ".agent-shepherd", hours * 3600, issues, every, samples))
    finally:
        tracemalloc.stop()
        shutil.rmtree(place, ignore_errors=True)
    return judge(samples, BOUNDS)


async def _live(folder: Path, seconds: float, issues: int, every: float, samples: list[Sample]) -> None:
    write_starter(folder)
    phases: tuple[dict[str, object], ...] = (
        {"name": "implement", "access": "write"}, {"name": "check", "capabilities": ["review"]},
    )  # fmt: skip
    world = World(folder, policies=policy(*phases), config=yaml.safe_dump(CONFIG))
    world.runner.script = Agents().play
    world.runner.sessions = Numbered(world.runner.sessions)
    for number in range(issues):
        world.tracker.add(f"issue {number}")
    runs = 0
    points = Points()
    async with world.living(points) as running:
        end = world.clock.monotonic() + seconds
        while world.clock.monotonic() < end:
            await anyio.sleep(every / 10)
            for name, issue in world.issues().items():
                if issue.status == "closed" or "ashep:parked" in issue.labels:
                    world.tracker.person_sets(name, "pat", status="open", assignee="", remove_labels=("ashep:parked",))
            runs += _forget(world)
            points.names.clear()
            points.calls.clear()
            if len(samples) < (world.clock.monotonic() - end + seconds) // every:
                samples.append(_sample(world, running.shepherd.world, runs))


def _forget(world: World) -> int:
    """Forget what the simulated tools keep for ever, and what the test's world remembers."""
    now, gone = world.clock.now(), 0
    for name, session in [*world.runner.sessions.items()]:
        begun = session.messages[-1].at if session.messages else now
        if now - begun > timedelta(hours=1):
            del world.runner.sessions[name]
            gone += 1
    known = {message.id for session in world.runner.sessions.values() for message in session.messages}
    for counter in (world.runner.began, world.runner.deliveries):
        for message in [message for message in counter if message not in known]:
            del counter[message]
    world.entries.clear()
    world.notifier.told.clear()
    world.tracker.calls.clear()
    for record in world.tracker._database.records.values():  # pyright: ignore[reportPrivateUsage]
        del record.comments[:-5], record.changes[:-5]
    return gone


def _sample(world: World, known: Any, runs: int) -> Sample:
    gc.collect()
    ours = tracemalloc.take_snapshot().filter_traces(OURS)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    now = world.clock.now()
    active = [
        session for session in world.runner.sessions.values()
        if any(message.work is not None and message.work.active(now) for message in session.messages)
    ]  # fmt: skip
    files = [*(world.folder / "state" / "journal").glob("*.jsonl"), *(world.folder / "state").rglob("snapshot*")]
    return {
        "ashep's memory (KiB)": sum(trace.size for trace in ours.traces) / 1024,
        "resident memory (MiB)": pages * os.sysconf("SC_PAGE_SIZE") / 1024**2,
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
        "tasks": len(asyncio.all_tasks()),
        "sessions at work": len(active),
        "intents without an answer": sum(len(flow.open) for flow in known.flows.values()),
        "notices to be told": len(known.notices.wanted),
        "journal's files": len(files),
        "records": known.seq,
        "runs": runs,
    }


class Numbered(dict[str, Any]):
    """Sessions of which some are forgotten: the runner names one by how many there were."""

    def __init__(self, *sessions: Any) -> None:
        super().__init__(*sessions)
        self.ever = 0

    def __setitem__(self, key: str, value: Any) -> None:
        self.ever += 1
        super().__setitem__(key, value)

    def __len__(self) -> int:
        return self.ever


class Agents:
    """Agents that mostly succeed."""

    def __init__(self) -> None:
        self.fates: Counter[str] = Counter()

    def play(self, asked: Prompted) -> Play:
        run = asked.key.split(":", 1)[1]
        dice = random.Random(f"{run}/{asked.turn}")
        fate = dice.choices(("works", "fails", "hangs", "dies"), (92, 5, 1, 2))[0]
        self.fates[fate] += 1
        delay, phase = dice.uniform(60, 600), run.split("/")[1].split(".")[0]
        if fate == "hangs":
            return Play(fate="hangs")
        if fate == "dies" and asked.turn == 0:
            return Play(fate="dies", delay=delay)
        return Play(said(phase, result="failed" if fate == "fails" else "success"), delay=delay)
