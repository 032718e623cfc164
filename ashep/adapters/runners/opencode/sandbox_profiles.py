"""What servers see that are kept apart: those of places, where work is made, and the one for all that judge it."""

import json
import os
import re
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import get_args

import anyio.to_thread

from ashep.adapters.runners.foreign_json import as_object
from ashep.adapters.runners.opencode.jsonc import read_jsonc
from ashep.adapters.sandboxes.bubblewrap import BindMount, Bubblewrap
from ashep.adapters.sandboxes.logins import Logins
from ashep.adapters.sandboxes.profiles import SandboxProfile, SandboxProfiles
from ashep.adapters.system.folders import delete
from ashep.core.policy.agents import INSTRUCTIONS, Sandbox
from ashep.errors import AshepError, RunnerUnavailable, ServerNotStarted
from ashep.journal import durable_io

PLACE = "place"
"""In the folder of a place's server: a link to the place."""

_WISH = "sandbox"

_CONFIG = ("opencode.jsonc", "opencode.json")
_FOLDER = ".opencode"
_MACHINES = Path("/etc/opencode")
_JSON = (".json", ".jsonc")
_CACHED = ("bin", "node_modules", "packages")


class Profiles:
    """Makes the profiles of one project's servers."""

    def __init__(
        self,
        surroundings: SandboxProfiles,
        ground: Path,
        environ: Mapping[str, str],
        base: Callable[[Sequence[str]], Awaitable[Mapping[str, bytes]]],
        logins: Logins,
    ) -> None:
        """`ground`: the folder of what is committed, for who judges. `base` gives the files of the base branch that
        have these names, or lie in a folder that has. `logins`: the user's.
        """
        self._surroundings, self._ground, self._environ, self._base = surroundings, ground, environ, base
        self.logins = logins

    async def maker(self, folder: Path, place: Path, *, session: bool = False) -> SandboxProfile:
        """Give the profile of a place's server, which has `folder`: that of all, or (`session`) of who works there."""
        wished = sandbox_named(await anyio.to_thread.run_sync(wish_of, folder)) if session else None
        given = await self._surroundings.of_place(place, wished)
        await anyio.to_thread.run_sync(_link_place, folder, place)
        how = json.dumps(["maker", given.agents.model_dump(mode="json"), str(place)])
        if given.sandbox is not None:
            await self.logins.keep()
        return await anyio.to_thread.run_sync(
            self._profile, folder, place, given.sandbox, how, given.writable, given.readable, given.environment
        )

    async def judge(self, folder: Path) -> SandboxProfile:
        """Give the profile of the server of those who judge: what is committed, and the base's configuration."""
        try:
            files = dict(await self._base((*_CONFIG, *INSTRUCTIONS, _FOLDER)))
            if included := _in_repository(files):
                files |= await self._base(included)
        except AshepError as error:
            raise RunnerUnavailable(f"the base branch's configuration cannot be read: {error}") from error
        name = sha256(repr(sorted(files.items())).encode()).hexdigest()[:16]
        base, ground = folder / "base" / name, self._ground
        await anyio.to_thread.run_sync(_write_base, base, files)
        instructions = [base / one for one in INSTRUCTIONS if one in files]
        environment = {"OPENCODE_DISABLE_PROJECT_CONFIG": "1", "OPENCODE_DISABLE_EXTERNAL_SKILLS": "1"}
        configs = [base / one for one in _CONFIG if one in files]
        if configs and "OPENCODE_CONFIG" not in self._environ:
            environment["OPENCODE_CONFIG"] = str(configs[0])
        if "OPENCODE_CONFIG_DIR" not in self._environ and (base / _FOLDER).is_dir():
            environment["OPENCODE_CONFIG_DIR"] = str(base / _FOLDER)
        content = self._environ.get("OPENCODE_CONFIG_CONTENT", "")
        servers = await anyio.to_thread.run_sync(_moved, {**self._environ, **environment}, base, content)
        extra = {"lsp": False, "formatter": False, "instructions": [*map(str, instructions[:1])], "mcp": servers}
        environment["OPENCODE_CONFIG_CONTENT"] = _merged(content, extra)
        await anyio.to_thread.run_sync(lambda: ground.mkdir(parents=True, exist_ok=True))
        wished = self._surroundings.agents.sandbox
        how = json.dumps(["judge", wished, name])
        # OpenCode writes into each folder of settings, too
        if (sandbox := await self._surroundings.sandbox(wished)) is not None:
            await self.logins.keep()
        return await anyio.to_thread.run_sync(
            self._profile, folder, ground, sandbox, how, [base], [ground], environment
        )

    def _profile(
        self,
        folder: Path,
        directory: Path,
        sandbox: Bubblewrap | None,
        how: str,
        writable: Sequence[Path],
        readable: Sequence[Path],
        environment: Mapping[str, str],
    ) -> SandboxProfile:
        how = sha256(f"{how} {self._surroundings.agents.plugins} copy".encode()).hexdigest()[:16]
        if sandbox is None:
            profile = self._surroundings.open(directory, environment)
            return replace(profile, how=f"{profile.how} {how}")
        home = Path(self._environ.get("HOME") or Path.home())
        config = Path(self._environ.get("XDG_CONFIG_HOME") or home / ".config", "opencode")
        cache = Path(self._environ.get("XDG_CACHE_HOME") or home / ".cache", "opencode")
        data_folders, models = [folder / one for one in ("data", "state")], cache / "models.json"
        for one in data_folders:
            one.mkdir(parents=True, exist_ok=True, mode=0o700)
        given = {"OPENCODE_DISABLE_LSP_DOWNLOAD": "1", **environment}
        if not self._surroundings.agents.plugins:
            given["OPENCODE_PURE"] = "1"
        if models.exists():
            given |= {"OPENCODE_MODELS_PATH": str(models), "OPENCODE_DISABLE_MODELS_FETCH": "1"}
        # OpenCode writes into its folder of settings: the user's are put into one of the server's own, one by one
        settings, placed = _settings(config, directory, home, self._environ), list[BindMount]()
        if not self._surroundings.agents.plugins:
            settings, placed = _without_plugins(settings, folder / "settings")
        profile = self._surroundings.closed(
            sandbox, folder, directory, given,
            writable=(*data_folders, *writable), readable=readable,
            kept=(self.logins.folder, *settings, *(cache / one for one in (*_CACHED, models.name))),
            placed=placed,
            programs=(cache / "bin",),
        )  # fmt: skip
        return replace(profile, how=f"{profile.how} {how}", login=self.logins.copy)


