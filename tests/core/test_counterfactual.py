"""What another policy would have done: never guessed, and judged by lives that were really lived under it."""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from ashep.core.analysis import alternate_run, counterfactual, policy_diff
from ashep.core.analysis.policy_diff import Compared, Count, Fork, NotObserved, totals
from ashep.core.facts import delivery, issues, runs
from ashep.core.facts import vocabulary as e
from ashep.core.facts.delivery import Tree
from ashep.core.policy.agents import Agents, RunnerChoice
from ashep.core.policy.policies import Human, Limits, Match, Phase, Policies, Policy, Retry, Stall
from ashep.core.state.run import Run
from ashep.core.state.world import World
from ashep.journal.reader import batches
from tests.core import given
from tests.core.laws import folded
from tests.core.lives import EDITS
from tests.core.mutants import Mutant, planted, private
from tests.core.paired import ISSUE, Lived, Paired, judged, live, variant, wrong
from tests.full import amount
from tests.golden.make import LIFE
from tests.policies.generate import Case
from tests.test_replay import lived

WORK = Phase(name="implement", next={"success": "review"}, retry=Retry(initial_delay=timedelta(seconds=10)))
REVIEW = Phase(
    name="review", verdicts=("approve", "needs_changes"), next={"approve": "merge", "needs_changes": "implement"}
)
MERGE = Phase(name="merge", human=Human(ask="Merge this?", changes_requested="implement"))
REVIEWED = Policy(phases=(WORK, REVIEW, MERGE))
UNREVIEWED = Policy(phases=(WORK.model_copy(update={"next": {"success": "merge"}}), REVIEW, MERGE))


def one(policy: Policy, name: str = "standard", **others: Policy) -> Policies:
    return Policies(version=1, default_policy=None, policies={name: policy, **others})


@dataclass
class Scripted(Paired):
    """An issue whose agents and people say what the test says."""

    script: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])
    answers: list[str] = field(default_factory=list[str])
    takes: timedelta = timedelta(minutes=5)

    def report(self, run: Run) -> str:
        said = self.script.get(run.phase, [])
        verdict = {"verdict": self.phase(run).verdicts[0]} if self.phase(run).verdicts else {}
        outcome = said.pop(0) if said else verdict
        return json.dumps({"result": "success", "summary": f"{run.phase} done"} | outcome)

    def thinks(self) -> tuple[str, timedelta]:
        word = self.answers[0] if self.answers else "approved"
        return f"human:{word}", self.takes

    def until(self, phase: str) -> None:
        """Go on until a phase is at work, or asks."""
        while (flow := self.world.flows.get(ISSUE)) is None or flow.phase != phase or self.jobs:
            while self.jobs:
                self.carry_out(self.jobs.pop(0))
            self.look()
            if not self.jobs and (flow is None or flow.phase != phase) and not self.watch():
                self.passes()

    def turn(self, *facts: e.Fact, everything: bool = False) -> Any:
        entries = super().turn(*facts, everything=everything)
        if self.answers and any(isinstance(entry.body, issues.PersonAnswered) for entry in entries):
            self.answers.pop(0)
        return entries


def story(policies: Policies, team: Agents = given.TEAM, *labels: str, **more: Any) -> tuple[Lived, Scripted]:
    """Live an issue as scripted."""
    made = Scripted(**more)
    made.begin(*given.start(policies, team))
    made.open(ISSUE, *labels)
    over = made.lives()
    return Lived(made.world, made.kept, over), made


def said(life: Lived, policies: Policies | None, agents: Agents | None = None, **more: Any) -> Compared:
    (found,) = judged(life, policies, agents, **more)
    return found


def missing(found: Compared) -> NotObserved:
    """What nobody knows, where something is not known."""
    assert found.unknown is not None
    return found.unknown


def forked(found: Compared) -> Fork:
    """Where the other life parts from the recorded one, which it does."""
    assert found.fork is not None
    return found.fork


def seq(life: Lived, kind: type, number: int = 0) -> int:
    return [entry.seq for entries in life.batches for entry in entries if isinstance(entry.body, kind)][number]


# --- the same, or not ---------------------------------------------------------------------------------------------


