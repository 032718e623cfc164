"""Conversations about work on its way to the base: one at a time, verified there, and never in anybody's way."""

from dataclasses import replace
from typing import Any

import pytest

from ashep.core.analysis.issue_status import account
from ashep.core.delivery.landing import MOST_FAILED
from ashep.core.facts import commands as c
from ashep.core.facts import delivery, runs, tracker
from ashep.core.facts import issues as facts_issues
from ashep.core.facts.delivery import CheckResult
from ashep.core.facts.tracker import Stamp
from ashep.core.policy.landing import LandingSettings
from ashep.core.policy.policies import Human, Phase, Verify
from ashep.core.policy.settings import Settings
from tests.core.given import ME, policy_of, start
from tests.core.playbook import Playbook, like
from tests.core.test_playbook_workspaces import TREE, TWO, own

pytestmark = pytest.mark.promise("Z5")

ONE = policy_of(Phase(name="implement"))
CHECKED = policy_of(Phase(name="implement", verify=Verify()))
HUMAN = policy_of(Phase(name="implement"), Phase(name="look", human=Human(ask="Fine?", changes_requested="implement")))


def landing(**fields: Any) -> Settings:
    return own().model_copy(update={"landing": LandingSettings(**fields)})


def book_of(policy: Any = ONE, *, issues: tuple[str, ...] = ("t-1",), **more: Any) -> Playbook:
    """Issues that are worked on in their own trees, and have no checks of their own."""
    more = {"config": own(), "tree": TREE} | more
    book = Playbook(policy, issues=issues, **more).looked()
    for name in issues:
        (book >> delivery.CriteriaAdopted(name, "", "")).answered()
    return book


def through(book: Playbook, *wrong: str, name: str = "t-1") -> Playbook:
    """The agent is done, and all is carried out, of which this goes wrong in its turn."""
    book.made.base.goes_wrong(name, *wrong)
    return (book >> book.reports(name=name)).answered()


def finished(book: Playbook, name: str = "t-1") -> Playbook:
    """The agent is done, and what it left is committed: the first step of landing waits to be carried out."""
    book >> book.reports(name=name) << ...
    book >> book.next()
    return book


def test_what_is_done_is_brought_onto_the_base_and_the_base_moved_before_it_closes() -> None:
    book = book_of()
    book >> book.reports() << runs.RunEnded << like(facts_issues.IssueFinished, onto="main", verify=False) << c.SealTree
    head = "head of t-1/implement.1.1"
    book >> book.next()
    assert book << like(
        c.IntegrateWork, branch="ashep/t-1", head=head, onto="main", method="merge", message="Title of t-1 (t-1)"
    )
    assert book >> book.next() << like(c.MoveBase, old="c0ffee", new=f"{head} on c0ffee", onto="main")
    book >> book.next() << like(facts_issues.CommentWanted, issue="t-1") << c.PostComment
    assert "Landed on `main` as head of" in book.flow().comments[0][1]
    assert book.flow().work.own.since == f"{head} on c0ffee"  # type: ignore[union-attr]
    assert "nothing was to be checked" in book.flow().comments[0][1]
    assert book >> book.next() << like(c.WriteIssue, kind="close")
    book.answered()
    assert (book.flow().stage, book.flow().code) == ("closed", "shepherd")
    assert not [*book.world.indexes.landings]


def test_what_lands_is_verified_where_it_lands() -> None:
    book = book_of(CHECKED)
    book >> book.reports() << ...
    for _ in range(2):  # the seal, and the phase's own verification
        book >> book.next() << ...
    book >> book.next()
    assert book << like(
        c.VerifyWork, commit="head of t-1/implement.1.1 on c0ffee", base="c0ffee", run="", phase="", change=True
    )
    assert book >> book.next() << c.MoveBase
    assert book.answered().flow().stage == "closed"
    told = [one.text for one in book.bodies(facts_issues.CommentWanted)]
    assert "1 of 1 checks passed in tree tree of hea" in told[-1]


