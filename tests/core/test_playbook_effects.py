"""Playbooks of effects: order, failure, refusal, restart."""

from dataclasses import replace
from datetime import timedelta

import pytest

from ashep.core.analysis.issue_status import account
from ashep.core.facts import commands as c
from ashep.core.facts import delivery, issues, resources, runs, tracker
from ashep.core.policy.policies import Phase
from ashep.core.reconcile.outstanding import outstanding
from ashep.core.reconcile.step import step
from ashep.core.runs.prompt_commands import prompt_ids
from tests.core.given import INSTANCE, T0, policy_of, up
from tests.core.playbook import Playbook, like

READ = policy_of(Phase(name="review"), Phase(name="arbitrate"))


@pytest.mark.promise("E5")
def test_a_failed_effect_is_tried_again_with_the_same_key_after_a_growing_while() -> None:
    book = Playbook(READ)
    book.made.look()
    claim = book.made.jobs[0]
    for tries, wait in enumerate((1, 2, 4, 8, 16, 32, 60, 60), 1):
        assert book >> book.failed()
        assert account(book.world, "t-1").code == "effect"
        assert book.later(wait - 0.5) == []
        assert book >> book.later(0.5) << like(c.ClaimIssue, key=claim.key, tries=tries)
    assert book.run().attempt == 1
    book >> book.next() << like(c.OpenSession, tries=0)
    assert (book.flow().infra, book.flow().infra_began) == (0, None)


@pytest.mark.promise("E5")
def test_ten_failures_in_a_row_park_but_not_within_two_minutes_and_burn_no_attempt() -> None:
    book = Playbook(READ).looked()
    book >> book.reports() << ...
    for _ in range(9):
        assert book >> book.failed()
        assert book >> book.later(60) << c.WriteIssue
    book >> book.failed() << like(runs.RunEnded, state="aborted") << like(issues.IssueParked, code="infrastructure")
    assert book << issues.CommentWanted
    assert book.flow().failures == 0
    assert book >> book.later(60) << like(c.WriteIssue, kind="park")
    assert book >> book.failed()  # it is parked already


def test_a_repeated_failure_shows_what_fails_and_why() -> None:
    book = Playbook(READ)
    book.made.look()
    claim = book.dropped()
    book >> tracker.EffectFailed("t-1", claim.key, "database is locked", infra=True)
    assert account(book.world, "t-1").reason == "cannot claim it (failed once, tried again): database is locked"
    assert book >> book.later(1) << c.ClaimIssue
    book.made.jobs.pop()
    book >> tracker.EffectFailed("t-1", claim.key, "x" * 4000, infra=True)
    reason = account(book.world, "t-1").reason
    assert reason.startswith("cannot claim it (failed 2 times, tried again): xxx")
    assert len(reason) < 400


def test_what_parks_for_its_failures_says_what_failed() -> None:
    book = Playbook(READ)
    book.made.look()
    flow = replace(book.flow(), infra=9, infra_began=book.now - timedelta(seconds=120))
    book.made.world = replace(book.world, flows=book.world.flows.insert("t-1", flow))
    book >> book.failed() << ...
    assert book.flow().why == "cannot claim it (failed 10 times in a row): no answer"


def test_ten_failures_in_a_row_within_two_minutes_do_not_park_yet() -> None:
    for began, follows in ((119, []), (120, [runs.RunEnded, issues.IssueParked, issues.CommentWanted])):
        book = Playbook(READ)
        book.made.look()
        flow = replace(book.flow(), infra=9, infra_began=book.now - timedelta(seconds=began))
        book.made.world = replace(book.world, flows=book.world.flows.insert("t-1", flow))
        book >> book.failed()
        assert [type(body) for body in book.left] == follows


def test_an_answer_that_nobody_waits_for_says_nothing() -> None:
    book = Playbook(READ).looked()
    assert book >> tracker.EffectFailed("t-1", "t-1/review.1.1/nothing", "no", infra=False)
    assert book >> tracker.EffectFailed("t-1", "t-1/nothing", "no", infra=True)
    assert book.flow().infra == 0


