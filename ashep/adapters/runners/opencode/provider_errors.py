"""A provider that does not take what a turn asks of it: what OpenCode shows of that.

As tried on the real server 1.18.33 (tests/test_refusals.py does it again): a 429 and every 5xx show as the status
`retry`, whose message are the provider's words and whose `next` honours `retry-after`; without that header OpenCode
asks again after 2, 4, 8, 16, 32 s and so on, for ever. Nothing tells the two apart but the words. 401, 402 and 403 end
the turn with an `APIError` that holds the status code (facts/opencode.md 5, 20).
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict

from ashep.adapters.runners.quotas import read_time
from ashep.core.facts.runs import Refusal
from ashep.ports.runner import bound_amount

_LIMITED = re.compile(r"rate.?limit|too many|quota|limit|exceeded|slow.?down|credit|billing|\b429\b", re.IGNORECASE)
"""Words with which providers say that it is the caller who asks too much."""

_KINDS: dict[int, Literal["limited", "down", "unauthorized"]] = {
    401: "unauthorized",
    403: "unauthorized",
    402: "limited",
    429: "limited",
}
_DATE = re.compile(r"\w{3}, .* GMT")


class Read(BaseModel):
    """A part of OpenCode's JSON: only what we use, and nothing is said about the rest."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Failure(Read):
    """Why an answer failed: an error of the provider, an abort."""

    name: str
    data: dict[str, Any] = {}

    def __str__(self) -> str:
        message = self.data.get("message")
        return f"{self.name}: {message}" if isinstance(message, str) and message else self.name


def of_status(message: str, attempt: int, next_at: float | None, now: float | None) -> Refusal:
    """Read the status `retry`; both times in milliseconds since 1970, by the server's clock."""
    again = None if next_at is None or now is None else timedelta(milliseconds=bound_amount(next_at - now))
    return Refusal("limited" if _LIMITED.search(message) else "down", message or "it does not say why", again, attempt)


def of_error(error: Failure) -> Refusal | None:
    """Read the error that ended a turn; None: it was not the provider's refusal."""
    words = error.data.get("message")
    why = words if isinstance(words, str) and words else error.name
    if error.name == "ProviderAuthError":
        return Refusal("unauthorized", why)
    status = error.data.get("statusCode")
    if error.name != "APIError" or not isinstance(status, int):
        return None
    kind = _KINDS.get(status) or ("down" if status >= 500 else None)
    if kind is None:
        return None
    given = error.data.get("responseHeaders") if kind != "unauthorized" else None
    entries = cast("dict[object, object]", given) if isinstance(given, dict) else {}
    headers = {str(name).lower(): str(value) for name, value in entries.items()}
    resets = (_read_reset(value) for name, value in headers.items() if _is_used_up(headers, name))
    until = max((reset for reset in resets if reset is not None), default=None)
    return Refusal(kind, why, _retry_after(headers), until=until)


def server_time(date: str) -> float | None:
    """The time in a `Date` header, in milliseconds since 1970: the server's times are by its own clock."""
    with suppress(ValueError, OverflowError):  # it only looks like one
        return parsedate_to_datetime(date).timestamp() * 1000 if _DATE.fullmatch(date) else None
    return None


_USED_UP = {"remaining": ("0",), "status": ("rejected",), "used-percent": ("100", "100.0")}
"""What stands next to the reset of a limit that is used up, and its values."""


def _is_used_up(headers: Mapping[str, str], name: str) -> bool:
    head, word, tail = name.partition("reset")
    others = ((f"{head}{other}{end}", values) for other, values in _USED_UP.items() for end in (tail, ""))
    return bool(word) and any(headers.get(other) in values for other, values in others)


def _read_reset(value: str) -> datetime | None:
    """Read a time: seconds or milliseconds since 1970, or a date with a zone."""
    if re.fullmatch(r"\d{10}(\d{3})?", value):
        return read_time(int(value))
    with suppress(ValueError):
        reset = datetime.fromisoformat(value)
        return reset if reset.tzinfo is not None else None
    return None


def _retry_after(headers: Mapping[str, str]) -> timedelta | None:
    """What the header says: seconds, or a date (RFC 9110, 10.2.3); some providers give milliseconds next to it."""
    if re.fullmatch(r"\d{1,12}", millis := headers.get("retry-after-ms", "")):
        return timedelta(milliseconds=int(millis))
    value = headers.get("retry-after", "")
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value):
        return timedelta(seconds=float(value))
    until, now = server_time(value), server_time(headers.get("date", ""))
    return None if until is None or now is None else timedelta(milliseconds=bound_amount(until - now))
