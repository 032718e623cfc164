"""Playbooks of takeovers: a person takes a session or the issue, and what follows when they are done."""

import json
from datetime import timedelta
from typing import Any, Literal

import pytest

from ashep.core.analysis.issue_status import account, is_idle
from ashep.core.facts import commands as c
from ashep.core.facts import issues, resources, runs, tracker
from ashep.core.policy.policies import Limits, Phase, Policy, Takeover
from ashep.core.reconcile.observe import session_read, turn_read
from tests.core.given import policy_of
from tests.core.playbook import Playbook, like

ANN = ("msg_ann",)
PAUSED = "ashep:paused"


def policy(action: Literal["pause", "review", "resume"] = "pause", cooldown: int | None = None) -> Policy:
    wish = Takeover(action=action, cooldown=timedelta(seconds=cooldown) if cooldown else None)
    phases = (
        Phase(name="implement"),
        Phase(name="review", verdicts=("yes", "no"), next={"yes": "close", "no": "close"}),
    )
    return policy_of(*phases).model_copy(update={"takeover": wish})


def working(action: Literal["pause", "review", "resume"] = "pause", cooldown: int | None = None) -> Playbook:
    return Playbook(policy(action, cooldown)).looked()


def watched(book: Playbook, *people: str, busy: bool = False, as_of: int | None = None) -> list[Any]:
    """A read of the taken session, where there is news in it."""
    takeover = book.flow().takeover or book.flow().resume
    assert takeover is not None
    assert takeover.session is not None
    seen = runs.SessionSeen("t-1", takeover.session, people, busy, book.world.seq if as_of is None else as_of)
    return session_read(book.world, seen)


def taken(book: Playbook, *people: str) -> Playbook:
    """A person wrote in the session, and what was asked for then is done."""
    book >> book.turn("running", people=people or ANN) << ...
    return book.answered()


# --- pause --------------------------------------------------------------------------------------------------------


@pytest.mark.promise("P10")
def test_a_message_of_a_person_pauses_the_issue_by_a_label_and_stops_nothing() -> None:
    book = working()
    book >> book.turn("running", people=ANN) << like(runs.RunEnded, state="aborted", abort=False)
    book << like(runs.SessionTaken, action="pause", label="ours", cooldown=None, session=book.run().session)
    book << issues.CommentWanted << like(c.ReadTree, moment="after")
    assert book >> book.next() << like(c.WriteIssue, kind="work", status="in_progress", add_labels=(PAUSED,))
    assert book >> book.next() << c.PostComment
    assert book.answered()
    told = account(book.world, "t-1")
    assert (told.state, told.code) == ("person", "paused")
    assert told.reason == "a person has the session: a person wrote in the session (msg_ann)"
    assert book.world.lock == "t-1"
    assert is_idle(book.world)


@pytest.mark.promise("P10")
def test_a_turn_that_somebody_stopped_in_opencode_is_a_takeover_too() -> None:
    book = working()
    book >> book.turn("running")
    book >> book.turn("finished", error="MessageAbortedError: aborted") << like(runs.RunEnded, state="aborted")
    assert book << like(runs.SessionTaken, label="ours") << issues.CommentWanted << c.ReadTree


@pytest.mark.promise("P11")
def test_a_pause_ends_when_the_label_is_taken_off_and_the_agent_goes_on_in_the_session_and_is_told() -> None:
    book = taken(working())
    session = book.run().session
    book >> watched(book, *ANN)
    assert book >> book.later(86_400)
    assert book >> book.seen(drop=[PAUSED]) << runs.ReleaseWanted
    book >> watched(book, *ANN) << like(runs.SessionReleased, by="label") << like(c.ReadTree, moment="after")
    book >> book.next() << like(runs.RunPlanned, attempt=2, reuse=session, prompt="resume")
    assert book << like(c.ReadTree, moment="before")
    assert book >> book.next() << like(c.OpenSession, reuse=session)
    assert book >> book.next() << like(c.PreparePrompt, n=1, kind="resume")
    assert book >> book.next() << like(c.SendPrompt, n=1, session=session)
    assert book >> book.next()
    assert (book.flow().failures, book.flow().resume) == (0, None)
    book >> book.reports() << like(runs.RunEnded, state="succeeded")
    assert book.left


