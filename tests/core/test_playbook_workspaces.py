"""Conversations about work trees of issues' own: who gets one, what happens there, and what does not wait any more."""

import json
from datetime import timedelta
from typing import Any

import pytest

from ashep.core.analysis.issue_status import account, is_idle
from ashep.core.facts import commands as c
from ashep.core.facts import delivery, issues, tracker
from ashep.core.facts import runs as facts_runs
from ashep.core.facts.delivery import Tree
from ashep.core.facts.tracker import Issue, Stamp
from ashep.core.policy.policies import PermissionRule, Phase, Takeover
from ashep.core.policy.settings import AgentsSettings, Settings
from ashep.core.reconcile.observe import requests_read, session_read
from ashep.core.state.branches import branch_of, issue_of, shared_branch
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
        book.made.turn(delivery.TreeSeen(tree))
    return book


@pytest.mark.promise("I5")
def test_an_issue_gets_a_tree_and_its_sessions_work_there() -> None:
    book = book_of(TWO)
    book.made.look()
    assert book >> book.next() << like(c.PrepareTree, branch="ashep/t-1", base=None, slot=0)
    assert (book.flow().work.own.branch, book.flow().work.own.onto) == ("ashep/t-1", "main")  # type: ignore[union-attr]
    assert book >> book.next() << like(c.OpenSession, directory="/trees/ashep/t-1", access="write")
    assert book.flow().work.base == "c0ffee"
    assert book >> book.next() << c.PreparePrompt
    assert book >> book.next() << c.SendPrompt
    assert book >> book.next()
    assert book >> book.turn("running")
    book >> book.reports() << like(facts_runs.RunEnded, state="succeeded") << like(issues.PhaseEntered, phase="review")
    assert book << like(c.SealTree, branch="ashep/t-1")
    book >> book.next() << like(facts_runs.RunPlanned, branch="ashep/t-1", access="read", lock=False, slot=0)
    assert book << c.WriteIssue
    own = book.flow().work.own
    assert own is not None
    assert (own.head, own.tree) == ("head of t-1/implement.1.1", "tree of t-1/implement.1.1")
    assert book.flow().work.commits == ("head of t-1/implement.1.1",)
    assert book >> book.next() << like(c.PrepareTree, base="c0ffee", slot=0)
    assert book >> book.next() << like(c.OpenSession, directory="/trees/ashep/t-1", access="read")
    book.answered()
    book >> book.reports() << like(facts_runs.RunEnded, state="succeeded") << issues.IssueFinished
    assert book << c.IntegrateWork


@pytest.mark.promise("I5")
def test_trees_of_their_own_wait_for_no_lock_and_no_clean_work_tree() -> None:
    dirty = Tree(True, "c0ffee", (("a.py", "11"),), branch="main")
    book = book_of(TWO, tree=dirty, issues=("t-1", "t-2", "t-3"), config=own(3)).looked()
    assert len(list(book.world.indexes.live)) == 3
    assert [book.run(f"t-{n}").branch for n in (1, 2, 3)] == ["ashep/t-1", "ashep/t-2", "ashep/t-3"]
    assert sorted(book.world.indexes.slots.items()) == [("t-1", 0), ("t-2", 1), ("t-3", 2)]
    assert book.world.lock is None


def test_who_gets_a_tree_does_not_wait_for_those_who_share_one() -> None:
    shared = settings(max_concurrent_runs=3)
    book = book_of(TWO, config=shared, issues=("t-1",)).looked()
    assert (book.world.lock, book.run("t-1").branch) == ("t-1", None)
    book.made.open("t-2")
    assert book.looked().flow("t-2").code == "work_tree"
    (book >> start(config=own())[4]).answered()
    assert (book.run("t-2").branch, book.world.lock) == ("ashep/t-2", "t-1")


def test_a_number_is_free_again_when_its_issue_is_over() -> None:
    book = book_of(policy_of(Phase(name="implement")), issues=("t-1", "t-2"), config=own(2)).looked()
    assert (book >> book.reports(name="t-1")).answered().flow("t-1").stage == "closed"
    assert dict(book.world.indexes.slots.items()) == {"t-2": 1}
    book.made.open("t-3")
    book.looked()
    assert dict(book.world.indexes.slots.items()) == {"t-2": 1, "t-3": 0}


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
    (book >> delivery.TreeSeen(TREE)).answered()
    assert book.run().branch == "ashep/t-1"


