"""Playbooks of reminders: whoever is asked is reminded now and then, and never after the answer or the deadline."""

from datetime import timedelta

import pytest

from ashep.core.analysis.issue_status import account
from ashep.core.facts import commands as c
from ashep.core.facts import issues, resources
from ashep.core.policy.policies import Human, Phase, Policy
from ashep.core.policy.settings import Notify, NotifyTarget, Settings
from ashep.core.resources.due_times import next_due
from tests.core.given import adopted, policies, policy_of
from tests.core.playbook import Playbook, like

HOUR = 3600.0
LOOK = Phase(name="look", capabilities=("review",))


def sign(reminder: float | None = 1, deadline: float = 3) -> Policy:
    """A person is asked, and reminded, after so many hours."""
    every = timedelta(hours=reminder) if reminder else None
    human = Human(ask="Fine?", changes_requested="look", reminder=every, deadline=timedelta(hours=deadline))
    return policy_of(LOOK, Phase(name="sign", human=human))


def asked(policy: Policy | None = None, config: Settings | None = None) -> Playbook:
    """The question is asked."""
    book = Playbook(policy or sign(), config=config).looked()
    book >> book.reports()
    return book.answered()


@pytest.mark.promise("Q5")
def test_people_are_reminded_by_a_comment_each_time_until_the_deadline() -> None:
    book = asked()
    question = book.flow().question
    assert question is not None
    start = question.asked
    assert question.remind == start + timedelta(hours=1)
    assert book.later(HOUR - (book.now - start).total_seconds() - 1) == []
    book >> book.later(1) << like(issues.PersonReminded, phase="sign", question="Fine?", due=question.due)
    book << issues.CommentWanted
    assert book << like(c.PostComment, text=book.flow().comments[0][1])
    text = book.flow().comments[0][1]
    assert text.startswith("Still open, since 2026-01-01 22:00Z: **Fine?**")
    assert "`ashep approve t-1`" in text
    book.answered()
    assert account(book.world, "t-1").state == "person"
    book >> book.later(HOUR) << like(issues.PersonReminded, remind=None) << issues.CommentWanted << c.PostComment
    book.answered()
    book >> book.later(HOUR - 1)
    book >> book.later(1) << like(issues.IssueParked, code="question_deadline") << issues.CommentWanted
    assert book << c.WriteIssue


def test_what_passed_while_nobody_could_be_reminded_counts_once() -> None:
    book = asked(sign(1, 24))
    assert book >> book.later(5.5 * HOUR) << like(issues.PersonReminded) << issues.CommentWanted << c.PostComment
    question = book.flow().question
    assert question is not None
    assert question.remind == question.asked + timedelta(hours=6)


def test_nobody_is_reminded_after_the_answer() -> None:
    book = asked()
    assert (book >> book.seen(add=["human:changes_requested"])).answered().flow().stage == "work"
    assert [fact for fact in book.later(HOUR) if fact.key.startswith("remind")] == []  # type: ignore[attr-defined]


def test_a_reminder_that_comes_too_late_is_none() -> None:
    book = asked()
    due = next_due(book.world)
    assert due is not None
    (book >> book.seen(add=["human:changes_requested"])).answered()
    assert book >> resources.TimerDue("remind:t-1", due)


def test_without_a_reminder_nobody_is_reminded() -> None:
    book = asked(sign(None))
    assert [fact.key for fact in book.later(3 * HOUR)] == ["question:t-1"]  # type: ignore[attr-defined]


def test_a_reminder_at_the_deadline_is_none() -> None:
    assert [fact.key for fact in asked(sign(3, 3)).later(3 * HOUR)] == ["question:t-1"]  # type: ignore[attr-defined]


def test_a_question_of_an_agents_phase_has_no_reminder() -> None:
    book = Playbook(sign()).looked()
    assert (book >> book.reports(needs_human=True)).answered().flow().stage == "person"
    assert book.later(5 * HOUR) == []


def test_whether_people_are_reminded_again_says_the_policy_by_then() -> None:
    book = asked(sign(1, 24))
    book >> adopted(policies(sign(4, 24)))
    book >> book.later(HOUR) << issues.PersonReminded
    question = book.flow().question
    assert question is not None
    assert question.remind == question.asked + timedelta(hours=4)
    book.answered()
    book >> adopted(policies(sign(None, 24)))
    book >> book.later(3 * HOUR) << like(issues.PersonReminded, remind=None)


@pytest.mark.promise("Q5")
def test_a_restart_forgets_no_reminder() -> None:
    book = asked()
    book.made.crash()
    book.answered()
    assert any(isinstance(fact, resources.TimerDue) and fact.key == "remind:t-1" for fact in book.later(HOUR))


def test_the_targets_of_notify_are_told_of_each_reminder() -> None:
    notify = Notify(targets=(NotifyTarget(name="pager", command=("page",)),), batch=timedelta(0))
    book = asked(config=Settings(notify=notify))
    while [fact for fact in book.later(0) if isinstance(fact, resources.TimerDue) and fact.key.startswith("notice")]:
        (book >> book.later(0)).answered()
    book >> book.later(HOUR) << issues.PersonReminded
    text = "t-1 (Title of t-1) still waits for you, until 2026-01-02 01:00Z: Fine?"
    book << like(resources.NoticeWanted, event="waiting", issue="t-1", text=text, to=("pager",))
    book << issues.CommentWanted << c.PostComment
    book.answered()
    wanted = book.world.notices.wanted[-1]
    assert book >> book.later(0) << like(resources.NoticesGathered, notices=(wanted.id,), left_out=()) << c.SendNotice
