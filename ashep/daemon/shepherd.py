"""Shepherd, the only writer: facts in, one durable batch out, and only then the batch's commands.

Sources of facts (worker, monitor, people's commands) `tell` it what they saw; a source that compares a read with the
World hands over a function, which is called with the World as it is when its turn comes.
"""

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import anyio
from anyio.abc import TaskGroup

from ashep.core.facts import commands, records, resources
from ashep.core.facts.vocabulary import Fact
from ashep.core.reconcile.dispatcher import Dispatcher
from ashep.core.reconcile.evolve import evolve
from ashep.core.reconcile.observe import disk_read
from ashep.core.reconcile.sources import open_intents
from ashep.core.reconcile.step import step
from ashep.core.resources.due_times import due_timers, next_due
from ashep.core.resources.notices import open_messages
from ashep.core.state.world import World
from ashep.daemon.effects.executor import Effects
from ashep.ports.clock import Clock
from ashep.ports.journal import Journal

GRACE = 3.0
"""Seconds that effects under way get to answer when the daemon stops; the rest is probed at the next start."""

JUMP = timedelta(seconds=60)
"""Wall and monotonic time that part by more are a suspend or a set clock."""

Observation = Callable[[World], Iterable[Fact]]
"""What a read shows, once it is compared with the World."""

Picture = Callable[[Sequence[records.Entry], World], None]
"""Something that is redrawn from the journal: it takes a durable batch, at once and without failing."""


