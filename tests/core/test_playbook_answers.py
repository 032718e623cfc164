"""Playbooks of answers: what counts as one, where it leads, and what happens when none comes."""

from datetime import timedelta

import pytest

from ashep.core.facts import commands as c
from ashep.core.facts import issues, runs
from ashep.core.facts.tracker import Comment, LabelEvent
from ashep.core.policy.policies import Human, Phase
from tests.core.given import ME, policy_of
from tests.core.playbook import Playbook, like


@pytest.mark.promise("Q1", "Q4")
def test_the_question_takes_both_answer_labels_off_in_the_write_that_asks() -> None:
    book = Playbook().until("arbitrate")
    book.made.change("t-1", "ashep-agent", ["human:approved"])
    book.looked() >> book.reports(verdict="pass") << runs.RunEnded << issues.PersonAsked << issues.CommentWanted
    assert book << like(
        c.WriteIssue, kind="ask", remove_labels=("human:approved", "human:changes_requested", "phase:arbitrate")
    )
    assert book.answered().looked().flow().stage == "person"
    assert book.made.tracker["t-1"].labels == ("needs:human_approval", "phase:human_review")


@pytest.mark.promise("Q2")
@pytest.mark.parametrize("who", [ME, "ashep-agent", ""])
def test_an_answer_set_by_ashep_or_an_agent_is_taken_off_with_a_comment(who: str) -> None:
    book = Playbook().until("human_review")
    assert book >> book.seen(who=who, add=["human:approved"]) << c.ReadAnswer
    book >> book.next() << like(issues.AnswerRefused, labels=("human:approved",)) << issues.CommentWanted
    assert book << like(c.TakeOffLabels, labels=("human:approved",))
    assert book >> book.next() << c.PostComment
    assert book >> book.next()
    assert book.flow().stage == "person"
    book.made.now += timedelta(seconds=1)
    assert book >> book.seen(add=["human:approved"]) << c.ReadAnswer
    assert book >> book.next() << like(issues.PersonAnswered, actor="ann") << issues.IssueFinished << c.WriteIssue


@pytest.mark.promise("Q2")
def test_an_answer_that_nobody_is_on_record_for_counts_for_nothing() -> None:
    book = Playbook().until("human_review")
    book >> book.seen(add=["human:approved"]) << ...
    book.made.events["t-1"] = []
    assert book >> book.next() << issues.AnswerRefused << issues.CommentWanted << c.TakeOffLabels


@pytest.mark.promise("Q2")
def test_a_persons_and_an_agents_label_of_one_second_count_as_the_agents() -> None:
    book = Playbook().until("human_review")
    book >> book.seen(add=["human:approved"]) << ...
    book.made.events["t-1"].append(LabelEvent("9", "human:approved", "ashep-agent", book.now))
    assert book >> book.next() << issues.AnswerRefused << issues.CommentWanted << c.TakeOffLabels


def test_an_agents_refused_label_is_not_held_against_a_person_whatever_the_clock_says() -> None:
    book = Playbook().until("human_review")
    book >> book.seen(add=["human:approved"]) << ...
    later = book.now + timedelta(hours=2)  # the agent set it before the clock was set back
    book.made.events["t-1"] = [LabelEvent("9", "human:approved", "ashep-agent", later)]
    assert book >> book.next() << issues.AnswerRefused << issues.CommentWanted << c.TakeOffLabels
    book.answered()
    book.made.change("t-1", "pat", (), ["human:approved"])
    assert book >> book.seen(add=["human:approved"]) << c.ReadAnswer
    assert book >> book.next() << like(issues.PersonAnswered, answer="approved") << issues.IssueFinished << c.WriteIssue


@pytest.mark.promise("Q3")
def test_where_both_answers_of_one_second_stand_changes_requested_wins() -> None:
    book = Playbook().until("human_review")
    assert book >> book.seen(add=["human:approved", "human:changes_requested"]) << c.ReadAnswer
    book >> book.next() << like(issues.PersonAnswered, answer="changes_requested") << issues.CommentWanted
    assert book << issues.CycleBegan << like(issues.PhaseEntered, phase="implement") << runs.RunPlanned << c.WriteIssue


