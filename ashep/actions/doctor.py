"""The checks of `ashep install`: what is there, what is missing, and what to do about it. Nothing is changed."""

import os
import platform
import shutil
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import anyio
from anyio import to_thread

from ashep import __version__
from ashep.actions import doctor_git, doctor_runners
from ashep.actions.doctor_opencode import describe_files
from ashep.actions.doctor_security import CheckLine, Level, agents, people
from ashep.actions.runner_wait import Say, call_runner, silent
from ashep.actions.verify import verify_base
from ashep.adapters.beads import BeadsTracker
from ashep.adapters.git.user_work_tree import GitTree
from ashep.adapters.runners.opencode.client import probe
from ashep.adapters.runners.opencode.environment import left_out
from ashep.adapters.runners.opencode.schema import ListedAgent
from ashep.adapters.runners.opencode.server import folder_of, record_in
from ashep.adapters.system import filesystems, process_table, programs
from ashep.adapters.system.folders import walk
from ashep.adapters.verifier import probe as probe_sandbox
from ashep.config import ConfigErrors, check_files, load, read, settled
from ashep.config.sync_agents import ServerAgent, vanished
from ashep.core.facts.runs import Model
from ashep.core.policy.agents import Agents
from ashep.core.policy.base_types import Document
from ashep.core.policy.runner_kinds import CLAUDE, OPENCODE
from ashep.core.policy.settings import OpencodeSettings, Settings
from ashep.errors import AshepError, ConfigError, RunnerUnauthorized, TrackerMissing, UsageError
from ashep.factories import FOLDER, check_path, opencode_of, secret_variables, tracker_of
from ashep.ports.runner import Catalog

_MB = 1024 * 1024
_STORE_IS_LARGE = 100 * _MB
_DISK_IS_FULL = 100 * _MB
_DISK_IS_LOW = 1024 * _MB
_TRACKER = 30.0  # seconds for each call of bd
_ALL_OF_BD = programs.LONGEST
_PROBE = 5.0
_FILES = 200_000  # the most files that are counted for the store's size

_LOG_IN = "run `opencode auth login`, or give it the provider's key (`runners.opencode.environment` names others)"
_Kind = TypeVar("_Kind", bound=Document)


async def checks(
    project: Path, environ: Mapping[str, str], *, server: bool = False, say: Say = silent
) -> list[CheckLine]:
    """Check everything, in the order in which it is shown; no check takes longer than two minutes, but for programs and
    servers that are alive and slow.

    With `server` the agent server is asked for its models, and an agent that speaks ACP what it can do; and of each
    kind of call that a night makes to the repository one is tried. `say` gets why that takes long.
    """
    settings = await to_thread.run_sync(settings_of, project)
    lines = [CheckLine("ok", "ashep", f"ashep {__version__}, Python {platform.python_version()}")]
    lines += await to_thread.run_sync(configuration, project)
    found = dict[str, list[CheckLine]]()
    tried: dict[str, Callable[[], Awaitable[list[CheckLine]]]] = {
        "bd": lambda: (own_tracker if settings.tracker.own else tracker)(project, settings),
        "opencode": lambda: agent_server(settings, environ),
        "git": lambda: git(project, settings),
        "repository": lambda: doctor_git.repository(project, settings, ask=server),
        "trial": lambda: doctor_git.trial(project, settings, ask=server),
        "agents": lambda: agents(project, settings),
        "sandbox": lambda: sandbox(project, settings),
        "checks": lambda: verify_base(project, settings),
        "disk": lambda: to_thread.run_sync(disk, project),
    }
    used = await to_thread.run_sync(_used, project)
    if OPENCODE not in used:
        del tried["opencode"]
    others = sorted(used & settings.runners.others.keys())
    for name in others:
        tried[f"runner {name}"] = partial(doctor_runners.runner, project, settings, name, ask=server, say=say)

    async def keep(name: str) -> None:
        found[name] = await tried[name]()

    async with anyio.create_task_group() as group:
        for name in tried:
            group.start_soon(keep, name)
    of_server = found.get("opencode", [])
    if server and of_server and all(line.level != "error" for line in of_server):
        of_server += await providers(project, settings, say)
    if of_server:
        of_server += await to_thread.run_sync(opencode_notes, project, settings, environ)
        of_server.append(CheckLine("ok", "bun", "bun is not needed: OpenCode brings its own"))
    rest = [*found["git"], *found["repository"], *found["trial"], *found["agents"], *found["sandbox"], *found["checks"]]
    rest += [*people(settings), *found["disk"]]
    of_others = [line for name in others for line in found[f"runner {name}"]]
    lines += doctor_git.proxy(environ)
    return [*lines, *found["bd"], *of_server, *of_others, *rest]


