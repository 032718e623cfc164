"""What follows where a provider refuses: its phases wait, no attempt is used up, and one run tries before the rest.

OpenCode asks a provider again by itself, for ever (facts/opencode.md 5, 20). For a short while it is let: the run goes
on, and its deadline moves by the wait. Then the run is ended without blame and begins again when the provider may be
tried, in the same session where the same agent takes it.
"""

from datetime import timedelta

from ashep.core.facts.issues import RetryScheduled
from ashep.core.facts.resources import ProviderRecovered, ProviderRefused
from ashep.core.facts.runs import Refusal, RunEnded, TurnSeen
from ashep.core.facts.vocabulary import Fact
from ashep.core.state.flow import Flow
from ashep.core.state.holds import Hold
from ashep.core.state.pending_intents import unfounded
from ashep.core.state.providers import Outage, outage_of
from ashep.core.state.run import Run, provider_of
from ashep.core.state.world import World

PATIENCE = timedelta(minutes=1)
"""A run waits in its session for a provider that is asked again within this."""

TRIES = 5
"""So often in a row OpenCode may ask a provider again within a turn: about a minute by its own backoff."""

BACKOFF = (timedelta(seconds=30), timedelta(minutes=15))
"""From a refusal without a time of the provider's own to the next try: the first wait, which doubles; the longest."""

SLACK = timedelta(seconds=5)
"""Times at which a provider may be tried that differ by less are the same: a server tells its own in whole seconds."""

ABORTED = "MessageAbortedError"


def after_read(world: World, flow: Flow, fact: TurnSeen) -> list[Fact]:
    """Say what a read of a turn shows of its provider."""
    run = flow.run
    if run is None or unfounded(flow, run, fact):
        return []
    provider = _provider(world, run, fact)
    outage = outage_of(world.outages, provider)
    if fact.refused is not None:
        return _refused(world, run, provider, outage, fact.refused, ends=ends_run(world, fact))
    if outage is not None and outage.tried_since is not None and _took(outage, fact):
        return [ProviderRecovered(provider, f"{run.id} was not refused", run.id)]
    return []


def ends_run(world: World, fact: TurnSeen) -> bool:
    """Whether a refusal is the end of its run: it ended the turn, or the wait would be long."""
    if fact.refused is None:
        return False
    again = fact.refused.wait(world.now)
    return fact.state == "finished" or fact.refused.attempt > TRIES or (again is not None and again > PATIENCE)


def stopped(world: World, flow: Flow, run: Run, fact: TurnSeen) -> list[Fact]:
    """End a run whose provider refused: that is no agent's failure; the phase is wanted as before."""
    assert fact.refused is not None
    why = f"{_provider(world, run, fact) or 'the provider'} refused: {fact.refused.why[:300]}"
    free = run.spent[0] == 0  # what used nothing cannot go round in circles at anybody's cost
    ended = RunEnded(
        fact.issue, run.id, "aborted", why, error=fact.error, abort=fact.state == "running", counts=not free
    )
    if flow.phase is None:
        return [ended]
    code = f"provider_{fact.refused.kind}"
    return [ended, RetryScheduled(fact.issue, flow.phase, flow.failures, world.now, f"stopped; {why}", code)]


def is_worth_telling(world: World, run: Run, seen: TurnSeen) -> bool:
    """Whether a read shows that the provider refused, or once more, or not any more."""
    attempt = seen.refused.attempt if seen.refused is not None else 0
    outage = outage_of(world.outages, _provider(world, run, seen)) if world.outages else None
    ripe = outage is not None and 0 < outage.proof_after <= seen.as_of and seen.state == "running" and not attempt
    return attempt != run.refused or ripe


def hold_of(world: World, provider: str | None) -> Hold | None:
    """Say why nothing starts on a provider now; None: nothing is in the way."""
    outage = outage_of(world.outages, provider or "")
    if outage is None:
        return None
    what = {
        "limited": "takes no more for now",
        "down": "does not answer as it should",
        "unauthorized": "refuses our credentials",
    }
    code, said = f"provider_{outage.kind}", f"{provider or 'the provider'} {what[outage.kind]}: {outage.why[:200]}"
    if outage.tried_since is None:
        return Hold(code, said, provider or "")
    if trying(world, outage.provider):
        return Hold(code, f"{said}; one run tries whether that is over", provider or "")
    return None


def shut(world: World) -> tuple[tuple[str, str], ...]:
    """The providers on which nothing starts now, and why: an input of all rules."""
    holds = ((outage.provider, hold_of(world, outage.provider)) for outage in world.outages)
    return tuple((provider, hold.code) for provider, hold in holds if hold is not None)


def is_tried(world: World, provider: str) -> bool:
    """Whether one run alone may start on a provider."""
    outage = outage_of(world.outages, provider)
    return outage is not None and outage.tried_since is not None


def trying(world: World, provider: str) -> bool:
    """Whether a run is under way on a provider."""
    runs = (world.flows[issue].run for issue in world.indexes.live)
    return any(run is not None and not run.ended and _provider(world, run) == provider for run in runs)


def _provider(world: World, run: Run, fact: TurnSeen | None = None) -> str:
    return (fact.provider if fact else None) or provider_of(run, world.seen)


def _took(outage: Outage, fact: TurnSeen) -> bool:
    if fact.state == "finished":
        return fact.error is None or not fact.error.startswith(ABORTED)
    return fact.state == "running" and 0 < outage.proof_after <= fact.as_of


def _refused(
    world: World, run: Run, provider: str, outage: Outage | None, refusal: Refusal, *, ends: bool
) -> list[Fact]:
    tried = outage is None or outage.tried_since is not None
    row = 1 if outage is None else outage.refusals + tried
    again, backoff = refusal.wait(world.now) or timedelta(), min(BACKOFF[0] * 2 ** min(row - 1, 10), BACKOFF[1])
    wait = again if again > PATIENCE or not ends else max(again, backoff)
    until = None if refusal.kind == "unauthorized" else world.now + wait
    lasts = outage is not None and (outage.until is None or (until is not None and until <= outage.until + SLACK))
    if lasts and not tried:
        return []
    return [ProviderRefused(provider, refusal.kind, refusal.why[:300], until, row, run.id)]
