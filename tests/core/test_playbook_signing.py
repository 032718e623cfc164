"""Conversations about signed approvals: what is signed, what voids it, and what is told of one that does not count."""

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from ashep.core.facts import commands as c
from ashep.core.facts import issues
from ashep.core.facts.approvals import Approval, Signature, signatures_in
from ashep.core.facts.tracker import AnswerRead
from ashep.core.issues.signed_approvals import approval_of
from ashep.core.policy.policies import Human, Phase
from ashep.core.policy.settings import People
from tests.core.given import adopted, policies, policy_of
from tests.core.playbook import Playbook, like
from tests.core.test_playbook_landing import HUMAN, book_of, through
from tests.core.test_playbook_workspaces import own

pytestmark = pytest.mark.promise("Q7")

REQUIRED = People(tracker=("ann",), signed="required")
CONFIG = own().model_copy(update={"people": REQUIRED})


def asks(people: People | None = REQUIRED, **more: Any) -> Playbook:
    """Work that is done, and a person is asked whether it may be closed."""
    book = through(book_of(HUMAN, config=own().model_copy(update={"people": people}), **more))
    assert book.flow().stage == "person"
    return book


def approval(book: Playbook, **changes: Any) -> Approval:
    """What would be signed now, but for these fields."""
    wanted = approval_of(book.world, book.flow())
    assert wanted is not None
    return replace(wanted, **changes)


def read(book: Playbook, *signed: Approval, signer: str = "Ann", **fields: Any) -> AnswerRead:
    """Ann's label, read with signatures of hers."""
    (book >> book.seen(add=["human:approved"])) << c.ReadAnswer
    fact = book.next()
    assert isinstance(fact, AnswerRead)
    return replace(fact, signatures=tuple(Signature(text, "…", signer) for text in signed), **fields)


def refused(book: Playbook, fact: AnswerRead) -> str:
    """The answer is taken off, and what is told of it."""
    book >> fact << like(issues.AnswerRefused, labels=("human:approved",)) << issues.CommentWanted
    text = book.flow().comments[0][1]
    assert "`ashep approve t-1 --sign`" in text
    assert book << c.TakeOffLabels
    assert book.answered().flow().stage == "person"
    return text


def test_an_approval_without_a_signature_is_none_where_one_is_required() -> None:
    book = asks()
    (comment,) = (fact.text for fact in book.bodies(issues.CommentWanted) if fact.name.startswith("ask."))
    assert "`ashep approve t-1 --sign`" in comment
    assert "has no signature for this question" in refused(book, read(book))
    book.made.now += timedelta(seconds=1)
    book >> read(book, approval(book)) << like(issues.PersonAnswered, answer="approved", actor="Ann") << ...
    assert book.answered().flow().stage == "closed"


def test_who_wants_changes_signs_nothing() -> None:
    book = asks()
    (book >> book.seen(add=["human:changes_requested"])).answered()
    assert book.flow().phase == "implement"


CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"repository": "ff" * 16}, "for another repository."),
    ({"commit": "c0ffee"}, "for another commit."),
    ({"base": "trunk at c0ffee"}, "for another base."),
    ({"waived": ("tests",)}, "for another waived."),
    ({"policy": "ab" * 32}, "for another policy."),
    ({"base": "trunk at c0ffee", "policy": ""}, "for another base, policy."),
    ({"expires": Playbook().now}, "that expired at 2026-01-01"),
]


def test_a_change_of_any_field_voids_a_signature() -> None:
    for changes, words in CHANGES:
        for people in (REQUIRED, None):
            book = asks(people)
            assert f"has a signature {words}" in refused(book, read(book, approval(book, **changes)))


@pytest.mark.parametrize("changes", [{"question": "look, 2026-01-01T00:00:00+00:00"}, {"issue": "t-2"}])
def test_a_signature_for_another_question_is_none_for_this(changes: dict[str, Any]) -> None:
    book = asks()
    assert "has no signature for this question" in refused(book, read(book, approval(book, **changes)))
    book = asks(None)
    book >> read(book, approval(book, **changes)) << like(issues.PersonAnswered, signature=None) << ...


