"""What `ashep sync-agents` asks the server: its agents, providers and models."""

import os
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio import to_thread

from ashep.adapters import processes
from ashep.adapters.opencode.server import Record, folder_of
from ashep.config.sync import ServerAgent
from ashep.connect import opencode_of
from ashep.core.facts.runs import Model
from ashep.core.policy.settings import Settings
from ashep.errors import RunnerUnavailable, UsageError
from ashep.ports.runner import Catalog

_BOUND = 90.0
"""Seconds for a server to start and to answer."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What the server has."""

    agents: tuple[ServerAgent, ...]
    models: tuple[Model, ...]
    default: Model | None


async def offer(project: Path, state: Path, settings: Settings) -> Offer:
    """Ask the server; a managed one that does not run is started for that, and ended again."""
    server = settings.runners.opencode
    if settings.runners.own:
        name = settings.runners.name
        raise UsageError(f"only OpenCode is asked, and the runner of this project is {name}: write agents.yaml by hand")
    runner = opencode_of(project, settings)
    as_found = server.url is not None or await to_thread.run_sync(runs, state)
    try:
        with anyio.fail_after(_BOUND):
            await runner.start()
            catalog: Catalog = await runner.catalog()
            listed = await runner.agents()
    except TimeoutError as error:
        raise RunnerUnavailable(f"the agent server did not answer in {_BOUND:g} s") from error
    finally:
        with anyio.CancelScope(shield=True):
            await (runner.aclose() if as_found else runner.stop_server())
    agents = tuple(
        ServerAgent(one.name, one.mode, bool(one.native), one.writes, one.model, hidden=bool(one.hidden))
        for one in listed
    )
    return Offer(agents, catalog.models, catalog.default)


def runs(state: Path) -> bool:
    """Say whether the managed server lives."""
    try:
        record = Record.model_validate_json((folder_of(state, os.environ) / "server.json").read_bytes())
    except (OSError, ValueError):
        return False
    return bool(processes.holders_of(record.mark))
