"""Playbooks of `people`: whose word counts is named, and what anybody else does is refused, put back and explained."""

from datetime import timedelta
from typing import Any

import pytest

from ashep.core.facts import commands as c
from ashep.core.facts import issues, runs
from ashep.core.facts.tracker import Stamp
from ashep.core.policy.landing import ForgeSettings, LandingSettings
from ashep.core.policy.settings import People, Settings
from tests.core.given import ME, adopted
from tests.core.playbook import Playbook, like
from tests.core.test_playbook_asking import asked, says
from tests.core.test_playbook_authors import AGENT, as_it_was
from tests.core.test_playbook_pull_requests import CONFIG, FORGE, ONE, TREE, seen
from tests.core.test_playbook_pull_requests import asked as landing

pytestmark = pytest.mark.promise("P14")

BOB = "bob is not named in `people.tracker` of .agent-shepherd/config.yaml: whoever is to count is added there first"


def book_of(*names: str) -> Playbook:
    """A daemon that counts the word of these alone."""
    return Playbook(config=Settings(people=People(tracker=names or ("ann",))))


def said(book: Playbook) -> list[str]:
    """What stands in the issue's comments."""
    return [comment.text for comment in book.made.comments.get("t-1", ())]


# --- changes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [
    {"add": ["phase:review"], "drop": ["phase:implement"]},
    {"drop": ["phase:implement"]},
    {"add": ["ashep:paused"]},
    {"add": ["ashep:excluded"]},
    {"status": "open"},
    {"status": "closed"},
    {"status": "deferred"},
    {"assignee": "bob"},
    {"assignee": None},
])  # fmt: skip
def test_what_somebody_changes_who_is_not_named_is_put_back_and_told(change: dict[str, Any]) -> None:
    book = book_of().looked()
    before = as_it_was(book)
    book >> book.seen(who="bob", **change)
    assert as_it_was(book.answered().looked()) == before
    (text,) = said(book)
    assert text.startswith("Put back: bob ")
    assert BOB in text


def test_without_the_key_everybody_counts_and_with_it_who_is_named_does() -> None:
    for book in (Playbook().looked(), book_of("ann", "bob").looked()):
        book >> book.seen(who="bob", add=["phase:review"])
        assert book.answered().flow().phase == "review"
        assert not said(book)


def test_an_agents_change_is_put_back_in_the_same_words_as_ever() -> None:
    book = book_of().looked()
    (book >> book.seen(who=AGENT, add=["phase:review"])).answered()
    assert said(book) == [
        "Put back: ashep-agent set the label phase:review. Only a person's change moves an issue that ashep works on."
    ]


@pytest.mark.parametrize("who", ["ann", "ANN", " Ann ", "Ann\tO'Neil  Müller", "ann o'neil mu\u0308ller"])
def test_capitals_white_space_and_how_accents_are_written_make_no_other_name(who: str) -> None:
    book = book_of(" ann", "Ann O'Neil M\u00fcller").looked()
    book >> book.seen(who=who, add=["phase:review"])
    assert book.answered().flow().phase == "review"


@pytest.mark.parametrize("who", ["\u0430nn", "ann\u200b", "annn", "an n", " ", "\u00a0", "ann, bob", "Ann <ann@x>"])
def test_what_only_looks_like_a_name_is_another(who: str) -> None:
    book = book_of().looked()
    before = as_it_was(book)
    book >> book.seen(who=who, add=["phase:review"])
    assert as_it_was(book.answered()) == before


@pytest.mark.parametrize("who", [AGENT, ME])
def test_a_name_of_asheps_own_counts_for_nothing_although_it_is_named(who: str) -> None:
    book = book_of(who).looked()
    before = as_it_was(book)
    book >> book.seen(who=who, add=["phase:review"])
    assert as_it_was(book.answered()) == before


def test_of_two_who_change_something_at_once_the_named_one_is_obeyed() -> None:
    book = book_of().looked()
    book.made.change("t-1", "bob", ["phase:arbitrate"])
    book >> book.seen(status="closed") << issues.CommentWanted << like(runs.RunEnded, state="aborted")
    assert book << issues.IssueClosed << c.StopTurn
    (wanted,) = book.bodies(issues.CommentWanted)
    assert BOB in wanted.text


def test_who_sets_in_the_same_second_what_a_named_one_sets_spoils_it() -> None:
    book = book_of().looked()
    book.made.change("t-1", "bob", ["phase:review"])
    book.made.change("t-1", "bob", (), ["phase:review"])
    book >> book.seen(add=["phase:review"])
    assert book.answered().flow().phase == "implement"


