"""Playbooks of leases and of issues that nobody works on: adopted, freed, or left to whom they belong."""

from dataclasses import replace
from datetime import timedelta

import pytest

from ashep.core.facts import commands as c
from ashep.core.facts import issues, runs, tracker
from ashep.core.facts.tracker import Change, Stamp
from ashep.core.reconcile.outstanding import outstanding
from ashep.core.state.flow import Posture
from tests.core import given
from tests.core.given import ME
from tests.core.playbook import Playbook, like

ABORTED = like(runs.RunEnded, state="aborted", abort=True)
STOP = like(c.StopTurn)
OTHER = "ashep-other-77"
LOST = Stamp("another", 50, "t-1/implement.2.3", visit=2, attempt=3, runs=7, depth=1, cycle_runs=4, actor=OTHER)
"""What another journal left on the issue."""


def a_lease(book: Playbook, holder: str = OTHER) -> tracker.LeaseExpired:
    return tracker.LeaseExpired("t-1", holder, book.now - timedelta(minutes=11))


def found(stamp: Stamp | None = LOST, status: str = "in_progress", *labels: str, assignee: str = ME) -> Playbook:
    """A daemon whose first look shows an issue that is in the midst of things."""
    book = Playbook(issues=())
    book.made.tracker["t-1"] = given.issue("t-1", status, *labels, assignee=assignee, stamp=stamp)
    book.made.history["t-1"] = [Change(label, ("added", label), "ann", book.now) for label in labels]
    book.made.history["t-1"].append(Change("0", ("removed", "phase:implement"), "ann", book.now))
    book.left = []
    return book >> tracker.IssueSeen("t-1", book.made.tracker["t-1"], book.world.seq)


# --- a lease that is lost ---


@pytest.mark.promise("O2")
def test_a_refused_heartbeat_stops_the_run_and_nothing_is_written_before_a_fresh_read() -> None:
    book = Playbook().looked()
    book >> tracker.LeaseLost("t-1", "not claimable") << ABORTED << STOP
    assert book << c.ReadIssue


@pytest.mark.promise("O2")
def test_an_issue_that_somebody_took_over_is_left_alone() -> None:
    book = Playbook().looked()
    book >> tracker.LeaseLost("t-1", "claimed by bob") << ABORTED << STOP << c.ReadIssue
    book.made.change("t-1", "bob", assignee="bob")
    read = next(job for job in book.made.jobs if isinstance(job, c.ReadIssue))
    book.made.jobs.remove(read)
    assert book >> book.made._effect(read) << like(issues.IssueLeft, code="assigned")


@pytest.mark.promise("O2")
def test_an_issue_that_is_still_ours_is_tried_again_without_burning_an_attempt() -> None:
    book = Playbook().looked()
    assert (book >> tracker.LeaseLost("t-1", "bd had a bad day")).answered().flow().stage == "work"
    assert book.flow().failures == 0
    (book >> book.later(1)).answered()
    assert (book.run().id, book.run().state) == ("t-1/implement.1.2", "running")


def test_a_lease_that_is_lost_while_a_question_stands_means_nothing() -> None:
    book = Playbook().until("human_review")
    assert book >> tracker.LeaseLost("t-1", "not claimable: status blocked")


# --- issues of ours that the journal does not know ---


@pytest.mark.promise("O3")
def test_work_of_a_lost_state_folder_goes_on_with_a_new_attempt() -> None:
    book = found(LOST, "in_progress", "phase:implement")
    book << like(issues.IssueAdopted, kind="work", phase="implement", visit=2, attempt=3, cycle_runs=4)
    book << like(runs.RunPlanned, run="t-1/implement.2.4")
    book << like(c.StopOrphan, orphan="another:t-1/implement.2.3")
    assert book << like(c.WriteIssue, kind="work", if_status="in_progress", if_assignee=ME)
    stamp = next(job.stamp for job in book.made.jobs if isinstance(job, c.WriteIssue))
    assert (stamp.instance, stamp.run, stamp.runs, stamp.cycle_runs) == (given.INSTANCE, "t-1/implement.2.4", 8, 5)
    assert stamp.depth == 1
    book.answered()
    assert (book.run().id, book.run().state) == ("t-1/implement.2.4", "running")
    assert sum(isinstance(done, c.WriteIssue) for done in book.made.done) == 1


