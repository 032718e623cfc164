"""What a person reads of an issue's work: the commits between which its sum lies, and what agents report."""

import json
import sqlite3
from typing import Any

import pytest

from ashep.views import lists
from ashep.views.issue_work import MOST, ends, summaries

NOTHING = "No agent has left a commit yet."
MIXED = "Others committed between its runs: the page of each run shows what that run changed."
Row = tuple[str, dict[str, Any]]


def prepared(base: str, head: str) -> Row:
    return "TreePrepared", {"base": base, "head": head}


def sealed(head: str) -> Row:
    return "TreeSealed", {"head": head}


def tree_seen(moment: str, head: str, *commits: str) -> Row:
    return "TreeSeen", {"moment": moment, "tree": {"head": head}, "commits": commits}


def integrated(base: str, commit: str) -> Row:
    return "WorkIntegrated", {"base": base, "commit": commit}


def database_of(*rows: Row, runs: int = 0) -> sqlite3.Connection:
    database = sqlite3.connect(":memory:")
    database.row_factory = sqlite3.Row
    database.executescript("CREATE TABLE issues (issue); CREATE TABLE facts (seq, issue, type, body, at);")
    database.execute("CREATE TABLE runs (issue, trace, body)")
    database.execute("INSERT INTO issues VALUES ('t-1')")
    for seq, (kind, body) in enumerate(rows):
        database.execute("INSERT INTO facts VALUES (?, 't-1', ?, ?, '')", [seq, kind, json.dumps(body)])
    for number in range(runs):
        outcome = {"result": "success", "verdict": None, "summary": f"report {number}"} if number % 2 else None
        run = {"run": f"t-1/implement.{number}.1", "phase": "implement", "agent": "builder", "ended_at": None}
        database.execute("INSERT INTO runs VALUES ('t-1', ?, ?)", [number, json.dumps(run | {"outcome": outcome})])
    return database


FIRST = [tree_seen("before", "a"), tree_seen("after", "b", "b")]
"""The first run in the user's own work tree."""


@pytest.mark.parametrize(
    ("rows", "sum_"),
    [
        ([], NOTHING),
        ([prepared("a", "a")], NOTHING),
        ([prepared("a", "a"), sealed("b")], ("a", "b")),
        ([prepared("a", "a"), sealed("b"), prepared("a", "b"), sealed("c")], ("a", "c")),  # wanted changes
        ([prepared("a", "a"), sealed("a")], NOTHING),
        ([prepared("a", "a"), sealed("b"), integrated("m", "x")], ("m", "x")),
        ([prepared("a", "a"), sealed("b"), integrated("m", "x"), prepared("a", "b")], ("a", "b")),
        (FIRST, ("a", "b")),
        ([*FIRST, tree_seen("before", "b"), tree_seen("after", "c", "c")], ("a", "c")),
        ([*FIRST, tree_seen("before", "z"), tree_seen("after", "z")], ("a", "b")),
        ([*FIRST, tree_seen("before", "z"), tree_seen("after", "c", "c")], MIXED),
        ([tree_seen("before", "a"), tree_seen("after", "a")], NOTHING),
    ],
)  # fmt: skip
def test_the_sum_lies_between_the_base_and_the_last_commit(rows: list[Row], sum_: tuple[str, str] | str) -> None:
    assert ends(database_of(*rows), "t-1") == sum_


def test_the_last_reports_come_first_and_are_bounded() -> None:
    reports = summaries(database_of(runs=200), "t-1")
    assert reports is not None
    assert [report["summary"] for report in reports] == [f"report {number}" for number in range(199, 199 - MOST, -2)]


@pytest.mark.parametrize("database", [None, database_of()])
def test_of_an_issue_that_nobody_knows_there_is_nothing(database: sqlite3.Connection | None) -> None:
    assert (ends(database, "t-9"), summaries(database, "t-9")) == (None, None)


def test_checks_that_fail_and_landings_are_steps_of_the_course() -> None:
    """The one thing that a graph is to explain: why approved work went back."""
    failed = {"check_id": "tests", "status": "failed"}
    rows: list[Row] = [
        ("WorkVerified", {"run": "t-1/implement.1.1", "results": [failed]}),
        ("WorkVerified", {"run": "t-1/implement.2.1", "ignore": True, "results": [failed | {"on_base": True}]}),
        ("WorkConflicted", {"paths": ["calc.py"]}),
        ("WorkVerified", {"run": "", "results": []}),
        ("LandingRefused", {"why": "main moves"}),
        ("LandingRefused", {"why": "main moves"}),
        ("WorkLanded", {"base_branch": "main", "commit": "e6a6e9c95cc1f"}),
    ]
    database = database_of(*rows)
    database.executescript("CREATE TABLE meta (key, value); INSERT INTO meta VALUES ('seq', 7)")
    course = lists.course(database, "t-1")
    assert course is not None
    assert [(step["phase"], step["passed"], step["result"], step["detail"]) for step in course["delivery"]] == [
        ("checks", False, "checks failed", "tests"),
        ("landing", False, "does not fit the base", "calc.py"),
        ("landing", True, "checks passed", ""),
        ("landing", False, "refused", "main moves"),
        ("landing", True, "landed", "main e6a6e9c95c"),
    ]
    assert [(edge["source"], edge["target"]) for edge in course["edges"]] == [
        ("#0", "#2"), ("#2", "#3"), ("#3", "#4"), ("#4", "#6"),
    ]  # fmt: skip
