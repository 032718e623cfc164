"""Playbooks of providers that refuse: their phases wait, no attempt is used up, and one run tries before the rest."""

from datetime import timedelta
from typing import Any, Literal

import pytest

from ashep.core.analysis.issue_status import account, is_held_up, is_idle
from ashep.core.facts import commands as c
from ashep.core.facts import issues as facts_issues
from ashep.core.facts import resources, runs, tracker
from ashep.core.facts import vocabulary as e
from ashep.core.facts.records import Entry
from ashep.core.facts.runs import Allowance, Quota, QuotaWindow, Refusal
from ashep.core.policy.agents import Agent, Agents, RunnerChoice
from ashep.core.policy.policies import Human, Phase
from ashep.core.reconcile.evolve import evolve
from ashep.core.reconcile.observe import quota_read, turn_read
from ashep.core.state.world import World
from tests.core.given import CRITIC, JUDGE, ME, T0, adopted, policy_of, settings, up
from tests.core.playbook import Playbook, like

READ = Phase(name="review", timeout=timedelta(hours=1))
PAIR = Agents(version=1, agents=(CRITIC.model_copy(update={"priority": 5}), JUDGE))
"""The critic (provider other) goes first, the judge uses the server's default (acme)."""
LATE = timedelta(hours=4)
TRACKER = tracker.TrackerSeen(ME, "t", "1.3.0")
HELD = like(facts_issues.IssueHeld, code="provider_limited", of="other")


def working(*issues: str, team: Agents = PAIR, **limits: Any) -> Playbook:
    book = Playbook(policy_of(READ, **limits), team, settings(max_concurrent_runs=8), issues or ("t-1",)).looked()
    for name in issues or ("t-1",):
        assert book >> book.turn("running", name, provider="other")
    return book


def limited(again: timedelta | None = LATE, attempt: int = 1, kind: Literal["limited", "down"] = "limited") -> Refusal:
    return Refusal(kind, "slow down", again, attempt)


def refused(
    book: Playbook, refusal: Refusal, name: str = "t-1", state: str = "running", **fields: Any
) -> runs.TurnSeen:
    error = "APIError: no" if state == "finished" else None
    return book.turn(state, name, refused=refusal, provider="other", error=error, **fields)


def tells(book: Playbook, seen: runs.TurnSeen) -> bool:
    return bool(turn_read(book.world, seen))


# --- a limit --------------------------------------------------------------------------------------------------------


@pytest.mark.promise("U1")
def test_a_long_limit_ends_the_run_without_blame_and_holds_only_that_providers_phases() -> None:
    book = working("t-1", "t-2")
    until = book.now + LATE
    book >> refused(book, limited()) << like(resources.ProviderRefused, provider="other", kind="limited", until=until)
    book << like(runs.RunEnded, issue="t-1", state="aborted", abort=True, counts=False)
    book << like(facts_issues.RetryScheduled, issue="t-1", failures=0, code="provider_limited")
    assert book << c.StopTurn
    assert book.run("t-2").state == "running", "what is not refused goes on"
    book.answered() >> book.later(0) << HELD
    book.answered()
    told = account(book.world, "t-1")
    assert (told.state, told.code, told.due) == ("time", "provider_limited", until)
    assert book.flow().counters.cycle_runs == 0
    book.made.open("t-3", type="task")
    book >> up(default=CRITIC_MODEL)
    book.looked()
    assert (book.flow("t-3").code, book.flow("t-3").held_by) == ("provider_limited", "other")


CRITIC_MODEL = up().models[1]


@pytest.mark.promise("U2")
def test_four_hours_later_it_goes_on_by_itself_in_the_same_session_and_no_time_was_lost() -> None:
    book = working(max_wall_time=timedelta(hours=1))
    session = book.run().session
    book >> refused(book, limited())
    book.answered() >> book.later(0)
    book.answered()
    assert book.later(LATE.total_seconds() - 1) == []
    book >> book.later(1) << like(runs.RunPlanned, run="t-1/review.1.2", agent="critic", reuse=session)
    book.answered()
    assert (book.run().state, book.flow().failures) == ("running", 0)
    assert book.run().deadline == book.now + timedelta(hours=1)


