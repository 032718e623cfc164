"""Playbooks of turns: finished, died, never begun, too late, a person's, or without an outcome."""

from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any, Literal

import pytest

from ashep.core.analysis.issue_status import account
from ashep.core.facts import commands as c
from ashep.core.facts import issues, resources, runs
from ashep.core.facts.outcome import Ending
from ashep.core.policy.agents import Agent, Agents, Performance, Sandbox
from ashep.core.policy.policies import Phase, Retry, ReuseFrom
from ashep.core.runs import turns
from tests.core.given import BUILDER, CRITIC, TEAM, adopted, policy_of, settings, up
from tests.core.playbook import Playbook, like

READ = policy_of(Phase(name="review"), Phase(name="arbitrate"))
TAKEN_OVER = like(runs.SessionTaken, action="pause", label="ours")


def working() -> Playbook:
    return Playbook(READ).looked()


def attached() -> Playbook:
    return Playbook(READ, config=settings(managed=False)).looked()


def test_a_running_turn_is_left_alone() -> None:
    book = working()
    assert book >> book.turn("running")
    assert book >> book.later(60)
    assert book >> book.turn("stored", as_of=1)  # a stale read
    assert book.run().turn == "running"


@pytest.mark.promise("T2")
def test_a_turn_whose_managed_server_is_replaced_has_died_and_the_same_ids_are_sent_again() -> None:
    book = working()
    first = next(command for command in book.made.done if isinstance(command, c.SendPrompt))
    book >> book.turn("running")
    assert book >> up("server-2")
    book.made.instance = 2
    book >> book.turn("incomplete") << like(runs.TurnDied, n=1)
    assert book << like(c.SendPrompt, message_id=first.message_id, part_id=first.part_id, again=True)
    assert book.made.jobs[0].key != first.key
    book.answered() >> book.reports() << like(runs.RunEnded, state="succeeded")
    assert book.run().attempt == 1


def test_a_prompt_that_was_found_delivered_after_a_crash_has_no_instance_that_could_be_dead() -> None:
    book = Playbook(READ)
    book.made.look()
    book.left = []
    for _ in range(3):
        book >> book.next() << ...
    send = book.dropped()
    assert isinstance(send, c.SendPrompt)
    book.made._effect(send)
    assert book >> runs.PromptSent("t-1", send.run, send.key, 1, "")
    assert book >> book.turn("stored")


@pytest.mark.promise("T2")
def test_an_attached_servers_turn_has_died_only_after_thirty_seconds_of_looking_so() -> None:
    book = attached()
    assert book >> book.turn("running")
    assert book >> book.turn("incomplete", instance="server-2")
    assert book >> book.later(29)
    assert book >> book.turn("incomplete")
    as_of = book.world.seq
    assert book >> book.later(1)
    assert book >> book.turn("incomplete", as_of=as_of)  # a read that began before the time was up
    assert book >> book.turn("incomplete") << runs.TurnDied << like(c.SendPrompt, again=True)


def test_a_turn_that_goes_on_has_not_died() -> None:
    book = attached()
    assert book >> book.turn("incomplete")
    assert book >> book.later(29)
    assert book >> book.turn("running")
    assert book >> book.later(2)
    assert book >> book.turn("incomplete")
    assert book >> book.later(29)


@pytest.mark.promise("T6")
@pytest.mark.parametrize(("state", "died"), [("stored", False), ("incomplete", True), ("incomplete", False)])
def test_the_session_of_a_prompt_that_may_still_begin_a_turn_is_stopped_again(state: str, died: bool) -> None:
    """Also where it was sent again after its turn died, and the session shows only what that one left."""
    book = working()
    if died:
        book.made.instance = 2
        book >> book.turn("incomplete") << runs.TurnDied << like(c.SendPrompt, again=True)
        book.answered()
    book >> book.seen(status="closed") << ...
    for patience in (30, 60, 120, 240) if died or state == "stored" else ():
        stop = next(job for job in book.made.jobs if isinstance(job, c.StopTurn))
        book.made.jobs.remove(stop)
        assert book >> runs.TurnStopped("t-1", stop.run, stop.key, 1, 30, 0.1, "other", state=state)
        assert not book.run().settled, "no other run begins before"
        assert book.later(patience - 1) == []
        book >> book.later(1) << c.StopTurn
    stop = next(job for job in book.made.jobs if isinstance(job, c.StopTurn))
    book >> runs.TurnStopped("t-1", stop.run, stop.key, 1, 30, 0.1, "other", state=state) << ...
    assert not book.run().stop


