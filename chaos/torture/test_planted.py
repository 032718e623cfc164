"""A test of the test: each planted bug is found, by a law that names it, and without it the same story is good."""

import pytest

from chaos.torture.finding import known, shows
from chaos.torture.planted import BUGS

SEEDS = known()


def test_each_bug_has_a_story_that_shows_it() -> None:
    assert SEEDS.keys() == BUGS.keys(), "`python -m chaos.torture.finding --write` finds one"


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_can_be_planted(bug: str) -> None:
    """What it replaces has the name by which it does: the stories take turns, and a rename is seen at once."""
    plant, *_ = BUGS[bug]
    with plant():
        pass


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str) -> None:
    seed = SEEDS[bug]
    assert shows(bug, seed), f"{bug!r} shows in the story of seed {seed} no more; `make deep ARGS=planted` looks on"
