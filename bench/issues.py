"""Many issues through three agent phases, against a bare loop: CPU of everything, calls of bd, memory."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from ashep.adapters.runners.opencode.rulesets import ruleset
from bench.figures import Figure, short, times
from bench.place import ROOT, THREE, Calls, Project, Tools, model, say, server, template
from bench.processes import Spent, Watched, watch

PHASES = 3
STARTING = ("version", "where", "config")
"""Calls of bd that belong to the start of the daemon."""
LOOKING = ("list", "ready")
PATIENCE = 900.0
AT_ONCE = 3
"""Runs at a time: ashep's default."""


@dataclass(frozen=True)
class Side:
    """What one of the two has spent."""

    spent: Spent
    server: float
    calls: Calls
    memory: int

    @property
    def cpu(self) -> float:
        return self.spent.all + self.server


def measure(tools: Tools, *, issues: int, rounds: int, profile: Path | None = None) -> list[Figure]:
    """Run both so many times, each time on fresh copies of the database and with a fresh server."""
    full, empty = template(tools, issues), template(tools, 0)
    with model(tools) as url:
        starts = [_start_only(empty.copy(f"empty-{number}"), url, number) for number in range(rounds)]
        pairs, beside = list[tuple[Side, Side]](), list[Side]()
        plan: dict[str, Any] = {}
        for number in range(rounds):
            mine = full.copy(f"mine-{number}")
            if number % 2 == 0 or not plan:
                ours = by_ashep(mine, url, issues, profile)
                plan = plan or plan_of(mine)
                pairs.append((ours, _bare(full.copy(f"bare-{number}"), url, plan)))
            else:  # the order changes, in case that the second one has it easier
                bare = _bare(full.copy(f"bare-{number}"), url, plan)
                pairs.append((by_ashep(mine, url, issues, profile), bare))
            beside.append(_bare(full.copy(f"beside-{number}"), url, plan | {"at_once": AT_ONCE}))
    return figures_of(pairs, beside, starts, issues)


def figures_of(pairs: list[tuple[Side, Side]], beside: list[Side], starts: list[Watched], issues: int) -> list[Figure]:
    """What the rounds say; `beside`: the loop, as many at a time as ashep; `starts`: daemons that found nothing."""
    runs = issues * PHASES
    sides = [ours for ours, _ in pairs]
    start = median(one.spent.own for one in starts)
    own = median(one.spent.own for one in sides)
    looks = median(one.calls.count["list"] for one in sides)
    # a look that finds no issue reads the prefix (`config`) in place of `ready`; one such call belongs to the start
    reads = median(sum(one.calls.count[name] for name in (*LOOKING, "config")) - 1 for one in sides)
    beyond = median(
        sum(n for name, n in one.calls.count.items() if name not in (*LOOKING, *STARTING)) / issues for one in sides
    )
    return [
        times(f"{issues} issues x {PHASES} runs: all CPU, against the bare loop",
              [(ours.cpu, bare.cpu) for ours, bare in pairs], 1.15),
        _part("  of it ashep itself", [(ours.spent.own, bare.spent.own) for ours, bare in pairs]),
        _part("  of it bd and git", [(ours.spent.children, bare.spent.children) for ours, bare in pairs]),
        _part("  of it the OpenCode server", [(ours.server, bare.server) for ours, bare in pairs]),
        times(f"  the same, against the loop with {AT_ONCE} at a time",
              [(ours.cpu, bare.cpu) for (ours, _), bare in zip(pairs, beside, strict=True)], 1.15),
        Figure("ashep's own CPU, a run beyond its start", (own - start) / runs, "s", 0.06,
               f"({short(own)} - {short(start)}) s / {runs}"),
        Figure("bd calls, an issue of three phases beyond looks", beyond, "calls", 5, str(sides[-1].calls)),
        Figure("bd reads, a look", reads / looks, "calls", 2, f"{short(looks)} looks"),
        Figure("memory of the daemon, at most", median(one.memory for one in sides) / 1e6, "MB", 100),
    ]  # fmt: skip