def test_an_incomplete_message_after_long_silence_is_a_sign_of_a_turn() -> None:
    book = attached()
    assert book >> book.turn("stored")
    assert book >> book.later(31)
    assert book >> book.turn("incomplete")
    assert book >> book.later(29)
    assert book >> book.turn("incomplete")


@pytest.mark.promise("T2", "E5")
def test_a_turn_that_dies_for_ever_parks_its_issue_and_fails_nobody() -> None:
    book = working()
    for life in range(2, 12):
        book.made.instance = life
        book >> book.turn("incomplete") << runs.TurnDied << c.SendPrompt
        book.answered()
    book.made.instance = 12
    book >> book.turn("incomplete") << like(runs.RunEnded, state="aborted") << like(issues.IssueParked, code=INFRA)
    assert book << issues.CommentWanted << ...


ABORTED = "MessageAbortedError: aborted"
INFRA = "infrastructure"
DOUBT = like(runs.RunEnded, state="aborted", doubt=True, counts=False, abort=False)
UNBEGUN = like(runs.RunEnded, state="aborted", doubt=True, counts=False, abort=True)
AGAIN = like(issues.RetryScheduled, failures=0)


def never_begun(book: Playbook, patience: float = 30) -> None:
    assert book >> book.turn("stored")
    assert book >> book.later(patience - 1)
    assert book >> book.later(1)
    assert book >> book.turn("stored") << c.StopTurn
    assert book >> book.turn("stored")  # the abort is not done yet
    assert book >> book.next()


@pytest.mark.promise("T2")
def test_a_prompt_that_is_never_begun_is_stopped_looked_at_and_sent_once_under_a_new_id() -> None:
    book = working()
    first = book.made.done[-1]
    never_begun(book)
    book >> book.turn("stored") << like(runs.PromptAbandoned, n=1)
    assert book << like(c.SendPrompt, n=1, again=False)
    second = book.made.jobs[0]
    assert isinstance(first, c.SendPrompt)
    assert isinstance(second, c.SendPrompt)
    assert second.message_id != first.message_id
    book.answered()
    never_begun(book, 60)  # each time it is given twice as long
    assert book >> book.turn("missing") << like(runs.PromptAbandoned, n=1, sign_after=timedelta(minutes=2)) << ...


def test_what_the_server_said_of_a_prompt_that_it_dropped_is_the_cause() -> None:
    book = working()
    never_begun(book)
    book >> book.turn("missing", error="UnknownError: the plugin threw")
    why = "30s without a sign of a turn, and none after an abort: UnknownError: the plugin threw"
    book << like(runs.PromptAbandoned, why=why) << ...
    assert account(book.world, "t-1").reason.endswith("; prompts that came to no turn, in a row: 1")


@pytest.mark.promise("T2", "E5")
def test_a_server_that_never_begins_a_turn_parks_the_issue_and_burns_no_attempt() -> None:
    book = working()
    for times in range(9):
        never_begun(book, min(30 * 2**times, 600))
        assert book >> book.turn("missing") << like(runs.PromptAbandoned, n=1) << ...
        (book >> book.later(61)).answered()
    never_begun(book, 600)
    book >> book.turn("missing") << UNBEGUN << like(issues.IssueParked, code=INFRA) << issues.CommentWanted
    assert book << c.StopTurn << c.WriteIssue
    assert book.flow().failures == 0
    assert not book.bodies(runs.DeadlineReached), "what no turn ran in is no time of the run's"


