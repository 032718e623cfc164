"""What a process of Claude Code sees that is kept apart, and how it is started there.

It has a folder of Claude Code's own instead of the user's: that of its place, or, where it judges, of its session. In
there it may write; what the user has set up, agents and rules lies over it and cannot be changed, nor added to, for
whoever works there next would be led by it. An attempt's folder it can read, but for what it asks: what opens the gate,
the rules, and the answers are out of reach.

The login is the user's own file, so that a renewed one is kept: Claude Code 2.1.330 cannot rename a file over it, and
writes in place. It renews behind a lock beside the login, for an issuer may take a refresh token once: who comes second
is refused, and empties the login. So all who have a login in a sandbox have it in one folder, with these locks; without
that, of two turns at once one was refused, and its provider held until a person came (tests/claude/test_login.py). Who
renews it outside has locks of their own, and renames: a turn that goes on has the file of before, and what is refused
then is that one, and not the one that is there (`Apart.renewed`).
"""

import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO

import anyio.to_thread

from ashep.adapters import processes
from ashep.adapters.bubblewrap import Placed
from ashep.adapters.claude import process
from ashep.adapters.claude.process import Start
from ashep.adapters.claude.store import Attempt, Session
from ashep.adapters.folders import delete
from ashep.adapters.sandboxes import inside, occupants
from ashep.adapters.sandboxes.quarters import Quarters
from ashep.adapters.sandboxes.surroundings import Profile
from ashep.core.policy.agents import Sandbox
from ashep.errors import RunnerUnavailable
from ashep.journal import paths
from ashep.ports.runner import SessionRequest

FOLDER = "claude"
"""In the folder of a place, or of a session: Claude Code's own."""

LOGIN = ".credentials.json"
LOGIN_AT = "CLAUDE_SECURESTORAGE_CONFIG_DIR"
"""The variable that names the folder of the login, and of the locks behind which it is renewed."""

_FILES = {"settings.json": b"{}", "CLAUDE.md": b""}
_FOLDERS = ("agents", "commands", "hooks", "output-styles", "plugins", "rules", "skills", "workflows")
_VOID = "void"
"""In the same: what stands for what the user has not."""
_HAD = "login"
"""In the folder of an attempt: the number of the file that is its login."""


class Apart:
    """Who is kept apart, of one project."""

    def __init__(self, quarters: Quarters, user: Path, shared: Path) -> None:
        """`user`: the user's own folder of Claude Code; `shared`: the one in which its login is in every sandbox."""
        self._quarters, self._user, self._shared = quarters, user, shared

    async def config(self, request: SessionRequest, folder: Path) -> str:
        """Give the folder of Claude Code's own of a session that is opened, which has `folder`; empty: it is the
        user's, and no sandbox is around it. Raises `RunnerRefused`, `ServerNotStarted`.
        """
        found = await self._quarters.folder(request, folder)
        return str(found / FOLDER) if found is not None else ""

    async def profile(self, session: Session) -> Profile:
        """Say how a process of a session is started that is kept apart. Raises `RunnerUnavailable`."""
        return await self._profile(Path(session.config), session.directory, session.sandbox)

    async def of_place(self, place: Path, folder: Path) -> Profile:
        """Say how a person starts it in a place whose things are in `folder`. Raises `RunnerUnavailable`."""
        found = await self._profile(folder / FOLDER, str(place), None)
        return replace(found, environment={**found.environment, "CLAUDE_CONFIG_DIR": str(folder / FOLDER)})

    async def _profile(self, config: Path, directory: str, wished: Sandbox | None) -> Profile:
        placed = await anyio.to_thread.run_sync(self._placed, config)
        writable, given = [config], dict[str, str]()
        if any(one.target.parent == self._shared for one in placed):
            writable, given = [config, self._shared], {LOGIN_AT: str(self._shared)}
        found = await self._quarters.profile(config.parent, directory, wished, writable=writable, placed=placed)
        return replace(found, environment={**found.environment, **given})

    def _placed(self, config: Path) -> list[Placed]:
        """Make Claude Code's own folder, and give what lies over it: the user's, or nothing."""
        void = config.parent / _VOID
        for one in (config, void, self._shared):
            paths.make_folder(one)
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
            target = (self._shared if name == LOGIN else config) / name
            if target.is_dir() != source.is_dir():  # somebody has put another kind of thing there
                delete(target)
            found.append(Placed(source.resolve(), target, writable=name == LOGIN))
        return found

    def renewed(self, attempt: Attempt) -> bool:
        """Whether the login is another file than it was when an attempt was begun. Blocks."""
        with suppress(OSError, ValueError):
            return int((attempt.folder / _HAD).read_bytes()) != (self._user / LOGIN).stat().st_ino
        return False


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
        for login in (one.source for one in view.placed if one.target.name == LOGIN):
            paths.replace(attempt.folder / _HAD, str(login.stat().st_ino).encode())
        occupants.note(own, mark, None)
        started, first = inside.start(sandbox, view, argv, environment, files)
        if first is None:
            return started, started.pid
        occupants.note(own, mark, (first, processes.stat(first)[1]))
        return started, first

    return start
