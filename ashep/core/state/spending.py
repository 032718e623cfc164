"""What is counted for budgets: tokens and cost, of the day and in all; how often runs start and writes are asked for.

A part of `evolve`: counters and no limits. They stay small: one day, one entry for a provider, one for each minute of
an hour and each second of a minute. A day is UTC's, so that a journal says the same on every machine.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ashep.core.facts.resources import BudgetReached, BudgetWarned, WriteDelayed
from ashep.core.state.immutable import replace

Moments = tuple[tuple[datetime, int], ...]
"""How often something happened, by the minute or second in which it did; the oldest first."""

RUN_COUNTS = timedelta(hours=1, minutes=1)
"""How long the start of a run counts, from the minute in which it began: until that minute is an hour ago."""

WRITE_COUNTS = timedelta(minutes=1, seconds=1)
"""How long a write counts, from the second in which it was asked for."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A limit that was passed, hard or soft: said once for each scope, period and limit."""

    scope: str
    """run, issue, provider, day, total or runs_per_hour."""
    name: str
    """Of the run or issue, the provider or the day; of the provider's day both."""
    unit: str
    """tokens, cost or runs."""
    limit: float
    hard: bool
    used: float
    until: datetime | None = None
    """When there is budget again by itself."""


@dataclass(frozen=True)
class Spending:
    """What was used, as the World keeps it."""

    day: str = ""
    """The day (UTC) that `providers` is about."""
    providers: tuple[tuple[str, int, float], ...] = ()
    """Tokens and cost of each provider on that day."""
    tokens: int = 0
    """In all, since the journal began."""
    cost: float = 0.0
    runs: Moments = ()
    """Starts of runs in an hour, by the minute."""
    writes: Moments = ()
    """Writes to the tracker that were asked for in a minute, by the second."""
    marks: tuple[Mark, ...] = ()
    """Limits that were passed, of all scopes but runs and issues."""


NOTHING_SPENT = Spending()
TIMER = "budget"
"""The timer of no issue: there is budget again."""


def day_of(time: datetime) -> str:
    """Name the day (UTC) of a time."""
    return time.astimezone(UTC).date().isoformat()


def day_ends(time: datetime) -> datetime:
    """When the day (UTC) of a time is over."""
    return time.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)


def add(spending: Spending, provider: str, tokens: int, cost: float, time: datetime) -> Spending:
    """Count what a turn was seen to have used beyond what was known of it."""
    if spending.day != day_of(time):
        spending = replace(spending, day=day_of(time), providers=())
    before = next((entry for entry in spending.providers if entry[0] == provider), (provider, 0, 0.0))
    others = tuple(entry for entry in spending.providers if entry[0] != provider)
    entry = (provider, before[1] + tokens, round(before[2] + cost, 9))
    return replace(
        spending, providers=(*others, entry), tokens=spending.tokens + tokens, cost=round(spending.cost + cost, 9)
    )


def drop_expired(spending: Spending, time: datetime) -> Spending:
    """Forget limits whose time is over. Only a timer does: it is what tells the rules that there is budget again."""
    return replace(spending, marks=tuple(mark for mark in spending.marks if mark.until is None or mark.until > time))


def next_budget(spending: Spending) -> datetime | None:
    """When there is budget again of which there is none now."""
    return min((mark.until for mark in spending.marks if mark.hard and mark.until is not None), default=None)


def marked(marks: tuple[Mark, ...], fact: BudgetWarned | BudgetReached) -> tuple[Mark, ...]:
    """Keep in mind that a limit was passed; what was said of it before is replaced."""
    hard = isinstance(fact, BudgetReached)
    mark = Mark(fact.scope, fact.name, fact.unit, fact.limit, hard, fact.used, fact.until)
    same = (fact.scope, fact.name, fact.unit)
    return (*(mark for mark in marks if (mark.scope, mark.name, mark.unit) != same), mark)


def noted(spending: Spending, fact: BudgetWarned | BudgetReached | WriteDelayed) -> Spending:
    """A limit of more than one issue was passed."""
    return spending if isinstance(fact, WriteDelayed) else replace(spending, marks=marked(spending.marks, fact))


def started(spending: Spending, time: datetime) -> Spending:
    """Count the start of a run."""
    minute = time.replace(second=0, microsecond=0)
    return replace(spending, runs=_counted(spending.runs, minute, time, RUN_COUNTS))


def wrote(spending: Spending, time: datetime) -> Spending:
    """Count a write to the tracker."""
    return replace(spending, writes=_counted(spending.writes, time.replace(microsecond=0), time, WRITE_COUNTS))


def _counted(moments: Moments, moment: datetime, time: datetime, span: timedelta) -> Moments:
    kept = tuple(one for one in moments if one[0] + span > time and one[0] != moment)
    return (*kept, (moment, 1 + sum(count for one, count in moments if one == moment)))


def sum_counting(moments: Moments, span: timedelta, time: datetime) -> int:
    """Sum up what still counts; `span`: for how long it does."""
    return sum(count for moment, count in moments if moment + span > time)


def frees(moments: Moments, span: timedelta, time: datetime, limit: int) -> datetime:
    """When fewer than `limit` of these count, if none is added; `span`: for how long one does."""
    ends = (moment + span for moment, _ in moments if moment + span > time)
    return next(end for end in ends if sum_counting(moments, span, end) < limit)


def used_today(spending: Spending, time: datetime, provider: str | None = None) -> tuple[int, float]:
    """Tokens and cost of the day, of a provider or of all of them."""
    if spending.day != day_of(time):
        return 0, 0.0
    entries = [entry for entry in spending.providers if provider in (None, entry[0])]
    return sum(entry[1] for entry in entries), round(sum(entry[2] for entry in entries), 9)
