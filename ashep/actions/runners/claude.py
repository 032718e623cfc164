"""Claude Code: whether it can be used, what it has, and how its sessions are opened and read."""

import os
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

import anyio
from anyio import to_thread

from ashep.actions.doctor_security import CheckLine
from ashep.actions.runner_wait import Say, silent
from ashep.actions.runners.base import (
    Examination,
    ServerCatalog,
    SessionReference,
    describe_guarantee,
    judge_version,
    read_version,
)  # fmt: skip
from ashep.adapters.git.workspaces.clones import place_at
from ashep.adapters.system import programs
from ashep.adapters.system.tool_sources import how_to_get
from ashep.config.sync_agents import ServerAgent
from ashep.core.facts.runs import Model
from ashep.core.policy.runner_kinds import CLAUDE
from ashep.core.text import clean
from ashep.errors import AshepError, RunnerRefused, RunnerUnauthorized
from ashep.factories import NamedRunner, claude_command, claude_folder, inside_of, places_of, runner_folder, sandboxed
from ashep.ports.transcripts import TranscriptStep, redact_steps
from ashep.redaction import Redaction

_SAYS = 30.0  # seconds for a program to say its version in a sandbox


async def examine(runner: Examination) -> list[CheckLine]:
    """Look at Claude Code: its program and version, and whether somebody is logged in."""
    from ashep.adapters.runners.claude import ClaudeRunner  # few have one

    name = runner.name
    command = await to_thread.run_sync(claude_command, runner.chosen)
    where = await to_thread.run_sync(shutil.which, command[0])
    if where is None:
        cache = f"neither on PATH nor in the tools cache {programs.tools_cache()}"
        remedy = await to_thread.run_sync(how_to_get, CLAUDE)
        missing = f"{command[0]} is {cache if command[0] == CLAUDE else 'not there'}"
        return [CheckLine("error", name, missing, remedy)]
    version = await read_version(name, command[0], command, f"run `{command[0]} --version` by hand")
    if isinstance(version, CheckLine):
        return [version]
    lines = [judge_version(name, f"Claude Code {version}: {where}", version, programs.CLAUDE_VERSION)]
    made = await to_thread.run_sync(runner.make)
    assert isinstance(made, ClaudeRunner)
    try:
        await to_thread.run_sync(made.check_login)
        lines.append(CheckLine("ok", name, "it has a login or a key; only a run shows whether that still holds"))
    except (RunnerUnauthorized, OSError) as error:
        remedy = "run `claude` and log in, or set ANTHROPIC_API_KEY (docs/guides/agents.md)"
        lines.append(CheckLine("error", name, str(error), remedy))
    if sandboxed(runner.settings):
        lines += await _inside(runner, command)
    return [*lines, describe_guarantee(name, "once", runner.settings)]


async def _inside(runner: Examination, command: Sequence[str]) -> list[CheckLine]:
    """Say where it does not start in the sandbox of its agents."""
    async with anyio.TemporaryDirectory(prefix="ashep-install-") as made:
        scratch = await to_thread.run_sync(Path(made).resolve)
        place = scratch / "empty"
        await anyio.Path(place).mkdir()
        try:
            if (inside := await inside_of(runner.project, runner.settings, place, scratch / "server")) is None:
                return []
            done = await inside.run([*command, "--version"], place, {}, _SAYS, programs.LONGEST)
        except AshepError as error:
            return [CheckLine("error", runner.name, f"nothing can be started in its sandbox: {error}")]
    if not done.returncode:
        return []
    said = clean(done.stderr.decode(errors="replace")).strip()[-200:]
    remedy = "add the folders that it needs to `agents.paths.read`"
    return [CheckLine("error", runner.name, f"it does not start in the sandbox of its agents: {said}", remedy)]


async def offers(runner: NamedRunner, say: Say = silent) -> ServerCatalog:
    """Give the agents and the models that Claude Code can be asked for by name; nothing is started."""
    from ashep.adapters.runners.claude import ALIASES, BUILT_IN, PROVIDER, ClaudeRunner  # as above

    name, made = runner.name, await to_thread.run_sync(runner.make)
    assert isinstance(made, ClaudeRunner)
    agents = [ServerAgent(one, "all", native=True, writes=True, hidden=True, runner=name) for one in BUILT_IN]
    for agent in await made.agents():
        if agent.name not in BUILT_IN:
            model = Model(PROVIDER, agent.model) if agent.model else None
            agents.append(ServerAgent(agent.name, "all", native=False, writes=agent.writes, model=model, runner=name))
    models = tuple(Model(PROVIDER, one) for one in ALIASES)
    return ServerCatalog(tuple(agents), (), None, {name: models})


async def open_command(reference: SessionReference, issue: str, begins: bool) -> str:
    """Give the command that opens a session, or say that there is none."""
    return await to_thread.run_sync(_open_command, reference, issue)


def _open_command(reference: SessionReference, issue: str) -> str:
    from ashep.adapters.runners.claude.session_store import SessionStore  # few have one

    project, place, session, chosen = reference.project, reference.directory, reference.session, reference.chosen
    command = chosen.command or ((CLAUDE,) if shutil.which(CLAUDE) else claude_command(chosen))
    words = shlex.join((*command, "--resume", session))
    known = SessionStore(runner_folder(project, reference.name), claude_folder()).session(session)
    if known is not None and known.config:
        if place_at(places_of(project, reference.settings), place) is None:
            return f"Its session is {session}; it judges in a sandbox of its own, and nobody goes on with it there."
        return f"ashep sandbox {issue} -- {words}"
    own = "" if "CLAUDE_CONFIG_DIR" not in os.environ else f"CLAUDE_CONFIG_DIR={shlex.quote(str(claude_folder()))} "
    return f"cd {shlex.quote(str(place))} && {own}{words}"


async def read_steps(reference: SessionReference, redaction: Redaction) -> tuple[TranscriptStep, ...]:
    """Read the end of a session's transcript. Raises `RunnerRefused`."""
    return redact_steps(await to_thread.run_sync(_read_steps, reference), redaction.text)


def _read_steps(reference: SessionReference) -> list[TranscriptStep]:
    from ashep.adapters.runners.claude import session_store, transcript  # few have one

    store = session_store.SessionStore(runner_folder(reference.project, reference.name), claude_folder())
    file = store.transcript(reference.session)
    if file is None:
        raise RunnerRefused(f"Claude Code has no session {reference.session}, or not any more")
    return transcript.read_steps(file)