def _used(project: Path) -> set[str]:
    """Name the runners that agents are of; where agents.yaml cannot be used, OpenCode."""
    registry = _written(Agents, project / FOLDER / "agents.yaml")
    return (
        {agent.runner.type for agent in registry.agents if not agent.is_human} if registry is not None else {OPENCODE}
    )


def settings_of(project: Path) -> Settings:
    """Read config.yaml by itself; the defaults where it cannot be used, which `configuration` says."""
    file = project / FOLDER / "config.yaml"
    return settled(_written(Settings, file) or Settings(), project)


def _written(kind: type[_Kind], file: Path) -> _Kind | None:
    """Read a file of the user's; None where it cannot be used."""
    try:
        return read(kind, file.read_text(encoding="utf-8"), file)
    except (ConfigErrors, OSError, UnicodeDecodeError):
        return None


# --- the checks ---------------------------------------------------------------------------------------------------


def configuration(project: Path) -> list[CheckLine]:
    """Look at the user's files."""
    folder = project / FOLDER
    if not folder.is_dir():
        return [CheckLine("error", "configuration", f"{project} has no folder {FOLDER}", "run `ashep init`")]
    findings = check_files(folder)
    lines = [CheckLine(finding.severity, "configuration", str(finding), "edit the file") for finding in findings]
    try:
        check_path(project)
    except UsageError as error:
        lines.append(CheckLine("error", "configuration", str(error)))
    if "%" in str(project):
        why = f"{project}: OpenCode and bd's own database take a `%` in a path for an escape; nothing runs there"
        lines.append(CheckLine("warning", "configuration", why, "move the project"))
    return lines or [CheckLine("ok", "configuration", f"{folder} holds no mistake")]


async def tracker(project: Path, settings: Settings) -> list[CheckLine]:
    """Look at bd: whether it is there and new enough, its database and the size of that."""
    name = settings.tracker.command[0]
    program = await to_thread.run_sync(programs.find, name)
    if program is None:
        remedy = f"install Beads {programs.BD_VERSION} or later, or run `make setup`"
        return [CheckLine("error", "bd", await to_thread.run_sync(programs.lack_of, name), remedy)]
    bd = BeadsTracker(project, settings.tracker.command, "ashep-install", _TRACKER)
    try:
        with anyio.fail_after(_ALL_OF_BD):
            info = await bd.check()
    except TrackerMissing as error:
        return [_unusable(project, program, str(error))]
    except (AshepError, TimeoutError) as error:
        why = str(error) or f"no answer in {_ALL_OF_BD:g} s"
        return [CheckLine("error", "bd", f"{program}: {why}", "run `bd doctor`, and see what `bd where` says")]
    untried = "" if info.version == info.tried else f"; ashep is tried with {info.tried}"
    lines = [
        CheckLine("ok", "bd", f"bd {info.version}: {program}{untried}"),
        CheckLine("ok", "database", f"{info.location}, prefix {info.prefix}"),
        await to_thread.run_sync(_store, Path(info.location)),
    ]
    if info.journal:
        return lines
    hint = "`bd config set events-journal true` tells ashep of changes sooner; it is your setting"
    said = "bd's events journal is off: changes show in the store's files, and at each look"
    return [*lines, CheckLine("ok", "events journal", said, hint)]


async def own_tracker(project: Path, settings: Settings) -> list[CheckLine]:
    """Look at a tracker of the user's own: whether its class can be used, and what it says of itself."""
    name = settings.tracker.type
    try:
        own = tracker_of(project, settings, "ashep-install")
        with anyio.fail_after(_ALL_OF_BD):
            info = await own.check()
    except ConfigError as error:
        return [CheckLine("error", "tracker", str(error), "docs/extending.md says what a tracker is")]
    except (AshepError, TimeoutError) as error:
        return [
            CheckLine("error", "tracker", f"{name}: {error or f'no answer in {_ALL_OF_BD:g} s'}", "see what it needs")
        ]
    return [CheckLine("ok", "tracker", f"{name} {info.version}: {info.location}, prefix {info.prefix}")]


