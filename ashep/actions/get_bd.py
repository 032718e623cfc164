"""Getting bd where there is none: built from its Go module, whose sources have their hashes in the package."""

import os
import sys
from pathlib import Path

from anyio import to_thread

from ashep.actions.runner_wait import Say
from ashep.adapters.system import programs
from ashep.adapters.system.tool_sources import setup_script
from ashep.errors import ProgramMissing

_LONGEST = 3700.0  # setup.py ends the build after an hour
_TO_END = 10.0  # seconds in which setup.py ends the compiler and takes its folder away


async def get_bd(say: Say) -> Path:
    """Path of a bd that is new enough: that of PATH, of the wheel ashep-bd, of the tools cache, or one built now.

    `say` gets the progress, a line every 15 seconds. Cancelled, it leaves what Go has compiled, so that the next call
    goes on from there. Two calls at once build once.

    Raises:
        ProgramMissing: it could not be built; says why and what to do.
        ProgramTimedOut: it took more than an hour.

    """

    def show(lines: bytes) -> None:
        for line in lines.decode(errors="replace").split("\n"):
            if line:
                say(line.removeprefix("setup: "))

    path = os.pathsep.join([os.environ.get("PATH", os.defpath), os.path.dirname(sys.executable)])
    result = await programs.run(
        [sys.executable, await to_thread.run_sync(setup_script), "bd"],
        cwd=None,
        env={**os.environ, "PATH": path},
        timeout=_LONGEST,
        patience=_TO_END,
        take=show,
    )
    program = await to_thread.run_sync(programs.find, "bd")
    if result.returncode or program is None:
        raise ProgramMissing(f"bd is not there: {result.stderr.decode(errors='replace').strip()}")
    return program
