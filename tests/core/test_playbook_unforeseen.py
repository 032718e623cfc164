"""Playbooks of what nobody foresaw: an effect that fails so parks its issue, and what fails then, too, is bounded."""

from typing import get_args

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import given as drawn
from hypothesis import strategies as st

from ashep.core.analysis.issue_status import account
from ashep.core.facts import commands as c
from ashep.core.facts import delivery, issues, resources, runs, tracker
from ashep.core.facts.vocabulary import TreeLeft
from ashep.core.policy.policies import Phase
from ashep.core.state.pending_intents import FAULT_LIMIT
from tests.core import given
from tests.core.given import policy_of
from tests.core.laws import at_rest
from tests.core.lives import live
from tests.core.playbook import Playbook, like
from tests.core.world_of import MadeUp
from tests.full import amount, half

READ = policy_of(Phase(name="review"), Phase(name="arbitrate"))


def fault(command: c.Command, error: str = "RecursionError: maximum recursion depth exceeded") -> tracker.EffectFailed:
    assert not isinstance(command, c.SendNotice)
    return tracker.EffectFailed(command.issue, command.key, error, infra=True, unforeseen=True)


@pytest.mark.promise("E5")
def test_an_effect_that_fails_in_a_way_that_nobody_foresaw_parks_its_issue_at_once_and_retry_starts_it() -> None:
    book = Playbook(READ).looked()
    book >> book.reports() << ...
    book >> fault(book.dropped()) << like(runs.RunEnded, state="aborted") << like(issues.IssueParked, code="unforeseen")
    book << issues.CommentWanted
    assert "cannot write to it, and nobody foresaw why: RecursionError: maximum" in book.flow().why
    assert book >> book.later(1) << like(c.WriteIssue, kind="park")
    book.answered()
    assert book.flow().failures == 0
    assert "nobody foresaw why: RecursionError" in next(
        one.text for one in book.made.done if isinstance(one, c.PostComment)
    )
    assert "ashep:parked" in book.made.tracker["t-1"].labels
    book >> book.seen(drop=["ashep:parked"]) << ...
    assert book.answered().flow().stage == "work"


@pytest.mark.promise("E5")
def test_a_park_that_cannot_be_told_either_is_given_up_until_somebody_changes_the_issue_or_ashep_starts() -> None:
    book = Playbook(READ).looked()
    book >> book.reports() << ...
    for _ in range(1 + FAULT_LIMIT):
        book >> fault(book.dropped()) << ...
        book >> book.later(60) << ...
    assert not [job for job in book.made.jobs if isinstance(job, c.WRITES)]
    assert not book.flow().busy
    assert (book.flow().stage, account(book.world, "t-1").code) == ("parked", "unforeseen")
    assert book >> book.later(86400)
    book.made.turn(*book.made.begun[1:], everything=True)
    assert any(isinstance(job, c.WriteIssue) and job.kind == "park" for job in book.made.jobs)


@pytest.mark.parametrize("times", [1, FAULT_LIMIT])
def test_what_a_run_left_is_sealed_after_all_or_said_to_be_left(times: int) -> None:
    tree = delivery.Tree(True, "c0ffee", branch="main")
    book = Playbook(policy_of(Phase(name="implement")), config=given.settings(workspace="worktree"), tree=tree).looked()
    book >> book.reports() << ...
    failed = 0
    while book.made.jobs:
        job = book.made.jobs.pop(0)
        if isinstance(job, c.SealTree) and failed < times:
            failed += 1
            book >> fault(job, "OSError: [Errno 36] File name too long") << ...
        else:
            book.made.carry_out(job)
        book.left = []
        book >> book.later(60) << ...
    assert (book.flow().stage, book.run().settled) == ("parked", True)
    assert (len(book.bodies(delivery.TreeSealed)), len(book.bodies(TreeLeft))) == ((1, 0) if times == 1 else (0, 1))


KINDS = sorted({*get_args(c.IssueCommand)}, key=lambda kind: kind.__name__)
LIVES = settings(max_examples=amount(1, 60), deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.promise("E5")
@pytest.mark.parametrize("kind", half(KINDS), ids=lambda kind: kind.__name__)
@LIVES
@drawn(st.integers(0, 2**32))
def test_what_always_fails_strands_no_issue(kind: type, seed: int) -> None:
    made = live(seed, 100, broken=kind)
    made.settle()
    rest(made)


@pytest.mark.promise("E5")
@settings(LIVES, max_examples=amount(3, 500))
@drawn(st.integers(0, 2**32))
def test_what_fails_now_and_then_strands_no_issue(seed: int) -> None:
    made = live(seed, unforeseen=0.05)
    made.settle()
    at_rest(made)


def rest(made: MadeUp) -> None:
    """All is at rest, and who is parked stands so in the tracker, or is shown as given up."""
    at_rest(made)
    failed = [entry.body for entry in made.entries if isinstance(entry.body, tracker.EffectFailed)]
    keys = [fact.key for fact in failed if fact.unforeseen]
    afresh = (resources.DaemonStarted, tracker.IssueSeen)
    more = sum(isinstance(entry.body, afresh) for entry in made.entries)
    assert all(keys.count(key) <= FAULT_LIMIT * (1 + more) for key in keys)