async def sandbox(project: Path, settings: Settings) -> list[CheckLine]:
    """Look at what separates the programs of checks from the machine, and say what does not."""
    async with anyio.TemporaryDirectory(prefix="ashep-install-") as scratch:
        found = await probe_sandbox(settings.verification, [project / FOLDER / "state"], Path(scratch))
    isolated, rest = found.lines
    if not found.unusable:
        return [CheckLine("ok", "sandbox", isolated), CheckLine("ok", "sandbox", rest)]
    level: Level = "error" if found.withheld == "all" else "warning"
    remedy = "install bubblewrap (`apt install bubblewrap`), or set `verification.sandbox: none` knowing that"
    return [CheckLine(level, "sandbox", f"{isolated}; {rest}", remedy)]


def _unusable(project: Path, program: Path, why: str) -> CheckLine:
    if "too old" in why:
        return CheckLine("error", "bd", f"{program}: {why}", f"install bd {programs.BD_VERSION} or later")
    if "beads" in why:
        return CheckLine(
            "error", "database", f"{project} has no Beads database", "run `bd init`; ashep never does that"
        )
    return CheckLine("error", "bd", f"{program}: {why}", "see what `bd where` says")


def _store(folder: Path) -> CheckLine:
    size, complete = _size(folder)
    said = f"{'' if complete else 'more than '}{size / _MB:.0f} MB in {folder}"
    if size > _STORE_IS_LARGE:
        return CheckLine("warning", "store", f"{said}: every call of bd gets slower", "run `bd gc` when it suits you")
    return CheckLine("ok", "store", said)


def _size(folder: Path) -> tuple[int, bool]:
    """Add up a folder's files; False: there are too many of them."""
    size = count = 0
    for place, _, files in walk(str(folder)):
        for name in files:
            count += 1
            if count > _FILES:
                return size, False
            try:
                size += os.lstat(os.path.join(place, name)).st_size
            except OSError:
                continue
    return size, True


async def agent_server(settings: Settings, environ: Mapping[str, str]) -> list[CheckLine]:
    """Look at OpenCode: the program of a managed server, or the address and password of an attached one."""
    opencode = settings.runners.opencode
    if opencode.url is not None:
        return await _attached(opencode, environ)
    return [*await _managed(opencode), *_left_out(settings, environ)]


def opencode_notes(project: Path, settings: Settings, environ: Mapping[str, str]) -> list[CheckLine]:
    """Say what files of OpenCode's configuration ask for, and which plugins they name. Blocks."""
    policies = None
    with suppress(ConfigErrors, OSError, UnicodeDecodeError):  # `configuration` says what is wrong
        policies = load(project / FOLDER).policies
    return describe_files(project, settings, policies, environ) if OPENCODE in _used(project) else []


# --- what the agent server has ---


@dataclass(frozen=True, slots=True)
class ServerCatalog:
    """What the server has."""

    agents: tuple[ServerAgent, ...]
    models: tuple[Model, ...]
    default: Model | None
    beside: Mapping[str, tuple[Model, ...]] = field(default_factory=dict[str, tuple[Model, ...]])
    """Models of runners next to it, by the runner's name; they have more."""


async def all_offers(project: Path, state: Path, settings: Settings, say: Say = silent) -> ServerCatalog:
    """Ask the server, unless no agent is of it, and say what each Claude Code has."""
    runners, used = settings.runners, await to_thread.run_sync(_used, project)
    claudes = [name for name in runners.others if runners.kind(name) == CLAUDE]
    asked = OPENCODE in used or not runners.others or OPENCODE in runners.model_fields_set
    if not asked and not claudes:
        names, only = ", ".join(sorted(used)), "only OpenCode and Claude Code are asked"
        raise UsageError(f"{only}, and the agents of this project are of {names}: write them by hand")
    found = await offer(project, state, settings, say) if asked else ServerCatalog((), (), None)
    for name in claudes:
        agents, models = await doctor_runners.of_claude(project, settings, name)
        found = replace(found, agents=(*found.agents, *agents), beside={**found.beside, name: models})
    return found