def test_checks_that_fail_on_the_base_lead_back_to_the_writer() -> None:
    book = book_of(CHECKED)
    flow = through(book, "fine", "fails").flow()
    assert (flow.stage, flow.phase, flow.visit, flow.work.landing) == ("work", "implement", 2, None)
    assert "on main it did not hold: tests" in book.bodies(facts_issues.PhaseEntered)[-1].why
    assert flow.work.flaw is not None
    assert (flow.work.flaw.kind, flow.work.flaw.onto) == ("checks", "main")
    assert book.made.base.tip == "c0ffee"


@pytest.mark.parametrize("holds", [True, False])
def test_what_the_base_holds_already_is_verified_there_before_the_issue_closes(holds: bool) -> None:
    book = book_of(CHECKED)
    book.made.base.landed["t-1"] = ["head of t-1/implement.1.1"]
    book.made.base.goes_wrong("t-1", "fine", "fine" if holds else "fails")
    book >> book.reports() << ...
    for _ in range(2):  # the seal, and the phase's own verification
        book >> book.next() << ...
    assert book >> book.next() << like(c.VerifyWork, commit="c0ffee", run="", phase="", change=True)
    assert not [*book.world.indexes.landings], "whoever comes next need not wait for that"
    if holds:
        book >> book.next() << facts_issues.CommentWanted << c.PostComment
        assert book.answered().flow().stage == "closed"
    else:
        book >> book.next() << like(facts_issues.PhaseEntered, phase="implement", visit=2)
        assert book.flow().stage == "work"


def test_work_that_changes_nothing_where_it_lands_goes_back_and_at_last_to_a_person() -> None:
    book = book_of(CHECKED)
    flow = through(book, "fine", "unchanged").flow()
    assert (flow.stage, flow.phase, flow.visit, flow.work.landing) == ("work", "implement", 2, None)
    assert flow.work.flaw is not None
    assert flow.work.flaw.why == "did not hold: unchanged"
    assert book.made.base.tip == "c0ffee"
    book.made.base.goes_wrong("t-1", *["unchanged"] * 4)
    for _ in range(3):
        (book >> book.reports()).answered()
        (book >> book.later(0)).answered()
    flow = book.flow()
    assert flow.question is not None
    assert (flow.stage, flow.question.about) == ("person", "proof")
    assert flow.question.text == (
        "implement says success, but the work changes nothing; attempt 3 of 3, the last. Let it pass?"
    )
    told = [one.text for one in book.bodies(facts_issues.CommentWanted)]
    assert "- the work changes nothing. Where that is right (a question, an investigation), approve: " in told[-1]
    (book >> book.seen(add=("human:approved",))).answered()
    assert (book.flow().stage, book.flow().code, book.flow().work.waived) == ("closed", "shepherd", ("unchanged",))
    told = [one.text for one in book.bodies(facts_issues.CommentWanted)]
    assert "it changes nothing. A person let these pass: unchanged." in told[-1]


def test_where_no_phase_has_verify_what_lands_need_not_change_anything_and_that_is_told() -> None:
    book = book_of(ONE)
    book >> delivery.CriteriaAdopted("t-1", "ab" * 32, "cd" * 32, 1)
    flow = through(book, "unchanged").flow()
    assert (flow.stage, flow.code) == ("closed", "shepherd")
    assert flow.work.evidence is not None
    assert not flow.work.evidence.changed, "it is told as it is"
    told = [one.text for one in book.bodies(facts_issues.CommentWanted)]
    assert "1 of 1 checks passed in tree tree of head; it changes nothing." in told[-1]


def test_a_conflict_leads_back_to_the_writer_with_what_contradicts_what() -> None:
    book = finished(book_of())
    book.made.base.goes_wrong("t-1", "conflict")
    book.left = []
    book >> book.next() << like(facts_issues.PhaseEntered, phase="implement", visit=2)
    book << like(runs.RunPlanned, run="t-1/implement.2.1")
    flow = book.flow()
    assert flow.work.flaw is not None
    assert (flow.work.flaw.kind, flow.work.flaw.log, flow.work.flaw.onto) == ("conflict", "ef" * 32, "main")
    assert flow.work.flaw.why == "contradicts main in calc.py"
    assert flow.work.own.since == "c0ffee"  # type: ignore[union-attr]
    assert not [*book.world.indexes.landings]


