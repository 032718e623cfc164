"""Keeping the pictures up to date while the daemon runs: beside the shepherd, never in its way.

The shepherd says where the journal and the World have got to, which costs it nothing; a task draws that in a worker
thread, at most once in `every` seconds. It reads the entries back from the journal, so that nothing queues up in
memory however long a drawing takes. An error spoils the pictures only: it is reported, and they are drawn anew.
"""

from collections.abc import Callable
from pathlib import Path

import anyio
from anyio import to_thread

from ashep.core.world import World
from ashep.store.database import Position, Source, Store

_LAST_CHANCE = 10.0
"""Seconds that the end waits for the last drawing."""


class Follower:
    """Draws the pictures of one journal. Run `run` as a task; cancel it to draw once more and end."""

    def __init__(
        self,
        state: Path,
        source: Source,
        report: Callable[[str], None],
        *,
        store: Store | None = None,
        every: float = 0.2,
    ) -> None:
        self._state, self._source, self._report, self._store, self._every = state, source, report, store, every
        self._latest: tuple[Position, World] | None = None
        self._news = anyio.Event()
        self._limiter = anyio.CapacityLimiter(1)

    def offer(self, position: Position, world: World) -> None:
        """Say where the journal has got to, and the World there. Never waits, never fails."""
        self._latest = (position, world)
        self._news.set()

    async def run(self) -> None:
        """Draw what is offered until cancelled; then draw the rest and close."""
        pause = self._every
        try:
            while True:
                await self._news.wait()
                pause = self._every if await self._draw() else min(pause * 2, 60.0)
                await anyio.sleep(pause)
        finally:
            with anyio.move_on_after(_LAST_CHANCE, shield=True):
                await self._draw()
                await to_thread.run_sync(self._close, limiter=self._limiter)

    async def _draw(self) -> bool:
        latest, self._news = self._latest, anyio.Event()
        if latest is None:
            return True
        try:
            await to_thread.run_sync(self._catch_up, *latest, limiter=self._limiter)
        except Exception as error:  # whatever it is: pictures must not stop the work that they are of
            self._report(f"{self._state}: the pictures of the journal could not be drawn: {error}")
            await to_thread.run_sync(self._close, limiter=self._limiter)
            self._news.set()
            return False
        if self._latest is latest:
            self._latest = None
        return True

    def _catch_up(self, position: Position, world: World) -> None:
        if self._store is None:
            self._store = Store.open(self._state, self._source)
            if self._store.redrawn:
                self._report(f"{self._state}: the database was drawn anew: {self._store.redrawn}")
        self._store.catch_up(self._source, position, world)

    def _close(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            store.close()
