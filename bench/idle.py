"""A daemon with nothing to do: its own CPU, and what it writes."""

import os
import signal
import time

from bench.figures import Figure, short
from bench.place import THREE, Project, Tools, model, say, server, template
from bench.processes import end, spent

SETTLING = 20.0
"""Seconds until a daemon that found nothing to do has come to rest."""


def measure(tools: Tools, *, seconds: float) -> list[Figure]:
    """Let a daemon look after blocked issues; its hints work, so that it looks every 30 s."""
    project = template(tools, 5, status="blocked").copy("idle")
    with model(tools) as url, server(tools, url, "server-idle") as agents:
        project.configure(THREE, agents)
        daemon = project.work()
        try:
            say(f"idle: {SETTLING + seconds:.0f} s")
            time.sleep(SETTLING)
            calls, size, before, since = project.calls(), _journal(project), spent(daemon.pid), time.monotonic()
            records = len(list(project.journal()))
            time.sleep(seconds)
            new = [str(record["type"]) for record in list(project.journal())[records:]]
            used, took = spent(daemon.pid) - before, time.monotonic() - since
            written, after = _journal(project) - size, project.calls()
            os.kill(daemon.pid, signal.SIGTERM)
            code = daemon.wait(20)
        finally:
            end(daemon)
    if code:
        raise RuntimeError(f"ashep ended with {code}: {project.said()}")
    looks = after.count["list"] - calls.count["list"]
    bd = sum(after.cpu.values()) - sum(calls.cpu.values())
    return [
        Figure("idle: ashep's own CPU, of a core", 100 * used.own / took, "%", 0.5,
               f"{short(used.own)} s in {took:.0f} s"),
        Figure("idle: bytes of journal", written, "bytes", 0, ", ".join(new)),
        Figure("idle: CPU of bd's looks, of a core", 100 * bd / took, "%", None, f"{looks} looks in {took:.0f} s"),
    ]  # fmt: skip


def _journal(project: Project) -> int:
    return sum(file.stat().st_size for file in (project.state / "journal").glob("*.jsonl"))
