"""What `ashep install` says of runners beside OpenCode: whether each can be used, and what is promised of it."""

import re
import shutil
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import anyio
from anyio import to_thread

from ashep.actions.doctor_security import CheckLine
from ashep.actions.runner_wait import Say, call_runner, silent
from ashep.adapters.system import programs
from ashep.config.sync_agents import ServerAgent
from ashep.core.facts.runs import Model
from ashep.core.policy.runner_kinds import CLAUDE
from ashep.core.policy.settings import Settings
from ashep.core.text import clean
from ashep.errors import AshepError, ConfigError, RunnerUnauthorized
from ashep.factories import claude_command, inside_of, runners_of, sandboxed
from ashep.ports.runner_router import PrefixedRunner

ONCE = "guarantee: once, no turn is begun twice"
AT_LEAST_ONCE = "guarantee: at least once, a turn that dies with its agent may be run a second time"
AS_YOU = "its agents run as you, outside any sandbox"

_EXTRA = "pip install 'ashep[acp]'"
_TWICE = "it cannot load a session (`loadSession`): give it work that may be done twice, or take an agent that can"
_VERSION = re.compile(r"\d+\.\d+\.\d+\S*")
_SAYS = 30.0  # seconds for a program to say its version in a sandbox


async def runner(project: Path, settings: Settings, name: str, *, ask: bool, say: Say = silent) -> list[CheckLine]:
    """Look at a runner beside OpenCode. `ask`: an agent that speaks ACP is started, to be asked what it can do."""
    match settings.runners.kind(name):
        case "claude":
            return await _claude(project, settings, name)
        case "acp":
            return await _acp(project, settings, name, ask=ask, say=say)
        case kind:
            return [await to_thread.run_sync(_own, project, settings, name, kind)]


def _own(project: Path, settings: Settings, name: str, kind: str) -> CheckLine:
    """Look at one of the user's own: whether its class can be used. It is not started."""
    try:
        runners_of(project, settings)[name]
    except ConfigError as error:
        return CheckLine("error", "runner", str(error), "docs/extending.md says what a runner is")
    return CheckLine("ok", "runner", f"{name} is {kind}, which is a runner; it was not started")


async def _claude(project: Path, settings: Settings, name: str) -> list[CheckLine]:
    """Look at Claude Code: its program and version, and whether somebody is logged in."""
    from ashep.adapters.runners.claude import ClaudeRunner  # few have one

    command = await to_thread.run_sync(claude_command, settings.runners.others[name])
    remedy = f"install Claude Code {programs.CLAUDE_VERSION} (npm install -g @anthropic-ai/claude-code)"
    version = await _version(name, command, remedy)
    if isinstance(version, CheckLine):
        return [version]
    where = await to_thread.run_sync(shutil.which, command[0])
    lines = [judge_version(name, f"Claude Code {version}: {where}", version, programs.CLAUDE_VERSION)]
    made = await to_thread.run_sync(_made, project, settings, name)
    assert isinstance(made, ClaudeRunner)
    try:
        await to_thread.run_sync(made.check_login)
        lines.append(CheckLine("ok", name, "it has a login or a key; only a run shows whether that still holds"))
    except (RunnerUnauthorized, OSError) as error:
        remedy = "run `claude` and log in, or set ANTHROPIC_API_KEY (docs/guides/agents.md)"
        lines.append(CheckLine("error", name, str(error), remedy))
    if sandboxed(settings):
        lines += await _inside(project, settings, name, command)
    return [*lines, CheckLine("ok", name, f"{ONCE}{_where(settings)}")]


async def _inside(project: Path, settings: Settings, name: str, command: Sequence[str]) -> list[CheckLine]:
    """Say where it does not start in the sandbox of its agents."""
    async with anyio.TemporaryDirectory(prefix="ashep-install-") as made:
        scratch = await to_thread.run_sync(Path(made).resolve)
        place = scratch / "empty"
        await anyio.Path(place).mkdir()
        try:
            if (inside := await inside_of(project, settings, place, scratch / "server")) is None:
                return []
            done = await inside.run([*command, "--version"], place, {}, _SAYS, programs.LONGEST)
        except AshepError as error:
            return [CheckLine("error", name, f"nothing can be started in its sandbox: {error}")]
    if not done.returncode:
        return []
    said = clean(done.stderr.decode(errors="replace")).strip()[-200:]
    remedy = "add the folders that it needs to `agents.paths.read`"
    return [CheckLine("error", name, f"it does not start in the sandbox of its agents: {said}", remedy)]