@pytest.mark.promise("T9")
def test_a_refusal_of_the_agent_server_fails_the_attempt() -> None:
    book = Playbook(READ)
    book.made.look()
    book >> book.next() << ...
    assert book >> book.failed(infra=False) << like(runs.RunEnded, state="failed") << issues.RetryScheduled


def test_a_refused_write_leaves_the_issue() -> None:
    book = Playbook(READ).looked()
    book >> book.reports() << ...
    write = book.dropped()
    book >> tracker.WriteRefused("t-1", write.key, "no such status") << like(runs.RunEnded, state="aborted")
    assert book << like(issues.IssueLeft, code="write_refused")
    assert account(book.world, "t-1").code == "write_refused"


def test_a_refused_close_parks() -> None:
    book = Playbook(policy_of(Phase(name="review"))).looked()
    book >> book.reports() << runs.RunEnded << issues.IssueFinished << like(c.WriteIssue, kind="close")
    write = book.dropped()
    book >> tracker.WriteRefused("t-1", write.key, "an open blocker") << like(issues.IssueParked, code="close_refused")
    assert book << issues.CommentWanted << like(c.WriteIssue, kind="park")


def test_refused_comments_labels_creations_and_stops_are_not_asked_for_again() -> None:
    book = Playbook(policy_of(Phase(name="review"), Phase(name="implement"))).looked()
    book >> book.reports(created_issues=[{"title": "more"}]) << ...
    assert isinstance(book.made.jobs[0], c.CreateIssue)
    book >> book.failed(infra=False)
    assert not book.flow().creations
    book.answered() >> book.seen(add=["ashep:excluded"])
    book.left = []
    stop = next(job for job in book.made.jobs if isinstance(job, c.StopTurn))
    book.made.jobs.remove(stop)
    book >> tracker.EffectFailed("t-1", stop.key, "no such session", infra=False) << like(c.ReadTree, moment="after")
    assert book
    book.made.jobs.reverse()
    assert book >> book.failed(infra=False)
    assert book.run().settled
    asked = Playbook().until("human_review")
    asked >> asked.seen(who="ashep-agent", add=["human:approved"]) << ...
    asked >> asked.next() << ...
    assert asked >> asked.failed(infra=False) << c.PostComment
    assert asked >> asked.failed(infra=False)
    assert not asked.flow().take_off
    assert not asked.flow().comments


def test_a_read_that_is_refused_counts_as_a_failure_of_the_machine() -> None:
    book = Playbook().until("human_review")
    book >> book.seen(add=["human:approved"]) << ...
    assert book >> book.failed(infra=False)
    assert book >> book.later(1) << like(c.ReadAnswer, tries=1)


def test_nothing_goes_to_a_session_while_the_server_is_away() -> None:
    book = Playbook(READ)
    book.made.look()
    book.made.turn(resources.RunnerSeen("away", "refused"))
    assert book >> book.next()
    assert account(book.world, "t-1").phase == "review"
    assert book >> up() << c.OpenSession


@pytest.mark.promise("E2")
def test_comments_are_posted_after_the_posture_and_before_a_close() -> None:
    book = Playbook().until("arbitrate")
    book >> book.reports(verdict="pass") << ...
    assert book >> book.next() << like(c.PostComment, name=book.flow().comments[0][0])
    limited = Playbook(policy_of(Phase(name="review"), max_created_issues=0)).looked()
    limited >> limited.reports(created_issues=[{"title": "more"}]) << runs.RunEnded << issues.CommentWanted
    limited << issues.IssueFinished
    assert limited << c.PostComment
    assert limited >> limited.next() << like(c.WriteIssue, kind="close")


@pytest.mark.promise("E1")
def test_at_most_one_write_to_an_issue_is_open() -> None:
    book = Playbook().until("arbitrate")
    book >> book.reports(verdict="pass") << runs.RunEnded << issues.PersonAsked << issues.CommentWanted << c.WriteIssue
    assert book >> book.next() << c.PostComment
    assert book >> book.later(7 * 86400) << like(issues.IssueParked, code="question_deadline") << issues.CommentWanted
    assert book >> book.next() << like(c.WriteIssue, kind="park")


