"""The World's indexes: what follows from `flows` alone, kept beside it so that nobody needs to look at all of them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from rpds import HashTrieMap, HashTrieSet

from ashep.core.state.delivery import is_shared
from ashep.core.state.flow import Flow
from ashep.core.state.frozen import replace
from ashep.core.state.intents import AT_IT, NEXT, PASSED_BY, Place, at_liberty, steps_of
from ashep.core.state.ordered import Ordered
from ashep.core.state.timers import flow_dues

if TYPE_CHECKING:
    from ashep.core.state.world import World


def turn(world: World) -> str | None:
    """Give the issue that lands now, or next; None: nobody does."""
    rank, _, issue = next(iter(world.landings), (PASSED_BY, 0, ""))
    return issue if rank < PASSED_BY else None


SETS = ("live", "unclosed", "busy", "leased", "takeovers", "reviewed")


INDEXES = (*SETS, "dues", "due_order", "dependents", "slots", "landings", "branches", "branch_runs")
"""The World's fields that say nothing but what `flows` does."""


def put(world: World, issue: str, flow: Flow) -> World:
    """Put a flow into the World, and the indexes right."""
    changes: dict[str, object] = {"flows": world.flows.insert(issue, flow)}
    for name, within in zip(SETS, _within(flow), strict=True):
        index: HashTrieSet[str] = getattr(world, name)
        if within != (issue in index):
            changes[name] = index.insert(issue) if within else index.remove(issue)
    before, due = world.dues.get(issue), min((due for _, due in flow_dues(flow)), default=None)
    if due != before:
        order = world.due_order if before is None else world.due_order.remove((before, issue))
        changes["due_order"] = order if due is None else order.insert((due, issue))
        changes["dues"] = world.dues.remove(issue) if due is None else world.dues.insert(issue, due)
    earlier = world.flows.get(issue)
    blockers = earlier.issue.blocked_by if earlier else ()
    if flow.issue.blocked_by != blockers:
        changes["dependents"] = _depends(world.dependents, issue, blockers, flow.issue.blocked_by)
    slot = _slot(flow)
    if slot != world.slots.get(issue):
        changes["slots"] = world.slots.remove(issue) if slot is None else world.slots.insert(issue, slot)
    was, branch = earlier and _shared(earlier), _shared(flow)
    if was != branch:
        left, now = () if was is None else (was,), () if branch is None else (branch,)
        changes["branches"] = _depends(world.branches, issue, left, now)
    was, branch = earlier and _run_on_shared(earlier), _run_on_shared(flow)
    if was != branch:
        left, now = () if was is None else (was,), () if branch is None else (branch,)
        changes["branch_runs"] = _depends(world.branch_runs, issue, left, now)
    before, place = earlier and _place(earlier), _place(flow)
    if place != before:
        queue = world.landings if before is None else world.landings.remove(before)
        changes["landings"] = queue if place is None else queue.insert(place)
    return replace(world, **changes)


def _shared(flow: Flow) -> str | None:
    """The branch that it shares with others, for as long as it is not done there."""
    own, run = flow.work.own, flow.run
    at_work = flow.active or (run is not None and not run.settled)
    return own.branch if own is not None and at_work and is_shared(own.branch) else None


def _run_on_shared(flow: Flow) -> str | None:
    """The branch that it shares with others, while a run of it may be at work there."""
    branch = flow.run.branch if flow.run is not None and not flow.run.settled else None
    return branch if branch is not None and is_shared(branch) else None


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


def _slot(flow: Flow) -> int | None:
    """The number of its own tree, for as long as somebody works on it there, or may still."""
    if flow.work.own is None:
        return None
    at_work = flow.stage in ("work", "person", "finishing") or (flow.run is not None and not flow.run.settled)
    return flow.work.own.slot if at_work else None


def _within(flow: Flow) -> tuple[bool, ...]:
    """Which of `SETS` an issue belongs to."""
    run = flow.run
    live, taken = run is not None and not run.settled, flow.takeover is not None
    return live, flow.stage != "closed", flow.busy, flow.leased, taken, flow.reviewed


def _depends(
    dependents: HashTrieMap[str, HashTrieSet[str]], issue: str, before: tuple[str, ...], now: tuple[str, ...]
) -> HashTrieMap[str, HashTrieSet[str]]:
    for blocker in before:
        left = dependents[blocker].remove(issue)
        dependents = dependents.insert(blocker, left) if left else dependents.remove(blocker)
    for blocker in now:
        dependents = dependents.insert(blocker, dependents.get(blocker, HashTrieSet()).insert(issue))
    return dependents


def indexed(world: World) -> World:
    """Make the indexes anew from `flows`: those of a World that was kept without them."""
    sets: dict[str, list[str]] = {name: [] for name in SETS}
    dues: dict[str, datetime] = {}
    dependents: HashTrieMap[str, HashTrieSet[str]] = HashTrieMap()
    for issue, flow in world.flows.items():
        for name, within in zip(SETS, _within(flow), strict=True):
            if within:
                sets[name].append(issue)
        if (due := min((due for _, due in flow_dues(flow)), default=None)) is not None:
            dues[issue] = due
        if flow.issue.blocked_by:
            dependents = _depends(dependents, issue, (), flow.issue.blocked_by)
    slots = {issue: slot for issue, flow in world.flows.items() if (slot := _slot(flow)) is not None}
    order = Ordered[tuple[datetime, str]].of((due, issue) for issue, due in dues.items())
    places = (place for flow in world.flows.values() if (place := _place(flow)) is not None)
    queue = Ordered[Place].of(places)
    branches: HashTrieMap[str, HashTrieSet[str]] = HashTrieMap()
    branch_runs: HashTrieMap[str, HashTrieSet[str]] = HashTrieMap()
    for issue, flow in world.flows.items():
        if (branch := _shared(flow)) is not None:
            branches = _depends(branches, issue, (), (branch,))
        if (branch := _run_on_shared(flow)) is not None:
            branch_runs = _depends(branch_runs, issue, (), (branch,))
    made = {name: HashTrieSet(issues) for name, issues in sets.items()}
    return replace(
        world, dues=HashTrieMap(dues), due_order=order, dependents=dependents, slots=HashTrieMap(slots),
        landings=queue, branches=branches, branch_runs=branch_runs, **made,
    )  # fmt: skip
