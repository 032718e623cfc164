"""The checker finds what brute force finds, and nothing else, on made-up policies; and mistakes in either show."""

import random
from collections.abc import Iterable
from dataclasses import replace

import pytest

from ashep.config.requirements import ends_of
from ashep.core import bounds, moves, passing, routing, soundness
from ashep.core.model import Human, Phase, Policy, Retry, Settings, WorkerSettings
from ashep.core.soundness import Defect, Verdict, analyse
from tests.core.given import TEAM, policy_of
from tests.core.mutants import Mutant, planted, private
from tests.policies.generate import Case, of_seed
from tests.policies.oracle import Oracle

SEEDS = range(2000)


def demanding(seed: int) -> Case:
    """A made-up policy, some of whose phases require something or must be passed."""
    case, chance = of_seed(seed), random.Random(-seed)
    phases: list[Phase] = []
    for phase in case.policy.phases:
        more: dict[str, object] = {}
        if chance.random() < 0.25:
            more["must_pass"] = (chance.choice(_ends(case, phase)),)
        if phases and chance.random() < 0.2:
            other = chance.choice(phases)
            more["requires"] = {other.name: (chance.choice(_ends(case, other)),)}
        phases.append(phase.model_copy(update=more))
    return replace(case, policy=case.policy.model_copy(update={"phases": tuple(phases)}))


def _ends(case: Case, phase: Phase) -> tuple[str, ...]:
    signs = phase.human is None and "sign" in phase.capabilities
    return ("approved", "changes_requested") if signs else ends_of(phase)


def _of(found: Iterable[Defect], *codes: str) -> dict[str, Defect]:
    return {one.phase: one for one in found if one.code in codes}


def verdict_of(case: Case) -> Verdict:
    return analyse(case.policies, case.agents, Settings())["made"]


def differences(case: Case) -> list[str]:
    """What the checker missed, made up, or told wrongly."""
    oracle, verdict = Oracle(case.policy, case.agents), verdict_of(case)
    found, wrong = verdict.findings, list[str]()
    if (names := set(_of(found, "unreachable-phase"))) != oracle.unreachable():
        wrong.append(f"unreachable: {names}, {oracle.unreachable()}")
    trapped = set(_of(found, "never-closes", "human-loop"))
    if bool(trapped) != bool(oracle.trapped()) or not trapped <= oracle.trapped():
        wrong.append(f"trapped: {trapped}, {oracle.trapped()}")
    unmet = set(_of(found, "requires-unmet"))
    if unmet - {case.policy.phases[0].name} != oracle.unmet() - {"", case.policy.phases[0].name}:
        wrong.append(f"unmet: {unmet}, {oracle.unmet()}")
    for phase in case.policy.phases:
        for code, most in (
            ("approval-skipped", oracle.closed_without(phase) if phase.must_pass else None),
            ("failure-left-behind", oracle.closed_over(phase)),
        ):
            told = _of(found, code).get(phase.name)
            if (told is None) != (most is None) or (told is not None and len(told.story) != most):
                wrong.append(f"{code} {phase.name}: {told}, {most}")
            if told is not None and not oracle.is_told(told.story):
                wrong.append(f"{code} {phase.name}: no such life: {told.story}")
    beyond = any(one.code == "beyond-limits" for one in found)
    if beyond != (oracle.fewest_runs() is not None and not oracle.closes_within_limits()):
        wrong.append(f"beyond limits: {beyond}")
    best = verdict.bounds.best_runs if verdict.bounds else None
    if best != oracle.fewest_runs():
        wrong.append(f"best: {best}, {oracle.fewest_runs()}")
    if any(one.code in ("livelock", "no-deadline", "dead-edge", "too-complex") for one in found):
        wrong.append(f"the core is right: {found}")
    return wrong


@pytest.mark.slow
def test_where_runs_work_is_no_matter() -> None:
    own = Settings(worker=WorkerSettings(workspace="worktree"))
    for seed in range(20):
        case = demanding(seed)
        assert analyse(case.policies, case.agents, own)["made"] == verdict_of(case)


def test_it_finds_what_brute_force_finds_and_nothing_else() -> None:
    codes: dict[str, int] = {}
    for seed in SEEDS:
        case = demanding(seed)
        assert not differences(case), f"seed {seed}: {differences(case)}\n{case}"
        for one in verdict_of(case).findings:
            codes[one.code] = codes.get(one.code, 0) + 1
    assert set(codes) == {
        "unreachable-phase", "never-closes", "beyond-limits",
        "human-loop", "requires-unmet", "approval-skipped", "failure-left-behind",
    }  # fmt: skip
    assert min(codes.values()) > 20, codes