def test_a_label_that_a_person_had_set_before_ours_is_theirs_and_outlives_the_quiet() -> None:
    for who in ("ann", "ashep-agent", ""):
        book = working("pause", cooldown=600)
        book >> book.turn("running", people=ANN)
        if who:  # after the look by which we decided, and before our own write
            book.made.change("t-1", who, (PAUSED,), ())
        book.left = []
        takeover = book.answered().flow().takeover
        assert takeover is not None
        assert takeover.label == ("theirs" if who == "ann" else "ours")
        book >> watched(book, *ANN)
        book >> book.later(601)
        (book >> watched(book, *ANN)).answered()
        assert (PAUSED in book.made.tracker["t-1"].labels) == (who == "ann"), (
            "quiet ends what is ours, and nothing else"
        )
        assert (book.flow().takeover is None) == (who != "ann")
        if who == "ann":
            book >> book.seen(status="open")
            assert book.answered().flow().stage == "idle"
            assert PAUSED in book.made.tracker["t-1"].labels


@pytest.mark.promise("P11")
def test_a_label_that_a_person_had_set_before_ours_outlives_that_they_take_the_issue_away() -> None:
    """Both were there before our own write was."""
    book = working("pause", cooldown=600)
    book >> book.turn("running", people=ANN)
    book.made.change("t-1", "ann", (PAUSED, "ashep:excluded"), ())
    book.left = []
    assert book.answered().flow().stage == "idle"
    assert PAUSED in book.made.tracker["t-1"].labels


@pytest.mark.promise("P11")
def test_what_a_person_leaves_at_work_in_the_session_is_waited_for() -> None:
    book = taken(working())
    as_of = book.world.seq
    book >> watched(book, *ANN, "msg_more", busy=True)
    book >> book.seen(drop=[PAUSED]) << runs.ReleaseWanted
    assert book >> watched(book, *ANN, "msg_more", as_of=as_of)  # a read that began before they were done
    assert book >> watched(book, *ANN, "msg_more", busy=True)
    assert book >> watched(book, *ANN, "msg_more") << like(runs.SessionReleased, by="label") << c.ReadTree


@pytest.mark.promise("P12")
def test_what_is_at_work_there_for_ever_is_left_and_another_session_used() -> None:
    """A question of an agent's, say, that the person left unanswered."""
    book = taken(working())
    session = book.run().session
    book >> watched(book, *ANN, busy=True)
    book >> book.seen(drop=[PAUSED]) << runs.ReleaseWanted
    book.answered() >> watched(book, *ANN, busy=True)
    assert book
    assert book.later(3599) == []
    as_of = book.world.seq
    assert book >> book.later(1)
    assert watched(book, *ANN, busy=True, as_of=as_of) == []
    book >> watched(book, *ANN, busy=True) << like(runs.SessionReleased, leave=True)
    book.answered()
    planned = book.bodies(runs.RunPlanned)
    assert (planned[-1].reuse, planned[-1].prompt) == (None, "task")
    assert book.run().session not in (None, session)


def test_a_turn_there_that_never_ends_does_not_keep_the_issue_for_ever() -> None:
    book = taken(working("resume", 60))
    session = book.run().session
    book >> watched(book, *ANN, busy=True)
    assert book.later(3659) == []
    book >> watched(book, *ANN, "msg_more", busy=True)  # the hour begins anew
    assert book.later(3659) == []
    assert book >> book.later(1)
    book >> watched(book, *ANN, "msg_more", busy=True) << like(runs.SessionReleased, by="quiet", leave=True)
    book.answered()
    assert book.run().session not in (None, session)


def test_a_label_that_is_set_again_before_the_session_is_at_rest_takes_it_again() -> None:
    book = taken(working())
    book >> watched(book, *ANN, busy=True)
    book >> book.seen(drop=[PAUSED]) << runs.ReleaseWanted
    book >> book.seen(add=[PAUSED]) << like(runs.SessionTaken, label="theirs")
    assert book >> watched(book, *ANN)
    book >> book.seen(drop=[PAUSED]) << runs.ReleaseWanted
    assert book >> watched(book, *ANN) << runs.SessionReleased << c.ReadTree


@pytest.mark.promise("P11")
def test_a_pause_with_a_cool_down_ends_by_itself_and_takes_its_own_label_off() -> None:
    book = taken(working("pause", 300))
    book >> watched(book, *ANN)
    assert book >> book.later(301)
    book >> watched(book, *ANN) << like(runs.SessionReleased, by="quiet") << c.ReadTree
    assert book >> book.next() << like(c.WriteIssue, kind="work", remove_labels=(PAUSED,))
    assert book >> book.next() << like(runs.RunPlanned, attempt=2, prompt="resume") << c.ReadTree