def test_an_issue_stays_in_its_tree_whatever_is_set_later() -> None:
    book = book_of(TWO).looked()
    book >> start(config=settings(workspace="shared"))[4]
    (book >> book.reports()).answered()
    assert (book.run().phase, book.run().branch) == ("review", "ashep/t-1")


def test_a_tree_that_cannot_be_made_is_tried_again_and_then_parks_the_issue_with_its_words() -> None:
    book = book_of(TWO)
    book.made.look()
    book >> book.next()
    for _ in range(10):
        book.left = []
        book >> book.failed() << ...
        book >> book.later(400)
    assert book.flow().stage == "parked"
    assert "no answer" in book.flow().why


def test_what_an_aborted_write_run_left_is_sealed_before_the_next() -> None:
    book = book_of(TWO).looked()
    book >> issues.IssueCancelled("t-1", "pat", book.run().id)
    assert any(isinstance(command, c.StopTurn) for command in book.made.jobs)
    assert book.answered().flow().work.own is not None
    assert book.flow().work.own.head == "head of t-1/implement.1.1"  # type: ignore[union-attr]


def test_a_reused_session_is_looked_for_in_the_tree() -> None:
    book = book_of(policy_of(Phase(name="implement", session="reuse", next={"failed": "implement"}))).looked()
    (book >> book.reports(result="failed")).answered()
    (book >> book.later(20)).answered()
    opened = [one for one in book.made.done if isinstance(one, c.OpenSession)]
    assert [(one.reuse is not None, one.directory) for one in opened] == [
        (False, "/trees/ashep/t-1"),
        (True, "/trees/ashep/t-1"),
    ]


# --- judges on clean ground ---------------------------------------------------------------------------------------

JUDGED = policy_of(
    Phase(name="plan", capabilities=("review",), access="read", next={"success": "implement"}),
    Phase(name="implement", access="write", next={"success": "test"}),
    Phase(
        name="test", capabilities=("code",), access="write", verdicts=("pass", "fail"),
        next={"pass": "review", "fail": "implement"},
    ),
    Phase(name="review", access="read", verdicts=("approve", "no"), next={"approve": "close", "no": "implement"}),
)  # fmt: skip


def alone() -> Settings:
    """Who changes files has a place of its own, and an agent server there."""
    return settings(workspace="place").model_copy(update={"agents": AgentsSettings(sandbox="auto")})


@pytest.mark.promise("I7")
def test_who_judges_stands_on_what_was_committed_and_who_works_in_the_place() -> None:
    book = book_of(JUDGED, config=alone())
    book.made.look()
    assert book >> book.next() << like(c.PrepareTree, ground="sealed", base=None)
    assert book >> book.next() << like(c.OpenSession, directory="/grounds/ashep/t-1", access="read")
    assert book.flow().work.own.path == ""  # type: ignore[union-attr] - nobody has worked there yet
    book.answered()
    for verdict in (None, None, "pass"):
        (book >> book.reports(verdict=verdict)).answered()
    asked = [(one.run.split("/")[1].split(".")[0], one.ground) for one in book.bodies(c.PrepareTree)]
    assert asked == [("plan", "sealed"), ("implement", "own"), ("test", "fresh"), ("review", "sealed")]
    places = [one.directory for one in book.bodies(c.OpenSession)]
    assert places == [f"/{where}/ashep/t-1" for where in ("grounds", "trees", "trees", "grounds")]


@pytest.mark.promise("I7")
def test_after_a_judge_people_are_led_to_where_the_work_is_and_the_next_works_there() -> None:
    book = book_of(JUDGED, config=alone()).looked()
    for verdict in (None, None, "pass"):
        (book >> book.reports(verdict=verdict)).answered()
    own = book.flow().work.own
    assert own is not None
    assert (own.path, own.ground) == ("/trees/ashep/t-1", "/grounds/ashep/t-1")
    (book >> book.reports(verdict="no")).answered()
    own = book.flow().work.own
    assert own is not None
    assert (book.run().phase, own.path, own.ground) == ("implement", "/trees/ashep/t-1", "")


@pytest.mark.parametrize("config", [own(), settings(workspace="place")])
def test_where_agents_are_not_isolated_all_of_an_issues_runs_work_in_one_tree(config: Settings) -> None:
    book = book_of(JUDGED, config=config).looked()
    for verdict in (None, None, "pass"):
        (book >> book.reports(verdict=verdict)).answered()
    assert [one.ground for one in book.bodies(c.PrepareTree)] == ["own"] * 4