def test_nobody_on_record_stops_an_issue_as_ever_and_moves_none_on() -> None:
    moves: dict[str, Any] = {"add": ["phase:review"], "drop": ["phase:implement"]}
    stops: dict[str, Any] = {"status": "closed"}
    for change, stage in ((moves, "work"), (stops, "closed")):
        book = book_of().looked()
        unseen = book.seen(**change)
        book.made.history.clear()
        book >> unseen
        assert (book.answered().flow().stage, book.flow().phase) == (stage, "implement")


def test_a_history_that_cannot_be_read_lets_nobody_move_an_issue_on() -> None:
    book = book_of().until("human_review")
    (book >> book.later(7 * 86400)).answered()
    book.looks_up = False
    book >> book.seen(who="bob", drop=["ashep:parked"]) << ...
    for _ in range(3):
        book >> book.failed() << ...
        book >> book.later(60) << ...
    book.answered().looked()
    assert (book.flow().stage, "ashep:parked" in book.made.tracker["t-1"].labels) == ("parked", True)


def test_what_is_chosen_for_an_issue_before_it_is_taken_counts_from_who_is_named() -> None:
    chosen = {
        "ann": "review", ME: "review", "ashep-other": "review", "bob": "implement", "": "implement", AGENT: "implement"
    }  # fmt: skip
    for who, phase in chosen.items():
        book = book_of()
        book.made.change("t-1", who, ["phase:review"])
        book.looked().looked()
        assert (book.flow().stage, book.flow().phase, book.run().state) == ("work", phase, "running")
        assert any(BOB in text for text in said(book)) == (who == "bob")


def test_what_waits_for_a_person_waits_for_a_named_one() -> None:
    """An issue that was created parked, one that was left for want of a phase, a taken one, and a run that asks."""
    for who in ("bob", "ann"):
        parked = book_of()
        parked.made.open("t-9", "ashep:parked", status="blocked", stamp=Stamp(parked.world.instance, 1))
        parked.looked() >> parked.seen("t-9", who=who, drop=["ashep:parked"])
        parked.answered().looked()
        assert ("ashep:parked" in parked.made.tracker["t-9"].labels) == (who == "bob")

        left = book_of().looked()
        (left >> left.seen(drop=["phase:implement"])).answered()
        left >> left.seen(who=who, add=["phase:review"])
        assert left.answered().looked().flow().stage == ("left" if who == "bob" else "work")

        taken = book_of().looked()
        (taken >> taken.seen(add=["ashep:paused"])).answered()
        taken >> taken.seen(who=who, drop=["ashep:paused"])
        takeover = taken.answered().looked().flow().takeover
        assert takeover is not None
        assert takeover.ending == (who == "ann")

        asking = asked()
        asking >> adopted(Settings(people=People(tracker=("ann",)))) << ...
        asking >> asking.seen(who=who, drop=["needs:human_input"])
        assert asking.answered().looked().flow().waits_for_input == (who == "bob")


def test_who_is_no_longer_named_when_a_change_is_judged_does_not_count() -> None:
    book = book_of("ann", "bob").looked()
    book.looks_up = False
    book >> book.seen(who="bob", status="closed") << ...
    book >> adopted(Settings(people=People(tracker=("ann",)))) << ...
    assert book.answered().looked().flow().stage == "work"


def test_a_pause_of_our_own_is_not_kept_by_somebody_who_is_not_named() -> None:
    """Both set the label after the look by which we decided to, and before our own write."""
    for who, whose in (("ann", "theirs"), ("bob", "ours")):
        book = book_of().looked()
        book >> book.turn("running", people=("msg_1",))
        book.made.change("t-1", who, ("ashep:paused",), ())
        takeover = book.answered().flow().takeover
        assert takeover is not None
        assert takeover.label == whose


# --- answers ------------------------------------------------------------------------------------------------------


def test_an_answer_of_somebody_who_is_not_named_is_taken_off_and_told() -> None:
    book = book_of().until("human_review")
    assert book >> book.seen(who="bob", add=["human:approved"]) << c.ReadAnswer
    why = "human:approved was set by bob, who is not named in `people`"
    book >> book.next() << like(issues.AnswerRefused, labels=("human:approved",), why=why) << issues.CommentWanted
    assert book << c.TakeOffLabels
    assert BOB in said(book.answered())[-1]
    book.made.now += timedelta(seconds=1)
    assert book >> book.seen(add=["human:approved"]) << c.ReadAnswer
    assert book >> book.next() << like(issues.PersonAnswered, actor="ann") << issues.IssueFinished << c.WriteIssue


