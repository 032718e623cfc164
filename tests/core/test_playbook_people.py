"""Playbooks of people: whatever somebody changes is obeyed at the next look and never overwritten (section 7)."""

import pytest

from ashep.core.facts import commands as c
from ashep.core.facts import issues, runs, tracker
from ashep.core.policy.policies import Human, Phase
from tests.core.given import ME, policies, policy_of
from tests.core.playbook import Playbook, like

ABORTED = like(runs.RunEnded, state="aborted", abort=True)
STOP = like(c.StopTurn)
TREE = like(c.ReadTree, moment="after")


@pytest.mark.promise("P2")
def test_closing_aborts_the_run_and_nothing_is_written() -> None:
    book = Playbook().looked()
    assert book >> book.seen(status="closed") << ABORTED << like(issues.IssueClosed, by="somebody") << STOP
    assert book >> book.next() << TREE
    assert book >> book.next()
    assert book.world.lock is None


@pytest.mark.promise("S1", "P2")
def test_an_issue_that_left_the_list_is_read_and_then_counts_as_closed() -> None:
    book = Playbook().looked()
    book.made.change("t-1", "ann", status="closed")
    assert book >> tracker.IssueGone("t-1", book.world.seq) << c.ReadIssue
    assert book >> book.next() << ABORTED << like(issues.IssueClosed, by="somebody") << STOP


@pytest.mark.promise("P2")
def test_an_issue_that_is_deleted_counts_as_closed() -> None:
    book = Playbook().looked()
    del book.made.tracker["t-1"]
    assert book >> tracker.IssueGone("t-1", book.world.seq) << c.ReadIssue
    assert book >> book.next() << ABORTED << issues.IssueClosed << STOP


@pytest.mark.promise("P6")
def test_a_phase_label_set_by_hand_begins_a_cycle_there() -> None:
    book = Playbook().looked()
    book >> book.seen(add=["phase:review"]) << ABORTED << like(issues.CycleBegan, cycle=2)
    assert book << like(issues.PhaseEntered, phase="review") << STOP
    assert book.world.lock is None
    assert book >> book.next() << TREE
    book >> book.next() << runs.RunPlanned
    assert book << like(c.WriteIssue, add_labels=(), remove_labels=("phase:implement",))


@pytest.mark.promise("P6")
def test_a_phase_label_that_the_policy_does_not_know_holds_until_a_good_one_is_set() -> None:
    book = Playbook().looked()
    assert book >> book.seen(add=["phase:nonsense"]) << ABORTED << like(issues.IssueLeft, code="unknown_phase") << STOP
    assert book.answered().flow().code == "unknown_phase"
    book >> book.seen(add=["phase:review"], drop=["phase:nonsense", "phase:implement"])
    book << like(issues.CycleBegan, cycle=2) << like(issues.PhaseEntered, phase="review") << runs.RunPlanned
    assert book << like(c.WriteIssue, kind="work", if_status="in_progress", if_assignee=ME)


@pytest.mark.promise("P7")
def test_a_phase_label_taken_off_holds_the_issue_and_nothing_is_written_until_one_is_set() -> None:
    book = Playbook().looked()
    book >> book.seen(drop=["phase:implement"]) << ABORTED << like(issues.IssueLeft, code="phase_taken_off")
    assert book << STOP
    book.answered()
    assert book.world.lock is None
    book >> book.seen(add=["phase:arbitrate"]) << issues.CycleBegan << like(issues.PhaseEntered, phase="arbitrate")
    assert book << runs.RunPlanned << c.WriteIssue


@pytest.mark.promise("P7")
def test_a_phase_label_taken_off_and_open_set_is_taken_at_once() -> None:
    book = Playbook().looked()
    book >> book.seen(drop=["phase:implement"])
    book.answered() >> [book.seen(status="open", assignee=None), tracker.ReadySeen(("t-1",), book.world.seq)]
    book << issues.IssueTaken << issues.CycleBegan << like(issues.PhaseEntered, phase="implement", visit=2)
    book << runs.RunPlanned
    assert book << c.ClaimIssue


@pytest.mark.promise("P4")
def test_excluding_gives_the_issue_back_in_one_guarded_write() -> None:
    book = Playbook().looked()
    book >> book.seen(add=["ashep:excluded"]) << ABORTED << like(issues.IssueGivenBack, code="excluded")
    book << STOP
    assert book << like(
        c.WriteIssue, kind="give_back", if_status="in_progress", if_assignee=ME, status="open", assignee=None,
        remove_labels=("phase:implement",),
    )  # fmt: skip
    book.answered().looked()
    assert (book.flow().stage, book.flow().code) == ("idle", "excluded")
    assert book.made.tracker["t-1"].labels == ("ashep:excluded",)


