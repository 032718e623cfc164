"""Playbooks of budgets: soft limits warn once, hard ones stop, and what waits for budget goes on when there is some."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from ashep.core.analysis.issue_status import account, is_idle
from ashep.core.facts import commands as c
from ashep.core.facts import issues as facts_issues
from ashep.core.facts import resources, runs
from ashep.core.policy.agents import Agents
from ashep.core.policy.budgets import Budget, Budgets, ProviderBudget
from ashep.core.policy.policies import Phase
from ashep.core.policy.settings import Settings
from ashep.core.reconcile.observe import turn_read
from ashep.core.resources.due_times import next_due
from ashep.core.state.spending import day_ends, used_today
from tests.core.given import CRITIC, JUDGE, LARGE, SMALL, T0, adopted, policy_of, settings
from tests.core.playbook import Playbook, like

READ = policy_of(Phase(name="review", timeout=timedelta(hours=9)), Phase(name="arbitrate"))
TEAM = Agents(version=1, agents=(CRITIC.model_copy(update={"priority": 5}), JUDGE))
"""The critic (provider other) goes first, the judge uses the server's default (acme)."""
MIDNIGHT = day_ends(T0)
TOKENS, COST = ProviderBudget(tokens=1000), Budget(cost=5.0)


def config(**budgets: Any) -> Settings:
    return settings().model_copy(update={"budgets": Budgets(**budgets)})


def working(*issues: str, **budgets: Any) -> Playbook:
    return Playbook(READ, TEAM, config(**budgets), issues or ("t-1",)).looked()


def used(tokens: int, cost: float = 0.0, **fields: Any) -> dict[str, Any]:
    return {"tokens": tokens, "cost": cost, "provider": "other", **fields}


def done(book: Playbook, tokens: int, cost: float = 0.0) -> runs.TurnSeen:
    """The turn is finished, well, and has used so much."""
    return replace(book.reports(), tokens=tokens, cost=cost, provider="other")


# --- counting -------------------------------------------------------------------------------------------------------


@pytest.mark.promise("B1")
def test_what_turns_use_is_counted_once_for_run_issue_provider_day_and_all() -> None:
    book = working()
    assert book >> book.turn("running", **used(100, 0.1))
    assert book >> book.turn("running", **used(300, 0.3))
    assert book >> book.turn("running", **used(300, 0.3))
    assert book >> book.turn("stored", **used(0))  # a read that misses what was there takes nothing back
    assert (book.run().spent, book.flow().counters.spent) == ((300, 0.3), (300, 0.3))
    book >> done(book, 400, 0.4) << runs.RunEnded << facts_issues.PhaseEntered
    book.answered() >> book.turn("running", **used(50, 0.0, provider="acme"))
    assert book
    assert (book.run().spent, book.flow().counters.spent) == ((50, 0.0), (450, 0.4))
    spending = book.world.spending
    assert (spending.tokens, spending.cost) == (450, 0.4)
    assert used_today(spending, book.now, "other") == (400, 0.4)
    assert used_today(spending, book.now) == (450, 0.4)
    assert used_today(spending, MIDNIGHT) == (0, 0.0)


@pytest.mark.promise("B1")
def test_what_a_turn_had_used_is_counted_at_its_stop_where_it_tells_that_no_sooner() -> None:
    book = working(run=TOKENS, day=COST)
    book >> book.turn("running", **used(1000, 1.0)) << like(resources.BudgetReached, scope="run")
    book << like(runs.RunEnded, state="aborted", abort=True) << like(facts_issues.IssueParked, code="budget")
    book << facts_issues.CommentWanted
    stop = next(one for one in book.flow().open if isinstance(one, c.StopTurn))
    late = book.turn("finished", error="MessageAbortedError: it was stopped", **used(1100, 9.0))
    assert book << c.StopTurn << c.WriteIssue
    book >> late
    assert book.flow().counters.spent == (1000, 1.0), "its run is over"
    book >> runs.TurnStopped("t-1", stop.run, stop.key, 1, 1100, 5.5, "other")
    assert book << like(resources.BudgetReached, scope="day", unit="cost", used=5.5)
    assert (book.run().spent, book.flow().counters.spent) == ((1100, 5.5), (1100, 5.5))
    assert used_today(book.world.spending, book.now, "other") == (1100, 5.5)
    assert book >> runs.TurnStopped("t-1", stop.run, stop.key)  # nobody read it
    assert (book.flow().counters.spent, book.world.spending.cost) == ((1100, 5.5), 5.5)