def test_conflicts_end_with_a_person() -> None:
    once = policy_of(Phase(name="implement", max_visits=2))
    book = book_of(once)
    book.made.base.goes_wrong("t-1", "conflict", "conflict")
    for _ in range(2):
        (book >> book.reports()).answered()
    assert (book.flow().stage, book.flow().code) == ("parked", "max_visits")
    assert "contradict each other" in book.flow().why


def test_a_conflict_in_a_policy_without_a_writer_is_a_persons() -> None:
    book = through(book_of(policy_of(Phase(name="implement", access="read"))), "conflict")
    assert (book.flow().stage, book.flow().code) == ("parked", "not_landed")


def test_one_lands_at_a_time_in_the_order_in_which_they_were_finished() -> None:
    book = book_of(issues=("t-1", "t-2"))
    finished(book, "t-2")
    book.left = []
    assert isinstance(book.made.jobs[0], c.IntegrateWork)
    book.made.jobs, waiting = [], book.made.jobs
    finished(book, "t-1")
    assert not book.made.jobs
    assert [place[-1] for place in book.world.indexes.landings] == ["t-2", "t-1"]
    book.made.jobs, book.left = waiting, []
    book >> book.next() << like(c.MoveBase, issue="t-2")
    book >> book.next() << facts_issues.CommentWanted << like(c.IntegrateWork, issue="t-1")
    assert book << like(c.PostComment, issue="t-2")


def test_of_those_who_wait_for_their_turn_the_first_to_finish_is_next() -> None:
    book = book_of(issues=("t-1", "t-2", "t-3"))
    waiting: list[c.Command] = []
    for name in ("t-3", "t-2", "t-1"):
        finished(book, name)
        waiting, book.made.jobs, book.left = [*waiting, *book.made.jobs], [], []
    book.made.jobs = [job for job in waiting if not isinstance(job, c.SendNotice)]
    book.answered()
    assert list(book.made.base.landed) == ["t-3", "t-2", "t-1"]


def test_whoever_comes_next_goes_on_where_the_first_leaves_the_queue() -> None:
    book = book_of(issues=("t-1", "t-2"))
    finished(book, "t-1")
    book.made.jobs, book.left = [], []
    finished(book, "t-2")
    book >> book.seen("t-1", status="closed") << facts_issues.IssueClosed << delivery.TreeRests
    assert book << like(c.IntegrateWork, issue="t-2")


def test_whoever_was_passed_by_comes_back_in_its_turn() -> None:
    book = book_of(issues=("t-1", "t-2"))
    finished(book, "t-1")
    book.left = []
    book >> book.next()
    mine, book.made.jobs, book.left = book.made.jobs[0], [], []
    finished(book, "t-2")
    book.made.jobs, book.left = [mine], []
    book >> book.failed() << like(c.IntegrateWork, issue="t-2")
    assert book >> book.later(5), "the other is at it by now"
    assert [place[-1] for place in book.world.indexes.landings] == ["t-2", "t-1"]
    book >> book.next() << like(c.MoveBase, issue="t-2")
    book >> book.next() << facts_issues.CommentWanted << like(c.MoveBase, issue="t-1")
    book << like(c.PostComment, issue="t-2")
    book.answered()
    assert list(book.made.base.landed) == ["t-2", "t-1"]


def test_whoever_was_brought_onto_a_base_that_moved_is_at_it_when_another_comes_back() -> None:
    book = book_of(issues=("t-1", "t-2"))
    finished(book, "t-1")
    book.left = []
    book >> book.next()
    mine, book.made.jobs, book.left = book.made.jobs[0], [], []
    finished(book, "t-2")
    book.made.jobs, book.left = [mine], []
    book >> book.failed() << like(c.IntegrateWork, issue="t-2")
    book >> book.next() << like(c.MoveBase, issue="t-2")
    book.made.base.tip = "beef"
    book >> book.next() << like(c.IntegrateWork, issue="t-2")
    brought = book.next()
    book >> [brought, *book.later(5)] << like(c.MoveBase, issue="t-2", old="beef")
    assert book, "not the other, whose wait is over in the same moment"


