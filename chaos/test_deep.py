"""The parts of `make deep`: they are cut as they say, go on where they were, and their page tells what they said."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from bench.__main__ import NAMES
from chaos import deep
from chaos.deep import PARTS, Book, Done, Part, figures, names, page, rows_of
from tests import full

GOOD = Part("counts", (("this", "--seed", "1"), ("this", "--seed", "2")), r"\d+ nights.*")


def test_each_piece_is_a_command_and_has_a_name_of_its_own() -> None:
    pieces = [piece for name, part in PARTS.items() for piece in names(name, part)]
    assert len({*pieces, *PARTS}) == len(pieces) + sum(len(part.pieces) > 1 for part in PARTS.values())
    modules = {words[0] for part in PARTS.values() for words in part.pieces}
    assert [name for name in sorted(modules) if find_spec(name) is None] == []
    assert {words[1] for words in PARTS["bench"].pieces} == {*NAMES} - {"suite"}


def test_the_pieces_of_a_part_are_all_of_it() -> None:
    seeds = [
        seed
        for *_, count, _, first in PARTS["torture"].pieces
        for seed in range(int(first), int(first) + int(count))
    ]  # fmt: skip
    assert seeds == [*range(20_000)]
    for often in ("once", "twice", "once-sandbox", "twice-sandbox"):
        pieces = PARTS[f"killed-{often}"].pieces
        kills = [kill for *_, each, _, first in pieces for kill in range(1000)[int(first) :: int(each)]]
        assert sorted(kills) == [*range(1000)]


def test_the_halves_of_two_commits_are_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(full.IN_FULL, raising=False)
    lived = set[tuple[int, ...]]()
    for commit in map(str, range(20)):
        monkeypatch.setattr(full, "commit", lambda commit=commit: commit)
        lived.add(tuple(full.half(range(7))))
    assert lived == {(0, 2, 4, 6), (1, 3, 5)}
    monkeypatch.setenv(full.IN_FULL, "1")
    assert full.half(range(7)) == [*range(7)]


def test_of_long_tests_the_turns_run_all_and_each_commit_shows_each_promise(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kept(commit: str) -> set[str]:
        items = list[pytest.Item]()
        for number in range(60):
            item = Nothing.from_parent(request.session, name=f"test_{number}")
            item.add_marker(("real", "slow", "virtual")[number % 3])
            item.add_marker(getattr(pytest.mark, PROMISE)(("X1", "X2")[number % 3 == 1 and number > 30]))
            items.append(item)
        items[6].add_marker("always")
        monkeypatch.setattr(full, "commit", lambda: commit)
        full.take_turns(items)
        return {item.name for item in items if not item.get_closest_marker("full")}

    monkeypatch.delenv(full.IN_FULL, raising=False)
    monkeypatch.setattr(full, "TURNS", 5)
    turns = {frozenset(kept(str(commit))) for commit in range(40)}
    always = {"test_0", "test_6", "test_31", *(f"test_{number}" for number in range(2, 60, 3))}
    assert len(turns) == full.TURNS
    assert frozenset.union(*turns) == {f"test_{number}" for number in range(60)}
    assert frozenset.intersection(*turns) == always
    assert sum(len(turn - always) for turn in turns) == 60 - len(always), "each has one turn"
    monkeypatch.setenv(full.IN_FULL, "1")
    assert kept("") == always, "all others are among those that `make deep` runs as `full`"


PROMISE = "promise"
"""The name of the mark: the page of proofs takes the mark itself for a proof."""


class Nothing(pytest.Item):
    """A test that is only looked at."""

    def runtest(self) -> None:
        raise AssertionError


def test_what_pieces_say_is_added_up_but_for_the_time() -> None:
    assert figures(["9 of 10 found, 12 s on 2 processes"]) == "9 of 10 found"
    assert figures(["2500 seeds, 1 bad, 99 s on 2 processes"] * 8) == "20000 seeds, 8 bad"
    assert figures(["1.5 min", "2 min"]) == "3.5 min"
    assert figures(["0 over the bound", "1 over the bound: size"]) == "0 over the bound; 1 over the bound: size"


def test_the_last_line_that_says_something_counts() -> None:
    assert deep.told(["1 nights of 2", "2 nights of 2", "more"], GOOD) == "2 nights of 2"
    assert deep.told(["Traceback"], GOOD) == "said nothing"


def test_a_part_is_good_once_all_of_its_pieces_are() -> None:
    one = Done(True, "1 nights, 0 bad", 60.0, "2026-01-01")
    first = deep.row("x", GOOD, "c0ffee", {"x-1": one})
    assert first == "| `x` | counts | `c0ffee` | 1 nights, 0 bad | 1.0 min | 2026-01-01 | good, 1 of 2 pieces |"
    assert (deep.row("x", GOOD, "c0ffee", {"x-1": one, "x-2": one}) or "").endswith("2 nights, 0 bad | 2.0 min | 2026-01-01 | good |")  # fmt: skip  # noqa: E501
    bad = Done(False, "1 nights, 1 bad", 60.0, "2026-01-01")
    assert (deep.row("x", GOOD, "c0ffee", {"x-1": one, "x-2": bad}) or "").endswith("2 nights, 1 bad | 2.0 min | 2026-01-01 | BAD |")  # fmt: skip  # noqa: E501
    assert deep.row("x", GOOD, "c0ffee", {}) is None


def test_the_page_is_written_by_this_and_keeps_what_other_parts_said() -> None:
    text = deep.PAGE.read_text(encoding="utf-8")
    assert page(rows_of(text)) == text
    assert rows_of(page({})) == {}
    line = "| `mutants` | x | `c0ffee` | 1 of 1 | 1.0 min | 2026-01-01 | good |"
    assert rows_of(page({"mutants": line})) == {"mutants": line}


def test_what_was_good_at_this_commit_is_not_done_again_and_what_was_bad_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One of the pieces is `this`, which is good, and the other one a module that is not there."""
    parts = {"x": Part("says this", (("this",), ("tests.not_there",)), "Simple is better .*|.* No module named .*")}
    monkeypatch.setattr(deep, "PARTS", parts)
    monkeypatch.setattr(deep, "commit", lambda: "c0ffee")
    monkeypatch.setattr(deep, "PAGE", tmp_path / "deep.md")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["deep"])
    assert deep.main() == 1
    assert Book(tmp_path / "ashep" / "deep" / "c0ffee").done["x-1"].good
    assert "Simple is better than complex" in (tmp_path / "deep.md").read_text()
    assert "BAD |" in (tmp_path / "deep.md").read_text()
    capsys.readouterr()
    assert deep.main() == 1
    again = capsys.readouterr().out
    assert "x-1: was good at c0ffee" in again
    assert "x-2: python -m tests.not_there" in again
