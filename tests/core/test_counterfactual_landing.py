"""What another policy would have done with issues in trees of their own: evidence counts for what was looked for."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from ashep.core.analysis import alternate_run, counterfactual
from ashep.core.analysis.policy_diff import Compared
from ashep.core.facts import delivery, issues, runs
from ashep.core.facts.delivery import Tree
from ashep.core.policy.checks import FileExists, FileExistsCheck
from ashep.core.policy.landing import ForgeSettings, LandingSettings
from ashep.core.policy.policies import Human, Phase, Policy, Verify
from ashep.core.policy.settings import Settings
from tests.core import given
from tests.core.mutants import Mutant, planted, private
from tests.core.paired import ISSUE, OWN, Lived, judged, live, variant, wrong
from tests.core.test_counterfactual import Scripted, between, forked, missing, one, said, seq

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
    assert {delivery.WorkVerified, delivery.WorkConflicted, delivery.WorkLanded} <= {type(fact) for fact in life.facts}
    found = other(life, PROVEN, REVIEW)
    assert (found.verdict, found.ends) == ("same", ("closed", "closed"))


def test_evidence_that_was_not_produced_is_unknown() -> None:
    life = story(PLAIN, REVIEW)
    found = other(life, PROVEN, REVIEW)
    assert missing(found).needs == "evidence about the work of implement"
    assert forked(found).seq == seq(life, issues.PhaseEntered, 1)


@pytest.mark.parametrize("changes", [{"checks": (THERE,)}, {"verify": None, "when_flags": {"ci": "review"}}])
def test_evidence_of_something_else_is_none(changes: dict[str, Any]) -> None:
    life = story(PROVEN, REVIEW)
    found = other(life, PROVEN.model_copy(update=changes), REVIEW)
    assert missing(found).needs == "evidence about the work of implement"
    assert forked(found).seq == seq(life, delivery.WorkVerified)


def test_more_checks_of_another_phase_are_lacking_where_it_lands() -> None:
    life = story(PROVEN, REVIEW)
    found = other(life, PROVEN, REVIEW.model_copy(update={"checks": (THERE,)}))
    assert missing(found).needs == "evidence about the work of review"
    nobody = Phase(name="doc", checks=(THERE,))
    life = story(PROVEN.model_copy(update={"next": {"success": "close"}}), nobody)
    found = other(
        life, PROVEN.model_copy(update={"next": {"success": "close"}}), nobody.model_copy(update={"checks": ()})
    )
    assert missing(found).needs == "evidence about what is to land"


def test_fewer_attempts_ask_a_person_earlier() -> None:
    life = story(PROVEN, REVIEW, wrong=("fails",))
    found = other(life, PROVEN.model_copy(update={"verify": Verify(max_attempts=1)}), REVIEW)
    assert isinstance(forked(found).recorded, issues.RetryScheduled)
    assert isinstance(forked(found).other, issues.PersonAsked)


STRAIGHT = PLAIN.model_copy(update={"next": {"success": "close"}})


def begun(*phases: Phase, settings: Settings = OWN, script: dict[str, list[dict[str, Any]]] | None = None) -> Scripted:
    """Open an issue in a tree of its own."""
    made = Scripted(script=script or {})
    tree = Tree(present=True, head="c0ffee", branch="main")
    made.begin(*given.start(one(Policy(phases=phases)), given.TEAM, settings, tree))
    made.open(ISSUE)
    return made


def lived(made: Scripted) -> Lived:
    """Go on to its end."""
    over = made.lives()
    return Lived(made.world, made.kept, over)


@pytest.mark.promise("Y4")
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("skipped", [(REVIEW,), (REVIEW, ASK), (ASK,)])
def test_a_draft_that_skips_a_phase_of_what_landed_is_judged(skipped: tuple[Phase, ...], strict: bool) -> None:
    """The very same work was brought onto the very same base: no matter when."""
    life = story(PROVEN, *skipped)
    assert any(isinstance(fact, delivery.WorkLanded) for fact in life.facts)
    found = other(life, PROVEN.model_copy(update={"next": {"success": "close"}}), *skipped, strict=strict)
    assert (found.verdict, found.ends, found.unknown) == ("differs", ("closed", "closed"), None)
    assert (found.least, found.most, found.rests_on) == ((1, 0), (1, 0), ())


def test_work_that_met_another_base_by_then_lands_on_an_assumption() -> None:
    made = begun(PLAIN, REVIEW)
    made.until("review")
    made.base.tip = "beef00"
    life = lived(made)
    found = other(life, STRAIGHT, REVIEW)
    assert (found.verdict, found.ends) == ("differs", ("closed", "closed"))
    assert found.rests_on == (seq(life, delivery.WorkIntegrated),)
    strictly = other(life, STRAIGHT, REVIEW, strict=True).unknown
    assert strictly is not None
    assert strictly.why == "the base may have been another one when it was to land"


def test_what_fell_short_on_the_base_goes_back_and_nobody_ran_that() -> None:
    life = story(PROVEN, REVIEW, wrong=("fine", "fails"))
    found = other(life, PROVEN.model_copy(update={"next": {"success": "close"}}), REVIEW)
    assert missing(found).needs == "a run of implement by builder"
    assert (found.least, missing(found).so_far) == ((2, 0), (1, 0))
    life = story(PLAIN, REVIEW, wrong=("conflict",))
    found = other(life, STRAIGHT, REVIEW)
    assert missing(found).needs == "a run of implement by builder"


def test_other_work_that_landed_tells_nothing() -> None:
    rejects = REVIEW.model_copy(update={"verdicts": ("good", "bad"), "next": {"good": "close", "bad": "implement"}})
    made = begun(PLAIN, rejects, script={"review": [{"verdict": "bad"}]})
    found = other(lived(made), STRAIGHT, rejects)
    assert missing(found).needs == "whether its work holds and fits the base"
    assert missing(found).why == "t-1/implement.2.1 changed the work before it landed"


def test_what_was_given_up_before_it_landed_tells_nothing() -> None:
    made = begun(PLAIN, REVIEW, script={"review": [{"result": "failed"}] * 5})
    life = lived(made)
    assert life.stage == "parked"
    found = other(life, STRAIGHT, REVIEW)
    assert missing(found).why == "it did not land in the record"


@pytest.mark.parametrize(("phase", "ends"), [("review", ("under_way", "unknown")), (None, ("landing", "landing"))])
def test_where_the_journal_ends_before_it_has_landed(phase: str | None, ends: tuple[str, str]) -> None:
    made = begun(PLAIN, REVIEW)
    if phase is not None:
        made.until(phase)
    else:
        made.until("review")
        made.base.goes_wrong(ISSUE, "dirty")
        while made.world.flows[ISSUE].stage != "finishing":
            made.carry_out(made.jobs.pop(0)) if made.jobs else (made.look(), made.watch() or made.passes())
    found = other(Lived(made.world, made.kept, False), STRAIGHT, REVIEW)
    assert found.ends == ends
    if found.unknown is not None:
        assert missing(found).why == "it has not landed in the record so far"


def test_an_answer_about_work_in_a_tree_of_its_own_counts_whatever_happens_in_others() -> None:
    """The user's checkout moves whenever anything lands."""
    made = begun(PLAIN, REVIEW, ASK)
    made.until("review")
    made.turn(delivery.TreeSeen(Tree(present=True, head="c0ffee", branch="main")))
    made.turn(delivery.TreeSeen(Tree(present=True, head="beef00", branch="main")))
    life = lived(made)
    straight = PLAIN.model_copy(update={"next": {"success": "ask"}})
    found = other(life, straight, REVIEW, ASK)
    assert (found.verdict, found.ends) == ("differs", ("closed", "closed"))
    (planned,) = [fact for fact in life.facts if isinstance(fact, runs.RunPlanned) and fact.access == "write"]
    there = replace(planned, issue="t-9", run="t-9/implement.1.1", branch="ashep/t-9")
    assert other(between(life, there), straight, REVIEW, ASK).verdict == "differs"
    here = other(between(life, replace(there, branch=planned.branch)), straight, REVIEW, ASK)
    assert here.unknown is not None
    assert here.unknown.why == "t-9 wrote in the work tree before that was asked"
    landing = other(between(life, replace(there, branch=planned.branch)), STRAIGHT, REVIEW, ASK)
    assert landing.unknown is not None
    assert landing.unknown.why == "t-9 wrote in the work tree before it landed"