def test_the_label_is_no_ones_before_our_write_of_it_stands() -> None:
    book = working()
    book >> book.turn("running", people=ANN) << ...
    assert book >> tracker.IssueSeen("t-1", book.made.tracker["t-1"], book.world.seq)
    assert book.flow().takeover is not None


# --- resume -------------------------------------------------------------------------------------------------------


@pytest.mark.promise("P11")
def test_an_agent_resumes_only_after_a_fresh_read_showed_the_person_quiet_for_the_cool_down() -> None:
    book = taken(working("resume"))
    assert book.flow().takeover == book.flow().takeover
    assert PAUSED not in book.flow().issue.labels
    assert account(book.world, "t-1").state == "person"
    book >> watched(book, *ANN)
    assert book >> book.later(599)
    as_of = book.world.seq
    assert book >> book.later(1)
    assert watched(book, *ANN, as_of=as_of) == []  # it began before the time was up
    book >> watched(book, *ANN) << like(runs.SessionReleased, by="quiet") << c.ReadTree
    assert book >> book.next() << like(runs.RunPlanned, attempt=2, prompt="resume") << c.WriteIssue


@pytest.mark.promise("P11")
def test_another_message_begins_the_cool_down_anew() -> None:
    book = taken(working("resume", 60))
    book >> watched(book, *ANN)
    assert book >> book.later(59)
    assert book >> watched(book, *ANN, "msg_more")
    assert book.later(59) == []
    assert book >> book.later(1)
    assert book >> watched(book, *ANN, "msg_more", "msg_most")
    assert book >> book.later(60)
    assert book >> watched(book, *ANN, "msg_more", "msg_most") << runs.SessionReleased << c.ReadTree


@pytest.mark.promise("P11")
def test_a_turn_of_the_persons_that_runs_is_not_quiet() -> None:
    book = taken(working("resume", 60))
    book >> watched(book, *ANN, busy=False)
    assert book >> book.later(60)
    assert book >> watched(book, *ANN, busy=True)
    assert book.later(3659) == []
    assert book >> watched(book, *ANN)
    assert book >> book.later(60)
    assert book >> watched(book, *ANN) << runs.SessionReleased << c.ReadTree


@pytest.mark.promise("P12")
def test_a_person_who_comes_back_just_before_the_prompt_is_not_written_to() -> None:
    book = taken(working("resume", 60))
    book >> watched(book, *ANN)
    book >> book.later(60)
    book >> watched(book, *ANN) << ... << ...
    while not book.made.jobs or not isinstance(book.made.jobs[0], c.SendPrompt):
        book >> book.next() << ...
    back = watched(book, *ANN, "msg_again")
    book >> [*back, book.failed()] << like(runs.RunWithdrawn, code="paused") << like(runs.SessionTaken, action="resume")
    assert book
    assert book.flow().counters.cycle_runs == 1
    book >> watched(book, *ANN, "msg_again")
    book >> book.later(60) << ...
    assert book >> watched(book, *ANN, "msg_again") << runs.SessionReleased << c.ReadTree


@pytest.mark.promise("P12")
def test_a_session_that_is_used_again_may_be_a_persons_by_then() -> None:
    wish = Takeover(action="resume", cooldown=timedelta(seconds=60))
    phases = (Phase(name="review", session="reuse"), Phase(name="arbitrate"))
    book = Playbook(policy_of(*phases).model_copy(update={"takeover": wish})).looked()
    session = book.run().session
    assert session is not None
    book >> book.reports("failed") << ...
    book >> book.later(30) << ...
    while not isinstance(book.made.jobs[0], c.SendPrompt):
        book >> book.next() << ...
    book >> runs.SessionSeen("t-1", session, (), True, book.world.seq)
    book << like(runs.RunWithdrawn, code="retry", leave=session) << like(runs.RunPlanned, attempt=3, reuse=None) << ...
    (book >> book.failed()).answered()
    assert book.run().session not in (None, session)
    assert (book.run().state, book.flow().failures, book.flow().counters.cycle_runs) == ("running", 1, 2)


