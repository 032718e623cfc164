"""The poller of the tracker asks what is ready and what people changed, and tells the shepherd. It decides nothing.

It looks at once after a hint, soon while things move, and rarely when all is quiet (facts/beads.md 3 and 9: a read
costs hundreds of milliseconds of CPU, and the tracker's files tell of most changes for nothing).
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import anyio
import anyio.lowlevel

from ashep.core.analysis.issue_status import is_idle
from ashep.core.delivery.workspaces import takers
from ashep.core.facts.delivery import Tree
from ashep.core.facts.tracker import ChangeHinted, Issue, TrackerLost, TrackerSeen
from ashep.core.policy.settings import Settings, TrackerSettings
from ashep.core.reconcile.observe import compare_tracker, expired_leases, hinted, issue_read, issues_read, tracker_read
from ashep.daemon.shepherd import Shepherd
from ashep.errors import AshepError, TrackerError, UsageError
from ashep.ports.clock import Clock
from ashep.ports.tracker import LONGEST_CALL, PartialSnapshot, Tracker, TrackerInfo
from ashep.ports.workspaces import WorkTree

SETTLE = 0.15
"""Seconds between a hint and the look: one write shows more than once, and a look that came too early is made again."""

BACKOFF = (1.0, 30.0)
"""Seconds between looks that fail, from the first to the longest."""

AT_ONCE = 100
"""Issues that are compared, or told, before others get their turn."""

AT_WORK = 10.0
"""The longest of them while runs are live."""

TELL_AFTER = 3
"""Looks in a row that lack what is ready, before that is told."""

IDLE_FACTOR = 3
"""How much longer the gap between looks is where the tracker's hints work and nothing could be started anyway."""


def longest_gap(settings: TrackerSettings) -> float:
    """Seconds between the ends of two looks, at most, whatever bd does: a look is two reads, each of at most one and a
    half times the limit of a call, and a call of git.
    """
    limit = max(settings.timeout.total_seconds(), LONGEST_CALL)
    return max(settings.poll_every.total_seconds() * IDLE_FACTOR, BACKOFF[1]) + 6 * limit


class CompleteLook(NamedTuple):
    """A complete look that the World has taken in."""

    as_of: int
    """The number at which it began."""
    issues: list[Issue]


