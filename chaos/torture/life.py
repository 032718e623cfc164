"""One life of a daemon: from its start to a stop, a kill, a power cut or a failed disk."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import anyio

from ashep.core.analysis.audit import lasting
from ashep.core.facts.delivery import Tree
from ashep.core.facts.records import Entry
from ashep.core.facts.resources import Finding
from ashep.core.state.world import World as Known
from ashep.daemon.daemon import Adapters, RunningDaemon, WorkOptions, daemon
from ashep.errors import AshepError, DiskFailed, JournalDamaged
from ashep.journal.writer import Journal
from chaos.torture import disk
from chaos.torture.bd import SimulatedTracker
from chaos.torture.loop import LIFE
from chaos.torture.server import SimulatedRunner

if TYPE_CHECKING:
    from chaos.torture.world import World

ACTOR = "ashep-sim"


Order = Callable[[RunningDaemon, Journal], Awaitable[None]]
"""What somebody asks the running daemon for."""


class Crash(BaseException):
    """The process is gone."""


class SimulatedTree:
    """A work tree, or those of issues, and a git that fails."""

    def __init__(self, life: "Life", tree: Any) -> None:
        self._life, self._tree = life, tree

    async def read(self) -> Tree:
        await self._enter()
        return await self._tree.read()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._tree, name)

        async def call(*arguments: object) -> object:
            await self._enter()
            return await method(*arguments)

        return call

    async def _enter(self) -> None:
        self._life.reach("git asked")
        await anyio.sleep(0.005)
        self._life.reach("git answered")
        if self._life.world.known.tree is not None and self._life.world.dice.roll("git", 0.03):
            raise AshepError("git status ended with exit code 128: fatal: index file corrupt")


class Life:
    """A process that runs the daemon. `crash_at`: the boundary at which it is killed."""

    def __init__(self, world: "World", number: int, crash_at: int | None = None) -> None:
        self.world, self.number, self.crash_at = world, number, crash_at
        self.points = 0
        self.dead = False
        self.why = ""
        self.last = ""
        self.known = Known()
        self.scope = anyio.CancelScope()
        self.leave = anyio.Event()
        """Set: it is stopped in order."""
        self.over = anyio.Event()
        self.orphans: bool | None = None
        self._orders: list[Order] = []
        self._ordered = anyio.Event()
        self._audit_wanted = anyio.Event()
        self.audited: tuple[Finding, ...] | None = None
        """What the daemon's own auditor has found since it was asked to look."""
        self.shepherd: Any = None

    # --- what the simulated world calls ---

    def reach(self, name: str) -> None:
        """A boundary between the daemon and the world."""
        if self.dead:
            raise Crash
        self.points += 1
        self.last = name
        if self.points == self.crash_at:
            self.die(f"killed at boundary {self.points} ({name})")

    def tear(self) -> bool:
        """Whether it is killed in the middle of the write that is about to be made."""
        return self.crash_at == self.points + 1 and self.world.dice.of("tear").random() < 0.7

    def die(self, why: str) -> None:
        """It is gone, from wherever this is called in it."""
        self.end(why)
        raise Crash

    def end(self, why: str) -> None:
        """It is gone."""
        if not self.dead:
            self.world.tell(f"life {self.number} is over: {why}")
            self.dead, self.why = True, why
            self.world.loop.continue_life(self)
            self.scope.cancel()

    def disk_fault(self, name: str) -> None:
        dice = self.world.dice
        if name in ("write", "fsync", "fdatasync") and dice.roll("disk_fails", 0.004):
            self.world.tell(f"the disk fails: {name}")
            raise disk.no_space() if name == "write" and dice.of("disk_fails").random() < 0.5 else disk.broken()

    # --- the process ---

    async def run(self) -> None:
        """Live."""
        LIFE.set(self)
        self.world.tell(f"life {self.number} begins")
        try:
            with self.scope:
                await self._work()
        except BaseExceptionGroup as group:
            self._ended(group)
        except (Crash, AshepError) as error:
            self._ended(BaseExceptionGroup("", [error]))
        finally:
            if not self.dead:
                self.end("stopped")
            self.over.set()

    def _ended(self, group: BaseExceptionGroup) -> None:
        _, rest = group.split(Crash)
        if rest is None:
            return
        damaged, _ = rest.split(JournalDamaged)
        if damaged is not None:
            self.world.laws.broken("the journal is readable", f"{damaged.exceptions[0]!r}")
        _, unexpected = rest.split(DiskFailed)
        if unexpected is not None:
            known, unexpected = unexpected.split(AshepError)
            if known is not None:
                self.end(f"ended by {_flat(known)}")
        if unexpected is not None:
            raise unexpected
        self.end(f"ended by {_flat(rest)}")

    async def _work(self) -> None:
        world = self.world
        tracker, runner = SimulatedTracker(self, world.actor), SimulatedRunner(self)
        tree = cast("Any", SimulatedTree(self, world.tree))
        own = world.own
        trees = cast("Any", SimulatedTree(self, own.trees if own is not None else None))
        parts = Adapters(cast("Any", tracker), cast("Any", runner), tree, world.clock, workspaces=lambda _: trees)
        if own is not None:
            parts = replace(parts, means=lambda *_: own.means(self))
        if own is not None and (site := own.site) is not None:
            parts = replace(parts, pulls=lambda _: site.pulls(self))
        journal = Journal.open(world.state, world.clock.now())
        try:
            info = await tracker.check()
            async with (
                daemon(parts, world.configuration, journal, WorkOptions(), [self._picture]) as running,
                anyio.create_task_group() as group,
            ):
                self.shepherd = running.shepherd
                group.start_soon(running.poller.run, info)
                group.start_soon(running.monitors[0].run)
                group.start_soon(running.auditor.run)
                group.start_soon(self._audit, running)
                group.start_soon(self._obey, running, journal)
                await self.leave.wait()
                await self._stop(running)
                group.cancel_scope.cancel()
        finally:
            journal.close()

    async def _audit(self, running: RunningDaemon) -> None:
        """Audit when asked to, as the daemon does every hour."""
        while True:
            await self._audit_wanted.wait()
            self._audit_wanted = anyio.Event()
            found = await running.auditor.check(await running.poller.next_look(True))
            again = await running.auditor.check(await running.poller.next_look(True)) if found else ()
            self.audited = lasting(found, again)

    def order(self, order: "Order") -> None:
        """Let it do what somebody beside it asks for."""
        self._orders.append(order)
        self._ordered.set()

    async def _obey(self, running: RunningDaemon, journal: Journal) -> None:
        while True:
            await self._ordered.wait()
            self._ordered = anyio.Event()
            while self._orders:
                await self._orders.pop(0)(running, journal)

    async def audit(self) -> tuple[Finding, ...]:
        """Let it audit, and give what it found; nothing of one that ends meanwhile."""
        self.audited = None
        self._audit_wanted.set()
        with anyio.move_on_after(300):
            while self.audited is None and not self.dead:
                await anyio.sleep(1)
        if self.audited is None and not self.dead:
            self.world.laws.broken("an audit comes to its end", "it had not after 300 s")
        return self.audited or ()

    async def _stop(self, running: RunningDaemon) -> None:
        await running.auditor.last()
        await running.shepherd.stop("asked to")
        await running.monitors[0].let_go()

    def _picture(self, entries: Sequence[Entry], known: Known) -> None:
        self.known = known
        self.world.laws.durable(entries)


def _flat(group: BaseExceptionGroup) -> str:
    return "; ".join(
        _flat(error) if isinstance(error, BaseExceptionGroup) else f"{type(error).__name__}: {error}"[:200]
        for error in group.exceptions
    )