def test_a_base_that_moved_is_integrated_with_again() -> None:
    book = finished(book_of())
    book.left = []
    book >> book.next()
    book.made.base.tip, book.left = "beef", []
    book >> book.next() << like(c.IntegrateWork, key=f"t-1/integrate/{book.flow().work.landing.seq}.1")  # type: ignore[union-attr]
    assert book
    book >> book.next() << like(c.MoveBase, old="beef")


def test_a_base_that_keeps_moving_is_left_alone_for_a_while() -> None:
    book = book_of()
    flow = through(book, *["moved"] * 4).flow()
    assert flow.work.landing is not None
    assert (flow.code, flow.work.landing.refused, flow.work.landing.round) == ("landing_moved", 4, 4)
    assert flow.work.landing.due is not None
    assert (flow.work.landing.due - book.now).total_seconds() == 60
    assert (book >> book.later(60)).answered().flow().stage == "closed"


def test_a_checkout_in_the_way_is_waited_for_and_said() -> None:
    book = through(book_of(), "dirty")
    flow = book.flow()
    assert (flow.stage, flow.code, flow.why, flow.busy) == ("finishing", "landing_dirty", "told so", False)
    book.left = []
    assert book >> book.later(59)
    book >> book.later(1) << like(c.MoveBase, old="c0ffee")
    assert book.answered().flow().stage == "closed"


def test_a_checkout_that_stays_in_the_way_is_tried_ever_more_seldom() -> None:
    book = through(book_of(), *["dirty"] * 6)
    waits: list[float] = []
    while (landing := book.flow().work.landing) is not None and landing.due is not None:
        waits.append((landing.due - book.now).total_seconds())
        (book >> book.later(waits[-1])).answered()
    assert waits == [60, 120, 240, 480, 600, 600]
    assert book.flow().stage == "closed"


def test_a_checkout_that_is_not_known_any_more_is_tried_at_once() -> None:
    book = through(book_of(), "dirty")
    book >> start(config=own())[1] << ...
    book >> delivery.TreeSeen(TREE) << c.MoveBase


def test_a_checkout_that_changes_is_tried_at_once() -> None:
    book = through(book_of(), "dirty")
    book.left = []
    book >> delivery.TreeSeen(TREE)
    assert book  # as it was
    book >> delivery.TreeSeen(replace(TREE, untracked=("new",))) << c.MoveBase


def test_a_base_that_only_people_move_is_theirs() -> None:
    for code in ("protected", "gone"):
        book = through(book_of(), code)
        assert (book.flow().stage, book.flow().code) == ("parked", f"landing_{code}")


def test_what_a_person_let_pass_may_fail_where_it_lands_and_people_read_so() -> None:
    book = through(book_of(policy_of(Phase(name="implement", verify=Verify(max_attempts=1)))), "fails", "fails")
    assert book.flow().question.about == "proof"  # type: ignore[union-attr]
    assert (book >> book.seen(add=("human:approved",))).answered().flow().stage == "closed"
    told = [one.text for one in book.bodies(facts_issues.CommentWanted)]
    assert "A person let these pass: tests." in told[-1]


def test_checks_that_nobody_read_are_read_before_it_lands() -> None:
    book = Playbook(ONE, config=own(), tree=TREE).looked()
    book >> book.reports() << runs.RunEnded << like(facts_issues.IssueFinished, verify=True) << ...
    for _ in range(2):
        book >> book.next() << ...
    assert isinstance(book.made.jobs[0], c.VerifyWork)
    assert book.made.jobs[0].adopt


def test_work_that_has_landed_lands_no_second_time() -> None:
    book = finished(book_of())
    lost = book.failed(landed=False)
    book.left = []
    book >> lost << ...
    book >> book.later(5) << like(c.IntegrateWork, tries=1) << ...
    book >> book.next() << ...
    book >> book.failed(landed=True)  # the base has moved, and nobody heard of it
    book.left = []
    book >> book.later(5) << like(c.MoveBase, tries=1)
    assert book.answered().flow().stage == "closed"
    assert book.made.base.landed == {"t-1": ["head of t-1/implement.1.1"]}


