"""Conversations about the trees of closed issues: when they are to go, what keeps them, and what begins anew."""

from datetime import timedelta
from typing import Any

import pytest

from ashep.core.delivery.workspace_retention import AGAIN
from ashep.core.facts import commands as c
from ashep.core.facts import delivery, resources, tracker
from ashep.core.policy.policies import Phase
from ashep.core.policy.settings import Settings, TreesSettings
from ashep.core.state.delivery import Rest
from tests.core.given import adopted, policy_of
from tests.core.playbook import Playbook, like
from tests.core.test_playbook_landing import book_of, finished
from tests.core.test_playbook_pull_requests import CONFIG
from tests.core.test_playbook_pull_requests import asked as opened
from tests.core.test_playbook_workspaces import TREE, own

pytestmark = pytest.mark.promise("Z5")

KEEP = timedelta(days=7)


def keeping(keep: timedelta | None) -> Settings:
    return own().model_copy(update={"trees": TreesSettings(keep=keep)})


def closed(**more: Any) -> Playbook:
    """An issue whose work landed, and that is closed."""
    book = finished(book_of(**more)).answered()
    assert book.flow().stage == "closed"
    return book


def rest(book: Playbook, name: str = "t-1") -> Rest | None:
    own = book.flow(name).work.own
    assert own is not None
    return own.rest


def asked(book: Playbook) -> list[c.RemoveTree]:
    return book.bodies(c.RemoveTree)


def passes(book: Playbook, time: timedelta) -> None:
    """Let time pass; what is due then is told, and nothing is carried out."""
    book.left = []
    for due in book.later(time.total_seconds()):
        book >> due << ...


def test_a_tree_goes_seven_days_after_its_issue_is_closed_and_not_before() -> None:
    book = closed()
    assert rest(book) == Rest(book.now + KEEP, KEEP)
    assert not book.later(KEEP.total_seconds() - 1)
    (due,) = book.later(1)
    head = "head of t-1/implement.1.1"
    landed = like(c.RemoveTree, branch="ashep/t-1", head=head, onto="main", commit=f"{head} on c0ffee", quiet=KEEP)
    assert book >> due << landed
    assert book >> book.next()
    own = book.flow().work.own
    assert own is not None
    assert (own.base, own.path, own.head, own.rest) == ("", "", head, None)
    assert not book.later(10 * KEEP.total_seconds()), "it is over"


def test_what_is_kept_is_looked_at_again_each_time_later() -> None:
    book = closed()
    passes(book, KEEP)
    for tries in range(8):
        (job,) = book.made.jobs
        assert isinstance(job, c.RemoveTree)
        book.made.jobs.clear()
        wait = AGAIN * 2 ** min(tries, 5)
        kept = delivery.TreeKept("t-1", job.key, job.branch, "something in it is not committed")
        assert book >> kept << like(delivery.TreeRests, due=book.now + wait, tries=tries + 1, why=kept.why)
        assert not book.later(wait.total_seconds() - 1)
        passes(book, timedelta(seconds=1))
    assert len({one.key for one in asked(book)}) == 9


def test_an_issue_that_is_opened_again_keeps_its_tree() -> None:
    book = closed()
    passes(book, KEEP - timedelta(hours=1))
    book >> book.seen(status="open", assignee=None)
    passes(book, timedelta(days=30))
    assert not asked(book)


def test_an_issue_that_is_opened_while_its_tree_goes_begins_anew_and_waits_for_that() -> None:
    book = closed()
    passes(book, KEEP)
    (job,) = book.made.jobs
    assert isinstance(job, c.RemoveTree)
    book.made.jobs.clear()
    book >> book.seen(status="open", assignee=None)
    run = book.looked().flow().run
    assert run is not None
    assert (run.id, run.state) == ("t-1/implement.2.1", "planned")
    assert [type(one) for one in book.flow().open] == [c.RemoveTree], "one thing at a time in a tree"
    assert book >> delivery.TreeRemoved("t-1", job.key, job.branch) << like(c.PrepareTree, base=None)
    book.answered()
    assert (book.run().state, rest(book)) == ("running", None)


def test_a_removal_that_failed_is_not_tried_again_once_its_issue_is_open_and_nobody_is_at_work_there() -> None:
    book = closed()
    passes(book, KEEP)
    (job,) = book.made.jobs
    book.made.jobs.clear()
    book >> book.seen(status="blocked", assignee=None) << ...
    book >> tracker.EffectFailed("t-1", job.key, "the disk is full", infra=True)
    passes(book, timedelta(minutes=10))
    assert book.flow().stage != "closed"
    assert len(asked(book)) == 1


def test_a_machine_that_slept_keeps_trees_for_so_much_longer() -> None:
    book = closed()
    before = rest(book)
    assert before is not None
    assert before.due is not None
    book >> resources.ClockJumped(timedelta(days=30))
    after = rest(book)
    assert after is not None
    assert after.due == before.due + timedelta(days=30)


@pytest.mark.parametrize(
    ("keep", "left"), [(timedelta(days=30), timedelta(days=27)), (timedelta(days=1), timedelta()), (None, None)]
)
def test_another_time_counts_for_the_trees_that_stand(keep: timedelta | None, left: timedelta | None) -> None:
    book = closed()
    passes(book, timedelta(days=3))
    due = None if left is None else book.now + left
    assert book >> adopted(keeping(keep)) << like(delivery.TreeRests, due=due, keep=keep)
    assert book >> adopted(keeping(keep)), "said once"
    if keep is None:
        passes(book, timedelta(days=900))
        assert not asked(book)


def test_trees_of_an_earlier_release_have_all_of_their_time_from_its_first_start_on() -> None:
    book = closed(config=keeping(None))
    passes(book, timedelta(days=100))
    assert rest(book) is None
    assert book >> adopted(keeping(KEEP)) << like(delivery.TreeRests, due=book.now + KEEP)


def test_a_branch_that_issues_share_stands_until_all_of_them_are_closed_as_long() -> None:
    book = book_of(issues=())
    for name in ("t-1", "t-2"):
        book.made.open(name, "branch:epic")
    book.looked()
    finished(book).answered()
    assert book.flow().stage == "closed"
    book.looked()
    passes(book, KEEP)
    assert not asked(book), "t-2 is at work there"
    assert (book >> book.reports(name="t-2")).answered().flow("t-2").stage == "closed"
    passes(book, KEEP - timedelta(hours=1))
    assert not asked(book), "t-2 was closed later"
    book.answered()
    passes(book, timedelta(days=2))
    assert {one.branch for one in asked(book)} == {"ashep/+epic"}
    book.answered()
    for name in ("t-1", "t-2"):
        own = book.flow(name).work.own
        assert own is not None
        assert own.base == "", "whoever goes on begins where the base is then"


def test_a_branch_that_was_pushed_stands_for_whoever_goes_on_there() -> None:
    for labels in ((), ("branch:epic",)):
        stands(*labels)


def stands(*labels: str) -> None:
    book = Playbook(policy_of(Phase(name="implement")), tree=TREE, config=CONFIG, issues=())
    book.made.open("t-1", *labels)
    book.looked()
    pull = opened(book).flow().work.pull
    assert pull is not None
    book >> delivery.PullRequestSeen("t-1", pull.number, state="merged", head=pull.head, as_of=book.world.seq)
    assert book.answered().flow().stage == "closed"
    assert rest(book) is not None
    passes(book, KEEP)
    assert not asked(book), "what is begun anew could not be pushed over it"
    assert rest(book) is None
