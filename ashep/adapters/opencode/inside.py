"""Programs that run where the agents of a place run, and are none of theirs: the set-up, and what a person tries."""

import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import anyio.to_thread

from ashep.adapters import bubblewrap
from ashep.adapters.bubblewrap import Bubblewrap, View, filter_file
from ashep.adapters.opencode.server import ManagedServer
from ashep.adapters.programs import Finished
from ashep.errors import ProgramMissing


@dataclass(frozen=True, slots=True)
class Inside:
    """The sandbox of a place."""

    sandbox: Bubblewrap
    view: View
    environment: Mapping[str, str]
    """What its agents have."""

    async def run(self, argv: Sequence[str], at: Path, env: Mapping[str, str], timeout: float) -> Finished:
        """Run a program to its end, in a folder of the place; `env`: variables beside those that agents have."""
        view = replace(self.view, at=at)
        return await bubblewrap.run(self.sandbox, view, argv, env={**self.environment, **env}, timeout=timeout)

    def foreground(self, argv: Sequence[str], at: Path) -> int:
        """Run a program at our terminal and give its exit code, as a shell does. Blocks; what it started ends, too."""
        before = signal.signal(signal.SIGINT, _leave)  # it is the program's: what is ignored would be, there too
        try:
            with filter_file() as passed:
                wrapped = self.sandbox.wrap(replace(self.view, at=at), argv, passed)
                process = subprocess.Popen(wrapped, cwd="/", env=dict(self.environment), pass_fds=passed)
                code = process.wait()
        except OSError as error:
            raise ProgramMissing(f"{self.sandbox.program} cannot be started: {error}") from error
        finally:
            signal.signal(signal.SIGINT, before)
        return code if code >= 0 else 128 - code


def _leave(*_: object) -> None:
    """Do nothing about a signal."""


async def enter(server: ManagedServer, project: Path | None = None) -> Inside | None:
    """Give the sandbox of a server's place; None: its agents run without. Raises `ServerNotStarted`.

    `project`: its files can be read there, too, as far as its profile does not hide them.
    """
    profile, environment = await server.surroundings()
    if profile is None or profile.sandbox is None:
        return None
    view = replace(profile.view, lasting=False)
    if project is not None:
        view = replace(view, readable=(*view.readable, await anyio.to_thread.run_sync(project.resolve)))
    return Inside(profile.sandbox, view, environment)
