"""What grows with the journal and with the number of issues, and what must not. Each part runs in a process of its own.

`python -m bench.scale PART STATE NUMBER` measures a part and prints it as JSON.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel

from ashep.actions.replay import replay
from ashep.adapters.beads import BeadsTracker
from ashep.config import load, write_starter
from ashep.core.analysis.replay import Replay
from ashep.core.facts.issues import IssueHeld
from ashep.core.facts.records import Entry
from ashep.core.reconcile.evolve import evolve
from ashep.core.state.world import World
from ashep.daemon.daemon import Adapters, WorkOptions, daemon
from ashep.extras.simulation.memory.runner import MemoryRunner, Play
from ashep.extras.simulation.memory.tracker import MemoryTracker
from ashep.extras.simulation.memory.work_tree import MemoryTree
from ashep.extras.simulation.virtual_time import VIRTUAL, LoopClock, open_now, wait_for_threads
from ashep.journal.writer import Journal
from ashep.store.journal_reader import JournalView
from ashep.store.writer import Store
from bench import copies
from bench.figures import Figure, short, times
from bench.history import History
from bench.place import ROOT, say

ENTRIES = 45
"""Facts, decisions and commands of a copied life."""

FLAT = 1.5
"""A cost that grew with what there is would be tens or thousands of times as high: this leaves room for caches."""

DONE = '```json\n{"result": "success", "summary": "x"}\n```'

WAITING = 32
"""Facts that wait for one batch."""

LIVES = 40
"""Lives over which the cost of an entry is measured."""


def measure(*, facts: int, issues: int) -> list[Figure]:
    """Measure with so many facts in the journal, and so many open issues."""
    with tempfile.TemporaryDirectory(prefix="ashep-bench-") as folder:
        large, small = Path(folder, "large"), Path(folder, "small")
        say(f"scale: a journal of {facts} facts")
        copies.write(large, -(-facts // ENTRIES))
        copies.write(small, -(-1000 // ENTRIES))
        part("snapshot", large, 0)  # as every journal of that size has
        return [
            *_reading(large, facts),
            *_start(large, facts),
            *_flat(small, large, facts, issues),
            *_appends(Path(folder, "appends"), 200 if facts < 100_000 else 2000),
            *_daemon(Path(folder, "daemon"), issues),
            *_look(Path(folder, "look"), 2 * issues),
        ]


def _reading(large: Path, facts: int) -> list[Figure]:
    drawn, told = part("rebuild", large, 0), part("replay", large, 0)
    made = f"{told['differences']} differences in {told['decisions']:.0f} decisions and commands"
    return [
        Figure(f"rebuild of the database from {facts} facts", drawn["cpu"], "s", 40,
               f"CPU; {short(drawn['wall'])} s by the clock, {short(drawn['memory'])} MB"),
        Figure("replay, a decision or command (50 us are 20,000 a second)", 1e6 * told["cpu"] / told["decisions"],
               "us", 50, f"CPU; {made}"),
        Figure("  differences that it found", told["differences"], "", 0),
    ]  # fmt: skip


def _start(large: Path, facts: int) -> list[Figure]:
    write_starter(large / "settings")
    tries = [part("start", large, 0) for _ in range(3)]
    best = min(tries, key=lambda one: one["wall"])
    return [
        Figure(f"start with {facts} facts and a snapshot, to the first look", best["wall"], "s", 2,
               f"from the start of the process, best of {len(tries)}; imports {short(best['imported'])} s, "
               f"{short(best['memory'])} MB"),
    ]  # fmt: skip


def _appends(folder: Path, batches: int) -> list[Figure]:
    folder.mkdir()
    rounds = [part("appends", folder, batches) for _ in range(3)]
    alone, waiting = [(one["one"], one["bare"]) for one in rounds], [(one["many"], one["bare"]) for one in rounds]
    return [
        times("a batch of one fact, against a bare write and fdatasync", alone, 1 / 0.8),
        times(f"a fact where {WAITING} wait, against a bare write and fdatasync", waiting, 1 / 8),
    ]


def _flat(small: Path, large: Path, facts: int, issues: int) -> list[Figure]:
    few, many = part("turns", small, 10), part("turns", small, issues)
    short_past, long_past = part("turns", small, 0), part("turns", large, 0)
    return [
        Figure(f"cost of a fact with {issues} open issues, against 10", many["each"] / few["each"], "x", FLAT,
               f"{short(many['each'])} us of CPU against {short(few['each'])} us"),
        Figure(f"cost of a fact behind {facts} others, against 1000", long_past["each"] / short_past["each"], "x",
               FLAT, f"{short(long_past['each'])} us of CPU against {short(short_past['each'])} us"),
    ]  # fmt: skip


def _daemon(folder: Path, issues: int) -> list[Figure]:
    full, idle = part("memory", folder / "full", issues), part("idle", folder / "idle", 100)
    return [
        Figure(f"memory of a daemon with {issues} open issues", full["memory"], "MB", 200,
               f"with a tracker in memory; {full['entries']:.0f} entries in 20 virtual minutes"),
        Figure("an hour of idling: entries that are no timers", idle["others"], "", 0, f"{idle['timers']:.0f} timers"),
    ]  # fmt: skip


def _look(folder: Path, issues: int) -> list[Figure]:
    folder.mkdir()
    read, told = part("look", folder / "read", issues), part("memory", folder / "told", issues)
    return [
        Figure(f"a look at {issues} issues: the longest in which nobody else runs", read["longest"], "s", 0.1,
               f"CPU, of three looks at what bd would print; {short(read['memory'])} MB"),
        Figure(f"memory of a daemon with {issues} open issues", told["memory"], "MB", 250, "with a tracker in memory"),
    ]  # fmt: skip


def part(name: str, state: Path, number: int) -> dict[str, float]:
    """Measure a part in a process of its own."""
    say(f"scale: {name} {number or ''}")
    module = "bench.start" if name == "start" else "bench.scale"
    argv = [sys.executable, "-m", module, name, str(state), str(number)]
    done = subprocess.run(argv, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, timeout=1200)
    if done.returncode:
        raise RuntimeError(f"{argv} ended with {done.returncode}: {done.stderr.decode()[-2000:]}")
    return json.loads(done.stdout)


# --- the parts --------------------------------------------------------------------------------------------------------


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def rebuild(state: Path, _: int) -> dict[str, float]:
    """Draw the database of a journal from its beginning, as a reading command does."""
    with tempfile.TemporaryDirectory(dir=state) as scratch:
        target = Path(scratch, "state")
        target.mkdir()
        wall, cpu = time.monotonic(), time.process_time()
        Store.open(target, JournalView(state / "journal")).close()
        return {"cpu": time.process_time() - cpu, "wall": time.monotonic() - wall, "memory": _memory()}


def appends(folder: Path, batches: int) -> dict[str, float]:
    """Append facts one by one, where many wait, and write and sync bare bytes, in turns of 20 batches. Seconds each."""
    at, took = datetime.now(UTC), dict.fromkeys(("one", "many", "bare"), 0.0)
    held = IssueHeld("demo-1", "slots", "all slots are taken")

    async def append(journal: Journal, times: int, waiting: int) -> None:
        for _ in range(times):
            await journal.append([Entry(journal.next_seq + place, at, held) for place in range(waiting)])

    async def alternate() -> None:
        one, many = Journal.open(folder / "one", at), Journal.open(folder / "many", at)
        file = os.open(folder / "bare", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for _ in range(turns):
            began = time.monotonic()
            await append(one, 20, 1)
            took["one"] += (ended := time.monotonic()) - began
            await append(many, 2, WAITING)
            took["many"] += (began := time.monotonic()) - ended
            data = b"x" * (one.position.offset // one.position.seq * 2)  # an entry, and what ends its batch
            for _ in range(20):
                os.write(file, data)
                os.fdatasync(file)
            took["bare"] += time.monotonic() - began
        os.close(file)
        one.close()
        many.close()

    turns = batches // 20
    anyio.run(alternate)
    shutil.rmtree(folder)
    folder.mkdir()
    each = {"one": 20, "many": 2 * WAITING, "bare": 20}
    return {name: seconds / turns / each[name] for name, seconds in took.items()}


def snapshot(state: Path, _: int) -> dict[str, float]:
    """Leave a snapshot of the World near the end of a journal, as the daemon does."""
    journal = Journal.open(state, datetime.now(UTC))
    world, seq = World(), 0
    for batch in journal.batches():
        for entry in batch.entries:
            world = evolve(world, entry)
    journal.keep_now(world, journal.mark)
    seq = journal.position.seq
    journal.close()
    return {"seq": seq}


def replayed(state: Path, _: int) -> dict[str, float]:
    """Derive every decision again."""
    again, cpu = Replay(), time.process_time()
    differences = sum(1 for _ in replay(state, again))
    return {"cpu": time.process_time() - cpu, "decisions": again.decisions, "differences": differences}


def turns(state: Path, issues: int) -> dict[str, float]:
    """Live some lives at the end of a journal: fold, decide, dispatch, write; the cost of an entry in microseconds."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "state")
        shutil.copytree(state, copy)
        history = History(copy)
        history.begin()
        if issues:
            history.leave_open(issues)
        for number in range(1, 4):
            history.issue(90_000 + number)
        cpu, first = time.process_time(), history.world.seq
        for number in range(LIVES):
            history.issue(91_000 + number)
        used = time.process_time() - cpu
        history.close()
        return {"each": 1e6 * used / (history.world.seq - first)}


