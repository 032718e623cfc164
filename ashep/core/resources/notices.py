"""What is worth a person, and when they are told: the rules of `notify`.

Everything that is to be told is a decision (`NoticeWanted`), made when it happens: what an old journal holds is not
told. After `batch`, and not in quiet hours, what stands by then is gathered into one message for each target; what is
over, an answered question say, is left out. A message that fails is tried again with whatever is to be told by then.

A message whose answer was lost in a crash is sent again: nobody can be asked whether it came. A person who is told
twice has lost a glance, one who is not told has lost a night. Each notice has an id, so that a program can tell.
"""

import dataclasses
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from ashep.core.facts import delivery, issues, resources, runs
from ashep.core.facts.commands import SendNotice
from ashep.core.facts.vocabulary import Fact
from ashep.core.policy.settings import NoticeKind, Notify, NotifyTarget
from ashep.core.state.notices import Route
from ashep.core.state.timers import split_timer
from ashep.core.state.world import World
from ashep.core.text import clean

AWAY = timedelta(minutes=5)
"""How long a server must be away before a person is told."""

TRIES = 20
"""Failures in a row after which a target is not told any more what it was to be told: some seven hours."""

FIRST_AGAIN, LAST_AGAIN = timedelta(seconds=30), timedelta(minutes=30)
"""Between the tries of a message, which double from the first to the longest."""

LONGEST = 600
"""Characters of a notice."""

TIMER, OUTAGE = "notice", "outage"
"""Names of timers: a target is to be told something; a server has been away for long."""


def targets(notify: Notify) -> dict[str, NotifyTarget]:
    """Give the targets by their names."""
    return dict(zip(names(notify), notify.targets, strict=True))


def names(notify: Notify) -> list[str]:
    """Give the names of the targets, in their order."""
    return [target.name or f"{_kind(target)}-{place}" for place, target in enumerate(notify.targets, 1)]


def _kind(target: NotifyTarget) -> str:
    return "command" if target.command is not None else "apprise"


# --- what is worth a person -----------------------------------------------------------------------------------------


class Worth(NamedTuple):
    """Something that is worth a person."""

    event: NoticeKind
    text: str
    issue: str | None = None
    about: str = ""


def _asked(world: World, fact: issues.PersonAsked | issues.PersonReminded | runs.InputWanted) -> Iterator[Worth]:
    waits = f"{'still ' if isinstance(fact, issues.PersonReminded) else ''}waits for you"
    text = f"{_named(world, fact.issue)} {waits}, until {fact.due:%Y-%m-%d %H:%M}Z: {fact.question}"
    yield Worth("waiting", text, fact.issue)


def _taken(world: World, fact: runs.SessionTaken) -> Iterator[Worth]:
    if fact.label == "ours":  # whoever set the label themselves, or is only to be quiet, need not be told
        label = world.settings.labels.paused
        text = f"{_named(world, fact.issue)} waits until the label {label} is taken off: {fact.why}"
        yield Worth("waiting", text, fact.issue)


_WAITS = ("dirty", "locked", "failed")  # why a base is not moved, where a person can see to it


def _in_the_way(world: World, fact: delivery.LandingRefused) -> Iterator[Worth]:
    flow = world.flows.get(fact.issue)
    if flow is not None and flow.work.landing is not None and flow.work.landing.refused == 1 and fact.code in _WAITS:
        yield Worth("waiting", f"{_named(world, fact.issue)} is done and cannot land: {fact.why}", fact.issue)


def _opened(world: World, fact: delivery.PullRequestOpened) -> Iterator[Worth]:
    flow = world.flows.get(fact.issue)
    if flow is not None and flow.reviewed:
        text = f"{_named(world, fact.issue)} is done, and its pull request waits for you: {fact.url}"
        yield Worth("waiting", text, fact.issue)


def _parked(world: World, fact: issues.IssueParked) -> Iterator[Worth]:
    yield Worth("parked", f"{_named(world, fact.issue)} is parked ({fact.code}): {fact.why}", fact.issue)


