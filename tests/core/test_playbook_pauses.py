"""Playbooks of pauses: nothing starts while one stands, and it ends by its time or by a person (part of dispatch)."""

from datetime import timedelta

import pytest

from ashep.core.analysis.issue_status import account, is_idle
from ashep.core.facts import commands as c
from ashep.core.facts import issues, resources, runs, tracker
from ashep.core.policy.agents import Agent, Agents, RunnerChoice
from ashep.core.policy.policies import Human, Phase, Retry
from ashep.core.reconcile.dispatch import dispatch_all
from ashep.core.resources.due_times import next_due
from ashep.core.state.flow import wall_time
from ashep.core.state.pauses import windows_read
from tests.core.given import BUILDER, CRITIC, LARGE, SMALL, T0, policy_of, up
from tests.core.playbook import Playbook, like

READ = policy_of(Phase(name="review", retry=Retry(initial_delay=timedelta(minutes=1))), Phase(name="arbitrate"))
NIGHT = T0 + timedelta(hours=8)


def holds(book: Playbook) -> list[tuple[str, str]]:
    return [
        (entry.body.code, entry.body.why) for entry in book.made.entries if isinstance(entry.body, issues.IssueHeld)
    ]


@pytest.mark.promise("K1")
def test_nothing_is_taken_while_work_is_paused_and_everything_goes_on_after_it() -> None:
    book = Playbook(READ)
    assert book >> resources.WorkPaused("ann", "the build machine moves")
    book.looked()
    told = account(book.world, "t-1")
    assert (told.state, told.code, told.due) == ("time", "paused_by_hand", None)
    assert told.reason == "paused by ann until `ashep resume`: the build machine moves"
    assert not list(dispatch_all(book.world))
    book >> resources.WorkResumed("bob") << issues.IssueTaken << issues.CycleBegan << issues.PhaseEntered
    assert book << runs.RunPlanned << c.ClaimIssue


@pytest.mark.promise("K1")
def test_what_runs_goes_on_and_is_recorded_but_its_next_phase_waits() -> None:
    book = Playbook(READ).until("review")
    assert book >> resources.WorkPaused("ann", until=NIGHT)
    book >> book.reports()
    book << like(runs.RunEnded, state="succeeded") << issues.PhaseEntered
    book << like(issues.IssueHeld, code="paused_by_hand", why="paused by ann until 2026-01-02 06:00:00Z")
    assert book << c.WriteIssue
    book.answered()
    told = account(book.world, "t-1")
    assert (told.state, told.due) == ("time", NIGHT)
    assert next_due(book.world) == NIGHT
    book >> book.later((NIGHT - book.now).total_seconds()) << like(runs.RunPlanned, phase="arbitrate") << c.OpenSession
    assert book
    assert not book.world.pauses


def test_a_run_that_was_planned_before_the_pause_is_under_way() -> None:
    book = Playbook(READ)
    book.made.look()
    assert book >> resources.WorkPaused("ann")
    book.answered()
    assert book.run().prompt.sent


@pytest.mark.promise("K1")
def test_a_retry_that_is_due_in_a_pause_waits_for_its_end() -> None:
    book = Playbook(READ).until("review")
    book >> [resources.WorkPaused("ann")]
    assert book >> book.reports("failed") << runs.RunEnded << issues.RetryScheduled
    assert account(book.world, "t-1").code == "retry"
    assert book >> book.later(90) << like(issues.IssueHeld, code="paused_by_hand")
    book >> resources.WorkResumed("ann") << like(runs.RunPlanned, attempt=2)


@pytest.mark.promise("K2")
def test_a_pause_survives_a_restart() -> None:
    book = Playbook(READ)
    book >> resources.WorkPaused("ann", until=NIGHT)
    book.made.crash()
    assert book.looked().flow().code == "paused_by_hand"
    assert book.later((NIGHT - book.now).total_seconds()) == [resources.TimerDue("pause:/", NIGHT)]