@pytest.mark.promise("P4")
def test_excluding_gives_back_what_was_held_for_its_phase_label() -> None:
    book = Playbook().looked()
    book >> book.seen(drop=["phase:implement"]) << ABORTED << like(issues.IssueLeft, code="phase_taken_off")
    book.answered()
    book >> book.seen(add=["ashep:excluded"]) << like(issues.IssueGivenBack, code="excluded")
    assert book << like(c.WriteIssue, kind="give_back", if_status="in_progress", if_assignee=ME, status="open")
    book.answered().looked()
    assert (book.flow().stage, book.flow().code) == ("idle", "excluded")


@pytest.mark.promise("P3")
def test_assigning_to_somebody_else_aborts_and_nothing_is_written() -> None:
    book = Playbook().looked()
    assert book >> book.seen(assignee="bob") << ABORTED << like(issues.IssueLeft, code="assigned") << STOP


def test_an_assignment_that_was_taken_back_is_no_reason_any_more() -> None:
    book = Playbook().looked()
    book >> book.seen(assignee="bob") << ABORTED << like(issues.IssueLeft, code="assigned") << STOP
    book.answered().looked()
    book >> book.seen(assignee=None)
    assert book.flow().code == "status"


def test_an_issue_that_is_deferred_and_excluded_is_not_set_to_open() -> None:
    book = Playbook().looked()
    book >> book.seen(status="deferred", add=["ashep:excluded"]) << ABORTED
    assert book << like(issues.IssueLeft, code="status_changed") << STOP


@pytest.mark.promise("P3")
def test_deferring_aborts_and_nothing_is_written() -> None:
    book = Playbook().looked()
    assert book >> book.seen(status="deferred") << ABORTED << like(issues.IssueLeft, code="status_changed") << STOP
    assert book.answered().looked().flow().code == "status_changed"


@pytest.mark.promise("P5")
def test_opening_gives_the_issue_back_and_takes_it_again_only_after_the_cool_down() -> None:
    book = Playbook().looked()
    book >> book.seen(status="open") << ABORTED << like(issues.IssueGivenBack, code="reopened") << STOP
    assert book << like(c.WriteIssue, kind="give_back", if_status="open", if_assignee=ME, assignee=None)
    book.answered().looked()
    assert (book.flow().stage, book.flow().code) == ("idle", "cooldown")
    assert book >> book.later(590)
    book >> book.later(20) << issues.IssueTaken << like(issues.CycleBegan, cycle=2)
    book << like(issues.PhaseEntered, visit=2)
    assert book << like(runs.RunPlanned, run="t-1/implement.2.1") << c.ClaimIssue


@pytest.mark.promise("P5")
def test_opening_with_a_phase_label_takes_it_again_at_once_in_that_phase() -> None:
    book = Playbook().looked()
    book >> book.seen(status="open", add=["phase:review"]) << ABORTED << like(issues.IssueGivenBack, not_before=None)
    assert book << STOP << like(c.WriteIssue, kind="give_back", remove_labels=("phase:implement",))
    book.answered().looked()
    assert (book.flow().stage, book.flow().phase) == ("work", "review")


@pytest.mark.promise("P5")
def test_opening_without_an_assignee_needs_no_write_and_no_cool_down() -> None:
    book = Playbook().looked()
    book >> [book.seen(status="open", assignee=None), tracker.ReadySeen(("t-1",), book.world.seq)]
    assert book << ABORTED << like(issues.IssueLeft, code="reopened") << STOP
    assert book.answered().looked().flow().counters.cycle == 2


@pytest.mark.promise("S5")
def test_reopening_a_closed_issue_begins_a_cycle() -> None:
    book = Playbook().looked()
    book >> book.seen(status="closed")
    book.answered() >> [book.seen(status="open", assignee=None), tracker.ReadySeen(("t-1",), book.world.seq)]
    book << issues.IssueTaken << like(issues.CycleBegan, cycle=2)
    book << like(issues.PhaseEntered, phase="implement", visit=2)
    assert book << like(runs.RunPlanned, run="t-1/implement.2.1") << c.ClaimIssue


def test_a_run_that_is_still_being_stopped_is_not_forgotten_when_the_issue_is_reopened() -> None:
    book = Playbook().looked()
    book >> book.seen(status="closed") << ...
    book >> [book.seen(status="open", assignee=None), tracker.ReadySeen(("t-1",), book.world.seq)]
    assert book >> book.next() << TREE
    book >> book.next() << issues.IssueTaken << issues.CycleBegan << issues.PhaseEntered << runs.RunPlanned
    assert book << c.ClaimIssue


