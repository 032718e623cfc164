"""What is kept in mind of each runner: its life, absence, failures and memory. Values and folds, no rules.

The rules that come of it are in `ashep.core.resources.agent_server`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias, get_args

from rpds import HashTrieMap

from ashep.core.facts.resources import (
    RecycleWanted,
    RunnerSeen,
    ServerEnded,
    ServerFailed,
    ServerMemorySeen,
    ServerRestartPlanned,
)
from ashep.core.policy.runner_kinds import OPENCODE
from ashep.core.state.flow import Flow
from ashep.core.state.immutable import replace
from ashep.core.state.run import with_watch
from ashep.core.state.timers import shifted

RESTART, RECYCLE = "server", "recycle"
"""The timers of runners: a failed server may be started again; it is waited no longer for it to be at rest."""

STEADY = timedelta(minutes=1)
"""A server that went away sooner after it came back comes and goes; and the longest that one is left alone."""

MOST = 2
"""No more is told of how often the limit goes into the memory."""


@dataclass(frozen=True, slots=True)
class Recycling:
    """A server is to be ended and begun again."""

    instance: str
    until: datetime
    """Until then nothing new is begun on it; then it goes on as it is."""
    at_once: bool
    """It is not waited for what runs on it."""
    why: str


@dataclass(frozen=True)
class Server:
    """What the World keeps of a runner: of its server, if it has one."""

    instance: str = ""
    """The last life that answered this daemon, if it was not ended by ashep."""
    since: datetime | None = None
    """When that life was first seen."""
    away: datetime | None = None
    """Since when it does not answer."""
    back: datetime | None = None
    """When it last came back."""
    times: int = 0
    """How often it has come back in a row, as last told."""
    failures: int = 0
    """Lives and starts in a row that came to nothing."""
    start_after: datetime | None = None
    """A managed one is not started again before."""
    used: int = 0
    """Bytes, as last told."""
    over: int = 0
    """How often the limit goes into that, two at most."""
    recycling: Recycling | None = None
    recycled: datetime | None = None
    """When the last recycling was over, one way or another."""
    version: str = ""
    """Which one answered last."""


NO_SERVER = Server()

Servers: TypeAlias = "HashTrieMap[str, Server]"
"""By the names of runners."""

NO_SERVERS: Servers = HashTrieMap()

Seen: TypeAlias = "HashTrieMap[str, RunnerSeen]"
"""What each runner showed last since the daemon started, by name."""

NOT_SEEN: Seen = HashTrieMap()

ServerFact = ServerFailed | ServerEnded | ServerMemorySeen | ServerRestartPlanned | RecycleWanted


def get_server(servers: Servers, runner: str) -> Server:
    """Give what is kept of a runner."""
    return servers.get(runner, NO_SERVER)


def reset_servers(servers: Servers) -> Servers:
    """A daemon starts: it knows nothing of the lives that run, if any do, and makes a start of its own at once."""
    for name in sorted(servers):
        begin = replace(servers[name], instance="", since=None, failures=0, start_after=None)
        servers = servers.insert(name, begin)
    return servers


def update_server(server: Server, fact: RunnerSeen, time: datetime) -> Server:
    """The server was looked at."""
    if fact.state != "up":
        return replace(server, away=server.away or time)
    server = replace(
        server, away=None, back=time if fact.times else None, times=fact.times, version=fact.detail or server.version
    )
    if fact.instance == server.instance:
        return server
    server = replace(server, instance=fact.instance, since=time, used=0, over=0)
    other = server.recycling is not None and server.recycling.instance != fact.instance
    return _rested(server, time) if other else server


def flapped(server: Server) -> int:
    """How often in a row one that is away came back for less than a minute."""
    if server.back is None or server.away is None or server.away - server.back >= STEADY:
        return 0
    return server.times


def steadied(times: int) -> timedelta:
    """How long one that flapped so often is left alone before it counts as back."""
    return min(timedelta(seconds=2 ** min(times - 1, 10)), STEADY) if times else timedelta()


def happened(servers: Servers, fact: ServerFact, time: datetime) -> Servers:
    """Fold a fact about a server."""
    runner = fact.runner or OPENCODE
    server = get_server(servers, runner)
    match fact:
        case ServerFailed():
            server = replace(server, instance="")
        case ServerEnded() if fact.instance == server.instance:
            ended = replace(server, instance="")
            server = ended if server.recycling is None else _rested(ended, time)
        case ServerEnded():
            pass
        case ServerMemorySeen():
            server = replace(server, used=fact.used, over=times_over(fact.used, fact.limit))
        case ServerRestartPlanned():
            server = replace(server, failures=fact.failures, start_after=fact.due if fact.due > time else None)
        case RecycleWanted():
            server = replace(server, recycling=Recycling(fact.instance, fact.until, fact.at_once, fact.why))
    return servers.insert(runner, server)


def times_over(used: int, limit: int) -> int:
    """How often the limit goes into the memory, `MOST` at most."""
    return min(used // max(limit, 1), MOST)


def expire_timer(servers: Servers, name: str, runner: str, due: datetime, time: datetime) -> Servers:
    """One of a runner's times has come."""
    runner = runner or OPENCODE
    server = get_server(servers, runner)
    if name == RESTART:
        return servers.insert(runner, replace(server, start_after=None)) if server.start_after == due else servers
    rests = server.recycling is not None and server.recycling.until == due
    return servers.insert(runner, _rested(server, time)) if rests else servers


def _rested(server: Server, time: datetime) -> Server:
    return replace(server, recycling=None, recycled=time)


def dues(servers: Servers) -> Iterator[tuple[str, datetime]]:
    """The times that are waited for, by their timers' keys; those of OpenCode name no runner."""
    for name in sorted(servers):
        server, whose = servers[name], "" if name == OPENCODE else name
        if server.start_after is not None:
            yield f"{RESTART}:{whose}", server.start_after
        if server.recycling is not None:
            yield f"{RECYCLE}:{whose}", server.recycling.until


def jumped(servers: Servers, gap: timedelta) -> Servers:
    """The machine slept: no absence grew by that, for what waits for its end was moved by the gap already."""
    for name in sorted(servers):
        if (away := servers[name].away) is not None:
            servers = servers.insert(name, replace(servers[name], away=away + gap))
    return servers


def absence(server: Server, fact: RunnerSeen, time: datetime) -> timedelta:
    """For how long nobody could reach the server that answers again."""
    return time - server.away if fact.state == "up" and server.away is not None else timedelta()


def returned(flow: Flow, gap: timedelta, time: datetime) -> Flow:
    """The server was away for so long: that is no time of the run's, nor working time of the cycle."""
    before = flow.counters
    flow = shifted(flow, gap)
    if before.cycle_began is not None:
        thought = before.thought + min(flow.counters.thought - before.thought, time - before.cycle_began)
        flow = replace(flow, counters=replace(flow.counters, thought=thought))
    run = flow.run
    if run is None or run.ended:
        return flow
    if run.watch.overdue and run.deadline is not None and run.deadline > time:
        run = with_watch(run, overdue=False)
    if run.watch.probation in ("suspect", "stop"):  # the doubt begins when the server answers again
        run = with_watch(replace(run, stop=False), probation="no", sign_due=time + run.watch.sign_after)
    return replace(flow, run=run)


FOLDS = dict.fromkeys(get_args(ServerFact), happened)
