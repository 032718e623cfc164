"""The page and its server over ten thousand runs: how long answers take, what it costs where nobody asks, sizes."""

import gzip
import json
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from ashep.api.routes import V1
from ashep.api.static import built
from ashep.config import write_starter
from bench import browser, copies, history
from bench.figures import Figure
from bench.place import ASHEP, say
from bench.processes import end, peak_memory, spent

ASKED = {
    "/now": 30.0, "/issues": 100.0, "/issues?state=closed&q=t-": 100.0, "/issues/{issue}": 100.0,
    "/issues/{issue}/runs": 100.0, "/runs": 100.0, "/runs/{run}": 100.0, "/records": 100.0, "/usage?by=day": 100.0,
    "/timeline": None, "/report": None,
}  # fmt: skip
"""What is asked, and in how many milliseconds it is to be answered."""

STREAMS = 12
FIRST, ALL = 100.0, 260.0
"""Kilobytes of scripts, packed: before the first picture, and altogether."""


def measure(*, runs: int, times: int, idle: float, changes: int) -> list[Figure]:
    """Ask everything so often, one after the other, then nothing for so many seconds; then look with a browser."""
    with tempfile.TemporaryDirectory(prefix="ashep-bench-") as folder:
        project = Path(folder, "project")
        say(f"page: {runs} runs")
        write_starter(project / ".agent-shepherd")
        copies.write(project / ".agent-shepherd" / "state", -(-runs // history.RUNS))
        figures = list[Figure]()
        with served(project) as (server, client):  # nobody has drawn the picture: it does so itself
            began = time.monotonic()
            client.get("/now").raise_for_status()
            figures.append(Figure("page: drawing the picture, where no daemon has", time.monotonic() - began, "s", None,
                                  f"{peak_memory(server.pid) / 1e6:.0f} MB at most"))  # fmt: skip
        with served(project) as (server, client):
            figures += _answers(client, times)
            while not client.get("/then", params={"at": "0m"}).raise_for_status().json()["ready"]:
                time.sleep(1)  # checkpoints are made once, after an upgrade: that is not idle
            figures += [*_idle(client, server.pid, idle), *scripts()]
            return [*figures, *browser.measure(project, times=-(-times // 5), changes=changes)]


@contextmanager
def served(project: Path) -> Iterator[tuple[subprocess.Popen[bytes], httpx.Client]]:
    """Start the server, and a client of it."""
    argv = [str(ASHEP), "serve", "--port", "0"]
    with subprocess.Popen(argv, cwd=project, stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            found = re.search(r"listening on (\S+);", server.stdout.readline().decode())
            assert found is not None
            token = (project / ".agent-shepherd" / "state" / "service.token").read_text().strip()
            known = {"Authorization": f"Bearer {token}"}
            with httpx.Client(base_url=found[1] + V1, headers=known, trust_env=False, timeout=300) as client:
                yield server, client
        finally:
            end(server)


def _answers(client: httpx.Client, times: int) -> list[Figure]:
    first: dict[str, Any] = client.get("/runs", params={"limit": 1}).raise_for_status().json()["items"][0]
    figures = list[Figure]()
    for asked, bound in ASKED.items():
        path, took, size = asked.format(issue=first["issue"], run=first["run"]), list[float](), 0
        for _ in range(times):
            at = time.monotonic()
            size = len(client.get(path).raise_for_status().content)
            took.append(1000 * (time.monotonic() - at))
        name = f"page: GET {asked.replace('{', '').replace('}', '')}"
        note = f"median of {times}, at most {max(took):.0f} ms; {size / 1000:.0f} kB"
        figures.append(Figure(name, median(took), "ms", bound, note))
    return figures


def _idle(client: httpx.Client, pid: int, seconds: float) -> list[Figure]:
    before, since = spent(pid).own, time.monotonic()
    time.sleep(seconds)
    alone = 100 * (spent(pid).own - before) / (time.monotonic() - since)
    streams = [client.stream("GET", "/events") for _ in range(STREAMS)]
    for one in streams:
        next(one.__enter__().iter_lines())
    before, since = spent(pid).own, time.monotonic()
    time.sleep(seconds)
    watched = 100 * (spent(pid).own - before) / (time.monotonic() - since)
    for one in streams:
        one.__exit__(None, None, None)
    return [
        Figure("page: the server's CPU where nobody asks, of a core", alone, "%", 1),
        Figure(f"page: the same with {STREAMS} streams", watched, "%", None),
        Figure("page: the most memory that it had", peak_memory(pid) / 1e6, "MB", 120),
    ]


def scripts() -> list[Figure]:
    """Weigh the scripts of the page as it was built."""
    files = {name: file.body for name, file in built().files.items() if name.endswith(".js")}
    index = built().files.get("index.html")
    if index is None:
        return []
    packed = {name: len(gzip.compress(body, mtime=0)) / 1000 for name, body in files.items()}
    first = {one for one in packed if one in index.body.decode()}
    while more := {name for one in first for name in packed if _imports(files[one], name)} - first:
        first |= more
    return [
        Figure("page: scripts before the first picture, packed", sum(packed[one] for one in first), "kB", FIRST,
               ", ".join(sorted(first))),
        Figure("page: all scripts, packed", sum(packed.values()), "kB", ALL, json.dumps(len(packed)) + " files"),
    ]  # fmt: skip


def _imports(script: bytes, name: str) -> bool:
    """Whether a script imports another at its beginning, and not when that is needed."""
    return re.search(rb'(?:from|import)"\./' + re.escape(Path(name).name.encode()) + rb'"', script) is not None
