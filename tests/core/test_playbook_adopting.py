"""Playbooks of edited policies: runs end as they began, the next decision is by what is in force then, and an issue
whose phase is gone waits for a person.
"""

from typing import Any

import pytest

from ashep.core.analysis.issue_status import account
from ashep.core.facts import commands as c
from ashep.core.facts import issues, resources, runs
from ashep.core.facts import vocabulary as e
from ashep.core.policy.policies import Human, Phase, Policies, Policy
from ashep.core.state.world import phase_of
from tests.core.given import STANDARD, adopted, policies, policy_of
from tests.core.playbook import Playbook, like

IMPLEMENT = Phase(name="implement", next={"success": "review"})
REVIEW = Phase(
    name="review", verdicts=("approve", "needs_changes"), next={"approve": "ask", "needs_changes": "implement"}
)
ASK = Phase(name="ask", human=Human(changes_requested="implement"))
WHOLE = policy_of(IMPLEMENT, REVIEW, ASK)
PARKED = like(issues.IssueParked, code="unknown_phase")


def begun(phase: str, **words: Any) -> Playbook:
    """A daemon at work in a phase."""
    return Playbook(WHOLE).until(phase)


def edited(*phases: Phase) -> e.Fact:
    return adopted(policies(policy_of(*phases)))


def without(policy: str = "standard") -> e.Fact:
    """The policy of the issue is gone."""
    rest = {name: one for name, one in policies(WHOLE).policies.items() if name != policy}
    return adopted(Policies(version=1, policies=rest))


# --- runs under way -----------------------------------------------------------------------------------------------


@pytest.mark.promise("F8")
def test_a_run_ends_under_the_verdicts_with_which_it_began_and_leads_where_the_policy_says_by_then() -> None:
    book = begun("review")
    review = REVIEW.model_copy(update={"next": {"approve": "close", "needs_changes": "ask"}, "verdicts": ("approve",)})
    assert book >> edited(IMPLEMENT, review, ASK)
    book >> book.reports(verdict="needs_changes") << like(runs.RunEnded, state="succeeded")
    book << like(issues.PersonAsked, phase="ask")


def test_what_an_edit_does_not_touch_leaves_a_run_as_it_is() -> None:
    book = begun("review")
    before = book.flow()
    assert book >> edited(REVIEW, ASK)
    assert book.flow() == before
    assert phase_of(book.world, book.flow()) == REVIEW


def test_a_run_that_began_is_not_changed_by_a_second_edit_either() -> None:
    book = begun("review")
    assert book >> edited(IMPLEMENT, REVIEW.model_copy(update={"verdicts": ("no",), "next": {"no": "close"}}))
    assert book >> edited(IMPLEMENT, REVIEW.model_copy(update={"verdicts": ("yes",), "next": {"yes": "close"}}))
    assert phase_of(book.world, book.flow()) == REVIEW
    book >> book.reports(verdict="approve") << like(runs.RunEnded, state="succeeded")
    book << like(issues.IssueParked, code="no_edge")
    assert book << issues.CommentWanted << c.WriteIssue


@pytest.mark.promise("F8")
def test_a_run_whose_phase_is_gone_goes_on_and_its_issue_waits_for_a_person_then() -> None:
    book = begun("review")
    assert book >> edited(IMPLEMENT)
    assert account(book.world, "t-1").state == "running"
    book >> book.reports("success", verdict="approve") << like(runs.RunEnded, state="succeeded") << PARKED
    said = "Parked: the policy standard has no phase review any more."
    assert next(body.text for body in book.left if isinstance(body, issues.CommentWanted)).startswith(said)
    book.answered()
    assert account(book.world, "t-1").reason == "the policy standard has no phase review any more"


def test_a_report_that_is_not_valid_is_asked_for_again_although_the_phase_is_gone() -> None:
    book = begun("review")
    assert book >> edited(IMPLEMENT)
    assert book >> book.reports(verdict="nonsense") << like(runs.OutcomeRejected, then="recover") << c.PreparePrompt
    book.answered()
    book >> book.reports(verdict="approve") << like(runs.RunEnded, state="succeeded") << PARKED


def test_a_run_whose_policy_is_gone_goes_on_and_its_issue_waits_for_a_person_then() -> None:
    book = begun("implement")
    assert book >> without()
    book >> book.reports() << like(runs.RunEnded, state="succeeded") << PARKED
    assert book.flow().why == "there is no policy standard any more"


def test_an_attempt_that_fails_is_tried_again_as_the_policy_says_by_then() -> None:
    book = begun("implement")
    assert book >> edited(
        IMPLEMENT.model_copy(update={"retry": IMPLEMENT.retry.model_copy(update={"max_attempts": 1})})
    )
    book >> book.reports("failed") << runs.RunEnded << like(issues.IssueParked, code="attempts")


def test_a_later_run_has_the_phase_as_it_is_then() -> None:
    book = begun("implement")
    longer = IMPLEMENT.model_copy(update={"timeout": IMPLEMENT.timeout * 2})
    assert book >> edited(longer, REVIEW, ASK)
    (book >> book.reports("failed")).answered()
    book >> book.later(60) << like(runs.RunPlanned, timeout=longer.timeout)
    assert phase_of(book.world, book.flow()) == longer


