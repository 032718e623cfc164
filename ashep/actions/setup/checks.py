"""The command by which a project tests itself: the likeliest are tried on the base, and what somebody types is."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from anyio import to_thread

from ashep.actions.project_checks import CheckProposal, CheckTrial, find_base_checks, try_check
from ashep.config import settings_in, settled
from ashep.core.policy.settings import Settings
from ashep.errors import AshepError
from ashep.factories import FOLDER

Words = tuple[str, ...]

_MOST_TRIED = 2
"""Commands that are tried, the likeliest first, until one passes."""


async def try_likeliest(project: Path, known: Words, say: Callable[[str], None]) -> tuple[CheckTrial, ...]:
    """Try the likeliest commands until one passes. `known`: that of the files, the likeliest; empty: they have none.

    No `AshepError` is raised: where no checkout can be made `say` hears why, and nothing is tried.
    """
    try:
        proposals = await find_base_checks(project)
    except AshepError as error:
        say(f"no command can be tried: {error}")
        return ()
    if known:
        first = _choose(proposals, known)
        proposals = (first, *(item for item in proposals if item.rule != first.rule))
    trials = list[CheckTrial]()
    for proposal in proposals[:_MOST_TRIED]:
        trials.append(await _try(project, proposal, say))
        if trials[-1].passes:
            break
    return tuple(trials)


async def try_command(project: Path, command: Words, say: Callable[[str], None]) -> CheckTrial:
    """Try a command that somebody typed."""
    try:
        proposal = _choose(await find_base_checks(project), command)
    except AshepError:  # the trial says it, too
        proposal = CheckProposal("typed", command, "")
    return await _try(project, proposal, say)


def _choose(proposals: tuple[CheckProposal, ...], command: Words) -> CheckProposal:
    """Return the proposal that a command is of, which knows how its dependencies come; else one without."""
    for item in proposals:
        if command in (item.command, item.install.command if item.install else ()):
            return replace(item, command=command)
    return CheckProposal("typed", command, "")


async def _try(project: Path, proposal: CheckProposal, say: Callable[[str], None]) -> CheckTrial:
    """Try a check with what config.yaml gives it already, and with more only where it fails for want of that."""
    try:
        settings = await to_thread.run_sync(settings_in, project / FOLDER)
    except AshepError:  # a file of the user's that is wrong: it stays
        settings = await to_thread.run_sync(settled, Settings(), project)
    worker = settings.worker.model_copy(update={"workspace": "worktree"})  # for places objects would be kept here
    settings = settings.model_copy(update={"worker": worker})
    try:
        return await try_check(project, settings, proposal, tell=lambda line: say(f"trying on the base: {line}"))
    except AshepError as error:
        return CheckTrial(proposal, proposal.command, str(error))
