"""Budgets: what follows from what was used. A soft limit warns, a hard one stops, and both say so once.

A run or an issue over its limit parks. Over a limit of the day, of a provider or of all, nothing starts that would use
more, and what is under way is stopped: that is no failure of an agent's, and goes on when there is budget again.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from ashep.core.facts import commands, issues, runs
from ashep.core.facts.resources import BudgetReached, BudgetWarned, WriteDelayed
from ashep.core.facts.vocabulary import Fact
from ashep.core.issues.routing import abort, park
from ashep.core.policy.budgets import Budget
from ashep.core.state.flow import Flow
from ashep.core.state.holds import Hold
from ashep.core.state.run import Run, growth, provider_of
from ashep.core.state.spending import (
    RUN_COUNTS,
    WRITE_COUNTS,
    Mark,
    day_ends,
    day_of,
    frees,
    sum_counting,
    used_today,
)
from ashep.core.state.world import World, WorldRules

STEPS = 20
"""The growth of a running turn is a fact where it is one of so many parts of a limit: several cannot pass it unseen."""

Scope = Literal["run", "issue", "day", "provider", "total", "runs_per_hour"]
"""What a limit is for. The API and the page know no others: this is their one definition."""
Unit = Literal["tokens", "cost", "runs"]


@dataclass(frozen=True, slots=True)
class BudgetUsage:
    """A limit, and how much of it is used."""

    scope: Scope
    name: str
    unit: Unit
    used: float
    limit: float
    until: datetime | None = None
    issue: str | None = None

    @property
    def description(self) -> str:
        """What it is, for people: `the cost of issue t-1: 5.02 of 5.00`."""
        of = {"total": "all runs", "runs_per_hour": "the last hour"}.get(self.scope, f"{self.scope} {self.name}")
        if self.unit == "cost":
            return f"the cost of {of}: {self.used:.4g} of {self.limit:.4g}"
        return f"the {self.unit} of {of}: {self.used:.0f} of {self.limit:.0f}"


# --- what is used of what -------------------------------------------------------------------------------------------


def _gauges(
    budget: Budget,
    spent: tuple[float, float],
    scope: Scope,
    name: str,
    until: datetime | None,
    issue: str | None = None,
) -> Iterator[BudgetUsage]:
    if budget.tokens is not None:
        yield BudgetUsage(scope, name, "tokens", float(spent[0]), float(budget.tokens), until, issue)
    if budget.cost is not None:
        yield BudgetUsage(scope, name, "cost", float(spent[1]), float(budget.cost), until, issue)


def of_all(world: World) -> Iterator[BudgetUsage]:
    """The limits that concern more than one issue."""
    budgets, spending, now = world.settings.budgets, world.spending, world.now
    today, until = day_of(now), day_ends(now)
    for provider, budget in budgets.providers.items():
        spent = used_today(spending, now, provider)
        yield from _gauges(budget, spent, "provider", f"{provider} on {today}", until)
    yield from _gauges(budgets.day, used_today(spending, now), "day", today, until)
    yield from _gauges(budgets.total, (spending.tokens, spending.cost), "total", "", None)


def of_flow(world: World, flow: Flow) -> Iterator[BudgetUsage]:
    """The limits of an issue in this cycle, and of its run."""
    budgets, issue = world.settings.budgets, flow.issue.id
    if flow.run is not None:
        yield from _gauges(budgets.run, flow.run.spent, "run", flow.run.id, None, issue)
    yield from _gauges(budgets.issue, flow.counters.spent, "issue", issue, None, issue)


def passed_now(
    world: World, gauges: Iterable[BudgetUsage], marks: Iterable[Mark]
) -> Iterator[BudgetWarned | BudgetReached]:
    """Say which limits were passed of which that was not said yet."""
    said = {(mark.scope, mark.name, mark.unit, mark.limit): mark.hard for mark in marks}
    for gauge in gauges:
        hard = said.get((gauge.scope, gauge.name, gauge.unit, gauge.limit))
        head = (gauge.scope, gauge.name, gauge.unit, gauge.used, gauge.limit)
        if gauge.used >= gauge.limit and not hard:
            yield BudgetReached(*head, f"used up: {gauge.description}", gauge.until, gauge.issue)
        elif gauge.used >= world.settings.budgets.warn_at * gauge.limit and hard is None:
            yield BudgetWarned(*head, f"nearly used up: {gauge.description}", gauge.until, gauge.issue)


# --- what follows ---------------------------------------------------------------------------------------------------


def after_turn(world: World, flow: Flow, judged: list[Fact]) -> list[Fact]:
    """Say what follows from what a turn has used, next to what it is `judged` to mean itself."""
    ended = flow.run is None or flow.run.ended or any(isinstance(fact, runs.RunEnded) for fact in judged)
    return [*_of_one(world, flow, ended=ended), *passed_now(world, of_all(world), world.spending.marks)]


def _of_one(world: World, flow: Flow, *, ended: bool) -> list[Fact]:
    """`ended`: the turn was the end of its run, and its outcome counts: the next run finds the limit used up."""
    facts: list[Fact] = [*passed_now(world, of_flow(world, flow), flow.counters.marks)]
    stops = next((fact for fact in facts if isinstance(fact, BudgetReached)), None)
    if stops is not None and flow.stage == "work" and not ended:
        facts += [*abort(flow, stops.why), *park(flow, "budget", stops.why)]
    return facts


def after_settings(world: World) -> list[Fact]:
    """Say which limits are passed under the settings that have come into force."""
    facts: list[Fact] = []
    for issue in sorted(world.indexes.live):
        flow = world.flows[issue]
        if flow.run is not None and not flow.run.ended:
            facts += _of_one(world, flow, ended=False)
    # what concerns all comes last, and finds ended what a limit of its own has ended
    return [*facts, *passed_now(world, of_all(world), world.spending.marks), *_fuse(world)]


def _fuse(world: World) -> Iterator[BudgetReached]:
    """Say that no more runs start for a while, once as many did as may in an hour."""
    limit, spending, now = world.settings.budgets.runs_per_hour, world.spending, world.now
    if limit is None or (count := sum_counting(spending.runs, RUN_COUNTS, now)) < limit:
        return
    until = frees(spending.runs, RUN_COUNTS, now, limit)
    if not any(mark.scope == "runs_per_hour" and mark.until == until for mark in spending.marks):
        gauge = BudgetUsage("runs_per_hour", "", "runs", count, limit, until)
        yield BudgetReached("runs_per_hour", "", "runs", count, limit, f"used up: {gauge.description}", until)


def reached(before: World, world: World, fact: BudgetReached) -> list[Fact]:
    """Stop what is under way and would use more of a limit of all, of the day or of a provider."""
    if fact.scope not in ("provider", "day", "total"):
        return []
    facts: list[Fact] = []
    for issue in sorted(world.indexes.live):
        flow = world.flows[issue]
        run = flow.run
        if run is None or run.ended or flow.stage != "work" or flow.phase is None:
            continue
        if fact.scope == "provider" and fact.name != f"{provider_of(run, world.seen)} on {day_of(world.now)}":
            continue
        code = {"provider": "budget_provider", "total": "budget_total"}.get(fact.scope, "budget")
        facts += abort(flow, fact.why)
        # wanted at once, so that it starts as soon as there is budget, however that comes about: it is held until then
        facts.append(issues.RetryScheduled(issue, flow.phase, flow.failures, world.now, f"stopped; {fact.why}", code))
    return facts


# --- what does not start --------------------------------------------------------------------------------------------


def used_up(world: World) -> Hold | None:
    """Say which limit is in the way of every run; None: none is."""
    full = {gauge.scope: gauge for gauge in of_all(world) if gauge.used >= gauge.limit}
    if (gauge := full.get("total")) is not None:
        return Hold("budget_total", f"used up: {gauge.description}")
    if (gauge := full.get("day")) is not None:
        return Hold("budget", f"used up until {day_over(world)}: {gauge.description}")
    return None


def day_over(world: World) -> str:
    """Say when the day's budgets are over."""
    return f"{day_ends(world.now):%Y-%m-%d %H:%M} UTC"


