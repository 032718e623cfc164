"""The checker finds what brute force finds, and nothing else, on made-up policies; and mistakes in either show."""

import random
from collections.abc import Iterable
from dataclasses import replace

import pytest

from ashep.config.policy_checks import ends_of
from ashep.core.analysis import cost_bounds, soundness, transition_system
from ashep.core.analysis.soundness import Defect, PolicyVerdict, analyse, explore, line
from ashep.core.delivery import landing
from ashep.core.issues import routing
from ashep.core.policy.policies import Human, Phase, Policy, Retry, Verify
from ashep.core.policy.settings import Settings, WorkerSettings
from tests.core.given import TEAM, policy_of
from tests.core.killers import is_caught, words
from tests.core.mutants import Mutant, mutants, planted, private
from tests.full import amount
from tests.policies.generate import Case, of_seed
from tests.policies.oracle import Oracle

SEEDS = range(amount(120, 300))
"""`make deep ARGS=soundness` looks at 5,000, and how often each code is found there."""

CODES = {
    "unreachable-phase", "never-closes", "beyond-limits", "human-loop", "requires-unmet", "approval-skipped",
    "failure-left-behind",
}  # fmt: skip
"""What may be found in made-up policies."""


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


def verdict_of(case: Case) -> PolicyVerdict:
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
        found, shared = analyse(case.policies, case.agents, own)["made"], verdict_of(case)
        assert (found.findings, found.edges) == (shared.findings, shared.edges)


@pytest.mark.promise("F7")
@pytest.mark.slow
def test_it_finds_what_brute_force_finds_and_nothing_else() -> None:
    codes: dict[str, int] = {}
    for seed in SEEDS:
        case = demanding(seed)
        assert not differences(case), f"seed {seed}: {differences(case)}\n{case}"
        for one in verdict_of(case).findings:
            codes[one.code] = codes.get(one.code, 0) + 1
    assert set(codes) == CODES
    assert min(codes.values()) > 2, codes


def errors(case: Case) -> set[tuple[str, str]]:
    return {(one.code, one.phase) for one in verdict_of(case).findings if one.severity == "error"}


@pytest.mark.slow
def test_what_may_come_of_landing_makes_no_policy_unsound_that_was_sound() -> None:
    """Files that were in order before there was any landing stay so: at worst they are warned of."""
    differing = 0
    for seed in range(amount(100, 200)):
        case = demanding(seed)
        without: dict[str, object] = {"verify": None, "checks": (), "when_flags": {}}
        phases = tuple(phase.model_copy(update=without) for phase in case.policy.phases)
        case = replace(case, policy=case.policy.model_copy(update={"phases": phases}))
        now = verdict_of(case)
        with planted(NEVER_BACK):
            before, were = errors(case), verdict_of(case)
        assert bool(errors(case)) <= bool(before), (seed, errors(case) - before, str(case))
        differing += now != were
    assert differing  # some are


