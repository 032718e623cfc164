"""Table of errors as facts: what a call that failed says of its effect, and of the tracker or the agent server."""

from datetime import timedelta
from typing import cast

from ashep import errors
from ashep.core.facts import commands, delivery, resources, sources, tracker
from ashep.core.facts.vocabulary import Fact
from ashep.core.text import clean

READS = (commands.ReadIssue, commands.ReadAnswer, commands.ReadAuthors)
"""What is tried again whatever the tracker says to it."""

LONGEST_TRACE = 20_000
"""Characters of a traceback that the log gets, its last ones."""

NO_AGENTS = (
    commands.ReadTree,
    commands.PrepareTree,
    commands.SealTree,
    commands.PreparePrompt,
    commands.VerifyWork,
    commands.IntegrateWork,
    commands.MoveBase,
    commands.OpenPullRequest,
)
"""Where these fail, git or the disk did, and no agent."""


def server_lost(error: errors.RunnerError) -> resources.RunnerSeen:
    """Say that a runner is away, wants another password, or refuses its configuration."""
    misconfigured = "misconfigured" if isinstance(error, errors.RunnerMisconfigured) else "away"
    state = "unauthorized" if isinstance(error, errors.RunnerUnauthorized) else misconfigured
    patient = isinstance(error, errors.ServerStarting)
    return resources.RunnerSeen(state, short(error)[:300], runner=error.runner, patient=patient)


def short(error: Exception) -> str:
    """Give the reason of an answer."""
    name = "" if isinstance(error, errors.AshepError) else f"{type(error).__name__}: "
    return clean(f"{name}{error}")[:500]


def is_final(error: BaseException) -> bool:
    """Whether nothing may go on after an error, or one in a group: the journal fails, or the disk that it is on."""
    inner = cast("tuple[BaseException, ...]", getattr(error, "exceptions", ()))
    return isinstance(error, (errors.DiskFailed, errors.JournalDamaged)) or any(map(is_final, inner))


def failed(command: commands.Command, error: Exception) -> list[Fact]:
    """Give the answer of a command that came to an error. Raises the error where nothing may go on after it."""
    key, why = command.key, short(error)
    line = " ".join(why.split())[:300]
    if is_final(error):
        raise error
    if isinstance(command, commands.SendNotice):
        return [resources.NoticeFailed(key, command.target, line)]
    issue = command.issue
    if isinstance(command, sources.SourceCommand):
        final = isinstance(error, errors.ForgeRefused | errors.TrackerRefused)
        wait = error.retry_after if isinstance(error, errors.ForgeUnavailable) else 0.0
        unforeseen = not isinstance(error, errors.AshepError)
        return [sources.SourceFailed(issue, key, line, timedelta(seconds=wait), final=final, unforeseen=unforeseen)]
    match command, error:
        case commands.RemoveTree(), _:  # it is asked for again much later: nobody waits for it
            return [delivery.TreeKept(issue, key, command.branch, line)]
        # nothing more is started at a tracker or server that is away until it was seen again
        case _, errors.TrackerUnavailable():
            return [tracker.TrackerLost(why), tracker.EffectFailed(issue, key, why, infra=True)]
        case _, errors.RunnerUnauthorized() | errors.RunnerUnavailable():
            return [server_lost(error), tracker.EffectFailed(issue, key, why, infra=True)]
        case _, errors.SessionUnavailable():
            return [tracker.EffectFailed(issue, key, why, infra=True)]
        case _, errors.RunnerRefused():
            return [tracker.EffectFailed(issue, key, why, infra=False)]
        case _, errors.GuardTripped():
            return [tracker.GuardRefused(issue, key)]
        case commands.ClaimIssue(), errors.TrackerRefused() | errors.ClaimLost():
            return [tracker.ClaimRefused(issue, key, why)]
        case commands.WriteIssue(), errors.TrackerRefused() | errors.ClaimLost():
            return [tracker.WriteRefused(issue, key, why)]
        case _, errors.TrackerRefused() | errors.ClaimLost():
            return [tracker.EffectFailed(issue, key, why, infra=isinstance(command, READS))]
        case commands.OpenPullRequest(), errors.ForgeUnavailable():
            return [delivery.LandingRefused(issue, key, "away", why, timedelta(seconds=error.retry_after))]
        case commands.OpenPullRequest(), errors.ForgeUnauthorized():
            return [delivery.LandingRefused(issue, key, "away", why)]
        case commands.OpenPullRequest(), errors.ForgeRefused():
            return [delivery.LandingRefused(issue, key, "refused", why)]
        case _, errors.RepositoryLocked() if isinstance(command, NO_AGENTS):
            return [tracker.EffectFailed(issue, key, why, infra=True, lock=error.lock)]
        case _, errors.AshepError() if isinstance(command, NO_AGENTS):
            return [tracker.EffectFailed(issue, key, why, infra=not isinstance(error, errors.TreeRefused))]
        case _:
            return [tracker.EffectFailed(issue, key, why, infra=True, unforeseen=True)]
