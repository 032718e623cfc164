"""Playbooks of routing: where an outcome, a failure or an answer leads."""

from datetime import timedelta
from typing import Literal

import pytest

from ashep.core.facts import commands as c
from ashep.core.facts import issues, resources, runs, tracker
from ashep.core.facts.runs import Model
from ashep.core.issues.routing import backoff
from ashep.core.policy.agents import Agent, Agents, RunnerChoice
from ashep.core.policy.policies import Human, Phase, Retry
from tests.core.given import BUILDER, ME, TEAM, policy_of, up
from tests.core.playbook import Playbook, like

ONCE = Retry(max_attempts=1)
ENDED = like(runs.RunEnded, state="succeeded")
TREE = like(c.ReadTree, moment="after")


@pytest.mark.promise("S2")
def test_an_issue_is_taken_claimed_and_worked_on() -> None:
    book = Playbook()
    made = book.made
    assert book >> tracker.IssueSeen("t-1", made.tracker["t-1"], 7) << like(issues.IssueHeld, code="not_ready")
    book >> tracker.ReadySeen(("t-1",), 7)
    book << like(issues.IssueTaken, policy="standard") << like(issues.CycleBegan, cycle=1)
    book << like(issues.PhaseEntered, phase="implement", visit=1)
    book << like(runs.RunPlanned, run="t-1/implement.1.1", agent="builder", access="write", lock=True)
    assert book << like(c.ClaimIssue, add_labels=("phase:implement",))
    assert book >> book.next() << like(c.ReadTree, moment="before")
    assert book >> book.next() << like(c.OpenSession, access="write", slug="build", reuse=None)
    assert book >> book.next() << like(c.PreparePrompt, n=1, kind="task")
    assert book >> book.next() << like(c.SendPrompt, n=1, again=False)
    assert book >> book.next()
    assert book >> book.turn("running")


@pytest.mark.promise("R7")
def test_success_leads_along_its_edge_in_one_write() -> None:
    book = Playbook().looked()
    book >> book.reports() << ENDED << like(issues.PhaseEntered, phase="review", visit=1)
    assert book << TREE
    book >> book.next() << like(runs.RunPlanned, run="t-1/review.1.1", access="read", lock=False)
    assert book << like(
        c.WriteIssue, kind="work", if_status="in_progress", if_assignee=ME, status="in_progress",
        add_labels=("phase:review",), remove_labels=("phase:implement",),
    )  # fmt: skip
    assert book >> book.next() << like(c.OpenSession, access="read")


@pytest.mark.promise("T8")
def test_the_first_prompt_of_a_phase_waits_for_its_transition() -> None:
    book = Playbook().looked()
    book >> book.reports() << ...
    book >> book.next()  # the tree
    book.left = []
    assert book >> book.failed()
    assert not [job for job in book.made.jobs if isinstance(job, c.OpenSession)]
    assert book >> book.later(2) << like(c.WriteIssue, tries=1)


@pytest.mark.promise("R6")
def test_a_verdict_leads_along_its_edge_and_the_arbiter_always_runs() -> None:
    for verdict in ("approve", "needs_changes"):
        book = Playbook().until("review")
        book >> book.reports(verdict=verdict) << ENDED
        assert book << like(issues.PhaseEntered, phase="arbitrate") << runs.RunPlanned << c.WriteIssue


def test_needs_work_leads_back_and_the_visits_count() -> None:
    book = Playbook().until("arbitrate")
    book >> book.reports(verdict="needs_work") << ENDED
    book << like(issues.PhaseEntered, phase="implement", visit=2) << like(runs.RunPlanned, run="t-1/implement.2.1")
    assert book << c.WriteIssue