@pytest.mark.promise("I7")
def test_nobody_who_writes_in_the_session_of_a_place_is_a_person_before_the_issue_was_taken() -> None:
    book = book_of(policy_of(Phase(name="implement")), config=alone()).looked()
    assert book >> book.turn("running", people=("msg_x",))
    assert book.run().ended is False
    block = json.dumps({"result": "success", "summary": "what I did"})
    book >> book.turn("finished", block=block, people=("msg_x",)) << like(facts_runs.RunEnded, state="succeeded") << ...
    assert book.flow().takeover is None

    book = book_of(JUDGED, config=alone()).looked()  # the judges' server is nobody's but ours
    book >> book.turn("running", people=("ann",)) << like(facts_runs.RunEnded, state="aborted")
    assert book << facts_runs.SessionTaken << ...


@pytest.mark.promise("I7")
def test_a_turn_that_was_stopped_in_a_place_has_failed_and_nobody_took_it() -> None:
    book = book_of(policy_of(Phase(name="implement")), config=alone()).looked()
    book >> book.turn("running")
    book >> book.turn("finished", error="MessageAbortedError: x") << like(facts_runs.RunEnded, state="failed") << ...
    assert book.flow().takeover is None


@pytest.mark.promise("I7")
def test_what_a_person_was_asked_is_not_answered_in_a_place() -> None:
    rule = PermissionRule(tool="bash", pattern="*", action="ask")
    for config, ends in ((alone(), True), (own(), False)):
        asking = config.model_copy(update={"permissions": (rule,)})
        book = book_of(policy_of(Phase(name="implement")), config=asking).looked()
        book >> book.turn("running")
        book.made.ask(book.run().session or "", "permission", tool="bash", patterns=("rm x",))
        (asked,) = requests_read(book.world, [*book.made.listed()], book.world.seq)
        (book >> asked).answered()
        (gone,) = requests_read(book.world, [], book.world.seq)
        book >> gone << ...
        assert book.run().ended is ends


@pytest.mark.promise("I7")
def test_a_place_that_a_person_took_is_not_sealed_before_they_are_done_and_takes_no_slot() -> None:
    config = alone().model_copy(update={"worker": alone().worker.model_copy(update={"max_concurrent_runs": 1})})
    book = book_of(policy_of(Phase(name="implement")), issues=("t-1", "t-2"), config=config).looked()
    book >> book.seen(add=("ashep:paused",)) << ...
    (book >> book.turn("running")).answered()
    assert book.run().ended
    assert not book.bodies(c.SealTree)
    book.looked()
    assert book.run("t-2").state == "running"
    told = account(book.world, "t-1")
    assert (told.state, told.code) == ("person", "paused")
    (book >> book.turn("running", name="t-2")).answered()
    (book >> book.reports(name="t-2")).answered()
    assert is_idle(book.world), "only that person can make anything go on"
    (book >> book.seen(drop=("ashep:paused",))).answered()
    seen = facts_runs.SessionSeen("t-1", book.run().session or "", (), False, book.world.seq)
    (book >> session_read(book.world, seen)).answered()
    assert book.bodies(c.SealTree)[-1].run == "t-1/implement.1.1"


@pytest.mark.promise("I7")
def test_what_an_agent_changed_is_put_back_while_a_person_has_the_place() -> None:
    """Found in a simulated night: it waited for the seal, which waits for the person."""
    book = book_of(policy_of(Phase(name="implement")), config=alone()).looked()
    (book >> book.seen(add=("ashep:paused",))).answered()
    (book >> book.turn("running")).answered()
    (book >> book.seen(who="ashep-agent", status="open")).answered()
    told = account(book.world, "t-1")
    assert (told.state, told.code, book.made.tracker["t-1"].status) == ("person", "paused", "in_progress")
    assert ["Put back" in comment.text for comment in book.made.comments["t-1"]] == [True]
    assert not book.bodies(c.SealTree)


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
    assert (book >> book.reports(name="t-1")).answered().flow("t-1").stage == "closed"
    later = book.looked().flow("t-2")
    assert (later.stage, book.run("t-2").branch) == ("work", "ashep/+epic%201")
    assert later.work.own is not None
    assert later.work.own.base == "head of t-1/implement.1.1"  # what the first left is not the second's work


