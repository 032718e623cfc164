"""A test of the test: each planted bug is found, by a law that names it, and without it the same story is good."""

import pytest

from chaos.torture.finding import known, shows
from chaos.torture.planted import BUGS

SEEDS = known()


def test_each_bug_has_a_story_that_shows_it() -> None:
    assert SEEDS.keys() == BUGS.keys(), "`python -m chaos.torture.finding --write` finds one"


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str) -> None:
    seed = SEEDS[bug]
    assert shows(bug, seed), f"{bug!r} shows in the story of seed {seed} no more; `make deep ARGS=planted` looks on"
