"""Half an hour on the real tools: `ashep work` with the real bd, a real OpenCode server and a scripted model."""

import json
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from bench.place import PREFIX, THREE, Project, Server, model, say, server, template, tools
from bench.processes import end
from chaos.soak.figures import Bound, Flat, Sample, judge

EVERY = 15.0
"""Seconds between samples."""

BOUNDS = {
    "ashep: resident memory (MiB)": Bound(0.10, 10), "ashep: descriptors": Bound(0, 3), "ashep: threads": Bound(0, 2),
    "processes": Bound(0, 4), "sessions at work": Bound(0, 2),
}  # fmt: skip


def soak(seconds: float, *, each: float = 40.0) -> list[Flat]:
    """Work for so long, with a new issue every `each` seconds, and judge it."""
    samples: list[Sample] = []
    with tools() as found:
        project = template(found, 0).copy("soak")
        with model(found) as url, server(found, url, "server-soak", warm=project.folder) as agents:
            project.configure(THREE, agents)
            daemon = project.work()
            try:
                made = _work(project, agents, daemon.pid, seconds, each, samples)
                os.kill(daemon.pid, signal.SIGTERM)
                code = daemon.wait(30)
            finally:
                end(daemon)
        closed = sum(record["type"] == "IssueClosed" for record in project.journal())
        say(f"{made} issues made, {closed} closed; ashep ended with {code}")
        if code or closed < made - 3:
            raise RuntimeError(f"ashep ended with {code}, {closed} of {made} closed: {project.said()}")
    return judge(samples, BOUNDS)


def _work(project: Project, agents: Server, pid: int, seconds: float, each: float, samples: list[Sample]) -> int:
    began, made, shown = time.monotonic(), 0, 0.0
    while (passed := time.monotonic() - began) < seconds:
        if passed >= made * each and passed < seconds - 2 * each:
            made += 1
            project.tools.run(
                project.tools.bd, "create", f"Make part {made}", "--type=task", f"--id={PREFIX}-{made}", "--json",
                cwd=project.folder,
            )  # fmt: skip
        if passed >= len(samples) * EVERY:
            samples.append(_sample(project, agents, pid))
        if passed - shown > 120:
            shown = passed
            say(f"{passed:.0f} s: {made} issues made, {samples[-1]}")
        time.sleep(1)
    return made


def _sample(project: Project, agents: Server, pid: int) -> Sample:
    status: dict[str, Any] = {}
    with suppress(OSError):
        status = json.loads(agents.call("GET", "/session/status", project.folder))
    return {
        "ashep: resident memory (MiB)": _resident(pid),
        "ashep: descriptors": len(os.listdir(f"/proc/{pid}/fd")),
        "ashep: threads": len(os.listdir(f"/proc/{pid}/task")),
        "processes": _descendants(pid),
        "sessions at work": len(status),
        "OpenCode: resident memory (MiB)": _resident(agents.pid),
        "journal (KiB)": sum(file.stat().st_size for file in (project.state / "journal").glob("*.jsonl")) / 1024,
    }


def _resident(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1024**2


def _descendants(pid: int) -> int:
    """How many processes ashep has started that are there now."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)] = int(fields[1])
    found, wanted = 0, [pid]
    while wanted:
        parent = wanted.pop()
        children = [child for child, of in parents.items() if of == parent]
        found += len(children)
        wanted += children
    return found
