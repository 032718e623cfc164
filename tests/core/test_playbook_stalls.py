"""Playbooks of stalls: a turn that shows no sign of life is doubted, looked into, and only then given up."""

from datetime import timedelta
from typing import Any

import pytest

from ashep.core.facts import commands as c
from ashep.core.facts import issues, resources, runs
from ashep.core.facts import vocabulary as e
from ashep.core.facts.runs import Life
from ashep.core.policy.agents import Agent, Agents, RunnerChoice
from ashep.core.policy.policies import Phase, Retry, Stall
from ashep.core.reconcile.observe import turn_read
from tests.core.given import TEAM, policy_of
from tests.core.playbook import Playbook, like

AFTER, TOOL = 300, 3600


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


def working(**stall: str) -> Playbook:
    rule = Stall.model_validate({"after": "5m", "tool_timeout": "1h"} | stall)
    book = Playbook(policy_of(Phase(name="review", stall=rule, timeout=timedelta(days=1)), Phase(name="arbitrate")))
    book.looked() >> book.turn("running")
    return book


def alive(quiet: float, **more: object) -> Life:
    return Life(timedelta(seconds=quiet), **more)  # type: ignore[arg-type]


def keys(timers: list[e.Fact]) -> list[str]:
    return [timer.key for timer in timers if isinstance(timer, resources.TimerDue)]


@pytest.mark.promise("T11")
def test_a_turn_is_doubted_looked_into_and_stopped_and_the_phase_is_tried_again() -> None:
    book = working()
    assert book.later(AFTER - 1) == []
    assert book >> book.later(1)
    assert book.run().watch.doubted
    book >> book.turn("running", life=alive(AFTER)) << like(runs.RunEnded, state="stalled", abort=True)
    assert book << like(issues.RetryScheduled, failures=1) << c.StopTurn


@pytest.mark.promise("T11")
def test_time_alone_never_ends_a_turn() -> None:
    """Nothing was heard of it; only a read that began after the doubt, and looked for signs, may judge."""
    book = working()
    assert book >> book.turn("running", life=alive(2 * AFTER))  # nobody had a doubt
    as_of = book.world.seq
    assert book >> book.later(AFTER)
    assert book >> book.turn("running", life=alive(AFTER), as_of=as_of)
    assert book >> book.turn("running")
    assert book.run().watch.doubted
    assert book >> book.later(AFTER)
    assert book >> book.turn("running", life=alive(10))
    assert not book.run().watch.doubted


def test_a_slow_turn_goes_on_for_as_long_as_it_shows_signs() -> None:
    """One sign each `after` x 0.8: it is looked into now and then, and never stopped."""
    book, looks = working(), 0
    for second in range(0, 20 * AFTER, 10):
        timers = book.later(10 if second else 0)
        assert book >> timers
        if "stall:t-1" in keys(timers):
            looks += 1
            assert book >> book.turn("running", life=alive(second % (AFTER * 0.8)))
    assert book.run().state == "running"
    assert 10 < looks < 100


def test_what_was_quiet_before_the_look_counts() -> None:
    book = working()
    assert book >> book.later(AFTER)
    assert book >> book.turn("running", life=alive(AFTER - 60))
    assert book.later(59) == []
    assert book >> book.later(1)
    book >> book.turn("running", life=alive(AFTER)) << like(runs.RunEnded, state="stalled")


@pytest.mark.promise("T11")
def test_a_long_call_of_a_tool_is_no_stall_and_has_a_bound_of_its_own() -> None:
    book = working()
    for second in range(0, TOOL, AFTER):
        assert book >> book.later(AFTER if second else 0)
        assert book >> book.turn("running", life=alive(second, tool="bash", tool_for=timedelta(seconds=second)))
    assert book.run().state == "running"
    assert book >> book.later(AFTER)
    over = alive(TOOL, tool="bash", tool_for=timedelta(seconds=TOOL))
    book >> book.turn("running", life=over) << like(runs.RunEnded, state="stalled")
    assert "bash" in book.flow().reports[-1].why


@pytest.mark.promise("T11")
def test_a_provider_that_says_when_to_ask_it_again_is_waited_for() -> None:
    book = working()
    assert book >> book.later(AFTER)
    assert book >> book.turn("running", life=alive(AFTER, retry_in=minutes(60)))
    assert keys(book.later(64 * 60)) == []
    assert book >> book.later(60)
    book >> book.turn("running", life=alive(65 * 60, retry_in=minutes(-5))) << like(runs.RunEnded, state="stalled")


def test_a_turn_that_ends_while_it_is_doubted_counts() -> None:
    book = working()
    assert book >> book.later(AFTER)
    book >> book.reports() << like(runs.RunEnded, state="succeeded") << like(issues.PhaseEntered, phase="arbitrate")


