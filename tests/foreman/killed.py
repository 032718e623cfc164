"""`python -m tests.foreman.killed`: the wrapper, Claude Code, or both are killed at moments of a sitting, one after the
other on one history. Ends with 1 where a process is left, a terminal is not usable, or a line is lost or doubled.
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import anyio

from ashep.adapters.system import process_table
from ashep.extras.demo.scripted_model import Call, ModelRequest, ModelServer, Reply
from tests.foreman.sittings import Day

VICTIMS = ("the wrapper", "claude", "both")
LAST = 7.0  # seconds after its start at which a sitting is over, or nearly so


def script(ask: ModelRequest) -> Reply:
    """One that leaves a shell behind, asks a subagent, and answers."""
    if ask.prompt.startswith("look"):
        return Reply(f"seen of {ask.prompt}", drip=0.02)
    day = next((word for word in ask.prompt.split() if word.startswith("day-")), "")
    if not day or ask.kind == "helper":
        return Reply("nothing")
    if not ask.results:
        return Reply("begin", (Call("bash", {"command": "setsid sleep 300 & echo begun", "description": "begin"}),))
    if len(ask.results) == 1:
        asked = {"description": "look", "prompt": f"look {day}", "subagent_type": "Explore", "run_in_background": False}
        return Reply("look", (Call("task", asked),))
    return Reply(f"DONE {day}", drip=0.05)


async def killed(day: Day, number: int, moment: float) -> list[str]:
    victim, before = VICTIMS[number % 3], {pid for pid, _ in day.marked()}
    wrong = list[str]()
    with day.sits("--", f"day-{number}. do") as sitting:
        await anyio.sleep(moment)
        wrapper, child = sitting.pid, sitting.child()
        if child is not None and not before.isdisjoint(pid for pid, _ in day.marked()):
            wrong.append("what an earlier one left was there beside the next")
        sitting.kill(*(pid for pid, of in ((wrapper, "the wrapper"), (child, "claude")) if victim in (of, "both")))
        if victim == "claude" and child is not None:
            code = await sitting.ended()
            wrong += [f"it ended with {code}"] if code != 137 else []
            wrong += ["the wrapper has ended, and what it began has not"] if day.marked() else []
        await sitting.until(lambda: sitting.usable() and process_table.stat(child or 0)[0] in "ZX")
    return [f"{number}: {victim} after {moment:.2f} s: {one}" for one in wrong]


def kept(day: Day, asks: Sequence[ModelRequest]) -> list[str]:
    """Say what a model saw and no line says, or two say: a hook had been answered for it."""
    told = Counter((one["kind"], word_of(one["text"])) for one in day.history())
    seen = {("prompt", word_of(one.prompt)) for one in asks if one.kind == "turn" and one.prompt.startswith("day-")}
    seen |= {("asked", word_of(one.prompt)) for one in asks if one.kind == "turn" and one.prompt.startswith("look")}
    wrong = [f"{kind} {word}: {told[kind, word]} lines" for kind, word in sorted(seen) if told[kind, word] != 1]
    ids = Counter(one["id"] for one in day.history())
    return wrong + [f"{one} is there {times} times" for one, times in ids.items() if times > 1]


def word_of(text: str) -> str:
    return next((word.strip(".") for word in text.split() if word.startswith("day-")), "")


async def sweep(folder: Path, moments: Sequence[float]) -> list[str]:
    async with ModelServer(script) as model:
        day = Day(folder, model)
        wrong = [one for number, moment in enumerate(moments) for one in await killed(day, number, moment)]
        with day.sits("--", "day-last. do") as last:
            await last.until(lambda: day.has("answer", "DONE day-last"))
            await last.tells("/exit")
            code = await last.ended("\r")
        wrong += [f"the last one ended with {code}"] if code else []
        wrong += [f"left: process {pid}" for pid, _ in day.marked()]
        wrong += kept(day, model.asks)
        counted = Counter(one["kind"] for one in day.history())
        print(f"{len(moments)} moments; {dict(counted)}; asked {len(model.asks)} times", flush=True)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.foreman.killed", description=__doc__)
    parser.add_argument("--moments", type=int, default=50)
    count = parser.parse_args().moments
    with tempfile.TemporaryDirectory() as folder:
        wrong = anyio.run(sweep, Path(folder), [LAST * (number + 0.5) / count for number in range(count)])
    print("\n".join(wrong) or "all is well")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
