"""What is around agents that are kept apart: in the place where one makes something, and where one judges it.

Each kind of agent adds what it needs itself, its settings and its login.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from ashep.adapters.sandboxes.bubblewrap import PATH, BindMount, Bubblewrap, View, obeyed, try_out
from ashep.adapters.sandboxes.request_files import ANSWERS, ASKS, STUB
from ashep.core.policy.agents import Sandbox
from ashep.core.policy.settings import AgentsSettings
from ashep.errors import ServerNotStarted
from ashep.journal import durable_io

_COPIES = "copies"
_OURS = (ASKS, "home", "tmp")
_HIDDEN = (".git", ".beads", ".agent-shepherd")
"""What nobody kept apart sees of the project, whatever else of it is there."""

TRACKERS = ("BD_", "BEADS_")
_ELSEWHERE = (*TRACKERS, "XDG_CACHE_", "XDG_RUNTIME_", "XDG_SESSION_")
"""How variables begin that name what is not there."""

STUBS, ISSUE = "stubs", "issue.txt"
"""In the folder of a place: programs that stand for those that are not there, and what is known of the issue."""

_STUB = """#!/bin/sh
# Issues are Agent Shepherd's to change; this one is as it was when the session was begun.
issue="$(dirname "$0")/issue.txt"
[ "$1" = show ] && [ -f "$issue" ] && exec cat "$issue"
[ "$1" = hooks ] && [ "$2" = run ] && exit 0  # bd's own git hooks call this: any other code refuses every commit
echo "bd is not in here: your issue stands in your prompt, and what you finish is checked when you say so" >&2
exit 1
"""


@dataclass(frozen=True, slots=True)
class SandboxProfile:
    """How a program is started that is to see less than we do."""

    how: str
    """What tells it from others; no secret."""
    view: View
    """What it sees in its sandbox."""
    sandbox: Bubblewrap | None
    """None: there is none, and it sees what we see."""
    environment: Mapping[str, str]
    """What stands in its environment next to what passes."""
    without: frozenset[str] = frozenset()
    """Variables that do not pass."""
    login: Path | None = None
    """What stands for the file of the user's logins; None: that itself."""

    def make_environment(self, passed: Mapping[str, str]) -> dict[str, str]:
        """The environment of the program, of what passes."""
        return {name: value for name, value in passed.items() if name not in self.without} | dict(self.environment)


@dataclass(frozen=True, slots=True)
class WriterAccess:
    """What whoever makes something in a place may have next to it."""

    agents: AgentsSettings
    sandbox: Bubblewrap | None
    writable: tuple[Path, ...]
    readable: tuple[Path, ...]
    environment: Mapping[str, str]


