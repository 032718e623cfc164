"""The rules of the agent server itself: when one that failed is started again, and when one that grew is begun anew.

A server that grows beyond its memory limit is drained: no run starts on it, those under way end, and then it is ended
and another begun. Sessions are on disk and go on. Nothing waits for ever: a drain that a long turn outlasts is given up
for a while, and at twice the limit the server is begun anew with turns under way: those begin once more, as after any
death of a server, instead of the machine choosing whom it kills for want of memory.
"""

from datetime import datetime, timedelta

from ashep.core.facts.resources import RecycleWanted, ServerFailed, ServerMemorySeen, ServerRestartPlanned
from ashep.core.facts.vocabulary import Fact
from ashep.core.policy.language import Bytes
from ashep.core.state.holds import Hold
from ashep.core.state.server import MOST, Server, times_over
from ashep.core.state.world import World, WorldRules

STABLE = timedelta(minutes=10)
"""A server that answered for so long did not fail at its start: what fails next is counted afresh."""

FIRST_DELAY, LONGEST_DELAY = timedelta(seconds=1), timedelta(minutes=5)
"""From the second failure in a row on a start waits: so long, then twice as long each time, and never longer."""

DRAIN = timedelta(minutes=30)
"""So long no run starts on a server that is to be begun anew; then that is given up for `SPACING`."""

SPACING = timedelta(minutes=30)
"""Between two recyclings, at least: a server that needs more than its limit does not keep work from going on."""


def failed(before: World, world: World, fact: ServerFailed) -> list[Fact]:
    """Say when a managed server that failed is started again."""
    server, at = before.server, world.now
    stable = bool(fact.instance) and server.since is not None and at - server.since >= STABLE
    failures = 1 if stable else server.failures + 1
    return [ServerRestartPlanned(failures, at + _delay(failures), fact.why)]


def _delay(failures: int) -> timedelta:
    if failures <= 1:
        return timedelta()
    return min(FIRST_DELAY * 2 ** min(failures - 2, 20), LONGEST_DELAY)


def memory_seen(before: World, world: World, fact: ServerMemorySeen) -> list[Fact]:
    """Say whether a server that has grown so large is to be begun anew."""
    server, times = world.server, times_over(fact.used, fact.limit)
    if times < 1 or fact.instance != server.instance:
        return []
    at_once = times >= MOST
    why = f"it holds {_size(fact.used)}, and its limit is {Bytes(fact.limit)}"
    if server.recycling is not None:
        worse = at_once and not server.recycling.at_once
        return [RecycleWanted(fact.instance, server.recycling.until, True, why)] if worse else []
    return [RecycleWanted(fact.instance, world.now + DRAIN, at_once, why)] if is_spaced(server, world.now) else []


def is_spaced(server: Server, now: datetime) -> bool:
    """Whether the last recycling is long enough ago for another one."""
    return server.recycled is None or now - server.recycled >= SPACING


def hold(world: World) -> Hold | None:
    """The hold that stands for every run while the server is to be begun anew; None: it is not."""
    recycling, runner = world.server.recycling, world.runner
    if recycling is None or runner is None or runner.instance != recycling.instance:
        return None
    return Hold("recycling", f"the agent server is begun anew once it is at rest: {recycling.why}")


def is_due(world: World) -> bool:
    """Whether the server is to be ended and begun anew now."""
    recycling = world.server.recycling
    return recycling is not None and hold(world) is not None and (recycling.at_once or not world.in_use)


def memory_read(world: World, instance: str, used: int | None, now: datetime) -> list[Fact]:
    """Compare the server's memory with what is known of it: told where it matters, and again where it still does."""
    limit, server = world.settings.runners.opencode.memory_limit, world.server
    if used is None or limit is None or not world.managed or not instance or instance != server.instance:
        return []
    times = times_over(used, limit)
    again = times > 0 and server.recycling is None and is_spaced(server, now)
    return [ServerMemorySeen(instance, used, limit)] if times != server.over or again else []


def _size(used: int) -> str:
    return f"{used / 1024**3:.2f} GiB"


RULES: WorldRules = {ServerFailed: failed, ServerMemorySeen: memory_seen}
