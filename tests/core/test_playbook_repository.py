"""Conversations about the repository itself: what is wrong with it holds all issues at once, and parks none."""

from datetime import timedelta
from typing import Any

import pytest

from ashep.core.analysis.issue_status import account, is_held_up, is_idle
from ashep.core.delivery.repository import repository_read
from ashep.core.facts import commands as c
from ashep.core.facts import issues, runs, tracker
from ashep.core.facts.delivery import PullRequestSeen, RepositorySeen, Tree
from ashep.core.policy.landing import ForgeSettings, LandingSettings
from ashep.core.policy.policies import Phase
from ashep.core.policy.settings import Settings, WorkerSettings
from tests.core.given import policy_of, settings
from tests.core.playbook import Playbook, like

TREE = Tree(True, "c0ffee", branch="main")
ONE = policy_of(Phase(name="implement"))
BROKEN = RepositorySeen("the branch `ashep` is in the way")


def book_of(workspace: str = "worktree", config: Settings | None = None, **more: Any) -> Playbook:
    """A daemon that looks at its repository before anything begins."""
    return Playbook(ONE, tree=TREE, config=config or settings(workspace=workspace), watches=True, **more)


@pytest.mark.promise("I8")
def test_nothing_begins_before_the_repository_was_looked_at() -> None:
    book = book_of()
    book.made.look()
    assert account(book.world, "t-1").code == "tree_unseen"
    assert not book.made.jobs
    assert not is_idle(book.world), "a look is about to come"
    assert book >> RepositorySeen() << issues.IssueTaken << ...
    assert isinstance(book.made.jobs[0], c.ClaimIssue)


@pytest.mark.promise("I8")
def test_a_fault_of_the_repository_holds_every_issue_with_its_words_and_ends_by_itself() -> None:
    book = book_of(issues=("t-1", "t-2", "t-3"))
    book.made.turn(BROKEN)
    book.made.look()
    assert not book.made.jobs
    for name in ("t-1", "t-2", "t-3"):
        assert account(book.world, name).code == "repository"
        assert account(book.world, name).reason == BROKEN.fault
        assert account(book.world, name).state == "time"
    assert is_idle(book.world)
    assert is_held_up(book.world), "`--until-idle` does not end as if all were well"
    book >> RepositorySeen("another") << ...
    assert account(book.world, "t-2").reason == "another", "what is in the way now is told"
    book >> RepositorySeen() << ...
    assert {job.issue for job in book.made.jobs if isinstance(job, c.ClaimIssue)} == {"t-1", "t-2", "t-3"}


@pytest.mark.promise("I8")
def test_what_was_begun_before_the_fault_is_not_parked_and_counts_afresh_once_it_is_mended() -> None:
    book = book_of()
    book.made.turn(RepositorySeen())
    book.made.look()
    prepare = book.next()
    book >> prepare << c.PrepareTree
    book >> book.failed() << ...
    book >> BROKEN << ...
    for _ in range(12):
        book >> book.later(60) << ...
        book >> book.failed() << ...
    assert not book.bodies(issues.IssueParked)
    assert account(book.world, "t-1").reason.endswith(BROKEN.fault), "that is why it fails"
    book >> RepositorySeen() << ...
    assert book.flow().infra == 0
    book >> book.later(60) << ...
    assert isinstance(book.made.jobs[0], c.PrepareTree)
    assert not book.bodies(runs.RunEnded)


def test_a_fault_whose_numbers_alone_change_is_told_once() -> None:
    book = book_of()
    full, fuller = RepositorySeen("37 MiB are free"), RepositorySeen("36 MiB are free")
    book.made.turn(full)
    assert repository_read(book.world, full) == []
    assert repository_read(book.world, fuller) == []
    assert repository_read(book.world, RepositorySeen("no rights")) == [RepositorySeen("no rights")]
    assert repository_read(book.world, RepositorySeen()) == [RepositorySeen()]


def test_a_bd_that_fails_parks_whatever_is_wrong_with_the_repository() -> None:
    book = book_of()
    book.made.turn(RepositorySeen())
    book.made.look()
    book.made.turn(BROKEN)
    for _ in range(10):
        claim = next(job for job in book.made.jobs if isinstance(job, c.ClaimIssue))
        book.made.jobs.remove(claim)
        book >> tracker.EffectFailed("t-1", claim.key, "no answer", infra=True) << ...
        book >> book.later(60) << ...
    assert book.bodies(issues.IssueParked)


def test_in_the_shared_work_tree_it_keeps_nobody() -> None:
    book = book_of("shared")
    book.made.turn(BROKEN)
    book.made.look()
    assert isinstance(book.made.jobs[0], c.ClaimIssue)


# --- pull requests: what others merged must be there ---------------------------------------------------------------

PULLS = Settings(
    worker=WorkerSettings(workspace="worktree"),
    landing=LandingSettings(mode="pull_request", forge=ForgeSettings(type="github", repository="acme/tools")),
)


def merged(config: Settings = PULLS, commit: str = "beef00") -> Playbook:
    """Somebody merged the pull request of t-1, on which t-2 depends."""
    book = book_of(config=config)
    book.made.turn(RepositorySeen())
    book.made.open("t-2", blocked_by=("t-1",))
    book.looked()
    book >> book.reports()
    book.answered()
    pull = book.flow().work.pull
    assert pull is not None
    book >> PullRequestSeen("t-1", pull.number, book.world.seq, "merged", pull.head, "ann", commit)
    book.answered()
    book.looked()
    assert book.flow().stage == "closed"
    return book


@pytest.mark.promise("Z6")
def test_an_issue_begins_where_the_base_is_at_the_remote() -> None:
    book = book_of(config=PULLS)
    book.made.turn(RepositorySeen())
    book.made.look()
    assert book >> book.next() << like(c.PrepareTree, base=None, fetch="main")
    again = book_of(config=PULLS.model_copy(update={"landing": PULLS.landing.model_copy(update={"fetch": False})}))
    again.made.turn(RepositorySeen())
    again.made.look()
    assert again >> again.next() << like(c.PrepareTree, base=None, fetch="")


@pytest.mark.promise("Z6")
def test_who_depends_on_a_merged_pull_request_waits_until_the_base_holds_it() -> None:
    book = merged()
    assert account(book.world, "t-2").code == "base_behind"
    assert "beef00" in account(book.world, "t-2").reason
    assert "t-1" in account(book.world, "t-2").reason
    assert not is_idle(book.world, timedelta(minutes=5)), "the base is about to be fetched"
    assert book >> RepositorySeen(merges=("beef00",)) << like(issues.IssueTaken, issue="t-2") << ...


@pytest.mark.parametrize("commit", ["", "beef00"])
def test_nobody_waits_for_what_nothing_fetches_or_nobody_knows(commit: str) -> None:
    fetch = PULLS.landing.model_copy(update={"fetch": False}) if commit else PULLS.landing
    book = merged(PULLS.model_copy(update={"landing": fetch}), commit)
    assert book.flow("t-2").stage == "work"