@pytest.mark.promise("Y4")
@pytest.mark.parametrize("seed", [seed for seed in range(7) if seed % EDITS[0] != EDITS[1]])
def test_the_same_policy_decides_the_same_in_wild_lives(seed: int) -> None:
    world, kept = lived(seed, 120)
    for one in judged_all(kept, world.policies, world.agents):
        assert one.verdict == "same" or isinstance(one.fork and one.fork.recorded, issues.IssueAdopted), one
        assert one.verdict != "same" or one.least == one.most == one.recorded


def judged_all(kept: Sequence[Any], policies: Policies | None, agents: Agents | None) -> list[Compared]:
    made = counterfactual.Counterfactual(World(), policies, agents)
    for entries in kept:
        made.batch(entries)
    return made.compared()


def test_a_review_that_is_left_out_differs_where_it_is_entered_and_the_answer_counts() -> None:
    life, _ = story(one(REVIEWED))
    found = said(life, one(UNREVIEWED))
    assert (found.verdict, found.ends) == ("differs", ("closed", "closed"))
    assert forked(found).seq == seq(life, issues.PhaseEntered, 1)
    assert isinstance(forked(found).recorded, issues.PhaseEntered)
    assert isinstance(forked(found).other, issues.PersonAsked)
    assert (found.recorded, found.least, found.most) == (Count(2, 1), Count(1, 1), Count(1, 1))
    assert found.rests_on == (seq(life, issues.PersonAsked), seq(life, issues.PersonAnswered))


def test_strictly_no_answer_counts_that_was_given_after_what_is_left_out() -> None:
    life, _ = story(one(REVIEWED))
    found = said(life, one(UNREVIEWED), strict=True)
    assert found.verdict == "unknown"
    assert "answer to the question of merge" in missing(found).needs
    assert (found.least, found.most, found.rests_on) == (Count(1, 1), Count(1, 1), ())


def test_an_answer_about_other_work_is_not_known() -> None:
    life, _ = story(one(REVIEWED), script={"review": [{"verdict": "needs_changes"}]})
    found = said(life, one(UNREVIEWED))
    assert found.verdict == "unknown"
    assert "t-1/implement.2.1 changed the work before that was asked" in missing(found).why
    assert (found.recorded, found.least, found.most) == (Count(4, 1), Count(1, 1), Count(1, 1))


def test_another_question_is_another_question() -> None:
    life, _ = story(one(REVIEWED))
    ask = MERGE.model_copy(update={"human": Human(ask="Merge it unseen?")})
    found = said(life, one(Policy(phases=(*UNREVIEWED.phases[:2], ask))))
    assert "nobody was asked that" in missing(found).why


def test_changes_that_are_requested_lead_to_a_run_that_nobody_saw() -> None:
    """Its prompt would lack what the review said."""
    life, _ = story(one(REVIEWED), answers=["changes_requested"])
    found = said(life, one(UNREVIEWED))
    assert missing(found).needs == "a run of implement by builder"
    assert missing(found).seq > seq(life, issues.PersonAnswered)
    assert (missing(found).so_far, found.least, found.most) == (Count(1, 1), Count(2, 1), Count(13, 2))
    assert (found.recorded, found.beyond) == (Count(4, 2), Count()), "the recorded cycle that began with the answer"


def test_a_person_who_is_not_asked_is_known_to_the_end() -> None:
    life, _ = story(one(REVIEWED), answers=["changes_requested"])
    closes = Policy(phases=(WORK, REVIEW.model_copy(update={"next": REVIEW.next | {"approve": "close"}})))
    found = said(life, one(closes))
    assert (found.verdict, found.ends) == ("differs", ("closed", "closed"))
    assert (found.recorded, found.least, found.most) == (Count(4, 2), Count(2, 0), Count(2, 0))


def test_fewer_attempts_are_known_and_more_are_not() -> None:
    failed: list[dict[str, Any]] = [{"result": "failed"}] * 2
    twice = one(Policy(phases=(WORK.model_copy(update={"retry": Retry(max_attempts=2)}), REVIEW, MERGE)))
    thrice = one(REVIEWED)
    life, _ = story(thrice, script={"implement": [*failed]})
    found = said(life, twice)
    assert (found.verdict, found.ends, found.least) == ("differs", ("closed", "parked"), Count(2, 0))
    life, _ = story(twice, script={"implement": [*failed]})
    found = said(life, thrice)
    assert (found.verdict, found.ends, found.least) == ("unknown", ("parked", "unknown"), Count(3, 0))
    assert isinstance(found.fork and forked(found).recorded, issues.IssueParked)