async def offer(project: Path, state: Path, settings: Settings, say: Say = silent) -> ServerCatalog:
    """Ask the server; a managed one that does not run is started for that, and ended again."""

    async def ask() -> tuple[Catalog, tuple[ListedAgent, ...]]:
        return await runner.catalog(), await runner.agents()

    check_path(project)
    server = settings.runners.opencode
    runner = opencode_of(project, settings)
    as_found = server.url is not None or await to_thread.run_sync(runs, state)
    try:
        catalog, listed = await call_runner(runner.start, ask, say)
    finally:
        with anyio.CancelScope(shield=True):
            await (runner.aclose() if as_found else runner.stop_server())
    agents = tuple(
        ServerAgent(one.name, one.mode, bool(one.native), one.writes, one.model, hidden=bool(one.hidden))
        for one in listed
    )
    return ServerCatalog(agents, catalog.models, catalog.default)


def runs(state: Path) -> bool:
    """Say whether the managed server lives."""
    record = record_in(folder_of(state, os.environ))
    return record is not None and bool(process_table.holders_of(record.mark))


async def providers(project: Path, settings: Settings, say: Say = silent) -> list[CheckLine]:
    """Ask the server for the models that it can use, which are those of providers that it has a login or a key for.

    No credential is read: what the server lists is compared with what agents.yaml names. A managed server that does not
    run is started for that, and ended again.
    """
    registry = await to_thread.run_sync(_written, Agents, project / FOLDER / "agents.yaml")
    if registry is None:
        return []  # that is told already
    try:
        found = await offer(project, project / FOLDER / "state", settings, say)
    except AshepError as error:
        return [CheckLine("error", "providers", f"OpenCode cannot be asked for its models: {error}", "see its log")]
    return judged(registry, found)


def judged(registry: Agents, found: ServerCatalog) -> list[CheckLine]:
    """Say what the server can use, and what agents name that it cannot."""
    if not found.models:
        why = "OpenCode lists no model: it has no login, or its configuration disables providers"
        return [CheckLine("error", "providers", why, _LOG_IN)]
    counted = Counter(model.provider for model in found.models)
    some = ", ".join(f"{name} ({count} model{'' if count == 1 else 's'})" for name, count in sorted(counted.items()))
    default = f"{found.default.provider}/{found.default.model}" if found.default else "the server's choice"
    said = f"OpenCode can use {some}; default: {default}; only a run shows whether a login still holds"
    lines = [CheckLine("ok", "providers", said)]
    for gone in vanished(registry, found.agents, found.models):
        provider, _, model = gone.value.partition("/")
        if gone.key == "agent_slug":
            why, remedy = f"OpenCode has no agent {gone.value}", "name another in agents.yaml: `ashep sync-agents`"
        elif provider in counted:
            why, remedy = f"{provider} has no model {model}", "name another in agents.yaml: `ashep sync-agents`"
        else:
            why, remedy = f"OpenCode has no login for {provider}", _LOG_IN
        lines.append(CheckLine("warning", "providers", f"{gone.agent} cannot be used: {why}", remedy))
    return lines


def _left_out(settings: Settings, environ: Mapping[str, str]) -> list[CheckLine]:
    """Name the variables that a provider may be waiting for in vain."""
    named, secret = settings.runners.opencode.environment, secret_variables(settings)
    lines = list[CheckLine]()
    if refused := [name for name in named if name in secret]:
        why = f"the agent server never gets {', '.join(refused)}: config.yaml takes a secret of ashep's from it"
        lines.append(CheckLine("warning", "environment", why, "give the provider a variable of its own"))
    if names := [name for name in left_out(environ, named, secret) if name not in refused]:
        why = f"no agent and no provider gets {', '.join(names[:20])}{' …' if names[20:] else ''} of this environment"
        lines.append(CheckLine("ok", "environment", why, "where a provider needs one: `runners.opencode.environment`"))
    return lines


async def _managed(settings: OpencodeSettings) -> list[CheckLine]:
    name = settings.command[0]
    program = await to_thread.run_sync(programs.find, name)
    if program is None:
        remedy = f"install OpenCode {programs.OPENCODE_VERSION} (npm install -g opencode-ai), or run `make setup`"
        return [CheckLine("error", "opencode", await to_thread.run_sync(programs.lack_of, name), remedy)]
    command, by_hand = [str(program), *settings.command[1:]], f"run `{name} --version` by hand"
    version = await doctor_runners.read_version("opencode", command[0], command, by_hand)
    if isinstance(version, CheckLine):
        return [version]
    password = CheckLine("ok", "password", "a managed server gets a random password and listens on loopback only")
    return [_version(version, command[0]), password]