def test_a_no_of_somebody_who_is_not_named_does_not_overrule_a_named_ones_yes() -> None:
    book = book_of().until("human_review")
    book.made.change("t-1", "bob", ["human:changes_requested"])
    assert book >> book.seen(add=["human:approved"]) << c.ReadAnswer
    book >> book.next() << like(issues.PersonAnswered, answer="approved", actor="ann") << ...


def test_who_is_named_after_being_refused_counts_when_it_is_done_again() -> None:
    book = book_of().until("human_review")
    (book >> book.seen(who="bob", add=["human:approved"])).answered()
    book >> adopted(Settings(people=People(tracker=("ann", "bob")))) << ...
    assert book.looked().flow().stage == "person"
    book.made.now += timedelta(seconds=1)
    assert (book >> book.seen(who="bob", add=["human:approved"])).answered().flow().stage == "closed"


def test_an_answer_of_a_named_one_counts_that_was_set_while_nobody_looked() -> None:
    book = book_of().until("human_review")
    book.made.change("t-1", "ann", ["human:approved"])
    book.made.crash()
    assert book.answered().looked().flow().stage == "closed"


def test_a_comment_of_somebody_who_is_not_named_answers_nothing_which_is_told_once() -> None:
    book = asked()
    book >> adopted(Settings(people=People(tracker=("ann",)))) << ...
    says(book, "@ashep 1", "bob") << like(issues.AnswerRefused, labels=(), judged=("comment/t-1-c1",))
    assert book << issues.CommentWanted << c.PostComment
    book.answered().looked()
    says(book, "just so", "ann").answered().looked()
    assert [text.partition(" bob ")[0] for text in said(book) if BOB in text] == [
        "A comment that begins with `@ashep` answers nothing."
    ]
    assert book.flow().waits_for_input
    says(book, "@ashep 2") << like(runs.RequestJudged, verdict="answer", answers=(("green",),), by="ann") << ...
    assert not book.answered().flow().waits_for_input


# --- pull requests ------------------------------------------------------------------------------------------------


def reviewed(*forge: str, own: tuple[str, ...] | None = None) -> Playbook:
    """An issue whose pull request stands; the forge's people are named in `people`, or in `landing.forge`."""
    at = ForgeSettings(**FORGE.model_dump(exclude={"people"}), people=own)
    people = People(tracker=("ann",), forge=forge or None)
    config = CONFIG.model_copy(update={"people": people, "landing": LandingSettings(mode="pull_request", forge=at)})
    return landing(Playbook(ONE, tree=TREE, config=config).looked())


@pytest.mark.parametrize(("book", "by", "stage"), [
    (("Ann-at-work",), "ann-at-work", "closed"),
    (("ann-at-work",), "bob", "parked"),
    (("ann-at-work",), "", "parked"),
    (("OWNER", "MEMBER"), "bob", "parked"),
    (("OWNER", "COLLABORATOR"), "bob", "closed"),
])  # fmt: skip
def test_a_merge_closes_an_issue_where_who_merged_is_named(book: tuple[str, ...], by: str, stage: str) -> None:
    made = reviewed(*book)
    made >> seen(made, "merged", by=by, merged_as="f00d")
    assert made.answered().flow().stage == stage
    if stage == "parked":
        assert made.flow().code == "landing_unnamed"
        assert (
            f"Parked: {by or 'somebody'} merged https://forge.example/7 into main, and is not named" in said(made)[-1]
        )


def test_whom_the_forges_own_settings_name_may_merge() -> None:
    for by, stage in (("ann", "closed"), ("bob", "parked")):
        book = reviewed(own=("ann",))
        book >> seen(book, "merged", by=by, merged_as="f00d")
        assert book.answered().flow().stage == stage


def test_without_the_key_anybody_merges() -> None:
    config = CONFIG.model_copy(update={"landing": LandingSettings(
        mode="pull_request", forge=FORGE.model_copy(update={"people": ("ann",)})
    )})  # fmt: skip
    book = landing(Playbook(ONE, tree=TREE, config=config).looked())
    book >> seen(book, "merged", by="bob", merged_as="f00d")
    assert book.answered().flow().stage == "closed"