@pytest.mark.promise("K1")
def test_a_hold_is_told_again_where_the_pause_gets_another_end_and_not_otherwise() -> None:
    book = Playbook(READ)
    book >> resources.WorkPaused("ann", until=NIGHT)
    book.looked()
    assert len(holds(book)) == 1
    later = NIGHT + timedelta(hours=1)
    assert book >> resources.WorkPaused("bob", until=later) << like(issues.IssueHeld, code="paused_by_hand")
    assert account(book.world, "t-1").due == later
    assert book.later((NIGHT - book.now).total_seconds()) == []
    assert book >> tracker.ChangeHinted()


@pytest.mark.promise("K1")
def test_a_paused_provider_keeps_its_own_runs_and_no_others() -> None:
    policy = policy_of(Phase(name="implement"), Phase(name="review"))
    book = Playbook(policy, issues=("t-1", "t-2"), team=Agents(version=1, agents=(BUILDER, CRITIC)))
    book.until("review")
    book >> resources.WorkPaused("ann", provider=LARGE.provider)
    book << like(issues.IssueHeld, issue="t-2", code="paused_by_hand", why="acme is paused by ann until `ashep resume`")
    assert book
    book >> book.reports() << runs.RunEnded << issues.IssueFinished
    book.answered()
    book.looked()
    assert book >> resources.WorkPaused("ann", provider=SMALL.provider)
    assert book >> resources.WorkResumed("ann", provider=SMALL.provider)
    book >> resources.WorkResumed("ann", provider=LARGE.provider) << like(issues.IssueTaken, issue="t-2")


def test_a_provider_is_that_of_the_servers_default_where_the_agent_names_none() -> None:
    judge = Agent(id="judge", capabilities=("review", "arbitrate"), runner=RunnerChoice(agent_slug="plan"))
    book = Playbook(READ, team=Agents(version=1, agents=(judge,)))
    book >> resources.WorkPaused("ann", provider=LARGE.provider)
    assert book.looked().flow().code == "paused_by_hand"
    book >> up(default=SMALL) << issues.IssueTaken


def test_a_person_may_be_asked_in_a_pause_but_no_issue_is_taken_for_that() -> None:
    policy = policy_of(Phase(name="review"), Phase(name="sign", human=Human()))
    book = Playbook(policy, issues=("t-1", "t-2"), config=None).until("review")
    book >> resources.WorkPaused("ann")
    book >> book.reports() << runs.RunEnded << issues.PersonAsked
    first = policy_of(Phase(name="sign", human=Human()))
    book = Playbook(first)
    book >> resources.WorkPaused("ann")
    assert book.looked().flow().stage == "idle"
    assert book.flow().code == "paused_by_hand"


@pytest.mark.promise("K2")
def test_a_pause_is_no_working_time_of_the_cycle() -> None:
    book = Playbook(policy_of(Phase(name="review"), Phase(name="arbitrate"), max_wall_time=timedelta(hours=6)))
    book.until("review")
    worked = wall_time(book.flow(), book.now)
    book >> [resources.WorkPaused("ann", until=NIGHT)]
    (book >> book.reports()).answered()
    book >> resources.ClockJumped(timedelta(hours=1))
    book.made.now += timedelta(hours=3)
    book.made.crash()
    assert book.looked().flow().code == "paused_by_hand"
    assert wall_time(book.flow(), book.now) == worked
    book >> book.later((NIGHT - book.now).total_seconds()) << like(runs.RunPlanned, phase="arbitrate")
    assert wall_time(book.flow(), book.now) == worked
    book.answered()
    book.made.now += timedelta(minutes=10)
    assert wall_time(book.flow(), book.now) == worked + timedelta(minutes=10)


def test_quiet_hours_begin_and_end_by_the_clock() -> None:
    book = Playbook(READ)
    assert windows_read(book.world.pauses, {"nights": T0}, book.now) == []  # over already
    book >> windows_read(book.world.pauses, {"nights": NIGHT}, book.now)
    assert book.looked().flow().code == "quiet_hours"
    assert book.flow().why == "paused by the configuration until 2026-01-02 06:00:00Z: nights"
    assert windows_read(book.world.pauses, {"nights": NIGHT}, book.now) == []
    book >> book.later((NIGHT - book.now).total_seconds()) << issues.IssueTaken


