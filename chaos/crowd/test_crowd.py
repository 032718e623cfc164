"""A crowd of issues that meet in a few files: each lands or is given up for a reason, within its bounds."""

import pytest

from chaos.crowd.crowd import VISITS, crowd
from tests.full import amount

ISSUES = amount(60, 200)


@pytest.mark.promise("Z5")
@pytest.mark.slow
@pytest.mark.may_block
@pytest.mark.timeout(900)
def test_issues_that_contradict_each_other() -> None:
    found = crowd(ISSUES, 12)
    assert found.issues == found.landed + sum(found.parked.values()) == ISSUES, f"{found}"
    assert set(found.parked) <= {"max_visits"}, f"{found}"
    assert found.landed >= 0.9 * ISSUES, f"{found}"
    assert found.conflicts >= ISSUES / 2, f"they were to meet: {found}"
    assert found.most_visits <= VISITS, f"{found}"
    assert found.rounds <= found.landed + found.conflicts + found.moved + found.short, f"{found}"
    assert found.virtual < 24 * 3600, f"{found}"