class SandboxProfiles:
    """Those of one project's agents."""

    def __init__(
        self, project: Path, places: Path, lent: Sequence[Path], agents: AgentsSettings, environ: Mapping[str, str]
    ) -> None:
        """`places`: their folder; `lent`: what places need of what is next to them."""
        self._project, self._places, self._lent, self.agents, self._environ = project, places, lent, agents, environ
        self._sandbox: Bubblewrap | None = None
        """What was found once: what cannot start a sandbox for a moment has nevertheless one."""

    async def sandbox(self, wished: Sandbox) -> Bubblewrap | None:
        """Give bubblewrap; None: agents run without. Raises `ServerNotStarted` where none may."""
        if wished == "none" or self._sandbox is not None:
            return self._sandbox if wished != "none" else None
        found = await try_out()
        if isinstance(found, Bubblewrap):
            self._sandbox = found
            return found
        if wished == "bwrap":
            whose = "agents.sandbox" if self.agents.sandbox == wished else "sandbox"
            raise ServerNotStarted(f"`{whose}` is bwrap, and {found}")
        return None

    async def of_place(self, place: Path, wished: Sandbox | None = None) -> WriterAccess:
        """Say what is given in a place, to all or to who wishes another sandbox. Raises `ServerNotStarted`."""
        agents, environment = self.agents, dict[str, str]()
        if wished is not None:
            agents = agents.model_copy(update={"sandbox": wished})
        opened = [_opening(one, self._environ, environment) for one in agents.openings]
        write, read = (_homely(named) for named in (agents.paths.write, agents.paths.read))
        if why := await anyio.to_thread.run_sync(_misled, self._project, write, read):
            raise ServerNotStarted(why)
        sandbox = await self.sandbox(agents.sandbox)
        return WriterAccess(agents, sandbox, (place, *write, *opened), tuple(read), environment)

    def open(self, at: Path, environment: Mapping[str, str]) -> SandboxProfile:
        """Give the profile of who runs without a sandbox."""
        return SandboxProfile("open", View(at, ()), None, environment, frozenset(self._elsewhere(TRACKERS)))

    def closed(
        self,
        sandbox: Bubblewrap,
        folder: Path,
        at: Path,
        environment: Mapping[str, str],
        *,
        writable: Sequence[Path],
        readable: Sequence[Path],
        kept: Sequence[Path] = (),
        placed: Sequence[BindMount] = (),
        programs: Sequence[Path] = (),
    ) -> SandboxProfile:
        """Give the profile of who runs in a sandbox, and make what it has of its own in `folder`. Blocks.

        `writable`: what of that is there, and of logins and settings of the user's a copy, of which nothing comes back;
        the rest: see `View`. `programs`: where more of them are looked for.
        """
        own, stubs = [folder / one for one in _OURS], folder / STUBS
        for one in own:
            one.mkdir(parents=True, exist_ok=True, mode=0o700)
        (stubs / ANSWERS).mkdir(parents=True, exist_ok=True)
        for name, stub in (("ashep", STUB), ("bd", _STUB)):
            durable_io.replace(stubs / name, stub.encode(), 0o755)  # a shell may be in the midst of it
        path = os.pathsep.join((str(stubs), self._environ.get("PATH", PATH), *map(str, programs)))
        above = self._project.resolve().parents
        copied = [one for one in writable if one.is_file() and obeyed(one)]
        view = View(
            at=at,
            writable=(folder / ASKS, *(one for one in writable if one.exists() and one not in copied)),
            readable=tuple(readable),
            hidden=(*(self._project / one for one in _HIDDEN), *(one / ".git" for one in above), self._places),
            kept=(*kept, *self._lent, stubs),
            placed=(*placed, *(_copy(one, folder / _COPIES / str(n)) for n, one in enumerate(copied))),
            tmp=folder / "tmp",
            home=folder / "home",
            path=path,
            network=True,
            lasting=True,
        )
        given = {"PATH": path, "TMPDIR": "/tmp", **environment}
        return SandboxProfile(
            "sandboxed", view, sandbox, given, frozenset({"TMP", "TEMP", *self._elsewhere(_ELSEWHERE)})
        )

    def _elsewhere(self, families: tuple[str, ...]) -> set[str]:
        return {name for name in self._environ if name.startswith(families)}


def tell(folder: Path, snapshot: str) -> None:
    """Put an issue's words where the `bd` of its place finds them. Blocks. `folder`: that of the place's own things."""
    file = folder / STUBS / ISSUE
    file.parent.mkdir(parents=True, exist_ok=True)
    durable_io.replace(file, snapshot.encode(errors="replace"))


def _misled(project: Path, write: Sequence[Path], read: Sequence[Path]) -> str:
    """Say why agents cannot be given these paths; empty: they can."""
    for path in write:
        if project.resolve().is_relative_to(path.resolve()):
            return f"`agents.paths.write` names {path}, which holds this project: an agent could change what judges it"
        if path.is_dir() and obeyed(path):
            why = "programs of yours would take logins and orders of an agent from there; name the login's file alone"
            return f"`agents.paths.write` names the folder {path}: {why}"
        if inner := next((one for one in (*write, *read) if one != path and one.is_relative_to(path)), None):
            return f"`agents.paths` names {inner}, and {path} to write: an agent there could make it lead elsewhere"
    return ""


def _copy(file: Path, to: Path) -> BindMount:
    """Put a fresh copy of a file where an agent finds it, which may change that."""
    durable_io.make_folder(to.parent)
    durable_io.replace(to, file.read_bytes())
    return BindMount(to, file, writable=True)


def _homely(named: Sequence[str]) -> list[Path]:
    return [Path(path).expanduser() for path in named]


def _opening(name: str, environ: Mapping[str, str], environment: dict[str, str]) -> Path:
    """Give the socket of an opening, and say in the environment where it is."""
    runtime = Path(environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}")
    match name:
        case "docker":
            variable, where = "DOCKER_HOST", Path("/var/run/docker.sock")
        case "podman":
            variable, where = "CONTAINER_HOST", runtime / "podman/podman.sock"
        case "ssh-agent":
            variable, where = "SSH_AUTH_SOCK", Path(environ.get("SSH_AUTH_SOCK", "/nowhere"))
        case _:
            variable, where = "", runtime / "gnupg/S.gpg-agent"
    if variable:
        environment[variable] = str(where) if name == "ssh-agent" else f"unix://{where}"
    return where