@pytest.mark.promise("T2")
def test_time_that_passes_before_a_turn_begins_is_not_the_runs() -> None:
    book = Playbook(policy_of(Phase(name="review", timeout=timedelta(seconds=20)))).looked()
    assert book >> book.turn("stored")
    assert book >> book.later(20)
    assert book >> book.turn("stored")
    assert book >> book.later(10)
    book >> book.turn("stored") << c.StopTurn
    assert book >> book.next()
    assert book >> book.turn("stored") << like(runs.PromptAbandoned) << ...
    book.answered()
    assert book >> book.turn("running")
    assert book.later(15) == []
    assert book >> book.later(5)
    book >> book.turn("running") << runs.DeadlineReached << like(runs.RunEnded, state="timed_out") << ...


def test_a_turn_that_begins_after_all_is_not_abandoned() -> None:
    book = working()
    assert book >> book.turn("stored")
    assert book >> book.later(30)
    assert book >> book.turn("running")
    assert book >> book.later(30)
    never = Playbook(READ).looked()
    never_begun(never)
    assert never >> never.turn("running")


@pytest.mark.promise("T6")
def test_a_turn_that_our_own_abort_cut_off_is_nobodys_doing() -> None:
    book = working()
    session = book.run().session
    never_begun(book)
    assert book >> book.turn("finished", error=ABORTED) << DOUBT << AGAIN
    (book >> book.later(2)).answered()
    assert book.run().session != session
    assert (book.flow().failures, book.flow().counters.cycle_runs) == (0, 1)
    assert book.run().watch.sign_after == timedelta(minutes=1)


def stop_fails(book: Playbook) -> None:
    """A turn shows no sign for 30 s; the call that is to stop it gets no answer."""
    assert book >> book.turn("stored")
    assert book >> book.later(30)
    assert book >> book.turn("stored") << c.StopTurn
    assert book >> book.failed()


@pytest.mark.promise("T6", "E5")
def test_a_turn_that_begins_while_our_abort_is_unanswered_and_is_cut_off_by_it_burns_no_attempt() -> None:
    book = working()
    stop_fails(book)
    assert book >> book.turn("finished", error=ABORTED) << DOUBT << AGAIN


@pytest.mark.promise("T6")
def test_a_turn_that_runs_on_and_is_cut_off_by_a_late_abort_is_no_persons_doing() -> None:
    book = working()
    stop_fails(book)
    assert book >> book.turn("running")
    assert book >> book.later(300)
    assert book >> book.turn("finished", error=ABORTED) << DOUBT << AGAIN


@pytest.mark.promise("T6")
def test_an_abort_that_got_no_answer_may_stop_the_next_prompt_and_nobody_is_blamed() -> None:
    """That one goes to the same session: were the first to begin after all, two turns would act in two sessions."""
    book = Playbook(policy_of(Phase(name="review", session="reuse"))).looked()
    session = book.run().session
    stop_fails(book)
    assert book >> book.later(1) << c.StopTurn
    assert book >> book.next()
    book >> book.turn("stored") << runs.PromptAbandoned
    assert book << like(c.SendPrompt, session=session)
    book.answered()
    assert book >> book.turn("running")
    assert book >> book.turn("finished", error=ABORTED) << DOUBT << AGAIN
    (book >> book.later(2)).answered()
    assert book.run().session != session
    assert book >> book.turn("finished", error=ABORTED) << like(runs.RunEnded, state="aborted") << TAKEN_OVER << ...


@pytest.mark.promise("T6")
def test_a_session_whose_turn_was_not_seen_to_stop_is_not_used_again() -> None:
    book = Playbook(policy_of(Phase(name="review", session="reuse"))).looked()
    session = book.run().session
    assert book >> book.turn("running")
    assert book >> book.later(1800)
    book >> book.turn("running") << runs.DeadlineReached << like(runs.RunEnded, state="timed_out") << ...
    assert book >> book.failed()
    for _ in range(2):
        (book >> book.later(30)).answered()
    assert book.run().attempt == 2
    assert book.run().session != session


@pytest.mark.promise("T6")
def test_while_nobody_knows_whether_a_turn_stopped_nothing_begins_and_it_is_said() -> None:
    book = working()
    assert book >> book.turn("running")
    assert book >> book.later(1800)
    book >> book.turn("running") << ...
    for _ in range(5):
        assert book >> book.failed()
        shown = account(book.world, "t-1")
        assert (shown.state, shown.code) == ("time", "turn_unsure"), shown
        book >> book.later(61) << c.StopTurn
    assert not book.left
    assert book >> book.next() << like(runs.RunPlanned, attempt=2) << ...
    assert account(book.world, "t-1").code != "turn_unsure"


