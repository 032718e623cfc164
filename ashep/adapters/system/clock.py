"""Time: the real clock, with a scheduler as its tick source."""

import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count

import anyio
from apscheduler.jobstores.base import JobLookupError  # pyright: ignore[reportMissingTypeStubs] - apscheduler 3 ships no types
from apscheduler.jobstores.memory import MemoryJobStore  # pyright: ignore[reportMissingTypeStubs] - apscheduler 3 ships no types
from apscheduler.schedulers.asyncio import AsyncIOScheduler  # pyright: ignore[reportMissingTypeStubs] - apscheduler 3 ships no types
from apscheduler.triggers.date import DateTrigger  # pyright: ignore[reportMissingTypeStubs] - apscheduler 3 ships no types

LONGEST = timedelta(seconds=10)
"""No sleep is longer: after a suspend or a set clock the due times are looked at again."""


class RealClock:
    """The machine's clocks. Due times wait in the scheduler's memory store; the World is what makes them last."""

    def __init__(self) -> None:
        self._scheduler = AsyncIOScheduler(jobstores={"default": MemoryJobStore()}, timezone=UTC)
        self._numbers = count()

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that only grow, suspends not included."""
        return time.monotonic()

    async def sleep_until(self, when: datetime) -> None:
        """Return at `when`, or after `LONGEST`; a caller looks again."""
        due = min(when, self.now() + LONGEST)
        if due <= self.now():
            await anyio.lowlevel.checkpoint()
            return
        if not self._scheduler.running:
            self._scheduler.start()
        rung, name = anyio.Event(), f"sleep-{next(self._numbers)}"
        self._scheduler.add_job(  # pyright: ignore[reportUnknownMemberType] - untyped
            rung.set, DateTrigger(due), id=name, misfire_grace_time=None
        )
        try:
            await rung.wait()
        finally:
            with suppress(JobLookupError):  # it has rung
                self._scheduler.remove_job(name)  # pyright: ignore[reportUnknownMemberType] - untyped

    def close(self) -> None:
        """Stop the scheduler."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)
