"""Conversations about landing by pull request: it is asked for once the work holds, and people decide."""

from datetime import timedelta
from typing import Any

import pytest

from ashep.core.analysis.issue_status import account, is_idle
from ashep.core.delivery.closing_metadata import WITH_COMMENT, notes_of
from ashep.core.delivery.pull_requests import pull_read, requested
from ashep.core.facts import commands as c
from ashep.core.facts import delivery, issues, resources, runs
from ashep.core.facts.delivery import Remark, Tree
from ashep.core.policy.landing import ForgeSettings, LandingSettings
from ashep.core.policy.policies import Phase, Verify
from ashep.core.policy.settings import Notify, NotifyTarget, Settings, WorkerSettings
from ashep.store.issue_row import landing as landing_row
from tests.core.given import policy_of
from tests.core.playbook import Playbook, like

TREE = Tree(True, "c0ffee", branch="main")
ONE = policy_of(Phase(name="implement", verify=Verify(), max_visits=2))
FORGE = ForgeSettings(type="github", repository="acme/tools")
CONFIG = Settings(
    worker=WorkerSettings(workspace="worktree"), landing=LandingSettings(mode="pull_request", forge=FORGE)
)
HEAD = "head of t-1/implement.1.1"


def book_of(**more: Any) -> Playbook:
    """A daemon whose agent is at work on an issue that lands by pull request."""
    return Playbook(ONE, tree=TREE, config=CONFIG, **more).looked()


def asked(book: Playbook) -> Playbook:
    """Go on until the pull request stands and the issue says so."""
    book >> book.reports()
    return book.answered()


def seen(book: Playbook, state: str = "open", **more: Any) -> delivery.PullRequestSeen:
    """A look at the issue's pull request."""
    pull = book.flow().work.pull
    assert pull is not None
    more = {"as_of": book.world.seq, "head": pull.head} | more
    return delivery.PullRequestSeen("t-1", pull.number, state=state, **more)  # type: ignore[arg-type]


def at_the_opening(book: Playbook) -> c.OpenPullRequest:
    """Go on until a pull request is to be opened, which nobody does."""
    book.left = []
    while not isinstance(book.made.jobs[0], c.OpenPullRequest):
        book >> book.next() << ...
    command = book.dropped()
    assert isinstance(command, c.OpenPullRequest)
    return command


def remark(by: str, kind: str = "changes_requested", *, bot: bool = False) -> Remark:
    """Something that was said."""
    return Remark(f"{by}/{kind}", kind, by, bot)  # type: ignore[arg-type]


def test_a_pull_request_is_asked_for_once_the_work_holds_and_the_issue_waits_for_people() -> None:
    book = book_of()
    assert book >> book.reports() << like(runs.RunEnded, state="succeeded") << delivery.VerificationWanted << c.SealTree
    assert book >> book.next() << like(c.VerifyWork, run="t-1/implement.1.1")
    book >> book.next() << like(issues.IssueFinished, onto="", into="main", verify=True)
    assert book << like(c.VerifyWork, commit=HEAD, run="")
    assert not book.world.indexes.landings
    assert book >> book.next() << like(c.OpenPullRequest, branch="ashep/t-1", head=HEAD, base="main", since="c0ffee")
    told = "The pull request waits to be merged: https://forge.example/7 (head of t-1/ into `main`)"
    told += "; 1 of 1 checks passed in tree tree of head."
    assert book >> book.next() << like(issues.CommentWanted, text=told) << c.PostComment
    book.answered()
    stands = account(book.world, "t-1")
    assert (stands.state, stands.code) == ("person", "pull_request")
    assert "https://forge.example/7" in stands.reason
    (comment,) = (one for one in book.made.done if isinstance(one, c.PostComment))
    assert comment.name.startswith(WITH_COMMENT), "with it the tracker's metadata say what was found"
    assert notes_of(book.flow(), closed=False)["verification_status"] == "passing"
    row = landing_row(book.flow())
    assert row is not None
    assert (row["state"], row["onto"], row["commit"]) == ("pull_request", "main", HEAD)
    assert is_idle(book.world)
    assert book.flow().issue.status == "in_progress"


def test_people_are_told_where_to_look() -> None:
    notify = Notify(targets=(NotifyTarget(name="pager", command=("pager",)),))
    book = Playbook(ONE, tree=TREE, config=CONFIG.model_copy(update={"notify": notify})).looked()
    asked(book)
    (wanted,) = book.bodies(resources.NoticeWanted)
    text = "t-1 (Title of t-1) is done, and its pull request waits for you: https://forge.example/7"
    assert (wanted.event, wanted.text) == ("waiting", text)
    book >> book.later(60) << like(resources.NoticesGathered, target="pager", left_out=())


@pytest.mark.promise("Z3")
def test_checks_that_do_not_hold_open_nothing() -> None:
    book = book_of()
    book.made.base.goes_wrong("t-1", "fine", "fails")
    asked(book)
    assert not any(isinstance(one, c.OpenPullRequest) for one in book.made.done)
    assert (book.flow().stage, book.flow().phase, book.flow().visit) == ("work", "implement", 2)


