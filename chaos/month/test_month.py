"""A small month: what is said of another policy is what a recount of the raw records comes to."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ashep.core.analysis import alternate_run, policy_diff
from chaos.month.compared import Lived, differences, lived, said
from chaos.month.recount import Counted
from tests.core.mutants import Mutant, planted

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    """Live a few days in which a good deal happens."""
    return lived(tmp_path_factory.mktemp("month"), seed=4, issues=40, days=4.0, docs=0.7)


def test_what_is_told_is_what_a_recount_comes_to(month: Lived) -> None:
    assert not month.wrong
    sums = month.told["totals"]
    assert sums["same"] >= 10
    assert sums["differs"] >= 4
    assert sums["unknown"] >= 2
    assert sums["unbounded"] == 0
    assert sums["runs"]["saved"]["most"] > sums["runs"]["saved"]["least"]


@pytest.mark.parametrize("change", [{"verdict": "same"}, {"runs": (1, 1, 1)}, {"questions": (0, 0, 0)}])
def test_a_recount_that_comes_to_something_else_is_seen(month: Lived, change: dict[str, Any]) -> None:
    issue, one = next((issue, one) for issue, one in month.counted.items() if one.verdict == "unknown")
    other: dict[str, Counted] = month.counted | {issue: replace(one, **change)}
    assert differences(month.told, other)


MUTANTS = [
    Mutant("any answer will do", alternate_run.met, "asked == (question.phase", "True or asked == (question.phase"),
    Mutant("nothing ends before it is asked", alternate_run.met, "(runs.SessionTaken, *CYCLE_ENDS)", "()"),
    Mutant("what follows is no run", alternate_run.bounded, "unknown.least)", "0) - 1"),
    Mutant("cycles never end", policy_diff.ComparedIssue.count, "and not begins", "and False"),
    Mutant("a life begins with its end", policy_diff.ComparedIssue.count, "and not begins", ""),
]  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mistake_is_seen(month: Lived, mutant: Mutant) -> None:
    with planted(mutant):
        assert differences(said(month.project, Path(month.other)), month.counted)