@pytest.mark.promise("B3")
def test_an_issue_that_is_found_over_its_limit_at_a_stop_parks_before_its_next_run() -> None:
    book = working(day=TOKENS, issue=COST)
    book >> book.turn("running", **used(1000, 1.0)) << like(resources.BudgetReached, scope="day")
    book << like(runs.RunEnded, state="aborted", abort=True) << facts_issues.RetryScheduled
    stop = next(one for one in book.flow().open if isinstance(one, c.StopTurn))
    assert book << c.StopTurn
    book >> runs.TurnStopped("t-1", stop.run, stop.key, 1, 1000, 5.5, "other")
    assert book << like(resources.BudgetReached, scope="issue"), "nobody is at work who has to be stopped"
    book >> book.later(24 * 3600) << like(facts_issues.IssueParked, code="budget")


@pytest.mark.promise("B1")
def test_what_was_used_is_counted_afresh_in_a_new_cycle_and_on_a_new_day() -> None:
    book = working()
    assert book >> book.turn("running", **used(100))
    assert book >> book.later(3 * 3600)
    assert book >> book.turn("running", **used(130))
    assert used_today(book.world.spending, book.now) == (30, 0.0)
    assert book.flow().counters.spent == (130, 0.0)
    book >> book.seen(add=["phase:review"], drop=["phase:review"], status="open", assignee=None)
    assert book.looked().looked().flow().counters.spent == (0, 0.0)
    assert book.world.spending.tokens == 130


# --- limits of a run and an issue -----------------------------------------------------------------------------------


@pytest.mark.promise("B2")
def test_a_soft_limit_warns_once_and_stops_nothing() -> None:
    book = working(run=TOKENS, warn_at=0.5)
    assert book >> book.turn("running", **used(499))
    book >> book.turn("running", **used(500))
    assert book << like(resources.BudgetWarned, scope="run", used=500, limit=1000, issue="t-1")
    assert book >> book.turn("running", **used(600))
    assert book.run().state == "running"


@pytest.mark.promise("B3")
def test_a_run_over_its_limit_is_aborted_and_its_issue_parks() -> None:
    book = working(run=COST)
    book >> book.turn("running", **used(10, 5.0))
    book << like(resources.BudgetReached, scope="run", unit="cost", issue="t-1")
    book << like(runs.RunEnded, state="aborted", abort=True) << like(facts_issues.IssueParked, code="budget")
    book << facts_issues.CommentWanted
    assert book << c.StopTurn << c.WriteIssue
    assert "the cost of run t-1/review.1.1: 5 of 5" in book.flow().why
    assert account(book.world, "t-1").state == "parked"


@pytest.mark.promise("B3")
def test_a_turn_that_ended_its_run_over_the_limit_counts() -> None:
    book = working(run=TOKENS)
    book >> done(book, 2000) << like(runs.RunEnded, state="succeeded") << facts_issues.PhaseEntered
    book << like(resources.BudgetReached, scope="run") << like(runs.RunPlanned, phase="arbitrate")
    book.answered()
    assert (book.run().phase, book.run().spent) == ("arbitrate", (0, 0.0))
    assert not [mark for mark in book.flow().counters.marks if mark.scope == "run"]


