"""A spread of the boundaries, its first half: two files, so that two workers share them. All: `make torture-real`."""

import pytest

from tests.killed.place import Place
from tests.killed.sweep import Kill, once_or_twice, spread, twice

pytestmark = pytest.mark.real

COUNT = 22
"""Lives in both halves together; four of them are killed twice, which makes 26 boundaries."""


@pytest.mark.promise("G1")
@pytest.mark.parametrize("number", range(COUNT // 2))
def test_killed_at_a_boundary_it_comes_to_the_same_end(place: Place, found: list[Kill], number: int) -> None:
    check(place, found, number, 0)


def check(place: Place, found: list[Kill], number: int, part: int) -> None:
    chosen = spread(found, COUNT, part, 2)
    kill = chosen[number]
    if number in (3, 8):  # the second kill soon after the restart
        kill = twice(chosen)[number]
    life = once_or_twice(place, kill)
    print(f"killed at {' and '.join(life.killed)}, {life.seconds:.1f} s")