def test_one_that_is_merged_closes_the_issue() -> None:
    book = asked(book_of())
    book >> seen(book, "merged", by="ann", merged_as="f00d") << like(delivery.PullRequestMerged, commit="f00d")
    book << like(issues.CommentWanted, text="Landed on `main` as f00d; 1 of 1 checks passed in tree tree of head.")
    assert book << c.PostComment
    assert book >> book.next() << like(c.WriteIssue, kind="close")
    book.answered()
    assert (book.flow().stage, book.flow().code) == ("closed", "shepherd")
    assert "ann merged https://forge.example/7" in book.flow().why


def test_one_that_somebody_closes_parks_the_issue_and_a_new_one_is_opened_when_it_is_taken_up_again() -> None:
    book = asked(book_of())
    book >> seen(book, "closed", by="ann") << like(issues.IssueParked, code="landing_closed")
    assert book.answered().flow().why == "ann closed https://forge.example/7 without merging it"
    book >> book.seen(drop=["ashep:parked"])
    asked(book.answered())
    names = [one.name for one in book.made.done if isinstance(one, c.OpenPullRequest)]
    assert len(names) == len({*names}) == 2
    assert account(book.world, "t-1").reason.endswith("/8")


def test_one_that_the_forge_does_not_show_any_more_parks_the_issue() -> None:
    book = asked(book_of())
    book >> seen(book, "gone", head="") << like(issues.IssueParked, code="landing_closed")


def test_a_red_ci_goes_back_to_who_wrote_it_and_the_same_pull_request_gets_the_new_work() -> None:
    book = asked(book_of())
    book >> seen(book, ci="failing", failing=("build",), log="ab" * 32)
    book << like(delivery.PullRequestReturned, kind="ci", log="ab" * 32)
    book << like(issues.PhaseEntered, phase="implement", visit=2)
    assert (book.flow().work.flaw.kind, book.flow().work.flaw.log) == ("ci", "ab" * 32)  # type: ignore[union-attr]
    book.answered()
    asked(book)
    first, second = [one for one in book.made.done if isinstance(one, c.OpenPullRequest)]
    assert (first.name, first.branch) == (second.name, second.branch)
    assert second.head == "head of t-1/implement.2.1"
    assert book.flow().work.pull.number == 7  # type: ignore[union-attr]
    posted = [one.text for one in book.made.done if isinstance(one, c.PostComment)]
    assert any(text.startswith("The pull request has new work") for text in posted)
    old = seen(book, ci="failing", head=HEAD)
    assert book >> old, "the forge has not seen the push yet"
    book >> seen(book, ci="failing") << delivery.PullRequestReturned << like(issues.IssueParked, code="max_visits")


def test_one_that_is_merged_without_the_newest_work_closes_nothing_and_another_asks_for_the_rest() -> None:
    book = asked(book_of())
    book >> seen(book, ci="failing") << delivery.PullRequestReturned << issues.PhaseEntered
    asked(book.answered())
    book >> seen(book, "merged", by="ann", head=HEAD) << like(issues.IssueFinished, into="main", verify=True)
    assert book << like(c.VerifyWork, commit="head of t-1/implement.2.1")
    book.answered()
    names = [one.name for one in book.made.done if isinstance(one, c.OpenPullRequest)]
    assert len(names) == 3
    assert len({*names}) == 2
    stands = account(book.world, "t-1")
    assert (stands.code, stands.reason[-2:]) == ("pull_request", "/8")
    book >> seen(book, "merged", by="ann") << delivery.PullRequestMerged
    assert book << issues.CommentWanted << c.PostComment


def test_one_that_was_merged_while_it_was_worked_on_gets_no_more_work_and_another_is_opened() -> None:
    book = asked(book_of())
    book >> seen(book, ci="failing") << delivery.PullRequestReturned << issues.PhaseEntered
    book.answered()
    book >> book.reports()
    command = at_the_opening(book)
    assert book >> seen(book, "merged", by="ann", head="a person's"), "nobody waits for it"
    book >> delivery.LandingRefused("t-1", command.key, "moved", "it was merged")
    assert book << like(c.VerifyWork, commit=command.head)
    book.answered()
    first, *_, last = [one.name for one in book.made.done if isinstance(one, c.OpenPullRequest)]
    assert first == command.name != last
    assert account(book.world, "t-1").code == "pull_request"


def test_people_who_request_changes_are_heard_once_and_programs_are_not() -> None:
    book = asked(book_of())
    said = (remark("lint", bot=True), remark("bob", "comment"))
    assert book >> seen(book, remarks=said, ci="passing")
    said = (*said, remark("ann"))
    why = "ann requested changes (https://forge.example/7)"
    book >> seen(book, remarks=said) << like(delivery.PullRequestReturned, kind="review", why=why)
    book << issues.PhaseEntered
    book.answered()
    asked(book)
    pull = book.flow().work.pull
    assert pull is not None
    assert pull.heard == {one.id for one in said}
    assert not pull.remarks