@pytest.mark.promise("B3")
def test_a_recovery_over_the_limit_is_not_begun() -> None:
    book = working(run=TOKENS)
    book >> book.turn("finished", block="nonsense", **used(2000)) << like(runs.OutcomeRejected, then="recover")
    book << resources.BudgetReached << like(runs.RunEnded, state="aborted") << facts_issues.IssueParked
    book << facts_issues.CommentWanted
    assert book << c.StopTurn << c.WriteIssue


@pytest.mark.promise("B3")
def test_an_issue_over_its_limit_gets_no_other_run_in_this_cycle() -> None:
    book = working(issue=TOKENS)
    book >> done(book, 1200) << like(runs.RunEnded, state="succeeded") << facts_issues.PhaseEntered
    book << like(resources.BudgetReached, scope="issue", name="t-1") << like(facts_issues.IssueParked, code="budget")
    book << facts_issues.CommentWanted
    book.answered()
    assert account(book.world, "t-1").state == "parked"
    (book >> book.seen(drop=["ashep:parked"])).answered()
    assert (book.run().state, book.flow().counters.spent) == ("running", (0, 0.0)), "a person's cycle counts afresh"


def test_the_runs_of_an_issue_are_added_up() -> None:
    book = working(issue=TOKENS)
    book >> done(book, 700) << runs.RunEnded << facts_issues.PhaseEntered
    book.answered() >> book.turn("running", **used(200)) << like(resources.BudgetWarned, scope="issue", used=900)
    assert book
    book >> book.turn("running", **used(300)) << like(resources.BudgetReached, scope="issue", used=1000)
    book << like(runs.RunEnded, state="aborted") << like(facts_issues.IssueParked, code="budget")


# --- limits of the day, of providers and in all ---------------------------------------------------------------------


@pytest.mark.promise("B4")
def test_over_the_days_limit_runs_are_stopped_without_blame_and_nothing_starts_until_the_day_is_over() -> None:
    book = working("t-1", "t-2", "t-3", "t-4", day=TOKENS)
    assert {run for run in ("t-1", "t-2", "t-3") if book.run(run).state == "running"} == {"t-1", "t-2", "t-3"}
    book >> book.turn("running", **used(1000))
    book << like(resources.BudgetReached, scope="day", name="2026-01-01", until=MIDNIGHT)
    for name in ("t-1", "t-2", "t-3"):
        book << like(runs.RunEnded, issue=name, state="aborted", abort=True)
        book << like(facts_issues.RetryScheduled, issue=name, code="budget", failures=0)
    book << like(facts_issues.IssueHeld, issue="t-4", code="budget") << c.StopTurn << c.StopTurn
    assert book << c.StopTurn
    (book >> book.later(0)).answered()
    for name in ("t-1", "t-2", "t-3", "t-4"):
        told = account(book.world, name)
        assert (told.state, told.code, told.due) == ("time", "budget", MIDNIGHT)
    assert next_due(book.world) == MIDNIGHT
    assert is_idle(book.world), "nothing could start by itself soon"
    book.left = []
    assert book >> book.later((MIDNIGHT - book.now).total_seconds() - 1)
    book.looked()
    assert not list(book.world.indexes.live)
    book >> book.later(1)
    planned = [fact for fact in book.left if isinstance(fact, runs.RunPlanned)]
    assert [(fact.issue, fact.attempt) for fact in planned] == [("t-1", 2), ("t-2", 2), ("t-3", 2)]
    assert [book.flow(name).failures for name in ("t-1", "t-2", "t-3")] == [0, 0, 0]


@pytest.mark.promise("B4")
def test_a_night_without_budget_is_no_working_time() -> None:
    book = Playbook(
        policy_of(Phase(name="review"), max_wall_time=timedelta(hours=1)), TEAM, config(day=TOKENS)
    ).looked()
    book >> book.turn("running", **used(1000))
    book.answered() >> book.later(0)
    book.answered()
    assert book >> book.later(3600)
    assert book.flow().stage == "work"
    book >> book.later(3600)
    assert [type(fact) for fact in book.left[:1]] == [runs.RunPlanned]
    assert book.flow().counters.thought == timedelta(hours=2)


