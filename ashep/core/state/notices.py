"""Notification outbox: the messages to people, and the state of their delivery.

A notice is kept until each of its targets was told, it was over before that, or it was given up. A target gets one
message at a time, so that what could not be told is told together once it can be.
"""

import dataclasses
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ashep.core.facts.commands import Command, SendNotice
from ashep.core.facts.resources import (
    DaemonStarted,
    DaemonStopped,
    Notice,
    NoticeFailed,
    NoticesDelayed,
    NoticeSent,
    NoticesGathered,
    NoticesGivenUp,
    NoticeWanted,
    ProviderRecovered,
    ProviderRefused,
    QuietSeen,
    RunnerSeen,
)
from ashep.core.facts.tracker import TrackerLost, TrackerSeen
from ashep.core.facts.vocabulary import Fact
from ashep.core.policy.runner_kinds import spoken
from ashep.core.state.immutable import replace

RECORDS = (
    SendNotice, NoticeWanted, NoticesGathered, NoticesDelayed, NoticesGivenUp, NoticeSent, NoticeFailed, QuietSeen,
)  # fmt: skip
"""Records that change nothing but this part of the World."""


@dataclass(frozen=True)
class Route:
    """How it goes with a target."""

    target: str
    gathered: tuple[int, ...] = ()
    """What it is to be told now."""
    number: int = 0
    """The sequence number of the decision to tell that."""
    open: SendNotice | None = None
    """An intent without an answer."""
    after: datetime | None = None
    """It is not tried again before."""
    tries: int = 0
    """Failures in a row."""
    error: str = ""
    """Why it was not told last."""
    since: datetime | None = None
    """When it was not told first."""
    given_up: int = 0
    """Notices that it was never told, since it was told something last."""


@dataclass(frozen=True)
class Absence:
    """A server that does not answer."""

    what: str
    since: datetime
    why: str
    told: bool = False


@dataclass(frozen=True)
class Notices:
    """What people are to be told, and how that goes."""

    wanted: tuple[Notice, ...] = ()
    """The oldest first."""
    routes: tuple[Route, ...] = ()
    quiet: datetime | None = None
    """Nobody is told anything before, but what is urgent."""
    outages: tuple[Absence, ...] = ()
    process: int | None = None
    """The daemon that runs, or ended without a word."""
    lost: str = ""
    """How the last daemon ended, where it did without a word and nobody was told yet."""

    def route(self, target: str) -> Route:
        """How it goes with a target."""
        return next((route for route in self.routes if route.target == target), Route(target))

    def outage(self, what: str) -> Absence | None:
        """The outage of a server."""
        return next((outage for outage in self.outages if outage.what == what), None)

    def list_unsent(self, target: str) -> tuple[Notice, ...]:
        """What a target was not told yet."""
        return tuple(notice for notice in self.wanted if target in notice.to)


NOTHING_TOLD = Notices()


def _runner(fact: RunnerSeen) -> tuple[str, str | None]:
    known = {"unauthorized": "it refuses our password", "misconfigured": "it refuses its configuration"}
    words = known.get(fact.state, "it does not answer")
    return spoken(fact.runner), None if fact.state == "up" else fact.detail or words


def _provider(fact: ProviderRefused) -> tuple[str, str]:
    end = f" until {fact.until:%Y-%m-%d %H:%M}Z" if fact.until else ""
    words = {"limited": "it takes no more", "down": "it fails", "unauthorized": "it refuses our credentials"}
    return f"the provider {fact.provider}", f"{words[fact.kind]}{end}: {fact.why}"


SERVERS: dict[type, Callable[[Any], tuple[str, str | None]]] = {
    RunnerSeen: _runner,
    TrackerLost: lambda fact: ("the tracker", fact.error),
    TrackerSeen: lambda fact: ("the tracker", None),
    ProviderRefused: _provider,
    ProviderRecovered: lambda fact: (f"the provider {fact.provider}", None),
}
"""The facts that say of a server (by its name for people) why it is away, or, with None, that it is not."""

_FOLDED = frozenset({*RECORDS, *SERVERS, DaemonStarted, DaemonStopped})


def folded(notices: Notices, body: Fact | Command, seq: int, time: datetime, before: datetime) -> Notices:
    """Fold one record; most change nothing. `before` is the time of the record before it."""
    kind = type(body)
    if kind not in _FOLDED:
        return notices
    if kind in SERVERS:
        return _server(notices, *SERVERS[kind](body), time)
    match body:
        case DaemonStarted():
            old = notices.process
            lost = "" if old is None else f"process {old}, whose last record is of {before:%Y-%m-%d %H:%M:%S}Z"
            told = tuple(outage for outage in notices.outages if outage.told)  # the others are looked at afresh
            return replace(notices, process=body.pid, lost=lost, outages=told)
        case DaemonStopped():
            return replace(notices, process=None, lost="")
        case NoticeWanted():
            return _add_notice(notices, body, seq, time)
        case QuietSeen():
            return replace(notices, quiet=body.until)
        case NoticesGathered():
            route = replace(notices.route(body.target), gathered=body.notices, number=seq, after=None)
            return _routed(_remove_target(notices, body.target, {*body.left_out}), route)
        case SendNotice():
            return _routed(notices, replace(notices.route(body.target), gathered=(), open=body))
        case NoticesDelayed():
            return _routed(notices, replace(notices.route(body.target), after=body.due))
        case NoticesGivenUp():
            route = notices.route(body.target)
            route = replace(route, after=None, tries=0, given_up=route.given_up + len(body.notices))
            return _routed(_remove_target(notices, body.target, {*body.notices}), route)
        case NoticeSent() | NoticeFailed():
            route = notices.route(body.target)
            if route.open is None or route.open.key != body.key:
                return notices
            if isinstance(body, NoticeFailed):
                failed = replace(route, open=None, tries=route.tries + 1, error=body.error, since=route.since or time)
                return _routed(notices, failed)
            ids = {notice.id for notice in route.open.notices}
            return _routed(_remove_target(notices, body.target, ids), Route(body.target))
        case _:
            return notices


def _server(notices: Notices, what: str, why: str | None, time: datetime) -> Notices:
    known = notices.outage(what)
    if (known is None) == (why is None):
        return notices
    if why is None:
        return replace(notices, outages=tuple(outage for outage in notices.outages if outage is not known))
    return replace(notices, outages=(*notices.outages, Absence(what, time, why)))


def _add_notice(notices: Notices, fact: NoticeWanted, seq: int, time: datetime) -> Notices:
    notice = Notice(seq, time, fact.event, fact.text, fact.issue, fact.about, fact.cause, fact.to)
    if fact.event == "stopped_unexpectedly":
        notices = replace(notices, lost="")
    if fact.event == "provider_down":
        outages = (replace(outage, told=outage.told or outage.what == fact.about) for outage in notices.outages)
        notices = replace(notices, outages=tuple(outages))
    return replace(notices, wanted=(*notices.wanted, notice))


def _remove_target(notices: Notices, target: str, ids: Collection[int]) -> Notices:
    """A target need not be told these any more."""
    if not ids:
        return notices
    left: list[Notice] = []
    for notice in notices.wanted:
        to = tuple(name for name in notice.to if name != target) if notice.id in ids else notice.to
        if to:
            left.append(notice if to == notice.to else dataclasses.replace(notice, to=to))
    return replace(notices, wanted=tuple(left))


def _routed(notices: Notices, route: Route) -> Notices:
    """Keep how it goes with a target, as long as there is something to be said of it."""
    others = tuple(known for known in notices.routes if known.target != route.target)
    return replace(notices, routes=others if route == Route(route.target) else (*others, route))
