"""The rules of the agent server itself: when one that failed is started again, and when one that grew is begun again.

A server that grows beyond its memory limit is drained: no run starts on it, those under way end, and then it is ended
and another begun. Sessions are on disk and go on. Nothing waits for ever: a drain that a long turn outlasts is given up
for a while, and at twice the limit the server is begun again with turns under way: those begin once more, as after any
death of a server, instead of the machine choosing whom it kills for want of memory.
"""

from datetime import datetime, timedelta

from ashep.core.facts.resources import RecycleWanted, ServerFailed, ServerMemorySeen, ServerRestartPlanned
from ashep.core.facts.vocabulary import Fact
from ashep.core.policy.base_types import Bytes
from ashep.core.policy.runner_kinds import OPENCODE, spoken
from ashep.core.state.holds import Hold
from ashep.core.state.runner_state import MOST, Server, get_server, times_over
from ashep.core.state.world import World, WorldRules

STABLE = timedelta(minutes=10)
"""A server that answered for so long did not fail at its start: what fails next is counted afresh."""

FIRST_DELAY, LONGEST_DELAY = timedelta(seconds=1), timedelta(minutes=5)
"""From the second failure in a row on a start waits: so long, then twice as long each time, and never longer."""

DRAIN = timedelta(minutes=30)
"""So long no run starts on a server that is to be begun again; then that is given up for `SPACING`."""

SPACING = timedelta(minutes=30)
"""Between two recyclings, at least: a server that needs more than its limit does not keep work from going on."""


def failed(before: World, world: World, fact: ServerFailed) -> list[Fact]:
    """Say when a managed server that failed is started again."""
    server, at = get_server(before.servers, fact.runner), world.now
    stable = bool(fact.instance) and server.since is not None and at - server.since >= STABLE
    failures = 1 if stable else server.failures + 1
    delay = min(FIRST_DELAY * 2 ** min(failures - 2, 20), LONGEST_DELAY) if failures > 1 else timedelta()
    return [ServerRestartPlanned(failures, at + delay, fact.why, fact.runner)]


def memory_seen(before: World, world: World, fact: ServerMemorySeen) -> list[Fact]:
    """Say whether a server that has grown so large is to be begun again."""
    server, times = get_server(world.servers, fact.runner), times_over(fact.used, fact.limit)
    if times < 1 or fact.instance != server.instance:
        return []
    at_once = times >= MOST
    why = f"it holds {fact.used / 1024**3:.2f} GiB, and its limit is {Bytes(fact.limit)}"
    if server.recycling is not None:
        worse = at_once and not server.recycling.at_once
        return [RecycleWanted(fact.instance, server.recycling.until, True, why, fact.runner)] if worse else []
    until = world.now + DRAIN
    return [RecycleWanted(fact.instance, until, at_once, why, fact.runner)] if is_spaced(server, world.now) else []


def is_spaced(server: Server, now: datetime) -> bool:
    """Whether the last recycling is long enough ago for another one."""
    return server.recycled is None or now - server.recycled >= SPACING


def hold(world: World, runner: str) -> Hold | None:
    """The hold that stands for every run on a runner while its server is to be begun again; None: it is not."""
    recycling, seen = get_server(world.servers, runner).recycling, world.seen.get(runner)
    if recycling is None or seen is None or seen.instance != recycling.instance:
        return None
    return Hold("recycling", f"{spoken(runner)} is begun anew once it is at rest: {recycling.why}")


def is_due(world: World, runner: str) -> bool:
    """Whether a runner's server is to be ended and begun again now."""
    recycling = get_server(world.servers, runner).recycling
    return recycling is not None and hold(world, runner) is not None and (recycling.at_once or not world.in_use(runner))


def memory_read(world: World, instance: str, used: int | None, now: datetime) -> list[Fact]:
    """Compare the server's memory with what is known of it: told where it matters, and again where it still does."""
    limit, server = world.settings.runners.opencode.memory_limit, get_server(world.servers, OPENCODE)
    if used is None or limit is None or not world.dies(OPENCODE) or not instance or instance != server.instance:
        return []
    times = times_over(used, limit)
    again = times > 0 and server.recycling is None and is_spaced(server, now)
    return [ServerMemorySeen(instance, used, limit)] if times != server.over or again else []


RULES: WorldRules = {ServerFailed: failed, ServerMemorySeen: memory_seen}
