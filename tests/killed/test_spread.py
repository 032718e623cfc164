"""A spread of the boundaries, some of them crossed twice. All: `make torture-real`."""

import pytest

from tests.killed.place import Place
from tests.killed.sweep import Kill, once_or_twice, spread, twice

pytestmark = pytest.mark.real

COUNT = 9
"""Lives; two of them are killed twice, which makes 11 boundaries."""


@pytest.mark.parametrize("number", range(COUNT))
def test_killed_at_a_boundary_it_comes_to_the_same_end(place: Place, found: list[Kill], number: int) -> None:
    chosen = spread(found, COUNT)
    kill = chosen[number]
    if number in (3, 7):  # the second kill soon after the restart
        kill = twice(chosen)[number]
    life = once_or_twice(place, kill)
    print(f"killed at {' and '.join(life.killed)}, {life.seconds:.1f} s")