def test_no_server_is_begun_anew_in_which_a_person_works() -> None:
    book = taken(working())
    assert not list(book.world.indexes.live)
    assert book.world.in_use("opencode")
    book >> watched(book, *ANN)
    book >> book.seen(drop=[PAUSED]) << ...
    book >> watched(book, *ANN) << runs.SessionReleased << c.ReadTree
    assert not book.world.in_use("opencode")


@pytest.mark.promise("P12")
def test_where_the_session_is_gone_the_phase_begins_with_its_task() -> None:
    book = taken(working("resume", 60))
    book >> watched(book, *ANN)
    book >> book.later(60)
    book >> watched(book, *ANN) << ...
    while not book.made.jobs or not isinstance(book.made.jobs[0], c.OpenSession):
        book.left = []
        book >> book.next()
    opened = book.dropped()
    assert isinstance(opened, c.OpenSession)
    book.left = []
    assert book >> runs.SessionOpened("t-1", opened.run, opened.key, "ses_new") << like(c.PreparePrompt, kind="task")


# --- review -------------------------------------------------------------------------------------------------------


@pytest.mark.promise("P12")
def test_a_persons_work_goes_to_the_phase_that_looks_at_it() -> None:
    book = taken(working("review", 60))
    book >> watched(book, *ANN)
    book >> book.later(60)
    book >> watched(book, *ANN) << runs.SessionReleased << like(issues.PhaseEntered, phase="review") << c.ReadTree
    assert book >> book.next() << like(runs.RunPlanned, phase="review", prompt="task", reuse=None) << c.WriteIssue
    assert book.flow().resume is None


# --- a message behind a turn that has ended -------------------------------------------------------------------------


def ended_before(
    action: Literal["pause", "review", "resume"] = "pause", cooldown: int | None = None, **outcome: Any
) -> Playbook:
    """A person had written by the time that the turn was seen to have ended."""
    book = working(action, cooldown)
    block = json.dumps({"result": "success", "summary": "what I did"} | outcome)
    wish = {"pause": "ours"}.get(action, "none")
    book >> book.turn("finished", block=block, people=ANN) << like(runs.SessionTaken, action=action, label=wish)
    if action == "pause":
        book << issues.CommentWanted
    state = "failed" if outcome else "succeeded"
    book << like(runs.RunEnded, state=state) << like(c.ReadTree, moment="after")
    assert book, book.left
    book.answered()
    assert account(book.world, "t-1").state == "person"
    return book


@pytest.mark.promise("P10")
def test_what_was_reported_is_kept_and_used_when_the_person_lets_it_go_on() -> None:
    book = ended_before()
    assert any("is kept" in one.text for one in book.made.comments["t-1"])
    book >> watched(book, *ANN)
    assert book >> book.later(86_400)
    book >> book.seen(drop=[PAUSED]) << runs.ReleaseWanted
    book >> watched(book, *ANN) << like(runs.SessionReleased, by="label") << like(issues.PhaseEntered, phase="review")
    assert book << like(c.ReadTree, moment="after")
    assert book >> book.next() << like(runs.RunPlanned, phase="review", prompt="task", reuse=None) << c.WriteIssue
    assert book.flow().resume is None
    assert dict(book.flow().counters.passed)["implement"] == "success"


@pytest.mark.promise("P10")
def test_what_was_reported_counts_once_the_person_has_been_quiet() -> None:
    book = ended_before("resume", 60)
    book >> watched(book, *ANN)
    assert book >> book.later(60)
    book >> watched(book, *ANN) << like(runs.SessionReleased, by="quiet") << like(issues.PhaseEntered, phase="review")
    assert book << c.ReadTree


@pytest.mark.promise("P10")
def test_what_was_reported_is_the_persons_work_where_that_is_looked_at() -> None:
    book = ended_before("review", 60)
    book >> watched(book, *ANN)
    assert book >> book.later(60)
    book >> watched(book, *ANN) << runs.SessionReleased << like(issues.PhaseEntered, phase="review") << c.ReadTree
    assert book
    assert "a person did implement" in book.flow().why


def test_a_failure_that_was_reported_is_tried_again_where_the_person_was() -> None:
    book = ended_before("resume", 60, result="failed")
    session = book.run().session
    book >> watched(book, *ANN)
    assert book >> book.later(60)
    assert book >> watched(book, *ANN) << runs.SessionReleased << like(issues.RetryScheduled, failures=1) << c.ReadTree
    book.answered()
    book >> book.later(60) << like(runs.RunPlanned, attempt=2, prompt="resume", reuse=session)
    assert book.left