def _budget(_: World, fact: resources.BudgetWarned | resources.BudgetReached) -> Iterator[Worth]:
    if fact.issue is not None and isinstance(fact, resources.BudgetReached):
        return  # its issue parks, and says so
    until = f" (until {fact.until:%Y-%m-%d %H:%M}Z)" if fact.until else ""
    yield Worth("budget", f"{fact.why}{until}", fact.issue, f"{fact.scope} {fact.name}".strip())


def _found(world: World, fact: resources.AccountAudited) -> Iterator[Worth]:
    if fact.findings:
        count = len(fact.findings) + fact.more
        first = "; ".join(
            f"{finding.code}: {f'{finding.issue} ' if finding.issue else ''}{finding.what}"
            for finding in fact.findings[:3]
        )
        yield Worth("finding", f"the audit has {count} finding{'s' if count > 1 else ''}: {first}", about="audit")


def _left(_: World, fact: resources.FolderLeft) -> Iterator[Worth]:
    yield Worth("finding", fact.why, about="folder")


WORTH: dict[type, Callable[[World, Any], Iterator[Worth]]] = {
    issues.PersonAsked: _asked,
    issues.PersonReminded: _asked,
    runs.SessionTaken: _taken,
    runs.InputWanted: _asked,
    issues.IssueParked: _parked,
    delivery.LandingRefused: _in_the_way,
    delivery.PullRequestOpened: _opened,
    resources.BudgetWarned: _budget,
    resources.BudgetReached: _budget,
    resources.AccountAudited: _found,
    resources.FolderLeft: _left,
}
"""The facts that are worth a person, and what is said. (Servers that are away: `ashep.core.state.notices.SERVERS`.)
"""


def _stands(world: World, notice: resources.Notice) -> bool:
    """Whether what happened is still so: what is over need not be told any more."""
    flow = world.flows.get(notice.issue) if notice.issue else None
    match notice.event:
        case "waiting" if flow is not None and flow.takeover is not None:
            return flow.since == notice.noted
        case "waiting" | "parked":
            reminded = flow.question.reminded if flow and flow.question else None
            if flow is None or notice.noted not in (flow.since, reminded):
                return False
            waits = flow.stage == "person" or flow.waits_for_input or flow.reviewed
            waits = waits or flow.code in {f"landing_{code}" for code in _WAITS}
            return waits if notice.event == "waiting" else flow.stage == "parked"
        case "provider_down":
            return world.notices.outage(notice.about) is not None
        case "finding" if notice.about == "audit":
            return bool(world.findings)
        case _:
            return True


def _named(world: World, issue: str) -> str:
    flow = world.flows.get(issue)
    return f"{issue} ({flow.issue.title})" if flow else issue


# --- what follows from a fact ---------------------------------------------------------------------------------------


def told(before: World, world: World, fact: Fact) -> list[Fact]:
    """Say what follows from a fact for those who are to be told; `world` has the fact folded in, `before` has not."""
    match fact:
        case resources.TimerDue():
            return [*_timer(before, world, fact)]
        case resources.NoticeFailed():
            return [*_failed(before, world, fact)]
        case resources.Adopted(kind="settings"):
            return [*_gone(world), *_lost(world)]
        case _:
            rule = WORTH.get(type(fact))
            return [*_wanted(world, rule(world, fact))] if rule is not None else []


def _wanted(world: World, found: Iterator[Worth]) -> Iterator[Fact]:
    notify = world.settings.notify
    for one in found:
        if notify.targets and one.event in notify.events:
            text = clean(" ".join(one.text.split()))
            short = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
            yield resources.NoticeWanted(one.event, short, (*targets(notify),), one.issue, one.about, world.seq)


def _lost(world: World) -> Iterator[Fact]:
    """The life before this one ended without a word: its configuration, or a better one, is in force again."""
    if world.notices.lost:
        text = f"ashep ended without a word: {world.notices.lost}; it runs again"
        yield from _wanted(world, iter([Worth("stopped_unexpectedly", text, about="ashep")]))


def _gone(world: World) -> Iterator[Fact]:
    known = targets(world.settings.notify)
    for name in sorted({name for notice in world.notices.wanted for name in notice.to}.difference(known)):
        ids = tuple(notice.id for notice in world.notices.of(name))
        yield resources.NoticesGivenUp(name, ids, "it is in the configuration no more")


