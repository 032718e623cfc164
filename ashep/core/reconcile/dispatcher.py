"""Dispatch, turn after turn, at a cost that does not grow with the number of issues.

An issue is looked at again where the last verdict on it may be another one now: something of its own changed; an input
of all rules did; it waited for a look at the tracker, and there was one; its cycle's time is up; or it waits for room
under a code that is no longer the code of what is in the way, or for caps of which one is not full any more. For all
others `ashep.core.reconcile.dispatch.dispatch_all` would come to what it came to before, which is nothing: a hold is a
fact only when its code changes.

A `Dispatcher` is a memory and no source of truth: what it says follows from the World alone, and one that has forgotten
everything says the same (tests/core/test_dispatcher.py).
"""

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from heapq import heappop, heappush
from typing import Literal

from ashep.core.delivery.repository import hold_of
from ashep.core.delivery.workspaces import branch_at, has_base, mode
from ashep.core.facts.issues import IssueHeld
from ashep.core.facts.records import Entry
from ashep.core.facts.resources import Adopted, BacklogHeld, ClockJumped, DaemonStarted, TimerDue
from ashep.core.facts.tracker import ReadyChanged, ReadySeen
from ashep.core.facts.vocabulary import Fact
from ashep.core.reconcile.dispatch import (
    CANDIDATE,
    QUEUES,
    WANTED,
    Capacity,
    DispatchVerdict,
    ForRoom,
    Kind,
    Rank,
    capacity_of,
    in_the_way,
    is_begun,
    queue_of,
    rank,
)
from ashep.core.resources.budgets import spent_providers
from ashep.core.resources.providers import shut
from ashep.core.runs.concurrency_caps import is_full
from ashep.core.state.flow import Flow, wall_time
from ashep.core.state.timers import split_timer
from ashep.core.state.world import World

Rule = Callable[[World, Flow, Capacity], DispatchVerdict]

KINDS: tuple[Literal["read", "write", "own"], ...] = ("read", "write", "own")

NOBODY: Rank = (-(10**9), "", "")
"""Before every rank."""


class WaitingIssues:
    """Issues of one queue by what they wait for."""

    def __init__(self) -> None:
        self.for_room: defaultdict[ForRoom, list[Rank]] = defaultdict(list)
        """In order, by what they wait for."""
        self.for_look: set[str] = set()
        self._places: dict[str, tuple[ForRoom, Rank]] = {}

    def enter(self, flow: Flow, waits: ForRoom | str) -> None:
        """Remember what an issue waits for; it waits for nothing yet."""
        if isinstance(waits, ForRoom):
            place = rank(flow)
            self._places[flow.issue.id] = (waits, place)
            insort(self.for_room[waits], place)
        elif waits == "look":
            self.for_look.add(flow.issue.id)

    def leave(self, issue: str) -> None:
        """Forget what an issue waits for."""
        self.for_look.discard(issue)
        known = self._places.pop(issue, None)
        if known is not None:
            ranks = self.for_room[known[0]]
            del ranks[bisect_left(ranks, known[1])]

    def iter_after(self, place: Rank) -> Iterator[Rank]:
        """Give all after this rank that wait for room."""
        for ranks in self.for_room.values():
            yield from ranks[bisect_right(ranks, place) :]

    def next_after(self, place: Rank, ways: dict[Kind, str | None], room: Capacity) -> Rank | None:
        """The first after this rank whose code is not what is in the way of its kind, or one of whose caps is free."""
        found: Rank | None = None
        for (kind, code, full), ranks in self.for_room.items():
            if ranks and (ways.get(kind, code) != code or not all(is_full(cap, room.runs) for cap in full)):
                at = bisect_right(ranks, place)
                if at < len(ranks) and (found is None or ranks[at] < found):
                    found = ranks[at]
        return found