@pytest.mark.promise("U1")
def test_a_short_wait_is_waited_for_in_the_session_and_moves_the_deadline() -> None:
    book = working()
    deadline = book.run().deadline
    assert deadline is not None
    wait = timedelta(seconds=50)
    assert tells(book, refused(book, limited(wait)))
    assert book >> refused(book, limited(wait)) << like(resources.ProviderRefused, until=book.now + wait, refusals=1)
    assert not tells(book, refused(book, limited(timedelta(seconds=40))))
    assert (book.run().state, book.run().deadline) == ("running", deadline + wait)
    assert book >> refused(book, limited(timedelta(seconds=30), attempt=2))
    assert book.run().deadline == deadline + timedelta(seconds=80)
    assert tells(book, book.turn("running", provider="other"))


@pytest.mark.promise("U1")
def test_a_turn_that_is_refused_again_and_again_is_ended() -> None:
    book = working()
    for attempt in range(1, 6):
        book >> refused(book, limited(timedelta(seconds=2), attempt))
        assert book.run().state == "running"
        book.answered() >> book.later(2)
        book.answered()
    book >> refused(book, limited(timedelta(seconds=2), 6)) << like(resources.ProviderRefused, refusals=6)
    book << like(runs.RunEnded, state="aborted", counts=False)
    waits = book.world.outages[0].until
    assert waits is not None
    assert waits - book.now == timedelta(minutes=15)


@pytest.mark.promise("U1")
def test_what_used_tokens_counts_as_a_run_of_the_cycle() -> None:
    """A circle through a provider that takes something and then refuses has an end, too."""
    book = working(max_runs=2)
    for _ in range(2):
        book >> refused(book, limited(), tokens=10)
        book.answered() >> book.later(0)
        book.answered() >> book.later(LATE.total_seconds())
        book.answered()
    assert (book.flow().stage, book.flow().code) == ("parked", "max_runs")


@pytest.mark.promise("U2")
def test_a_limit_outlives_a_restart() -> None:
    book = working()
    book >> refused(book, limited())
    book.answered() >> book.later(0)
    book.answered() >> [resources.DaemonStarted(4712, "0.1.0"), adopted(PAIR), TRACKER, up("server-2")]
    assert book.looked().flow().code == "provider_limited"
    book >> book.later(LATE.total_seconds())
    book.looked()
    assert book.run().state == "running"


# --- half open ------------------------------------------------------------------------------------------------------


def waiting(*issues: str) -> Playbook:
    """All are refused, and the time is over."""
    book = working(*issues)
    for name in issues:
        (book >> refused(book, limited(), name)).answered()
    book >> book.later(0)
    book.answered() >> book.later(LATE.total_seconds())
    return book


def running(book: Playbook, *issues: str) -> list[str]:
    return [name for name in issues if book.run(name).state in ("planned", "running")]


@pytest.mark.promise("U2")
def test_one_run_tries_and_the_rest_follow_when_it_was_not_refused_for_a_while() -> None:
    names = ("t-1", "t-2", "t-3")
    book = waiting(*names)
    book << like(runs.RunPlanned, issue="t-1")
    book.answered()
    assert running(book, *names) == ["t-1"]
    assert book >> book.turn("running", provider="other")
    as_of = book.world.seq
    assert book.later(14) == []
    assert not tells(book, book.turn("running", provider="other"))
    assert book >> book.later(1)
    assert not tells(book, book.turn("running", provider="other", as_of=as_of)), "it began before the time was up"
    assert tells(book, book.turn("running", provider="other"))
    book >> book.turn("running", provider="other") << like(resources.ProviderRecovered, provider="other")
    book << like(runs.RunPlanned, issue="t-2") << like(runs.RunPlanned, issue="t-3")
    assert book.world.outages == ()


