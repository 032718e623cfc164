"""A policy that passes the check never leaves an issue without a next move, and keeps the bounds that are told of it.

10,000 lives: `python -m tests.policies --lives 10000`.
"""

from itertools import islice

import pytest

from ashep.config.presets import PRESETS
from ashep.core.issues import routing
from ashep.core.reconcile import decide, dispatch
from tests.core.mutants import Mutant, planted
from tests.full import amount
from tests.policies.lives import lived, made, preset, subjects

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", PRESETS)
def test_under_a_preset_every_life_has_a_next_move(name: str) -> None:
    assert preset(name).sound
    assert lived(preset(name), 1, amount(10, 20)) == []


@pytest.mark.promise("F23")
def test_under_a_policy_that_passes_the_check_every_life_has_a_next_move() -> None:
    found = islice(subjects(), len(PRESETS), len(PRESETS) + amount(30, 50))
    assert [words for subject in found for words in lived(subject, 1, 6)] == []


def test_under_one_that_does_not_lives_have_a_next_move_too() -> None:
    unsound = [subject for seed in range(amount(50, 80)) if not (subject := made(seed)).sound]
    assert len(unsound) > 5
    assert [words for subject in unsound for words in lived(subject, 1, 4)] == []


FORGETFUL = [
    (Mutant("a deadline is forgotten", decide.timer_due, 'name == "question"', 'name == "no"'), "no next move"),
    (Mutant("an end is forgotten", routing.after_run, 'fact.state == "aborted"', 'fact.state != ""'), "no next move"),
    (Mutant("runs have no bound", dispatch.plan_run, ">= policy.limits.max_runs", ">= 10**9"), "runs, and the checker"),
]


@pytest.mark.parametrize(("mutant", "said"), FORGETFUL, ids=[mutant.name for mutant, _ in FORGETFUL])
def test_a_mistake_of_the_core_is_found(mutant: Mutant, said: str) -> None:
    subjects = [made(seed) for seed in range(70, 90)]  # what the checker says is right
    with planted(mutant):
        assert any(said in words for subject in subjects for words in lived(subject, 1, 8))