class TrackerPoller:
    """A source of facts about issues and the work tree."""

    def __init__(self, shepherd: Shepherd, tracker: Tracker, tree: WorkTree, clock: Clock, settings: Settings) -> None:
        self._shepherd, self._tracker, self._tree = shepherd, tracker, tree
        self._clock, self._settings = clock, settings
        self._look_now = anyio.Event()
        self._hints_work = False
        self._failures = 0
        self.looks = 0
        """How many were completed, or failed."""
        self._looking = False
        self._looked = anyio.Event()
        self._wanted = False
        self._kept: CompleteLook | None = None

    async def run(self, info: TrackerInfo) -> None:
        """Look for ever; `info` is what the tracker said at the start."""
        seen = TrackerSeen(self._tracker.actor, info.prefix, info.version)
        self._shepherd.tell(lambda world: tracker_read(world, seen, info.tried))
        async with anyio.create_task_group() as group:
            group.start_soon(self._follow_hints)
            group.start_soon(self._follow_world)
            while True:
                self._look_now = anyio.Event()
                await self._look(info)
                with anyio.move_on_after(self._gap()):
                    await self._look_now.wait()
                    await anyio.sleep(SETTLE)

    async def fresh_look(self, wanted: Callable[[], bool] = lambda: True) -> None:
        """Return once a look that begins after this call has been told, or the one under way shows that none is wanted.

        A daemon that has only just begun knows of no issue, and so of nothing to do: its first look is under way.
        """
        if self._looking:
            await self._looked.wait()
            if not wanted():
                return
        until = self.looks + 1
        while self.looks < until:
            self._look_now.set()
            await self._looked.wait()

    async def next_look(self, at_once: bool) -> CompleteLook:
        """Return the next complete look, once it has been told."""
        self._kept = None
        while self._kept is None:
            self._wanted = True  # again where somebody else took the one that was waited for
            if at_once:
                self._look_now.set()
            await self._looked.wait()
        self._wanted, (kept, self._kept) = False, (self._kept, None)
        return kept

    async def _look(self, info: TrackerInfo) -> None:
        as_of, self._looking, lacks = self._shepherd.world.seq, True, ""
        try:
            try:
                look = await self._tracker.look()
            except PartialSnapshot as half:
                look, lacks = half.look, str(half)
            tree = await self._read_tree()
        except TrackerError as error:
            self._failures, lost = self._failures + 1, TrackerLost(str(error)[:500])
            await self._shepherd.ask(lambda world: [] if world.tracker_error else [lost])
        else:
            self._failures = self._failures + 1 if lacks else 0
            told = lacks[:500] if self._failures >= TELL_AFTER else ""
            seen = TrackerSeen(self._tracker.actor, info.prefix, look.version or info.version, look.unread, told)
            ready = None if lacks else look.ready
            leases = [(issue.issue, issue.lease) for issue in look.issues if issue.lease is not None]
            issues = [issue.issue for issue in look.issues]
            others = {issue.id for issue in issues}.union(dict(look.unread))
            first, *parts = await self._differing(issues, as_of)
            await self._shepherd.ask(
                lambda world: tracker_read(world, seen, info.tried),
                lambda world: compare_tracker(world, ready, first, tree, as_of, others),
                lambda world: expired_leases(world, leases, self._clock.now()),
            )
            for part in parts:
                await self._shepherd.ask(partial(issues_read, views=part, as_of=as_of))
            if self._wanted:
                self._kept = CompleteLook(as_of, issues)
        self.looks, self._looking = self.looks + 1, False
        self._looked.set()
        self._looked = anyio.Event()

    async def _differing(self, issues: list[Issue], as_of: int) -> list[list[Issue]]:
        """Give the issues that may not be as they are known, in parts of which each is told in a turn of its own.

        Thousands in one turn would keep everybody else waiting for seconds. What must be started first is told first.
        """
        if len(issues) <= AT_ONCE:
            return [issues]
        found: list[Issue] = []
        for at in range(0, len(issues), AT_ONCE):
            await anyio.lowlevel.checkpoint()
            world = self._shepherd.world
            found += [issue for issue in issues[at : at + AT_ONCE] if issue_read(world, issue, as_of)]
        found.sort(key=lambda issue: (issue.priority, issue.created_at, issue.id))
        return [found[at : at + AT_ONCE] for at in range(0, max(len(found), 1), AT_ONCE)]

    async def _read_tree(self) -> Tree | None:
        """Read the work tree. A git that fails later on ends nothing: a write run reads the tree again first."""
        try:
            return await self._tree.read()
        except AshepError as error:
            if isinstance(error, TrackerError | UsageError) or self._shepherd.world.tree is None:
                raise
            return None

    def _gap(self) -> float:
        world, poll = self._shepherd.world, self._settings.tracker.poll_every.total_seconds()
        if self._failures:
            first, longest = BACKOFF
            return min(first * 2 ** min(self._failures - 1, 9), AT_WORK if world.indexes.live else longest)
        quiet = is_idle(world) or len(takers(world)) >= world.settings.worker.max_concurrent_runs
        return poll * IDLE_FACTOR if quiet and self._hints_work else poll

    async def _follow_hints(self) -> None:
        self._hints_work = True
        async for _ in self._tracker.hints():
            # a look that is under way may have read before this change: it must not count as fresh
            self._shepherd.tell(ChangeHinted() if self._looking else hinted)
            self._look_now.set()
        self._hints_work = False

    async def _follow_world(self) -> None:
        """Look at once where our own writes may have made an issue ready."""
        while True:
            await self._shepherd.until(lambda world: world.ready_fresh)
            await self._shepherd.until(lambda world: not world.ready_fresh)
            self._look_now.set()