def test_one_that_ends_well_shows_it_at_once() -> None:
    book = waiting("t-1", "t-2").answered()
    seen = book.reports()
    book >> seen << resources.ProviderRecovered << runs.RunEnded << facts_issues.IssueFinished
    book << like(runs.RunPlanned, issue="t-2")


@pytest.mark.promise("U2")
def test_one_that_is_refused_again_makes_the_wait_longer() -> None:
    book = waiting("t-1", "t-2").answered()
    waits: list[timedelta] = []
    for row in range(2, 9):
        book >> refused(book, Refusal("limited", "no quota"), state="finished")
        book << like(resources.ProviderRefused, refusals=row) << like(runs.RunEnded, abort=False)
        until = book.world.outages[0].until
        assert until is not None
        waits.append(until - book.now)
        book.answered() >> book.later(0)
        book.answered() >> book.later(waits[-1].total_seconds())
        book.answered()
        assert running(book, "t-1", "t-2") == ["t-1"]
    assert waits == [timedelta(seconds=s) for s in (60, 120, 240, 480, 900, 900, 900)]


@pytest.mark.promise("U2")
def test_when_the_one_that_tries_is_stopped_another_tries() -> None:
    book = waiting("t-1", "t-2").answered()
    (book >> book.seen(add=["ashep:excluded"])).answered()
    assert running(book, "t-2") == ["t-2"]


def test_a_turn_that_a_person_stopped_proves_nothing() -> None:
    book = waiting("t-1", "t-2").answered()
    (book >> book.turn("finished", provider="other", error="MessageAbortedError: Aborted")).answered()
    assert [one.provider for one in book.world.outages] == ["other"]


def test_a_read_from_before_the_try_proves_nothing() -> None:
    book = working("t-1", "t-2")
    (book >> refused(book, limited())).answered()
    assert book >> book.turn("running", "t-2", provider="other")
    assert [one.provider for one in book.world.outages] == ["other"], "nothing may be tried yet"


# --- outages and credentials ----------------------------------------------------------------------------------------


def test_a_provider_that_fails_is_down_and_costs_no_attempt() -> None:
    book = working()
    book >> refused(book, Refusal("down", "overloaded"), state="finished")
    book << like(resources.ProviderRefused, kind="down")
    book << like(runs.RunEnded, state="aborted") << like(facts_issues.RetryScheduled, code="provider_down", failures=0)
    book.answered() >> book.later(0) << like(facts_issues.IssueHeld, code="provider_down")
    assert book
    book >> book.later(30) << runs.RunPlanned


def test_any_other_error_is_the_agents() -> None:
    book = working()
    book >> book.turn("finished", error="APIError: bad request") << like(runs.RunEnded, state="failed")
    assert book << like(facts_issues.RetryScheduled, failures=1)


def barred() -> Playbook:
    book = working()
    book >> refused(book, Refusal("unauthorized", "bad key"), state="finished")
    book << like(resources.ProviderRefused, kind="unauthorized", until=None)
    book.answered() >> book.later(0) << like(facts_issues.IssueHeld, code="provider_unauthorized")
    book.answered()
    assert book.later(30 * 86400) == []
    return book


@pytest.mark.promise("U3")
def test_refused_credentials_hold_until_they_may_be_others_and_a_person_is_told_once() -> None:
    book = barred()
    assert is_idle(book.world)
    assert is_held_up(book.world)
    assert book >> resources.WorkResumed("ann", provider="acme")
    assert book >> resources.WorkResumed("quiet hours", window="night")
    book >> resources.WorkResumed("ann") << runs.RunPlanned
    book.answered()
    again = [fact for fact in book.made.entries if isinstance(fact.body, resources.ProviderRefused)]
    assert len(again) == 1