def test_another_prompt_has_its_own_time() -> None:
    book = working()
    book.later(AFTER - 1)
    book >> book.turn("finished", block="no outcome") << runs.OutcomeRejected << c.PreparePrompt
    book.answered() >> book.turn("running")
    assert keys(book.later(AFTER - 1)) == []
    assert keys(book.later(1)) == ["stall:t-1"]


def test_a_suspended_machine_makes_nobody_stall() -> None:
    book = working()
    book.made.now += minutes(60)
    assert book >> resources.ClockJumped(minutes(60))
    assert keys(book.later(AFTER - 1)) == []
    assert keys(book.later(1)) == ["stall:t-1"]


@pytest.mark.promise("T11")
def test_where_the_policy_says_fail_there_is_no_other_attempt() -> None:
    book = working(action="fail")
    assert book >> book.later(AFTER)
    book >> book.turn("running", life=alive(AFTER)) << like(runs.RunEnded, state="stalled")
    book << like(issues.IssueParked, code="attempts") << issues.CommentWanted
    assert c.StopTurn in {type(body) for body in book.left}


def test_where_the_policy_says_fail_a_failed_edge_is_followed() -> None:
    rule = Stall(action="fail")
    phases = Phase(name="review", stall=rule, next={"failed": "arbitrate"}), Phase(name="arbitrate")
    book = Playbook(policy_of(*phases)).looked()
    book >> book.turn("running")
    assert book >> book.later(AFTER)
    book >> book.turn("running", life=alive(AFTER)) << like(runs.RunEnded, state="stalled")
    book << like(issues.PhaseEntered, phase="arbitrate")


def test_a_doubt_of_a_turn_that_does_not_run_is_told_once() -> None:
    book = working()
    assert book >> book.later(AFTER)
    told = book.turn("incomplete", life=alive(AFTER))
    assert turn_read(book.world, told) == [told]
    assert book >> told
    assert turn_read(book.world, book.turn("incomplete", life=alive(AFTER))) == []
    assert turn_read(book.world, book.turn("running", life=alive(AFTER))) != []


@pytest.mark.parametrize("state", ["stored", "incomplete"])
def test_a_turn_that_never_began_or_died_is_not_called_stalled(state: str) -> None:
    book = working()
    assert book >> book.later(AFTER)
    book >> book.turn(state, life=alive(AFTER))
    assert "RunEnded" not in {type(body).__name__ for body in book.left}


def test_attempts_of_stalls_are_bounded() -> None:
    rule = Phase(name="review", timeout=timedelta(days=1), retry=Retry(max_attempts=2))
    book = Playbook(policy_of(rule)).looked()
    for _ in range(2):
        book >> book.turn("running")
        book.answered() >> book.later(AFTER)
        book >> book.turn("running", life=alive(AFTER)) << like(runs.RunEnded, state="stalled")
        book.answered() >> book.later(600)
        book.answered()
    assert book.flow().code == "attempts"


# --- a diagnosis --------------------------------------------------------------------------------------------------

DOCTOR = Agent(id="doctor", capabilities=("debug",), runner=RunnerChoice(agent_slug="plan"))


def stalled(*more: Agent, agents: Agents = TEAM) -> Playbook:
    """A turn that has stalled, where the policy wants that looked into; `TEAM` has no agent for it but the builder."""
    rule = Stall(after=minutes(5), tool_timeout=minutes(60), action="diagnose")
    review = Phase(name="review", stall=rule, timeout=timedelta(hours=2))
    team = Agents(version=1, agents=(*agents.agents, *more))
    book = Playbook(policy_of(review, Phase(name="arbitrate")), team).looked()
    book >> book.turn("running")
    book >> book.later(AFTER)
    book >> book.turn("running", life=alive(AFTER))
    return book


def says(book: Playbook, verdict: str | None, result: str = "success", **more: Any) -> runs.TurnSeen:
    return book.reports(result, verdict=verdict, **more) if verdict else book.reports(result, **more)


def diagnosing(*more: Agent) -> Playbook:
    book = stalled(*more)
    book.left = []
    return book.answered()