def _part(name: str, pairs: list[tuple[float, float]]) -> Figure:
    bare = median(bare for _, bare in pairs)
    return Figure(name, median(ours for ours, _ in pairs), "s", None, f"{short(bare)} s in the bare loop")


# --- ashep ------------------------------------------------------------------------------------------------------------


def _start_only(project: Project, url: str, number: int) -> Watched:
    """A daemon that starts, looks, and finds nothing to do."""
    with server(project.tools, url, f"server-{project.folder.name}") as agents:
        project.configure(THREE, agents)
        found = watch(project.work("--until-idle"), PATIENCE)
    if found.code:
        raise RuntimeError(f"ashep ended with {found.code}: {project.said()}")
    say(f"start {number + 1}: {found.spent.own:.2f} s of CPU")
    return found


def by_ashep(project: Project, url: str, issues: int, profile: Path | None) -> Side:
    """Let ashep walk all issues."""
    with server(project.tools, url, f"server-{project.folder.name}", warm=project.folder) as agents:
        project.configure(THREE, agents)
        before = agents.cpu()
        with _progress(project, issues):
            found = watch(project.work("--until-idle", profile=profile), PATIENCE)
        side = Side(found.spent, agents.cpu() - before, project.calls(), found.memory)
    closed = sum(record["type"] == "IssueClosed" for record in project.journal())
    if found.code or closed != issues:
        raise RuntimeError(f"ashep ended with {found.code}, {closed} of {issues} closed: {project.said()}")
    say(f"ashep: {side.cpu:.1f} s of CPU: itself {side.spent.own:.1f}, bd and git {side.spent.children:.1f}, "
        f"OpenCode {side.server:.1f}")  # fmt: skip
    return side


@contextmanager
def _progress(project: Project, issues: int) -> Iterator[None]:
    """Say every ten seconds how many are closed."""
    over = threading.Event()

    def tell() -> None:
        while not over.wait(10):
            say(f"{sum(record['type'] == 'IssueClosed' for record in project.journal())} of {issues} closed")

    thread = threading.Thread(target=tell)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


# --- the bare loop ----------------------------------------------------------------------------------------------------


def plan_of(project: Project) -> dict[str, Any]:
    """What ashep did, for a loop that does the same without asking: issues, and for each run its agent and text."""
    issues: dict[str, list[dict[str, Any]]] = {}
    runs: dict[str, dict[str, Any]] = {}
    for record in project.journal():
        if record["type"] == "RunPlanned":
            run = {"run": record["run"], "phase": record["phase"], "agent": record["slug"]}
            run["access"] = record["access"]
            runs[str(record["run"])] = run | {"permission": ruleset(_access(record["access"]))}
            issues.setdefault(str(record["issue"]), []).append(runs[str(record["run"])])
        if record["type"] == "SendPrompt":
            blob = str(record["blob"])
            text = (project.state / "blobs" / blob[:2] / blob).read_text()
            runs[str(record["run"])]["text"] = text
    return {"issues": dict(sorted(issues.items()))}


def _access(word: object) -> Any:
    return word


def _bare(project: Project, url: str, plan: dict[str, Any]) -> Side:
    with server(project.tools, url, f"server-{project.folder.name}", warm=project.folder) as agents:
        before = agents.cpu()
        found = watch(start_bare(project, agents.url, plan), PATIENCE)
        side = Side(found.spent, agents.cpu() - before, project.calls(), found.memory)
    if found.code:
        raise RuntimeError(f"the bare loop ended with {found.code}")
    say(f"bare loop: {side.cpu:.1f} s of CPU: itself {side.spent.own:.1f}, bd {side.spent.children:.1f}, "
        f"OpenCode {side.server:.1f}")  # fmt: skip
    return side


def start_bare(project: Project, url: str, plan: dict[str, Any]) -> "subprocess.Popen[bytes]":
    """Start the bare loop; `url`: the server's, where it has one."""
    file = project.folder.parent / f"{project.folder.name}.plan"
    place = {"folder": str(project.folder), "bd": str(project.bd), "url": url}
    file.write_text(json.dumps(plan | place))
    return subprocess.Popen(
        [sys.executable, "-m", "bench.bare", str(file)], cwd=ROOT, env=project.tools.env,
        stdin=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