def test_another_delay_is_another_outcome() -> None:
    """What failed at once may work later, and the other way round."""
    life, _ = story(one(REVIEWED), script={"implement": [{"result": "failed"}]})
    slower = WORK.model_copy(update={"retry": Retry(initial_delay=timedelta(minutes=1))})
    assert said(life, one(Policy(phases=(slower, REVIEW, MERGE)))).verdict == "unknown"


def test_a_phase_that_comes_between_was_never_run() -> None:
    life, _ = story(one(REVIEWED))
    test = Phase(name="test", capabilities=("code",), next={"success": "merge"})
    approved = REVIEW.model_copy(update={"next": REVIEW.next | {"approve": "test"}})
    found = said(life, one(Policy(phases=(WORK, approved, test, MERGE), limits=Limits(max_runs=5))))
    assert missing(found).needs == "a run of test by builder"
    assert (found.least, found.most) == (Count(3, 0), Count(5, 1))
    assert found.recorded == Count(2, 1)


def test_a_limit_of_runs_is_met_earlier() -> None:
    life, _ = story(one(REVIEWED), script={"review": [{"verdict": "needs_changes"}]})
    found = said(life, one(REVIEWED.model_copy(update={"limits": Limits(max_runs=2)})))
    assert (found.verdict, found.ends, found.least) == ("differs", ("closed", "parked"), Count(2, 0))
    assert isinstance(found.fork and forked(found).other, issues.IssueParked)


@pytest.mark.parametrize(("changes", "word"), [
    ({"verdicts": ("approve", "needs_changes", "odd"), "next": REVIEW.next | {"odd": "close"}}, "verdicts"),
    ({"answers": ("yes",)}, "answers"),
    ({"capabilities": ("review", "arbitrate")}, ""),
    ({"access": "write", "capabilities": ("implement",)}, ""),
])  # fmt: skip
def test_an_agent_that_is_given_something_else_says_something_else(changes: dict[str, Any], word: str) -> None:
    life, _ = story(one(REVIEWED))
    found = said(life, one(Policy(phases=(WORK, REVIEW.model_copy(update=changes), MERGE))))
    assert word in missing(found).why
    assert forked(found).seq == seq(life, runs.RunPlanned, 1)


def test_keys_that_no_agent_sees_change_nothing() -> None:
    life, _ = story(one(REVIEWED))
    same = WORK.model_copy(update={"capabilities": ("implement",), "access": "write", "max_visits": 9})
    described = REVIEWED.model_copy(update={"description": "x", "phases": (same, REVIEW, MERGE)})
    assert said(life, one(described)).verdict == "same"


# --- times --------------------------------------------------------------------------------------------------------


def test_a_run_that_took_longer_than_the_other_timeout_is_not_known_and_a_shorter_one_is() -> None:
    life, _ = story(one(REVIEWED))
    took = next(entry.at for entries in life.batches for entry in entries if isinstance(entry.body, runs.RunEnded))
    began = next(entry.at for entries in life.batches for entry in entries if isinstance(entry.body, runs.RunPlanned))
    assert took > began
    for seconds, verdict in (((took - began).total_seconds() - 0.5, "unknown"), (3000.0, "same")):
        timed = WORK.model_copy(update={"timeout": timedelta(seconds=seconds)})
        found = said(life, one(Policy(phases=(timed, REVIEW, MERGE))))
        assert found.verdict == verdict
        assert verdict == "same" or (found.fork and forked(found).seq == seq(life, runs.RunEnded))


def test_a_run_that_goes_on_for_longer_than_the_other_timeout_is_not_known() -> None:
    life, _ = story(one(REVIEWED))
    cut = next(n for n, entries in enumerate(life.batches) for o in entries if isinstance(o.body, runs.RunEnded))
    half = Lived(life.world, life.batches[:cut], False)
    began = next(o.at for entries in life.batches for o in entries if isinstance(o.body, runs.RunPlanned))
    gone = half.batches[-1][-1].at - began
    assert gone > timedelta(0)
    for timeout, verdict in ((gone / 2, "unknown"), (gone, "same")):
        timed = WORK.model_copy(update={"timeout": timeout})
        found = said(half, one(Policy(phases=(timed, REVIEW, MERGE))))
        assert (found.verdict, found.recorded) == (verdict, Count(1, 0))