@pytest.mark.promise("T6")
def test_who_stops_a_turn_that_runs_behind_an_answered_abort_is_a_person() -> None:
    book = working()
    never_begun(book)
    assert book >> book.turn("running")
    assert book >> book.turn("finished", error=ABORTED) << like(runs.RunEnded, state="aborted") << TAKEN_OVER << ...


def test_a_turn_that_ended_with_its_server_is_nobodys_doing() -> None:
    book = working()
    assert book >> book.turn("running")
    book.made.instance = 2
    assert book >> book.turn("finished", error=ABORTED) << DOUBT << AGAIN


@pytest.mark.promise("X11")
def test_the_doubt_begins_when_the_server_answers_again() -> None:
    book = working()
    assert book >> book.turn("stored")
    assert book >> book.later(30)
    book >> resources.RunnerSeen("away", "no answer")
    book.left = []
    assert book >> book.turn("stored")
    book >> book.later(40)
    assert book >> up()
    assert book >> book.turn("stored")
    assert book >> book.later(29)
    assert book >> book.later(1)
    assert book >> book.turn("stored") << c.StopTurn


@pytest.mark.promise("T2", "E5")
def test_a_process_that_does_not_start_burns_no_attempt() -> None:
    book = working()
    for times in range(9):
        why = "npx ended with exit code 1: no network"
        book >> book.turn("missing", not_started=why) << like(runs.PromptAbandoned, why=why)
        assert not book.left, "the next start waits"
        (book >> book.later(min(2.0**times, 60))).answered()
        assert book.run().prompt.sent
    book.made.now += timedelta(minutes=2)
    book >> book.turn("missing", not_started="npx ended") << UNBEGUN << like(issues.IssueParked, code=INFRA) << ...
    assert book.flow().failures == 0


@pytest.mark.promise("T2")
def test_a_process_that_starts_is_not_in_doubt_and_its_start_is_no_time_of_the_run() -> None:
    book = working()
    assert book >> book.turn("stored", starting=True)
    assert book.later(3599) == []
    assert book >> book.turn("stored")
    assert {timer.key for timer in book.later(30)} == {"sign:t-1"}  # type: ignore[attr-defined]
    assert book >> book.turn("running")
    assert book >> book.later(1700)
    endless = working()
    assert endless >> endless.turn("stored", starting=True)
    assert endless >> endless.later(3600)
    endless >> endless.turn("stored", starting=True) << c.StopTurn


def test_a_turn_that_somebody_stopped_is_taken_over() -> None:
    book = working()
    assert book >> book.turn("running")
    book >> book.turn("finished", error="MessageAbortedError: aborted") << like(runs.RunEnded, state="aborted")
    assert book << TAKEN_OVER << issues.CommentWanted << like(c.WriteIssue, kind="work", add_labels=("ashep:paused",))


def test_a_read_while_our_stop_is_on_its_way_says_nothing() -> None:
    book = working()
    assert book >> book.turn("stored")
    assert book >> book.later(30)
    assert book >> book.turn("stored") << c.StopTurn
    assert book >> book.turn("finished", error="MessageAbortedError: aborted")


def test_a_person_in_the_session_takes_the_issue_over_and_is_not_stopped() -> None:
    book = working()
    book >> book.turn("running", people=("msg_ann",)) << like(runs.RunEnded, state="aborted", abort=False)
    assert book << TAKEN_OVER << issues.CommentWanted << like(c.WriteIssue, kind="work", add_labels=("ashep:paused",))


@pytest.mark.promise("T9")
def test_an_error_of_the_provider_fails_the_attempt() -> None:
    book = working()
    book >> book.turn("finished", error="APIError: quota")
    book << like(runs.RunEnded, state="failed", error="APIError: quota")
    assert book << issues.RetryScheduled


# --- deadlines ----------------------------------------------------------------------------------------------------


