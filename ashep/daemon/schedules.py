"""Quiet hours and maintenance windows: when they begin and end, by the crons of the configuration.

What is in force is compared with the World, and only what differs is a fact; that a window is over is a due time of
the World. Windows are of two kinds: those in which no run starts, and those in which nobody is told anything.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo

from ashep.config.cron import cron
from ashep.core.facts.resources import QuietSeen
from ashep.core.facts.vocabulary import Fact
from ashep.core.policy.settings import QuietHours
from ashep.core.state.pauses import windows_read
from ashep.core.state.world import World
from ashep.daemon.shepherd import Shepherd
from ashep.ports.clock import Clock


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


Windows = Mapping[str, datetime]
"""Windows that are in force, each with its end."""


def quiet_read(world: World, windows: Windows, now: datetime) -> list[Fact]:
    """Compare the windows in which nobody is told anything with the World; one that is over is over by itself."""
    until, known = max(windows.values(), default=None), world.notices.quiet
    if until is None:
        return [QuietSeen()] if known is not None and known > now else []
    return [QuietSeen(until)] if until != known else []


class Hours:
    """Tells the shepherd when a window begins, or is in the configuration no more."""

    def __init__(self, shepherd: Shepherd, clock: Clock, *, quiet: bool = False) -> None:
        """`quiet`: those in which nobody is told anything, and not those in which no run starts."""
        self._shepherd, self._clock, self._quiet = shepherd, clock, quiet

    def _get_quiet_hours(self) -> Sequence[QuietHours]:
        settings = self._shepherd.world.settings
        return settings.notify.quiet_hours if self._quiet else settings.worker.quiet_hours

    def _read(self, world: World, windows: Windows, now: datetime) -> list[Fact]:
        return quiet_read(world, windows, now) if self._quiet else windows_read(world.pauses, windows, now)

    async def run(self) -> None:
        """Look at every beginning, and at every other configuration, for ever."""
        told: dict[str, datetime] | None = None
        while True:
            now, wanted = self._clock.now(), self._get_quiet_hours()
            windows, begins = in_force(wanted, now)
            if windows != told:
                told = windows
                self._shepherd.tell(lambda world, windows=windows, now=now: self._read(world, windows, now))
            await self._shepherd.sleep_while(lambda _, wanted=wanted: self._get_quiet_hours() == wanted, begins)