def _timer(before: World, world: World, fact: resources.TimerDue) -> Iterator[Fact]:
    name, about = split_timer(fact.key)
    if name not in (TIMER, OUTAGE) or (fact.key, fact.due) not in dues(before):
        return
    if name == OUTAGE:
        outage = world.notices.outage(about)
        if outage is not None:
            since = f"{outage.since:%Y-%m-%d %H:%M}Z"
            text = f"{outage.what} is away since {since}: {outage.why}"
            yield from _wanted(world, iter([Worth("provider_down", text, about=outage.what)]))
        return
    notices = [one for one in world.notices.of(about) if not _is_kept(world, one)]
    standing = tuple(notice.id for notice in notices if _stands(world, notice))
    over = tuple(notice.id for notice in notices if not _stands(world, notice))
    why = f"{len(standing)} to be told" + (f", {len(over)} over before that" if over else "")
    yield resources.NoticesGathered(about, standing, why, over)


def _failed(before: World, world: World, fact: resources.NoticeFailed) -> Iterator[Fact]:
    earlier, route = before.notices.route(fact.target), world.notices.route(fact.target)
    if earlier.open is None or earlier.open.key != fact.key:
        return
    if fact.target not in targets(world.settings.notify) or route.tries >= TRIES:
        if ids := tuple(one.id for one in world.notices.of(fact.target)):
            yield resources.NoticesGivenUp(fact.target, ids, f"{route.tries} failures, the last: {fact.error[:300]}")
        return
    again = min(FIRST_AGAIN * 2 ** min(route.tries - 1, 20), LAST_AGAIN)
    yield resources.NoticesDelayed(fact.target, world.now + again, f"failure {route.tries}: {fact.error[:300]}")


# --- when, and what is to be sent -----------------------------------------------------------------------------------


def _is_kept(world: World, notice: resources.Notice) -> bool:
    quiet = world.notices.quiet
    return quiet is not None and quiet > world.now and notice.event not in world.settings.notify.urgent


def dues(world: World) -> list[tuple[str, datetime]]:
    """When each target is to be told something, and when a server has been away for long, by their timers' keys."""
    notify, notices = world.settings.notify, world.notices
    if not notify.targets:
        return []
    found = [(f"{TIMER}:{name}", due) for name in targets(notify) if (due := _due(world, name)) is not None]
    if "provider_down" in notify.events:
        found += [(f"{OUTAGE}:{one.what}", one.since + AWAY) for one in notices.outages if not one.told]
    return found


def _due(world: World, target: str) -> datetime | None:
    route, waiting = world.notices.route(target), world.notices.of(target)
    if not waiting or is_under_way(route):
        return None
    notify, quiet = world.settings.notify, world.notices.quiet
    batch = [one.noted + notify.batch for one in waiting]
    times = [
        due if quiet is None or one.event in notify.urgent else max(due, quiet)
        for one, due in zip(waiting, batch, strict=True)
    ]
    return max(min(times), route.after or min(times))


def is_under_way(route: Route) -> bool:
    """Whether a message to a target is being sent."""
    return route.open is not None or bool(route.gathered)


def messages(world: World) -> list[SendNotice]:
    """The messages that are to be sent and are not under way."""
    commands: list[SendNotice] = []
    for route in world.notices.routes:
        if route.gathered and route.open is None:
            ids = {*route.gathered}
            notices = tuple(dataclasses.replace(one, to=()) for one in world.notices.wanted if one.id in ids)
            key = f"notice/{route.target}/{route.number}"
            commands.append(SendNotice(key, route.target, notices, route.tries))
    return commands


def open_messages(world: World) -> list[SendNotice]:
    """The messages that have no answer yet: after a crash they are sent again."""
    return [route.open for route in world.notices.routes if route.open is not None]


def is_to_be_told(world: World, by: datetime) -> bool:
    """Whether somebody is being told something, or is to be, by this time."""
    if any(is_under_way(route) for route in world.notices.routes):
        return True
    return any(due <= by and key.startswith(f"{TIMER}:") for key, due in dues(world))
