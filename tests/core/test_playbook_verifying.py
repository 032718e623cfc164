"""Conversations about work that is looked into before anything follows from an agent's word."""

import json
from datetime import timedelta
from typing import Any

import pytest

from ashep.core.delivery.closing_metadata import escalation_of, notes_of
from ashep.core.facts import commands as c
from ashep.core.facts import delivery, issues, runs
from ashep.core.facts.delivery import UNTESTED, CheckResult
from ashep.core.policy.policies import Human, Phase, Takeover, Verify
from ashep.core.reconcile.observe import session_read
from ashep.core.state.delivery import UNCHANGED
from tests.core.given import adopted, policies, policy_of, settings, start
from tests.core.playbook import Playbook, like
from tests.core.test_playbook_workspaces import TREE, own

pytestmark = pytest.mark.promise("Z5")

VERIFIED = Phase(name="implement", verify=Verify(max_attempts=2), next={"success": "review"})
MERGE = Phase(name="merge", human=Human(ask="Merge this?"))
REVIEWED = Phase(name="review", verdicts=("approve",), next={"approve": "merge"})
TWO = policy_of(VERIFIED, Phase(name="review"))


def book_of(policy: Any = TWO, **more: Any) -> Playbook:
    """An issue whose implementer is at work in its own tree, and has changed something."""
    more["config"] = more.get("config") or own()
    book = Playbook(policy, tree=TREE, **more).looked()
    (book >> delivery.CriteriaAdopted("t-1", "", "")).answered()
    return book


def sealed(book: Playbook) -> Playbook:
    """The agent says success, and what it left is committed."""
    book.answered()
    book >> book.reports() << ...
    book >> book.next() << ...
    return book


def result(status: Any = "failed", name: str = "tests") -> CheckResult:
    return CheckResult(name, status, "told so", 1)


def found(book: Playbook, *results: CheckResult, changed: bool = True, tree: str = "7ree") -> delivery.WorkVerified:
    """What the verification that is asked for finds."""
    command = book.dropped()
    assert isinstance(command, c.VerifyWork)
    return delivery.WorkVerified(
        "t-1", command.key, command.commit, tree, changed, command.run, "ab" * 32, results, True, "cd" * 32
    )


def test_a_success_is_looked_into_before_anything_follows() -> None:
    book = book_of()
    book >> book.reports() << like(runs.RunEnded, state="succeeded")
    book << like(delivery.VerificationWanted, phase="implement")
    assert book << c.SealTree
    assert book >> book.next() << like(
        c.VerifyWork, run="t-1/implement.1.1", commit="head of t-1/implement.1.1", base="c0ffee", phase="implement",
        change=True, adopt=False,
    )  # fmt: skip
    assert (book.flow().wanted, book.flow().work.verifying) == (False, "t-1/implement.1.1")
    book >> found(book, result("passed")) << like(issues.PhaseEntered, phase="review") << runs.RunPlanned
    entered = next(entry.body for entry in book.made.entries if isinstance(entry.body, issues.PhaseEntered) and
                   entry.body.phase == "review")  # fmt: skip
    assert "1 of 1 checks passed in tree 7ree" in entered.why


def test_work_that_falls_short_goes_back_with_what_failed() -> None:
    book = sealed(book_of())
    book >> found(book, result(), result("passed", "lint"))
    book << like(issues.RetryScheduled, phase="implement", failures=0, disbelieved="t-1/implement.1.1")
    again = book.flow().why
    assert "these checks do not pass: tests; attempt 1 of 2" in again
    flaw = book.flow().work.flaw
    assert flaw is not None
    assert (flaw.kind, flaw.log) == ("checks", "cd" * 32)
    book.left = []
    book >> book.later(0) << like(runs.RunPlanned, run="t-1/implement.1.2")


def test_an_error_is_no_pass() -> None:
    book = sealed(book_of())
    book >> found(book, result("error")) << issues.RetryScheduled


TOLD = Phase(
    name="implement", verdicts=("done", "blocked"), must_pass=("done",), verify=Verify(max_attempts=2),
    next={"done": "review", "blocked": "ask"},
)  # fmt: skip
TIERS = policy_of(TOLD, Phase(name="review"), Phase(name="ask", human=Human(approved="implement")))


def says(book: Playbook, verdict: str) -> Playbook:
    """The agent ends with a verdict, and what it left is committed."""
    book.answered()
    book >> book.reports(verdict=verdict) << ...
    book >> book.next() << ...
    return book


@pytest.mark.promise("Z5")
def test_a_verdict_that_must_be_passed_is_looked_into_and_leads_where_it_leads() -> None:
    book = says(book_of(TIERS), "done")
    assert (book.flow().work.verifying, book.flow().phase) == ("t-1/implement.1.1", "implement")
    book >> found(book, result()) << like(issues.RetryScheduled, phase="implement", failures=0) << ...
    book >> book.later(0)
    book = says(book, "done")
    book >> found(book, result("passed"), tree="other") << like(issues.PhaseEntered, phase="review")