def test_checks_that_only_the_other_policy_has_were_not_looked_for() -> None:
    nobody = Phase(name="doc", checks=(THERE,))
    life = story(PLAIN.model_copy(update={"next": {"success": "review"}}), REVIEW)
    found = other(life, STRAIGHT, nobody)
    assert missing(found).needs == "evidence about what is to land"
    assert missing(found).why == "something else would be looked for in what is to land"
    made = begun(PLAIN, REVIEW)
    made.until("implement")
    made.turn(delivery.CriteriaAdopted(ISSUE, ""))
    found = other(lived(made), STRAIGHT, nobody)
    assert missing(found).why == "nobody looked for it in the record"


def test_a_pull_request_that_somebody_merged_is_an_assumption() -> None:
    forge = ForgeSettings(type="github", repository="acme/tools")
    asks = OWN.model_copy(update={"landing": LandingSettings(mode="pull_request", forge=forge)})
    made = begun(PLAIN, REVIEW, settings=asks)
    made.until("review")
    while not made.world.indexes.reviewed:
        made.carry_out(made.jobs.pop(0)) if made.jobs else (made.look(), made.watch() or made.passes())
    waits = other(Lived(made.world, made.kept, False), STRAIGHT, REVIEW)
    assert (waits.verdict, waits.ends) == ("differs", ("landing", "landing"))
    pull = made.world.flows[ISSUE].work.pull
    assert pull is not None
    made.turn(delivery.PullRequestSeen(ISSUE, pull.number, made.world.seq, "merged", pull.head, "ann", "feed"))
    life = lived(made)
    found = other(life, STRAIGHT, REVIEW)
    assert (found.verdict, found.ends) == ("differs", ("closed", "closed"))
    assert found.rests_on == (seq(life, delivery.PullRequestSeen),)
    strictly = other(life, STRAIGHT, REVIEW, strict=True).unknown
    assert strictly is not None
    assert strictly.why == "whoever looked at its pull request may have seen what is left out here"


