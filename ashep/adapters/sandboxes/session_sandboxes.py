"""Where each session is kept apart: who makes in its place, and who judges before its ground alone."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import anyio.to_thread

from ashep.adapters.sandboxes.bubblewrap import BindMount
from ashep.adapters.sandboxes.profiles import SandboxProfile, SandboxProfiles, WriterAccess, tell
from ashep.adapters.sandboxes.request_files import ASKS
from ashep.core.policy.agents import Sandbox
from ashep.errors import RunnerRefused, RunnerUnavailable
from ashep.journal import durable_io
from ashep.ports.runner import SessionRequest

GONE = "the sandbox in which this session was opened is not there any more"


class SessionSandboxes:
    """Those of the sessions of one kind of agents, of one project."""

    def __init__(
        self,
        surroundings: SandboxProfiles,
        *,
        place_of: Callable[[str | None], Path | None],
        folder_of: Callable[[Path], Path],
        needs: Callable[[], Collection[Path]] = tuple,
    ) -> None:
        """`place_of`: the place that a folder is in; `folder_of`: where what belongs to a place is kept; `needs`: what
        every agent reads. All of them may block.
        """
        self._surroundings, self._place_of, self._folder_of, self._needs = surroundings, place_of, folder_of, needs

    async def folder(self, request: SessionRequest, own: Path) -> Path | None:
        """Give the folder in which a session that is opened keeps its things: that of its place, or, where it judges,
        `own`. None: no sandbox is around it. Raises `RunnerRefused`, `ServerNotStarted`.
        """
        place = await anyio.to_thread.run_sync(self._place_of, request.directory)
        if place is None and request.access == "write":
            raise RunnerRefused("who changes files works in a place of its own, and none stands for this run")
        wished = (request.sandbox if place is not None else None) or self._surroundings.agents.sandbox
        if await self._surroundings.sandbox(wished) is None:
            return None
        if place is None:
            return own

        def prepare_folder() -> Path:
            folder = self._folder_of(place)
            durable_io.make_folder(folder / ASKS)  # who answers there looks once the session is opened
            if request.snapshot:
                tell(folder, request.snapshot)
            return folder

        return await anyio.to_thread.run_sync(prepare_folder)

    async def profile(
        self,
        folder: Path,
        directory: str,
        wished: Sandbox | None,
        *,
        writable: Sequence[Path] = (),
        placed: Sequence[BindMount] = (),
    ) -> SandboxProfile:
        """Say how a process of a session is started that keeps its things in `folder`; the rest: what its kind has
        beside. Raises `RunnerUnavailable`.
        """
        place, agents = await anyio.to_thread.run_sync(self._place_of, directory), self._surroundings.agents
        if place is not None:
            given = await self._surroundings.of_place(place, wished)
        else:
            sandbox = await self._surroundings.sandbox(agents.sandbox)
            given = WriterAccess(agents, sandbox, (), (Path(directory),), {})
        if (sandbox := given.sandbox) is None:
            raise RunnerUnavailable(GONE)

        def make_profile() -> SandboxProfile:
            return self._surroundings.closed(
                sandbox, folder, Path(directory), given.environment,
                writable=(*writable, *given.writable), readable=(*given.readable, *self._needs()), placed=placed,
            )  # fmt: skip

        return await anyio.to_thread.run_sync(make_profile)