def test_any_other_verdict_is_believed() -> None:
    book = book_of(TIERS).answered()
    book >> book.reports(verdict="blocked") << like(runs.RunEnded, state="succeeded")
    book << like(issues.PersonAsked, phase="ask")


def test_a_person_lets_a_verdict_pass() -> None:
    book = says(book_of(TIERS), "done")
    book >> found(book, result(), tree="one") << ...
    book >> book.later(0)
    book = says(book, "done")
    book >> found(book, result(), tree="other")
    book << like(issues.PersonAsked, about="proof", disbelieved="t-1/implement.1.2")
    book.answered()
    book >> book.seen(add=("human:approved",)) << ...
    book >> book.next() << like(issues.PersonAnswered, answer="approved") << issues.CycleBegan
    book << like(issues.PhaseEntered, phase="review")


def test_flags_lead_around_where_a_verdict_leads() -> None:
    flagging = TOLD.model_copy(update={"verify": None, "when_flags": {"ci": "ask"}})
    book = book_of(policy_of(flagging, *TIERS.phases[1:])).answered()
    book >> book.reports(verdict="done") << ...
    seal = book.dropped()
    assert isinstance(seal, c.SealTree)
    book >> delivery.TreeSealed("t-1", seal.run, seal.key, "head", "7ree", ("head",), flags=("ci",)) << ...
    book >> found(book) << like(issues.PersonAsked, phase="ask", human_phase=True)


def test_a_verdict_that_the_policy_lost_meanwhile_parks() -> None:
    book = says(book_of(TIERS), "done")
    holds = found(book, result("passed"))
    other = TOLD.model_copy(update={"verdicts": ("fine",), "must_pass": ("fine",), "next": {"fine": "review"}})
    book >> adopted(policies(policy_of(other, *TIERS.phases[1:]))) << ...
    book >> holds << like(issues.IssueParked, code="unknown_phase")


def test_what_is_a_persons_to_check_fails_nothing() -> None:
    book = sealed(book_of())
    book >> found(book, result("skipped")) << like(issues.PhaseEntered, phase="review")


def again(book: Playbook) -> Playbook:
    """The next attempt, up to its verification."""
    book.left = []
    book >> book.later(0)
    return sealed(book)


@pytest.mark.promise("Q4")
def test_attempts_used_up_ask_a_person() -> None:
    book = sealed(book_of())
    book >> found(book, result(), tree="one")
    book = again(book)
    book >> found(book, result(), tree="other") << like(issues.PersonAsked, about="proof", human_phase=False)
    assert "attempt 2 of 2, the last" in book.flow().why
    book << issues.CommentWanted
    assert book << like(c.WriteIssue, kind="ask", add_labels=("needs:human_answer", "needs:human_approval"))
    noted = escalation_of(book.flow(), 2)
    assert noted is not None
    assert {key: noted[key] for key in ("action", "reason", "attempts", "status", "failures")} == {
        "action": "escalated", "reason": "max_verification_attempts", "attempts": 2, "status": "failing",
        "failures": ["tests"],
    }  # fmt: skip
    notes = notes_of(book.flow(), closed=False)
    assert notes["verification_status"] == "failing"
    assert isinstance(notes["verification"], dict)
    assert notes["verification"]["checks"] == [
        {"check_id": "tests", "status": "failed", "message": "told so", "duration_ms": 1}
    ]
    assert notes["impact_flags"] == []


def test_no_progress_ends_the_attempts_early() -> None:
    patient = policy_of(VERIFIED.model_copy(update={"verify": Verify(max_attempts=9)}), Phase(name="review"))
    book = sealed(book_of(patient))
    book >> found(book, result())
    book = again(book)
    book >> found(book, result()) << like(issues.PersonAsked, about="proof")
    assert "nothing has changed since the attempt before" in book.flow().why
    assert (escalation_of(book.flow(), 9) or {})["reason"] == "nothing_changed"


def test_another_failure_in_the_same_tree_is_another_attempt() -> None:
    patient = policy_of(VERIFIED.model_copy(update={"verify": Verify(max_attempts=9)}), Phase(name="review"))
    book = sealed(book_of(patient))
    book >> found(book, result())
    book = again(book)
    book >> found(book, result(name="lint")) << issues.RetryScheduled


def test_each_visit_has_its_own_attempts() -> None:
    book = sealed(book_of())
    book >> found(book, result()) << issues.RetryScheduled << c.WriteIssue
    assert book >> book.next()
    (book >> book.seen(add=("phase:review",), drop=("phase:implement",))).answered()
    book >> book.seen(add=("phase:implement",), drop=("phase:review",))
    sealed(book)
    book >> found(book, result(), tree="other") << issues.RetryScheduled