def test_an_issue_that_comes_back_after_it_landed_brings_only_what_is_new() -> None:
    book = book_of()
    (book >> book.reports()).answered()
    book >> book.seen(status="open", assignee=None)
    book.looked()
    book >> delivery.CriteriaAdopted("t-1", "", "")
    assert (book >> book.reports()).answered().flow().stage == "closed"
    assert len(book.made.base.landed["t-1"]) == 2


def test_nothing_lands_with_landing_off_and_it_is_still_verified() -> None:
    book = book_of(config=landing(mode="branch"))
    book >> delivery.CriteriaAdopted("t-1", "ab" * 32, "cd" * 32, 1)
    book >> book.reports() << runs.RunEnded << like(facts_issues.IssueFinished, onto="", verify=True) << ...
    book >> book.next() << like(c.VerifyWork, commit="head of t-1/implement.1.1", criteria="cd" * 32) << ...
    book >> book.next() << facts_issues.CommentWanted
    assert book.answered().flow().stage == "closed"
    assert book.made.base.tip == "c0ffee"


@pytest.mark.parametrize("status", ["passed", "failed"])
def test_what_was_found_about_another_commit_says_nothing(status: Any) -> None:
    book = book_of(config=landing(mode="branch"))
    book >> delivery.CriteriaAdopted("t-1", "ab" * 32, "cd" * 32, 1)
    book >> book.reports() << runs.RunEnded << like(facts_issues.IssueFinished, onto="", verify=True) << ...
    book >> book.next() << c.VerifyWork
    result = CheckResult("tests", status, "told so", 1)
    assert book >> delivery.WorkVerified("t-1", "another key", "an earlier head", "tree", True, results=(result,))
    assert (book.flow().stage, book.flow().work.evidence) == ("finishing", None)


def test_where_nothing_is_to_be_checked_and_nothing_lands_it_closes_as_ever() -> None:
    book = book_of(config=landing(mode="branch"))
    (book >> book.reports()).answered()
    assert (book.flow().stage, book.flow().work.landing) == ("closed", None)


def test_the_base_is_the_one_that_is_set_or_the_one_that_was_checked_out() -> None:
    book = finished(book_of(config=landing(base="release", method="squash")))
    command = book.made.jobs[0]
    assert isinstance(command, c.IntegrateWork)
    assert (command.onto, command.method) == ("release", "squash")


def test_without_a_branch_to_land_on_nothing_is_begun() -> None:
    book = Playbook(ONE, config=own(), tree=replace(TREE, branch=None)).looked()
    assert (book.flow().stage, book.flow().code) == ("idle", "no_base")
    (book >> delivery.TreeSeen(TREE)).answered()
    assert book.flow().work.own.onto == "main"  # type: ignore[union-attr]


def test_what_was_begun_without_a_branch_to_land_on_is_a_persons() -> None:
    book = book_of(config=landing(mode="branch"), tree=replace(TREE, branch=None))
    book >> start(config=own())[4]
    (book >> book.reports()).answered()
    assert (book.flow().stage, book.flow().code) == ("parked", "landing_base")


# --- what a person is always asked about --------------------------------------------------------------------------


def sealed(book: Playbook, *flags: str) -> Playbook:
    """What the run left touches something."""
    book.left = []
    seal = book.dropped()
    assert isinstance(seal, c.SealTree)
    book >> delivery.TreeSealed("t-1", seal.run, seal.key, f"head of {seal.run}", "7ree", ("head",), flags=flags)
    return book


def test_work_on_what_makes_later_work_trusted_asks_a_person_whatever_the_policy_says() -> None:
    book = book_of()
    book >> book.reports()
    sealed(book, "size", "ci") << like(facts_issues.PersonAsked, about="change", human_phase=False)
    assert "touches ci" in book.flow().why
    book.answered()
    assert not [job for job in book.made.done if isinstance(job, c.IntegrateWork)]
    book >> book.seen(add=("human:approved",)) << ...
    book >> book.next() << facts_issues.PersonAnswered << like(facts_issues.IssueFinished, onto="main")
    assert book.answered().flow().stage == "closed"