BLIND = mutants([
    ("nothing is undone", soundness, "_skipped", "if step.resets:", "if False:"),
    ("any end passes", soundness, "_skipped", "step.ended in phase.must_pass", "True"),
    ("nothing heals", soundness, "_left_behind", "before or good or", "before or"),
    ("nobody looks", soundness, "_left_behind", 'step.source.code != "own"', "False"),
    ("partial is a failure", soundness, "_left_behind", ' if step.move.name != "partial"', ""),
    ("failures lead on", soundness, "_is_good", '"question")', '"question", "failure")'),
    ("people never help", soundness, "_is_good", '"answer", "question")', '"question")'),
    ("flags close", soundness, "_is_good", '"success", "answer", "q', '"flagged", "success", "answer", "q'),
    ("whoever wrote", soundness, "_bare", "replace(state, writer", "replace(state, phase"),
    ("what does not land is not good", soundness, "_left_behind", "step.move.of or ", ""),
    ("flags lead nowhere", transition_system.TransitionSystem, "_moves",
     "phase.when_flags if self._is_changed(state) else ()", "()"),
    ("all work fits", transition_system.TransitionSystem, "steps", '== "finishing"', '== ""'),
    ("who wrote is forgotten", transition_system.TransitionSystem, "_state", "if report.phase in self._writers",
     "if False"),
    ("flags are not followed", routing, "proven", "return flagged or", "return"),
    ("a no undoes what was passed", routing, "after_answer", "why, keeps=True)\n    if", "why)\n    if"),
    ("anybody mends it", routing, "writer_of", "next(ran, writers[-1] if writers else None)", "(writers or [None])[0]"),
    ("every dead end is one", soundness, "_dead_ends", 'step.target.kind != "park"', "True"),
    ("what is required is forgotten", transition_system.TransitionSystem, "_fresh", "passed = state.passed if",
     "passed = () if"),
    ("nobody suggests", transition_system.TransitionSystem, "_moves", "phase.allow_suggested", "()"),
    ("limits count for ever", soundness, "_beyond_limits", "before = fresh if", "before = worn if"),
    ("visits do not count", soundness, "_beyond_limits", "any(phase.requires", "any(None"),
    ("a run too many", soundness, "_beyond_limits", "runs <= limits.max_runs", "runs <= limits.max_runs + 1"),
    ("runs are free", cost_bounds, "cheapest", '(state.kind == "work")', "0"),
    ("the farthest first", soundness, "_first_close", "queue.popleft()", "queue.pop()"),
    ("requires nothing", routing, "unmet", "ended.get(name) not in words", "False"),
    ("failures close", routing, "_give_up", "enter(world, flow, phase.next[kind], why)",
     "enter(world, flow, CLOSE, why)"),
    ("the first phase follows", routing, "following", "names[place]", "names[0]"),
])  # fmt: skip
NEVER_BACK = next(mutant for mutant in BLIND if mutant.name == "all work fits")


UNDONE = Case(
    policy_of(
        Phase(name="implement"), Phase(name="review", must_pass=("success",)),
        Phase(name="ask", human=Human(changes_requested="code")), Phase(name="code", next={"success": "ask"}),
    ),
    TEAM,
)  # fmt: skip
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


LOOKED_AT = Case(
    policy_of(
        Phase(name="implement", verdicts=("small", "large"), next={"small": "close", "large": "review"}),
        Phase(name="review", next={"success": "close", "failed": "ask"}),
        Phase(name="ask", human=Human()),
    ),
    TEAM,
)
"""A person looked at the failed review; that the work then does not fit the base changes nothing about that."""


CASES = {"undone": UNDONE, "twice there": TWICE_THERE, "looked at": LOOKED_AT}
KEYS = (*CASES, *range(400))
"""Who may see a mistake: these policies, and made-up ones."""


def is_seen(key: str | int) -> bool:
    return bool(differences(CASES[key] if isinstance(key, str) else demanding(key)))


def test_of_these_policies_it_finds_what_brute_force_finds() -> None:
    assert not any(is_seen(key) for key in CASES)


@pytest.mark.parametrize("mutant", BLIND, ids=lambda mutant: mutant.name)
def test_a_mistake_in_the_checker_or_in_the_core_shows(mutant: Mutant) -> None:
    assert is_caught("checker", mutant), words("checker", mutant)


FALLS_SHORT = policy_of(
    Phase(name="implement", verify=Verify(), allow_suggested=("code",)),
    Phase(name="ask", human=Human(approved="close", changes_requested="judge", on_deadline="close")),
    Phase(name="code", when_flags={"rules": "ask"}, next={"success": "close"}),
    Phase(
        name="judge", capabilities=("code",), verdicts=("good", "bad"), must_pass=("good",), verify=Verify(),
        when_flags={"rules": "ask"}, next={"good": "ask", "bad": "code"},
    ),
)  # fmt: skip
TRIED = """\
implement: success → ask asks a person
implement: suggests code → code
implement: success, but it does not hold → implement asks a person
implement: suggests code, but it does not hold → implement asks a person
ask: a person answers approved → closed
ask: a person answers approved, but it does not fit the base → implement
ask: nobody answers in time → closed
ask: nobody answers in time, but it does not fit the base → implement
ask: nobody answers in time, and it touches rules → ask asks a person
code: success → closed
code: success, but it does not fit the base → code
code: success, and it touches agent_instructions → code asks a person
code: success that touches rules → ask asks a person
code: success, but it does not hold → code asks a person
implement: a person answers approved → ask asks a person
implement: a person answers approved → code
code: a person answers approved → closed
code: a person answers approved, but it does not fit the base → code
code: a person answers changes_requested → code
judge: good → ask asks a person
judge: bad → code
judge: good that touches rules → ask asks a person
judge: good, but it does not hold → judge asks a person
judge: a person answers approved → ask asks a person"""