def test_a_person_lets_it_pass_and_that_is_on_record() -> None:
    once = VERIFIED.model_copy(update={"verify": Verify(max_attempts=1)})
    book = sealed(book_of(policy_of(once, Phase(name="review"))))
    book >> found(book, result(), changed=False) << like(issues.PersonAsked, about="proof")
    book.answered()
    book >> book.seen(add=("human:approved",)) << ...
    book >> book.next() << like(issues.PersonAnswered, answer="approved") << issues.CycleBegan
    book << like(issues.PhaseEntered, phase="review")
    assert (book.flow().work.waived, book.flow().work.flaw) == (("tests", UNCHANGED), None)


def test_what_was_let_pass_is_not_let_pass_once_a_person_wants_changes() -> None:
    once = Phase(name="implement", verify=Verify(max_attempts=1))
    look = Phase(name="look", human=Human(ask="Fine?", changes_requested="implement"))
    book = sealed(book_of(policy_of(once, look)))
    (book >> found(book, result())).answered()
    (book >> book.seen(add=("human:approved",))).answered()
    assert (book.flow().stage, book.flow().work.waived) == ("person", ("tests",))
    (book >> book.seen(add=("human:changes_requested",))).answered()
    assert (book.flow().phase, book.flow().work.waived) == ("implement", ())


def test_a_person_who_wants_changes_has_it_worked_on_again_and_nothing_is_let_pass() -> None:
    book = sealed(book_of(policy_of(Phase(name="implement", verify=Verify(max_attempts=1)))))
    book >> found(book, result()) << like(issues.PersonAsked, about="proof")
    book.answered()
    book >> book.seen(add=("human:changes_requested",)) << ...
    book >> book.next() << issues.PersonAnswered << issues.CycleBegan << like(issues.PhaseEntered, phase="implement")
    assert book.flow().work.waived == ()
    assert book.flow().work.flaw is not None


def test_work_that_changes_nothing_falls_short_where_the_phase_is_verified() -> None:
    book = sealed(book_of())
    book >> found(book, changed=False) << issues.RetryScheduled
    assert "the work changes nothing" in book.flow().why


def test_without_verify_nothing_is_asked_of_the_change() -> None:
    checks = VERIFIED.model_copy(update={"verify": None, "when_flags": {"ci": "review"}})
    book = sealed(book_of(policy_of(checks, Phase(name="review"))))
    assert not next(job for job in book.made.jobs if isinstance(job, c.VerifyWork)).change


def test_flags_lead_elsewhere() -> None:
    human = Phase(name="look", human=Human(ask="CI?"))
    routed = VERIFIED.model_copy(update={"when_flags": {"ci": "look"}})
    book = book_of(policy_of(routed, Phase(name="review"), human))
    book >> book.reports() << ...
    seal = book.dropped()
    assert isinstance(seal, c.SealTree)
    book >> delivery.TreeSealed("t-1", seal.run, seal.key, "head", "7ree", ("head",), flags=("size", "ci")) << ...
    book >> found(book) << like(issues.PersonAsked, phase="look", human_phase=True)


def test_a_question_says_first_that_no_test_ran() -> None:
    for policy in (policy_of(Phase(name="implement"), MERGE), policy_of(Phase(name="implement"), REVIEWED, MERGE)):
        book = Playbook(policy, tree=TREE, config=own()).looked().answered()
        while book.flow().stage == "work":
            book >> book.reports(verdict="approve" if book.flow().phase == "review" else None) << ...
            book.answered()
        question = book.flow().question
        assert question is not None
        assert question.text == f"{UNTESTED} Merge this?"
        assert book.bodies(issues.CommentWanted)[-1].text.startswith(f"**{UNTESTED} Merge this?**")


def test_what_a_check_ran_on_and_what_nobody_made_is_not_called_untested() -> None:
    checked = policy_of(VERIFIED.model_copy(update={"next": {"success": "merge"}}), MERGE)
    for status, text in (("passed", "Merge this?"), ("skipped", f"{UNTESTED} Merge this?")):
        book = sealed(book_of(checked))
        book >> found(book, result(status)) << like(issues.PersonAsked, phase="merge", question=text)
    plan = Phase(name="plan", capabilities=("review",), next={"success": "merge"})
    book = Playbook(policy_of(plan, MERGE), tree=TREE, config=own()).looked().answered()
    book >> book.reports() << like(runs.RunEnded) << like(issues.PersonAsked, question="Merge this?")
    book = Playbook(policy_of(Phase(name="implement"), MERGE), tree=TREE, config=own()).looked().answered()
    book >> book.reports("partial", needs_human=True, summary="Red or blue?") << like(runs.RunEnded)
    book << like(issues.PersonAsked, question="Red or blue?")