def test_what_a_phase_asks_is_answered_without_a_signature() -> None:
    book = book_of(config=CONFIG)
    assert (book >> book.reports("failed", needs_human=True)).answered().flow().stage == "person"
    assert approval_of(book.world, book.flow()) is None
    assert (book >> book.seen(add=["human:approved"])).answered().flow().stage == "work"


def test_what_landed_is_kept_with_its_signature_until_an_approval_has_none() -> None:
    book = asks(None)
    (book >> read(book, approval(book))).answered()
    work = book.flow().work
    assert work.landed is not None
    assert (work.signed and work.signed.approval.commit, work.landed_onto) == ("head of t-1/implement.1.1", "c0ffee")
    book = asks(None)
    (book >> read(book)).answered()
    assert book.flow().work.signed is None


def test_one_that_was_not_verified_counts_for_nothing_and_one_beside_it_does() -> None:
    book = asks()
    assert "that no key in `people.keys` made" in refused(book, read(book, approval(book), signer=""))
    book.made.now += timedelta(seconds=1)
    fact = read(book, approval(book))
    bad = replace(fact.signatures[0], signer="")
    book >> replace(fact, signatures=(*fact.signatures, bad)) << issues.PersonAnswered << ...


def test_an_edit_of_the_policy_between_signature_and_answer_voids_it() -> None:
    book = asks()
    signed = approval(book)
    book >> adopted(policies(HUMAN.model_copy(update={"description": "another"})))
    assert "for another policy." in refused(book, read(book, signed))


def test_what_the_base_branch_requires_counts_though_another_file_is_in_force() -> None:
    book = asks(None)
    assert "has no signature" in refused(book, read(book, signed_only=True))


def test_work_that_a_phase_changed_behind_the_signature_is_asked_about_before_it_lands() -> None:
    polish = Phase(name="polish", capabilities=("implement",), access="write")
    look = Phase(name="look", human=Human(ask="Fine?", approved="polish", changes_requested="implement"))
    book = through(book_of(policy_of(Phase(name="implement"), look, polish), config=CONFIG))
    (book >> read(book, approval(book))).answered()
    assert book.flow().phase == "polish"
    through(book)
    question = book.bodies(issues.PersonAsked)[-1]
    assert question.about == "change"
    assert "The approval was signed for head of t-1" in question.question
    book.made.now += timedelta(seconds=1)
    (book >> read(book, approval(book))).answered()
    assert book.flow().stage == "closed"


def test_a_conflict_leads_to_another_question_which_wants_another_signature() -> None:
    book = asks()
    book.made.base.goes_wrong("t-1", "conflict")
    signed = read(book, approval(book))
    assert (book >> signed).answered().flow().phase == "implement"
    book.made.now += timedelta(seconds=1)
    assert through(book).flow().stage == "person"
    again = replace(read(book), signatures=signed.signatures)
    assert "has no signature for this question" in refused(book, again)


def test_a_comment_carries_the_text_and_what_is_written_otherwise_is_none() -> None:
    signed = approval(asks())
    armor = "-----BEGIN SSH SIGNATURE-----\nU1NI+/=\n-----END SSH SIGNATURE-----"
    text = f"well done\n\n{signed.text}\n{armor}\n(ashep approve, 2026-01-01T22:00:00+00:00)"
    assert [*signatures_in(text)] == [Signature(signed, armor)]
    assert not [*signatures_in(text.replace('"issue"', '"issues"'))]
    assert not [*signatures_in(text.replace("-----END", "-----end"))]
    for time in ("2026-01-01T22:00:00", "1e308", "10000-01-01T00:00:00Z"):  # none that can be compared with another
        assert not [*signatures_in(re.sub(r'(?<="expires": ")[^"]+', time, text))], time