@pytest.mark.promise("R10")
def test_pass_asks_and_approval_closes_in_six_writes() -> None:
    book = Playbook().until("human_review")
    book >> book.seen(add=["human:approved"]) << c.ReadAnswer
    book >> book.next() << like(issues.PersonAnswered, answer="approved", actor="ann") << issues.IssueFinished
    assert book << like(c.WriteIssue, kind="close", status="closed", remove_labels=(
        "human:approved", "needs:human_approval", "phase:human_review"))  # fmt: skip
    assert book >> book.next() << like(issues.IssueClosed, by="shepherd")
    writes = [type(command).__name__ for command in book.made.done if isinstance(command, c.WRITES)]
    assert writes == ["ClaimIssue", "WriteIssue", "WriteIssue", "WriteIssue", "PostComment", "WriteIssue"]


@pytest.mark.promise("R1")
def test_a_success_without_a_verdict_is_invalid_and_has_no_default_edge() -> None:
    book = Playbook().until("review")
    assert book >> book.reports() << like(runs.OutcomeRejected, then="recover") << like(c.PreparePrompt, kind="recover")


@pytest.mark.promise("R1")
def test_free_text_routes_nothing() -> None:
    book = Playbook().looked()
    book >> book.reports(summary="next phase: close", suggested_next_phase="close") << ENDED
    assert book << like(issues.PhaseEntered, phase="review") << TREE


@pytest.mark.promise("R7")
def test_a_suggested_phase_is_followed_only_where_the_policy_allows_it() -> None:
    phases = (Phase(name="implement", allow_suggested=("code",)), Phase(name="review"), Phase(name="code"))
    for wish, phase in (("code", "code"), ("review", "review"), ("close", "review"), (None, "review")):
        book = Playbook(policy_of(*phases)).looked()
        book >> book.reports(suggested_next_phase=wish) << ENDED << like(issues.PhaseEntered, phase=phase)
        assert book << TREE


@pytest.mark.promise("R7")
def test_the_next_phase_follows_in_order_and_close_after_the_last() -> None:
    book = Playbook(policy_of(Phase(name="review"), Phase(name="arbitrate"))).looked()
    book >> book.reports() << ENDED << like(issues.PhaseEntered, phase="arbitrate") << runs.RunPlanned
    assert book << c.WriteIssue
    book.answered() >> book.reports() << ENDED << issues.IssueFinished
    assert book << like(c.WriteIssue, kind="close")


@pytest.mark.promise("Q4")
def test_an_agents_question_leads_back_into_its_phase_and_never_closes() -> None:
    """A failed implement followed by a person's approval does not close the issue."""
    for label in ("human:approved", "human:changes_requested"):
        book = Playbook().looked()
        book >> book.reports("failed", needs_human=True) << like(runs.RunEnded, state="failed")
        book << like(issues.PersonAsked, phase="implement", human_phase=False) << issues.CommentWanted
        assert book << TREE
        asked = book.answered().made.tracker["t-1"]
        raised = ("needs:human_answer", "needs:human_approval", "phase:implement")
        assert (asked.status, asked.labels) == ("blocked", raised), "told apart from a phase of people"
        book >> book.seen(add=[label]) << c.ReadAnswer
        book >> book.next() << issues.PersonAnswered << like(issues.CycleBegan, cycle=2)
        book << like(issues.PhaseEntered, phase="implement", visit=2) << runs.RunPlanned
        assert book << like(c.WriteIssue, kind="work", status="in_progress")
        assert book.answered().made.tracker["t-1"].labels == ("phase:implement",), "it goes with the question"


@pytest.mark.promise("R2")
def test_need_human_asks_even_in_a_phase_with_verdicts() -> None:
    book = Playbook().until("review")
    book >> book.reports("partial", next_action="need_human") << runs.RunEnded
    assert book << like(issues.PersonAsked, phase="review", human_phase=False) << issues.CommentWanted << c.WriteIssue


@pytest.mark.promise("R3")
@pytest.mark.parametrize("outcome", [{"result": "failed"}, {"result": "partial"}, {"next_action": "repeat_phase"}])
def test_a_failure_is_tried_again_after_a_while(outcome: dict[str, str]) -> None:
    book = Playbook().until("review")
    said = {"verdict": "approve"} | outcome
    book >> book.reports(**said) << like(runs.RunEnded, state="failed")
    assert book << like(issues.RetryScheduled, phase="review", failures=1)
    assert book >> book.later(1)
    book >> book.later(20) << like(runs.RunPlanned, run="t-1/review.1.2", attempt=2) << c.WriteIssue
    assert book >> book.next() << c.OpenSession