def test_work_that_stays_on_its_branch_is_asked_about_just_so() -> None:
    book = book_of(config=landing(mode="branch"))
    book >> book.reports()
    sealed(book, "agent_instructions") << like(facts_issues.PersonAsked, about="change")
    assert "May this be closed?" in book.flow().question.text  # type: ignore[union-attr]
    book.answered()
    assert (book >> book.seen(add=("human:approved",))).answered().flow().stage == "closed"


def test_a_person_who_does_not_want_it_has_it_worked_on_again() -> None:
    book = book_of()
    book >> book.reports()
    sealed(book, "rules")
    book.answered()
    book >> book.seen(add=("human:changes_requested",)) << ...
    book >> book.next() << facts_issues.PersonAnswered << facts_issues.CycleBegan
    book << like(facts_issues.PhaseEntered, phase="implement")


def test_each_work_that_touches_such_things_is_asked_about() -> None:
    book = book_of()
    book.made.base.goes_wrong("t-1", "conflict")
    book >> book.reports()
    sealed(book, "ci")
    book.answered()
    (book >> book.seen(add=("human:approved",))).answered()
    assert (book.flow().stage, book.flow().visit) == ("work", 2)
    book >> book.reports()
    sealed(book, "ci") << like(facts_issues.PersonAsked, about="change")


def test_other_flags_ask_nobody() -> None:
    book = book_of()
    book >> book.reports()
    sealed(book, "size", "secrets") << c.IntegrateWork


def test_what_a_human_phase_approved_is_not_asked_again() -> None:
    book = book_of(HUMAN)
    book >> book.reports()
    sealed(book, "ci")
    book.answered()
    assert book.flow().question.human_phase  # type: ignore[union-attr]
    book >> book.seen(add=("human:approved",)) << ...
    book >> book.next() << facts_issues.PersonAnswered << facts_issues.IssueFinished << c.IntegrateWork


def test_an_approval_of_earlier_work_is_none_of_later_work() -> None:
    book = book_of(HUMAN)
    book >> book.reports()
    sealed(book, "ci")
    book.answered()
    book.made.base.goes_wrong("t-1", "conflict")
    assert (book >> book.seen(add=("human:approved",))).answered().flow().phase == "implement"
    assert book.flow().work.own.approved == "head of t-1/implement.1.1"  # type: ignore[union-attr]
    book >> book.reports()
    sealed(book, "ci")
    assert book.flow().work.own.approved != book.flow().work.own.head  # type: ignore[union-attr]


# --- people, and other lives --------------------------------------------------------------------------------------


def test_nothing_moves_while_it_is_not_known_whose_the_issue_is() -> None:
    book = finished(book_of())
    book.made.jobs, book.left = [], []
    key = book.flow().open[0].key
    book >> tracker.IssueGone("t-1", book.world.seq) << ...
    head = "head of t-1/implement.1.1"
    book >> delivery.WorkIntegrated("t-1", key, head, "c0ffee", "f00d", "7ree")
    assert not [body for body in book.left if isinstance(body, c.MoveBase)]


def test_who_closes_it_meanwhile_has_closed_it() -> None:
    book = finished(book_of())
    book.made.jobs, book.left = [], []
    key = book.flow().open[0].key
    book >> book.seen(status="closed") << like(facts_issues.IssueClosed, by="somebody") << ...
    assert book >> delivery.WorkIntegrated("t-1", key, "head", "c0ffee", "f00d", "7ree")
    assert book.flow().work.landing is None


def test_another_start_goes_on_where_the_last_ended() -> None:
    book = finished(book_of())
    book.made.jobs, book.left = [], []
    (open_before,) = book.flow().open
    book >> start(config=own())[1]
    assert book.flow().open == (open_before,)