@pytest.mark.promise("Q3")
def test_where_both_answers_stand_the_later_wins_and_both_are_told() -> None:
    for first, last in (("approved", "changes_requested"), ("changes_requested", "approved")):
        book = Playbook().until("human_review")
        book >> book.seen(who="kim", add=[f"human:{first}"]) << c.ReadAnswer
        book.made.now += timedelta(seconds=1)
        book.made.change("t-1", "ann", [f"human:{last}"])
        book >> book.next() << like(issues.PersonAnswered, answer=last, actor="ann")
        (comment,) = (body for body in book.left if isinstance(body, issues.CommentWanted))
        assert all(f"human:{one} " in comment.text for one in (first, last))
        assert "kim" in comment.text
        assert "ann" in comment.text


@pytest.mark.promise("Q3")
def test_an_agent_cannot_overrule_a_persons_approval() -> None:
    book = Playbook().until("human_review")
    book.made.change("t-1", "ashep-agent", ["human:changes_requested"])
    assert book >> book.seen(add=["human:approved"]) << c.ReadAnswer
    assert book >> book.next() << like(issues.PersonAnswered, answer="approved") << issues.IssueFinished << c.WriteIssue


@pytest.mark.promise("Q6")
def test_a_persons_words_are_kept_and_new_ones_go_by_id() -> None:
    book = Playbook().until("human_review")
    assert not book.flow().shown
    book.made.say("t-1", "ann", "rename it")
    book >> book.seen(add=["human:changes_requested"]) << ...
    book >> book.next()
    assert [comment.text for comment in book.flow().answers] == ["rename it"]
    assert all(isinstance(comment, Comment) for comment in book.flow().answers)
    book.answered()
    assert {comment.id for comment in book.flow().answers} <= book.flow().shown


@pytest.mark.promise("Q5")
def test_a_question_that_nobody_answers_parks_at_its_deadline() -> None:
    book = Playbook().until("human_review")
    book >> book.later(7 * 86400) << like(issues.IssueParked, code="question_deadline") << issues.CommentWanted
    assert book << like(c.WriteIssue, kind="park", remove_labels=("needs:human_approval",))


@pytest.mark.promise("Q5")
@pytest.mark.parametrize(("target", "follows"), [("close", issues.IssueFinished), ("implement", issues.PhaseEntered)])
def test_a_question_that_nobody_answers_follows_its_edge(target: str, follows: type) -> None:
    gate = Phase(name="gate", human=Human(on_deadline=target, changes_requested="implement"))
    book = Playbook(policy_of(gate, Phase(name="implement"))).looked()
    book >> book.later(7 * 86400) << follows
    assert book.left


@pytest.mark.promise("Q5")
@pytest.mark.parametrize("to", ["implement", "gate"])
def test_a_circle_over_a_deadline_uses_up_visits_until_it_parks(to: str) -> None:
    """Nobody answered, so that no cycle begins: an unattended night is bounded, and waiting is no working time."""
    gate = Phase(name="gate", human=Human(on_deadline=to))
    book = Playbook(policy_of(Phase(name="implement", max_visits=3), gate)).looked()
    for _ in range(8):
        if book.flow().stage == "work":
            (book >> book.reports()).answered()
        if book.flow().stage == "parked":
            break
        (book >> book.later(7 * 86400)).answered()
    assert (book.flow().stage, book.flow().code) == ("parked", "max_visits")
    assert book.flow().counters.cycle == 1
    assert book.flow().cycle_times(to) == (3 if to == "implement" else 4)


@pytest.mark.promise("Q5")
def test_a_question_of_an_agent_phase_has_a_deadline_too() -> None:
    book = Playbook().until("review")
    (book >> book.reports(needs_human=True, verdict="approve")).answered()
    book >> book.later(7 * 86400) << like(issues.IssueParked, code="question_deadline") << issues.CommentWanted
    assert book << c.WriteIssue


@pytest.mark.promise("C1")
def test_the_person_answers_and_the_deadline_that_passed_no_longer_stands() -> None:
    book = Playbook().until("human_review")
    due = book.later(7 * 86400)
    (book >> book.seen(add=["human:changes_requested"])).answered()
    assert book >> due
    assert book.flow().stage == "work"
