"""Conversations about work trees of issues' own: who gets one, what happens there, and what does not wait any more."""

# pyright: reportUnusedExpression=false
# A playbook's lines are expressions: `book >> fact << what << follows`.

from typing import Any

import pytest

from ashep.core import commands as c
from ashep.core import events as e
from ashep.core.branches import branch_of, issue_of, shared_branch
from ashep.core.model import Issue, Phase, Settings, Stamp, Tree
from tests.core import given
from tests.core.given import ME, policy_of, settings, start
from tests.core.playbook import Playbook, like

TREE = Tree(True, "c0ffee", branch="main")
TWO = policy_of(Phase(name="implement", next={"success": "review"}), Phase(name="review"))


def own(runs: int = 3) -> Settings:
    """Each issue has a tree of its own."""
    return settings(max_concurrent_runs=runs, workspace="worktree")


def book_of(*args: Any, tree: Tree = TREE, trees: bool = True, **more: Any) -> Playbook:
    """A daemon that can make trees, in a repository."""
    more["config"] = more.get("config") or own()
    book = Playbook(*args, tree=tree if trees else None, **more)
    if not trees:
        book.made.turn(e.TreeSeen(tree))
    return book


def test_an_issue_gets_a_tree_and_its_sessions_work_there() -> None:
    book = book_of(TWO)
    book.made.look()
    book >> book.next() << like(c.PrepareTree, branch="ashep/t-1", base=None, slot=0)
    assert book
    assert (book.flow().own.branch, book.flow().own.onto) == ("ashep/t-1", "main")  # type: ignore[union-attr]
    assert book >> book.next() << like(c.OpenSession, directory="/trees/ashep/t-1", access="write")
    assert book.flow().base == "c0ffee"
    assert book >> book.next() << c.PreparePrompt
    assert book >> book.next() << c.SendPrompt
    assert book >> book.next()
    assert book >> book.turn("running")
    book >> book.reports() << like(e.RunEnded, state="succeeded") << like(e.PhaseEntered, phase="review")
    assert book << like(c.SealTree, branch="ashep/t-1")
    book >> book.next() << like(e.RunPlanned, branch="ashep/t-1", access="read", lock=False, slot=0) << c.WriteIssue
    assert book
    own = book.flow().own
    assert own is not None
    assert (own.head, own.tree) == ("head of t-1/implement.1.1", "tree of t-1/implement.1.1")
    assert book.flow().commits == ("head of t-1/implement.1.1",)
    assert book >> book.next() << like(c.PrepareTree, base="c0ffee", slot=0)
    assert book >> book.next() << like(c.OpenSession, directory="/trees/ashep/t-1", access="read")
    book.answered()
    assert book >> book.reports() << like(e.RunEnded, state="succeeded") << e.IssueFinished << c.IntegrateWork


def test_trees_of_their_own_wait_for_no_lock_and_no_clean_work_tree() -> None:
    dirty = Tree(True, "c0ffee", (("a.py", "11"),), branch="main")
    book = book_of(TWO, tree=dirty, issues=("t-1", "t-2", "t-3"), config=own(3)).looked()
    assert len(list(book.world.live)) == 3
    assert [book.run(f"t-{n}").branch for n in (1, 2, 3)] == ["ashep/t-1", "ashep/t-2", "ashep/t-3"]
    assert sorted(book.world.slots.items()) == [("t-1", 0), ("t-2", 1), ("t-3", 2)]
    assert book.world.lock is None


def test_who_gets_a_tree_does_not_wait_for_those_who_share_one() -> None:
    shared = settings(max_concurrent_runs=3)
    book = book_of(TWO, config=shared, issues=("t-1",)).looked()
    assert (book.world.lock, book.run("t-1").branch) == ("t-1", None)
    book.made.open("t-2")
    book.looked()
    assert book.flow("t-2").code == "work_tree"
    book >> start(config=own())[4]
    book.answered()
    assert (book.run("t-2").branch, book.world.lock) == ("ashep/t-2", "t-1")


def test_a_number_is_free_again_when_its_issue_is_over() -> None:
    book = book_of(
        policy_of(Phase(name="implement")),
        issues=("t-1", "t-2"),
        config=own(2),
    ).looked()
    book >> book.reports(name="t-1")
    book.answered()
    assert book.flow("t-1").stage == "closed"
    assert dict(book.world.slots.items()) == {"t-2": 1}
    book.made.open("t-3")
    book.looked()
    assert dict(book.world.slots.items()) == {"t-2": 1, "t-3": 0}


def test_without_being_asked_for_nobody_gets_a_tree() -> None:
    book = book_of(config=settings()).looked()
    assert book.run().branch is None
    asked = [type(one) for one in book.made.done]
    assert c.ReadTree in asked
    assert c.PrepareTree not in asked


@pytest.mark.parametrize(("tree", "trees"), [(TREE, False), (Tree(True), True), (Tree(False), True)])
def test_trees_that_cannot_be_made_hold_the_issue_and_say_why(tree: Tree, trees: bool) -> None:
    book = book_of(tree=tree, trees=trees).looked()
    assert (book.flow().stage, book.flow().code) == ("idle", "no_repository")


def test_an_issue_that_waits_for_a_repository_begins_once_there_is_one() -> None:
    book = book_of(tree=Tree(True)).looked()
    book >> e.TreeSeen(TREE)
    book.answered()
    assert book.run().branch == "ashep/t-1"


