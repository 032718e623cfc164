"""OpenCode: whether its server can be used, what it has, and how its sessions are opened and read.

A server that a daemon has in its hands is not started a second time next to it: it is asked where it lives.
"""

import os
from collections import Counter
from collections.abc import Mapping
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import anyio
from anyio import to_thread

from ashep.actions.doctor_security import CheckLine, Level
from ashep.actions.runner_wait import Say, call_runner, silent
from ashep.actions.runners.base import (
    Examination,
    ServerCatalog,
    SessionReference,
    judge_version,
    read_file,
    read_version,
    runners_used,
)  # fmt: skip
from ashep.actions.runners.opencode_files import describe_files
from ashep.adapters.git.workspaces.clones import place_at
from ashep.adapters.runners.opencode import OpencodeRunner
from ashep.adapters.runners.opencode.client import probe
from ashep.adapters.runners.opencode.environment import left_out
from ashep.adapters.runners.opencode.isolated_runner import IsolatedRunner, folder_for
from ashep.adapters.runners.opencode.schema import ListedAgent
from ashep.adapters.runners.opencode.server import folder_of, how_to_open, record_in
from ashep.adapters.system import process_table, programs
from ashep.adapters.system.tool_sources import how_to_get
from ashep.config import ConfigErrors, load
from ashep.config.sync_agents import ServerAgent, vanished
from ashep.core.policy.agents import Agents
from ashep.core.policy.runner_kinds import CLAUDE, OPENCODE
from ashep.core.policy.settings import OpencodeSettings, Settings
from ashep.errors import AshepError, RunnerError, RunnerRefused, RunnerUnauthorized, RunnerUnavailable
from ashep.factories import FOLDER, NamedRunner, check_path, make_place_runner, opencode_of, places_of, secret_variables
from ashep.ports.runner import Catalog, Runner
from ashep.ports.transcripts import TranscriptStep, redact_steps
from ashep.redaction import Redaction
from ashep.request_guard import is_loopback

_PROBE = 5.0
_LOG_IN = "run `opencode auth login`, or give it the provider's key (`runners.opencode.environment` names others)"


async def examine(runner: Examination) -> list[CheckLine]:
    """Look at the server, at the models that it can use, and at the files of its configuration."""
    lines = await agent_server(runner.settings, runner.environ)
    if runner.ask and all(line.level != "error" for line in lines):
        lines += await providers(runner, runner.say)
    lines += await to_thread.run_sync(describe_configuration, runner.project, runner.settings, runner.environ)
    return [*lines, CheckLine("ok", "bun", "bun is not needed: OpenCode brings its own")]


async def agent_server(settings: Settings, environ: Mapping[str, str]) -> list[CheckLine]:
    """Look at OpenCode: the program of a managed server, or the address and password of an attached one."""
    opencode = settings.runners.opencode
    if opencode.url is not None:
        return await _attached(opencode, opencode.url, environ)
    return [*await _managed(opencode), *_left_out(settings, environ)]


def describe_configuration(project: Path, settings: Settings, environ: Mapping[str, str]) -> list[CheckLine]:
    """Say what files of OpenCode's configuration ask for, and which plugins they name. Blocks."""
    policies = None
    with suppress(ConfigErrors, OSError, UnicodeDecodeError):  # `configuration` says what is wrong
        policies = load(project / FOLDER).policies
    return describe_files(project, settings, policies, environ) if OPENCODE in runners_used(project) else []


async def offers(server: NamedRunner, say: Say = silent) -> ServerCatalog:
    """Ask the server; a managed one that does not run is started for that, and ended again."""

    async def ask() -> tuple[Catalog, tuple[ListedAgent, ...]]:
        return await runner.catalog(), await runner.agents()

    check_path(server.project)
    runner = opencode_of(server.project, server.settings)
    as_found = await to_thread.run_sync(is_up, server)
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


def is_up(server: NamedRunner) -> bool:
    """Say whether the server is there without being started: an attached one is, a managed one where it lives."""
    record = record_in(folder_of(server.project / FOLDER / "state", os.environ))
    is_alive = record is not None and bool(process_table.holders_of(record.mark))
    return is_alive or server.settings.runners.opencode.url is not None


async def providers(server: NamedRunner, say: Say = silent) -> list[CheckLine]:
    """Ask the server for the models that it can use, which are those of providers that it has a login or a key for.

    No credential is read: what the server lists is compared with what agents.yaml names. A managed server that does not
    run is started for that, and ended again.
    """
    registry = await to_thread.run_sync(read_file, Agents, server.project / FOLDER / "agents.yaml")
    if registry is None:
        return []  # that is told already
    try:
        found = await offers(server, say)
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
        remedy = await to_thread.run_sync(how_to_get, OPENCODE)
        if await to_thread.run_sync(programs.find, CLAUDE):  # then OpenCode is one of two
            remedy += ", or give its agents to Claude Code, which is here: `runner: {type: claude}` in agents.yaml"
        return [CheckLine("error", "opencode", await to_thread.run_sync(programs.lack_of, name), remedy)]
    command, by_hand = [str(program), *settings.command[1:]], f"run `{name} --version` by hand"
    version = await read_version("opencode", command[0], command, by_hand)
    if isinstance(version, CheckLine):
        return [version]
    password = CheckLine("ok", "password", "a managed server gets a random password and listens on loopback only")
    return [_version(version, command[0]), password]