async def _live(state: Path, issues: int, kind: str, seconds: float) -> list[str]:
    """Let a daemon run for so many virtual seconds; give the types of what it wrote in them."""
    wait_for_threads()
    clock = LoopClock()
    tracker, tree = MemoryTracker(clock.now, "ashep-bench", "t"), MemoryTree()
    tree.write("a.txt", "a")
    tree.commit("begin")
    for number in range(issues):
        tracker.add(f"Make part {number} of the program", id=f"t-{number}", type=kind, actor="pat")
    runner = MemoryRunner(clock, lambda _: Play(text=DONE, delay=240.0))
    folder = state / ".agent-shepherd"
    write_starter(folder)
    journal, written = open_now(folder / "state", clock.now()), list[str]()
    parts = Adapters(tracker, runner, tree, clock)

    def note(entries: Any, _: object) -> None:
        written.extend(type(entry.body).__name__ for entry in entries)

    info = await tracker.check()
    async with (
        daemon(parts, load(folder), journal, WorkOptions(), [note]) as running,
        anyio.create_task_group() as group,
    ):
        group.start_soon(running.poller.run, info)
        group.start_soon(running.monitors[0].run)
        await anyio.sleep(300)
        written.clear()
        await anyio.sleep(seconds)
        group.cancel_scope.cancel()
    journal.close()
    return written