@pytest.mark.promise("R4")
def test_attempts_that_are_used_up_park() -> None:
    book = Playbook(policy_of(Phase(name="review", retry=ONCE))).looked()
    book >> book.reports("failed") << runs.RunEnded << like(issues.IssueParked, code="attempts") << issues.CommentWanted
    assert book << like(c.WriteIssue, kind="park", status="blocked", add_labels=("ashep:parked",))
    assert book >> book.next() << c.PostComment


@pytest.mark.promise("R4")
@pytest.mark.parametrize(("result", "target"), [("failed", "arbitrate"), ("partial", "implement")])
def test_attempts_that_are_used_up_lead_along_their_edge(result: str, target: str) -> None:
    edges = {"failed": "arbitrate", "partial": "implement"}
    phases = (Phase(name="review", retry=ONCE, next=edges), Phase(name="arbitrate"), Phase(name="implement"))
    book = Playbook(policy_of(*phases)).looked()
    book >> book.reports(result) << runs.RunEnded << like(issues.PhaseEntered, phase=target) << runs.RunPlanned
    assert book << c.WriteIssue


@pytest.mark.promise("R5")
def test_the_delay_grows_is_capped_and_has_a_jitter_from_the_runs_id() -> None:
    wait = timedelta(seconds=10)
    kinds = ("exponential", "linear", "constant")
    phases = [Phase(name="p", retry=Retry(max_attempts=9, backoff=kind, initial_delay=wait)) for kind in kinds]  # type: ignore[arg-type]
    for phase, factors in zip(phases, ([1, 2, 4, 8], [1, 2, 3, 4], [1, 1, 1, 1]), strict=True):
        for failures, factor in enumerate(factors, 1):
            assert 0.8 <= backoff(phase, failures, "a") / (wait * factor) <= 1.2
    assert backoff(phases[0], 9, "a") == timedelta(minutes=5)
    assert len({backoff(phases[2], 1, f"run-{n}") for n in range(20)}) > 10
    assert backoff(phases[2], 1, "a") == backoff(phases[2], 1, "a")
    long = Phase(name="p", retry=Retry(initial_delay=timedelta(days=900), max_delay=timedelta(days=900)))
    assert backoff(long, 90, "a") == timedelta(days=900)


@pytest.mark.promise("R8")
def test_too_many_visits_park() -> None:
    book = Playbook(policy_of(Phase(name="review", max_visits=2, next={"success": "review"}))).looked()
    book.answered() >> book.reports() << ENDED << like(issues.PhaseEntered, visit=2)
    book.left = []
    book.answered() >> book.reports() << ENDED << like(issues.IssueParked, code="max_visits") << issues.CommentWanted
    assert book << like(c.WriteIssue, kind="park")


@pytest.mark.promise("R8")
def test_too_many_runs_park_before_one_more_starts() -> None:
    loop = Phase(name="review", max_visits=100, next={"success": "review"})
    book = Playbook(policy_of(loop, max_runs=1)).looked()
    book >> book.reports() << ENDED << like(issues.PhaseEntered, visit=2) << like(issues.IssueParked, code="max_runs")
    assert book << issues.CommentWanted << like(c.WriteIssue, kind="park")


@pytest.mark.promise("R8")
def test_a_cycle_that_takes_too_long_parks() -> None:
    book = Playbook(
        policy_of(Phase(name="review"), Phase(name="arbitrate"), max_wall_time=timedelta(minutes=1))
    ).looked()
    book.made.now += timedelta(seconds=61)
    book >> book.reports() << ENDED << like(issues.PhaseEntered, phase="arbitrate")
    book << like(issues.IssueParked, code="max_wall_time") << issues.CommentWanted
    assert book << like(c.WriteIssue, kind="park")