@pytest.mark.promise("B4")
def test_a_higher_limit_frees_what_waits_at_once() -> None:
    book = working(total=TOKENS)
    book >> book.turn("running", **used(1000)) << like(resources.BudgetReached, scope="total", until=None)
    book << like(runs.RunEnded, state="aborted") << like(facts_issues.RetryScheduled, code="budget_total") << c.StopTurn
    book.answered() >> book.later(0)
    assert book
    assert (account(book.world, "t-1").state, account(book.world, "t-1").code) == ("time", "budget_total")
    assert book >> book.later(10 * 86400)
    book >> adopted(config(total=Budget(tokens=1100))) << resources.BudgetWarned << runs.RunPlanned << c.WriteIssue
    assert book


@pytest.mark.promise("B4")
def test_a_lower_limit_counts_at_once() -> None:
    book = working(day=TOKENS)
    assert book >> book.turn("running", **used(500))
    book >> adopted(config(day=Budget(tokens=400))) << like(resources.BudgetReached, limit=400)
    assert book << like(runs.RunEnded, state="aborted") << facts_issues.RetryScheduled << c.StopTurn
    book = working(run=TOKENS)
    assert book >> book.turn("running", **used(500))
    book >> adopted(config(run=Budget(tokens=400))) << like(resources.BudgetReached, scope="run") << runs.RunEnded
    book << facts_issues.IssueParked


def test_two_lower_limits_at_once_end_a_run_once() -> None:
    book = working(day=TOKENS)
    assert book >> book.turn("running", **used(500))
    book >> adopted(config(day=Budget(tokens=400), issue=Budget(tokens=450)))
    book << like(resources.BudgetReached, scope="issue") << like(runs.RunEnded, state="aborted")
    book << facts_issues.IssueParked
    book << facts_issues.CommentWanted << like(resources.BudgetReached, scope="day") << c.StopTurn
    assert book << c.WriteIssue


@pytest.mark.promise("B5")
def test_phases_of_a_spent_provider_go_to_another_agent() -> None:
    book = working("t-1", "t-2", providers={"other": TOKENS})
    assert (book.run("t-1").agent, book.run("t-2").agent) == ("critic", "critic")
    book >> book.turn("running", **used(1000))
    book << like(resources.BudgetReached, scope="provider", name="other on 2026-01-01")
    for name in ("t-1", "t-2"):
        book << like(runs.RunEnded, issue=name, state="aborted")
        book << like(facts_issues.RetryScheduled, issue=name, code="budget_provider")
    book.answered() >> book.later(0)
    planned = [fact for fact in book.left if isinstance(fact, runs.RunPlanned)]
    assert [fact.agent for fact in planned] == ["judge", "judge"]
    assert ("critic", "the budget of other is used up until 2026-01-02 00:00 UTC") in planned[0].others


@pytest.mark.promise("B5")
def test_where_no_other_agent_fits_a_spent_providers_phases_wait_and_others_go_on() -> None:
    only = Agents(version=1, agents=(CRITIC, JUDGE.model_copy(update={"capabilities": ("arbitrate",)})))
    book = Playbook(READ, only, config(providers={"other": TOKENS}), ("t-1", "t-2")).looked()
    book >> done(book, 900) << runs.RunEnded << facts_issues.PhaseEntered << resources.BudgetWarned
    book.answered()
    assert book.run("t-1").agent == "critic" or book.run("t-1").phase == "arbitrate"
    book = Playbook(READ, only, config(providers={"other": TOKENS}), ("t-1",)).looked()
    book >> book.turn("running", **used(1000)) << resources.BudgetReached << runs.RunEnded
    book << facts_issues.RetryScheduled << c.StopTurn
    book.answered() >> book.later(0)
    assert book
    told = account(book.world, "t-1")
    assert (told.state, told.code, told.due) == ("time", "budget_provider", MIDNIGHT)
    book.made.open("t-2", "phase:arbitrate")
    book.looked()
    assert book.run("t-2").agent == "judge"
    book.left = []
    book >> book.later((MIDNIGHT - book.now).total_seconds()) << like(runs.RunPlanned, issue="t-1", agent="critic")