@pytest.mark.promise("O3")
def test_the_attempts_of_a_lost_state_folder_are_used_up() -> None:
    book = found(LOST, "in_progress", "phase:implement")
    assert book << issues.IssueAdopted << runs.RunPlanned << c.StopOrphan << c.WriteIssue
    assert book.flow().failures == 3


@pytest.mark.promise("O3")
@pytest.mark.parametrize("seq", range(60))
def test_the_number_of_anothers_stamp_is_none_of_ours(seq: int) -> None:
    """Found in a simulated night: it was that of the run's own record, whose stamp was then taken for written."""
    book = found(replace(LOST, seq=seq), "in_progress", "phase:implement")
    book << issues.IssueAdopted << runs.RunPlanned << c.StopOrphan
    assert book << like(c.WriteIssue, kind="work")


@pytest.mark.promise("O3")
def test_no_run_begins_before_the_old_one_is_at_rest() -> None:
    book = found(LOST, "in_progress", "phase:implement")
    orphan = next(job for job in book.made.jobs if isinstance(job, c.StopOrphan))
    book.made.jobs.remove(orphan)
    book.answered()
    assert book.run().session is None
    (book >> book.made._effect(orphan)).answered()
    assert book.run().state == "running"


@pytest.mark.promise("O3")
def test_a_question_of_a_lost_state_folder_stands_and_is_not_written_again() -> None:
    stamp = replace(LOST, run="t-1/human_review.1.1", visit=1)
    book = found(stamp, "blocked", "phase:human_review", "needs:human_approval")
    assert book << like(issues.IssueAdopted, kind="ask", phase="human_review", human_phase=True, question="Merge this?")
    assert book.flow().stage == "person"
    book >> book.seen(add=["human:approved"]) << c.ReadAnswer
    book >> book.next() << issues.PersonAnswered << issues.IssueFinished
    assert book << like(c.WriteIssue, kind="close")


def test_an_answer_that_was_given_meanwhile_counts() -> None:
    stamp = replace(LOST, run="t-1/human_review.1.1", visit=1)
    book = found(stamp, "blocked", "phase:human_review", "needs:human_approval", "human:approved")
    assert book << like(issues.IssueAdopted, kind="ask") << c.ReadAnswer


def test_a_parked_issue_of_a_lost_state_folder_stays_parked_until_it_is_freed() -> None:
    book = found(LOST, "blocked", "phase:implement", "ashep:parked")
    assert book << like(issues.IssueAdopted, kind="park")
    assert book.flow().stage == "parked"
    book >> book.seen(drop=["ashep:parked"]) << issues.CycleBegan
    assert book << like(issues.PhaseEntered, phase="implement", visit=8) << runs.RunPlanned << c.WriteIssue


def test_what_a_person_changed_before_the_adoption_is_obeyed() -> None:
    book = found(LOST, "in_progress", "phase:review")
    book << like(issues.IssueAdopted, phase="implement") << issues.CycleBegan
    book << like(issues.PhaseEntered, phase="review")
    assert book << runs.RunPlanned << c.StopOrphan << c.WriteIssue


def test_an_issue_without_our_stamp_or_name_is_not_adopted() -> None:
    assert found(None, "in_progress") << like(issues.IssueHeld, code="status")
    assert found(LOST, "in_progress", assignee="bob") << like(issues.IssueHeld, code="status")


def test_a_daemon_that_was_asked_for_other_issues_adopts_nothing() -> None:
    book = Playbook(issues=(), only=("t-7",))
    book.made.tracker["t-1"] = given.issue("t-1", "in_progress", "phase:implement", assignee=ME, stamp=LOST)
    book >> tracker.IssueSeen("t-1", book.made.tracker["t-1"], book.world.seq)
    assert book << like(issues.IssueHeld, code="not_asked")


# --- issues of a daemon that died ---


