"""What a process of Claude Code sees that is kept apart, and how it is started there.

It has a folder of Claude Code's own instead of the user's: that of its place, or, where it judges, of its session. In
there it may write; what the user has set up, agents and rules lies over it and cannot be changed, nor added to, for
whoever works there next would be led by it. The login is the user's own file, so that a renewed one is kept. An
attempt's folder it can read, but for what it asks: what opens the gate, the rules, and the answers are out of reach.
"""

import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

import anyio.to_thread

from ashep.adapters import processes
from ashep.adapters.bubblewrap import Placed
from ashep.adapters.claude import process
from ashep.adapters.claude.process import Start
from ashep.adapters.claude.store import Attempt, Session
from ashep.adapters.sandboxes import inside, occupants
from ashep.adapters.sandboxes.surroundings import Profile, Surroundings, tell
from ashep.core.policy.agents import Sandbox
from ashep.errors import RunnerRefused, RunnerUnavailable
from ashep.journal import paths
from ashep.ports.runner import SessionRequest

FOLDER = "claude"
"""In the folder of a place, or of a session: Claude Code's own."""

LOGIN = ".credentials.json"
_FILES = {"settings.json": b"{}", "CLAUDE.md": b""}
_FOLDERS = ("agents", "commands", "hooks", "output-styles", "plugins", "rules", "skills", "workflows")
_MANAGED = Path("/etc/claude-code")
"""Where whoever runs the machine says what Claude Code may do."""
_VOID = "void"
"""In the same: what stands for what the user has not."""


class Apart:
    """Who is kept apart, of one project."""

    def __init__(
        self,
        surroundings: Surroundings,
        *,
        place_of: Callable[[str | None], Path | None],
        folder_of: Callable[[Path], Path],
        user: Path,
        needs: Callable[[], Collection[Path]] = tuple,
    ) -> None:
        """`place_of`: the place that a folder is in; `folder_of`: where what belongs to a place is kept; `user`: the
        user's own folder of Claude Code; `needs`: folders of the program. All of them may block.
        """
        self._surroundings, self._place_of, self._folder_of = surroundings, place_of, folder_of
        self._user, self._needs = user, needs

    async def config(self, request: SessionRequest, folder: Path) -> str:
        """Give the folder of Claude Code's own of a session that is opened, which has `folder`; empty: it is the
        user's, and no sandbox is around it. Raises `RunnerRefused`, `ServerNotStarted`.
        """
        place = await anyio.to_thread.run_sync(self._place_of, request.directory)
        if place is None and request.access == "write":
            raise RunnerRefused("who changes files works in a place of its own, and none stands for this run")
        wished = (request.sandbox if place is not None else None) or self._surroundings.agents.sandbox
        if await self._surroundings.sandbox(wished) is None:
            return ""
        if place is None:
            return str(folder / FOLDER)
        own = await anyio.to_thread.run_sync(self._folder_of, place)
        if request.snapshot:
            await anyio.to_thread.run_sync(tell, own, request.snapshot)
        return str(own / FOLDER)

    async def profile(self, session: Session) -> Profile | None:
        """Say how a process of a session is started; None: as we are. Raises `RunnerUnavailable`."""
        if not session.config:
            return None
        place = await anyio.to_thread.run_sync(self._place_of, session.directory)
        if place is not None:
            return await self.of_place(place, session.sandbox, at=Path(session.directory))
        sandbox = await self._surroundings.sandbox(self._surroundings.agents.sandbox)
        if sandbox is None:
            raise RunnerUnavailable("the sandbox in which this session was opened is not there any more")
        at, config = Path(session.directory), Path(session.config)

        def made() -> Profile:
            return self._surroundings.closed(
                sandbox, config.parent, at, {},
                writable=self._own(config), readable=[at, _MANAGED, *self._needs()], placed=self._placed(config),
            )  # fmt: skip

        return await anyio.to_thread.run_sync(made)

    async def of_place(self, place: Path, wished: Sandbox | None = None, *, at: Path | None = None) -> Profile:
        """Say how a process is started in a place. Raises `RunnerUnavailable`."""
        given = await self._surroundings.of_place(place, wished)
        sandbox, folder = given.sandbox, await anyio.to_thread.run_sync(self._folder_of, place)
        config = folder / FOLDER
        if sandbox is None:
            raise RunnerUnavailable("the sandbox in which this session was opened is not there any more")

        def made() -> Profile:
            own = {**given.environment, "CLAUDE_CONFIG_DIR": str(config)}
            return self._surroundings.closed(
                sandbox, folder, at or place, own,
                writable=[*self._own(config), *given.writable], readable=[*given.readable, _MANAGED, *self._needs()],
                placed=self._placed(config),
            )  # fmt: skip

        return await anyio.to_thread.run_sync(made)

    def _own(self, config: Path) -> list[Path]:
        paths.make_folder(config)
        return [config]

    def _placed(self, config: Path) -> list[Placed]:
        """What lies over Claude Code's own folder: the user's, or nothing."""
        void = config.parent / _VOID
        paths.make_folder(void)
        found = list[Placed]()
        for name in (*_FILES, *_FOLDERS, LOGIN):
            source = self._user / name
            if name == LOGIN and not source.is_file():
                continue
            if not (source.is_dir() if name in _FOLDERS else source.is_file()):
                source = void / name
                if name in _FOLDERS:
                    paths.make_folder(source)
                elif not source.exists():
                    paths.replace(source, _FILES[name])
            found.append(Placed(source.resolve(), config / name, writable=name == LOGIN))
        return found


def starts(profile: Profile, attempt: Attempt, own: Path) -> Start:
    """Give what starts an attempt's process as a profile says; `own`: the folder of what belongs to its place."""

    def start(
        argv: Sequence[str],
        environment: Mapping[str, str],
        directory: str,
        files: tuple[IO[bytes], IO[bytes], IO[bytes]],
    ) -> tuple["subprocess.Popen[bytes]", int]:
        if (sandbox := profile.sandbox) is None:
            raise RunnerUnavailable("there is no sandbox")
        view, mark = replace(profile.view, at=Path(directory)), process.mark(attempt)
        view = replace(
            view, readable=(*view.readable, attempt.folder), writable=(*view.writable, attempt.folder / "asks")
        )
        attempt.note(process.INSIDE)
        occupants.note(own, mark, None)
        started, first = inside.start(sandbox, view, argv, environment, files)
        if first is None:
            return started, started.pid
        occupants.note(own, mark, (first, processes.stat(first)[1]))
        return started, first

    return start