def test_an_issue_that_no_agent_could_begin_is_not_taken() -> None:
    life, _ = story(one(REVIEWED))
    found = said(life, None, Agents(version=1, agents=(given.CRITIC,)))
    assert (found.verdict, found.ends, found.least) == ("differs", ("closed", "held"), Count())
    away = given.BUILDER.model_copy(update={"runner": RunnerChoice(agent_slug="gone")})
    found = said(life, None, Agents(version=1, agents=(away, given.CRITIC)))
    assert (found.verdict, found.least, found.most) == ("unknown", Count(), Count(12, 1)), (
        "the server may list it later"
    )


def test_an_answer_after_the_other_deadline_came_too_late() -> None:
    life, _ = story(one(REVIEWED), takes=timedelta(hours=3))
    short = MERGE.model_copy(update={"human": Human(ask="Merge this?", deadline=timedelta(hours=1))})
    found = said(life, one(Policy(phases=(WORK, REVIEW, short))))
    assert (found.verdict, found.ends, found.least) == ("differs", ("closed", "parked"), Count(2, 1))
    asked = said(life, one(Policy(phases=(*UNREVIEWED.phases[:2], short))))
    assert (asked.verdict, asked.ends[1]) == ("unknown", "unknown"), "an answer that is late is none"
    enough = MERGE.model_copy(update={"human": Human(ask="Merge this?", deadline=timedelta(hours=4))})
    assert said(life, one(Policy(phases=(WORK, REVIEW, enough)))).verdict == "same"


def test_a_question_that_may_lead_on_without_an_answer_has_runs_before_it() -> None:
    back = MERGE.model_copy(update={"human": Human(ask="Merge this?", on_deadline="implement")})
    life, _ = story(one(Policy(phases=(WORK, REVIEW, back))), script={"review": [{"verdict": "needs_changes"}]})
    found = said(life, one(Policy(phases=(*UNREVIEWED.phases[:2], back))))
    assert missing(found).most == Count(11, 15)


def test_a_question_that_nobody_answered_in_time_might_have_been_answered_later() -> None:
    life, _ = story(one(REVIEWED), takes=timedelta(days=20))
    longer = MERGE.model_copy(update={"human": Human(ask="Merge this?", deadline=timedelta(days=30))})
    found = said(life, one(Policy(phases=(WORK, REVIEW, longer))))
    assert (found.verdict, found.ends) == ("unknown", ("parked", "unknown"))


def test_a_question_that_is_open_in_the_record_waits_under_the_other_policy_too() -> None:
    life, _ = story(one(REVIEWED), answers=["none"])
    cut = next(
        n for n, entries in enumerate(life.batches) for one in entries if isinstance(one.body, issues.PersonAsked)
    )
    half = Lived(life.world, life.batches[: cut + 1], False)
    found = said(half, one(UNREVIEWED))
    assert (found.verdict, found.ends) == ("differs", ("waiting", "waiting"))
    assert (found.recorded, found.least) == (Count(2, 1), Count(1, 1))


# --- what else changes the work -----------------------------------------------------------------------------------


def between(life: Lived, *facts: e.Fact) -> Lived:
    """The same life, in which something happened while the review ran."""
    place = next(n for n, b in enumerate(life.batches) for o in b if isinstance(o.body, issues.PersonAsked))
    before = life.batches[place - 1][-1]
    more = [replace(before, body=fact) for fact in facts]
    return replace(life, batches=[*life.batches[:place], more, *life.batches[place:]])


def test_a_tree_that_changed_before_the_question_is_other_work() -> None:
    life, _ = story(one(REVIEWED))
    same = between(life, delivery.TreeSeen(Tree(True, "c0ffee")))
    assert said(same, one(UNREVIEWED)).verdict == "differs"
    other = between(life, delivery.TreeSeen(Tree(True, "c0ffee")), delivery.TreeSeen(Tree(True, "badbad")))
    found = said(other, one(UNREVIEWED))
    assert "the work tree changed" in missing(found).why


