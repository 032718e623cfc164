"""The checks of `ashep install`: what is there, what is missing, and what to do about it. Nothing is changed."""

import os
import platform
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread

from ashep import __version__
from ashep.actions import doctor_git
from ashep.actions.doctor_security import CheckLine, Level, agents, people
from ashep.actions.issue_sources import check_sources
from ashep.actions.runner_wait import Say, silent
from ashep.actions.runners.base import Examination, ServerCatalog, read_file, runners_used
from ashep.actions.runners.kinds import kind_of
from ashep.actions.setup.known_agents import find_agents
from ashep.actions.verify import verify_base
from ashep.adapters.beads import BeadsTracker
from ashep.adapters.git.user_work_tree import GitTree
from ashep.adapters.system import filesystems, programs
from ashep.adapters.system.folders import walk
from ashep.adapters.system.tool_sources import how_to_get
from ashep.adapters.verifier import probe as probe_sandbox
from ashep.config import examine, settled
from ashep.core.policy.runner_kinds import ACP, OPENCODE
from ashep.core.policy.settings import Settings
from ashep.errors import AshepError, ConfigError, TrackerMissing, UsageError
from ashep.factories import FOLDER, NamedRunner, check_path, tracker_of

_MB = 1024 * 1024
_STORE_IS_LARGE = 100 * _MB
_DISK_IS_FULL = 100 * _MB
_DISK_IS_LOW = 1024 * _MB
_TRACKER = 30.0  # seconds for each call of bd
_ALL_OF_BD = programs.LONGEST
_PROBE = 5.0
_FILES = 200_000  # the most files that are counted for the store's size


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
        "bd": lambda: (own_tracker if settings.tracker.is_own else tracker)(project, settings),
        "git": lambda: git(project, settings),
        "repository": lambda: doctor_git.repository(project, settings, ask=server),
        "trial": lambda: doctor_git.trial(project, settings, ask=server),
        "agents": lambda: agents(project, settings),
        "sources": lambda: to_thread.run_sync(check_sources, project, settings),
        "sandbox": lambda: sandbox(project, settings),
        "checks": lambda: verify_base(project, settings),
        "disk": lambda: to_thread.run_sync(disk, project),
    }
    used = await to_thread.run_sync(runners_used, project)
    names = [name for name in settings.runners.names if name in used]
    for name in names:
        examination = Examination(project, settings, name, environ, server, say)
        tried[f"runner {name}"] = partial(kind_of(settings, name).examine, examination)

    async def keep(name: str) -> None:
        found[name] = await tried[name]()

    async with anyio.create_task_group() as group:
        for name in tried:
            group.start_soon(keep, name)
    rest = [*found["git"], *found["repository"], *found["trial"], *found["agents"], *found["sandbox"], *found["checks"]]
    rest += [*people(settings), *found["disk"]]
    of_runners = [line for name in names for line in found[f"runner {name}"]]
    of_runners += await to_thread.run_sync(_list_unused, project, settings, names, environ)
    lines += doctor_git.proxy(environ)
    return [*lines, *found["bd"], *of_runners, *rest]


def _list_unused(project: Path, settings: Settings, used: Sequence[str], environ: Mapping[str, str]) -> list[CheckLine]:
    """Name the agents on PATH that no entry of agents.yaml is of: none of them is needed."""
    commands = [(settings.runners.extra[name].command or (name,))[0] for name in used if name != OPENCODE]
    kinds = {settings.runners.kind(name) for name in used} - {ACP}
    facts = (agent for agent in find_agents(project, environ) if agent.chosen.kind not in kinds)
    unused = [agent for agent in facts if not {*agent.chosen.command[:1]} & {*commands}]
    return [
        CheckLine("ok", agent.name, f"{agent.title} is here, too: {agent.program}; no agent of agents.yaml is of it")
        for agent in unused
    ]


def settings_of(project: Path) -> Settings:
    """Read config.yaml by itself; the defaults where it cannot be used, which `configuration` says."""
    file = project / FOLDER / "config.yaml"
    return settled(read_file(Settings, file) or Settings(), project)


async def all_offers(project: Path, settings: Settings, say: Say = silent) -> ServerCatalog:
    """Ask the server, unless no agent is of it, and say what each other runner has that can be asked for it.

    `say` hears of one that no agent is of and that does not answer. Raises `AshepError` where one that is used does
    not, and where none can be asked.
    """
    runners, used = settings.runners, await to_thread.run_sync(runners_used, project)
    asked = OPENCODE in used or not runners.extra or OPENCODE in runners.model_fields_set
    kinds = {name: kind_of(settings, name) for name in runners.names if name != OPENCODE or asked}
    asked_for = [(name, kind.offers) for name, kind in kinds.items() if kind.offers]
    catalogs = list[ServerCatalog]()
    for name, offers in asked_for:
        try:
            catalogs.append(await offers(NamedRunner(project, settings, name), say))
        except AshepError as error:
            if name in used:
                raise
            say(f"{name}: {error}")
    if not catalogs:
        names, only = ", ".join(sorted(used)), "agents of a class of your own are not asked"
        raise UsageError(f"{only}, and the agents of this project are of {names}: write them by hand")
    agents = tuple(agent for catalog in catalogs for agent in catalog.agents)
    beside = {name: models for catalog in catalogs for name, models in catalog.beside.items()}
    return ServerCatalog(agents, catalogs[0].models, catalogs[0].default, beside)


# --- the checks ---------------------------------------------------------------------------------------------------


def configuration(project: Path) -> list[CheckLine]:
    """Look at the user's files."""
    folder = project / FOLDER
    if not folder.is_dir():
        return [CheckLine("error", "configuration", f"{project} has no folder {FOLDER}", "run `ashep setup`")]
    findings = examine(folder).findings
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
        remedy = await to_thread.run_sync(how_to_get, name) if name == "bd" else "correct `tracker.command`"
        return [CheckLine("error", "bd", await to_thread.run_sync(programs.lack_of, name), remedy)]
    bd = BeadsTracker(project, settings.tracker.command, "ashep-install", _TRACKER)
    try:
        with anyio.fail_after(_ALL_OF_BD):
            info = await bd.check()
    except TrackerMissing as error:
        if "too old" in str(error):
            remedy = await to_thread.run_sync(how_to_get, "bd")
        elif "beads" in str(error):
            lack, remedy = f"{project} has no Beads database", "run `bd init`; ashep never does that"
            return [CheckLine("error", "database", lack, remedy)]
        else:
            remedy = "see what `bd where` says"
        return [CheckLine("error", "bd", f"{program}: {error}", remedy)]
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
        reason = str(error) or f"no answer in {_ALL_OF_BD:g} s"
        return [CheckLine("error", "tracker", f"{name}: {reason}", "see what it needs")]
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
        remedy = "commit or stash them" if own else "commit or stash them, or set worker.allow_dirty"
        return [CheckLine("warning", "git", why, remedy)]
    if tree.head is None and own:
        lack = "worker.workspace is worktree, and there is no commit yet"
        return [CheckLine("warning", "git", lack, "commit something")]
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
