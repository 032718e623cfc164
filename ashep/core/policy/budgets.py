"""Budgets as users write them: what may be used, in which time, and how much at one time."""

from typing import Annotated

from pydantic import Field

from ashep.core.policy.base_types import AtOnce, Document, Name


class Budget(Document):
    """What may be used. Figures are the agent server's own."""

    tokens: Annotated[int, Field(ge=1)] | None = None
    """Tokens of every kind: read, written, cached; `null`: no limit."""
    cost: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Cost in the provider's currency; `null`: no limit."""


class ProviderBudget(Budget):
    """What may be used of a provider in a day, and how much of it at one time."""

    max_runs: AtOnce | None = None
    """So many runs on it at one time; then the next agent of another provider that fits is taken, and no person.
    `null`: no cap but `worker.max_concurrent_runs`."""


class Budgets(Document):
    """How much may be used. Each limit is hard; `warn_at` makes a soft one of it. A day is UTC's, from midnight on."""

    warn_at: Annotated[float, Field(gt=0, le=1)] = 0.8
    """The share of a limit at which a person is warned, once for each scope and period."""
    run: Budget = Budget()
    """One run: over it the run is aborted and the issue parks."""
    issue: Budget = Budget()
    """One issue in one cycle, all its runs together: over it no run of it goes on or starts, and the issue parks."""
    day: Budget = Budget()
    """All runs of a day: over it runs under way are stopped, and nothing starts until the day is over."""
    providers: dict[Name, ProviderBudget] = {}
    """By provider, all its runs of a day: over it its runs are stopped, and its phases wait until the day is over, or
    go to an agent of another provider that fits. And how many of its runs there may be at one time."""
    total: Budget = Budget()
    """All runs since the journal began: over it nothing starts until the limit is raised."""
    runs_per_hour: Annotated[int, Field(ge=1)] | None = None
    """No more runs start in an hour; `null`: no limit."""
    writes_per_minute: Annotated[int, Field(ge=1)] | None = None
    """No more writes to the tracker are made in a minute: those that are too many wait. Heartbeats do not count.
    `null`: no limit."""
