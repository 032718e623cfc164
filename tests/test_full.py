"""Which of the long tests a commit runs."""

from collections.abc import Iterable

import pytest

from tests import full

PROMISE = "promise"  # by its name alone: docs/promises.md is made of the marks of real tests
COMMITS = [f"commit {number}" for number in range(60)]


class Silent(pytest.Item):
    """A test that does nothing, with marks."""

    def runtest(self) -> None:
        pass


def run_at(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, commit: str) -> set[str]:
    """Give the tests that a commit runs: of promise A a quick test shows something, of B real ones alone."""
    tests = list[Silent]()
    marks: Iterable[tuple[str, tuple[str, ...], str]] = (
        ("quick", (), "A"), ("first of A", ("real",), "A"), ("second of A", ("real",), "A"),
        ("first of B", ("real",), "B"), ("second of B", ("real",), "B"), ("slow", ("slow",), ""),
    )  # fmt: skip
    for name, kinds, promise in marks:
        test = Silent.from_parent(request.session, name=name)
        for kind in kinds:
            test.add_marker(kind)
        if promise:
            test.add_marker(getattr(pytest.mark, PROMISE)(promise))
        tests.append(test)
    monkeypatch.setattr(full, "commit", lambda: commit)
    full.take_turns(tests)
    return {test.name for test in tests if not test.get_closest_marker("full")}


def test_each_long_test_has_its_turn_and_no_promise_is_without_one(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(full.IN_FULL, raising=False)
    monkeypatch.setattr(full, "TURNS", 3)
    runs = [run_at(request, monkeypatch, commit) for commit in COMMITS]
    counts = {name: sum(name in run for run in runs) for name in set().union(*runs)}
    assert counts["quick"] == counts["first of B"] == len(COMMITS)
    assert len(COMMITS) / 3 < counts["first of A"] < len(COMMITS) * 2 / 3
    assert all(0 < counts[name] < len(COMMITS) * 0.55 for name in ("second of A", "second of B", "slow"))
    monkeypatch.setattr(full, "TURNS", 1)
    assert len(run_at(request, monkeypatch, COMMITS[0])) == 6
