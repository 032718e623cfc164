"""Conversations about stories: what ashep writes into their files after which verdict, and what is put back."""

from dataclasses import replace
from pathlib import Path

from ashep.config import read
from ashep.config.presets import preset
from ashep.config.starter import starter
from ashep.core.facts import commands as c
from ashep.core.facts import delivery, issues
from ashep.core.facts.delivery import Amendment, StoryLeft, TreeSealed
from ashep.core.policy.agents import Agents
from ashep.core.policy.policies import Policies
from tests.core.playbook import Playbook
from tests.core.test_playbook_workspaces import TREE, own

STORY = "docs/stories/1-2-lists.md"


def loop(*labels: str) -> Playbook:
    """The preset's developer, reviewer and arbiter, at an issue whose developer is at work."""
    policies = read(Policies, preset("bmad-story"), Path("policies.yaml"))
    book = Playbook(
        policies, read(Agents, starter("agents.yaml", "bmad-story"), Path("agents.yaml")), own(), (), tree=TREE
    )
    book.made.open("t-1", *(labels or (f"story:{STORY}",)))
    book.looked()
    (book >> delivery.CriteriaAdopted("t-1", "", "")).answered()
    return book


def over(
    book: Playbook,
    verdict: str = "",
    summary: str = "said",
    left: StoryLeft | None = None,
    refused: tuple[str, ...] = (),
) -> Amendment | None:
    """The run succeeds, and all that follows is carried out; gives what its seal was to amend."""
    book >> book.reports(summary=summary, **({"verdict": verdict} if verdict else {})) << ...
    command = next(one for one in book.made.jobs if isinstance(one, c.SealTree))
    book.made.jobs.remove(command)
    sealed = book.made._effect(command)
    assert isinstance(sealed, TreeSealed)
    (book >> replace(sealed, story=left, refused=refused)).answered()
    return command.amend


def test_each_verdict_is_written_into_the_story_whatever_its_agents_wrote() -> None:
    book = loop()
    assert over(book, left=StoryLeft("review")) == Amendment("c0ffee", "c0ffee", "main", None, STORY, "review")
    developed = "head of t-1/developer.1.1"
    assert (book.flow().phase, book.run().access) == ("reviewer", "write")
    assert over(book, "approve") == Amendment(developed, "c0ffee", "main", ("{story}",), STORY)
    reviewed = "head of t-1/reviewer.1.1"
    assert (book.flow().phase, book.run().access) == ("arbiter", "read")
    remains = over(book, "needs_work", summary="- mend x\n- and y")
    assert remains == Amendment(reviewed, "c0ffee", "main", None, STORY, "in-progress", "- mend x\n- and y")
    assert book.flow().phase == "developer"
    over(book)
    over(book, "needs_changes")
    done = over(book, "pass")
    assert done == Amendment("head of t-1/reviewer.2.1", "c0ffee", "main", None, STORY, "done")
    assert book.bodies(c.IntegrateWork)[-1].head == "head of t-1/arbiter.2.1", "what landed says that it is done"
    assert book.flow().stage == "closed"


def test_an_issue_without_a_story_is_sealed_as_ever_and_its_arbiter_leaves_nothing() -> None:
    book = loop("area:x", "story:../etc/passwd.md", "story:-rf.md")
    assert over(book) is None
    assert over(book, "approve") == Amendment("head of t-1/developer.1.1", "c0ffee", "main", ("{story}",))
    book >> book.reports(verdict="pass")
    assert not [one for one in book.made.jobs if isinstance(one, c.SealTree)]


def test_who_fails_or_is_asked_again_changes_no_status() -> None:
    book = loop()
    book >> book.reports("failed", summary="no") << ...
    command = next(one for one in book.made.jobs if isinstance(one, c.SealTree))
    assert command.amend == Amendment("c0ffee", "c0ffee", "main", None, STORY)


def test_what_was_put_back_is_told_and_changes_nothing_else() -> None:
    book = loop()
    over(book)
    over(book, "approve", refused=("it changed what it may not, which was put back: a.py",))
    (told,) = [one for one in book.bodies(c.PostComment) if one.name.startswith("refused.")]
    assert "t-1/reviewer.1.1 is over" in told.text
    assert "put back: a.py" in told.text
    assert book.flow().phase == "arbiter"


def test_what_a_person_changed_in_a_session_stays_whatever_its_role_may_change() -> None:
    for roles in range(3):
        book = loop()
        for verdict in ("", "approve")[:roles]:
            over(book, verdict)
        book >> book.turn("running", people=("msg_ann",)) << ...
        command = next(one for one in book.made.jobs if isinstance(one, c.SealTree))
        assert command.amend is not None
        assert (command.amend.story, command.amend.status, command.amend.may) == (STORY, "", None)


def test_an_arbiter_without_a_verdict_completes_nothing() -> None:
    book = loop()
    over(book)
    over(book, "approve")
    for _ in range(12):
        if book.flow().stage != "work":
            break
        (book >> book.reports()).answered()
        if book.flow().stage == "work" and book.run().ended:  # the next attempt comes later
            (book >> book.later(600)).answered()
    assert (book.flow().stage, book.flow().code) == ("parked", "attempts")
    assert "done" not in {one.amend.status for one in book.bodies(c.SealTree) if one.amend is not None}
    assert not book.bodies(c.IntegrateWork)


def test_a_story_that_cannot_be_marked_lands_nowhere_and_a_person_hears_why() -> None:
    book = loop()
    over(book)
    over(book, "approve")
    over(book, "pass", left=StoryLeft(lacking=f"{STORY}: it says two statuses; leave one"))
    assert (book.flow().stage, book.flow().code) == ("parked", "story_unwritten")
    assert "two statuses" in book.flow().why
    assert not book.bodies(c.IntegrateWork)


def test_who_stops_with_words_of_its_own_asks_a_person() -> None:
    book = loop()
    over(book, left=StoryLeft("blocked", blocked="intent gap: which currency?"))
    (asked,) = book.bodies(issues.PersonAsked)
    assert "intent gap: which currency?" in asked.question
    assert book.flow().stage == "person"


def completed(*, twice: bool) -> Playbook:
    """A story that is done, with findings that were left for later; or done again, for it was in conflict."""
    book = loop()
    over(book)
    over(book, "approve")
    left = StoryLeft("done", "complete", put_off=("old smell", "and another"))
    if twice:
        book.made.base.goes_wrong("t-1", "conflict")
        over(book, "pass", left=left)
        assert book.flow().phase == "developer"
        over(book)
        over(book, "approve")
    over(book, "pass", left=left)
    assert book.flow().stage == "closed"
    return book


def test_what_is_left_for_later_becomes_an_issue() -> None:
    made = completed(twice=False).bodies(c.CreateIssue)
    assert sorted(one.new.title for one in made) == ["and another", "old smell"]


def test_what_is_left_for_later_becomes_one_issue_however_often_the_story_is_completed() -> None:
    assert len({one.id for one in completed(twice=True).bodies(c.CreateIssue)}) == 2