@pytest.mark.promise("D5")
def test_a_paused_issue_keeps_the_tree_and_starts_nothing() -> None:
    book = Playbook().until("review")
    assert book >> book.reports("failed") << runs.RunEnded << issues.RetryScheduled
    book >> book.seen(add=["ashep:paused"]) << like(runs.SessionTaken, label="theirs", session=None)
    assert book >> book.later(30)
    assert book.flow().code == "paused"
    assert book.world.lock == "t-1"
    book >> book.seen(drop=["ashep:paused"]) << runs.ReleaseWanted << runs.SessionReleased
    book << like(runs.RunPlanned, attempt=2, prompt="task") << c.WriteIssue
    assert book >> book.next() << c.OpenSession


@pytest.mark.promise("P1")
def test_a_guard_that_trips_is_read_and_obeyed() -> None:
    book = Playbook().until("arbitrate")
    book.made.change("t-1", "ann", status="closed")  # between our read and our write
    book >> book.reports(verdict="pass") << runs.RunEnded << issues.PersonAsked << issues.CommentWanted << c.WriteIssue
    assert book >> book.next() << c.ReadIssue
    assert book >> book.next() << like(issues.IssueClosed, by="somebody")
    assert book.made.tracker["t-1"].status == "closed"


@pytest.mark.promise("P1")
def test_a_guard_that_trips_on_closing_does_not_overwrite_a_reopening() -> None:
    book = Playbook().until("human_review")
    book >> book.seen(add=["human:approved"]) << ...
    book.made.change("t-1", "ann", status="open")
    book >> book.next()  # the answer is read, and with it the status
    book << like(issues.IssueGivenBack, code="reopened")
    assert book << like(c.WriteIssue, kind="give_back", if_status="open")


# --- stale reads, and writes whose answer was lost ----------------------------------------------------------------


@pytest.mark.promise("P9")
def test_a_read_that_began_before_our_write_was_answered_is_no_person() -> None:
    book = Playbook()
    before = book.made.tracker["t-1"]
    book.made.look()
    as_of = book.world.seq
    assert book >> tracker.IssueSeen("t-1", before, as_of)  # the claim is open
    book.answered()
    assert book >> tracker.IssueSeen("t-1", before, as_of)  # it was answered, and the read is older
    assert book.flow().stage == "work"


@pytest.mark.promise("P9")
def test_a_write_that_landed_although_its_answer_was_lost_is_no_person() -> None:
    book = Playbook().until("review")
    book >> book.reports(verdict="approve") << ...
    assert book >> book.failed(landed=True)
    assert book >> tracker.IssueSeen("t-1", book.made.tracker["t-1"], book.world.seq)
    assert book >> book.later(2) << like(c.OpenSession, run="t-1/arbitrate.1.1")
    assert (book.flow().written, book.flow().counters.cycle) == (book.flow().target, 1)


def test_giving_back_that_landed_without_an_answer_is_done() -> None:
    book = Playbook().until("review")
    book >> book.seen(add=["ashep:excluded"]) << ...
    stop, write = book.made.jobs
    book.made.jobs = [write, stop]
    assert book >> book.failed(landed=True)
    book >> tracker.IssueSeen("t-1", book.made.tracker["t-1"], book.world.seq)
    assert book.flow().stage == "idle"


@pytest.mark.promise("S4")
def test_a_claim_that_is_lost_leaves_the_issue_and_asks_the_tracker_again() -> None:
    book = Playbook()
    book.made.look()
    book.made.change("t-1", "bob", assignee="bob", status="in_progress")
    book >> book.next() << like(runs.RunEnded, state="aborted") << like(issues.IssueLeft, code="claim_lost")
    assert book << c.ReadIssue
    assert not book.world.ready_fresh
    assert book >> book.next() << like(issues.IssueHeld, code="status")
    assert book.world.lock is None


@pytest.mark.promise("S4")
def test_a_claim_that_is_refused_is_not_tried_again_before_the_next_look() -> None:
    book = Playbook()
    book.made.look()
    claim = book.dropped()
    book >> tracker.ClaimRefused("t-1", claim.key, "not claimable") << runs.RunEnded << issues.IssueLeft << c.ReadIssue
    assert book >> book.next() << like(issues.IssueHeld, code="cooldown")
    assert book.world.taken == 1