def test_the_last_verdict_of_each_person_counts() -> None:
    assert requested((remark("ann"), remark("bob"), remark("ann", "approved"), remark("bob", "comment"))) == ("bob",)


def test_what_a_person_pushed_is_theirs() -> None:
    book = asked(book_of())
    book >> seen(book, head="a person's", ci="failing") << like(issues.CommentWanted, name="theirs.a person's")
    assert "somebody pushed a person's to its pull request" in book.flow().why
    stands = book.answered().flow()
    for more in ({"ci": "failing", "remarks": (remark("ann"),)}, {"ci": "passing"}):
        book.left = []
        assert book >> seen(book, head="their next", **more), "it is told once, and nobody works on it"
    assert (book.flow().stage, book.flow().comments, book.flow().run) == ("finishing", stands.comments, stands.run)
    assert account(book.world, "t-1").state == "person"


@pytest.mark.parametrize(("state", "end"), [("merged", "closed"), ("closed", "parked")])
def test_what_a_person_pushed_ends_as_they_end_it(state: Any, end: str) -> None:
    book = asked(book_of())
    book >> seen(book, head="a person's") << issues.CommentWanted
    book.answered()
    assert (book >> seen(book, head="a person's", state=state, merged_as="m")).answered().flow().stage == end


@pytest.mark.parametrize("word", ["theirs", "refused", "protected"])
def test_a_push_that_is_refused_parks_the_issue(word: str) -> None:
    book = book_of()
    book.made.base.will["t-1", c.OpenPullRequest] = [word]
    asked(book)
    assert (book.flow().stage, book.flow().code) == ("parked", f"landing_{word}")


def test_a_forge_that_is_away_is_asked_again_ever_later() -> None:
    book = book_of()
    book.made.base.goes_wrong("t-1", *["away"] * 9)
    asked(book)
    waits = list[float]()
    for _ in range(9):
        assert (account(book.world, "t-1").state, account(book.world, "t-1").code) == ("time", "landing_away")
        landing = book.flow().work.landing
        assert landing is not None
        assert landing.due is not None
        waits.append((landing.due - book.now).total_seconds())
        (book >> book.later(waits[-1])).answered()
    assert waits == [60, 120, 240, 480, 960, *[1920] * 4]
    assert account(book.world, "t-1").code == "pull_request"


def test_a_forge_that_names_a_time_is_left_alone_until_then() -> None:
    book = book_of()
    book >> book.reports()
    command = at_the_opening(book)
    assert book >> delivery.LandingRefused("t-1", command.key, "away", "rate limit", timedelta(hours=1))
    landing = book.flow().work.landing
    assert landing is not None
    assert landing.due == book.now + timedelta(hours=1)


def test_a_read_tells_only_what_differs_and_nothing_of_before_the_last_push() -> None:
    book = asked(book_of())
    pull = book.flow().work.pull
    assert pull is not None
    assert pull_read(book.world, seen(book)) == []
    news = seen(book, ci="pending")
    assert pull_read(book.world, news) == [news]
    assert pull_read(book.world, seen(book, ci="pending", as_of=pull.seq - 1)) == []
    assert book >> news
    assert pull_read(book.world, seen(book, ci="pending")) == []
    old = seen(book, "merged", as_of=pull.seq - 1)
    assert book >> old, "a read that began before our push says nothing"


def test_work_that_changes_nothing_asks_for_nothing() -> None:
    book = Playbook(policy_of(Phase(name="implement")), tree=TREE, config=CONFIG).looked()
    book.made.heads["ashep/t-1"] = "c0ffee"
    book >> book.reports()
    command = at_the_opening(book)
    landed = delivery.WorkLanded("t-1", command.key, "main", command.head, command.head, already=True, empty=True)
    book >> landed << issues.CommentWanted << c.PostComment
    assert book.flow().comments[0][1].startswith("Nothing was changed, and nothing landed on `main`")
    assert book.answered().flow().stage == "closed"


def test_without_a_base_nothing_is_begun() -> None:
    book = Playbook(ONE, tree=Tree(True, "c0ffee"), config=CONFIG).looked()
    assert (book.flow().stage, book.flow().code) == ("idle", "no_base")


@pytest.mark.promise("L11")
def test_a_secret_asks_before_the_branch_is_pushed() -> None:
    book = book_of()
    book >> book.reports()
    seal = next(job for job in book.made.jobs if isinstance(job, c.SealTree))
    book.made.jobs.remove(seal)
    book.left = []
    (book >> delivery.TreeSealed("t-1", seal.run, seal.key, HEAD, "7ree", ("head",), flags=("secrets",))).answered()
    assert (book.flow().stage, book.flow().question is not None) == ("person", True)
    assert not any(isinstance(one, c.OpenPullRequest) for one in book.made.done)
    (book >> book.seen(add=["human:approved"])).answered()
    assert any(isinstance(one, c.OpenPullRequest) for one in book.made.done)
