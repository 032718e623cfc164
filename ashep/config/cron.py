"""Times that a configuration gives as a cron: a thin reading of apscheduler's."""

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Protocol, cast

YEARS = timedelta(days=10 * 366)
"""A cron that does not come round within such a time never does."""


class Cron(Protocol):
    """What is used of apscheduler's trigger."""

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None:
        """Give the first time at or after `now`."""
        ...


def cron(text: str, zone: tzinfo | None = None) -> Cron:
    """Read five fields; `zone` None: the machine's. ValueError says what is wrong.

    Days of the week have names only: 5 is Friday to cron and Saturday to apscheduler.
    """
    from apscheduler.triggers.cron import CronTrigger  # pyright: ignore[reportMissingTypeStubs] - it ships no types

    fields = text.split()
    if len(fields) == 5 and any(char.isdigit() for char in fields[4].partition("/")[0]):
        raise ValueError("days of the week are written mon, tue, wed, thu, fri, sat, sun")
    return cast("Cron", CronTrigger.from_crontab(text, timezone=zone))  # pyright: ignore[reportUnknownMemberType] - as above


def never(text: str, now: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> bool:
    """Whether a cron never comes round, such as every 31st of February."""
    found = cron(text, UTC).get_next_fire_time(None, now)
    return found is None or found - now > YEARS