def test_work_of_a_lost_state_folder_lands_from_its_branch() -> None:
    book = Playbook(HUMAN, issues=(), config=own(), tree=TREE)
    book.made.heads["ashep/t-1"] = "head of an earlier life"
    book.made.open(
        "t-1", "phase:look", "needs:human_approval", status="blocked", assignee=ME,
        stamp=Stamp("another", 7, "t-1/look.1.1", 1, 1, 1),
    )  # fmt: skip
    book.looked()
    assert (book.flow().stage, book.flow().work.own.branch) == ("person", "ashep/t-1")  # type: ignore[union-attr]
    book >> book.seen(add=("human:approved",)) << ...
    book >> book.next() << facts_issues.PersonAnswered << facts_issues.IssueFinished
    book << like(c.PrepareTree, branch="ashep/t-1", run="")
    assert book.answered().flow().stage == "closed"
    assert book.made.base.landed == {"t-1": ["head of an earlier life"]}


# --- nobody keeps the queue ---------------------------------------------------------------------------------------


def two(*wrong: str) -> Playbook:
    """Two that are finished, of which the first one's base is not moved for these reasons."""
    book = through(book_of(issues=("t-1", "t-2")), *wrong)
    book >> book.reports(name="t-2")
    return book.answered()


@pytest.mark.parametrize("code", ["dirty", "locked", "failed"])
def test_whoever_waits_to_land_lets_those_behind_it_land(code: str) -> None:
    book = two(code)
    assert (book.flow("t-1").code, book.flow("t-2").stage) == (f"landing_{code}", "closed")
    assert book.made.base.landed == {"t-2": ["head of t-2/implement.1.1"]}
    assert (book >> book.later(60)).answered().flow("t-1").stage == "closed"
    assert list(book.made.base.landed) == ["t-2", "t-1"]


def test_whoever_may_try_again_waits_for_the_one_that_is_at_it() -> None:
    book = through(book_of(CHECKED, issues=("t-1", "t-2")), "dirty")
    book >> book.reports(name="t-2") << ...
    for _ in range(4):  # the seal, the phase's own verification, the integration, and what checks it
        book >> book.next() << ...
    assert isinstance(book.made.jobs[0], c.MoveBase)
    book >> book.later(60)
    assert book, "two would land at once"
    assert account(book.world, "t-1").code == "landing_queue"
    book >> book.next() << facts_issues.CommentWanted << like(c.MoveBase, issue="t-1")
    assert book << like(c.PostComment, issue="t-2")
    book.answered()
    assert (book.flow("t-1").stage, book.flow("t-2").stage) == ("closed", "closed")


def test_an_effect_that_fails_keeps_nobody_else_from_landing() -> None:
    book = book_of(issues=("t-1", "t-2"))
    finished(book, "t-1")
    assert isinstance(book.made.jobs[0], c.IntegrateWork)
    book.left = []
    book >> book.failed() << ...
    finished(book, "t-2")
    assert like(c.IntegrateWork, issue="t-2").fits(book.made.jobs[-1])


def test_every_one_that_waits_for_the_checkout_is_tried_when_that_changes() -> None:
    book = book_of(issues=("t-1", "t-2"))
    for name in ("t-1", "t-2"):
        through(book, "dirty", name=name)
    assert {book.flow(name).code for name in ("t-1", "t-2")} == {"landing_dirty"}
    (book >> delivery.TreeSeen(replace(TREE, untracked=("new",)))).answered()
    assert {book.flow(name).stage for name in ("t-1", "t-2")} == {"closed"}


def test_what_git_fails_to_write_is_tried_a_few_times_and_then_a_persons() -> None:
    book = two(*["failed"] * MOST_FAILED)
    waits: list[float] = []
    while (landing := book.flow().work.landing) is not None and landing.due is not None:
        waits.append((landing.due - book.now).total_seconds())
        (book >> book.later(waits[-1])).answered()
    assert waits == [60, 120, 240, 480]
    assert (book.flow().stage, book.flow().code) == ("parked", "landing_unwritten")
    assert "told so" in book.flow().why
    assert book.flow("t-2").stage == "closed"


def test_only_failures_in_a_row_are_given_up() -> None:
    book = two(*["failed", "failed", "dirty"] * 3)
    while book.flow().work.landing is not None and book.flow().work.landing.due is not None:  # type: ignore[union-attr]
        book >> book.later((book.flow().work.landing.due - book.now).total_seconds())  # type: ignore[operator, union-attr]
        book.answered()
    assert book.flow().stage == "closed"