@pytest.mark.promise("R8")
def test_the_time_without_a_daemon_is_no_working_time() -> None:
    """Who stops ashep in the evening finds his issues going on in the morning, not parked."""
    book = Playbook(
        policy_of(Phase(name="review"), Phase(name="arbitrate"), max_wall_time=timedelta(minutes=1))
    ).looked()
    book.made.now += timedelta(seconds=30)
    book.made.turn(resources.DaemonStopped("a signal"))
    book.made.now += timedelta(hours=12)
    book.made.turn(resources.DaemonStarted(2, "0.1.0"), tracker.TrackerSeen("ashep-host-1a2b", "t", "1.3.0"), up())
    book >> book.reports() << ENDED << like(issues.PhaseEntered, phase="arbitrate") << runs.RunPlanned
    assert book << c.WriteIssue
    book.answered()
    book.made.now += timedelta(seconds=31)
    book >> book.reports("failed") << ...
    book >> book.later(12) << like(issues.IssueParked, code="max_wall_time") << issues.CommentWanted
    assert book << like(c.WriteIssue, kind="park")


@pytest.mark.promise("R9")
def test_a_phase_that_an_edit_took_away_parks() -> None:
    from tests.core.given import adopted, policies

    book = Playbook().looked()
    assert book >> adopted(policies(policy_of(Phase(name="review"))))
    book >> book.reports() << ENDED << like(issues.IssueParked, code="unknown_phase") << issues.CommentWanted
    assert book << TREE << like(c.WriteIssue, kind="park")


@pytest.mark.promise("R12", "E2")
def test_created_issues_come_before_the_transition_under_known_ids() -> None:
    more = [{"title": f"more {n}"} for n in range(3)]
    book = Playbook(policy_of(Phase(name="review"), Phase(name="arbitrate"), max_created_issues=2)).looked()
    book >> book.reports(created_issues=more) << ENDED
    book << like(issues.CreationWanted, depth=1, parked=False) << issues.CreationWanted
    book << like(issues.CommentWanted, name="uncreated.t-1/review.1.1") << issues.PhaseEntered << runs.RunPlanned
    assert book << like(c.CreateIssue, parked=False, labels=())
    assert book >> book.next() << c.CreateIssue
    assert book >> book.next() << c.WriteIssue
    ids = {command.id for command in book.made.done if isinstance(command, c.CreateIssue)}
    assert len(ids) == 2
    assert all(name.startswith("t-") and len(name) == 10 and name == name.lower() for name in ids)


@pytest.mark.promise("G4", "R12")
def test_issues_beyond_the_depth_are_created_parked() -> None:
    book = Playbook(policy_of(Phase(name="review"), max_depth=0)).looked()
    book >> book.reports(created_issues=[{"title": "more"}]) << ENDED
    book << like(issues.CreationWanted, depth=1, parked=True)
    assert book << issues.IssueFinished << like(c.CreateIssue, parked=True, labels=("ashep:parked",))
    made = book.answered().made
    (child,) = [view for name, view in made.tracker.items() if name != "t-1"]
    assert child.stamp is not None
    assert child.stamp.depth == 1
    assert book.looked().flow(child.id).code == "parked_label"
    assert book.flow(child.id).counters.depth == 1


@pytest.mark.promise("D9")
def test_a_phase_for_which_a_person_is_chosen_asks() -> None:
    ann = Agent(id="ann", capabilities=("sign",), is_human=True)
    team = Agents(version=1, agents=(*TEAM.agents, ann))
    book = Playbook(policy_of(Phase(name="review"), Phase(name="sign"), Phase(name="arbitrate")), team).looked()
    book >> book.reports() << ENDED << like(issues.PhaseEntered, phase="sign", visit=1)
    book << like(issues.PersonAsked, phase="sign", human_phase=True) << issues.CommentWanted
    assert book << like(c.WriteIssue, kind="ask", add_labels=("needs:human_approval", "phase:sign"))
    assert book.flow().times("sign") == 1
    book.answered() >> book.seen(add=["human:approved"]) << c.ReadAnswer
    book >> book.next() << issues.PersonAnswered << issues.CycleBegan << like(issues.PhaseEntered, phase="arbitrate")
    assert book << runs.RunPlanned << c.WriteIssue


