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
    return [
        target.name or f"{'apprise' if target.command is None else 'command'}-{place}"
        for place, target in enumerate(notify.targets, 1)
    ]


# --- what is worth a person -----------------------------------------------------------------------------------------


class Worth(NamedTuple):
    """Something that is worth a person."""

    event: NoticeKind
    text: str
    issue: str | None = None
    about: str = ""


def _rate_question(world: World, fact: issues.PersonAsked | issues.PersonReminded | runs.InputWanted) -> Worth:
    waits = f"{'still ' if isinstance(fact, issues.PersonReminded) else ''}waits for you"
    text = f"{_name_issue(world, fact.issue)} {waits}, until {fact.due:%Y-%m-%d %H:%M}Z: {fact.question}"
    return Worth("waiting", text, fact.issue)


def _rate_takeover(world: World, fact: runs.SessionTaken) -> Worth | None:
    label = world.settings.labels.paused
    text = f"{_name_issue(world, fact.issue)} waits until the label {label} is taken off: {fact.why}"
    # whoever set the label themselves, or is only to be quiet, need not be told
    return Worth("waiting", text, fact.issue) if fact.label == "ours" else None


_WAITS = ("dirty", "locked", "failed")  # why a base is not moved, where a person can see to it


def _in_the_way(world: World, fact: delivery.LandingRefused) -> Worth | None:
    flow = world.flows.get(fact.issue)
    first = flow is not None and flow.work.landing is not None and flow.work.landing.refused == 1
    text = f"{_name_issue(world, fact.issue)} is done and cannot land: {fact.why}"
    return Worth("waiting", text, fact.issue) if first and fact.code in _WAITS else None


def _opened(world: World, fact: delivery.PullRequestOpened) -> Worth | None:
    flow = world.flows.get(fact.issue)
    text = f"{_name_issue(world, fact.issue)} is done, and its pull request waits for you: {fact.url}"
    return Worth("waiting", text, fact.issue) if flow is not None and flow.reviewed else None


def _parked(world: World, fact: issues.IssueParked) -> Worth:
    return Worth("parked", f"{_name_issue(world, fact.issue)} is parked ({fact.code}): {fact.why}", fact.issue)


def _budget(_: World, fact: resources.BudgetWarned | resources.BudgetReached) -> Worth | None:
    if fact.issue is not None and isinstance(fact, resources.BudgetReached):
        return None  # its issue parks, and says so
    until = f" (until {fact.until:%Y-%m-%d %H:%M}Z)" if fact.until else ""
    return Worth("budget", f"{fact.why}{until}", fact.issue, f"{fact.scope} {fact.name}".strip())


def _rate_audit(_: World, fact: resources.AccountAudited) -> Worth | None:
    count = len(fact.findings) + fact.more
    words = (f"{found.code}: {f'{found.issue} ' if found.issue else ''}{found.what}" for found in fact.findings[:3])
    text = f"the audit has {count} finding{'s' if count > 1 else ''}: {'; '.join(words)}"
    return Worth("finding", text, about="audit") if fact.findings else None