class Dispatcher:
    """Says at each turn what `dispatch` would say."""

    def __init__(self) -> None:
        self._world: World | None = None
        self._inputs: tuple[object, ...] = ()
        """What every rule reads, and what changes while a daemon runs."""
        self._all = True
        self._touched: set[str] = set()
        self._queues = {queue: WaitingIssues() for queue, _ in QUEUES}
        self._times: dict[str, datetime] = {}
        """When the time of a cycle is up, of issues whose phase is wanted."""
        self._time_order: list[tuple[datetime, str]] = []

    def begin(self, world: World) -> None:
        """Take up a turn; where it does not go on from the end of the last one, everything is forgotten."""
        if self._world is not world:
            self._all = True

    def note(self, before: World, entry: Entry) -> None:
        """See what an entry of the turn touches; `before` has it not folded in."""
        match entry.body:
            case IssueHeld():
                return  # it says what is remembered already
            case DaemonStarted() | Adopted() | ClockJumped() | BacklogHeld():
                self._all = True
            case TimerDue(key=key):
                self._touched.add(split_timer(key)[1])
            case ReadyChanged(added=added, removed=removed):
                self._touched.update(added, removed)
            case ReadySeen(ids=ids):
                self._touched |= {*before.ready}.symmetric_difference(ids)
            case body:
                issue = getattr(body, "issue", None)
                if isinstance(issue, str):
                    self._touched.add(issue)

    def end(self, world: World) -> None:
        """The turn is over, and this is the World after it."""
        self._world = world

    def dispatch(self, world: World) -> list[Fact]:
        """Start what can be started now, and say for everything else why not."""
        if not is_begun(world):
            return []
        room = capacity_of(world)
        facts: list[Fact] = []
        due = self._due(world, room)
        for queue, rule in QUEUES:
            room = self._go_through(queue, rule, world, due[queue], room, facts)
        self._all = bool(room.branches)  # by the next turn they may be free again, as if nothing had been
        return facts

    def _due(self, world: World, room: Capacity) -> dict[str, list[Rank]]:
        """What must be looked at whatever becomes of the others, in order."""
        inputs = (
            world.seen, world.tracker, world.disk_low, world.pauses, world.tracker_error, spent_providers(world),
            shut(world), mode(world), has_base(world), world.indexes.branches, world.indexes.branch_runs, world.bases,
            hold_of(world), world.repository,
            *(world.servers[name].recycling for name in sorted(world.servers)),
        )  # fmt: skip
        if self._all or inputs != self._inputs:
            self._queues = {queue: WaitingIssues() for queue, _ in QUEUES}
            self._times, self._time_order = {}, []
            issues: Iterable[str] = world.indexes.unclosed
        else:
            issues = self._touched.union(self._overtime(world.now), {room.lock} if room.lock else ())
            if world.ready_fresh:
                issues |= self._queues[CANDIDATE].for_look
        self._inputs, self._all, self._touched = inputs, False, set()
        due: dict[str, list[Rank]] = {queue: [] for queue, _ in QUEUES}
        for issue in issues:
            for waiting in self._queues.values():
                waiting.leave(issue)
            self._times.pop(issue, None)
            flow = world.flows.get(issue)
            if flow is not None and (queue := queue_of(flow)) is not None:
                due[queue].append(rank(flow))
        for ranks in due.values():
            ranks.sort()
        return due

    def _overtime(self, now: datetime) -> Iterator[str]:
        while self._time_order and self._time_order[0][0] <= now:
            when, issue = heappop(self._time_order)
            if self._times.get(issue) == when:
                yield issue

    def _go_through(
        self, queue: str, rule: Rule, world: World, due: list[Rank], room: Capacity, facts: list[Fact]
    ) -> Capacity:
        waiting = self._queues[queue]
        place, at, ways, of = NOBODY, 0, _ways(queue, world, room), room
        begun: frozenset[tuple[str, str]] = frozenset()
        while True:
            if of is not room:
                ways, of = _ways(queue, world, room), room
            if begun != room.branches:  # who shares a branch on which somebody was begun just now waits for that
                names = {name for name, _ in room.branches - begun}
                met = [one for one in waiting.iter_after(place) if branch_at(world, world.flows[one[-1]]) in names]
                for one in met:
                    waiting.leave(one[-1])
                due, at, begun = sorted([*due[at:], *met]), 0, room.branches
            found = waiting.next_after(place, ways, room) if ways else None
            if at < len(due) and (found is None or due[at] < found):
                found = due[at]
                at += 1
            if found is None:
                return room
            place = found
            flow = world.flows[found[-1]]
            waiting.leave(flow.issue.id)
            verdict = rule(world, flow, room)
            waiting.enter(flow, verdict.waits)
            if queue == WANTED:
                self._keep_time(world, flow)
            facts += verdict.facts
            room = verdict.room

    def _keep_time(self, world: World, flow: Flow) -> None:
        policy = world.policy(flow)
        if policy is not None and flow.counters.cycle_began is not None:
            when = world.now + policy.limits.max_wall_time - wall_time(flow, world.now)
            self._times[flow.issue.id] = when
            heappush(self._time_order, (when, flow.issue.id))


def _ways(queue: str, world: World, room: Capacity) -> dict[Kind, str | None] | None:
    """The code of what is in the way of each kind (None: nothing is); None: nothing can come of looking."""
    if queue == CANDIDATE and not world.ready_fresh:
        return None
    if queue == CANDIDATE and room.takes is not None and room.takes <= 0:
        return dict.fromkeys(("read", "write", "own", "take"), "max_issues")
    return {kind: hold.code if (hold := in_the_way(world, "", room, kind)) else None for kind in KINDS}