@pytest.mark.promise("G6", "T5")
def test_a_deadline_aborts_only_after_a_fresh_read_and_the_phase_is_tried_again() -> None:
    book = working()
    assert book >> book.turn("running")
    as_of = book.world.seq
    assert book >> book.later(1800)
    assert book >> book.turn("running", as_of=as_of)
    book >> book.turn("running") << runs.DeadlineReached << like(runs.RunEnded, state="timed_out", abort=True)
    assert book << like(issues.RetryScheduled, failures=1) << c.StopTurn


@pytest.mark.promise("T5")
def test_a_turn_that_was_finished_in_time_is_not_timed_out_by_a_late_look() -> None:
    book = working()
    assert book >> book.later(1800)
    book >> book.reports() << like(runs.RunEnded, state="succeeded")
    assert book.left


@pytest.mark.promise("T5")
def test_the_agents_multiplier_stretches_the_deadline() -> None:
    slow = CRITIC.model_copy(update={"performance": Performance(timeout_multiplier=2.0)})
    book = Playbook(READ, Agents(version=1, agents=(slow,))).looked()
    assert book >> book.turn("running")
    assert book.run().timeout == timedelta(hours=1)
    assert book >> book.later(1801)
    assert book >> book.turn("running")


@pytest.mark.promise("C2")
def test_a_clock_that_jumps_moves_the_deadline() -> None:
    book = working()
    assert book >> book.turn("running")
    assert book >> resources.ClockJumped(timedelta(hours=8))
    assert book.later(1801 + 7 * 3600) == []
    assert {timer.key for timer in book.later(3600)} == {"deadline:t-1", "stall:t-1"}  # type: ignore[attr-defined]


# --- outcomes that are none ---------------------------------------------------------------------------------------


@pytest.mark.promise("R11")
def test_an_outcome_that_is_none_gets_one_recovery_and_then_counts_as_a_failure() -> None:
    book = working()
    book >> book.turn("finished", block=None) << like(runs.OutcomeRejected, n=1, then="recover")
    assert book << like(c.PreparePrompt, n=2, kind="recover")
    session = book.run().session
    assert book >> book.next() << like(c.SendPrompt, n=2, session=session)
    assert book >> book.next()
    book >> book.turn("finished", block="{}") << like(runs.RunEnded, state="failed", error="no_outcome")
    assert book << like(issues.RetryScheduled, failures=1)


@pytest.mark.promise("R11", "T10")
def test_where_an_agent_can_extract_it_reads_the_outcome_in_a_session_of_its_own() -> None:
    team = Agents(version=1, agents=(*TEAM.agents, Agent(id="reader", capabilities=("extract",))))
    book = Playbook(READ, team).looked()
    session = book.run().session
    book >> book.turn("finished", block=None)
    book.answered() >> book.turn("finished", block="nonsense")
    book << like(runs.OutcomeRejected, n=2, then="extract", extractor="reader")
    assert book << like(c.OpenSession, access="read", reuse=None)
    assert book >> book.next() << like(c.PreparePrompt, n=3, kind="extract")
    assert book >> book.next() << like(c.SendPrompt, n=3)
    assert book.run().session != session
    assert dict(book.flow().sessions)["review"] == session
    book.answered() >> book.reports() << like(runs.RunEnded, state="succeeded")
    assert book.left


def test_an_extraction_without_an_outcome_fails_the_attempt() -> None:
    team = Agents(version=1, agents=(*TEAM.agents, Agent(id="reader", capabilities=("extract",))))
    book = Playbook(READ, team).looked()
    for block in (None, "nonsense"):
        (book >> book.turn("finished", block=block)).answered()
    book >> book.turn("finished") << like(runs.RunEnded, state="failed", error="no_outcome")
    assert book << issues.RetryScheduled


def test_a_recovered_outcome_counts() -> None:
    book = working()
    book >> book.turn("finished", block=None)
    book.answered() >> book.reports() << like(runs.RunEnded, state="succeeded")
    assert book.left


# --- sessions -----------------------------------------------------------------------------------------------------