def memory(state: Path, issues: int) -> dict[str, float]:
    """Run a daemon over so many ready issues for a while."""
    state.mkdir(parents=True)
    entries = len(anyio.run(_live, state, issues, "task", 1200.0, backend_options=dict(VIRTUAL)))
    return {"memory": _memory(), "entries": entries}


def idle(state: Path, issues: int) -> dict[str, float]:
    """Run a daemon for an hour over issues that it may not take."""
    state.mkdir(parents=True)
    written = Counter(anyio.run(_live, state, issues, "epic", 3600.0, backend_options=dict(VIRTUAL)))
    written.pop("ServerEnded", None)  # once: the agent server that nobody needs is ended, whatever the hours after
    return {"timers": written.pop("TimerDue", 0), "others": written.total()}


def look(state: Path, issues: int) -> dict[str, float]:
    """Read what bd prints of so many issues, three times: the longest stretch in which nobody else ran, in seconds."""
    state.mkdir(parents=True)
    row = {"status": "open", "priority": 2, "issue_type": "task", "created_at": "2026-01-02T03:04:05Z", "labels": ["a"]}
    edge = {"type": "related", "created_at": row["created_at"], "created_by": "pat", "metadata": "{}"}
    more = {"owner": "pat@x", "created_by": "pat", "updated_at": row["created_at"], "metadata": {"k": "v"}}
    with state.joinpath("printed").open("w") as printed:
        for number in range(issues):
            issue, edges = f"t-{number}", [edge | {"issue_id": f"t-{number}", "depends_on_id": "t-0"}]
            one = {"id": issue, "title": f"Make part {number} of the program", **row, **more, "dependencies": edges}
            printed.write(("[" if number == 0 else ",\n") + json.dumps(one, indent=2))
        printed.write("]")
    program = state / "bd"
    program.write_text(f'#!/bin/sh\nexec cat "{state}/printed"\n')
    program.chmod(0o755)
    longest = anyio.run(_stretch, BeadsTracker(state, (str(program),), "bench", 120.0))
    return {"longest": longest, "memory": _memory()}


async def _stretch(tracker: BeadsTracker) -> float:
    stretches = list[float]()

    async def watch() -> None:
        before = time.thread_time()
        while True:
            await anyio.lowlevel.checkpoint()
            stretches.append((now := time.thread_time()) - before)
            before = now

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        for _ in range(3):
            await tracker.look()
        group.cancel_scope.cancel()
    return max(stretches)


PARTS: dict[str, Callable[[Path, int], dict[str, float]]] = {
    "rebuild": rebuild, "replay": replayed, "appends": appends, "snapshot": snapshot, "turns": turns, "memory": memory,
    "idle": idle, "look": look,
}  # fmt: skip

if __name__ == "__main__":
    print(json.dumps(PARTS[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]))))
