"""What is made up holds everything that a policy can say, and nothing that files may not hold."""

from collections import Counter
from typing import get_args

import pytest
from hypothesis import given, settings

from ashep.config import Finding, check
from ashep.core.analysis.soundness import Code
from ashep.core.policy.settings import Settings
from tests.full import amount
from tests.policies.generate import CASES, Case, of_seed


def words(case: Case) -> set[str]:
    """What a policy says, as far as it leads issues anywhere."""
    said: set[str] = set()
    for phase in case.policy.phases:
        said |= {f"next {edge}" for edge in phase.next if edge in ("success", "failed", "partial")}
        said |= {
            key
            for key in ("verdicts", "allow_suggested", "prefer", "session", "verify", "checks", "when_flags")
            if key in phase.model_fields_set
        }
        if "sign" in phase.capabilities:
            said.add("a person is chosen")
        if phase.human is not None:
            back = phase.human.changes_requested
            said |= {"human", f"deadline {phase.human.on_deadline in ('park', 'close')}", f"back {back is not None}"}
        said.add(f"{phase.max_visits} visits, {phase.retry.max_attempts} attempts")
    return said | set(case.policy.limits.model_fields_set) | {f"{len(case.policy.phases)} phases"}


def test_whatever_a_policy_can_say_is_said() -> None:
    counted = Counter(word for seed in range(300) for word in words(of_seed(seed)))
    assert len(counted) == 30, sorted(counted)
    assert min(counted.values()) >= 15, counted


def mistakes(case: Case) -> list[Finding]:
    """What is wrong with the files alone; whether a policy can end is another question."""
    found = check(case.policies, case.agents, Settings())
    return [one for one in found if one.severity == "error" and one.code not in get_args(Code)]


@pytest.mark.slow
def test_without_flaws_there_is_nothing_to_refuse() -> None:
    for seed in range(amount(60, 3000)):
        case = of_seed(seed)
        assert not mistakes(case), (seed, mistakes(case), str(case))


def test_flaws_are_found() -> None:
    cases = [of_seed(seed, flaws=0.15) for seed in range(100)]
    codes = Counter(one.code for case in cases for one in check(case.policies, case.agents, Settings()))
    assert {"missing-edge", "unknown-target", "no-agent"} <= set(codes)
    assert min(codes[code] for code in ("missing-edge", "unknown-target", "no-agent")) >= 10, codes


def test_a_seed_is_a_case() -> None:
    assert [str(of_seed(seed)) for seed in range(20)] == [str(of_seed(seed)) for seed in range(20)]
    assert len({str(of_seed(seed)) for seed in range(200)}) > 190


@settings(max_examples=amount(20, 500))
@given(CASES)
def test_hypothesis_makes_them_too(case: Case) -> None:
    assert not mistakes(case)
