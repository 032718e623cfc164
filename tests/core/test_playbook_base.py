"""Conversations about checks that fail on the base, before any work: no work is to blame for them."""

from dataclasses import replace
from typing import Any

import pytest

from ashep.core.analysis.issue_status import account, is_held_up, is_idle
from ashep.core.delivery.base_checks import base_revisions, failing_on_base
from ashep.core.delivery.closing_metadata import escalation_of
from ashep.core.facts import commands as c
from ashep.core.facts import delivery, issues, runs
from ashep.core.facts.delivery import BaseChecked, Cause, CheckResult
from ashep.core.facts.resources import DaemonStarted
from ashep.core.policy.checks import TestPass, TestPassCheck
from ashep.core.policy.landing import ForgeSettings
from ashep.core.policy.policies import Phase, Policy, Verify
from tests.core.given import adopted, policies, policy_of
from tests.core.playbook import Playbook, like
from tests.core.test_playbook_verifying import book_of, found, result, sealed
from tests.core.test_playbook_workspaces import TREE, own

pytestmark = pytest.mark.promise("Z7")

SUITE = TestPassCheck(id="suite", type="test_pass", verify=TestPass(command=("make", "test")))
CHECKED = Phase(name="implement", verify=Verify(max_attempts=2), checks=(SUITE,), next={"success": "review"})


def policy(word: Any = "ask") -> Policy:
    made = policy_of(CHECKED, Phase(name="review"))
    return made.model_copy(update={"on_base_failure": word})


ALONE = policy_of(CHECKED.model_copy(update={"next": {"success": "close"}}))


def here(name: str = "suite", cause: Cause = "network") -> CheckResult:
    """What a check found that fails on the base, too."""
    return CheckResult(name, "failed", "exit code 1; expected 0", 1, cause=cause, on_base=True)


# --- after an attempt ---------------------------------------------------------------------------------------------


def test_what_fails_on_the_base_too_burns_no_attempt_and_asks() -> None:
    book = sealed(book_of(policy()))
    book >> found(book, here(), result("passed", "lint"))
    book << like(issues.PersonAsked, about="proof", phase="implement", disbelieved="t-1/implement.1.1") << ...
    question = book.flow().question
    assert question is not None
    assert "no work is to blame" in question.text
    assert "suite fails on the base, too (likely cause: no network in checks)" in question.text
    assert book.flow().work.unproven == 0
    (text,) = (one.text for one in book.bodies(issues.CommentWanted) if one.name.startswith("ask."))
    assert "verification.network: true" in text
    assert (escalation_of(book.flow(), 2) or {})["reason"] == "base_failure"
    book.answered()
    book >> book.seen(add=("human:approved",)) << ...
    book >> book.next() << like(issues.PersonAnswered, answer="approved") << issues.CycleBegan
    book << like(issues.PhaseEntered, phase="review")
    assert book.flow().work.waived == ("suite",)


def test_what_the_work_is_to_blame_for_burns_the_attempt_and_says_what_else_fails() -> None:
    book = sealed(book_of(policy()))
    book >> found(book, here(), result("failed", "lint"))
    book << like(issues.RetryScheduled, disbelieved="t-1/implement.1.1") << ...
    assert "suite fails on the base, too" in book.flow().why
    assert "attempt 1 of 2" in book.flow().why


def test_a_policy_ignores_what_fails_on_the_base_too() -> None:
    book = sealed(book_of(policy("ignore")))
    fact = found(book, here(), result("passed", "lint"))
    book >> replace(fact, ignore=True) << like(issues.PhaseEntered, phase="review") << ...
    assert "suite fails on the base, too" in book.bodies(issues.PhaseEntered)[-1].why


def test_unchanged_work_is_the_works_own_fault_whatever_fails_on_the_base() -> None:
    book = sealed(book_of(policy()))
    book >> found(book, here(), changed=False) << issues.RetryScheduled << ...
    assert book.flow().work.unproven == 1


def test_work_that_only_the_base_keeps_from_landing_asks_and_lands_once_a_person_lets_it() -> None:
    """Somebody broke the base meanwhile: who wrote the work could not mend that."""
    book = sealed(book_of(ALONE))
    book >> found(book, result("passed", "suite")) << issues.IssueFinished << ...
    book >> book.next() << ...
    book >> found(book, here())
    book << like(issues.PersonAsked, about="base", human_phase=False) << ...
    assert "cannot land, and no work is to blame" in book.flow().why
    book.answered()
    book >> book.seen(add=("human:approved",)) << ...
    book >> book.next() << like(issues.PersonAnswered, answer="approved") << like(issues.IssueFinished, verify=True)
    book.left = []
    while not isinstance(book.made.jobs[0], c.VerifyWork):
        book >> book.next() << ...
    book >> found(book, here()) << ...
    assert any(isinstance(job, c.MoveBase) for job in book.made.jobs)