# --- judged by what really would have been ------------------------------------------------------------------------


def errors(seeds: Iterable[int], verdicts: Counter[tuple[str, str]]) -> Iterator[str]:
    """Live issues in trees of their own under two policies each, and say what is wrong with what is said of them."""
    for seed in seeds:
        case, draft = variant(seed)
        recorded = live(seed, case.policies, case.agents, own=True)
        real = live(seed, draft.policies, draft.agents, own=True)
        for strict in (False, True):
            for found in judged(recorded, draft.policies, draft.agents, strict=strict):
                verdicts[found.verdict, found.ends[1]] += 1
                if error := wrong(found, recorded, real):
                    yield f"{seed}: {error}"


@pytest.mark.slow
def test_what_is_said_of_landing_is_what_really_would_have_been() -> None:
    verdicts = Counter[tuple[str, str]]()
    assert not [*errors(range(120), verdicts)]
    assert verdicts["same", "closed"] > 20
    assert verdicts["differs", "closed"] >= 4
    assert verdicts["unknown", "unknown"] > 20


PASS = counterfactual.Counterfactual
MISTAKES = [
    (test_other_work_that_landed_tells_nothing,
     Mutant("any work that lands will do", private(alternate_run, "_sealed"), "body.head != flow.work.own.head",
      "False")),
    (test_work_that_met_another_base_by_then_lands_on_an_assumption,
     Mutant("any base will do", private(alternate_run, "_assumed"), "if not known", "if False")),
    (test_a_pull_request_that_somebody_merged_is_an_assumption,
     Mutant("who looks", private(alternate_run, "_assumed"), "isinstance(body, delivery.PullRequestSeen)", "False")),
    (test_checks_that_only_the_other_policy_has_were_not_looked_for,
     Mutant("any checks will do", private(PASS, "_entry"), "not self._looked_elsewhere(", "not (lambda *_: False)(")),
    (test_checks_that_only_the_other_policy_has_were_not_looked_for,
     Mutant("nobody looked, and it holds", private(alternate_run, "_lands"), "landing.verify and not",
      "False and not")),
    (test_what_fell_short_on_the_base_goes_back_and_nobody_ran_that,
     Mutant("what falls short lands all the same", private(alternate_run, "_tells"), "landing.verify and",
      "False and")),
    (test_an_answer_about_work_in_a_tree_of_its_own_counts_whatever_happens_in_others,
     Mutant("all work is in one tree", alternate_run.spoil_shared_tree, "planned.branch == (", "planned.issue or (")),
]  # fmt: skip
"""Each makes something up that never was seen, or loses what was: it spoils its test."""


@pytest.mark.parametrize(("test", "mutant"), MISTAKES, ids=lambda one: one.name if isinstance(one, Mutant) else "")
def test_a_guess_about_landing_is_found(test: Callable[[], None], mutant: Mutant) -> None:
    with planted(mutant), pytest.raises(AssertionError):
        test()
