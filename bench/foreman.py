"""What the foreman adds to Claude Code: to its start, to each prompt, and what writing its memory takes."""

import json
import os
import tempfile
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median, quantiles

import anyio
import httpx

from ashep.extras.demo.scripted_model import ModelRequest, ModelServer, Reply
from ashep.extras.foreman.history import HistoryEntry, Kind
from ashep.extras.foreman.memory import system_prompt
from ashep.extras.foreman.queries import place_of
from ashep.extras.foreman.settings import ForemanSettings, Memory
from bench.figures import Figure, short
from bench.place import say
from tests.conformance.claudes import claude
from tests.foreman.sittings import LONGEST, Day

FILE = "memory: {full: 10}\n"
"""A file of settings: reading one is part of a start."""


def measure(*, entries: int, starts: int, prompts: int) -> list[Figure]:
    """Write a memory of so many entries, begin so often with and without the foreman, and send so many prompts."""
    with tempfile.TemporaryDirectory(prefix="ashep-bench-") as folder:
        return [_memory(entries, Path(folder)), *anyio.run(_beside, Path(folder), starts, prompts)]


def _memory(count: int, folder: Path) -> Figure:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    kinds: tuple[Kind, ...] = ("prompt", "asked", "result", "answer")
    said = "word " * 200
    entries = [
        HistoryEntry(id=f"{number}", at=at + timedelta(minutes=number), session="s", kind=kinds[number % 4], text=said)
        for number in range(count)
    ]
    template = place_of("bench", {"HOME": str(folder), "XDG_STATE_HOME": str(folder)}, folder).template
    system_prompt(entries, Memory(), template)
    took = list[float]()
    for _ in range(15):
        began = time.perf_counter()
        system_prompt(entries, Memory(), template)
        took.append((time.perf_counter() - began) * 1000)
    note = f"of 1 kB each, {ForemanSettings().memory.tokens} tokens; slowest of 15 {short(max(took))} ms"
    return Figure(f"the system prompt, with {count} entries", median(took), "ms", 50, note)


def _answer(_: ModelRequest) -> Reply:
    return Reply("heard")


async def _beside(folder: Path, starts: int, prompts: int) -> list[Figure]:
    async with ModelServer(_answer) as model:
        day = Day(folder / "day", model, FILE)
        pairs = list[tuple[float, float]]()
        for number in range(starts + 1):  # the first one compiles, and counts for nothing
            one = await _start(day, bare=number % 2 == 0)
            other = await _start(day, bare=number % 2 == 1)
            pairs.append((other, one) if number % 2 == 0 else (one, other))
            say(f"start {number} of {starts}: {pairs[-1][0]:.2f} s against {pairs[-1][1]:.2f} s")
        more = [ours - theirs for ours, theirs in pairs[1:]]
        ours, theirs = (median(one[which] for one in pairs[1:]) for which in (0, 1))
        waits = await _prompts(day, prompts)
        note = f"{short(ours)} s against {short(theirs)} s, {min(more):.2f} to {max(more):.2f} in {starts} pairs"
        slowest = quantiles(waits, n=20)[-1]
        late = f"{prompts} prompts; one of 20 takes more than {short(slowest)} ms, the slowest {short(max(waits))} ms"
        return [
            Figure("a start, beyond that of claude alone", median(more), "s", 0.4, note),
            Figure("a prompt's hook, without a small model", median(waits), "ms", 30, late),
        ]


async def _start(day: Day, *, bare: bool) -> float:
    """Begin, and give the seconds until there is a line to write into."""
    began = time.perf_counter()
    sitting = day.sits(argv=[claude(), "--permission-mode", "default"] if bare else None)
    try:
        with anyio.fail_after(LONGEST):
            while "❯" not in sitting.said:
                await anyio.sleep(0.005)
        return time.perf_counter() - began
    finally:
        if (pid := sitting.pid) is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, 15)
            await sitting.ended()
        sitting.close()


async def _prompts(day: Day, count: int) -> list[float]:
    """Tell a sitting of prompts as Claude Code does, each by a connection of its own, and give the milliseconds."""
    sitting, waits = day.sits("--", "begin"), list[float]()
    try:
        with anyio.fail_after(LONGEST):
            while not any(one["kind"] == "answer" for one in day.history()):
                await anyio.sleep(0.05)
        (entry,) = json.loads((day.state / "now/plugin/hooks/hooks.json").read_text())["hooks"]["UserPromptSubmit"]
        (hook,) = entry["hooks"]
        for number in range(count):
            body = {
                "hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": f"prompt {number}",
                "prompt_id": f"p-{number}",
            }  # fmt: skip
            async with httpx.AsyncClient() as client:
                began = time.perf_counter()
                answer = await client.post(hook["url"], json=body, headers=hook["headers"])
            waits.append((time.perf_counter() - began) * 1000)
            answer.raise_for_status()
    finally:
        sitting.close()
    return waits
