"""What a process of Claude Code sees that is kept apart, and how it is started there.

It has a folder of Claude Code's own instead of the user's: that of its place, or, where it judges, of its session. In
there it may write; what the user has set up, agents and rules lies over it and cannot be changed, nor added to, for
whoever works there next would be led by it. An attempt's folder it can read, but for what it asks: what opens the gate,
the rules, and the answers are out of reach.

The login is a copy without what renews it, in a folder that all who have one in a sandbox can read, and none can
change: ashep renews it outside (`ashep.adapters.sandboxes.logins`), and a turn that goes on takes the new one.
"""

from dataclasses import replace
from pathlib import Path

import anyio.to_thread

from ashep.adapters.runners.claude.session_store import SessionOptions
from ashep.adapters.sandboxes.bubblewrap import BindMount
from ashep.adapters.sandboxes.logins import Logins
from ashep.adapters.sandboxes.profiles import SandboxProfile
from ashep.adapters.sandboxes.session_sandboxes import SessionSandboxes
from ashep.adapters.system.folders import delete
from ashep.core.policy.agents import Sandbox
from ashep.errors import RunnerUnavailable
from ashep.journal import durable_io
from ashep.ports.runner import SessionRequest

FOLDER = "claude"
"""In the folder of a place, or of a session: Claude Code's own."""

LOGIN_AT = "CLAUDE_SECURESTORAGE_CONFIG_DIR"
"""The variable that names the folder of the login."""

_FILES = {"settings.json": b"{}", "CLAUDE.md": b""}
_FOLDERS = ("agents", "commands", "hooks", "output-styles", "plugins", "rules", "skills", "workflows")
_VOID = "void"
"""In the same: what stands for what the user has not."""


class Apart:
    """Who is kept apart, of one project."""

    def __init__(self, quarters: SessionSandboxes, logins: Logins) -> None:
        """`logins`: of the user's own folder of Claude Code."""
        self._quarters, self._user, self.logins = quarters, logins.file.parent, logins

    async def config(self, request: SessionRequest, folder: Path) -> str:
        """Give the folder of Claude Code's own of a session that is opened, which has `folder`; empty: it is the
        user's, and no sandbox is around it. Raises `RunnerRefused`, `ServerNotStarted`.
        """
        things = await self._quarters.folder(request, folder)
        return str(things / FOLDER) if things is not None else ""

    async def profile(self, session: SessionOptions) -> SandboxProfile:
        """Say how a process of a session is started that is kept apart. Raises `RunnerUnavailable`."""
        return await self._profile(Path(session.config), session.directory, session.sandbox)

    async def of_place(self, place: Path, folder: Path) -> SandboxProfile:
        """Say how a person starts it in a place whose things are in `folder`. Raises `RunnerUnavailable`."""
        found = await self._profile(folder / FOLDER, str(place), None)
        return replace(found, environment={**found.environment, "CLAUDE_CONFIG_DIR": str(folder / FOLDER)})

    async def _profile(self, config: Path, directory: str, wished: Sandbox | None) -> SandboxProfile:
        try:
            await self.logins.keep()
        except OSError as error:
            raise RunnerUnavailable(f"{error.filename or self.logins.folder}: {error.strerror or error}") from error
        placed, variables = await anyio.to_thread.run_sync(self._placed, config), dict[str, str]()
        if await anyio.to_thread.run_sync(self.logins.copy.exists):
            placed.append(BindMount(self.logins.folder, self.logins.folder))
            variables[LOGIN_AT] = str(self.logins.folder)
        profile = await self._quarters.profile(config.parent, directory, wished, writable=[config], placed=placed)
        return replace(profile, environment={**profile.environment, **variables})

    def _placed(self, config: Path) -> list[BindMount]:
        """Make Claude Code's own folder, and give what lies over it: the user's, or nothing."""
        void = config.parent / _VOID
        for one in (config, void):
            durable_io.make_folder(one)
        mounts = list[BindMount]()
        for name in (*_FILES, *_FOLDERS):
            source = self._user / name
            if not (source.is_dir() if name in _FOLDERS else source.is_file()):
                source = void / name
                if name in _FOLDERS:
                    durable_io.make_folder(source)
                elif not source.exists():
                    durable_io.replace(source, _FILES[name])
            target = config / name
            if target.is_dir() != source.is_dir():  # somebody has put another kind of thing there
                delete(target)
            mounts.append(BindMount(source.resolve(), target))
        return mounts
