"""Times as people read them."""

import re
from datetime import UTC, datetime, timedelta

_UNITS = {"d": 86400, "h": 3600, "m": 60}


def local(text: str) -> str:
    """Write a time of the database in this machine's zone, to the second."""
    return datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def stamp(at: datetime) -> str:
    """Write a time as the database does: as text, such times sort as they follow each other."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def distance(text: str, now: datetime) -> str:
    """Say how far a time of the database is from now, either way: `3m`, `2h`, `5d`."""
    return span(abs((now - datetime.fromisoformat(text)).total_seconds()))


def span(seconds: float) -> str:
    """Write a span of time: `3m`, `2h`, `5d`."""
    for unit, size in _UNITS.items():
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"


def duration(began: str | None, ended: str | None, now: datetime) -> str:
    """Say how long something took, or has taken until now; empty: it never began."""
    if began is None:
        return ""
    return distance(began, datetime.fromisoformat(ended) if ended else now)


def moment(text: str, now: datetime) -> datetime:
    """Read what `--since` takes: `18:00` (the last time it was so late here), `2h`, a date, or a date and a time.

    What names no zone is meant in this machine's. Raises ValueError where it is none of these.
    """
    if (number := text[:-1]).isascii() and number.isdecimal() and text[-1:] in _UNITS:
        return now - timedelta(seconds=int(number) * _UNITS[text[-1]])
    if re.fullmatch(r"\d{1,2}:\d\d", text):
        hour, _, minute = text.partition(":")
        here = now.astimezone().replace(tzinfo=None)
        then = here.replace(hour=int(hour), minute=int(minute), second=0, microsecond=0)
        return (then if then <= here else then - timedelta(days=1)).astimezone()
    return datetime.fromisoformat(text).astimezone()