async def of_claude(project: Path, settings: Settings, name: str) -> tuple[tuple[ServerAgent, ...], tuple[Model, ...]]:
    """Give the agents and the models that Claude Code can be asked for by name; nothing is started."""
    from ashep.adapters.runners.claude import ALIASES, BUILT_IN, PROVIDER, ClaudeRunner  # as above

    made = await to_thread.run_sync(_made, project, settings, name)
    assert isinstance(made, ClaudeRunner)
    everybodys = [ServerAgent(one, "all", native=True, writes=True, hidden=True, runner=name) for one in BUILT_IN]
    listed = [
        ServerAgent(
            agent.name,
            "all",
            native=False,
            writes=agent.writes,
            model=Model(PROVIDER, agent.model) if agent.model else None,
            runner=name,
        )
        for agent in await made.agents()
        if agent.name not in BUILT_IN
    ]
    return (*everybodys, *listed), tuple(Model(PROVIDER, one) for one in ALIASES)


async def _acp(project: Path, settings: Settings, name: str, *, ask: bool, say: Say) -> list[CheckLine]:
    """Look at an agent that speaks ACP: its program, the library, and what it says that it can do."""
    from ashep.adapters.runners.acp import AcpRunner  # as above

    command = settings.runners.others[name].command or ("",)
    where = await to_thread.run_sync(shutil.which, command[0])
    if where is None:
        return [
            CheckLine("error", name, f"{command[0]} is not on PATH", f"install it, or correct runners.{name}.command")
        ]
    if find_spec("acp") is None:
        return [CheckLine("error", name, "an agent that speaks ACP takes the extra `acp` of ashep", _EXTRA)]
    lines = [CheckLine("ok", name, f"{' '.join(command)}: {where}")]
    if not ask:
        return lines
    made = await to_thread.run_sync(_made, project, settings, name)
    assert isinstance(made, AcpRunner)
    try:
        version = (await call_runner(made.start, made.catalog, say)).version
    except RunnerUnauthorized as error:
        return [*lines, CheckLine("error", name, str(error), f"log in: run `{command[0]}` by hand")]
    except AshepError as error:
        return [*lines, CheckLine("error", name, str(error), f"run `{' '.join(command)}` by hand")]
    finally:
        with anyio.CancelScope(shield=True):
            await made.aclose()
    lines = [CheckLine("ok", name, f"{' '.join(command)} {version}: {where}")]
    if made.guarantee == "once":
        return [*lines, CheckLine("ok", name, f"{ONCE}{_where(settings)}")]
    return [*lines, CheckLine("warning", name, f"{AT_LEAST_ONCE}{_where(settings)}", _TWICE)]


def _where(settings: Settings) -> str:
    return "" if sandboxed(settings) else f"; {AS_YOU}"


def _made(project: Path, settings: Settings, name: str) -> object:
    found = runners_of(project, settings)[name]
    return found.runner if isinstance(found, PrefixedRunner) else found


async def _version(name: str, command: Sequence[str], remedy: str) -> str | CheckLine:
    by_hand = f"run `{command[0]} --version` by hand"
    if await to_thread.run_sync(shutil.which, command[0]) is None:
        where = (
            f"neither on PATH nor in the tools cache {programs.tools_cache()}" if command[0] == CLAUDE else "not there"
        )
        return CheckLine("error", name, f"{command[0]} is {where}", remedy)
    return await read_version(name, command[0], command, by_hand)


async def read_version(check: str, program: str, command: Sequence[str], by_hand: str) -> str | CheckLine:
    """Give the version that a program says, or what is wrong with it."""
    try:
        done = await programs.ask_version(command)
    except AshepError as error:
        return CheckLine("error", check, f"{program}: {error}", by_hand)
    match = _VERSION.search(done.stdout.decode(errors="replace"))
    if done.returncode == 0 and match is not None:
        return match[0]
    said = clean(done.stderr.decode(errors="replace")).strip()[:200] or "it does not say its version"
    return CheckLine("error", check, f"{program}: {said}", by_hand)


def judge_version(check: str, what: str, version: str, tried: str) -> CheckLine:
    """Say whether it is the version that ashep is tried with."""
    if version == tried:
        return CheckLine("ok", check, what)
    return CheckLine("warning", check, f"{what}; ashep is tried with {tried}", f"install {tried} if anything is odd")