def test_a_no_sends_it_back_to_who_wrote_it() -> None:
    book = sealed(book_of(ALONE))
    book >> found(book, result("passed", "suite")) << ...
    book >> book.next() << ...
    book >> found(book, here()) << ...
    book.answered()
    book >> book.seen(add=("human:changes_requested",)) << ...
    book >> book.next() << like(issues.PersonAnswered, answer="changes_requested") << issues.CycleBegan
    book << like(issues.PhaseEntered, phase="implement")


# --- what stands in the tracker meanwhile -------------------------------------------------------------------------


@pytest.mark.promise("W5")
def test_each_attempt_that_fell_short_is_noted_while_work_goes_on() -> None:
    book = sealed(book_of(policy()))
    book >> found(book, result()) << issues.RetryScheduled << like(c.WriteIssue, issue="t-1", kind="work")
    assert book >> book.next(), "at once, whenever the next attempt begins"
    assert not book.flow().unwritten


# --- before any work ----------------------------------------------------------------------------------------------


def at(commit: str, *results: CheckResult) -> BaseChecked:
    """What the checks of the policy found on main."""
    return BaseChecked("standard", "main", commit, delivery.Verification(commit, "7ree", "ab" * 32, results, True))


FAILS = at("c0ffee" * 6, here(), result("passed", "lint"))
HOLDS = at("beef" * 10, result("passed", "suite"))


def waiting(word: Any = "hold", **more: Any) -> Playbook:
    return Playbook(policy(word), tree=TREE, config=own(), **{"bases": True, **more}).looked()


def test_a_policy_holds_its_issues_until_its_checks_pass_on_the_base() -> None:
    book = waiting()
    assert (book.flow().stage, book.flow().code) == ("idle", "base_unchecked")
    assert not is_idle(book.world), "that comes by itself"
    book >> FAILS << like(issues.IssueHeld, code="base_fails", of="standard")
    assert book
    assert "before any work: suite fails on the base, too (likely cause: no network in checks)" in book.flow().why
    assert is_idle(book.world)
    assert is_held_up(book.world), "somebody is to put it in order: no good end of a night"
    assert account(book.world, "t-1").state == "time"
    book >> HOLDS << issues.IssueTaken << ...
    assert book.flow().stage == "work"


@pytest.mark.parametrize("word", ["ask", "ignore"])
def test_no_other_policy_waits_for_that(word: str) -> None:
    book = waiting(word)
    assert book.flow().stage == "work"
    book = Playbook(policy(word), tree=TREE, config=own())
    book.made.turn(FAILS)
    assert book.looked().flow().stage == "work"


def test_a_daemon_that_does_not_look_holds_nobody_for_what_it_does_not_know() -> None:
    assert waiting(bases=False).flow().stage == "work"


def test_a_policy_without_such_checks_holds_nobody() -> None:
    book = waiting()
    bare = policy_of(CHECKED.model_copy(update={"checks": ()})).model_copy(update={"on_base_failure": "hold"})
    book >> adopted(policies(bare)) << ...
    assert book.flow().stage == "work"


def test_checks_that_cannot_be_run_have_not_passed() -> None:
    book = waiting()
    book >> BaseChecked("standard", "main", "", error="no room") << like(issues.IssueHeld, code="base_fails")
    assert "the checks of standard cannot be run on main: no room" in book.flow().why
    book >> HOLDS << issues.IssueTaken << ...


def test_what_was_found_before_the_policy_was_another_counts_for_nothing() -> None:
    book = waiting()
    book >> FAILS << ...
    other = policy_of(CHECKED, Phase(name="review"), Phase(name="look")).model_copy(update={"on_base_failure": "hold"})
    book >> adopted(policies(other)) << ...
    assert book.flow().code == "base_unchecked"
    assert not failing_on_base(book.world, "standard")
    known = book.world.bases["standard"].found
    assert known is not None, "the tree is still known"


def test_a_daemon_that_begins_looks_before_it_believes() -> None:
    book = waiting()
    book >> HOLDS << ...
    book.made.turn(DaemonStarted(1, "x", trees=True, bases=True))
    assert not book.world.bases["standard"].commit


def test_what_is_under_way_goes_on() -> None:
    book = waiting()
    book >> HOLDS << ...
    book.answered()
    book >> FAILS << ...
    book >> book.reports() << like(runs.RunEnded, state="succeeded") << ...
    assert book.flow().stage == "work"


# --- which commit it is -------------------------------------------------------------------------------------------


def test_the_base_is_where_issues_begin() -> None:
    book = book_of(policy())
    local, landing = "refs/heads/main", book.world.settings.landing
    assert base_revisions(book.world) == (local,)
    forge = ForgeSettings(type="github", repository="o/r", remote="up")
    begins = landing.model_copy(update={"mode": "pull_request", "forge": forge})
    behind = replace(book.world, settings=book.world.settings.model_copy(update={"landing": begins}))
    assert base_revisions(behind) == ("main@{upstream}", "refs/remotes/up/main", local)
    stays = begins.model_copy(update={"fetch": False})
    here = replace(behind, settings=behind.settings.model_copy(update={"landing": stays}))
    assert base_revisions(here) == (local,)