def test_an_error_behind_which_a_person_stands_burns_no_attempt() -> None:
    book = working("resume", 60)
    book >> book.turn("finished", error="APIError: quota", people=ANN) << like(runs.RunEnded, state="aborted")
    assert book << like(runs.SessionTaken, outcome=False) << c.ReadTree
    assert book.flow().failures == 0


def test_a_kept_outcome_survives_that_the_person_takes_the_issue_by_its_label() -> None:
    book = ended_before("resume", 60)
    book >> book.seen(add=[PAUSED]) << like(runs.SessionTaken, label="theirs", outcome=True)
    book.answered()
    book >> book.seen(drop=[PAUSED]) << runs.ReleaseWanted
    book >> watched(book, *ANN) << runs.SessionReleased << like(issues.PhaseEntered, phase="review") << c.ReadTree
    assert book


def test_a_kept_outcome_is_used_once() -> None:
    """Taken again in the next phase, before anything was reported there, nothing of the phase before counts."""
    book = ended_before("resume", 60)
    book >> watched(book, *ANN)
    book >> book.later(60)
    assert (book >> watched(book, *ANN)).answered().flow().phase == "review"
    book >> book.turn("running", people=("msg_bob",)) << like(runs.RunEnded, state="aborted")
    book << like(runs.SessionTaken, outcome=False) << ...
    book.answered()
    book >> watched(book, "msg_bob")
    assert book >> book.later(60)
    book >> watched(book, "msg_bob") << runs.SessionReleased
    book.answered()
    assert (book.flow().phase, book.run().attempt) == ("review", 2)


@pytest.mark.promise("P12")
def test_in_a_phase_whose_success_nobody_looks_at_a_review_is_a_pause() -> None:
    book = working("review", 60)
    assert (book >> book.reports()).answered().flow().phase == "review"
    book >> book.turn("running", people=ANN) << runs.RunEnded << like(runs.SessionTaken, action="pause", label="ours")
    assert book << issues.CommentWanted << c.WriteIssue


def test_a_phase_has_its_own_takeover() -> None:
    phases = (Phase(name="review", takeover=Takeover(action="resume")), Phase(name="arbitrate"))
    book = Playbook(policy_of(*phases)).looked()
    book >> book.turn("running", people=ANN) << runs.RunEnded
    assert book << like(runs.SessionTaken, action="resume", label="none", cooldown=timedelta(minutes=10))


# --- by the label -------------------------------------------------------------------------------------------------


@pytest.mark.promise("P13")
def test_the_label_takes_a_running_turn_once_a_fresh_read_shows_nobody_in_it() -> None:
    book = working()
    book >> book.turn("running")
    as_of = book.world.seq
    book >> book.seen(add=[PAUSED]) << like(runs.SessionTaken, label="theirs", cooldown=None)
    assert book >> book.turn("running", as_of=as_of)
    book >> turn_read(book.world, book.turn("running")) << like(runs.RunEnded, state="aborted", abort=True)
    book << c.StopTurn
    assert book >> book.next() << c.ReadTree
    assert book.answered().flow().failures == 0
    assert book >> book.later(86_400)
    book >> book.seen(drop=[PAUSED]) << runs.ReleaseWanted
    book >> watched(book) << like(runs.SessionReleased, by="label") << c.ReadTree
    assert book >> book.next() << like(runs.RunPlanned, attempt=2, prompt="resume") << c.WriteIssue


@pytest.mark.promise("P13")
def test_the_label_stops_no_turn_in_which_a_person_is_already() -> None:
    book = working()
    book >> book.seen(add=[PAUSED]) << runs.SessionTaken
    assert book >> book.turn("running", people=ANN) << like(runs.RunEnded, state="aborted", abort=False) << c.ReadTree


@pytest.mark.promise("P13")
def test_what_an_agent_reports_after_the_issue_was_taken_leads_nowhere() -> None:
    book = working()
    book >> book.seen(add=[PAUSED]) << runs.SessionTaken
    assert book >> book.reports() << like(runs.RunEnded, state="aborted", abort=False) << c.ReadTree
    book.answered()
    book >> book.seen(drop=[PAUSED]) << runs.ReleaseWanted
    book >> watched(book) << runs.SessionReleased << c.ReadTree
    assert book >> book.next() << like(runs.RunPlanned, attempt=2) << c.WriteIssue