@pytest.mark.promise("T10")
def test_a_session_is_used_again_where_the_policy_says_so() -> None:
    phases = (Phase(name="review", session="reuse"), Phase(name="arbitrate", session=ReuseFrom(reuse_from="review")))
    book = Playbook(policy_of(*phases)).looked()
    session = book.run().session
    book >> book.reports("failed") << ...
    book >> book.later(30)
    book << like(runs.RunPlanned, reuse=session) << c.WriteIssue
    assert book >> book.next() << like(c.OpenSession, reuse=session)
    assert [id for id in book.flow().messages if id in book.made.sessions[session or ""]] == list(book.flow().messages)
    assert len(book.flow().messages) == 1
    book.answered() >> book.reports() << runs.RunEnded << issues.PhaseEntered << like(runs.RunPlanned, reuse=session)
    assert len(book.flow().messages) == 2
    assert book << c.WriteIssue


@pytest.mark.promise("T10")
def test_a_session_is_used_again_only_in_the_sandbox_in_which_it_was_opened() -> None:
    """What an agent's entry says of where it runs may be edited between two attempts; who only reads runs in none."""
    for before, after in product((None, "none", "bwrap"), repeat=2):
        assert _again("write", before, after) == (before == after, before, after)
        assert _again("read", before, after) == (True, None, None)


def _again(
    access: Literal["read", "write"], before: Sandbox | None, after: Sandbox | None
) -> tuple[bool, Sandbox | None, Sandbox | None]:
    """Whether the second attempt goes on in the session of the first, and where both run, by their agent's entry."""
    phase = Phase(name="implement", capabilities=("code",), access=access, session="reuse")
    first, second = (Agents(version=1, agents=(BUILDER.model_copy(update={"sandbox": s}),)) for s in (before, after))
    book = Playbook(policy_of(phase), first).looked()
    session = book.run().session
    (book >> book.reports("failed")).answered()
    book >> adopted(second) << ...
    (book >> book.later(30)).answered()
    one, other = book.bodies(c.OpenSession)
    assert (one.reuse, other.reuse) in ((None, session), (None, None))
    return other.reuse == session, one.sandbox, other.sandbox


def test_a_prompt_that_is_answered_after_an_abort_does_not_bring_the_run_back() -> None:
    book = Playbook(READ)
    book.made.look()
    for _ in range(3):
        book.left = []
        book >> book.next()
    assert isinstance(book.made.jobs[0], c.SendPrompt)
    book.left = []
    assert book >> book.seen(status="closed") << runs.RunEnded << issues.IssueClosed
    assert book >> book.next() << c.StopTurn
    assert book.run().state == "aborted"
    assert book >> book.next()
    assert book.run().settled


def test_facts_of_another_run_or_prompt_say_nothing() -> None:
    book = working()
    seen = book.reports()
    assert book >> replace(seen, run="t-1/review.9.9")
    assert book >> replace(seen, n=2)


# --- endings that are no ends -------------------------------------------------------------------------------------


def making(*, continues: int = 2, **phase: Any) -> Playbook:
    """A run that may change files."""
    retry = Retry.model_validate({"continue": continues, "initial_delay": timedelta(seconds=10)})
    return Playbook(policy_of(Phase(name="implement", access="write", retry=retry, **phase)), TEAM).looked()


@pytest.mark.promise("R11")
@pytest.mark.parametrize("ending", ["cut", "empty", "announced"])
def test_an_ending_that_is_no_end_is_asked_to_go_on_twice_and_only_then_for_a_report(ending: Ending) -> None:
    book = working()
    session, deadline = book.run().session, book.run().deadline
    for n in (1, 2):
        book >> book.turn("finished", ending=ending) << like(runs.OutcomeRejected, n=n, then="continue")
        assert book << like(c.PreparePrompt, n=n + 1, kind="continue")
        assert book >> book.next() << like(c.SendPrompt, n=n + 1, session=session)
        book.answered()
    book >> book.turn("finished", ending=ending) << like(runs.OutcomeRejected, n=3, then="recover")
    book.answered()
    assert (book.run().deadline, book.run().attempt, book.flow().failures) == (deadline, 1, 0)
    book >> book.turn("finished", ending=ending) << like(runs.RunEnded, state="failed", error="no_outcome")
    assert book << like(issues.RetryScheduled, failures=1)
    assert book.flow().reports[-1].why == f"no_outcome: {turns.ENDINGS[ending]}"


