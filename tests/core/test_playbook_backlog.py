"""Conversations about a backlog that is there before ashep has worked on anything."""

from dataclasses import replace
from typing import Any

import pytest

from ashep.core.facts import issues
from ashep.core.facts.resources import BacklogHeld, DaemonStarted
from ashep.core.facts.tracker import Stamp, TrackerSeen
from ashep.core.state.holds import Backlog
from tests.core.given import ME, settings, up
from tests.core.playbook import Playbook

MANY = tuple(f"t-{number:02}" for number in range(1, 14))
FIRST, REST = MANY[:10], MANY[10:]


def book_of(backlog: Any, names: tuple[str, ...] = MANY, **daemon: Any) -> Playbook:
    config = settings(max_concurrent_runs=20, lock_work_tree=False)
    return Playbook(config=config, issues=names, backlog=backlog, **daemon)


def restart(book: Playbook, **daemon: Any) -> None:
    book >> [DaemonStarted(2, "0.1.0", **daemon), TrackerSeen(ME, "t", "1.3.0"), up()] << ...


def taken(book: Playbook) -> tuple[str, ...]:
    return tuple(fact.issue for fact in book.looked().bodies(issues.IssueTaken))


@pytest.mark.parametrize(
    ("backlog", "begins", "settled"),
    [("first", FIRST, True), ("none", (), True), ("all", MANY, True), ("", MANY, False)],
)  # fmt: skip
def test_what_is_there_first_is_worked_on_as_far_as_somebody_said(
    backlog: str, begins: tuple[str, ...], settled: bool
) -> None:
    book = book_of(backlog)
    assert taken(book) == begins
    held = {fact.issue for fact in book.bodies(issues.IssueHeld) if fact.code == "backlog"}
    assert held == {*MANY} - {*begins}
    assert book.world.backlog == Backlog(settled, frozenset(held))
    reasons = [fact.reason for fact in book.bodies(BacklogHeld)]
    assert reasons == ([] if not held else [
        f"13 issues are ready, and none was worked on before: {len(held)} of them wait. "
        "`ashep work --all` lets them go, `ashep work ISSUE` one"
    ])  # fmt: skip


def test_the_first_are_those_of_the_most_value_and_a_small_backlog_is_worked_on() -> None:
    book = book_of("first", FIRST)
    book.made.open("t-13", "ashep:excluded")
    assert (taken(book), book.bodies(BacklogHeld)) == (FIRST, [])
    book = book_of("first", FIRST)
    for number in (11, 12):
        book.made.open(f"t-{number}", priority=0)
    book.made.open("t-13", "ashep:excluded", priority=0)
    assert {*taken(book)} == {*FIRST[:8], "t-11", "t-12"}
    assert book.world.backlog.issues == {"t-09", "t-10", "t-13"}


def test_it_is_decided_once_and_new_issues_are_not_held() -> None:
    book = book_of("none")
    assert taken(book) == ()
    restart(book, backlog="first")
    book.made.open("t-20")
    assert taken(book) == ("t-20",)
    assert len(book.bodies(BacklogHeld)) == 1
    book = book_of("all", max_issues=0)
    assert taken(book) == ()
    restart(book, backlog="first")
    assert taken(book) == MANY


@pytest.mark.parametrize(
    ("daemon", "goes"), [({"backlog": "all"}, REST), ({"only": (REST[1],)}, REST[1:2]), ({"backlog": "first"}, ())]
)
def test_it_is_let_go_as_a_whole_or_by_name(daemon: dict[str, Any], goes: tuple[str, ...]) -> None:
    book = book_of("first")
    assert taken(book) == FIRST
    restart(book, **daemon)
    assert taken(book)[10:] == goes


def test_where_something_was_worked_on_before_nothing_is_held() -> None:
    book = book_of("first")
    view = book.made.tracker[MANY[0]]
    stamp = Stamp("another", 50, f"{MANY[0]}/implement.1.1", actor="ashep-elsewhere")
    book.made.tracker[MANY[0]] = replace(view, stamp=stamp)
    assert {*taken(book)} == {*MANY}
    book = book_of("first", FIRST)
    assert taken(book) == FIRST
    for name in REST:
        book.made.open(name)
    assert taken(book) == MANY