def test_names_that_git_writes_to_no_work_tree_lead_back_to_the_writer() -> None:
    book = two("names")
    flow = book.flow()
    assert (flow.stage, flow.phase, flow.visit, flow.work.landing) == ("work", "implement", 2, None)
    assert flow.work.flaw is not None
    assert (flow.work.flaw.kind, flow.work.flaw.why, flow.work.flaw.onto) == ("names", "told so", "")
    assert book.flow("t-2").stage == "closed"


def sealed_with(book: Playbook, *names: str, name: str = "t-1") -> None:
    """What its run left is sealed, and holds these names."""
    (seal,) = [job for job in book.made.jobs if isinstance(job, c.SealTree) and job.issue == name]
    book.made.jobs.remove(seal)
    head = f"head of {seal.run}"
    book.left = []
    book >> delivery.TreeSealed(name, seal.run, seal.key, head, f"tree of {head}", (head,), unwritable=names)


@pytest.mark.parametrize("policy", [ONE, CHECKED, HUMAN, TWO])
def test_names_that_would_not_land_are_told_to_the_writer_when_they_are_sealed(policy: Any) -> None:
    book = book_of(policy)
    book >> book.reports()
    sealed_with(book, "git~1")
    flow = book.flow()
    assert (flow.stage, flow.phase, flow.visit, flow.work.verifying) == ("work", "implement", 2, "")
    assert flow.work.flaw is not None
    assert flow.work.flaw.kind == "names"
    assert "git~1" in flow.work.flaw.why
    entered = book.bodies(facts_issues.PhaseEntered)
    assert "git~1" in entered[-1].why
    book.answered()
    book >> book.reports()
    sealed_with(book)
    assert book.flow().work.flaw is None, "it is mended"


def test_a_failed_attempt_is_told_of_the_names_in_its_next_one() -> None:
    book = book_of()
    book >> book.reports("failed")
    sealed_with(book, "git~1")
    flow = book.flow()
    assert (flow.stage, flow.phase, flow.visit, flow.work.flaw and flow.work.flaw.kind) == (
        "work",
        "implement",
        1,
        "names",
    )


def test_names_that_nobody_mends_end_with_a_person() -> None:
    book = book_of(policy_of(Phase(name="implement", max_visits=2)))
    for _ in range(2):
        book >> book.reports()
        sealed_with(book, "git~1")
        book.answered()
    assert (book.flow().stage, book.flow().code) == ("parked", "max_visits")
    assert "git~1" in book.flow().why


def test_another_gits_lock_is_waited_for_until_it_would_be_taken_away_and_is_named() -> None:
    book = finished(book_of())
    began, tried = book.now, 0
    while book.flow().stage == "finishing":
        command = next(job for job in book.made.jobs if isinstance(job, c.IntegrateWork))
        book.made.jobs.remove(command)
        book.left = []
        lock = "/p/.git/refs/ashep/landing/x.lock"
        book >> tracker.EffectFailed("t-1", command.key, f"{lock} is there", infra=True, lock=lock)
        tried += 1
        if book.flow().stage == "finishing":
            assert lock in account(book.world, "t-1").reason
            due = book.flow().effect_after
            assert due is not None
            book.left = []
            book >> book.later((due - book.now).total_seconds())
    assert (book.flow().stage, book.flow().code) == ("parked", "infrastructure")
    assert 15 * 60 <= (book.now - began).total_seconds() < 17 * 60
    assert tried > 10


def test_what_could_not_be_cleaned_up_is_a_note() -> None:
    book = finished(book_of())
    book.left = []
    book >> book.next()
    move = book.made.jobs.pop(0)
    assert isinstance(move, c.MoveBase)
    book.left = []
    landed = delivery.WorkLanded("t-1", move.key, "main", move.head, move.new, told=("x.lock stays",))
    book >> landed << facts_issues.CommentWanted << c.PostComment
    assert "Note: x.lock stays." in book.flow().comments[0][1]
    assert book.answered().flow().stage == "closed"
