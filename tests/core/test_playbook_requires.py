"""Playbooks of `requires`: a phase is entered only after what it requires has happened in the present cycle."""

import pytest

from ashep.core.facts import commands as c
from ashep.core.facts import issues, runs
from ashep.core.policy.policies import Human, Phase, Policy
from tests.core.given import policy_of
from tests.core.playbook import Playbook, like

ENDED = like(runs.RunEnded, state="succeeded")
IMPLEMENT = Phase(name="implement", retry={"max_attempts": 1}, next={"failed": "code"})  # type: ignore[arg-type]
REVIEW = Phase(name="review", verdicts=("approve", "needs_changes"), next={"approve": "code", "needs_changes": "code"})


def with_code(*more: Phase, **requires: tuple[str, ...]) -> Policy:
    """Implement, review, and a phase `code` that requires something."""
    return policy_of(IMPLEMENT, REVIEW, Phase(name="code", requires=requires), *more)


def test_what_is_required_was_said_and_the_phase_is_entered() -> None:
    book = Playbook(with_code(review=("approve",), implement=("success",))).until("review")
    book >> book.reports(verdict="approve") << ENDED << like(issues.PhaseEntered, phase="code") << runs.RunPlanned
    assert book << c.WriteIssue


@pytest.mark.promise("R14")
def test_another_verdict_is_not_what_is_required_and_the_issue_parks() -> None:
    book = Playbook(with_code(review=("approve",))).until("review")
    book >> book.reports(verdict="needs_changes") << ENDED << like(issues.IssueParked, code="requires")
    book << issues.CommentWanted
    assert book << c.WriteIssue
    assert "code requires review: approve, which is not so" in book.flow().why


def test_one_of_several_verdicts_will_do() -> None:
    book = Playbook(with_code(review=("approve", "needs_changes"))).until("review")
    book >> book.reports(verdict="needs_changes") << ENDED << like(issues.PhaseEntered, phase="code")


def test_a_phase_that_failed_did_not_pass() -> None:
    book = Playbook(with_code(implement=("success",))).looked()
    book >> book.reports("failed") << runs.RunEnded << like(issues.IssueParked, code="requires") << issues.CommentWanted


def test_a_phase_that_passed_before_and_then_failed_did_not_pass() -> None:
    review = Phase(name="review", verdicts=("again", "on"), next={"again": "implement", "on": "code"})
    book = Playbook(policy_of(IMPLEMENT, review, Phase(name="code", requires={"implement": ("success",)})))
    book.until("review")
    book >> book.reports(verdict="again") << ENDED << like(issues.PhaseEntered, phase="implement", visit=2)
    book.answered()
    book >> book.reports("failed") << runs.RunEnded << like(issues.IssueParked, code="requires") << issues.CommentWanted


def test_a_person_who_approves_leads_on_with_what_was_passed_and_their_answer_counts() -> None:
    ask = Phase(name="ask", human=Human(approved="doc", changes_requested="implement"))
    doc = Phase(name="doc", capabilities=("implement",), requires={"code": ("success",), "ask": ("approved",)})
    book = Playbook(with_code(ask, doc)).until("ask")
    book >> book.seen(add=["human:approved"]) << c.ReadAnswer
    book >> book.next() << issues.PersonAnswered << like(issues.CycleBegan, cycle=2, keeps=True)
    book << like(issues.PhaseEntered, phase="doc")


@pytest.mark.promise("R14")
def test_a_person_who_wants_changes_undoes_what_was_passed() -> None:
    ask = Phase(name="ask", human=Human(changes_requested="doc"))
    doc = Phase(name="doc", capabilities=("implement",), requires={"code": ("success",)})
    book = Playbook(with_code(ask, doc)).until("ask")
    book >> book.seen(add=["human:changes_requested"]) << c.ReadAnswer
    book >> book.next() << issues.PersonAnswered << like(issues.CycleBegan, cycle=2, keeps=False)
    assert book << like(issues.IssueParked, code="requires") << issues.CommentWanted << c.WriteIssue


def test_a_question_of_a_phase_leads_back_into_it_whatever_it_requires() -> None:
    book = Playbook(with_code(review=("approve",))).until("review")
    (book >> book.reports(verdict="approve")).answered()
    (book >> book.reports(needs_human=True)).answered()
    book >> book.seen(add=["human:changes_requested"]) << ...
    book >> book.next() << issues.PersonAnswered << like(issues.CycleBegan, keeps=True)
    book << like(issues.PhaseEntered, phase="code")


@pytest.mark.promise("R14")
def test_a_label_set_by_hand_leads_in_whatever_is_required() -> None:
    book = Playbook(with_code(review=("approve",))).until("review")
    book >> book.seen(add=["phase:code"], drop=["phase:review"])
    assert (book.flow().phase, book.flow().stage) == ("code", "work")
