"""Quiet hours and maintenance windows: when they begin and end, by the crons of the configuration.

What is in force is compared with the World's pauses, and only what differs is a fact; that a pause is over is a due
time of the World, as of every other pause.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo

import anyio

from ashep.config.cron import cron
from ashep.core.model import QuietHours
from ashep.core.pauses import windows_read
from ashep.ports import Clock
from ashep.shepherd import Shepherd


def in_force(
    windows: Sequence[QuietHours], now: datetime, zone: tzinfo | None = None
) -> tuple[dict[str, datetime], datetime | None]:
    """Give the windows that are in force, each with its end, and when the next one begins; `zone` None: the machine's.

    Where a window begins again before it is over, its last beginning counts.
    """
    standing: dict[str, datetime] = {}
    begins: list[datetime] = []
    for window in windows:
        times, began = cron(window.at, zone), None
        fire = times.get_next_fire_time(None, now - window.lasts)
        while fire is not None and fire <= now:
            began, fire = fire, times.get_next_fire_time(None, fire + timedelta(seconds=1))
        if began is not None and (end := began.astimezone(UTC) + window.lasts) > now:
            name = window.name or f"quiet hours, {window.at}"
            standing[name] = max(end, standing.get(name, end))
        if fire is not None:
            begins.append(fire.astimezone(UTC))
    return standing, min(begins, default=None)


class Hours:
    """Tells the shepherd when a window begins, or is in the configuration no more."""

    def __init__(self, shepherd: Shepherd, clock: Clock, zone: tzinfo | None = None) -> None:
        self._shepherd, self._clock, self._zone = shepherd, clock, zone

    async def run(self) -> None:
        """Look at every beginning, and at every other configuration, for ever."""
        told: dict[str, datetime] | None = None
        while True:
            now, wanted = self._clock.now(), self._shepherd.world.settings.worker.quiet_hours
            windows, begins = in_force(wanted, now, self._zone)
            if windows != told:
                told = windows
                self._shepherd.tell(lambda world, windows=windows, now=now: windows_read(world.pauses, windows, now))
            async with anyio.create_task_group() as group:
                group.start_soon(self._wake, wanted, group.cancel_scope)
                await (self._clock.sleep_until(begins) if begins else anyio.sleep_forever())
                group.cancel_scope.cancel()

    async def _wake(self, wanted: Sequence[QuietHours], scope: anyio.CancelScope) -> None:
        while self._shepherd.world.settings.worker.quiet_hours == wanted:
            await self._shepherd.changed()
        scope.cancel()