@pytest.mark.promise("O4")
def test_the_claim_of_a_dead_daemon_is_taken_back_with_a_comment_and_the_issue_is_worked_on() -> None:
    book = found(LOST, "in_progress", "phase:implement", assignee=OTHER) << like(issues.IssueHeld, code="status")
    book.made.dead.add(OTHER)
    book >> a_lease(book) << like(issues.TakeoverWanted, holder=OTHER)
    assert book << like(c.ReclaimIssue, holder=OTHER)
    book >> book.next() << issues.CommentWanted
    assert book << c.PostComment
    book.answered().looked()
    assert (book.run().id, book.run().state) == ("t-1/implement.8.1", "running")
    assert any(isinstance(done, c.StopOrphan) for done in book.made.done)
    assert book.flow().counters.runs == 8


@pytest.mark.promise("O4")
def test_a_daemon_that_renewed_its_lease_keeps_its_issue() -> None:
    book = found(LOST, "in_progress", "phase:implement", assignee=OTHER) << like(issues.IssueHeld, code="status")
    book >> a_lease(book) << issues.TakeoverWanted << c.ReclaimIssue
    assert book >> book.next()
    assert book.flow().reclaim is None


def test_the_claim_of_a_person_is_never_taken_back() -> None:
    book = found(None, "in_progress", assignee="bob") << like(issues.IssueHeld, code="status")
    assert book >> a_lease(book, "bob")


@pytest.mark.promise("O4")
def test_the_claim_of_a_person_who_took_it_from_a_daemon_is_never_taken_back() -> None:
    book = found(LOST, "in_progress", "phase:implement", assignee="bob") << like(issues.IssueHeld, code="status")
    assert book >> a_lease(book, "bob")


def test_an_excluded_issue_of_a_dead_daemon_is_left_alone() -> None:
    book = found(LOST, "in_progress", "ashep:excluded", assignee=OTHER) << like(issues.IssueHeld, code="excluded")
    assert book >> a_lease(book)


def test_the_stamp_names_the_run_of_another_attempt() -> None:
    book = Playbook().looked()
    book >> book.reports("failed")
    book.answered() >> book.later(60) << runs.RunPlanned << c.WriteIssue
    book.answered()
    stamp = book.made.tracker["t-1"].stamp
    assert stamp is not None
    assert stamp.run == "t-1/implement.1.2"


# --- where no lease is needed ---


def test_giving_an_issue_back_needs_no_lease() -> None:
    book = Playbook().looked()
    assert book.flow().leased
    book >> book.seen(add=["ashep:excluded"]) << ABORTED << like(issues.IssueGivenBack, code="excluded")
    assert not book.flow().leased


def test_an_issue_that_somebody_set_to_open_has_no_lease_that_could_be_lost() -> None:
    book = Playbook().looked()
    book >> book.seen(status="open") << ABORTED << like(issues.IssueGivenBack, code="reopened")
    assert not book.flow().leased


@pytest.mark.promise("O3")
def test_a_stamp_counts_visits_that_had_no_run() -> None:
    """Found in a simulated night: after a lost state folder a run was given the id of an earlier one."""
    book = Playbook().looked()
    visits, target = (("implement", 1), ("review", 9)), Posture(99, "work", "implement")
    flow = replace(book.flow(), counters=replace(book.flow().counters, visits=visits), target=target, open=())
    world = replace(book.world, flows=book.world.flows.insert("t-1", flow))
    writes = [one for one in outstanding(world, "t-1") if isinstance(one, c.WriteIssue)]
    assert [one.stamp.runs for one in writes] == [9]


def test_an_issue_that_shows_an_old_stamp_of_ours_again_uses_no_run_id_twice() -> None:
    """Closed while the write of its next attempt was still to come, and set back by hand: the stamp is behind."""
    book = Playbook(given.policy_of(given.Phase(name="review")))
    book.until("review")
    due = (book >> book.reports("failed")).answered().flow().not_before
    assert due is not None
    book >> book.later((due - book.now).total_seconds()) << like(runs.RunPlanned, run="t-1/review.1.2") << c.WriteIssue
    book >> book.failed() << ...
    book >> book.seen(status="closed") << like(runs.RunEnded, run="t-1/review.1.2") << issues.IssueClosed << ...
    book >> book.seen(status="in_progress") << like(issues.IssueAdopted, phase="review", visit=2)
    book << like(runs.RunPlanned, visit=2)
