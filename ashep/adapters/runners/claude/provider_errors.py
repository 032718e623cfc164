"""A provider that does not take what a turn asks of it, and other errors: what Claude Code shows of that.

As tried on the real binary 2.1.330 (tests/claude does it again): a 429, a 529, every 5xx, a 401 and a cut stream show
as `api_retry` with a status and a word for it, but not with the provider's own words; those stand behind the status in
the text of the answer that ends the turn (facts/claude-code.md 32, 34).
"""

import re
from datetime import timedelta
from typing import Literal

from ashep.core.facts.runs import Refusal
from ashep.core.resources.providers import ABORTED

Kind = Literal["limited", "down", "unauthorized"]

_WORDS = re.compile(r"\bAPI Error: (?:\d{3} )?(.*)", re.DOTALL)
_ADVICE = re.compile(r"\.? This is a server-side issue, usually temporary.*", re.DOTALL)
"""What Claude Code adds to the provider's words."""

_STATUSES: dict[int, Kind] = {401: "unauthorized", 403: "unauthorized", 402: "limited", 429: "limited"}
_ERRORS: dict[str, Kind] = {
    "authentication_failed": "unauthorized",
    "oauth_org_not_allowed": "unauthorized",
    "billing_error": "limited",
    "rate_limit": "limited",
    "overloaded": "down",
    "server_error": "down",
}
"""What the word for an error stands for."""

_LOST = re.compile(
    r"connection (?:error|closed|reset|refused|to the api was lost)|unable to connect|fetch failed|time.?out"
    r"|stream ended|stream idle",
    re.IGNORECASE,
)
"""How it says that no answer came, or none that was whole: there is no status then."""

_TOO_LONG = ("prompt_too_long", "blocking_limit")
_COMPACTION = re.compile(r"\bautomatic compaction failed: (.*)", re.DOTALL)
_STATUS = re.compile(r"\bAPI Error: (?:Request rejected \()?(\d{3})\b")
"""Where a status stands of which nothing else tells."""


def of_retry(status: int | None, error: str, delay: timedelta, attempt: int) -> Refusal:
    """Read an `api_retry`: without a status the provider was not reached, or its answer broke off."""
    kind = _kind(status, error) or "down"
    said = error.replace("_", " ") or "no answer"
    return Refusal(kind, f"{said} ({status})" if status else said, delay, max(attempt, 1))


def of_end(reason: str, status: int | None, error: str, said: str) -> Refusal | None:
    """Read the error that ended a turn; None: it was not the provider's refusal.

    A turn that is too long ends by itself, but where it could not be made shorter since the provider refused to do
    that, it is the provider that is away: the words alone tell of it.
    """
    if reason in _TOO_LONG and (found := _COMPACTION.search(said)):
        stands, said = _STATUS.search(found[1]), found[1]
        status, error = int(stands[1]) if stands else None, ""
    elif reason != "api_error":
        return None
    kind = _kind(status, error) or ("down" if status is None and _LOST.search(said) else None)
    return None if kind is None else Refusal(kind, words(said))


def words(said: str) -> str:
    """The provider's words, without what Claude Code says around them."""
    found = _WORDS.search(said)
    return _ADVICE.sub("", found[1] if found else said).strip() or "it does not say why"


def name_of(reason: str, *, api: bool) -> str:
    """How an error is called, by why the turn ended."""
    if reason.startswith("aborted"):
        return ABORTED
    if reason in _TOO_LONG:
        return "ContextOverflowError"
    return "APIError" if api or reason == "api_error" else "ClaudeError"


def _kind(status: int | None, error: str) -> Kind | None:
    if error == "billing_error":  # with status 400: the credit is used up
        return "limited"
    if status is not None:
        return _STATUSES.get(status) or ("down" if status >= 500 else None)
    return _ERRORS.get(error)
