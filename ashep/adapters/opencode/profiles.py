"""What servers see that are kept apart: those of places, where work is made, and the one for all that judge it."""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import get_args

import anyio.to_thread

from ashep.adapters.bubblewrap import PATH, Bubblewrap, View, try_out
from ashep.adapters.opencode.asks import ANSWERS, ASKS, STUB
from ashep.adapters.opencode.server import Profile
from ashep.core.policy.agents import INSTRUCTIONS, Sandbox
from ashep.core.policy.settings import AgentsSettings
from ashep.errors import AshepError, RunnerUnavailable, ServerNotStarted
from ashep.journal import paths

PLACE = "place"
"""In the folder of a place's server: a link to the place."""

_WISH = "sandbox"

_OURS = (ASKS, "data", "home", "state", "tmp")
_CONFIG = ("opencode.jsonc", "opencode.json")
_FOLDER = ".opencode"
_JSON = (".json", ".jsonc")
_HIDDEN = (".git", ".beads", ".agent-shepherd")
"""What no server kept apart sees of the project, whatever else of it is there."""
_CACHED = ("bin", "node_modules", "packages")
_TRACKERS = ("BD_", "BEADS_")
_ELSEWHERE = (*_TRACKERS, "XDG_CACHE_", "XDG_RUNTIME_", "XDG_SESSION_")
"""How variables begin that name what is not there."""

STUBS, ISSUE = "stubs", "issue.txt"
"""In the folder of a server: programs that stand for those that are not there, and what is known of the issue."""

_STUB = """#!/bin/sh
# Issues are Agent Shepherd's to change; this one is as it was when the session was begun.
issue="$(dirname "$0")/issue.txt"
[ "$1" = show ] && [ -f "$issue" ] && exec cat "$issue"
echo "bd is not in here: your issue stands in your prompt, and what you finish is checked when you say so" >&2
exit 1
"""


