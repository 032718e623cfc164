"""Live changes: one look at the picture for all who watch, and a line to each when it has another `seq`.

Nobody watches, nobody looks. A stream says only that something has changed; what it is the page asks for again, so a
line that is lost costs nothing.
"""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread
from pydantic import BaseModel, ConfigDict

from ashep.adapters.system.control_socket import ask
from ashep.api.handlers.drawing import NotReady, prefer_progress
from ashep.api.handlers.queries import QueryHandlers
from ashep.api.schemas.page import Changed
from ashep.errors import AshepError
from ashep.store.read_model import ReadModel
from ashep.views import lists, runs

LOOK = 0.5
"""Seconds between looks."""

BEAT = 15.0
"""Seconds of silence after which a stream says that it is still there."""

SIGNS = 2.0
"""Seconds between signs of life."""

ANSWER = 5.0
"""Seconds in which the daemon says how alive its runs are."""

MOST = 16
"""Streams at one time."""

MOST_NAMED = 200
"""Issues that are named with a change; of more none is, and everything may have changed."""


class Stream(BaseModel):
    """Lines that are sent as they come."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    lines: AsyncIterator[bytes]


class TooManyStreams(AshepError):
    """There are too many streams."""


@dataclass
class Live:
    """The streams of one server."""

    pictures: QueryHandlers
    ask: Callable[[Path, Mapping[str, Any]], dict[str, Any]] = ask
    """Asks the daemon."""
    _signs: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    _signs_at: float = float("-inf")
    _asks: anyio.Lock = field(default_factory=anyio.Lock)
    _watchers: int = 0
    _looks: anyio.Lock = field(default_factory=anyio.Lock)
    _known: tuple[int, float] = (0, float("-inf"))
    _ended: anyio.Event = field(default_factory=anyio.Event)

    def end(self) -> None:
        """End every stream."""
        self._ended.set()

    async def watch(self, run: str | None = None, may: Callable[[], bool] = lambda: True) -> Stream:
        """Begin a stream, with signs of life of a run, while `may` says so. Raises `TooManyStreams`."""
        if self._watchers >= MOST:
            raise TooManyStreams(f"{MOST} pages watch already")
        return Stream(lines=self._stream(run, may))

    async def _stream(self, run: str | None, may: Callable[[], bool]) -> AsyncIterator[bytes]:
        """Say what changes, as server-sent events, until the server ends, or whoever watches may do so no more."""
        if self._watchers >= MOST:  # of several that began at once
            return
        self._watchers += 1
        try:
            known = await self._seq()
            yield _event(Changed(seq=known, issues=None))
            quiet, told = 0.0, float("-inf")
            while not self._ended.is_set():
                with anyio.move_on_after(LOOK):
                    await self._ended.wait()
                if not may():
                    return
                found = await self._seq()
                if run is not None and anyio.current_time() - told >= SIGNS:
                    told = anyio.current_time()
                    if (alive := await self._alive(run)) is not None:
                        yield f"event: signs\ndata: {alive}\n\n".encode()
                if found != known:
                    issues = await self.pictures.read(lambda seen, after=known: _changed(seen, after))
                    known, quiet = found, 0.0
                    yield _event(Changed(seq=found, issues=issues))
                elif (quiet := quiet + LOOK) >= BEAT:
                    quiet = 0.0
                    yield b": still here\n\n"
        finally:
            self._watchers -= 1

    async def _alive(self, run: str) -> str | None:
        """Say when a run last showed a sign of life, and what it has used; None: it does not run."""
        row = await self.pictures.read(lambda seen: runs.running(seen.database, run))
        if row is None:
            return None
        async with self._asks:
            if anyio.current_time() - self._signs_at >= SIGNS:
                self._signs_at, self._signs = anyio.current_time(), {}
                with suppress(AshepError), anyio.move_on_after(ANSWER):  # no daemon, or a busy one
                    asked = partial(self.ask, self.pictures.state, {"do": "watch"})
                    self._signs = (await to_thread.run_sync(asked, abandon_on_cancel=True)).get("signs", {})
        return json.dumps({run: row | self._signs.get(run, {})})

    async def _seq(self) -> int:
        """The last record that is drawn, as one of us saw it a moment ago."""
        async with self._looks:
            seq, at = self._known
            if anyio.current_time() - at >= LOOK:
                with suppress(NotReady), prefer_progress():  # the next look may find it
                    seq = await self.pictures.current()
                self._known = seq, anyio.current_time()
            return seq


def _changed(seen: ReadModel, after: int) -> list[str] | None:
    """The issues that records behind a number are about; None: too many, or the journal is another one."""
    if seen.database is None or lists.seq(seen.database) < after:
        return None
    query = "SELECT DISTINCT issue FROM facts WHERE seq > ? AND issue IS NOT NULL LIMIT ?"
    found = [str(row["issue"]) for row in seen.database.execute(query, [after, MOST_NAMED + 1])]
    return found if len(found) <= MOST_NAMED else None


def _event(told: Changed) -> bytes:
    return f"event: changed\ndata: {told.model_dump_json()}\n\n".encode()
