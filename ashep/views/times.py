"""Times as people read them."""

from datetime import datetime

_UNITS = (("d", 86400), ("h", 3600), ("m", 60))


def local(text: str) -> str:
    """Write a time of the database in this machine's zone, to the second."""
    return datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def distance(text: str, now: datetime) -> str:
    """Say how far a time of the database is from now, either way: `3m`, `2h`, `5d`."""
    seconds = abs((now - datetime.fromisoformat(text)).total_seconds())
    for unit, size in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"


def duration(began: str | None, ended: str | None, now: datetime) -> str:
    """Say how long something took, or has taken until now; empty: it never began."""
    if began is None:
        return ""
    return distance(began, datetime.fromisoformat(ended) if ended else now)