def wish_of(folder: Path) -> str | None:
    """Name the sandbox of this server's last session, empty where it is that of all; None: it had none. Blocks."""
    with suppress(FileNotFoundError):
        return (folder / _WISH).read_text(errors="replace")
    return None


def wish(folder: Path, wished: Sandbox | None) -> None:
    """Have the server of this folder be one with this sandbox, when it is looked at next. Blocks."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    durable_io.replace(folder / _WISH, (wished or "").encode())


def sandbox_named(word: str | None) -> Sandbox | None:
    """Give the sandbox of this name; None: it is none's."""
    return next((arg for arg in get_args(Sandbox) if arg == word), None)


def _link_place(folder: Path, place: Path) -> None:
    """Let the folder of a server say whose it is."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with suppress(FileExistsError):
        (folder / PLACE).symlink_to(place)


_MOST, _LONGEST = 100, 1000  # files that settings of a repository include, and characters of the path of one
_INCLUDED = re.compile(r"\{file:([^}]+)\}")
"""How a text stands in OpenCode's settings for what is in a file; where there is none it does not start."""
_OF_PATHS = re.compile(r"(?!/|~|\.\.)[^\0]+")
"""A path that may lie in the repository."""


def _settings(config: Path, directory: Path, home: Path, environ: Mapping[str, str]) -> list[Path]:
    """Give the user's own settings of OpenCode, and the files that they include."""
    named = [Path(environ[name]) for name in ("OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR") if environ.get(name)]
    files = [one for top in (config, *named) for one in (sorted(top.iterdir()) if top.is_dir() else [top])]
    texts = [(environ.get("OPENCODE_CONFIG_CONTENT", ""), directory)]
    texts += [(one.read_text(errors="replace"), one.parent) for one in files if one.suffix in _JSON and one.is_file()]
    included = [(one, folder) for text, folder in texts for one in _INCLUDED.findall(text)]
    named_files = [home / one[2:] if one.startswith("~/") else folder / one for one, folder in included]
    # what stands in the braces may be no path at all, and too long for one: `Path.is_file` raises there
    return [*files, *(path for path in named_files if os.path.isfile(path))]