def _version(version: str, where: str) -> CheckLine:
    return judge_version("opencode", f"OpenCode {version}: {where}", version, programs.OPENCODE_VERSION)


async def _attached(settings: OpencodeSettings, url: str, environ: Mapping[str, str]) -> list[CheckLine]:
    password = environ.get(settings.password_env) or None
    try:
        server = _version(await probe(url.rstrip("/"), password, _PROBE), url)
    except RunnerUnauthorized as error:
        remedy = f"put the server's password into the environment variable {settings.password_env}"
        server = CheckLine("error", "opencode", str(error), remedy)
    except AshepError as error:
        server = CheckLine("error", "opencode", str(error), "start the server, or correct runners.opencode.url")
    why = "on an attached server an agent's bd calls carry git's user: only the session's rules protect your issues"
    remedy = "start that server with BEADS_ACTOR=ashep-agent, or use a managed one"
    return [server, _password(settings, password, local=_is_loopback(url)), CheckLine("warning", "actor", why, remedy)]


def _password(settings: OpencodeSettings, password: str | None, *, local: bool) -> CheckLine:
    name = settings.password_env
    if password is None:
        level: Level = "warning" if local else "error"
        why = f"the environment variable {name} is empty: whoever reaches {settings.url} can run commands there"
        return CheckLine(level, "password", why, f"start the server with a password, and set {name}")
    if not local and urlsplit(settings.url or "").scheme != "https":
        danger = f"{settings.url} sends the password unencrypted"
        return CheckLine("warning", "password", danger, "use https, or a tunnel")
    return CheckLine("ok", "password", f"the environment variable {name} holds a password")


def _is_loopback(url: str) -> bool:
    return is_loopback(urlsplit(url).netloc.rpartition("@")[2])


# --- sessions -----------------------------------------------------------------------------------------------------


async def open_command(reference: SessionReference, issue: str, begins: bool) -> str:
    """Give the command that opens a session, or say why there is none now."""
    project, settings, state = reference.project, reference.settings, reference.project / FOLDER / "state"
    place, session = reference.directory, reference.session
    alone = await to_thread.run_sync(_place_of, reference)
    if alone is None:
        own = await to_thread.run_sync(folder_of, state, os.environ)
        return await to_thread.run_sync(how_to_open, settings, place, own, session)
    if begins:
        try:
            async with aclosing(await to_thread.run_sync(make_place_runner, project, settings, alone)) as runner:
                # one that lives is left alone: our config.yaml, or PATH, may be another than the daemon's, and would
                # begin it again
                try:
                    await runner.attach()
                except RunnerUnavailable:
                    await call_runner(runner.start, runner.agents)
        except RunnerError as error:
            return f"Its session is {session}, and its agent server does not start: {error}"
    at = folder_for(state, alone)
    return await to_thread.run_sync(partial(how_to_open, settings, place, at, session, alone=True))


async def link(reference: SessionReference) -> str:
    """Give the address at which a browser shows a session. Raises `RunnerError` with why there is none."""
    async with aclosing(await to_thread.run_sync(_server_of, reference, Redaction())) as runner:
        await _attach(runner, reference.session)
        return runner.link(reference.session, reference.directory)


async def read_steps(reference: SessionReference, redaction: Redaction) -> tuple[TranscriptStep, ...]:
    """Read the end of a session from its server. Raises `RunnerError`."""
    async with aclosing(await to_thread.run_sync(_server_of, reference, redaction)) as runner:
        await _attach(runner, reference.session)
        return redact_steps(await runner.read_steps(reference.session), redaction.text)


def _place_of(reference: SessionReference) -> Path | None:
    is_isolated, places = reference.settings.isolated, places_of(reference.project, reference.settings)
    return place_at(places, reference.directory) if is_isolated else None


def _server_of(reference: SessionReference, redaction: Redaction) -> OpencodeRunner:
    if (place := _place_of(reference)) is not None:
        return make_place_runner(reference.project, reference.settings, place, redaction=redaction)
    return opencode_of(reference.project, reference.settings, redaction=redaction)


async def reach(runner: Runner) -> None:
    """Reach the server where it lives; none is started. Raises `RunnerError`."""
    assert isinstance(runner, OpencodeRunner | IsolatedRunner)
    await runner.attach()


async def _attach(runner: OpencodeRunner, session: str) -> None:
    await runner.attach()
    if not await runner.has_session(session):
        raise RunnerRefused(f"the agent server has no session {session}, or not any more")