def test_unfinished_work_of_one_is_not_landed_with_the_others() -> None:
    book = sharing()
    assert (book >> issues.IssueCancelled("t-1", "pat", None)).answered().flow("t-1").stage == "parked"
    assert book.looked().flow("t-2").code == "branch"
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
    book.made.heads["ashep/+epic%201"] = "work of both"
    book.looked()
    assert (book.flow("t-1").stage, book.flow("t-1").code) == ("idle", "branch")
    assert book.run("t-2").branch == "ashep/+epic%201"
    theirs = book.flow("t-2").work.own
    assert theirs is not None
    assert theirs.base == "c0ffee"  # nobody knows how much of it is whose: all that the base lacks counts as its work


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
    (book >> book.reports(name="t-2")).answered()
    assert book.run("t-1").branch == "ashep/+epic%201"


def test_of_several_shared_branches_one_is_taken_always_the_same() -> None:
    book = sharing("branch:another")
    assert book.run("t-2").branch == "ashep/+another"


def test_a_shared_branch_is_no_issues_own() -> None:
    assert branch_of("+epic") != shared_branch("epic")
    assert issue_of(shared_branch("epic")) is None


# --- a tree that cannot be sealed ---------------------------------------------------------------------------------


def unsealable(*names: str, others: tuple[str, ...] = ()) -> Playbook:
    """Issues whose runs end well, and whose trees git will not take; the others wait for a slot meanwhile."""
    book = book_of(TWO, issues=(*names, *others), config=own(len(names))).looked()
    for name in names:
        book.left = []
        book >> book.reports(name=name) << ...
    return book


def refused(book: Playbook, *, infra: bool = True) -> None:
    """Whatever else waits is carried out; each seal that waits fails."""
    for command in list(book.made.jobs):
        book.made.jobs.remove(command)
        if isinstance(command, c.SealTree):
            book.made.turn(tracker.EffectFailed(command.issue, command.key, "git add: x: Permission denied", infra))
        else:
            book.made.carry_out(command)
    book.left = []


def given_up(book: Playbook) -> None:
    """So much time passes that no seal is tried again."""
    for _ in range(60):
        refused(book)
        book >> book.later(70)
    book.left = []


def test_what_a_branch_lacks_once_more_after_a_person_was_there_is_another_comment() -> None:
    wish = Takeover(action="resume", cooldown=timedelta(seconds=60))
    book = book_of(TWO.model_copy(update={"takeover": wish})).looked()
    book >> book.turn("running", people=("msg_ann",))
    for _ in range(2):
        book.left = []
        seal = next(one for one in book.made.jobs if isinstance(one, c.SealTree))
        book.made.jobs.remove(seal)
        book >> delivery.TreeSealed("t-1", seal.run, seal.key, "beef", "7ree", ("beef",), lacking=("git refuses x",))
        book.answered()
        if book.flow().takeover is None:
            break
        session = book.flow().takeover.session  # type: ignore[union-attr]
        for seconds in (0, 60):
            book >> book.later(seconds)
            seen = facts_runs.SessionSeen("t-1", session or "", ("msg_ann",), False, book.world.seq)
            book >> session_read(book.world, seen)
    names = [one.name for one in book.made.done if isinstance(one, c.PostComment) and "git refuses x" in one.text]
    assert len(names) == len({*names}) == 2


@pytest.mark.promise("I5")
def test_three_trees_that_cannot_be_sealed_keep_nobody_waiting() -> None:
    book = unsealable("t-1", "t-2", "t-3", others=("t-4", "t-5", "t-6"))
    assert {book.flow(name).code for name in ("t-4", "t-5", "t-6")} == {"slot"}
    refused(book)
    book.looked()
    assert [book.run(name).state for name in ("t-4", "t-5", "t-6")] == ["running"] * 3


@pytest.mark.promise("I5")
def test_a_tree_that_cannot_be_sealed_is_given_up_after_a_bounded_time_and_the_reason_says_what_to_do() -> None:
    book = unsealable("t-1")
    given_up(book)
    flow = book.flow()
    assert (flow.stage, flow.code) == ("parked", "unsealed")
    assert "git add: x: Permission denied" in flow.why
    assert "/trees/ashep/t-1" in flow.why
    assert "ashep retry t-1" in flow.why
    assert book.run().settled
    assert not flow.busy
    assert not list(book.world.indexes.live)
    tried = book.bodies(c.SealTree)
    assert len(tried) == 10
    book.made.turn(*book.made.begun[1:], everything=True)  # another start
    assert not any(isinstance(command, c.SealTree) for command in book.made.jobs)