@pytest.mark.promise("K3")
def test_a_person_resumes_in_quiet_hours_and_they_do_not_begin_again_before_the_next_night() -> None:
    book = Playbook(READ)
    book >> windows_read(book.world.pauses, {"nights": NIGHT}, book.now)
    book.looked()
    book >> resources.WorkResumed("ann") << issues.IssueTaken
    book.answered()
    assert windows_read(book.world.pauses, {"nights": NIGHT}, book.now) == []
    assert resources.TimerDue("pause:nights/", NIGHT) in book.later((NIGHT - book.now).total_seconds())
    book >> resources.TimerDue("pause:nights/", NIGHT)
    next_night = NIGHT + timedelta(hours=16)
    assert [*map(type, windows_read(book.world.pauses, {"nights": next_night}, book.now))] == [resources.WorkPaused]


@pytest.mark.promise("K3")
def test_quiet_hours_do_not_end_what_a_person_paused_and_a_window_that_is_taken_out_ends() -> None:
    book = Playbook(READ)
    book >> [resources.WorkPaused("ann"), *windows_read((), {"nights": NIGHT}, book.now)]
    book.looked()
    assert book.flow().code == "paused_by_hand"  # the pause that lasts longest
    book >> windows_read(book.world.pauses, {}, book.now)
    assert [pause.by for pause in book.world.pauses] == ["ann"]
    assert book >> windows_read(book.world.pauses, {}, book.now)


@pytest.mark.promise("L2")
@pytest.mark.parametrize("until", [None, NIGHT])
def test_work_that_a_pause_with_an_end_keeps_waiting_is_not_idle(until: object) -> None:
    book = Playbook(READ)
    book >> resources.WorkPaused("ann", until=until)  # type: ignore[arg-type]
    assert is_idle(book.world)  # there is nothing that could go on
    book.looked()
    assert is_idle(book.world) is (until is None)
    book = Playbook(READ).until("review")
    book >> resources.WorkPaused("ann", until=until)  # type: ignore[arg-type]
    assert not is_idle(book.world)
    (book >> book.reports()).answered()
    assert is_idle(book.world) is (until is None)


def test_an_old_timer_of_a_pause_is_ignored() -> None:
    book = Playbook(READ)
    book >> resources.WorkPaused("ann")
    book.looked()
    assert book >> resources.TimerDue("pause:/", T0)
    assert book.world.pauses


# --- cancelling ---------------------------------------------------------------------------------------------------


@pytest.mark.promise("K4")
def test_a_cancelled_issue_is_stopped_and_parked_and_says_by_whom() -> None:
    book = Playbook(READ).until("review")
    book >> issues.IssueCancelled("t-1", "ann", book.run().id)
    book << like(runs.RunEnded, state="aborted", why="cancelled by ann", abort=True)
    assert book << like(issues.IssueParked, code="cancelled") << issues.CommentWanted << c.StopTurn << c.WriteIssue
    book.answered()
    assert book.run().settled
    assert "ashep:parked" in book.made.tracker["t-1"].labels
    book >> book.seen(drop=["ashep:parked"]) << like(issues.CycleBegan, cycle=2)


@pytest.mark.promise("K4")
def test_an_issue_is_cancelled_while_it_waits_too() -> None:
    book = Playbook(policy_of(Phase(name="review"), Phase(name="sign", human=Human()))).until("review")
    assert (book >> book.reports()).answered().flow().stage == "person"
    book >> issues.IssueCancelled("t-1", "ann") << like(issues.IssueParked, code="cancelled", why="cancelled by ann")


@pytest.mark.promise("K4")
def test_nothing_is_cancelled_that_is_not_ours_or_another_run() -> None:
    book = Playbook(READ, issues=("t-1", "t-2"))
    assert book >> issues.IssueCancelled("t-1", "ann")
    book.until("review")
    assert book >> issues.IssueCancelled("t-1", "ann", "t-1/review.1.2")
    book >> book.reports("failed") << runs.RunEnded << issues.RetryScheduled
    assert book >> issues.IssueCancelled("t-1", "ann", book.run().id)
    book >> issues.IssueCancelled("t-1", "ann") << like(issues.IssueParked, code="cancelled")
    book.answered()
    assert book >> issues.IssueCancelled("t-1", "ann")