def test_an_issue_can_begin_with_a_question() -> None:
    gate = Phase(name="gate", human=Human(ask="Do it?", approved="implement", changes_requested="close"))
    book = Playbook(policy_of(gate, Phase(name="implement")))
    book.made.look()
    assert book.flow().stage == "person"
    assert book.answered().made.tracker["t-1"].status == "blocked"
    book >> book.seen(add=["human:changes_requested"]) << c.ReadAnswer
    assert book >> book.next() << issues.PersonAnswered << issues.IssueFinished << like(c.WriteIssue, kind="close")


def test_lost_runs_park() -> None:
    book = Playbook().looked()
    book >> runs.RunEnded("t-1", book.run().id, "lost", "nobody knows") << like(issues.IssueParked, code="lost")
    assert book << issues.CommentWanted << TREE << like(c.WriteIssue, kind="park")


@pytest.mark.promise("D2")
def test_the_agent_that_is_chosen_is_one_that_fits() -> None:
    assert BUILDER.priority == 10
    book = Playbook(policy_of(Phase(name="browsertest"))).looked()
    assert book.flow().code == "no_agent"


# --- another agent for the next attempt -----------------------------------------------------------------------------


def reviewers(*providers: str, person: bool = False) -> Agents:
    """Agents a, b, c … of these providers, in that order of priority; the person is the last."""
    agents = [
        Agent(
            id=name, capabilities=("review",), priority=9 - place,
            runner=RunnerChoice(agent_slug="plan", provider=provider, model="m"),
        )
        for place, (name, provider) in enumerate(zip("abcd", providers, strict=False))
    ]  # fmt: skip
    people = [Agent(id="ann", capabilities=("review",), priority=-1, is_human=True)] if person else []
    return Agents(version=1, agents=(*agents, *people))


def reviewing(phase: Phase, team: Agents) -> Playbook:
    book = Playbook(policy_of(phase), team)
    book >> up(models=tuple(Model(provider, "m") for provider in ("acme", "other")))
    return book.looked()


def attempts(change: Literal["next", "different_provider"] | None, team: Agents, many: int) -> list[str]:
    """Which agents take so many attempts that fail."""
    book = reviewing(Phase(name="review", retry=Retry(max_attempts=many, change_agent=change)), team)
    chosen = [book.run().agent]
    while len(chosen) < many:
        book >> book.reports("failed")
        book.answered() >> book.later(600)
        book.answered()
        chosen.append(book.run().agent)
    return chosen


@pytest.mark.promise("R13")
def test_the_next_attempt_goes_to_another_agent() -> None:
    team = reviewers("acme", "acme", "other", person=True)
    assert attempts(None, team, 3) == ["a", "a", "a"]
    assert attempts("next", team, 7) == ["a", "b", "c", "a", "b", "c", "a"]


@pytest.mark.promise("R13")
def test_the_next_attempt_goes_to_another_provider() -> None:
    team = reviewers("acme", "acme", "other", person=True)
    assert attempts("different_provider", team, 4) == ["a", "c", "b", "c"]


@pytest.mark.promise("R13")
def test_an_agent_that_failed_is_not_avoided_in_another_visit() -> None:
    phase = Phase(name="review", retry=Retry(max_attempts=3, change_agent="next"), next={"success": "review"})
    book = reviewing(phase, reviewers("acme", "acme"))
    book >> book.reports("failed")
    book.answered() >> book.later(600)
    book.answered()
    assert book.run().agent == "b"
    book >> book.reports() << ENDED << like(issues.PhaseEntered, visit=2) << like(runs.RunPlanned, agent="a")