@pytest.mark.promise("T12")
def test_a_stalled_turn_is_stopped_and_another_agent_reads_its_end_in_a_session_of_its_own() -> None:
    book = stalled(DOCTOR)
    session = book.run().session
    book << like(runs.DiagnosisWanted, agent="builder", slug="build") << like(c.StopTurn, session=session)
    assert book >> book.next() << like(c.OpenSession, access="read", reuse=None, slug="build")
    assert book >> book.next() << like(c.PreparePrompt, n=2, kind="diagnose")
    assert book >> book.next() << like(c.SendPrompt, n=2, slug="build")
    assert book.run().session != session
    assert dict(book.flow().sessions)["review"] == session
    assert book >> book.next()
    assert book >> book.turn("running")
    why = "no sign of life for 5m, and 5m is the bound; builder says retry: what I did"
    book >> says(book, "retry") << like(runs.RunEnded, state="stalled", why=why, abort=False)
    assert book << like(issues.RetryScheduled, failures=1)
    assert book.flow().counters.cycle_runs == 1


@pytest.mark.promise("T12")
def test_a_diagnosis_sends_the_next_attempt_to_another_agent() -> None:
    book = diagnosing()
    first = book.run().agent
    assert book >> says(book, "change_agent") << like(runs.RunEnded, state="stalled") << issues.RetryScheduled
    book >> book.later(600)
    (planned,) = [one for one in book.left if isinstance(one, runs.RunPlanned)]
    assert planned.agent != first
    again = diagnosing()
    again >> says(again, "retry") << runs.RunEnded << issues.RetryScheduled
    again >> again.later(600) << like(runs.RunPlanned, agent=first)


@pytest.mark.promise("T12")
def test_a_diagnosis_asks_a_person_in_its_own_words() -> None:
    book = diagnosing()
    book >> says(book, "ask_person", summary="The test needs a password.") << like(runs.RunEnded, state="stalled")
    question = "review got stuck. The test needs a password."
    book << like(issues.PersonAsked, phase="review", question=question, human_phase=False) << issues.CommentWanted
    assert book << like(c.WriteIssue, kind="ask")


@pytest.mark.parametrize("wish", [{"needs_human": True}, {"next_action": "need_human"}])
def test_a_diagnosis_that_needs_a_person_asks_one(wish: dict[str, Any]) -> None:
    book = diagnosing()
    book >> says(book, "retry", **wish) << like(runs.RunEnded, state="stalled") << issues.PersonAsked


@pytest.mark.promise("T12")
def test_a_diagnosis_that_comes_to_nothing_is_a_retry() -> None:
    for seen in (
        lambda book: book.turn("finished", block="nonsense"),
        lambda book: book.turn("finished", error="APIError: quota"),
        lambda book: says(book, None, "failed"),
    ):
        book = diagnosing()
        book >> seen(book) << like(runs.RunEnded, state="stalled", diagnosis=None)
        book << like(issues.RetryScheduled, failures=1)


@pytest.mark.promise("T12")
def test_a_diagnosis_has_a_time_of_its_own_and_is_given_once() -> None:
    book = diagnosing()
    assert book >> book.turn("running")
    assert book >> book.later(299)
    book >> book.later(1)
    book >> book.turn("running", life=alive(10)) << runs.DeadlineReached
    book << like(runs.RunEnded, state="stalled", abort=True)
    assert book << issues.RetryScheduled << c.StopTurn
    rule = Stall(after=minutes(2), action="diagnose")
    other = Playbook(policy_of(Phase(name="review", stall=rule), Phase(name="arbitrate"))).looked()
    other >> other.turn("running")
    other >> other.later(120)
    (other >> other.turn("running", life=alive(120))).answered()
    other >> other.later(120)
    other >> other.turn("running", life=alive(120)) << like(runs.RunEnded, state="stalled", abort=True)
    assert other << issues.RetryScheduled << c.StopTurn


@pytest.mark.promise("T12")
def test_where_nobody_can_look_into_it_a_stall_is_tried_again_and_says_so() -> None:
    nobody = Agents(version=1, agents=tuple(agent for agent in TEAM.agents if "debug" not in agent.capabilities))
    ann = Agent(id="ann", capabilities=("debug",), is_human=True)
    book = stalled(ann, agents=nobody)
    why = "no sign of life for 5m, and 5m is the bound; no agent with the capability debug can look into it now"
    assert book << like(runs.RunEnded, state="stalled", why=why, abort=True) << issues.RetryScheduled << c.StopTurn


def test_who_stalled_looks_into_it_only_where_nobody_else_can() -> None:
    debugger = Agent(id="critic-too", capabilities=("review", "debug"), priority=99)
    book = stalled(debugger)
    assert book.run().agent == "critic-too"
    assert book << like(runs.DiagnosisWanted, agent="builder") << c.StopTurn


def test_a_person_in_a_diagnosis_takes_the_issue_over() -> None:
    book = diagnosing()
    book >> book.turn("running", people=("msg_ann",)) << like(runs.RunEnded, state="aborted", abort=False)
    assert book << runs.SessionTaken << issues.CommentWanted << c.WriteIssue
