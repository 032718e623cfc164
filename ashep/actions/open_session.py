"""How a person opens the session of a run: the command, of each kind of runner that has such a thing."""

import os
import shlex
import shutil
from contextlib import aclosing
from functools import partial
from pathlib import Path

from anyio import to_thread

from ashep.actions.runner_wait import call_runner
from ashep.adapters.git.workspaces.clones import place_at
from ashep.adapters.runners.opencode import OpencodeRunner
from ashep.adapters.runners.opencode.isolated_runner import folder_for
from ashep.adapters.runners.opencode.server import folder_of, how_to_open
from ashep.core.policy.runner_kinds import CLAUDE, OPENCODE
from ashep.core.policy.settings import Settings
from ashep.core.state.run import runner_of
from ashep.errors import RunnerError, RunnerUnavailable
from ashep.factories import claude_command, claude_folder, make_place_runner, places_of, runner_folder


async def opened(project: Path, settings: Settings, issue: str, session: str, folder: str | None, begins: bool) -> str:
    """Say how a session is opened; `folder`: of the tree that its run was in; None: the shared one.

    `begins`: the server of a place that does not live is begun; it goes on for as long as a person has the issue.
    """
    place, state = Path(folder) if folder else project, project / ".agent-shepherd" / "state"
    if (name := runner_of(session)) != OPENCODE:
        own = session.removeprefix(f"{name}:")
        return await to_thread.run_sync(partial(_elsewhere, project, settings, issue, name, place, own))
    isolated = settings.isolated
    alone = await to_thread.run_sync(lambda: place_at(places_of(project, settings), place)) if isolated else None
    if alone is None:
        own = await to_thread.run_sync(folder_of, state, os.environ)
        return await to_thread.run_sync(how_to_open, settings, place, own, session)
    if begins:
        try:
            await _begun(await to_thread.run_sync(make_place_runner, project, settings, alone))
        except RunnerError as error:
            return f"Its session is {session}, and its agent server does not start: {error}"
    at = folder_for(state, alone)
    return await to_thread.run_sync(partial(how_to_open, settings, place, at, session, alone=True))


def _elsewhere(project: Path, settings: Settings, issue: str, name: str, place: Path, session: str) -> str:
    """Give the command that opens a session of another runner than OpenCode, or say that there is none."""
    if settings.runners.kind(name) != CLAUDE:
        return f"Its session is {session}, of the runner {name}."
    from ashep.adapters.runners.claude.session_store import SessionStore  # few have one

    command = (CLAUDE,) if shutil.which(CLAUDE) else claude_command(settings.runners.others[name])
    words = shlex.join((*(settings.runners.others[name].command or command), "--resume", session))
    known = SessionStore(runner_folder(project, name), claude_folder()).session(session)
    if known is not None and known.config:
        if place_at(places_of(project, settings), place) is None:
            return f"Its session is {session}; it judges in a sandbox of its own, and nobody goes on with it there."
        return f"ashep sandbox {issue} -- {words}"
    own = "" if "CLAUDE_CONFIG_DIR" not in os.environ else f"CLAUDE_CONFIG_DIR={shlex.quote(str(claude_folder()))} "
    return f"cd {shlex.quote(str(place))} && {own}{words}"


async def _begun(runner: OpencodeRunner) -> None:
    """See to it that the server of a place runs.

    One that lives is left alone: our config.yaml, or PATH, may be another than the daemon's, and would begin it again.
    """
    async with aclosing(runner):
        try:
            await runner.attach()
        except RunnerUnavailable:
            await call_runner(runner.start, runner.agents)
