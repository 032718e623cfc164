"""The clock: wall time, and time that only grows."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Time from outside of the core."""

    def now(self) -> datetime:
        """The wall clock, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that only grow."""
        ...

    async def sleep_until(self, when: datetime) -> None:
        """Return once `now()` has reached `when`, or early; a caller looks again."""
        ...
