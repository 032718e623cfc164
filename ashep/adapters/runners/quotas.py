"""Quotas as Claude Code shows them to who has a subscription: `rate_limit_info` (facts/claude-code.md 87).

It prints that itself, and its adapter for ACP hands it on.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import cast

from ashep.core.facts.runs import Allowance, Quota, QuotaWindow

_NAME = re.compile(r"[a-z0-9_]{1,60}", re.ASCII)
_MOST = 10  # windows that are read
_STATUSES: Mapping[object, Allowance] = {
    "allowed": "allowed", "allowed_warning": "allowed_warning", "rejected": "rejected",
}  # fmt: skip


def read_quota(info: Mapping[str, object], provider: str, login: str) -> Quota | None:
    """Return the quota that an object shows; None if it shows none."""
    status = _status(info.get("status"))
    if status is None:
        return None
    if status == "rejected" and info.get("isUsingOverage") is True:  # beyond the windows, and paid for
        status = "allowed_warning"
    rate_limit, details = info.get("rateLimitType"), info.get("unifiedWindows")
    window = rate_limit if isinstance(rate_limit, str) and _NAME.fullmatch(rate_limit) else None
    shares = dict(cast("Mapping[str, object]", details)) if isinstance(details, dict) else {}
    if window is not None and not shares:  # earlier versions tell of the window alone that decides
        shares = {window: info}
    read = (_read_window(name, share, status if name == window else None) for name, share in shares.items())
    windows = tuple(islice((share for share in read if share is not None), _MOST))
    resets = read_time(info.get("resetsAt")) or read_time(info.get("overageResetsAt"))
    return Quota(provider, login, status, window, resets, windows)


def _read_window(name: str, share: object, status: Allowance | None) -> QuotaWindow | None:
    if not isinstance(share, dict) or not _NAME.fullmatch(name):
        return None
    values = cast("Mapping[str, object]", share)
    used, resets = values.get("utilization"), read_time(values.get("resetsAt"))
    if not isinstance(used, int | float) or not 0 <= used < 1000 or resets is None:
        return None
    return QuotaWindow(name, round(float(used), 4), resets, _status(values.get("status")) or status)


def _status(word: object) -> Allowance | None:
    return _STATUSES.get(word) if isinstance(word, str) else None


def read_time(epoch: object) -> datetime | None:
    """Return the time of seconds, or milliseconds, since 1970; None if that is none."""
    if not isinstance(epoch, int | float) or isinstance(epoch, bool) or not 0 < epoch < 1e13:
        return None
    return datetime.fromtimestamp(epoch / 1000 if epoch > 1e11 else epoch, UTC)