def test_a_claim_that_is_refused_although_the_issue_is_listed_is_tried_again_after_a_minute() -> None:
    book = Playbook()
    book.made.look()
    claim = book.dropped()
    book >> tracker.ClaimRefused("t-1", claim.key, "not claimable") << runs.RunEnded << issues.IssueLeft << c.ReadIssue
    assert book >> book.next() << like(issues.IssueHeld, code="cooldown")
    assert book >> tracker.ReadySeen(("t-1",), book.world.seq)
    assert not book.later(59)
    book >> book.later(1) << issues.IssueTaken
    assert any(isinstance(body, c.ClaimIssue) for body in book.left)


def test_what_changed_before_the_claim_landed_is_obeyed() -> None:
    book = Playbook()
    book.made.look()
    assert book >> book.failed()
    book >> book.seen(assignee="bob") << like(runs.RunEnded, state="aborted") << like(issues.IssueLeft, code="changed")
    assert book << like(issues.IssueHeld, code="assigned")


# --- parking ------------------------------------------------------------------------------------------------------


def parked(phase: str = "review") -> Playbook:
    book = Playbook().until(phase)
    book >> issues.IssueCancelled("t-1", "ann")
    return book.answered()


@pytest.mark.promise("P8")
def test_taking_the_label_off_begins_a_cycle_in_the_phase_of_the_label() -> None:
    book = parked()
    assert book.made.tracker["t-1"].labels == ("ashep:parked", "phase:review")
    assert book.world.lock is None
    book >> book.seen(drop=["ashep:parked"]) << like(issues.CycleBegan, cycle=2)
    book << like(issues.PhaseEntered, phase="review")
    assert book << runs.RunPlanned << like(c.WriteIssue, kind="work", if_status="blocked", status="in_progress")


@pytest.mark.promise("P8")
def test_taking_both_labels_off_begins_at_the_first_phase() -> None:
    book = parked()
    book >> book.seen(drop=["ashep:parked", "phase:review"]) << issues.CycleBegan
    book << like(issues.PhaseEntered, phase="implement")
    assert book << runs.RunPlanned << c.WriteIssue


def test_another_phase_label_leads_there() -> None:
    book = parked()
    book >> book.seen(add=["phase:arbitrate"]) << issues.CycleBegan << like(issues.PhaseEntered, phase="arbitrate")
    assert book << runs.RunPlanned << like(c.WriteIssue, remove_labels=("ashep:parked", "phase:review"))


@pytest.mark.promise("P8")
def test_taking_the_parked_label_off_a_created_issue_gives_it_to_the_queue() -> None:
    book = Playbook(policy_of(Phase(name="review"), max_depth=0)).looked()
    book >> book.reports(created_issues=[{"title": "more"}])
    book.answered().looked()
    (child,) = set(book.made.tracker) - {"t-1"}
    book >> book.seen(child, drop=["ashep:parked"]) << like(issues.IssueGivenBack, code="unparked")
    assert book << like(c.WriteIssue, kind="give_back", if_status="blocked", if_assignee=None, status="open")
    assert book.answered().looked().flow(child).stage == "work"


@pytest.mark.promise("D1")
def test_a_policy_that_is_forced_by_label_is_used() -> None:
    book = Playbook(policies(other=policy_of(Phase(name="review"))))
    book.made.change("t-1", "ann", ["policy:other"])
    book.looked()
    assert (book.flow().policy, book.flow().phase) == ("other", "review")


def test_a_status_that_no_write_of_ours_leaves_is_a_persons_although_an_answer_was_lost() -> None:
    book = Playbook(policy_of(Phase(name="sign", human=Human(ask="Begin?"))))
    book.made.look()
    book >> book.failed(landed=True)  # the question stands, and nobody heard of it
    book >> book.later(8 * 24 * 3600)  # its deadline parks the issue: another write takes its place
    park = next(job for job in book.made.jobs if isinstance(job, c.WriteIssue) and job.kind == "park")
    book.left = []
    book.made.jobs.clear()
    book.made.change("t-1", "ann", status="deferred")
    assert book >> tracker.GuardRefused("t-1", park.key) << c.ReadIssue
    assert book >> book.next() << like(issues.IssueLeft, code="changed") << like(issues.IssueHeld, code="status")


def test_excluding_is_obeyed_while_the_write_of_a_phase_set_by_hand_is_on_its_way() -> None:
    """It is ours again by a label set by hand, and nothing of ours is confirmed yet."""
    book = Playbook().looked()
    book >> book.seen(drop=["phase:implement"])
    book.answered() >> book.seen(add=["phase:review"]) << issues.CycleBegan << like(issues.PhaseEntered, phase="review")
    book.left = []
    assert book.flow().written is None
    book >> book.failed() << ...
    book >> book.seen(add=["ashep:excluded"])
    assert like(runs.RunEnded, state="aborted").fits(book.left[0])
    assert like(issues.IssueGivenBack, code="excluded").fits(book.left[1])
