"""Keeping the pictures up to date while the daemon runs: beside the shepherd, never in its way.

The shepherd says where the journal and the World have got to, which costs it nothing; a task draws that in a worker
thread, at most once in `every` seconds. It reads the entries back from the journal, so that nothing queues up in
memory however long a drawing takes. An error spoils the pictures only: it is reported, and they are drawn anew. What
somebody deleted is drawn again, too: an open file goes on taking what nobody can read, so it is looked for.
"""

from collections.abc import Callable
from pathlib import Path

import anyio
from anyio import to_thread

from ashep.core.world import World
from ashep.store.database import Position, Source, Store

_LOOK = 1.0
"""Seconds between looks whether the files still stand; a reader waits for two."""

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
        self._drawn: tuple[Position, World] | None = None
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
                await self._until_news()
                pause = self._every if await self._draw() else min(pause * 2, 60.0)
                await anyio.sleep(pause)
        finally:
            with anyio.move_on_after(_LAST_CHANCE, shield=True):
                await self._draw()
                await to_thread.run_sync(self._close, limiter=self._limiter)

    async def _until_news(self) -> None:
        """Return when there is something to draw: what was offered, or what was drawn before and is gone."""
        while not self._news.is_set():
            with anyio.move_on_after(_LOOK):
                await self._news.wait()
            if self._store is not None and not await to_thread.run_sync(self._store.stands, limiter=self._limiter):
                self._latest = self._latest or self._drawn
                return

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
        self._drawn = latest
        if self._latest is latest:
            self._latest = None
        return True

    def _catch_up(self, position: Position, world: World) -> None:
        if self._store is not None and not self._store.stands():
            self._close()
        if self._store is None:
            self._store = Store.open(self._state, self._source)
            if self._store.redrawn:
                self._report(f"{self._state}: the database was drawn anew: {self._store.redrawn}")
        self._store.catch_up(self._source, position, world)

    def _close(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            store.close()