def test_in_the_shared_work_tree_nothing_is_verified() -> None:
    book = Playbook(TWO, config=settings()).looked()
    book >> book.reports() << like(runs.RunEnded, state="succeeded") << like(issues.PhaseEntered, phase="review")


def test_a_verification_that_cannot_be_carried_out_is_tried_again_and_burns_no_attempt() -> None:
    book = sealed(book_of())
    book >> book.failed() << ...
    book >> book.later(3) << like(c.VerifyWork, tries=1)
    assert (book.flow().failures, book.flow().work.unproven) == (0, 0)


def test_what_is_found_after_somebody_had_it_otherwise_says_nothing() -> None:
    book = sealed(book_of())
    late = found(book, result())
    (book >> book.seen(add=("phase:review",), drop=("phase:implement",))).answered()
    assert book >> late
    assert (book.flow().phase, book.flow().work.flaw, book.flow().work.evidence) == ("review", None, None)


def test_checks_that_cannot_be_read_park_the_issue_before_anybody_works_on_it() -> None:
    book = Playbook(TWO, tree=TREE, config=own())
    book.made.look()
    book.left = []
    claimed = book.next()
    book >> [claimed, delivery.CriteriaAdopted("t-1", "", error="line 3: expected a list")]
    parked = next(body for body in book.left if isinstance(body, issues.IssueParked))
    assert (parked.code, "line 3" in parked.why) == ("criteria", True)
    ended = next(body for body in book.left if isinstance(body, runs.RunEnded))
    assert ended.state == "aborted"
    assert book.flow().work.criteria is None, "they count as not read, not as none: they are read again"


@pytest.mark.promise("S1")
def test_an_issue_whose_words_are_too_long_is_parked_with_their_names_before_anybody_works_on_it() -> None:
    book = Playbook(TWO, tree=TREE, config=own())
    book.made.look()
    book.left = []
    claimed = book.next()
    book >> [claimed, delivery.CriteriaAdopted("t-1", "", left_out=("description: 34.3 MiB", "notes: 2.0 MiB"))]
    parked = next(body for body in book.left if isinstance(body, issues.IssueParked))
    assert parked.code == "too_long"
    assert parked.why.startswith("too long to be read: description: 34.3 MiB, notes: 2.0 MiB; shorten that, then")
    assert any(isinstance(body, runs.RunEnded) and body.state == "aborted" for body in book.left)
    assert book.flow().work.criteria is None, "its checks may be among what was not read"


def test_criteria_are_those_of_the_claim_whatever_is_seen_later() -> None:
    book = book_of()
    book >> delivery.CriteriaAdopted("t-1", "ab" * 32, "ef" * 32, 1) << ...
    assert book >> delivery.CriteriaChanged("t-1", "cd" * 32, "somebody changed them")
    sealed(book)
    command = book.dropped()
    assert isinstance(command, c.VerifyWork)
    assert (command.criteria, command.adopt) == ("ef" * 32, False)
    adopted = book.flow().work.criteria
    assert adopted is not None
    assert (adopted.hash, adopted.seen) == ("ab" * 32, "cd" * 32)


def test_criteria_that_nobody_read_are_read_then() -> None:
    book = Playbook(TWO, tree=TREE, config=own()).looked()
    assert book.flow().work.criteria is None
    sealed(book)
    command = book.dropped()
    assert isinstance(command, c.VerifyWork)
    assert command.adopt


def test_another_start_goes_on_with_the_verification() -> None:
    book = sealed(book_of())
    command = book.dropped()
    book >> start(config=own())[1]
    assert command in book.flow().open


def test_what_a_person_let_go_on_is_looked_into_before_anything_else_begins() -> None:
    """Found in a simulated night: the phase was begun anew beside it, and that run never had an end."""
    book = book_of(TWO.model_copy(update={"takeover": Takeover(action="resume", cooldown=timedelta(minutes=1))}))
    block = json.dumps({"result": "success", "summary": "what I did"})
    (book >> book.turn("finished", block=block, people=("msg_ann",))).answered()
    for _ in range(2):
        takeover = book.flow().takeover
        assert takeover is not None
        assert takeover.session is not None
        seen = runs.SessionSeen("t-1", takeover.session, ("msg_ann",), busy=False, as_of=book.world.seq)
        book >> session_read(book.world, seen)
        book.left = [one for one in book.left if isinstance(one, delivery.VerificationWanted)]
        if book.left:
            break
        book >> book.later(60)
    assert book << delivery.VerificationWanted
    assert not book.flow().wanted
    book.answered()
    assert [one.run for one in book.made.done if isinstance(one, c.VerifyWork)] == ["t-1/implement.1.1"]
    assert book.flow().phase == "review"