class Profiles:
    """Makes the profiles of one project's servers."""

    def __init__(
        self,
        project: Path,
        places: Path,
        ground: Path,
        lent: Sequence[Path],
        agents: AgentsSettings,
        environ: Mapping[str, str],
        base: Callable[[Sequence[str]], Awaitable[Mapping[str, bytes]]],
    ) -> None:
        """`places`: their folder; `ground`: that of what is committed, for who judges; `lent`: what places need of what
        is beside them. `base` gives the files of the base branch that have these names, or lie in a folder that has.
        """
        self._project, self._places, self._ground, self._lent = project, places, ground, lent
        self._agents, self._environ, self._base = agents, environ, base
        self._sandbox: Bubblewrap | None = None
        """What was found once: what cannot start a sandbox for a moment has none the less one."""

    async def sandbox(self, wished: Sandbox) -> Bubblewrap | None:
        """Give bubblewrap; None: agents run without. Raises `ServerNotStarted` where none may."""
        if wished == "none" or self._sandbox is not None:
            return self._sandbox if wished != "none" else None
        found = await try_out()
        if isinstance(found, Bubblewrap):
            self._sandbox = found
            return found
        if wished == "bwrap":
            whose = "agents.sandbox" if self._agents.sandbox == wished else "sandbox"
            raise ServerNotStarted(f"`{whose}` is bwrap, and {found}")
        return None

    async def maker(self, folder: Path, place: Path, *, session: bool = False) -> Profile:
        """Give the profile of the server of a place, which keeps its things in `folder`: as all of them are, or as the
        session wants it that works there.
        """
        agents, environment = self._agents, dict[str, str]()
        if session and (wished := sandbox_named(await anyio.to_thread.run_sync(wish_of, folder))) is not None:
            agents = agents.model_copy(update={"sandbox": wished})
        opened = [path for one in agents.openings for path in _opening(one, self._environ, environment)]
        write, read = (_homely(named) for named in (agents.paths.write, agents.paths.read))
        how = json.dumps(["maker", agents.model_dump(mode="json"), str(place)])
        if why := await anyio.to_thread.run_sync(_misled, self._project, write, read):
            raise ServerNotStarted(why)
        await anyio.to_thread.run_sync(_named, folder, place)
        sandbox = await self.sandbox(agents.sandbox)
        writable = [place, *write, *opened]
        return await anyio.to_thread.run_sync(self._profile, folder, place, sandbox, how, writable, read, environment)

    async def judge(self, folder: Path) -> Profile:
        """Give the profile of the server of those who judge: what is committed, and the base's configuration."""
        try:
            held = dict(await self._base((*_CONFIG, *INSTRUCTIONS, _FOLDER)))
            if included := _in_repository(held):
                held |= await self._base(included)
        except AshepError as error:
            raise RunnerUnavailable(f"the base branch's configuration cannot be read: {error}") from error
        name = sha256(repr(sorted(held.items())).encode()).hexdigest()[:16]
        base, ground = folder / "base" / name, self._ground
        await anyio.to_thread.run_sync(_written, base, held)
        found = [base / one for one in INSTRUCTIONS if one in held]
        extra = {"lsp": False, "instructions": [str(found[0])] if found else []}
        environment = {
            "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
            "OPENCODE_DISABLE_EXTERNAL_SKILLS": "1",
            "OPENCODE_CONFIG_CONTENT": _merged(self._environ.get("OPENCODE_CONFIG_CONTENT", ""), extra),
        }
        named = [base / one for one in _CONFIG if one in held]
        if named and "OPENCODE_CONFIG" not in self._environ:
            environment["OPENCODE_CONFIG"] = str(named[0])
        if "OPENCODE_CONFIG_DIR" not in self._environ and (base / _FOLDER).is_dir():
            environment["OPENCODE_CONFIG_DIR"] = str(base / _FOLDER)
        await anyio.to_thread.run_sync(lambda: ground.mkdir(parents=True, exist_ok=True))
        how = json.dumps(["judge", self._agents.sandbox, name])
        # OpenCode writes into each folder of settings, too
        sandbox = await self.sandbox(self._agents.sandbox)
        return await anyio.to_thread.run_sync(
            self._profile, folder, ground, sandbox, how, [base], [ground], environment
        )

    def _profile(
        self,
        folder: Path,
        at: Path,
        sandbox: Bubblewrap | None,
        how: str,
        writable: Sequence[Path],
        readable: Sequence[Path],
        environment: dict[str, str],
    ) -> Profile:
        how = f"{'sandboxed' if sandbox else 'open'} {sha256(how.encode()).hexdigest()[:16]}"
        if sandbox is None:
            return Profile(how, View(at, ()), None, environment, frozenset(self._elsewhere(_TRACKERS)))
        home = Path(self._environ.get("HOME") or Path.home())
        config = Path(self._environ.get("XDG_CONFIG_HOME") or home / ".config", "opencode")
        data = Path(self._environ.get("XDG_DATA_HOME") or home / ".local/share", "opencode")
        cache = Path(self._environ.get("XDG_CACHE_HOME") or home / ".cache", "opencode")
        own, stubs = [folder / one for one in _OURS], folder / STUBS
        for one in own:
            one.mkdir(parents=True, exist_ok=True, mode=0o700)
        (stubs / ANSWERS).mkdir(parents=True, exist_ok=True)
        for name, stub in (("ashep", STUB), ("bd", _STUB)):
            paths.replace(stubs / name, stub.encode(), 0o755)  # a shell may be in the midst of it
        path = os.pathsep.join((str(stubs), self._environ.get("PATH", PATH), str(cache / "bin")))
        models = cache / "models.json"
        given = {"PATH": path, "TMPDIR": "/tmp", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", **environment}
        if models.exists():
            given |= {"OPENCODE_MODELS_PATH": str(models), "OPENCODE_DISABLE_MODELS_FETCH": "1"}
        # OpenCode writes into its folder of settings: the user's are put into one of the server's own, one by one
        settings = _settings(config, at, home, self._environ)
        above = self._project.resolve().parents
        view = View(
            at=at,
            writable=(
                *(one for one in own if one.name in (ASKS, "data", "state")),
                *(one for one in (data / "auth.json", *writable) if one.exists()),
            ),
            readable=tuple(readable),
            hidden=(*(self._project / one for one in _HIDDEN), *(one / ".git" for one in above), self._places),
            kept=(*settings, *self._lent, *(cache / one for one in (*_CACHED, models.name)), stubs),
            tmp=folder / "tmp",
            home=folder / "home",
            path=path,
            network=True,
            lasting=True,
        )
        return Profile(how, view, sandbox, given, frozenset({"TMP", "TEMP", *self._elsewhere(_ELSEWHERE)}))

    def _elsewhere(self, families: tuple[str, ...]) -> set[str]:
        return {name for name in self._environ if name.startswith(families)}


def wish_of(folder: Path) -> str | None:
    """Name the sandbox of the session that worked last on the server of this folder, empty where it is that of all;
    None: none has. Blocks.
    """
    with suppress(FileNotFoundError):
        return (folder / _WISH).read_text(errors="replace")
    return None


def wish(folder: Path, wished: Sandbox | None) -> None:
    """Have the server of this folder be one with this sandbox, when it is looked at next. Blocks."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    paths.replace(folder / _WISH, (wished or "").encode())


def sandbox_named(word: str | None) -> Sandbox | None:
    """Give the sandbox of this name; None: it is none's."""
    return next((one for one in get_args(Sandbox) if one == word), None)


def _misled(project: Path, write: Sequence[Path], read: Sequence[Path]) -> str:
    """Say why agents cannot be given these paths; empty: they can."""
    for path in write:
        if project.resolve().is_relative_to(path.resolve()):
            return f"`agents.paths.write` names {path}, which holds this project: an agent could change what judges it"
        if inner := next((one for one in (*write, *read) if one != path and one.is_relative_to(path)), None):
            return f"`agents.paths` names {inner}, and {path} to write: an agent there could make it lead elsewhere"
    return ""


def _named(folder: Path, place: Path) -> None:
    """Let the folder of a server say whose it is."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with suppress(FileExistsError):
        (folder / PLACE).symlink_to(place)


_MOST, _LONGEST = 100, 1000  # files that settings of a repository include, and characters of the path of one
_INCLUDED = re.compile(r"\{file:([^}]+)\}")
"""How a text stands in OpenCode's settings for what is in a file; where there is none it does not start."""


def _settings(config: Path, at: Path, home: Path, environ: Mapping[str, str]) -> list[Path]:
    """Give the user's own settings of OpenCode, and the files that they include."""
    named = [Path(environ[name]) for name in ("OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR") if environ.get(name)]
    files = [one for top in (config, *named) for one in (sorted(top.iterdir()) if top.is_dir() else [top])]
    said = [(environ.get("OPENCODE_CONFIG_CONTENT", ""), at)]
    said += [(one.read_text(errors="replace"), one.parent) for one in files if one.suffix in _JSON and one.is_file()]
    included = [(one, folder) for text, folder in said for one in _INCLUDED.findall(text)]
    named_files = [home / one[2:] if one.startswith("~/") else folder / one for one, folder in included]
    return [*files, *(path for path in named_files if path.is_file())]


def _in_repository(held: Mapping[str, bytes]) -> list[str]:
    """Name the files that settings of a repository include, as far as they lie in it."""
    said = [(name, held[name].decode(errors="replace")) for name in held if name.endswith(_JSON)]
    found = (
        os.path.normpath(os.path.join(os.path.dirname(name), one))
        for name, text in said
        for one in _INCLUDED.findall(text)
    )
    inner = {path for path in found if not path.startswith(("/", "~", "..")) and len(path) <= _LONGEST}
    return sorted(inner - held.keys())[:_MOST]


def _homely(named: Sequence[str]) -> list[Path]:
    return [Path(path).expanduser() for path in named]


def _opening(name: str, environ: Mapping[str, str], environment: dict[str, str]) -> Collection[Path]:
    """Give the sockets of an opening, and say in the environment where they are."""
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
    return (where,)


def _merged(content: str, extra: Mapping[str, object]) -> str:
    """Add to what the user's environment says to OpenCode. Raises `ServerNotStarted` where that is not JSON."""
    try:
        said = json.loads(content or "{}")
    except ValueError as error:
        raise ServerNotStarted(f"OPENCODE_CONFIG_CONTENT is not JSON, and judges need more in it: {error}") from error
    return json.dumps({**said, **extra})


def _written(base: Path, held: Mapping[str, bytes]) -> None:
    """Write the base's configuration down, once: its folder is named by what is in it."""
    if base.is_dir():
        return
    base.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = Path(tempfile.mkdtemp(dir=base.parent))
    for name, content in held.items():
        (draft / name).parent.mkdir(parents=True, exist_ok=True)
        (draft / name).write_bytes(content)
    for old in base.parent.iterdir():
        if old not in (draft, base):
            shutil.rmtree(old, ignore_errors=True)
    draft.rename(base)