def test_a_run_of_another_issue_in_the_tree_is_other_work() -> None:
    life, _ = story(one(REVIEWED))
    (planned,) = [fact for fact in life.facts if isinstance(fact, runs.RunPlanned) and fact.access == "write"]
    other = replace(planned, issue="t-9", run="t-9/implement.1.1")
    found = said(between(life, other), one(UNREVIEWED))
    assert "t-9 wrote in the work tree" in missing(found).why


# --- agents -------------------------------------------------------------------------------------------------------


def team(**changes: Any) -> Agents:
    critic = given.CRITIC.model_copy(update=changes)
    return Agents(version=1, agents=(given.BUILDER, critic))


def test_another_model_was_never_asked() -> None:
    life, _ = story(one(REVIEWED), team())
    other = team(runner=RunnerChoice(agent_slug="plan", provider="acme", model="large"))
    found = said(life, None, other)
    assert missing(found).needs == "a run of review by critic"
    assert forked(found).seq == seq(life, runs.RunPlanned, 1)
    assert said(life, None, team()).verdict == "same"


def test_another_name_counts_until_a_prompt_shows_it() -> None:
    life, _ = story(one(REVIEWED), team())
    assert said(life, None, team(id="reviewer")).verdict == "same", "nobody is told of the last run"
    builder = given.BUILDER.model_copy(update={"id": "maker"})
    found = said(life, None, Agents(version=1, agents=(builder, given.CRITIC)))
    assert "name an agent of an earlier run otherwise" in missing(found).why


def test_a_phase_that_no_agent_can_take_holds_for_good() -> None:
    life, _ = story(one(REVIEWED))
    nobody = Agents(version=1, agents=(given.BUILDER,))
    found = said(life, None, nobody)
    assert (found.verdict, found.ends, found.least) == ("differs", ("closed", "held"), Count(1, 0))


# --- which policy -------------------------------------------------------------------------------------------------


def test_only_issues_that_the_other_policy_claims_otherwise_differ() -> None:
    docs = UNREVIEWED.model_copy(update={"match": Match(labels=("docs",))})
    others = Policies(version=1, policies={"docs": docs, "standard": REVIEWED})
    life, _ = story(one(REVIEWED), given.TEAM, "docs")
    found = said(life, others)
    assert (found.verdict, found.policy) == ("differs", ("standard", "docs"))
    assert forked(found).seq == seq(life, issues.PhaseEntered, 1), "a name is no difference"
    life, _ = story(one(REVIEWED))
    assert said(life, others).verdict == "same"


def test_a_policy_whose_name_prompts_show_is_told_to_agents() -> None:
    life, _ = story(one(REVIEWED))
    assert said(life, one(REVIEWED, "other")).verdict == "same"
    found = said(life, one(REVIEWED, "other"), named=True)
    assert "name the policy other" in missing(found).why


def test_an_issue_that_the_other_policy_does_not_claim_is_not_taken() -> None:
    life, _ = story(one(REVIEWED))
    found = said(life, one(REVIEWED.model_copy(update={"match": Match(types=("bug",))})))
    assert (found.verdict, found.ends) == ("differs", ("closed", "held"))
    assert (found.recorded, found.least, found.most) == (Count(2, 1), Count(), Count())


def test_an_issue_that_only_the_other_policy_claims_is_unknown_from_the_first_run_on() -> None:
    made = Scripted()
    made.begin(*given.start(one(REVIEWED.model_copy(update={"match": Match(types=("bug",))}))))
    made.open(ISSUE)
    made.look()
    life = Lived(made.world, made.kept, False)
    assert judged(life, one(REVIEWED.model_copy(update={"match": Match(types=("epic",))}))) == []
    found = said(life, one(REVIEWED))
    assert missing(found).needs == "a run of implement by builder"
    assert (found.recorded, found.least, found.most) == (Count(), Count(1, 0), Count(12, 1))