class Shepherd:
    """Folds, decides, writes, and executes."""

    def __init__(self, journal: Journal, effects: Effects, clock: Clock, pictures: Sequence[Picture] = ()) -> None:
        self.world, self.blobs = World(), journal.blobs
        self._journal, self._effects, self._clock, self._pictures = journal, effects, clock, pictures
        self._dispatcher = Dispatcher()
        self._queue: list[Fact | Observation] = []
        self._queued = self._taken_in = 0
        """How many were told, and how many of them the World holds."""
        self._told = anyio.Event()
        self._sleepers: list[tuple[Callable[[World], bool], anyio.Event]] = []
        self._group: TaskGroup | None = None
        self._under_way = 0
        self.stopping = False
        """Whether it is to end."""
        self._offset = timedelta()
        self._ahead = timedelta()
        """How far our time is ahead of the wall clock: it goes on where that was set back."""

    def recover(self) -> World:
        """Take the newest snapshot and fold what follows. Blocks; call it once, before `running`."""
        self.world, after = self._journal.load_world()
        for batch in self._journal.batches(after):
            for entry in batch.entries:
                self.world = evolve(self.world, entry)
        return self.world

    def show(self, picture: Picture) -> None:
        """Draw one more picture of every batch from now on."""
        self._pictures = (*self._pictures, picture)

    def tell(self, *told: Fact | Observation) -> None:
        """Queue facts for the next turn; returns at once."""
        self._queue.extend(told)
        self._queued += len(told)
        self._told.set()

    async def changed(self) -> None:
        """Return after the next batch."""
        await self._sleep_until(lambda _: True)

    async def until(self, holds: Callable[[World], bool]) -> None:
        """Return once this holds, or held after a batch: the shepherd asks after each, and wakes only whom it concerns.

        So a source says what it waits for, and cannot sleep through it.
        """
        if not holds(self.world):
            await self._sleep_until(holds)

    async def wait_while(self, holds: Callable[[World], bool], longest: float | None = None) -> None:
        """Return once this holds no more; at most so many seconds later."""
        with anyio.move_on_after(longest):
            while holds(self.world):
                await self._sleep_until(lambda world: not holds(world))

    async def _sleep_until(self, holds: Callable[[World], bool]) -> None:
        sleeper = (holds, anyio.Event())
        self._sleepers.append(sleeper)
        try:
            await sleeper[1].wait()
        finally:
            self._sleepers.remove(sleeper)

    async def ask(self, *observations: Observation) -> list[Fact]:
        """Have something compared with the World, and give the facts that it came to once they are durable."""
        facts: list[Fact] = []

        def observed(world: World) -> list[Fact]:
            facts.extend(fact for observation in observations for fact in observation(world))
            return facts

        self.tell(observed)
        last = self._queued  # the next batch may be one that began without it
        await self.until(lambda _: self._taken_in >= last)
        return facts

    @asynccontextmanager
    async def running(self, *first: Fact) -> AsyncGenerator[None]:
        """Take turns for as long as the block runs. `first` opens the batch of this start.

        Intents that were found open are probed; then what is lacking is asked for. Raises `DiskFailed`.
        """
        self._offset = self._clock_offset()
        self._ahead = max(self.world.now - self._clock.now(), timedelta())
        async with anyio.create_task_group() as group:
            self._group = group
            # maps of the World are in no order that another process would repeat
            busy = map(self.world.flows.__getitem__, self.world.indexes.busy)
            unanswered: list[commands.Command] = [command for flow in busy for command in flow.open]
            unanswered = sorted(
                [*unanswered, *open_messages(self.world), *open_intents(self.world)], key=lambda one: one.key
            )
            await self._turn(first, everything=True)
            self._wake()
            for command in unanswered:
                self._start(command, probe=True)
            async with anyio.create_task_group() as turns:
                turns.start_soon(self._take_turns)
                turns.start_soon(self._keep_time)
                yield
                turns.cancel_scope.cancel()
            group.cancel_scope.cancel()

    async def stop(self, why: str) -> None:
        """Start nothing more, give effects under way a moment to answer, and record the end."""
        self.stopping = True
        self.tell(resources.DaemonStopped(why))
        with anyio.move_on_after(GRACE):
            while self._under_way or self._queue:
                await self.changed() if self._queue else await anyio.sleep(0.02)

    # --- turns ------------------------------------------------------------------------------------------------------

    async def _take_turns(self) -> None:
        while True:
            await self._told.wait()
            self._told = anyio.Event()
            told, self._queue, last = self._queue, [], self._queued
            # one turn takes all that has queued: this is the group commit
            with anyio.CancelScope(shield=True):
                await self._turn(told)
            self._taken_in = last
            self._wake()

    async def _turn(self, told: Iterable[Fact | Observation], *, everything: bool = False) -> None:
        facts: list[Fact] = []
        for one in told:
            facts += one(self.world) if callable(one) else [one]
        facts = [*disk_read(self.world, self._journal.room()), *facts]
        if facts or everything:
            facts = [*self._jumped(), *facts]
            at = self.get_time()
            world, entries = step(
                self.world, facts, at, self._journal.next_seq, everything=everything, dispatcher=self._dispatcher
            )
            await self._journal.append(entries)
            self.world = world
            for picture in self._pictures:
                picture(entries, world)
            for entry in entries:
                if isinstance(entry.body, commands.Command):
                    self._start(entry.body, probe=False)

    def _wake(self) -> None:
        """Wake those whom the batch concerns."""
        for holds, event in self._sleepers:
            if holds(self.world):
                event.set()

    def _start(self, command: commands.Command, *, probe: bool) -> None:
        if self._group is None or self.stopping:
            return
        self._under_way += 1
        self._group.start_soon(self._execute, command, probe)

    async def _execute(self, command: commands.Command, probe: bool) -> None:
        try:
            answer = await self._effects.execute(command, lambda: self.world, probe=probe)
            self.tell(*answer)
        finally:
            self._under_way -= 1

    # --- time -------------------------------------------------------------------------------------------------------

    async def _keep_time(self) -> None:
        while True:
            due = next_due(self.world)
            if due is None:
                await self.until(lambda world: next_due(world) is not None)
                continue
            # not longer than that is due next: a turn may have come before this begins
            await self.sleep_while(lambda world, due=due: next_due(world) == due, due - self._ahead)
            if jumped := self._jumped():
                self.tell(*jumped)
            if any(True for _ in due_timers(self.world, self.get_time())):
                waits = self.changed
                self.tell(lambda world: due_timers(world, self.get_time()))
                await waits()

    async def sleep_while(self, holds: Callable[[World], bool], until: datetime | None) -> None:
        """Sleep until a time of the clock, for ever where there is none, or until this holds no more."""

        async def wake(scope: anyio.CancelScope) -> None:
            await self.wait_while(holds)
            scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(wake, group.cancel_scope)
            await (self._clock.sleep_until(until) if until is not None else anyio.sleep_forever())
            group.cancel_scope.cancel()

    def get_time(self) -> datetime:
        """The time of facts: the wall clock's, which goes on here where that was set back."""
        return self._clock.now() + self._ahead

    def _clock_offset(self) -> timedelta:
        return timedelta(seconds=self._clock.now().timestamp() - self._clock.monotonic())

    def _jumped(self) -> list[Fact]:
        """Look before every turn and at every wait: nothing may be judged by a time that the machine slept through."""
        offset = self._clock_offset()
        gap = offset - self._offset
        if abs(gap) <= JUMP:
            return []
        self._offset = offset
        # set back, the wall clock would let every wait last so much longer, years where it had been years ahead
        ahead = max(self._ahead - gap, timedelta())
        jumped, self._ahead = gap - (self._ahead - ahead), ahead
        return [resources.ClockJumped(jumped)] if jumped > JUMP else []