def _version(version: str, where: str) -> CheckLine:
    return doctor_runners.judge_version("opencode", f"OpenCode {version}: {where}", version, programs.OPENCODE_VERSION)


async def _attached(settings: OpencodeSettings, environ: Mapping[str, str]) -> list[CheckLine]:
    assert settings.url is not None
    password = environ.get(settings.password_env) or None
    local = _is_loopback(settings.url)
    lines = [_password(settings, password, local=local)]
    try:
        version = await probe(settings.url.rstrip("/"), password, _PROBE)
        lines.insert(0, _version(version, settings.url))
    except RunnerUnauthorized as error:
        remedy = f"put the server's password into the environment variable {settings.password_env}"
        lines.insert(0, CheckLine("error", "opencode", str(error), remedy))
    except AshepError as error:
        lines.insert(0, CheckLine("error", "opencode", str(error), "start the server, or correct runners.opencode.url"))
    why = "on an attached server an agent's bd calls carry git's user: only the session's rules protect your issues"
    remedy = "start that server with BEADS_ACTOR=ashep-agent, or use a managed one"
    return [*lines, CheckLine("warning", "actor", why, remedy)]


def _password(settings: OpencodeSettings, password: str | None, *, local: bool) -> CheckLine:
    name = settings.password_env
    if password is None:
        level: Level = "warning" if local else "error"
        why = f"the environment variable {name} is empty: whoever reaches {settings.url} can run commands there"
        return CheckLine(level, "password", why, f"start the server with a password, and set {name}")
    if not local and urlsplit(settings.url or "").scheme != "https":
        return CheckLine(
            "warning", "password", f"{settings.url} sends the password unencrypted", "use https, or a tunnel"
        )
    return CheckLine("ok", "password", f"the environment variable {name} holds a password")


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def git(project: Path, settings: Settings) -> list[CheckLine]:
    """Look for git and a repository, by which ashep sees what agents changed, and where issues have work trees."""
    own = settings.worker.workspace != "shared"
    remedy = "without git ashep does not see what agents change, and starts runs on a tree that is not clean"
    if await to_thread.run_sync(programs.find, "git") is None:
        return [CheckLine("warning", "git", "git is not on PATH", remedy)]
    try:
        tree = await GitTree(project).read()
    except AshepError as error:
        return [doctor_git.git_error(error) or CheckLine("warning", "git", str(error), remedy)]
    if not tree.present:
        return [CheckLine("warning", "git", f"{project} is in no git repository", remedy)]
    if tree.dirty:
        some = ", ".join(path for path, _ in tree.dirty[:3])
        why = f"{len(tree.dirty)} tracked files are changed ({some}…): "
        why += "the work of issues waits before it lands here" if own else "phases with write access do not start"
        return [
            CheckLine("warning", "git", why, "commit or stash them" + ("" if own else ", or set worker.allow_dirty"))
        ]
    if tree.head is None and own:
        return [
            CheckLine("warning", "git", "worker.workspace is worktree, and there is no commit yet", "commit something")
        ]
    where = "each issue gets a work tree of its own" if own else "all agents share it"
    return [CheckLine("ok", "git", f"a clean work tree at {tree.head[:12] if tree.head else 'no commit yet'}; {where}")]


def disk(project: Path) -> list[CheckLine]:
    """Look at the space where the journal will be, and whether it may be written."""
    folder = project / FOLDER if (project / FOLDER).is_dir() else project
    if not os.access(folder, os.W_OK):
        return [CheckLine("error", "disk", f"{folder} may not be written", "give yourself the right to")]
    free = shutil.disk_usage(folder).free
    said = f"{free / _MB:.0f} MB are free for {folder}"
    if free < _DISK_IS_LOW:
        level: Level = "error" if free < _DISK_IS_FULL else "warning"
        return [CheckLine(level, "disk", said, "make room: a full disk ends ashep (exit code 74)")]
    if kind := filesystems.network_file_system(folder):
        return [CheckLine("warning", "disk", filesystems.warning(folder, kind), "put the project on a local disk")]
    return [CheckLine("ok", "disk", said)]