# --- what other rules decided -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rules", "unknown"), [(1, 3), (2, 3), (3, 3)])
def test_what_todays_rules_do_not_lead_to_is_compared_no_further(rules: int, unknown: int, tmp_path: Path) -> None:
    """Under rules 1 a turn never began; under 2 and 3 an outcome counted before a person who stood behind it."""
    (tmp_path / "journal").mkdir()
    shutil.copy(LIFE.parent / f"life-rules-{rules}.jsonl", tmp_path / "journal" / "000000000001.jsonl")
    kept = [batch.entries for batch in batches(tmp_path / "journal")]
    world = folded(chain.from_iterable(kept))
    found = [said for said in judged_all(kept, world.policies, world.agents) if said.verdict != "same"]
    assert len(found) == unknown
    assert all(said.fork and said.fork.why == counterfactual.OTHER_RULES for said in found)


# --- edits of the recorded policies ---------------------------------------------------------------------------------


def edited(when: str, before: Policy, after: Policy, **more: Any) -> Lived:
    """Live an issue whose policy is edited once it is in a phase."""
    made = Scripted(**more)
    made.begin(*given.start(one(before)))
    made.open(ISSUE)
    made.until(when)
    made.turn(given.adopted(one(after)))
    over = made.lives()
    return Lived(made.world, made.kept, over)


def test_an_edit_in_the_middle_of_a_run_changes_nothing_for_the_other_policy() -> None:
    made = counterfactual.Counterfactual(World(), one(REVIEWED), None)
    failing = WORK.model_copy(update={"stall": Stall(action="fail"), "retry": Retry(max_attempts=1)})
    life = edited(
        "implement", REVIEWED, Policy(phases=(failing, REVIEW, MERGE)), script={"implement": [{"result": "failed"}]}
    )
    assert life.stage == "parked"
    assert said(life, one(Policy(phases=(failing, REVIEW, MERGE)))).verdict == "same"
    found = said(life, one(REVIEWED))
    assert (found.verdict, found.least) == ("unknown", Count(2, 0))
    assert isinstance(found.fork and forked(found).recorded, issues.IssueParked)
    for entries in life.batches:
        made.batch(entries)
        flow = made.world.flows.get(ISSUE)
        if flow is not None and flow.run is not None and flow.run.began is not None:
            other = made._alter_world(made.world, made.lives[ISSUE]).flows[ISSUE].run
            assert other is not None
            assert other.began is None
            return
    pytest.fail("no edit fell into the run")


def test_a_question_whose_phase_an_edit_took_away_is_open_under_the_other_policy() -> None:
    closes = REVIEW.model_copy(update={"next": REVIEW.next | {"approve": "close"}})
    life = edited("merge", REVIEWED, Policy(phases=(WORK, closes)), answers=["none"])
    assert life.stage == "parked"
    found = said(life, one(REVIEWED))
    assert (found.verdict, found.ends) == ("unknown", ("parked", "unknown"))
    assert "an answer to the question of merge" in missing(found).needs
    assert said(life, None, given.TEAM).verdict == "same"


# --- created issues -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "verdict", "counts"),
    [("approved", "differs", (Count(), Count())), ("changes_requested", "unknown", (Count(), Count(12, 1)))],
)
def test_an_issue_whose_maker_would_not_have_run(answer: str, verdict: str, counts: tuple[Count, Count]) -> None:
    wanted = {"verdict": "approve", "created_issues": [{"title": "more", "type": "task"}]}
    made = Scripted(script={"review": [wanted]}, answers=[answer])
    made.begin(*given.start(one(REVIEWED)))
    made.open(ISSUE)
    made.lives()
    made.settle(200)
    life = Lived(made.world, made.kept, True)
    found = {said.issue: said for said in judged_all(life.batches, one(UNREVIEWED), None)}
    (child,) = [said for issue, said in found.items() if issue != ISSUE]
    assert found[ISSUE].verdict == verdict
    assert (child.verdict, (child.least, child.most)) == (verdict, counts)
    assert child.recorded.runs > 0
    assert child.ends[1] == ("not_created" if verdict == "differs" else "unknown")
    assert said_same(life) == {"same"}


def said_same(life: Lived) -> set[str]:
    return {said.verdict for said in judged_all(life.batches, one(REVIEWED), None)}


# --- sums ---------------------------------------------------------------------------------------------------------