def test_what_git_says_for_good_is_not_tried_again() -> None:
    book = unsealable("t-1")
    refused(book, infra=False)
    assert (book.flow().stage, book.flow().code) == ("parked", "unsealed")
    assert book.run().settled


def test_after_a_retry_the_next_run_goes_on_in_the_tree_as_it_is() -> None:
    book = unsealable("t-1")
    given_up(book)
    (book >> book.seen(drop=("ashep:parked",))).answered()
    again = [one for one in book.made.done if isinstance(one, c.PrepareTree)]
    assert [one.run for one in again] == ["t-1/implement.1.1", "t-1/implement.2.1"]
    assert book.run().state == "running"


def test_a_seal_that_comes_through_at_last_is_as_any_other() -> None:
    book = unsealable("t-1")
    for _ in range(4):
        refused(book)
        book >> book.later(70)
    book.answered()
    assert (book.run().phase, book.run().state) == ("review", "running")


@pytest.mark.promise("I5")
@pytest.mark.parametrize("how", ["left", "closed", "parked"])
def test_an_issue_that_is_nobodys_any_more_holds_no_slot_whatever_its_tree_says(how: str) -> None:
    book = book_of(TWO, issues=("t-1", "t-2"), config=own(1)).looked()
    assert book.flow("t-2").code == "slot"
    if how == "parked":
        book >> issues.IssueCancelled("t-1", "pat", book.run().id)
    else:
        book >> book.seen(assignee="pat") if how == "left" else book >> book.seen(status="closed")
    for _ in range(4):
        refused(book)
    assert book.looked().flow("t-1").stage == how
    assert book.run("t-2").state == "running"
    given_up(book)
    assert book.run("t-1").settled
    assert book.flow("t-1").stage == how


def test_a_tree_that_all_share_and_that_cannot_be_read_keeps_no_run_for_ever() -> None:
    book = Playbook(TWO, tree=TREE, config=settings()).looked()
    book >> book.reports()
    for _ in range(60):
        for command in list(book.made.jobs):
            book.made.jobs.remove(command)
            if isinstance(command, c.ReadTree):
                book.made.turn(tracker.EffectFailed(command.issue, command.key, "fatal: index file corrupt", True))
            else:
                book.made.carry_out(command)
        book.left = []
        book >> book.later(70) << ...
    assert (book.flow().stage, book.flow().code) == ("parked", "unsealed")
    assert book.run().settled


@pytest.mark.promise("I5")
def test_work_that_is_not_sealed_is_never_closed_over() -> None:
    """A person leads it past the phase that would seal it: what would land lacks what was worked."""
    book = unsealable("t-1")
    given_up(book)
    (book >> book.seen(drop=("ashep:parked", "phase:implement"), add=("phase:review",))).answered()
    assert book.run().phase == "review"
    (book >> book.reports()).answered()
    assert (book.flow().stage, book.flow().code) == ("parked", "unsealed")


def test_the_seal_of_a_later_run_tells_whether_all_is_sealed() -> None:
    """The same tree holds what both left; whether the policy leads to its end before that seal is no matter."""
    book = book_of(policy_of(Phase(name="implement"))).looked()
    book >> book.reports()
    given_up(book)
    assert (book.flow().stage, book.flow().code) == ("parked", "unsealed")
    (book >> book.seen(drop=("ashep:parked",))).answered()
    assert (book >> book.reports()).answered().flow().code != "unsealed"
    assert book.flow().stage in ("finishing", "closed")


def test_what_a_branch_lacks_of_the_work_is_told_to_people() -> None:
    book = book_of(TWO).looked()
    book >> book.reports() << ...
    seal = book.dropped()
    assert isinstance(seal, c.SealTree)
    head = ("beef", "7ree", ("beef",))
    book >> delivery.TreeSealed(
        "t-1", seal.run, seal.key, *head, lacking=("git refuses x: it is in refs/ashep/saved/1",)
    )
    book.answered()
    (told,) = [one.text for one in book.made.done if isinstance(one, c.PostComment)]
    assert told == "t-1/implement.1.1 is over, and:\n- git refuses x: it is in refs/ashep/saved/1"
    assert book.run().phase == "review"
