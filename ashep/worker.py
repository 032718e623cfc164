"""The worker asks the tracker what is ready and what people changed, and tells the shepherd. It decides nothing.

It looks at once after a hint, soon while things move, and rarely when all is quiet (facts/beads.md 3 and 9: a read
costs hundreds of milliseconds of CPU, and the tracker's files tell of most changes for nothing).
"""

from collections.abc import Callable

import anyio

from ashep.core.account import is_idle
from ashep.core.events import ChangeHinted, Fact, TrackerLost, TrackerSeen
from ashep.core.model import Issue, Settings, TrackerSettings, Tree
from ashep.core.observe import expired_leases, hinted, looked
from ashep.core.world import World
from ashep.errors import AshepError, TrackerError, UsageError
from ashep.ports import Clock, Look, Tracker, TrackerInfo
from ashep.shepherd import Shepherd
from ashep.trees import WorkTree

SETTLE = 0.15
"""Seconds between a hint and the look: one write shows more than once, and a look that came too early is made again."""

BACKOFF = (1.0, 30.0)
"""Seconds between looks that fail, from the first to the longest."""

IDLE_FACTOR = 3
"""How much longer the gap between looks is where the tracker's hints work and nothing could be started anyway."""


def longest_gap(settings: TrackerSettings) -> float:
    """Seconds between the ends of two looks, at most, whatever bd does: a look is two calls of it, and one of git."""
    return max(settings.poll_every.total_seconds() * IDLE_FACTOR, BACKOFF[1]) + 4 * settings.timeout.total_seconds()


class Worker:
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
        self._kept: tuple[int, list[Issue]] | None = None

    async def run(self, info: TrackerInfo) -> None:
        """Look for ever; `info` is what the tracker said at the start."""
        self._shepherd.tell(TrackerSeen(self._tracker.actor, info.prefix, info.version))
        async with anyio.create_task_group() as group:
            group.start_soon(self._follow_hints)
            group.start_soon(self._follow_world)
            while True:
                self._look_now = anyio.Event()
                await self._look(info)
                with anyio.move_on_after(self._gap()):
                    await self._look_now.wait()
                    await anyio.sleep(SETTLE)

    async def fresh_look(self) -> None:
        """Return once a look that begins after this call has been told."""
        wanted = self.looks + 2 if self._looking else self.looks + 1
        while self.looks < wanted:
            self._look_now.set()
            await self._looked.wait()

    async def next_look(self, at_once: bool) -> tuple[int, list[Issue]]:
        """Return the next complete look, once it has been told, and the number at which it began."""
        self._kept = None
        while self._kept is None:
            self._wanted = True  # again where somebody else took the one that was waited for
            if at_once:
                self._look_now.set()
            await self._looked.wait()
        self._wanted, (kept, self._kept) = False, (self._kept, None)
        return kept

    async def _look(self, info: TrackerInfo) -> None:
        as_of, self._looking = self._shepherd.world.seq, True
        try:
            look = await self._tracker.look()
            tree = await self._read_tree()
        except TrackerError as error:
            self._failures += 1
            await self._shepherd.take_in(_lost(str(error)))
        else:
            self._failures = 0
            found = _found(self._tracker.actor, info)
            leases = [(seen.issue, seen.lease) for seen in look.issues]
            await self._shepherd.take_in(
                found,
                lambda world: looked(world, *_parts(look), tree, as_of),
                lambda world: expired_leases(world, leases, self._clock.now()),
            )
            if self._wanted:
                self._kept = as_of, [seen.issue for seen in look.issues]
        self.looks, self._looking = self.looks + 1, False
        self._looked.set()
        self._looked = anyio.Event()

    async def _read_tree(self) -> Tree | None:
        """Read the work tree. A git that fails later on ends nothing: a write run reads the tree again first."""
        try:
            return await self._tree.read()
        except (TrackerError, UsageError):
            raise
        except AshepError:
            if self._shepherd.world.tree is None:
                raise
            return None

    def _gap(self) -> float:
        world, poll = self._shepherd.world, self._settings.tracker.poll_every.total_seconds()
        if self._failures:
            first, longest = BACKOFF
            return min(first * 2 ** min(self._failures - 1, 9), longest)
        quiet = is_idle(world) or len(world.live) >= world.settings.worker.max_concurrent_runs
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
            before = self._shepherd.world
            await self._shepherd.changed()
            if before.ready_fresh and not self._shepherd.world.ready_fresh:
                self._look_now.set()


def _parts(look: Look) -> tuple[tuple[str, ...], list[Issue]]:
    return look.ready, [seen.issue for seen in look.issues]


def _found(actor: str, info: TrackerInfo) -> Callable[[World], list[Fact]]:
    def compare(world: World) -> list[Fact]:
        seen = TrackerSeen(actor, info.prefix, info.version)
        return [] if world.tracker == seen and not world.tracker_error else [seen]

    return compare


def _lost(error: str) -> Callable[[World], list[Fact]]:
    return lambda world: [] if world.tracker_error else [TrackerLost(error[:500])]