BLIND = [
    Mutant("nothing is undone", private(soundness, "_skipped"), "if step.resets:", "if False:"),
    Mutant("any end passes", private(soundness, "_skipped"), "step.ended in phase.must_pass", "True"),
    Mutant("nothing heals", private(soundness, "_left_behind"), "before or good or", "before or"),
    Mutant("nobody looks", private(soundness, "_left_behind"), 'step.source.code != "own"', "False"),
    Mutant("partial is a failure", private(soundness, "_left_behind"), ' if step.move.name != "partial"', ""),
    Mutant("failures lead on", private(soundness, "_never_closes"), '"question")', '"question", "failure")'),
    Mutant("people never help", private(soundness, "_never_closes"), '"success", "answer"', '"success"'),
    Mutant("every dead end is one", private(soundness, "_dead_ends"), 'step.target.kind != "park"', "True"),
    Mutant("what is required is forgotten", moves.Board._fresh, "passed = state.passed if", "passed = () if"),  # pyright: ignore[reportPrivateUsage] - it is to be broken
    Mutant("nobody suggests", moves.Board._moves, "phase.allow_suggested", "()"),  # pyright: ignore[reportPrivateUsage] - as above
    Mutant("limits count for ever", private(soundness, "_beyond_limits"), "before = fresh if", "before = worn if"),
    Mutant("visits do not count", private(soundness, "_beyond_limits"), "any(phase.requires", "any(None"),
    Mutant(
        "a run too many", private(soundness, "_beyond_limits"), "runs <= limits.max_runs", "runs <= limits.max_runs + 1"
    ),
    Mutant("runs are free", bounds.cheapest, '(state.kind == "work")', "0"),
    Mutant("the farthest first", private(soundness, "_first_close"), "queue.popleft()", "queue.pop()"),
    Mutant("requires nothing", passing.unmet, "ended.get(name) not in words", "False"),
    Mutant(
        "failures close",
        private(routing, "_give_up"),
        "enter(world, flow, phase.next[kind], why)",
        "enter(world, flow, CLOSE, why)",
    ),
    Mutant("the first phase follows", routing.following, "names[place]", "names[0]"),
]


UNDONE = Case(
    policy_of(
        Phase(name="implement"),
        Phase(name="review", must_pass=("success",)),
        Phase(name="ask", human=Human(changes_requested="code")),
        Phase(name="code", next={"success": "ask"}),
    ),
    TEAM,
)
"""Everything that was passed is undone by a person's wish for changes, which goes around the review."""


TWICE_THERE = Case(
    policy_of(
        Phase(name="review", max_visits=1, verdicts=("again", "on"), next={"again": "implement", "on": "code"}),
        Phase(name="implement", next={"success": "review"}),
        Phase(name="code", requires={"implement": ("success",)}),
    ),
    TEAM,
)
"""Only who comes to the review twice gets on, and once is all that is allowed."""


@pytest.mark.slow
@pytest.mark.parametrize("mutant", BLIND, ids=lambda mutant: mutant.name)
def test_a_mistake_in_the_checker_or_in_the_core_shows(mutant: Mutant) -> None:
    with planted(mutant):
        assert any(differences(case) for case in (UNDONE, TWICE_THERE)) or any(
            differences(demanding(seed)) for seed in range(400)
        )


TWICE = policy_of(
    Phase(name="implement", next={"success": "review"}, retry=Retry(max_attempts=2)),
    Phase(name="review", verdicts=("approve", "again"), next={"approve": "close", "again": "implement"}),
)
IDLE = policy_of(
    Phase(name="implement"),
    Phase(name="ask", human=Human(on_deadline="remind")),
    Phase(name="remind", human=Human(on_deadline="ask", changes_requested="implement")),
)
ENDLESS = [
    (Mutant("visits", routing.enter, ">= phase.max_visits", ">= 10**9"), TWICE),
    (Mutant("attempts", private(routing, "_try_again"), "failures < phase.retry.max_attempts", "True"), TWICE),
    (Mutant("deadlines", routing.after_deadline, ">= target.max_visits", ">= 10**9"), IDLE),
]


@pytest.mark.parametrize(("mutant", "policy"), ENDLESS, ids=lambda one: getattr(one, "name", ""))
def test_a_circle_that_nothing_counts_is_told_step_by_step(mutant: Mutant, policy: Policy) -> None:
    case = Case(policy, TEAM)
    assert not any(one.code == "livelock" for one in verdict_of(case).findings)
    with planted(mutant):
        (found,) = [one for one in verdict_of(case).findings if one.code == "livelock"]
    assert found.story[-1].endswith(f"→ {found.phase}") or found.story[-1].endswith(f"{found.phase} asks a person")
