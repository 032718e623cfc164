"""Reads become facts by difference: what a read shows is compared with the World, and only what differs is a fact.

An unchanged read leaves nothing (design section 3). `as_of` is the sequence number at which the read began.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime

from ashep.core import breaker
from ashep.core.budgets import is_worth_telling
from ashep.core.commands import AnswerRequest
from ashep.core.criteria import Criteria, hash_of
from ashep.core.events import (
    ChangeHinted,
    CriteriaChanged,
    DiskSeen,
    Fact,
    IssueGone,
    IssueSeen,
    LeaseExpired,
    LeaseLost,
    ReadyChanged,
    RequestGone,
    RequestOpened,
    RunnerSeen,
    ServerFailed,
    SessionSeen,
    TreeSeen,
    TurnSeen,
)
from ashep.core.evolve_flow import stale
from ashep.core.flow import Flow
from ashep.core.model import Issue, Tree
from ashep.core.orphans import LEASE_GRACE
from ashep.core.requests import Request
from ashep.core.room import is_low
from ashep.core.world import World

NO_CHECKS = Criteria()
"""What stands for an issue's checks that were taken away, or cannot be read any more."""


def looked(world: World, ready: tuple[str, ...], issues: Iterable[Issue], tree: Tree | None, as_of: int) -> list[Fact]:
    """Compare a complete view of the tracker, and the work tree, with the World."""
    facts: list[Fact] = []
    if tree is not None and tree != world.tree:
        facts.append(TreeSeen(tree))
    seen = list(issues)
    for issue in seen:
        facts += issue_read(world, issue, as_of)
    facts += _gone(world, {issue.id for issue in seen}, as_of)
    return facts + ready_read(world, ready, as_of)


def ready_read(world: World, ready: tuple[str, ...], as_of: int) -> list[Fact]:
    """Compare a complete view of what is ready with what is known of it."""
    added = tuple(issue for issue in ready if issue not in world.ready)
    removed = tuple(sorted({*world.ready}.difference(ready)))
    return [ReadyChanged(added, removed, as_of)] if added or removed or not world.ready_fresh else []


def issue_read(world: World, view: Issue, as_of: int) -> list[Fact]:
    """Compare one issue with what is known of it."""
    flow = world.flows.get(view.id)
    if flow is None:
        return [IssueSeen(view.id, view, as_of)]
    if stale(flow, as_of) or (view == flow.issue and not flow.look_again and flow.stage != "closed"):
        return []
    return [IssueSeen(view.id, view, as_of)]


def criteria_read(flow: Flow, criteria: Criteria | None) -> list[Fact]:
    """Compare an issue's checks with those that were adopted, and tell others once; None: there are none."""
    known = flow.criteria
    if known is None or not flow.active:
        return []
    now = hash_of(criteria or NO_CHECKS)
    if now == (known.seen or known.hash or hash_of(NO_CHECKS)):
        return []
    why = "somebody changed the checks in the acceptance criteria; those that were adopted go on to count"
    return [CriteriaChanged(flow.issue.id, now, why)]


def _gone(world: World, listed: set[str], as_of: int) -> Iterator[Fact]:
    for issue in sorted(world.unclosed):
        flow = world.flows[issue]
        if issue not in listed and not flow.look_again and not stale(flow, as_of):
            yield IssueGone(issue, as_of)


def expired_leases(world: World, leases: Iterable[tuple[Issue, datetime | None]], now: datetime) -> list[Fact]:
    """Find the issues whose holder, another daemon, must be dead: each lease is told of once."""
    return [
        LeaseExpired(view.id, view.assignee, expired)
        for view, expired in leases
        if expired is not None
        and expired + LEASE_GRACE <= now
        and view.stamp is not None
        and view.assignee not in (None, world.actor)
        and (flow := world.flows.get(view.id)) is not None
        and flow.expired != (view.assignee, expired)
    ]


def lease_lost(world: World, issue: str, why: str, as_of: int) -> list[Fact]:
    """A heartbeat was refused: that says nothing where our own write has changed the issue meanwhile."""
    flow = world.flows.get(issue)
    return [] if flow is None or not flow.leased or flow.lease_lost or stale(flow, as_of) else [LeaseLost(issue, why)]


def hinted(world: World) -> list[Fact]:
    """Something may have changed: worth a fact only where a start could come from the present view."""
    return [ChangeHinted()] if world.ready_fresh else []


def runner_read(world: World, seen: RunnerSeen) -> list[Fact]:
    """Compare the agent server's state with what is known of it."""
    if seen == world.runner:
        return []
    known = world.server.instance
    if seen.state == "up" and world.managed and known not in ("", seen.instance):
        return [ServerFailed(known, "it ended by itself, or did not answer any more and was ended"), seen]
    return [seen]


def turn_read(world: World, seen: TurnSeen) -> list[Fact]:
    """Compare a read of a session with what is known of the turn; a verdict that waits for a fresh read gets it."""
    flow = world.flows.get(seen.issue)
    run = flow.run if flow else None
    if flow is None or run is None or run.id != seen.run or run.ended or seen.n != run.prompt.n or not run.prompt.sent:
        return []
    if seen.as_of < run.effect_seq or seen.as_of < run.fresh_after:
        return []
    same = seen.state == run.turn and seen.people == run.people and seen.instance == run.turn_instance
    looked_into = run.doubted and seen.life is not None and seen.state == "running"
    told = same and run.fresh_after == 0 and not looked_into
    if told and not is_worth_telling(world, flow, run, seen) and not breaker.is_worth_telling(world, run, seen):
        return []
    return [seen]


def session_read(world: World, seen: SessionSeen) -> list[Fact]:
    """Compare a read of a session that a person took with what is known; whether they are quiet is said when asked."""
    flow = world.flows.get(seen.issue)
    held = flow.held if flow else None
    if flow is None or held is None:
        back = flow.resume if flow else None
        return [seen] if back is not None and not set(seen.people) <= set(back.people) else []
    asked = held.fresh_after != 0 and seen.as_of >= held.fresh_after
    return [seen] if asked or (seen.people, seen.busy) != (held.people, held.busy) else []


def requests_read(world: World, listed: Iterable[Request], as_of: int) -> list[Fact]:
    """Compare what the server lists as unanswered with what is known of each run's requests."""
    found: dict[str, list[Request]] = {}
    for request in listed:
        found.setdefault(request.session, []).append(request)
    facts: list[Fact] = []
    for issue in sorted(world.live):
        flow, run = world.flows[issue], world.flows[issue].run
        if run is None or run.ended or run.session is None or not run.prompt.sent or flow.held is not None:
            continue
        mine = found.get(run.session, [])
        known = {*flow.requests, *(pending.request.id for pending in run.requests)}
        facts += (RequestOpened(issue, run.id, one, as_of) for one in mine if one.id not in known)
        under_way = {command.request for command in flow.open if isinstance(command, AnswerRequest)}
        gone = (pending for pending in run.requests if pending.request not in mine and pending.seq <= as_of)
        facts += (RequestGone(issue, run.id, one.request.id, as_of) for one in gone if one.request.id not in under_way)
    return facts


def disk_read(world: World, free: int) -> list[Fact]:
    """Compare the room on the disk with what is known of it."""
    low = is_low(free, was_low=world.disk_low)
    return [] if low == world.disk_low else [DiskSeen("low" if low else "ok")]
