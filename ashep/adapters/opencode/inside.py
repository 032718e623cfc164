"""Programs that run where the agents of a place run, and are none of theirs: the set-up, and what a person tries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import anyio.to_thread

from ashep.adapters import bubblewrap
from ashep.adapters.bubblewrap import Bubblewrap, View
from ashep.adapters.opencode.profiles import BORROWED
from ashep.adapters.opencode.server import ManagedServer
from ashep.adapters.programs import Finished

_NOT_THERE = (".git", ".beads", ".agent-shepherd")


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


async def enter(server: ManagedServer) -> Inside | None:
    """Give the sandbox of a server's place; None: its agents run without. Raises `ServerNotStarted`."""
    profile, environment = await server.surroundings()
    if profile is None or profile.sandbox is None:
        return None
    return Inside(profile.sandbox, replace(profile.view, lasting=False), environment)


async def enter_with_project(server: ManagedServer, project: Path, places: Path) -> Inside | None:
    """Give it with the project's files to read: without its git, its issues, and what ashep keeps."""
    if (inside := await enter(server)) is None:
        return None

    def beside(view: View) -> View:
        main = project.resolve()
        return replace(
            view,
            readable=(*view.readable, main),
            hidden=(*view.hidden, *(main / name for name in _NOT_THERE), places),
            kept=(*view.kept, *(places / name for name in BORROWED)),
        )

    return replace(inside, view=await anyio.to_thread.run_sync(beside, inside.view))