WORTH: dict[type, Callable[[World, Any], Worth | None]] = {
    issues.PersonAsked: _rate_question,
    issues.PersonReminded: _rate_question,
    runs.SessionTaken: _rate_takeover,
    runs.InputWanted: _rate_question,
    issues.IssueParked: _parked,
    delivery.LandingRefused: _in_the_way,
    delivery.PullRequestOpened: _opened,
    resources.BudgetWarned: _budget,
    resources.BudgetReached: _budget,
    resources.AccountAudited: _rate_audit,
    resources.FolderLeft: lambda world, fact: Worth("finding", fact.why, about="folder"),
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


def _name_issue(world: World, issue: str) -> str:
    flow = world.flows.get(issue)
    return f"{issue} ({flow.issue.title})" if flow else issue


# --- what follows from a fact ---------------------------------------------------------------------------------------


def plan_notices(before: World, world: World, fact: Fact) -> list[Fact]:
    """Say what follows from a fact for those who are to be told; `world` has the fact folded in, `before` has not."""
    match fact:
        case resources.TimerDue():
            return [*_timer(before, world, fact)]
        case resources.NoticeFailed():
            return [*_failed(before, world, fact)]
        case resources.Adopted(kind="settings"):
            # the life before this one ended without a word: its configuration, or a better one, is in force again
            text = f"ashep ended without a word: {world.notices.lost}; it runs again"
            lost = Worth("stopped_unexpectedly", text, about="ashep") if world.notices.lost else None
            return [*_drop_targets(world), *_want_notice(world, lost)]
        case _:
            rule = WORTH.get(type(fact))
            return _want_notice(world, rule(world, fact)) if rule is not None else []


def _want_notice(world: World, worth: Worth | None) -> list[Fact]:
    notify = world.settings.notify
    if worth is None or not notify.targets or worth.event not in notify.events:
        return []
    text = clean(" ".join(worth.text.split()))
    short = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    return [resources.NoticeWanted(worth.event, short, (*targets(notify),), worth.issue, worth.about, world.seq)]


def _drop_targets(world: World) -> Iterator[Fact]:
    known = targets(world.settings.notify)
    for name in sorted({name for notice in world.notices.wanted for name in notice.to}.difference(known)):
        ids = tuple(notice.id for notice in world.notices.list_unsent(name))
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
            yield from _want_notice(world, Worth("provider_down", text, about=outage.what))
        return
    quiet, urgent = world.notices.quiet, world.settings.notify.urgent
    is_loud = quiet is None or quiet <= world.now
    notices = [one for one in world.notices.list_unsent(about) if is_loud or one.event in urgent]
    standing = tuple(notice.id for notice in notices if _stands(world, notice))
    over = tuple(notice.id for notice in notices if not _stands(world, notice))
    why = f"{len(standing)} to be told" + (f", {len(over)} over before that" if over else "")
    yield resources.NoticesGathered(about, standing, why, over)


def _failed(before: World, world: World, fact: resources.NoticeFailed) -> Iterator[Fact]:
    earlier, route = before.notices.route(fact.target), world.notices.route(fact.target)
    if earlier.open is None or earlier.open.key != fact.key:
        return
    if fact.target not in targets(world.settings.notify) or route.tries >= TRIES:
        if ids := tuple(notice.id for notice in world.notices.list_unsent(fact.target)):
            yield resources.NoticesGivenUp(fact.target, ids, f"{route.tries} failures, the last: {fact.error[:300]}")
        return
    again = min(FIRST_AGAIN * 2 ** min(route.tries - 1, 20), LAST_AGAIN)
    yield resources.NoticesDelayed(fact.target, world.now + again, f"failure {route.tries}: {fact.error[:300]}")


# --- when, and what is to be sent -----------------------------------------------------------------------------------


def dues(world: World) -> list[tuple[str, datetime]]:
    """When each target is to be told something, and when a server has been away for long, by their timers' keys."""
    notify, notices = world.settings.notify, world.notices
    if not notify.targets:
        return []
    found = [(f"{TIMER}:{name}", due) for name in targets(notify) if (due := _due(world, name)) is not None]
    if "provider_down" in notify.events:
        found += [(f"{OUTAGE}:{outage.what}", outage.since + AWAY) for outage in notices.outages if not outage.told]
    return found


def _due(world: World, target: str) -> datetime | None:
    route, waiting = world.notices.route(target), world.notices.list_unsent(target)
    if not waiting or is_under_way(route):
        return None
    notify, quiet = world.settings.notify, world.notices.quiet
    begins = (notice.noted if quiet is None or notice.event in notify.urgent else quiet for notice in waiting)
    due = min(max(notice.noted + notify.batch, begin) for notice, begin in zip(waiting, begins, strict=True))
    return max(due, route.after or due)


def is_under_way(route: Route) -> bool:
    """Whether a message to a target is being sent."""
    return route.open is not None or bool(route.gathered)


def messages(world: World) -> list[SendNotice]:
    """The messages that are to be sent and are not under way."""
    commands: list[SendNotice] = []
    for route in world.notices.routes:
        if route.gathered and route.open is None:
            notices = tuple(
                dataclasses.replace(notice, to=()) for notice in world.notices.wanted if notice.id in route.gathered
            )
            commands.append(SendNotice(f"notice/{route.target}/{route.number}", route.target, notices, route.tries))
    return commands


def open_messages(world: World) -> list[SendNotice]:
    """The messages that have no answer yet: after a crash they are sent again."""
    return [route.open for route in world.notices.routes if route.open is not None]


def is_to_be_told(world: World, by: datetime) -> bool:
    """Whether somebody is being told something, or is to be, by this time."""
    if any(is_under_way(route) for route in world.notices.routes):
        return True
    return any(due <= by and key.startswith(f"{TIMER}:") for key, due in dues(world))