def test_an_issue_stays_in_its_tree_whatever_is_set_later() -> None:
    book = book_of(TWO).looked()
    book >> start(config=settings(workspace="shared"))[4]
    book >> book.reports()
    book.answered()
    assert (book.run().phase, book.run().branch) == ("review", "ashep/t-1")


def test_a_tree_that_cannot_be_made_is_tried_again_and_then_parks_the_issue_with_its_words() -> None:
    book = book_of(TWO)
    book.made.look()
    book >> book.next()
    for _ in range(10):
        book.left = []
        book >> book.failed()
        book.left = []
        book >> book.later(400)
    assert book.flow().stage == "parked"
    assert "no answer" in book.flow().why


def test_what_an_aborted_write_run_left_is_sealed_before_the_next() -> None:
    book = book_of(TWO).looked()
    book >> e.IssueCancelled("t-1", "pat", book.run().id)
    assert any(isinstance(command, c.StopTurn) for command in book.made.jobs)
    book.answered()
    assert book.flow().own is not None
    assert book.flow().own.head == "head of t-1/implement.1.1"  # type: ignore[union-attr]


def test_a_reused_session_is_looked_for_in_the_tree() -> None:
    book = book_of(policy_of(Phase(name="implement", session="reuse", next={"failed": "implement"}))).looked()
    book >> book.reports(result="failed")
    book.answered()
    book >> book.later(20)
    book.answered()
    opened = [one for one in book.made.done if isinstance(one, c.OpenSession)]
    assert [(one.reuse is not None, one.directory) for one in opened] == [
        (False, "/trees/ashep/t-1"),
        (True, "/trees/ashep/t-1"),
    ]


# --- a branch that issues share -----------------------------------------------------------------------------------


def sharing(*more: str) -> Playbook:
    """Two issues on one branch, and another by itself."""
    book = Playbook(policy_of(Phase(name="implement")), issues=(), config=own(), tree=TREE)
    book.made.open("t-1", "branch:epic 1")
    book.made.open("t-2", "branch:epic 1", *more)
    book.made.open("t-3")
    return book.looked()


def test_issues_that_share_a_branch_are_worked_on_one_after_the_other() -> None:
    book = sharing()
    assert (book.run("t-1").branch, book.run("t-3").branch) == ("ashep/+epic%201", "ashep/t-3")
    assert (book.flow("t-2").stage, book.flow("t-2").code) == ("idle", "branch")
    book >> book.reports(name="t-1")
    book.answered()
    assert book.flow("t-1").stage == "closed"
    book.looked()
    later = book.flow("t-2")
    assert (later.stage, book.run("t-2").branch) == ("work", "ashep/+epic%201")
    assert later.own is not None
    assert later.own.base == "head of t-1/implement.1.1"  # what the first left is not the second's work


def test_unfinished_work_of_one_is_not_landed_with_the_others() -> None:
    book = sharing()
    book >> e.IssueCancelled("t-1", "pat", None)
    book.answered()
    assert book.flow("t-1").stage == "parked"
    book.looked()
    assert book.flow("t-2").code == "branch"
    assert "t-1 is not done" in book.flow("t-2").why


def stamped(name: str, run: int) -> Issue:
    """An issue that another journal of ours began on the branch."""
    stamp = Stamp("another", 50, f"{name}/implement.1.{run}", 1, run, runs=1, actor=ME)
    return given.issue(name, "in_progress", "phase:implement", "branch:epic 1", assignee=ME, stamp=stamp)


def test_what_a_lost_state_folder_began_on_a_branch_keeps_others_from_it() -> None:
    """Found in a simulated night: one with a higher rank was taken in the same turn."""
    book = Playbook(policy_of(Phase(name="implement")), issues=(), config=own(), tree=TREE)
    book.made.open("t-1", "branch:epic 1")
    book.made.tracker["t-2"] = stamped("t-2", 1)
    book.looked()
    assert (book.flow("t-1").stage, book.flow("t-1").code) == ("idle", "branch")
    assert book.run("t-2").branch == "ashep/+epic%201"


def test_of_two_that_a_lost_state_folder_began_on_a_branch_one_goes_first() -> None:
    book = Playbook(policy_of(Phase(name="implement")), issues=(), config=own(), tree=TREE)
    for name in ("t-1", "t-2"):
        book.made.tracker[name] = stamped(name, 1)
    book.looked()
    assert [flow.issue.id for flow in book.world.flows.values() if flow.run is not None] == ["t-1"]
    assert book.flow("t-2").code == "branch"


def test_whoever_goes_first_on_a_branch_waits_until_no_run_of_another_is_at_work_there() -> None:
    book = Playbook(policy_of(Phase(name="implement")), issues=(), config=own(), tree=TREE)
    book.made.tracker["t-2"] = stamped("t-2", 1)
    book.looked()
    book.made.tracker["t-1"] = stamped("t-1", 1)
    book.looked()
    assert (book.flow("t-1").stage, book.flow("t-1").code) == ("work", "branch")
    assert book.flow("t-1").run is None
    book >> book.reports(name="t-2")
    book.answered()
    assert book.run("t-1").branch == "ashep/+epic%201"


def test_of_several_shared_branches_one_is_taken_always_the_same() -> None:
    book = sharing("branch:another")
    assert book.run("t-2").branch == "ashep/+another"


def test_a_shared_branch_is_no_issues_own() -> None:
    assert branch_of("+epic") != shared_branch("epic")
    assert issue_of(shared_branch("epic")) is None
