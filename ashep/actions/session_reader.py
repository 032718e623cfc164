"""What stands in the session of a run, and where a browser shows it: read from what is there, and nothing is started.

A runner that a daemon has in its hands is not begun a second time next to it: OpenCode's server is asked where it
lives, of the others is read what their agents wrote down.
"""

from contextlib import aclosing
from pathlib import Path

from anyio import to_thread

from ashep.adapters.git.workspaces.clones import place_at
from ashep.adapters.runners.opencode import OpencodeRunner
from ashep.core.policy.runner_kinds import CLAUDE, OPENCODE
from ashep.core.policy.settings import Settings
from ashep.core.state.run import runner_of
from ashep.errors import RunnerRefused
from ashep.factories import claude_folder, make_place_runner, opencode_of, places_of, runner_folder, runners_of
from ashep.ports.runner_router import PrefixedRunner
from ashep.redaction import Redaction


async def link(project: Path, settings: Settings, session: str, folder: str | None) -> str:
    """Give the address at which a browser shows a session of OpenCode's; `folder` as `opened` has it.

    Raises `RunnerError` with why there is none.
    """
    if (name := runner_of(session)) != OPENCODE:
        raise RunnerRefused(f"a session of {name} has no page")
    async with aclosing(await _opencode(project, settings, folder, Redaction())) as runner:
        await _stands(runner, session)
        return runner.link(session, Path(folder) if folder else project)


async def tail(
    project: Path, settings: Settings, session: str, folder: str | None, limit: int, redaction: Redaction
) -> str:
    """Give the end of what was said in a session, at most so many characters. Raises `RunnerError` with why not."""
    name = runner_of(session)
    own = session.removeprefix(f"{name}:")
    if name == OPENCODE:
        async with aclosing(await _opencode(project, settings, folder, redaction)) as runner:
            await _stands(runner, session)
            return await runner.transcript(session, limit)
    kind = settings.runners.kind(name)
    if kind == CLAUDE:
        return redaction.text(await to_thread.run_sync(_of_claude, project, name, own, limit))
    if kind != "acp":
        raise RunnerRefused(f"{name} is a runner of your own: only the daemon asks it" if kind else f"{name} is gone")
    from ashep.adapters.runners.acp import AcpRunner  # few have one

    made = await to_thread.run_sync(lambda: runners_of(project, settings, redaction=redaction)[name])
    if isinstance(made, PrefixedRunner) and isinstance(made.runner, AcpRunner):
        made.runner.attach()
    if not await made.has_session(session):
        raise RunnerRefused(f"{name} has no session {own}, or not any more")
    return await made.transcript(session, limit)


def _of_claude(project: Path, name: str, session: str, limit: int) -> str:
    from ashep.adapters.runners.claude import (
        session_store,
        transcript,  # as above
    )

    file = session_store.SessionStore(runner_folder(project, name), claude_folder()).transcript(session)
    if file is None:
        raise RunnerRefused(f"Claude Code has no session {session}, or not any more")
    return transcript.tail(file, limit)


async def _opencode(project: Path, settings: Settings, folder: str | None, redaction: Redaction) -> OpencodeRunner:
    place = Path(folder) if folder else project
    alone = await to_thread.run_sync(place_at, places_of(project, settings), place) if settings.isolated else None
    if alone is not None:
        return make_place_runner(project, settings, alone, redaction=redaction)
    return opencode_of(project, settings, redaction=redaction)


async def _stands(runner: OpencodeRunner, session: str) -> None:
    await runner.attach()
    if not await runner.has_session(session):
        raise RunnerRefused(f"the agent server has no session {session}, or not any more")