@pytest.mark.promise("R11")
def test_who_goes_on_and_reports_has_used_no_attempt() -> None:
    book = working()
    (book >> book.turn("finished", ending="announced")).answered()
    book >> book.reports() << like(runs.RunEnded, state="succeeded")
    assert book << like(issues.PhaseEntered, phase="arbitrate") << ...
    assert book.flow().failures == 0


def test_what_was_cut_off_is_called_so_whatever_stands_in_it() -> None:
    book = working()
    book >> book.turn("finished", block="{", ending="cut")
    (rejected,) = book.bodies(runs.OutcomeRejected)
    assert (rejected.then, rejected.why.partition(";")[0]) == ("continue", turns.ENDINGS["cut"])
    book.answered() >> book.reports() << like(runs.RunEnded, state="succeeded")
    whole = working()
    whole >> whole.turn("finished", block='{"result": "success", "summary": "all of it"}', ending="cut")
    whole << like(runs.RunEnded, state="succeeded")


def test_a_report_that_is_wrong_is_asked_for_again_and_nothing_else() -> None:
    book = working()
    book >> book.turn("finished", block="{}") << like(runs.OutcomeRejected, then="recover") << ...
    book.answered() >> book.turn("finished", ending="announced") << like(runs.RunEnded, error="no_outcome") << ...


def test_an_extraction_is_never_asked_to_go_on() -> None:
    team = Agents(version=1, agents=(*TEAM.agents, Agent(id="reader", capabilities=("extract",))))
    book = Playbook(READ, team).looked()
    for block in ("nonsense", "nonsense"):
        (book >> book.turn("finished", block=block)).answered()
    assert book.run().prompt.kind == "extract"
    book >> book.turn("finished", ending="empty") << like(runs.RunEnded, state="failed", error="no_outcome") << ...


@pytest.mark.promise("R3")
def test_a_part_of_the_work_is_gone_on_with_in_its_session_before_it_costs_an_attempt() -> None:
    book = making()
    session = book.run().session
    for n in (1, 2):
        book >> book.reports("partial") << like(runs.OutcomeRejected, n=n, then="continue") << c.PreparePrompt
        book.answered()
    assert book.run().session == session
    assert "what I did" in book.run().prompt.wrong
    book >> book.reports("partial") << like(runs.RunEnded, state="failed")
    assert book << like(issues.RetryScheduled, failures=1) << ...


def test_a_part_that_is_reported_when_asked_again_may_be_gone_on_with_too() -> None:
    book = making(continues=1)
    (book >> book.turn("finished", block="{}")).answered()
    book >> book.reports("partial") << like(runs.OutcomeRejected, then="continue") << ...
    book.answered() >> book.reports() << like(runs.RunEnded, state="succeeded") << ...


def test_a_part_that_wants_something_else_is_the_end_of_its_run() -> None:
    wishes: tuple[dict[str, Any], ...] = (
        {"needs_human": True}, {"next_action": "need_human"}, {"next_action": "repeat_phase"},
    )  # fmt: skip
    for wish in wishes:
        book = making()
        book >> book.reports("partial", **wish) << like(runs.RunEnded, state="failed") << ...


def test_who_only_reads_and_whose_policy_forbids_it_does_not_go_on() -> None:
    book = working()
    book >> book.reports("partial") << like(runs.RunEnded, state="failed") << ...
    never = making(continues=0)
    never >> never.reports("partial") << like(runs.RunEnded, state="failed") << ...
    never = making(continues=0)
    never >> never.turn("finished", ending="empty") << like(runs.OutcomeRejected, then="recover") << ...


def test_a_person_who_wrote_goes_before_a_turn_that_is_no_end() -> None:
    book = working()
    book >> book.turn("finished", ending="announced", people=("msg_ann",)) << like(runs.RunEnded, state="aborted")
    book << TAKEN_OVER << ...


def test_the_time_of_a_run_goes_on_while_it_goes_on() -> None:
    book = working()
    (book >> book.turn("finished", ending="empty")).answered()
    book >> book.turn("running") << ...
    book >> book.later(3600)
    book >> book.turn("running") << runs.DeadlineReached << like(runs.RunEnded, state="timed_out") << ...
