"""A daemon that gives Claude Code one prompt and dies: at once, or when the turn has begun.

`python -m tests.claude.owner PROGRAM FOLDER WORK HOME KEY MESSAGE TEXT WHEN`, with the environment of the turn.
"""

import os
import signal
import sys
from pathlib import Path

import anyio

from ashep.adapters.runners.claude import ClaudeRunner
from ashep.ports.runner import Prompt, SessionRequest


async def main(program: str, folder: str, work: str, home: str, key: str, message: str, said: str, when: str) -> None:
    async def begin(*_: str) -> bool:
        return True

    runner = ClaudeRunner(
        (program,), directory=Path(work), folder=Path(folder), environ=os.environ, begin=begin,
        config=Path(home) / ".claude",
    )  # fmt: skip
    await runner.start()
    session = await runner.open_session(SessionRequest(key, key, "write"))
    instance = await runner.send(Prompt(session, message, "prt_1", said))
    print(session, instance, flush=True)
    begun = anyio.Path(folder, "sessions", session, "turns", message, "1", "begun")
    while when == "begun" and not await begun.exists():
        await anyio.sleep(0.01)
    if when == "begun":
        await anyio.sleep(1.0)  # it has the answer, and has asked the model
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:9])  # pyright: ignore[reportArgumentType] - so many