def test_the_agent_that_falls_in_for_a_spent_provider_is_paused_with_its_own() -> None:
    book = working(providers={"other": TOKENS})
    assert book >> resources.WorkPaused("ann", "", provider="acme")
    book >> book.turn("running", **used(1000)) << resources.BudgetReached << runs.RunEnded
    book << facts_issues.RetryScheduled << c.StopTurn
    book.answered() >> book.later(0) << like(facts_issues.IssueHeld, code="paused_by_hand")
    assert book
    book >> resources.WorkResumed("ann", provider="acme") << like(runs.RunPlanned, agent="judge")


# --- fuses ----------------------------------------------------------------------------------------------------------


@pytest.mark.promise("B6")
def test_no_more_runs_start_in_an_hour_than_may() -> None:
    book = working("t-1", "t-2", "t-3", runs_per_hour=2)
    assert [book.flow(name).code for name in ("t-1", "t-2", "t-3")] == ["", "", "runs_per_hour"]
    until = T0 + timedelta(minutes=61)
    reached = book.bodies(resources.BudgetReached)
    assert [(fact.scope, fact.used, fact.until) for fact in reached] == [("runs_per_hour", 2, until)]
    assert account(book.world, "t-3").due == until
    book >> book.reports() << runs.RunEnded << facts_issues.PhaseEntered
    book << like(facts_issues.IssueHeld, code="runs_per_hour")
    book.answered()
    assert book >> book.later(3600)
    book >> book.later(60) << like(runs.RunPlanned, issue="t-1") << like(facts_issues.IssueTaken, issue="t-3")


@pytest.mark.promise("B6")
def test_no_more_is_written_in_a_minute_than_may_and_nothing_is_dropped() -> None:
    book = Playbook(READ, TEAM, config(writes_per_minute=2), ("t-1", "t-2", "t-3")).looked()
    assert [book.flow(name).written is not None for name in ("t-1", "t-2", "t-3")] == [True, True, False]
    delayed = book.bodies(resources.WriteDelayed)
    assert [(fact.issue, fact.due) for fact in delayed] == [("t-3", T0 + timedelta(seconds=61))]
    assert account(book.world, "t-3").due == T0 + timedelta(seconds=61)
    book.left = []
    assert book >> book.later(60)
    assert book >> book.later(1) << like(c.ClaimIssue, issue="t-3")
    book.answered()
    assert book.run("t-3").state == "running"


# --- what a read says -----------------------------------------------------------------------------------------------


@pytest.mark.promise("B1")
def test_the_growth_of_a_running_turn_is_a_fact_where_it_passes_a_limit_or_is_a_good_deal_of_one() -> None:
    book = working(run=TOKENS, warn_at=0.5)
    assert book >> book.turn("running", **used(100))
    quiet, more, warned = (book.turn("running", **used(amount)) for amount in (149, 150, 149))
    assert turn_read(book.world, quiet) == []
    assert turn_read(book.world, more) == [more]
    assert turn_read(book.world, warned) == []
    assert book >> book.turn("running", **used(490))
    for amount, told in ((490, False), (499, False), (500, True)):
        seen = book.turn("running", **used(amount))
        assert turn_read(book.world, seen) == ([seen] if told else [])
    free = working()
    assert free >> free.turn("running", **used(100))
    assert turn_read(free.world, free.turn("running", **used(10**9))) == [], "without limits nothing is journalled"
    other = working(providers={"acme": TOKENS})
    assert other >> other.turn("running", **used(100))
    assert turn_read(other.world, other.turn("running", **used(10**9))) == []
    assert (LARGE.provider, SMALL.provider) == ("acme", "other")
