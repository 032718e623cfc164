"""Times at which providers take requests again, read out of their words: "resets 3am (Europe/Berlin)", "Oct 5, 3pm".

Each provider has words of its own, and so has each agent program in between. What is not understood names no time.
"""

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo

_LONGEST = 4000  # characters of a message that are read
_FARTHEST = timedelta(days=400)  # a time beyond is no reset, but a slip
_ROUNDED = timedelta(minutes=2)  # a time of day that is over for less is over: its seconds were left out

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

_KEY = r"\b(?:resets?|renews?|again|retry|wait)(?:\b|_)[^\n\d]{0,24}?"
"""The word that a time belongs to, and what stands between them."""

_SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1, "ms": 0.001}
_PIECE = r"(\d{1,9}(?:\.\d{1,9})?)\s*(d(?:ays?)?|h(?:(?:ou)?rs?)?|ms|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)(?![a-z])"
_PIECES = re.compile(_PIECE, re.IGNORECASE)
_SPAN = re.compile(rf"{_KEY}(?<!\d)((?:{_PIECE}[\s,]*(?:and\s+)?)+)", re.IGNORECASE)
_EPOCH = re.compile(r"\bresets?_?(?:at|time)?\W{1,4}(\d{10}|\d{13})\b", re.IGNORECASE)
_MONTH = rf"(?:{'|'.join(_MONTHS)})[a-z]*\.?"
_CLOCK = re.compile(
    rf"(?i:{_KEY}\b(?=\d|{_MONTH}\s|midnight)"
    rf"(?:(?:(?P<month>{_MONTH})\s+(?P<day>\d\d?)(?:st|nd|rd|th)?\b(?:,?\s+(?P<year>\d{{4}})\b)?|(?P<iso>\d{{4}}-\d\d-\d\d))"
    r"(?:[T,\s]+(?:at\s+)?|\b))?"
    r"(?:(?P<midnight>midnight)|(?P<hour>\d\d?)(?::(?P<minute>\d\d)(?::\d\d(?:\.\d+)?)?)?\s*(?P<half>[ap])?(?:\.?m\b\.?)?)?)"
    r"\s*\(?(?P<zone>Z\b|[A-Za-z]+(?:/[A-Za-z_+0-9-]+)+|[A-Z]{2,5}\b|[+-]\d\d:?\d\d)?"
)


def find_reset(words: str, since: datetime) -> datetime | None:
    """Return the time at which these words say that requests are taken again; None if they name none.

    `since` is when they were written, at about: a time of day is the next one behind it. One without a zone is local.
    """
    words = words[:_LONGEST]
    try:
        if (epoch := _EPOCH.search(words)) is not None:
            reset = datetime.fromtimestamp(int(epoch[1][:10]), UTC)
        elif (span := _SPAN.search(words)) is not None:
            pieces = ((float(number), unit.lower()) for number, unit in _PIECES.findall(span[1]))
            seconds = (number * _SECONDS["ms" if unit == "ms" else unit[0]] for number, unit in pieces)
            reset = since + timedelta(seconds=sum(seconds))
        else:
            resets = (_read_clock(match, since) for match in _CLOCK.finditer(words))
            reset = next((reset for reset in resets if reset is not None), None)
    except (OverflowError, ValueError):
        return None
    return reset if reset is not None and reset - since < _FARTHEST else None


def _read_clock(match: re.Match[str], since: datetime) -> datetime | None:
    """Read a date, a time of day or both. ValueError if there is no such date or time."""
    zone = _read_zone(match["zone"])
    if match["zone"] and zone is None:
        return None
    now = since.astimezone(zone)
    clock = _read_time(match)
    if match["iso"] or match["month"]:
        day = date.fromisoformat(match["iso"]) if match["iso"] else _read_date(match, now.date())
        return _join(day, clock or time(), now)
    if clock is None:
        return None
    reset = _join(now.date(), clock, now)
    return reset if reset >= since - _ROUNDED else _join(now.date() + timedelta(days=1), clock, now)


def _join(day: date, clock: time, now: datetime) -> datetime:
    return datetime.combine(day, clock, now.tzinfo).astimezone(UTC)


def _read_time(match: re.Match[str]) -> time | None:
    if match["midnight"]:
        return time()
    if match["hour"] is None or (match["minute"] is None and match["half"] is None):
        return None
    hour, half = int(match["hour"]), (match["half"] or "").lower()
    if half and hour > 12:
        return None
    return time(hour % 12 + 12 * (half == "p") if half else hour, int(match["minute"] or 0))


def _read_date(match: re.Match[str], today: date) -> date:
    """Read a month and a day: where no year is named, of the year in which they lie ahead."""
    month, day = _MONTHS.index(match["month"][:3].lower()) + 1, int(match["day"])
    if match["year"]:
        return date(int(match["year"]), month, day)
    over = date(today.year, month, day) < today - timedelta(days=2)
    return date(today.year + over, month, day)


def _read_zone(name: str | None) -> tzinfo | None:
    if not name:
        return None
    if name[0] in "+-":
        return datetime.strptime(name, "%z").tzinfo
    if name in ("UTC", "GMT", "Z"):  # for which no database of zones is needed
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):  # no such zone; a folder of zones; a name that leads out of the database
        return None