def test_nobody_knows_what_a_tracker_has_to_show_that_does_not_answer() -> None:
    world = evolve(World(), Entry(1, T0, tracker.TrackerSeen("me", "t", "1")))
    assert not is_held_up(world)
    assert is_held_up(evolve(world, Entry(2, T0, tracker.TrackerLost("gone"))))


@pytest.mark.promise("U3")
def test_other_credentials_are_tried() -> None:
    ways: tuple[list[e.Fact], ...] = (
        [adopted(PAIR)],
        [adopted(settings(max_concurrent_runs=8))],
        [up("server-2")],
        [resources.DaemonStarted(4712, "0.1.0"), TRACKER, up()],
    )
    for facts in ways:
        book = barred()
        book >> facts
        book.looked()
        assert book.run().state == "running", facts


def test_a_server_that_is_the_same_as_before_changes_no_credentials() -> None:
    book = barred()
    book >> resources.RunnerSeen("away", "no answer", instance="server-1") << ...
    assert (book >> up("server-1")).answered().flow().code == "provider_unauthorized"


# --- falling back ---------------------------------------------------------------------------------------------------


@pytest.mark.promise("U4")
def test_with_fall_back_another_provider_takes_it_at_once() -> None:
    book = working(on_limit="fall_back")
    book >> refused(book, limited())
    book.answered() >> book.later(0) << like(runs.RunPlanned, agent="judge", reuse=None)
    book.answered()
    planned = book.bodies(runs.RunPlanned)
    assert "takes no more for now" in dict(planned[-1].others)["critic"]


@pytest.mark.promise("U4")
def test_with_fall_back_it_waits_where_nobody_else_fits() -> None:
    ann = Agent(id="ann", capabilities=("review",), is_human=True, priority=-5)
    team = Agents(version=1, agents=(CRITIC, ann))
    book = working(team=team, on_limit="fall_back")
    book >> refused(book, limited())
    book.answered() >> book.later(0) << HELD
    assert "no other agent can take review" in book.flow().why


def test_a_question_to_a_person_waits_for_no_provider() -> None:
    phases = (READ.model_copy(update={"next": {"success": "ask"}}), Phase(name="ask", human=Human(ask="Good?")))
    book = Playbook(policy_of(*phases), PAIR, settings(), ("t-1", "t-2")).looked()
    book >> refused(book, limited(), "t-2")
    book.answered() >> book.reports()
    assert book.answered().flow().stage == "person"


def test_what_is_asked_beside_a_run_goes_to_no_provider_that_takes_nothing() -> None:
    own = RunnerChoice(agent_slug="plan", provider="acme", model="large")
    reader = Agent(id="reader", capabilities=("extract",), runner=own)
    book = Playbook(policy_of(READ), Agents(version=1, agents=(CRITIC, reader)), settings(), ("t-1",)).looked()
    book >> resources.ProviderRefused("acme", "limited", "slow down", book.now + LATE, 1, "t-9/review.1.1")
    book >> book.turn("finished", block="nonsense", provider="other")
    book.answered() >> book.turn("finished", block="nonsense", provider="other")
    book << like(runs.RunEnded, state="failed", error="no_outcome")


# --- times that are named -------------------------------------------------------------------------------------------


@pytest.mark.promise("U1")
def test_a_time_that_a_provider_names_is_the_time_however_soon_it_would_be_asked_again() -> None:
    book = working()
    until = book.now + timedelta(hours=3, minutes=7)
    named = Refusal("limited", "resets 11:09pm (UTC)", timedelta(seconds=2), until=until)
    book >> refused(book, named) << like(resources.ProviderRefused, until=until)
    book << like(runs.RunEnded, state="aborted", abort=True, counts=False) << ...
    book.answered() >> book.later(0) << HELD
    book.answered()
    assert account(book.world, "t-1").due == until
    assert book.later(3 * 3600 + 419) == []
    book >> book.later(1) << runs.RunPlanned


