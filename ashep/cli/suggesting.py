"""What `ashep criteria --suggest` does: an agent proposes the checks of an issue, and a person confirms."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ashep.cli import screen
from ashep.cli.place import configured
from ashep.errors import UsageError

if TYPE_CHECKING:
    from ashep.actions.suggest import Proposal
    from ashep.core.policy.settings import Settings
    from ashep.ports.tracker import Seen


def proposed(project: Path, settings: "Settings", found: "Seen", known: tuple[str, ...]) -> "Proposal":
    """Ask an agent of the project's server; a managed server that did not run is ended again."""
    import anyio
    from anyio import to_thread

    from ashep.actions.offer import runs
    from ashep.actions.suggest import adviser, suggest
    from ashep.adapters.clock import RealClock
    from ashep.config import load
    from ashep.connect import runner_of

    agent = adviser(load(configured(project)).agents)

    async def ask() -> "Proposal":
        runner, clock = runner_of(project, settings), RealClock()
        as_found = await to_thread.run_sync(runs, configured(project) / "state")
        screen.note(f"{agent.id if agent else 'the default agent'} is asked; that can take minutes")
        try:
            await runner.start()
            return await suggest(runner, clock, found, agent, known)
        finally:
            with anyio.CancelScope(shield=True):
                clock.close()
                if not as_found:
                    await runner.stop_server()
                await runner.aclose()

    return anyio.run(ask)


def confirmed(found: "Proposal", *, yes: bool) -> bool:
    """Show a proposal with its doubts, and say whether a person wants it."""
    for finding in found.reading.findings:
        screen.say_painted((finding.severity, "yellow"), (f"{finding} [{finding.code}]", None))
    screen.say(f"```{found.given.language}\n{found.given.text}```")
    if yes:
        return True
    if not sys.stdin.isatty():
        screen.note(f"proposed by {found.by}, and written nowhere: --yes writes it")
        return False
    return typer.confirm(f"proposed by {found.by}. Put it into the issue?", default=False)


def refuse_agents() -> None:
    """Let nobody but a person ask for it: `UsageError` before a minute is spent."""
    from ashep.core.issues.people import AGENT_ACTORS

    if os.environ.get("BEADS_ACTOR", "").startswith(AGENT_ACTORS):
        raise UsageError("only a person asks for checks, and no agent")
