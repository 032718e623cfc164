"""Leases that are known to stand, and since when: a daemon that was away for long must not act on old belief.

A heartbeat renews a lease for five minutes (facts/beads.md 6). What counts is when the last one that was confirmed
*began*; both clocks are asked and the older answer is taken, because one of them stands still while a machine sleeps.
"""

from dataclasses import dataclass
from datetime import datetime

from ashep.ports.clock import Clock
from ashep.ports.tracker import Tracker

EVERY = 120.0
"""Seconds between heartbeats of an issue."""

LIMIT = 240.0
"""Seconds after which a lease is not acted on before it was renewed: less than the five minutes that it lasts."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One moment by both clocks."""

    wall: datetime
    monotonic: float


class Leases:
    """The leases of one daemon."""

    def __init__(self, tracker: Tracker, clock: Clock) -> None:
        self._tracker, self._clock = tracker, clock
        self._beats: dict[str, Moment] = {}

    def moment(self) -> Moment:
        """Now, by both clocks."""
        return Moment(self._clock.now(), self._clock.monotonic())

    def age(self, issue: str) -> float:
        """Seconds since the last confirmed heartbeat began; infinite where there was none."""
        last = self._beats.get(issue)
        if last is None:
            return float("inf")
        now = self.moment()
        return max(now.monotonic - last.monotonic, (now.wall - last.wall).total_seconds())

    def confirm(self, issue: str, began: Moment) -> None:
        """A claim or a heartbeat that began then stands."""
        self._beats[issue] = began

    def keep_only(self, issues: frozenset[str]) -> None:
        """Forget the others: they are not ours any more, or need no lease."""
        self._beats = {issue: beat for issue, beat in self._beats.items() if issue in issues}

    async def renew(self, issue: str) -> None:
        """Beat once; raises `ClaimLost` where the issue is no longer ours, and the tracker's other errors."""
        began = self.moment()
        await self._tracker.heartbeat(issue)
        self.confirm(issue, began)

    async def assure(self, issue: str) -> None:
        """Return at once while the lease is fresh, else renew it; raises as `renew` does."""
        if self.age(issue) > LIMIT:
            await self.renew(issue)
