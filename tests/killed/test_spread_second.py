"""A spread of the boundaries, its second half."""

import pytest

from tests.killed.place import Place
from tests.killed.sweep import Kill
from tests.killed.test_spread_first import COUNT, check

pytestmark = pytest.mark.real


@pytest.mark.parametrize("number", range(COUNT // 2))
def test_killed_at_a_boundary_it_comes_to_the_same_end(place: Place, found: list[Kill], number: int) -> None:
    check(place, found, number, 1)