def tried() -> set[str]:
    """Every line that a search of the policy comes to."""
    case = Case(FALLS_SHORT, TEAM)
    space = explore(transition_system.TransitionSystem(case.policies, case.agents, Settings(), "made"))
    return {line(step) for steps in space.steps.values() for step in steps}


UNTRIED = mutants([
    ("all work holds", transition_system.TransitionSystem, "_moves", '"short") for move in good',
     '"short") for move in ()'),
    ("nobody asks about rules", transition_system.TransitionSystem, "_looked_at", "if flag is None or", "if True or"),
    ("suggestions are forgotten", transition_system.TransitionSystem, "_state", "said.suggested_next_phase or", ""),
    ("verdicts are forgotten", transition_system.TransitionSystem, "_state", "said.verdict or", ""),
    ("every verdict is looked into", transition_system.TransitionSystem, "_moves",
     "or move.name in claims(phase)", "or True"),
    ("work passes nowhere", routing, "after_answer", "target = proven(flow", "target = CLOSE #"),
])  # fmt: skip


def test_work_that_does_not_hold_fit_or_pass_by_itself_is_tried() -> None:
    assert set(TRIED.splitlines()) <= tried()
    assert "ask: a person answers approved, and it touches rules → ask asks a person" not in tried()  # they saw it
    assert not any(line.startswith("judge: bad,") for line in tried())  # it says so itself


@pytest.mark.parametrize("mutant", UNTRIED, ids=lambda mutant: mutant.name)
def test_what_is_not_tried_any_more_is_missed(mutant: Mutant) -> None:
    with planted(mutant), pytest.raises(AssertionError):
        test_work_that_does_not_hold_fit_or_pass_by_itself_is_tried()


TWICE = policy_of(
    Phase(name="implement", next={"success": "review"}, retry=Retry(max_attempts=2)),
    Phase(name="review", verdicts=("approve", "again"), next={"approve": "close", "again": "implement"}),
)
IDLE = policy_of(
    Phase(name="implement"),
    Phase(name="ask", human=Human(on_deadline="remind")),
    Phase(name="remind", human=Human(on_deadline="ask", changes_requested="implement")),
)
PROVEN = policy_of(Phase(name="implement", verify=Verify(max_attempts=2)))
LINE = policy_of(Phase(name="implement"), Phase(name="review"))
ENDLESS = [
    (Mutant("visits", routing.enter, ">= phase.max_visits", ">= 10**9"), TWICE),
    (Mutant("attempts", private(routing, "_try_again"), "failures < phase.retry.max_attempts", "True"), TWICE),
    (Mutant("evidence", private(landing, "_judge_success"), "flow.work.unproven >= most", "False"), PROVEN),
    (Mutant("landing", routing.enter, ">= phase.max_visits", ">= 10**9"), LINE),
    (Mutant("deadlines", routing.after_deadline, ">= target.max_visits", ">= 10**9"), IDLE),
]


@pytest.mark.promise("F7")
@pytest.mark.parametrize(("mutant", "policy"), ENDLESS, ids=lambda one: getattr(one, "name", ""))
def test_a_circle_that_nothing_counts_is_told_step_by_step(mutant: Mutant, policy: Policy) -> None:
    case = Case(policy, TEAM)
    assert not any(one.code == "livelock" for one in verdict_of(case).findings)
    with planted(mutant):
        (found,) = [one for one in verdict_of(case).findings if one.code == "livelock"]
    assert found.story[-1].endswith(f"→ {found.phase}") or found.story[-1].endswith(f"{found.phase} asks a person")
