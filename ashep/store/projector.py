"""Follower of the journal that keeps the pictures up to date: next to the shepherd, never in its way.

The shepherd says where the journal and the World have got to, which costs it nothing; a task draws that in a worker
thread, at most once in `every` seconds. It reads the entries back from the journal, so that nothing queues up in
memory however long a drawing takes. An error spoils the pictures only: it is reported, and they are drawn again. What
somebody deleted is drawn again, too: an open file goes on taking what nobody can read, so it is looked for.
"""

import gc
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from ashep.core.state.world import World
from ashep.journal.reader import Position
from ashep.store.projection import JournalSource

if TYPE_CHECKING:
    from ashep.store.writer import Store

EVERY = 0.5
"""Seconds between two drawings, at least; readers may be that much behind."""

_LAST_CHANCE = 10.0  # seconds that the end waits for the last drawing

LOOK_EVERY = 1.0
"""Seconds between looks whether the files still stand; a reader waits for two."""

TELL_EVERY = 2.0
"""Seconds of a drawing between two words to a person."""


def _database() -> "type[Store]":
    """Import it now: it is half of what a start would import, and nothing waits for it."""
    first = "ashep.store.writer" not in sys.modules
    from ashep.store.writer import Store

    if first:
        gc.freeze()  # as at the start: what was imported stays for ever, and need not be walked again and again
    return Store


class _GivenUpError(Exception):
    """The daemon ends, and a drawing has not: the next start goes on with it."""


class Follower:
    """Draws the pictures of one journal. Run `run` as a task; cancel it to draw once more and end."""

    def __init__(
        self,
        state: Path,
        source: JournalSource,
        report: Callable[[str], None],
        *,
        store: "Store | None" = None,
        every: float = EVERY,
        look_every: float = LOOK_EVERY,
    ) -> None:
        self._state, self._source, self._report, self._store, self._every = state, source, report, store, every
        self._look_every = look_every
        self._latest: tuple[Position, World] | None = None
        self._news = anyio.Event()
        self._limiter = anyio.CapacityLimiter(1)
        self._given_up = False
        self._one_at_a_time = threading.Lock()
        self._drawn = (0, 0)

    def offer(self, position: Position, world: World) -> None:
        """Say where the journal has got to, and the World there. Never waits, never fails."""
        self._latest = (position, world)
        self._news.set()

    async def run(self) -> None:
        """Draw what is offered until cancelled; then draw the rest and close.

        A drawing from the beginning is not waited for at the end: the next start does it.
        """
        pause = self._every
        try:
            while True:
                with anyio.move_on_after(self._look_every):
                    await self._news.wait()
                pause = self._every if await self._draw() else min(pause * 2, 60.0)
                await anyio.sleep(pause)
        finally:
            self._given_up = self._store is None and self._one_at_a_time.locked()
            with anyio.move_on_after(_LAST_CHANCE, shield=True):
                await self._draw()
            self._given_up = True
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(self._close)

    async def _draw(self) -> bool:
        latest, self._news = self._latest, anyio.Event()
        if latest is None:
            return True
        error: Exception | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(self._tell)
            try:
                run = partial(to_thread.run_sync, limiter=self._limiter, abandon_on_cancel=True)
                await run(self._catch_up, *latest)
            except _GivenUpError:
                pass
            except Exception as failure:  # whatever it is: pictures must not stop the work that they are of
                error = failure
            group.cancel_scope.cancel()
        if error is None:
            return True
        self._report(f"{self._state}: the pictures of the journal could not be drawn: {error}")
        await to_thread.run_sync(self._close, limiter=self._limiter)
        self._news.set()
        return False

    async def _tell(self) -> None:
        while True:
            await anyio.sleep(TELL_EVERY)
            done, end = self._drawn
            if end:
                self._report(f"drawing the picture of the journal: {done:,} of {end:,} records")

    def _progress(self, done: int, end: int) -> None:
        self._drawn = (done, end)
        if self._given_up:
            raise _GivenUpError

    def _catch_up(self, position: Position, world: World) -> None:
        with self._one_at_a_time:
            self._drawn = (0, 0)
            if self._store is not None and not self._store.stands():
                self._store.close()
                self._store = None
                self._report(f"{self._state}: somebody deleted or replaced ashep.db or runs.jsonl")
            if self._store is None:
                opened = partial(_database().open, until=position, progress=self._progress)
                self._store = opened(self._state, self._source, world)
                if self._store.redrawn:
                    self._report(f"{self._state}: the database was drawn anew: {self._store.redrawn}")
            self._store.catch_up(self._source, position, world)

    def _close(self) -> None:
        with self._one_at_a_time:
            store, self._store = self._store, None
            if store is not None:
                store.close()