@pytest.mark.promise("Q1")
def test_the_question_names_the_commits_and_what_was_left() -> None:
    book = Playbook(policy_of(Phase(name="implement"), Phase(name="review"))).looked()
    run = book.run().id
    book >> book.reports(needs_human=True) << ...
    read = book.dropped()
    assert isinstance(read, c.ReadTree)
    assert read.since == "c0ffee"
    from ashep.core.facts.delivery import Tree

    dirty = Tree(True, "beef", (("b.py", "1"), ("a.py", "1")))
    book >> delivery.TreeSeen(dirty, "after", "t-1", run, ("beef",)) << ...
    book >> book.next() << c.PostComment
    (post,) = book.made.jobs
    assert isinstance(post, c.PostComment)
    assert post.text.endswith("- commit beef\n- left uncommitted: a.py\n- left uncommitted: b.py")


def test_a_question_names_no_more_files_than_a_comment_can_hold() -> None:
    book = Playbook().until("arbitrate")
    for number in range(2000):
        book.made.world = replace(
            book.world, left_over=book.world.left_over.insert(f"{'x' * 60}/{number:04d}.py", ("cafe", "t-1"))
        )
    book >> book.reports(verdict="pass") << ...
    post = next(body for body in [*(book >> book.next()).left] if isinstance(body, c.PostComment))
    assert len(post.text) < 20_000
    assert post.text.endswith("- left uncommitted: 1950 more")
    assert book.flow().work.base == "c0ffee"


def test_parking_is_told_although_the_server_cannot_be_stopped() -> None:
    book = Playbook().looked()
    book.made.turn(resources.RunnerSeen("away", "refused"))
    book >> book.seen(add=["ashep:excluded"]) << runs.RunEnded << issues.IssueGivenBack
    assert book << like(c.WriteIssue, kind="give_back")
    book.answered() >> up() << c.StopTurn
    assert book


def test_nothing_is_lacking_while_an_intent_is_open_and_all_of_it_after_a_start() -> None:
    book = Playbook(READ, issues=("t-1", "t-2"))
    book.made.look()
    assert outstanding(book.world, "t-1") == []
    assert outstanding(book.world, "unknown") == []
    world, entries = step(book.world, [resources.DaemonStarted(2, "0.1.0")], T0, book.world.seq + 1, everything=True)
    assert [type(entry.body) for entry in entries] == [resources.DaemonStarted]
    assert [command.key for command in world.flows["t-1"].open] == [
        command.key for command in book.world.flows["t-1"].open
    ]


def test_time_never_goes_back() -> None:
    book = Playbook(READ).looked()
    world, (entry,) = step(book.world, [resources.DaemonStopped("x")], T0 - timedelta(days=1), book.world.seq + 1)
    assert entry.at == book.world.now == world.now


@pytest.mark.promise("T1")
def test_a_prompts_ids_are_derived_and_sort_by_time() -> None:
    first = prompt_ids(INSTANCE, "ses", "t-1/p.1.1", 1, 0, T0)
    assert first == prompt_ids(INSTANCE, "ses", "t-1/p.1.1", 1, 0, T0)
    others = [
        prompt_ids("ab", "ses", "t-1/p.1.1", 1, 0, T0),
        prompt_ids(INSTANCE, "other", "t-1/p.1.1", 1, 0, T0),
        prompt_ids(INSTANCE, "ses", "t-1/p.1.2", 1, 0, T0),
        prompt_ids(INSTANCE, "ses", "t-1/p.1.1", 2, 0, T0),
        prompt_ids(INSTANCE, "ses", "t-1/p.1.1", 1, 1, T0),
    ]
    assert len({first, *others}) == 6
    later = prompt_ids(INSTANCE, "ses", "t-1/p.1.1", 2, 0, T0 + timedelta(milliseconds=1))
    assert first < later
    assert first[0].startswith("msg_")
    assert first[1].startswith("prt_")


@pytest.mark.promise("C1")
def test_a_timer_whose_wait_no_longer_stands_is_ignored() -> None:
    book = Playbook(READ).looked()
    assert book >> resources.TimerDue("deadline:t-1", T0)
    assert book >> resources.TimerDue("wait:t-1", T0)
    assert book >> resources.TimerDue("question:nobody", T0)
    assert not book.run().watch.overdue
