"""What another policy would have done with issues in trees of their own: evidence counts for what was looked for."""

from typing import Any

import pytest

from ashep.core import events as e
from ashep.core.compared import Compared
from ashep.core.criteria import FileExists, FileExistsCheck
from ashep.core.model import Human, Phase, Policy, Settings, Tree, Verify, WorkerSettings
from tests.core import given
from tests.core.paired import ISSUE, Lived
from tests.core.test_counterfactual import Scripted, one, said, seq

OWN = Settings(worker=WorkerSettings(workspace="worktree"))
PLAIN = Phase(name="implement")
PROVEN = PLAIN.model_copy(update={"verify": Verify(max_attempts=2)})
REVIEW = Phase(name="review")
ASK = Phase(name="ask", human=Human(changes_requested="implement"))
THERE = FileExistsCheck(id="there", type="file_exists", verify=FileExists(path="x"))


def story(first: Phase, *more: Phase, wrong: tuple[str, ...] = ()) -> Lived:
    """Live an issue in a tree of its own, of which this goes wrong."""
    made = Scripted()
    made.begin(
        *given.start(
            one(Policy(phases=(first, *more))), given.TEAM, OWN, Tree(present=True, head="c0ffee", branch="main")
        )
    )
    made.base.goes_wrong(ISSUE, *wrong)
    made.open(ISSUE)
    return Lived(made.world, made.kept, made.lives())


def other(life: Lived, *phases: Phase, **more: Any) -> Compared:
    return said(life, one(Policy(phases=phases)), **more)


def test_the_same_policy_is_the_same_with_evidence_and_landing() -> None:
    life = story(PROVEN, REVIEW, wrong=("fails", "conflict"))
    assert {e.WorkVerified, e.WorkConflicted, e.WorkLanded} <= {type(fact) for fact in life.facts}
    found = other(life, PROVEN, REVIEW)
    assert (found.verdict, found.ends) == ("same", ("closed", "closed"))


def test_evidence_that_was_not_produced_is_unknown() -> None:
    life = story(PLAIN, REVIEW)
    found = other(life, PROVEN, REVIEW)
    assert found.unknown is not None
    assert found.unknown.needs == "evidence about the work of implement"
    assert found.fork is not None
    assert found.fork.seq == seq(life, e.PhaseEntered, 1)


@pytest.mark.parametrize("changes", [{"checks": (THERE,)}, {"verify": None, "when_flags": {"ci": "review"}}])
def test_evidence_of_something_else_is_none(changes: dict[str, Any]) -> None:
    life = story(PROVEN, REVIEW)
    found = other(life, PROVEN.model_copy(update=changes), REVIEW)
    assert found.unknown is not None
    assert found.unknown.needs == "evidence about the work of implement"
    assert found.fork is not None
    assert found.fork.seq == seq(life, e.WorkVerified)


def test_more_checks_of_another_phase_are_lacking_where_it_lands() -> None:
    life = story(PROVEN, REVIEW)
    found = other(life, PROVEN, REVIEW.model_copy(update={"checks": (THERE,)}))
    assert found.unknown is not None
    assert found.unknown.needs == "evidence about the work of review"
    nobody = Phase(name="doc", checks=(THERE,))
    life = story(PROVEN.model_copy(update={"next": {"success": "close"}}), nobody)
    found = other(
        life, PROVEN.model_copy(update={"next": {"success": "close"}}), nobody.model_copy(update={"checks": ()})
    )
    assert found.unknown is not None
    assert found.unknown.needs == "evidence about what is to land"


def test_fewer_attempts_ask_a_person_earlier() -> None:
    life = story(PROVEN, REVIEW, wrong=("fails",))
    found = other(life, PROVEN.model_copy(update={"verify": Verify(max_attempts=1)}), REVIEW)
    assert found.fork is not None
    assert isinstance(found.fork.recorded, e.RetryScheduled)
    assert isinstance(found.fork.other, e.PersonAsked)


def test_whether_work_lands_that_was_not_to_land_is_unknown() -> None:
    life = story(PROVEN, REVIEW, ASK)
    found = other(life, PROVEN.model_copy(update={"next": {"success": "close"}}), REVIEW, ASK)
    assert found.unknown is not None
    assert found.unknown.needs == "whether its work holds and fits the base"
    assert found.ends[1] == "unknown"
