"""Issues whose agents work in sandboxes: how long until a place's first prompt is out, and what the servers hold."""

import os
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import anyio

from ashep.adapters.runners.opencode.isolated_runner import living
from ashep.adapters.runners.opencode.server import folder_of
from ashep.adapters.sandboxes import bubblewrap
from ashep.adapters.sandboxes.bubblewrap import Bubblewrap, View
from ashep.adapters.system import programs
from ashep.extras.demo.scripted_model import opencode_config, settle
from bench.figures import Figure
from bench.issues import PATIENCE
from bench.parallel import TURN
from bench.place import THREE, Tools, model, say, template
from bench.processes import watch

STARTS = 15
CONFIG = "worker: {workspace: place, max_concurrent_runs: 4, hold_when_busy: false}\nagents: {sandbox: bwrap}\n"


def measure(tools: Tools, *, issues: int) -> list[Figure]:
    """Work one issue, and then many; the servers are counted every half second."""
    if (found := programs.find(bubblewrap.PROGRAM)) is not None:  # a copy of ours: it is in no private home
        os.environ["PATH"] += f"{os.pathsep}{found.parent}"
    start = anyio.run(_start)
    with model(tools, "bench.parallel", str(TURN)) as url:
        settle(tools.folder / "home" / ".config" / "opencode", opencode_config(url))
        alone, _, _ = _worked(tools, 1)
        first, took, seen = _worked(tools, issues)
    return [
        Figure("bubblewrap: a program that does nothing", start * 1000, "ms", 20.0),
        Figure("a place is there: until its first prompt is out, alone", alone, "s", 3.0),
        Figure("the same with three others", first, "s"),
        Figure(f"{issues} issues in sandboxes: the clock", took, "s"),
        Figure("agent servers at once", max(n for n, _ in seen), ""),
        Figure("what they hold at most", max(held for _, held in seen) / 1024**3, "GiB"),
    ]


def _worked(tools: Tools, issues: int) -> tuple[float, float, list[tuple[int, int]]]:
    """Seconds until a first prompt is out, and until all are closed; servers and bytes, again and again."""
    project = template(tools, issues).copy(f"sandboxed-{issues}")
    project.configure(THREE, None)
    (project.folder / ".agent-shepherd" / "config.yaml").write_text(
        f"version: 1\ntracker: {{command: [{project.bd}]}}\n{CONFIG}"
        f"runners: {{opencode: {{command: [{tools.opencode}]}}}}\n"
    )
    began = time.monotonic()
    with _counted(folder_of(project.state, tools.env)) as seen:
        ended = watch(project.work("--until-idle"), PATIENCE * 6)
    took = time.monotonic() - began
    records = list(project.journal())
    closed = sum(record["type"] == "IssueClosed" for record in records)
    if ended.code or closed != issues:
        raise RuntimeError(f"ashep ended with {ended.code}, {closed} closed: {project.said()}")
    say(f"{issues} issues: {took:.0f} s, at most {max(n for n, _ in seen)} servers")
    return statistics.median(_first(records)), took, seen


def _first(records: list[dict[str, object]]) -> list[float]:
    """Seconds from a place that is ready to the first prompt there, of those whose server was to be started."""
    ready = {str(one["run"]): str(one["at"]) for one in records if one["type"] == "TreePrepared"}
    sent = {str(one["run"]): str(one["at"]) for one in reversed(records) if one["type"] == "PromptSent"}
    both = [(ready[run], at) for run, at in sent.items() if run in ready and "/implement.1.1" in run]
    return [(datetime.fromisoformat(at) - datetime.fromisoformat(was)).total_seconds() for was, at in both]


@contextmanager
def _counted(folder: Path) -> Iterator[list[tuple[int, int]]]:
    """How many servers live, and the bytes that they hold, again and again."""
    seen, over = [(0, 0)], threading.Event()

    def count() -> None:
        while not over.wait(0.5):
            seen.append(living(folder))

    thread = threading.Thread(target=count)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


async def _start() -> float:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        found = await bubblewrap.try_out(folder)
        if not isinstance(found, Bubblewrap):
            raise RuntimeError(found)
        taken = list[float]()
        for _ in range(STARTS):
            began = time.monotonic()
            path = os.environ.get("PATH", bubblewrap.PATH)
            await bubblewrap.run(found, View(folder, (folder,)), ["true"], env={"PATH": path}, timeout=20)
            taken.append(time.monotonic() - began)
        return statistics.median(taken)
