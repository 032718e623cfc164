"""Some hours of the ordinary test command, and whether the judge would see a leak."""

import pytest

from chaos.soak.figures import Bound, judge
from chaos.soak.virtual import soak


@pytest.mark.slow
@pytest.mark.may_block
@pytest.mark.timeout(600)
def test_some_hours_leave_nothing_behind() -> None:
    found = soak(2, issues=6, every=300.0)
    assert all(figure.good for figure in found), "\n".join(map(str, found))
    assert next(figure.after for figure in found if figure.name == "records") > 300, "it had something to do"


def test_what_grows_is_seen() -> None:
    flat = [{"memory": 100.0 + number % 3, "open": 3.0} for number in range(20)]
    assert all(figure.good for figure in judge(flat, {"memory": Bound(0.1), "open": Bound()}))
    leak = [{"memory": 100.0 + 2 * number, "open": 3.0} for number in range(20)]
    assert [figure.good for figure in judge(leak, {"memory": Bound(0.1), "open": Bound()})] == [False, True]
    one_more = [{"open": 3.0 + (number > 12)} for number in range(20)]
    assert [figure.good for figure in judge(one_more, {"open": Bound()})] == [False]
    assert [figure.good for figure in judge(one_more, {"open": Bound(0, 1)})] == [True]
    with pytest.raises(ValueError, match="too few"):
        judge(flat[:3], {})