def test_a_turn_that_ended_with_a_named_time_is_not_asked_again_before() -> None:
    book = working()
    until = book.now + timedelta(days=3)
    for row in (1, 2):
        book >> refused(book, Refusal("limited", "resets Oct 5, 3pm", until=until), state="finished")
        book << like(resources.ProviderRefused, until=until, refusals=row) << ...
        book.answered() >> book.later(0)
        book.answered() >> book.later((until - book.now).total_seconds())
        book.answered()
        until = book.now + timedelta(hours=1)


def test_a_named_time_that_is_over_is_none() -> None:
    book = working()
    named = Refusal("limited", "resets 3am", until=book.now - timedelta(seconds=30))
    (
        book
        >> refused(book, named, state="finished")
        << like(resources.ProviderRefused, until=book.now + timedelta(seconds=30))
    )
    assert book.left


def test_a_named_time_that_is_near_is_waited_for_in_the_session() -> None:
    book = working()
    deadline = book.run().deadline
    assert deadline is not None
    assert book >> refused(book, Refusal("limited", "soon", until=book.now + timedelta(seconds=40))) << ...
    assert (book.run().state, book.run().deadline) == ("running", deadline + timedelta(seconds=40))


# --- quotas ---------------------------------------------------------------------------------------------------------


def quota(used: float, status: Allowance = "allowed", login: str = "ann", **more: Any) -> Quota:
    window = QuotaWindow("five_hour", used, T0 + timedelta(hours=5), status)
    return Quota("other", login, status, "five_hour", window.resets, (window,), **more)


def shows(book: Playbook, shown: Quota | None, name: str = "t-1") -> list[e.Fact]:
    return quota_read(book.world, name, book.run(name).id, shown)


def shares(book: Playbook) -> list[tuple[str, str, float]]:
    return [(one.quota.login, w.name, w.used) for one in book.world.quotas for w in one.quota.windows]


@pytest.mark.promise("U5")
def test_the_share_of_a_quota_is_a_fact_by_difference_from_what_the_same_run_showed() -> None:
    book = working("t-1", "t-2")
    assert shows(book, None) == []
    seen = shows(book, quota(0.4))
    assert seen == [runs.QuotaSeen("t-1", book.run().id, "opencode", quota(0.4))]
    assert book >> seen
    assert book >> shows(book, quota(0.6, "allowed_warning"), "t-2")
    assert shows(book, quota(0.4)) == [], "it is older than what the other run shows"
    assert shares(book) == [("ann", "five_hour", 0.6)]
    assert book.world.quotas[0].quota.status == "allowed_warning"
    assert book >> shows(book, quota(0.1, login="bob"), "t-2")
    assert shares(book) == [("ann", "five_hour", 0.6), ("bob", "five_hour", 0.1)]


def test_a_window_that_is_not_mentioned_stays_known_until_it_begins_again() -> None:
    book = working("t-1", "t-2")
    assert book >> shows(book, quota(0.4))
    week = QuotaWindow("seven_day", 0.2, T0 + timedelta(days=6))
    only_week = Quota("other", "ann", "allowed", windows=(week,))
    assert book >> shows(book, only_week, "t-2")
    assert shares(book) == [("ann", "five_hour", 0.4), ("ann", "seven_day", 0.2)]
    book.made.now += timedelta(hours=6)
    assert book >> shows(book, quota(0.0))
    assert book >> shows(book, quota(0.1)) << ...
    book.made.now += timedelta(hours=1)
    assert book >> shows(book, only_week) << ...
    assert shares(book) == [("ann", "seven_day", 0.2)]


def test_a_run_that_is_over_shows_nothing() -> None:
    book = working()
    (book >> book.reports()).answered()
    assert shows(book, quota(0.5)) == []
    assert quota_read(book.world, "t-9", "t-9/review.1.1", quota(0.5)) == []