# --- what waits ---------------------------------------------------------------------------------------------------


@pytest.mark.promise("F8")
def test_a_phase_that_waits_for_its_next_attempt_and_is_gone_parks_at_once() -> None:
    book = begun("implement")
    (book >> book.reports("failed")).answered()
    book >> edited(REVIEW, ASK) << PARKED << issues.CommentWanted
    assert book << like(c.WriteIssue, kind="park")


def test_a_phase_that_cannot_start_yet_and_is_gone_parks_at_once() -> None:
    book = begun("implement")
    book >> resources.WorkPaused("ann", "lunch", None)
    (book >> book.reports()).answered()
    assert (book.flow().phase, book.flow().code) == ("review", "paused_by_hand")
    book.left = []
    assert book >> edited(IMPLEMENT, ASK) << PARKED << issues.CommentWanted << c.WriteIssue


@pytest.mark.promise("F8")
def test_an_open_question_of_a_human_phase_that_is_gone_parks_at_once() -> None:
    book = begun("ask")
    book >> edited(IMPLEMENT, REVIEW.model_copy(update={"next": {"approve": "close", "needs_changes": "implement"}}))
    book << PARKED
    assert book << issues.CommentWanted << like(c.WriteIssue, kind="park")
    book.answered()
    told = account(book.world, "t-1")
    assert (told.state, told.code) == ("parked", "unknown_phase")
    assert told.reason == "the policy standard has no phase ask any more"


def test_an_open_question_of_an_agents_phase_that_is_gone_parks_at_once() -> None:
    book = begun("implement")
    assert (book >> book.reports(needs_human=True)).answered().flow().stage == "person"
    book.left = []
    assert book >> edited(REVIEW, ASK) << PARKED << issues.CommentWanted << c.WriteIssue


def test_an_open_question_goes_on_where_its_phase_only_changed() -> None:
    book = begun("ask")
    asked = book.flow().question
    assert book >> edited(IMPLEMENT, REVIEW, ASK.model_copy(update={"human": Human(approved="implement")}))
    assert book.flow().question == asked
    book >> book.seen(add=["human:approved"]) << c.ReadAnswer
    book >> book.next() << issues.PersonAnswered << issues.CycleBegan << like(issues.PhaseEntered, phase="implement")


@pytest.mark.promise("F8")
def test_an_issue_that_is_a_persons_is_left_to_them_until_they_are_done() -> None:
    book = begun("implement")
    (book >> book.turn("running", people=("msg_ann",))).answered()
    assert book >> edited(REVIEW, ASK)
    assert book.flow().takeover is not None
    book >> book.seen(drop=["ashep:paused"]) << runs.ReleaseWanted
    takeover = book.flow().takeover
    assert takeover is not None
    assert takeover.session is not None
    book.left = []
    (
        book
        >> runs.SessionSeen("t-1", takeover.session, ("msg_ann",), False, book.world.seq)
        << runs.SessionReleased
        << PARKED
    )


def test_what_is_being_closed_is_closed() -> None:
    book = begun("ask")
    book >> book.seen(add=["human:approved"]) << c.ReadAnswer
    book >> book.next() << issues.PersonAnswered << issues.IssueFinished << ...
    assert book >> without()
    assert book.answered().flow().stage == "closed"


def test_a_parked_issue_whose_phase_is_gone_starts_afresh_with_the_first_phase() -> None:
    book = begun("ask")
    (book >> edited(IMPLEMENT, REVIEW)).answered()
    book >> book.seen(drop=["ashep:parked"]) << issues.CycleBegan << like(issues.PhaseEntered, phase="implement")


def test_a_parked_issue_whose_phase_is_gone_goes_where_a_person_sends_it() -> None:
    book = begun("ask")
    (book >> edited(IMPLEMENT, REVIEW)).answered()
    book >> book.seen(add=["phase:review"], drop=["phase:ask"]) << issues.CycleBegan
    book << like(issues.PhaseEntered, phase="review")


def test_an_issue_that_nobody_took_yet_is_claimed_by_what_is_in_force() -> None:
    book = Playbook(policies(STANDARD))
    book >> adopted(Policies(version=1, policies={"other": Policy(phases=(Phase(name="review"),))}))
    book.looked()
    assert (book.flow().policy, book.flow().phase) == ("other", "review")


# --- edits that cannot be used ------------------------------------------------------------------------------------


def test_an_edit_that_cannot_be_used_is_known_until_it_is_mended_or_another_daemon_starts() -> None:
    book = Playbook()
    assert book >> resources.EditRefused(("policies.yaml:2: wrong",), 1)
    known = book.world.files.refused
    assert known is not None
    assert (known.problems, known.more, known.since) == (("policies.yaml:2: wrong",), 1, book.world.now)
    assert book >> resources.EditMended()
    assert book.world.files.refused is None
    assert book >> resources.EditRefused(("policies.yaml:2: wrong",))
    book >> resources.DaemonStarted(4712, "0.1.0")
    assert book.world.files.refused is None


def test_templates_that_come_into_force_are_known_by_their_blob() -> None:
    book = Playbook()
    before = book.world.policies
    assert book >> resources.Adopted("prompts", '{"task.md.j2": "ab"}', "cd" * 32, 3)
    assert book.world.files.prompts == "cd" * 32
    assert book.world.policies == before
