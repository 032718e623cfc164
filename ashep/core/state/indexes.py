"""The World's indexes: what follows from `flows` alone, kept next to it so that nobody needs to look at all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter

from rpds import HashTrieMap, HashTrieSet

from ashep.core.state.delivery import is_shared
from ashep.core.state.flow import Flow
from ashep.core.state.immutable import replace
from ashep.core.state.pending_intents import AT_IT, NEXT, PASSED_BY, Place, at_liberty, steps_of
from ashep.core.state.sorted_set import Ordered
from ashep.core.state.timers import flow_dues

NO_ISSUES: HashTrieSet[str] = HashTrieSet()
NO_DUES: HashTrieMap[str, datetime] = HashTrieMap()
NO_ORDER: Ordered[tuple[datetime, str]] = Ordered()
NO_DEPENDENTS: HashTrieMap[str, HashTrieSet[str]] = HashTrieMap()
NO_SLOTS: HashTrieMap[str, int] = HashTrieMap()
NO_QUEUE: Ordered[Place] = Ordered()

SETS = ("live", "unclosed", "busy", "leased", "takeovers", "reviewed")


@dataclass(frozen=True)
class Indexes:
    """What says nothing but what the flows do."""

    live: HashTrieSet[str] = NO_ISSUES
    """Issues whose run is not settled."""
    unclosed: HashTrieSet[str] = NO_ISSUES
    """Issues that are not closed."""
    busy: HashTrieSet[str] = NO_ISSUES
    """Issues of which something is under way, or could start by itself."""
    leased: HashTrieSet[str] = NO_ISSUES
    """Issues whose lease is kept alive."""
    takeovers: HashTrieSet[str] = NO_ISSUES
    """Issues whose session a person has."""
    reviewed: HashTrieSet[str] = NO_ISSUES
    """Issues whose pull request people look at."""
    dues: HashTrieMap[str, datetime] = NO_DUES
    """The earliest due time of each issue that has one."""
    due_order: Ordered[tuple[datetime, str]] = NO_ORDER
    """The same, the earliest first."""
    dependents: HashTrieMap[str, HashTrieSet[str]] = NO_DEPENDENTS
    """The issues that depend on an issue."""
    slots: HashTrieMap[str, int] = NO_SLOTS
    """The numbers of issues that are worked on in trees of their own."""
    landings: Ordered[Place] = NO_QUEUE
    """Issues whose work is to land, one at a time (`ashep.core.state.pending_intents`)."""
    branches: HashTrieMap[str, HashTrieSet[str]] = NO_DEPENDENTS
    """Issues of ours that are not done on a branch that they share with others."""
    branch_runs: HashTrieMap[str, HashTrieSet[str]] = NO_DEPENDENTS
    """Those of which a run may be at work on such a branch."""


NO_INDEXES = Indexes()


def turn(indexes: Indexes) -> str | None:
    """Give the issue that lands now, or next; None: nobody does."""
    rank, _, issue = next(iter(indexes.landings), (PASSED_BY, 0, ""))
    return issue if rank < PASSED_BY else None


def following(known: Indexes, earlier: Flow | None, flow: Flow) -> Indexes:
    """Put the indexes right where a flow takes the place of an earlier one, or of none."""
    issue, kept, run = flow.issue.id, vars(known), flow.run
    changes: dict[str, object] = {}
    live = run is not None and not run.settled
    members = live, flow.stage != "closed", flow.busy, flow.leased, flow.takeover is not None, flow.reviewed
    for name, within in zip(SETS, members, strict=True):
        if within != (issue in kept[name]):
            changes[name] = kept[name].insert(issue) if within else kept[name].remove(issue)
    before, due = known.dues.get(issue), min([due for _, due in flow_dues(flow)], default=None)
    if due != before:
        order = known.due_order if before is None else known.due_order.remove((before, issue))
        changes["due_order"] = order if due is None else order.insert((due, issue))
        changes["dues"] = known.dues.remove(issue) if due is None else known.dues.insert(issue, due)
    for name, on in GROUPS.items():
        was, now = on(earlier) if earlier else (), on(flow)
        if was != now:
            changes[name] = _depends(kept[name], issue, was, now)
    at_work = live or flow.stage in ("work", "person", "finishing")
    slot = flow.work.own.slot if flow.work.own is not None and at_work else None
    if slot != known.slots.get(issue):
        changes["slots"] = known.slots.remove(issue) if slot is None else known.slots.insert(issue, slot)
    before, place = earlier and _place(earlier), _place(flow)
    if place != before:
        queue = known.landings if before is None else known.landings.remove(before)
        changes["landings"] = queue if place is None else queue.insert(place)
    return replace(known, **changes) if changes else known


def _shared(flow: Flow) -> tuple[str, ...]:
    own, run = flow.work.own, flow.run
    if own is None or not is_shared(own.branch):
        return ()
    return (own.branch,) if flow.active or (run is not None and not run.settled) else ()


def _run_on_shared(flow: Flow) -> tuple[str, ...]:
    run = flow.run
    if run is None or run.branch is None or not is_shared(run.branch):
        return ()
    return () if run.settled else (run.branch,)


GROUPS: dict[str, Callable[[Flow], tuple[str, ...]]] = {
    "dependents": attrgetter("issue.blocked_by"), "branches": _shared, "branch_runs": _run_on_shared,
}  # fmt: skip
"""What an issue stands under in each index that is by something else."""


def _place(flow: Flow) -> Place | None:
    """Its place in the queue of those whose work is to land."""
    landing = flow.work.landing
    if landing is None or not landing.onto or landing.landed:
        return None
    waits = landing.due is not None or flow.effect_after is not None
    back = any(f"/{landing.seq}." in key for key, _ in flow.tries)  # others may have begun while it was passed by
    anew = not landing.refused or flow.code == "landing_moved"  # since that it was brought onto the base that is
    begun = bool(landing.commit) and anew and not back  # what it came to is not to be made again
    at_it = any(steps_of(flow)) or (begun and not waits)
    rank = AT_IT if at_it else PASSED_BY if waits or not at_liberty(flow) else NEXT
    return rank, landing.seq, flow.issue.id


def _depends(
    dependents: HashTrieMap[str, HashTrieSet[str]], issue: str, before: tuple[str, ...], now: tuple[str, ...]
) -> HashTrieMap[str, HashTrieSet[str]]:
    for blocker in before:
        left = dependents[blocker].remove(issue)
        dependents = dependents.insert(blocker, left) if left else dependents.remove(blocker)
    for blocker in now:
        dependents = dependents.insert(blocker, dependents.get(blocker, HashTrieSet()).insert(issue))
    return dependents


def indexed(flows: HashTrieMap[str, Flow]) -> Indexes:
    """Make the indexes again: those of a World that was kept without them."""
    known = NO_INDEXES
    for flow in flows.values():
        known = following(known, None, flow)
    return known