def starts_left(world: World) -> int | None:
    """How many runs may still start this hour; None: there is no bound."""
    limit = world.settings.budgets.runs_per_hour
    return None if limit is None else max(limit - sum_counting(world.spending.runs, RUN_COUNTS, world.now), 0)


def spent_providers(world: World) -> tuple[str, ...]:
    """The providers whose budget of the day is used up."""
    full = (gauge for gauge in of_all(world) if gauge.scope == "provider" and gauge.used >= gauge.limit)
    return tuple(gauge.name.rpartition(" on ")[0] for gauge in full) if world.settings.budgets.providers else ()


def over_issue(world: World, flow: Flow) -> str | None:
    """Say why no other run of this issue's cycle may start; None: it has budget."""
    full = (gauge for gauge in of_flow(world, flow) if gauge.scope == "issue" and gauge.used >= gauge.limit)
    gauge = next(full, None)
    return f"used up: {gauge.description}" if gauge else None


# --- what a read or a write may do ----------------------------------------------------------------------------------


def is_worth_telling(world: World, flow: Flow, run: Run, seen: runs.TurnSeen) -> bool:
    """Whether a turn that goes on has used so much more that a limit is passed, or is a good deal nearer."""
    tokens, cost = growth(run.turns, seen)
    if not tokens and not cost:
        return False
    provider = f"{seen.provider or provider_of(run, world.seen)} on {day_of(world.now)}"
    for gauge in (*of_flow(world, flow), *of_all(world)):
        more = tokens if gauge.unit == "tokens" else cost
        steps = (gauge.limit, world.settings.budgets.warn_at * gauge.limit)
        nearer = more * STEPS >= gauge.limit or any(gauge.used < step <= gauge.used + more for step in steps)
        if nearer and (gauge.scope != "provider" or gauge.name == provider):
            return True
    return False


def fused(world: World, command: commands.Command) -> commands.Command | WriteDelayed:
    """Give the command, or where it is a write too many for this minute, that it waits."""
    limit, writes, now = world.settings.budgets.writes_per_minute, world.spending.writes, world.now
    if limit is None or not isinstance(command, commands.WRITES) or sum_counting(writes, WRITE_COUNTS, now) < limit:
        return command
    due = max(frees(writes, WRITE_COUNTS, now, limit), now + timedelta(seconds=1))
    why = f"{limit} writes to the tracker in a minute, as many as may be"
    return WriteDelayed(command.issue, command.key, due, why)


RULES: WorldRules = {runs.RunPlanned: lambda before, world, fact: [*_fuse(world)], BudgetReached: reached}
