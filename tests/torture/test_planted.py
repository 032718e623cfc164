"""A test of the test: each planted bug is found, by a law that names it, and without it the same story is good."""

import pytest

from tests.torture.planted import BUGS
from tests.torture.story import run, simulated

SEEDS = 500

KNOWN = {
    "a tree is sealed for ever": 29,
    "a question without an end": 57,
    "stale read believed": 2,
    "effect before intent": 128,
}
"""Seeds in which some were found that take long to find: they are tried first."""


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str) -> None:
    plant, kinds, laws = BUGS[bug]
    for seed in (KNOWN.get(bug, 0), *range(SEEDS)):
        with simulated(), plant():
            bad = run(seed, kinds).bad
        if any(one.startswith(laws) for one in bad):
            with simulated():
                assert not run(seed, kinds).bad
            return
    raise AssertionError(f"{bug} was not found in {SEEDS} seeds")