def test_runs_that_did_not_begin_or_do_not_count_are_none() -> None:
    life, _ = story(one(REVIEWED))
    (ended, *_) = [fact for fact in life.facts if isinstance(fact, runs.RunEnded)]
    withdrawn = runs.RunWithdrawn(ISSUE, ended.run, "tree_dirty", "it is not ashep's")
    planned = [fact for fact in life.facts if isinstance(fact, runs.RunPlanned)]
    assert policy_diff.counted([*planned, ended]) == Count(2, 0)
    assert policy_diff.counted([*planned, withdrawn]) == Count(1, 0)
    assert policy_diff.counted([*planned, replace(ended, counts=False)]) == Count(1, 0)


def test_totals_add_up_and_leave_out_what_nothing_bounds() -> None:
    life, _ = story(one(REVIEWED))
    known = said(life, one(UNREVIEWED))
    unknown = replace(known, verdict="unknown", least=Count(1, 0), most=Count(9, 2))
    endless = replace(unknown, most=None)
    told = totals([known, unknown, endless])
    assert (told.verdicts, told.unbounded) == (Counter(differs=1, unknown=2), 1)
    assert (told.recorded, told.least, told.most) == (Count(4, 2), Count(2, 1), Count(10, 3))


def test_the_last_issues_are_those_with_the_last_records() -> None:
    _, kept = lived(3, 120)
    world, _ = lived(3, 120)
    made = counterfactual.Counterfactual(World(), world.policies, world.agents)
    for entries in kept:
        made.batch(entries)
    every = made.compared()
    assert len(every) > 2
    assert [said.last for said in every] == sorted(said.last for said in every)
    assert made.compared(2) == every[-2:]


# --- judged by what really would have been ------------------------------------------------------------------------

Pair = tuple[int, Lived, Case, Lived]
"""A seed, a life, other rules and agents, and the life under those."""


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    """Live issues under two policies each."""
    return [
        (seed, live(seed, case.policies, case.agents), other, live(seed, other.policies, other.agents))
        for seed in range(amount(120, 250))
        for case, other in [variant(seed)]
    ]


def errors(pairs: list[Pair], verdicts: Counter[str]) -> Iterator[str]:
    """Say what is wrong with what is said of the first life of each pair."""
    for seed, recorded, other, real in pairs:
        for strict in (False, True):
            for found in judged(recorded, other.policies, other.agents, strict=strict):
                verdicts[f"{found.verdict}, strictly" if strict else found.verdict] += 1
                if error := wrong(found, recorded, real):
                    yield f"{seed}: {error}"


@pytest.mark.promise("Y4")
@pytest.mark.slow
def test_what_is_said_is_what_really_would_have_been(pairs: list[Pair]) -> None:
    verdicts = Counter[str]()
    assert not [*errors(pairs, verdicts)]
    assert verdicts["same"] >= len(pairs) * 0.32
    assert verdicts["differs"] >= len(pairs) * 0.08
    assert verdicts["unknown"] >= len(pairs) * 0.12
    assert verdicts["unknown, strictly"] > verdicts["unknown"]
    assert verdicts["same, strictly"] == verdicts["same"]


SHOWN = {
    "name",
    "capabilities",
    "access",
    "verdicts",
    "allow_suggested",
    "answers",
    "max_runs",
    "may_change",
    "permissions",
    "story",
}
"""Keys of a phase that an agent, or its session, is given."""


def test_each_key_of_a_phase_either_leads_somewhere_or_is_shown_to_agents() -> None:
    assert Phase.model_fields.keys() == policy_diff._ROUTES ^ SHOWN, "add it to `_ROUTES`, or here if agents see it"  # pyright: ignore[reportPrivateUsage]


PASS = counterfactual.Counterfactual
GUESSES = [
    Mutant(
        "what is told to agents is of no account",
        policy_diff.dump_agent_view,
        "return given |",
        "return {} and given |",
    ),
    Mutant("how long runs take is of no account", policy_diff.untimely, "return time", "continue"),
    Mutant("no more runs than now", alternate_run.bounded, "policy.limits.max_runs - spent", "0"),
    Mutant("starts are not compared", private(PASS, "_dispatched"), "parted(was, now)", "None"),
    Mutant("the recorded policy decides", private(PASS, "_alter_world"), "self.policies or ", ""),
    Mutant("the recorded deadline counts", private(PASS, "_same"), "other.due if", "None if"),
    Mutant("what is left out is counted", policy_diff.counted, "questions += 1", "questions += 2"),
]
"""Each makes something up, or loses something, that a real life under the other policy shows."""


