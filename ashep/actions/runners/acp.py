"""Agents that speak the Agent Client Protocol: whether one can be used, and what stands in its sessions."""

import shutil
from importlib.util import find_spec

import anyio
from anyio import to_thread

from ashep.actions.doctor_security import CheckLine
from ashep.actions.runner_wait import Say, call_runner, silent
from ashep.actions.runners.base import Examination, ServerCatalog, SessionReference, describe_guarantee
from ashep.errors import AshepError, RunnerRefused, RunnerUnauthorized
from ashep.factories import NamedRunner
from ashep.ports.transcripts import TranscriptStep
from ashep.redaction import Redaction

MOST_BYTES = 2 * 1024 * 1024
"""Bytes of a session's record that are read."""

_EXTRA = "pip install 'ashep[acp]'"


async def examine(runner: Examination) -> list[CheckLine]:
    """Look at an agent that speaks ACP: its program, the library, and what it says that it can do."""
    from ashep.adapters.runners.acp import AcpRunner  # few have one

    name, command = runner.name, runner.chosen.command or ("",)
    where = await to_thread.run_sync(shutil.which, command[0])
    if where is None:
        remedy = f"install it, or correct runners.{name}.command"
        return [CheckLine("error", name, f"{command[0]} is not on PATH", remedy)]
    if find_spec("acp") is None:
        return [CheckLine("error", name, "an agent that speaks ACP takes the extra `acp` of ashep", _EXTRA)]
    lines = [CheckLine("ok", name, f"{' '.join(command)}: {where}")]
    if not runner.ask:
        return lines
    made = await to_thread.run_sync(runner.make)
    assert isinstance(made, AcpRunner)
    try:
        version = (await call_runner(made.start, made.catalog, runner.say)).version
    except RunnerUnauthorized as error:
        return [*lines, CheckLine("error", name, str(error), f"log in: run `{command[0]}` by hand")]
    except AshepError as error:
        return [*lines, CheckLine("error", name, str(error), f"run `{' '.join(command)}` by hand")]
    finally:
        with anyio.CancelScope(shield=True):
            await made.aclose()
    lines = [CheckLine("ok", name, f"{' '.join(command)} {version}: {where}")]
    return [*lines, describe_guarantee(name, made.guarantee, runner.settings)]


async def offers(runner: NamedRunner, say: Say = silent) -> ServerCatalog:
    """Start the agent, ask for its models, and end it: it has no other agents by name. Raises `AshepError`."""
    from ashep.adapters.runners.acp import AcpRunner  # few have one

    agent = await to_thread.run_sync(runner.make)
    assert isinstance(agent, AcpRunner)
    try:
        models = (await call_runner(agent.start, agent.catalog, say)).models
    finally:
        with anyio.CancelScope(shield=True):
            await agent.aclose()
    return ServerCatalog((), (), None, {runner.name: models})


async def read_steps(reference: SessionReference, redaction: Redaction) -> tuple[TranscriptStep, ...]:
    """Read the end of a session from what its agent wrote down. Raises `RunnerRefused`."""
    from ashep.adapters.runners.acp import AcpRunner  # few have one

    made = await to_thread.run_sync(reference.make, redaction)
    assert isinstance(made, AcpRunner)
    made.attach()
    if not await made.has_session(reference.session):
        raise RunnerRefused(f"{reference.name} has no session {reference.session}, or not any more")
    return await made.read_steps(reference.session, MOST_BYTES)
