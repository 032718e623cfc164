"""Virtual time, and journals in it: an asyncio loop whose clock jumps to the next timer once nothing is ready to run.

Hours pass in a moment, in the same order on every machine, and the code that runs is the daemon's own. Worker threads
live in real time: the loop waits for those of the limiters that it was given before it jumps.

    anyio.run(main, backend_options=VIRTUAL)
"""

import asyncio
import selectors
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread

from ashep.core.facts import records
from ashep.core.policy import disk_limits
from ashep.core.state.world import World
from ashep.journal.blobs import Aside, Blobs
from ashep.journal.writer import SIZES, Journal, Sizes
from ashep.ports.journal import START, Batch, Place

THREAD = 5.0
"""Real seconds that a worker thread may keep virtual time from going on, before it is given up."""

LATENCY = 0.004
"""Virtual seconds that a batch takes to become durable."""

EPOCH = datetime(2026, 1, 1, 8, tzinfo=UTC)
"""When virtual time begins, by the wall clock."""


class _Selector(selectors.DefaultSelector):  # pyright: ignore[reportUntypedBaseClass, reportGeneralTypeIssues] - an alias of the platform's best
    """Waits by letting time jump, unless a worker thread is under way."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.real: Callable[[], float] | None = None
        self.limiters: list[anyio.CapacityLimiter] = []
        self._unasked = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Give what is ready; else jump. While the loop has something to run, the system is asked every 16th time."""
        if self.real is not None:
            ready = super().select(timeout)
            self.now = self.real()
            return ready
        in_threads = any(limiter.borrowed_tokens for limiter in self.limiters)
        self._unasked = 0 if in_threads or timeout != 0 else self._unasked + 1
        if self._unasked % 16:
            return []
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None or in_threads:
            ready = super().select(THREAD)
            if not ready:
                reason = "a worker thread does not end" if in_threads else "nothing is ready and no timer is set"
                raise RuntimeError(f"virtual time stands still: {reason}")
            return ready
        self.now += max(timeout, 0.0)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is virtual."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)
        self._clock_resolution = 1e-6  # the machine's is too fine for the floats of years: time would stand still

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._virtual.now

    def wait_for_threads_of(self, limiter: anyio.CapacityLimiter) -> None:
        """Let time stand while worker threads of this limiter are under way."""
        self._virtual.limiters.append(limiter)

    def go_on_really(self) -> None:
        """Let time pass as it does from now on, for people who look."""
        machine, behind = super().time, super().time() - self._virtual.now
        self._virtual.real = lambda: machine() - behind


VIRTUAL: Mapping[str, Any] = {"loop_factory": VirtualLoop}
"""The `backend_options` with which `anyio.run` runs in virtual time."""


def wait_for_threads() -> None:
    """Let virtual time stand while `to_thread.run_sync` is under way; call it once in a program's main coroutine."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.wait_for_threads_of(to_thread.current_default_thread_limiter())


class LoopClock:
    """The Clock of a virtual loop. `jump` sets the wall clock, as a suspend does."""

    def __init__(self, start: datetime = EPOCH) -> None:
        self._start = start

    def now(self) -> datetime:
        """The wall clock."""
        return self._start + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        """The loop's time."""
        return asyncio.get_running_loop().time()

    async def sleep_until(self, when: datetime) -> None:
        """Return at `when`."""
        await anyio.sleep(max((when - self.now()).total_seconds(), 0.0))

    def jump(self, by: timedelta) -> None:
        """Part the wall clock from the loop's time."""
        self._start += by


# --- journals in it ---------------------------------------------------------------------------------------------------


def open_now(state: Path, at: datetime, sizes: Sizes = SIZES) -> Journal:
    """Open a journal that is written in the calling thread, and takes `LATENCY` virtual seconds for a batch."""
    journal = Journal.open(state, at, sizes, _make_aside(LATENCY))
    journal.blobs = Blobs(journal.blobs.folder, _make_aside(0.0))
    return journal


def _make_aside(seconds: float) -> Aside:
    async def aside(work: Callable[[], None], _: anyio.CapacityLimiter | None) -> None:
        await anyio.sleep(seconds)
        work()

    return aside


class MemoryBlobs:
    """Texts by their hash, for as long as the process lives."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def redact(self, text: str, /) -> str:
        """Give it as it is: nothing secret is made up."""
        return text

    async def keep(self, text: str) -> str:
        """Keep a text and give its hash."""
        name = sha256(text.encode(errors="replace")).hexdigest()
        self._texts[name] = text
        return name

    def has(self, name: str) -> bool:
        """Say whether a text is there."""
        return name in self._texts

    def text(self, name: str) -> str:
        """Give a text."""
        return self._texts[name]


class MemoryJournal:
    """A journal that remembers how many entries it has, and forgets them."""

    def __init__(self) -> None:
        self.blobs, self.next_seq = MemoryBlobs(), 1

    def room(self) -> int:
        """Say that there is room."""
        return 4 * disk_limits.LOW_DISK

    def load_world(self) -> tuple[World, Place]:
        """Know nothing."""
        return World(), START

    def batches(self, after: Place) -> Iterator[Batch]:
        """Give nothing."""
        del after
        return iter(())

    async def append(self, entries: Sequence[records.Entry]) -> None:
        """Count the batch's entries."""
        self.next_seq += len(entries)

    def close(self) -> None:
        """Do nothing."""