def _without_plugins(settings: Sequence[Path], folder: Path) -> tuple[list[Path], list[BindMount]]:
    """Split settings into those that name no plugin and copies, in `folder`, of the others without their plugins:
    OpenCode 1.18.33 runs these in a place that has settings of its own, whatever OPENCODE_PURE says.
    """
    plain, copies = list[Path](), list[BindMount]()
    durable_io.make_folder(folder)
    for path in settings:
        content = dict[str, object]()
        if path.suffix in _JSON and path.is_file():
            with suppress(ValueError, RecursionError):  # OpenCode refuses it itself, and names the file
                content |= read_jsonc(path.read_text(errors="replace"))
        if "plugin" in content:
            copy = folder / f"{len(copies)}.json"
            durable_io.replace(copy, json.dumps({**content, "plugin": []}).encode())
            copies.append(BindMount(copy, path))
        elif path.name not in ("plugin", "plugins"):
            plain.append(path)
    return plain, copies


def _in_repository(files: Mapping[str, bytes]) -> list[str]:
    """Name the files that settings of a repository include, as far as they lie in it."""
    texts = [(name, files[name].decode(errors="replace")) for name in files if name.endswith(_JSON)]
    paths = (
        os.path.normpath(os.path.join(os.path.dirname(name), one))
        for name, text in texts
        for one in _INCLUDED.findall(text)
    )
    inner = {path for path in paths if _OF_PATHS.fullmatch(path) and len(path) <= _LONGEST}
    return sorted(inner - files.keys())[:_MOST]


def _merged(content: str, extra: Mapping[str, object]) -> str:
    """Add to what the user's environment says to OpenCode. Raises `ServerNotStarted` where that is none."""
    try:
        settings = json.loads(content or "{}")
        servers = as_object(settings.get("mcp"))
        servers |= {name: as_object(servers.get(name)) | more for name, more in as_object(extra["mcp"]).items()}
        return json.dumps({**settings, **extra, "mcp": servers})
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        reason = f"OPENCODE_CONFIG_CONTENT is not JSON with an object, and judges need more in it: {error}"
        raise ServerNotStarted(reason) from error


def _moved(environ: Mapping[str, str], base: Path, content: str) -> dict[str, object]:
    """Say of each MCP server that judges' settings name, and that is a program, that it starts in `base`: no name that
    is looked up there, `tools/mcp.py` or a module or what `npx` finds, is a candidate's. Blocks.
    """
    home = Path(environ.get("HOME") or Path.home())
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config", "opencode")
    last = [Path(environ[one]) for one in ("OPENCODE_CONFIG",) if environ.get(one)]
    folders = [home / _FOLDER, *(Path(environ[one]) for one in ("OPENCODE_CONFIG_DIR",) if environ.get(one)), _MACHINES]
    files = [config / "config.json", *(config / one for one in _CONFIG[::-1]), *last]
    files += [folder / one for folder in folders for one in _CONFIG[::-1]]
    servers = dict[str, dict[str, object]]()
    for name, text in [*((str(one), one.read_text(errors="replace")) for one in files if one.is_file()), ("", content)]:
        try:
            named = as_object(read_jsonc(text).get("mcp") if "mcp" in text else None)
        except (ValueError, RecursionError) as error:
            reason = f"{name or 'OPENCODE_CONFIG_CONTENT'} may name programs, and is not JSON with an object: {error}"
            raise ServerNotStarted(reason) from error
        for server, one in named.items():
            servers[server] = {**servers.get(server, {}), **as_object(one)}
    moved = dict[str, object]()
    for server, one in servers.items():
        if one.get("type") == "local":
            command = one.get("command")
            is_looked_up = "{file:" in json.dumps(command)  # as it stands here, below the folder that is judged
            moved[server] = (
                {"enabled": False} if is_looked_up else {"type": "local", "command": command, "cwd": str(base)}
            )
    return moved


def _write_base(base: Path, files: Mapping[str, bytes]) -> None:
    """Write the base's configuration down, once: its folder is named by what is in it."""
    if base.is_dir():
        return
    base.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = Path(tempfile.mkdtemp(dir=base.parent))
    for name, content in files.items():
        (draft / name).parent.mkdir(parents=True, exist_ok=True)
        (draft / name).write_bytes(content)
    for old in base.parent.iterdir():
        if old not in (draft, base):
            delete(old)
    draft.rename(base)
