"""Providers that take nothing for a while: a circuit breaker for each, as the World keeps it (a part of `evolve`).

Closed: no outage is known. Open: nothing starts on it until a time, or until its credentials may be others. Half-open:
one run tries, and shows whether it takes again what it is asked (Nygard, Release It!, 2007).

And the quotas of logins: how much of each window is used, as providers said last.
"""

import dataclasses
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from ashep.core.facts.resources import ProviderRecovered, ProviderRefused
from ashep.core.facts.runs import Quota, QuotaSeen
from ashep.core.state.immutable import replace

TIMER, PROOF = "provider", "proof"
"""The names of the timers that let a provider be tried, and what tries it be looked at."""

PROVEN = timedelta(seconds=15)
"""A turn that goes on for so long and was not refused shows that its provider takes again what it is asked."""


@dataclass(frozen=True)
class Outage:
    """A provider that takes nothing."""

    provider: str
    kind: Literal["limited", "down", "unauthorized"]
    why: str
    since: datetime
    until: datetime | None
    """When it may be tried; None: when its credentials may be others."""
    refusals: int = 1
    """How often in a row a try was refused."""
    tried_since: datetime | None = None
    """Since when one run may try; None: nothing may."""
    proof_due: datetime | None = None
    """When a turn that still goes on will have shown that it is over."""
    proof_after: int = 0
    """A read that began at or after this sequence number shows it; 0: the time is not up."""


Outages = tuple[Outage, ...]


def outage_of(outages: Outages, provider: str) -> Outage | None:
    """The outage of a provider, if there is one."""
    return next((outage for outage in outages if outage.provider == provider), None)


def refused(outages: Outages, fact: ProviderRefused, time: datetime) -> Outages:
    """A provider takes nothing; what was known of that is replaced."""
    known = outage_of(outages, fact.provider)
    since = known.since if known is not None and known.kind == fact.kind else time
    fresh = Outage(fact.provider, fact.kind, fact.why, since, fact.until, fact.refusals)
    return (*_drop_outage(outages, fact.provider), fresh)


def recovered(outages: Outages, fact: ProviderRecovered, time: datetime) -> Outages:
    """A provider takes again what it is asked."""
    return _drop_outage(outages, fact.provider)


def allow_trial(outages: Outages, provider: str, due: datetime, time: datetime) -> Outages:
    """The time has come at which a provider may be tried."""
    return tuple(
        _half_open(outage, time) if (outage.provider, outage.until) == (provider, due) else outage for outage in outages
    )


def start_trial(outages: Outages, provider: str, time: datetime) -> Outages:
    """A provider that may be tried was sent a prompt."""
    known = outage_of(outages, provider)
    if known is None or known.tried_since is None:
        return outages
    return (*_drop_outage(outages, provider), replace(known, proof_due=time + PROVEN, proof_after=0))


def proven(outages: Outages, provider: str, due: datetime, seq: int) -> Outages:
    """A turn that still goes on shows that it is over."""
    return tuple(
        replace(outage, proof_due=None, proof_after=seq)
        if (outage.provider, outage.proof_due) == (provider, due)
        else outage
        for outage in outages
    )


def freed(outages: Outages, time: datetime, provider: str | None = None) -> Outages:
    """A person resumed: a provider may be tried at once; None: all of them."""
    return tuple(_half_open(outage, time) if provider in (None, outage.provider) else outage for outage in outages)


def with_other_credentials(outages: Outages, time: datetime) -> Outages:
    """The credentials may be others: after another start, of ashep's or of the agent server's, or another file."""
    return tuple(_half_open(outage, time) if outage.kind == "unauthorized" else outage for outage in outages)


def dues(outages: Outages) -> list[tuple[str, datetime]]:
    """When which provider may be tried, and when that will have shown something, by the timers' keys."""
    tries = [(f"{TIMER}:{outage.provider}", outage.until) for outage in outages if outage.until]
    return tries + [(f"{PROOF}:{outage.provider}", outage.proof_due) for outage in outages if outage.proof_due]


def _half_open(outage: Outage, time: datetime) -> Outage:
    half_open = replace(outage, tried_since=time, until=None, proof_due=time + PROVEN)
    return outage if outage.tried_since is not None else half_open


def _drop_outage(outages: Outages, provider: str) -> Outages:
    return tuple(outage for outage in outages if outage.provider != provider)


# --- quotas -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KnownQuota:
    """A login's quota, as a runner showed it last."""

    runner: str
    quota: Quota
    at: datetime


Quotas = tuple[KnownQuota, ...]
"""One for each runner, provider and login, in the order in which they were seen first."""


def quota_seen(quotas: Quotas, fact: QuotaSeen, time: datetime) -> Quotas:
    """Fold what a run shows. A window that it does not mention stays as it was known, until that begins again."""
    known = next((entry for entry in quotas if _key(entry) == _key(fact)), None)
    windows = (
        {window.name: window for window in known.quota.windows if window.resets > time} if known is not None else {}
    )
    windows |= {window.name: window for window in fact.quota.windows}
    entry = KnownQuota(fact.runner, dataclasses.replace(fact.quota, windows=tuple(windows.values())), time)
    return tuple(entry if other is known else other for other in quotas) if known is not None else (*quotas, entry)


def _key(entry: KnownQuota | QuotaSeen) -> tuple[str, str, str]:
    return entry.runner, entry.quota.provider, entry.quota.login


FOLDS = {ProviderRefused: refused, ProviderRecovered: recovered}
