"""Time: the real clock."""

import time
from datetime import UTC, datetime, timedelta

import anyio

LONGEST = timedelta(seconds=10)
"""No sleep is longer: after a suspend or a set clock the due times are looked at again."""


class RealClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that only grow, suspends not included."""
        return time.monotonic()

    async def sleep_until(self, when: datetime) -> None:
        """Return at `when`, or after `LONGEST`; a caller looks again."""
        await anyio.sleep(max(min(when - self.now(), LONGEST).total_seconds(), 0.0))
