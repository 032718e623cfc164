"""Looking back over a million facts: what checkpoints cost while they are made, and how long an answer takes then."""

import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from statistics import median

import httpx

from ashep.config import write_starter
from ashep.store.checkpoints import NAME
from bench import copies
from bench.figures import Figure
from bench.page import served
from bench.place import say
from bench.processes import peak_memory, spent
from bench.scale import ENTRIES

LONGEST = 1200.0


def measure(*, facts: int, moments: int) -> list[Figure]:
    """Let a server make the checkpoints of a journal of so many facts, and ask it for so many moments at random."""
    with tempfile.TemporaryDirectory(prefix="ashep-bench-") as folder:
        state = Path(folder, "project", ".agent-shepherd", "state")
        say(f"playback: a journal of {facts} facts")
        write_starter(state.parent)
        copies.write(state, -(-facts // ENTRIES))
        with served(state.parent.parent) as (server, client):
            began, answers = time.monotonic(), list[float]()
            while not (told := client.get("/then", params={"at": "0m"}).raise_for_status().json())["ready"]:
                if time.monotonic() - began > LONGEST:
                    raise RuntimeError(f"after {LONGEST} s only {told['progress']:.0%} was made")
                for _ in range(10):
                    answers.append(_took(client, str(client.base_url.copy_with(path="/health"))))
                    time.sleep(0.05)
            wall, cpu = time.monotonic() - began, spent(server.pid).own
            made = peak_memory(server.pid) / 1e6
            first = datetime.fromisoformat(told["kept_from"])
            length, random = datetime.fromisoformat(told["last"]) - first, Random(1)
            chosen = [first + timedelta(seconds=random.uniform(0, length.total_seconds())) for _ in range(moments)]
            took = [_took(client, "/then", at=one.isoformat()) for one in chosen]
            name = f"looking back, {facts} facts"
            return [
                Figure(f"{name}: checkpoints are made", wall, "s", None,
                       f"{cpu:.0f} s of CPU with the server's start; {made:.0f} MB at most"),
                Figure("  the server's other answers meanwhile", 1000 * median(answers or [0.0]), "ms", None,
                       f"median of {len(answers)}, at most {1000 * max(answers or [0.0]):.0f} ms"),
                Figure("  their size", (state / NAME).stat().st_size / 1e6, "MB", None),
                Figure("  a moment at random", median(took), "s", None,
                       f"median of {len(took)}, at most {max(took):.2f} s; {peak_memory(server.pid) / 1e6:.0f} MB"),
                Figure("  the slowest of them", max(took), "s", 1.0),
            ]  # fmt: skip


def _took(client: httpx.Client, path: str, **query: str) -> float:
    began = time.monotonic()
    client.get(path, params=query).raise_for_status()
    return time.monotonic() - began