@pytest.mark.slow
@pytest.mark.parametrize("mutant", GUESSES, ids=lambda mutant: mutant.name)
def test_a_guess_is_found(mutant: Mutant, pairs: list[Pair]) -> None:
    with planted(mutant):
        assert next(errors(pairs, Counter()), "")


ASSUMED = [
    (test_an_answer_about_other_work_is_not_known,
     Mutant("any state of the work will do", alternate_run.met, 'body.access == "write"', "False")),
    (test_a_run_that_goes_on_for_longer_than_the_other_timeout_is_not_known,
     Mutant("what goes on takes no time", PASS.compared, "if life.fork is None", "if False")),
    (test_an_issue_that_no_agent_could_begin_is_not_taken,
     Mutant("nothing bounds it", private(alternate_run, "_policy"), 'flow.stage not in ("idle", "left")', "True")),
    (test_an_answer_after_the_other_deadline_came_too_late,
     Mutant("a late answer is good enough", alternate_run.met, "entry.at <= question.due", "True")),
    (test_another_question_is_another_question,
     Mutant("any question will do", alternate_run.met, "entry.seq if asked ==", "entry.seq if asked !=")),
    (test_a_tree_that_changed_before_the_question_is_other_work,
     Mutant("any tree will do", alternate_run.tree_seen, "(life.tree.head, life.tree.dirty) !=", "() ==")),
    (test_another_delay_is_another_outcome,
     Mutant("any delay will do", policy_diff.extract_decision, "not in left_out", 'not in {*left_out, "due"}')),
    (test_a_question_that_nobody_answered_in_time_might_have_been_answered_later,
     Mutant("nothing more is nothing else", policy_diff.parted, "zip_longest(", "zip(")),
    (test_a_question_that_may_lead_on_without_an_answer_has_runs_before_it,
     Mutant("only an answer leads on", alternate_run.bounded, "if leads_on else (0, 0)", "if False else (0, 0)")),
    (test_a_review_that_is_left_out_differs_where_it_is_entered_and_the_answer_counts,
     Mutant("people are never believed", private(alternate_run, "_settle"), "and not life.strict", "and life.strict")),
    (test_strictly_no_answer_counts_that_was_given_after_what_is_left_out,
     Mutant("people are always believed", private(alternate_run, "_settle"), "and not life.strict", "")),
    (test_another_name_counts_until_a_prompt_shows_it,
     Mutant("names are never shown", private(PASS, "_same"), "one.agent != other.agent", "False")),
    (test_a_phase_that_no_agent_can_take_holds_for_good,
     Mutant("every hold ends", private(alternate_run, "_for_good"), "phase is not None and choose(",
      "False and choose(")),
    (test_changes_that_are_requested_lead_to_a_run_that_nobody_saw,
     Mutant("a wanted run may not come", private(alternate_run, "_settle"), "life.counted, 1,", "life.counted, 0,")),
    (test_a_question_whose_phase_an_edit_took_away_is_open_under_the_other_policy,
     Mutant("edits of the record count", private(PASS, "_dispatched"), "self.policies is not None or", "False and")),
    (test_an_edit_in_the_middle_of_a_run_changes_nothing_for_the_other_policy,
     Mutant("a run keeps the recorded phase", private(PASS, "_alter_world"), "began=None",
            "began=flow.run.began")),
    (test_a_run_of_another_issue_in_the_tree_is_other_work,
     Mutant("only its own runs write", PASS.batch, "self._asking - {entry.body.issue}", "()")),
]  # fmt: skip
"""What no made-up life shows, as its people and agents are steady: each spoils its test."""


def test_decisions_that_were_not_made_are_missed(tmp_path: Path) -> None:
    mutant = Mutant("what is missing is of no account", PASS.batch, "if life.fork is None:", "if False:")
    with planted(mutant), pytest.raises(AssertionError):
        test_what_todays_rules_do_not_lead_to_is_compared_no_further(2, 3, tmp_path)


@pytest.mark.promise("Y4")
@pytest.mark.parametrize(("test", "mutant"), ASSUMED, ids=lambda one: one.name if isinstance(one, Mutant) else "")
def test_an_assumption_is_found(test: Callable[[], None], mutant: Mutant) -> None:
    with planted(mutant), pytest.raises((AssertionError, ValueError)):
        test()
