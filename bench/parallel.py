"""Issues in work trees of their own against issues that share one: how long it takes until all are closed.

Agents take their time (a scripted model that waits): that is what goes on side by side. With own trees each issue's
work is committed and landed too; in the shared tree a write run excludes all others, as by default.
"""

import json
import sys
from datetime import datetime
from functools import partial

import anyio

from ashep.extras.demo.scripted_model import Call, ModelRequest, ModelServer, Reply, outcome_text, verdict_asked
from bench.figures import Figure, times
from bench.issues import PATIENCE
from bench.place import THREE, Project, Tools, model, say, server, template
from bench.processes import watch

TURN = 4.0
"""Seconds that the model takes for an answer."""

WRITE = "date +%N > part-$(basename $PWD).txt"
"""What an implementer does: a file that no other issue has, in a tree of its own."""

SHARED = "workspace: shared, max_concurrent_runs: 3, hold_when_busy: false"
OWN = "workspace: worktree, max_concurrent_runs: 3, hold_when_busy: false"


def answer(ask: ModelRequest, delay: float) -> Reply:
    """Write a file where that is asked for, and end well; each after so many seconds."""
    verdict = verdict_asked(ask.prompt)
    if verdict is None and ask.kind == "turn" and "bash" in ask.tools:
        return Reply(calls=(Call("bash", {"command": WRITE, "description": "write it"}),), delay=delay)
    return Reply(outcome_text(verdict), delay=delay)


def measure(tools: Tools, *, issues: int, rounds: int) -> list[Figure]:
    """Run both so many times, on fresh copies of the database and with a fresh server."""
    full = template(tools, issues)
    with model(tools, "bench.parallel", str(TURN)) as url:
        pairs = [
            (
                _wall(full.copy(f"own-{number}"), url, issues, OWN),
                _wall(full.copy(f"one-{number}"), url, issues, SHARED),
            )
            for number in range(rounds)
        ]
    return [times(f"{issues} issues in own trees, landed, against one shared tree: the clock", pairs, 0.6)]


def _wall(project: Project, url: str, issues: int, worker: str) -> float:
    with server(project.tools, url, f"server-{project.folder.name}", warm=project.folder) as agents:
        project.configure(THREE, agents)
        (project.folder / ".agent-shepherd" / "config.yaml").write_text(
            f"version: 1\ntracker: {{command: [{project.bd}]}}\nworker: {{{worker}}}\n"
            f'runners: {{opencode: {{url: "{agents.url}"}}}}\n'
        )
        found = watch(project.work("--until-idle"), PATIENCE * 2)
    records = list(project.journal())
    taken = [str(record["at"]) for record in records if record["type"] == "IssueTaken"]
    closed = [str(record["at"]) for record in records if record["type"] == "IssueClosed"]
    landed = sum(record["type"] == "WorkLanded" for record in records)
    if found.code or len(closed) != issues or (worker == OWN and landed != issues):
        raise RuntimeError(f"ashep ended with {found.code}, {len(closed)} closed, {landed} landed: {project.said()}")
    took = (datetime.fromisoformat(max(closed)) - datetime.fromisoformat(min(taken))).total_seconds()
    say(f"{worker}: {took:.0f} s, {landed} landed")
    return took


async def _serve(delay: float) -> None:
    async with ModelServer(partial(answer, delay=delay)) as model:
        print(json.dumps({"url": model.url}), flush=True)
        await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(_serve, float(sys.argv[1]))