def test_a_stop_that_is_not_done_is_given_up_where_the_person_has_begun_a_turn() -> None:
    book = working()
    book >> book.seen(add=[PAUSED]) << ...
    book >> book.turn("running") << like(runs.RunEnded, state="aborted", abort=True) << c.StopTurn << ...
    book >> book.failed() << ...
    book >> watched(book, "msg_ann", busy=True)
    book.answered() >> book.later(60)
    book.answered()
    assert not [job for job in book.made.done if isinstance(job, c.StopTurn)]


def test_the_label_ends_a_run_that_has_no_prompt_yet() -> None:
    book = Playbook(policy())
    book.made.look()
    book.left = []
    book >> book.next() << ...
    book.dropped()
    book >> book.seen(add=[PAUSED]) << like(runs.RunEnded, state="aborted", abort=False)
    assert book << like(runs.SessionTaken, label="theirs", session=None)
    book >> book.seen(drop=[PAUSED]) << runs.ReleaseWanted << runs.SessionReleased
    assert book << like(runs.RunPlanned, attempt=2, prompt="task") << c.WriteIssue


@pytest.mark.promise("P13")
def test_the_label_takes_what_waits_for_a_person_to_be_quiet() -> None:
    book = taken(working("resume", 60))
    book >> watched(book, *ANN)
    book >> book.seen(add=[PAUSED]) << like(runs.SessionTaken, label="theirs", cooldown=None)
    assert book.later(86_400) == []
    book >> book.seen(drop=[PAUSED]) << runs.ReleaseWanted
    assert book >> watched(book, *ANN) << runs.SessionReleased << c.ReadTree


# --- limits, restarts, other people -------------------------------------------------------------------------------


@pytest.mark.promise("P13")
@pytest.mark.parametrize("action", ["pause", "resume"])
def test_no_limit_counts_the_time_of_a_person(action: Literal["pause", "resume"]) -> None:
    rules = policy(action).model_copy(update={"limits": Limits(max_wall_time=timedelta(hours=1))})
    book = taken(Playbook(rules).looked())
    book >> watched(book, *ANN, busy=True)
    book.later(86_400)
    book >> resources.ClockJumped(timedelta(hours=8))
    book >> watched(book, *ANN)
    book >> resources.ClockJumped(timedelta(hours=8))
    if action == "pause":
        book >> book.seen(drop=[PAUSED]) << ...
    else:
        book >> book.later(601 + 8 * 3600)
    book >> watched(book, *ANN) << runs.SessionReleased << c.ReadTree
    book >> book.next() << like(runs.RunPlanned, attempt=2)
    assert book << (c.ReadTree if action == "pause" else c.WriteIssue)


def test_a_machine_that_sleeps_is_no_person_who_is_quiet() -> None:
    book = taken(working("resume", 60))
    book >> watched(book, *ANN) << ...
    assert book >> resources.ClockJumped(timedelta(hours=8))
    assert book.later(8 * 3600 + 59) == []
    assert book >> book.later(1)


@pytest.mark.promise("P11")
def test_a_takeover_survives_a_restart() -> None:
    book = taken(working("resume", 60))
    book >> watched(book, *ANN)
    book.made.crash()
    assert book.answered().flow().takeover is not None
    assert book.later(59) == []
    assert book >> book.later(1)
    assert book >> watched(book, *ANN) << runs.SessionReleased << c.ReadTree


def test_closing_an_issue_that_was_taken_touches_nothing() -> None:
    book = taken(working())
    assert book >> book.seen(status="closed") << like(issues.IssueClosed, by="somebody")
    assert book.flow().takeover is None


def test_cancelling_what_a_person_has_takes_our_label_off_and_stops_nothing() -> None:
    book = taken(working())
    book >> issues.IssueCancelled("t-1", "ann") << like(issues.IssueParked, code="cancelled") << issues.CommentWanted
    assert book << like(c.WriteIssue, kind="park", remove_labels=(PAUSED,))


def test_a_policys_cool_down_is_that_of_setting_it_to_open_too() -> None:
    book = working("pause", 60)
    book >> book.seen(status="open") << runs.RunEnded
    book << like(issues.IssueGivenBack, not_before=book.now + timedelta(seconds=60)) << c.StopTurn << c.WriteIssue
    assert book
