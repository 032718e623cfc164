"""docs/github-events.md: each row is there once and names a test; that it exists `tests/test_docs.py` looks."""

from tests.test_docs import DOCS, ROOT, known_tests

HEAD = ["there", "here", "what follows", "shown by"]

HOW = {
    "test_comments_come_in_order_and_tell_whether_they_were_edited",
    "test_the_first_look_shows_what_is_asked_for_and_then_what_changed",
    "test_the_played_github_is_held_to_the_published_one",
    "test_the_remote_says_which_repository_it_is",
    "test_what_is_there_no_more_is_gone",
    "test_what_people_may_do_is_asked",
    "test_whether_the_base_holds_a_commit",
    "test_where_edits_cannot_be_read_that_is_said",
}
"""Tests of how a source is asked, and not of what happens there."""


def list_rows() -> list[list[str]]:
    """List the rows of all tables."""
    lines = (line for line in (DOCS / "github-events.md").read_text().splitlines() if line.startswith("| "))
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in rows if row != HEAD]


def test_each_of_thirty_rows_and_more_is_there_once_and_names_its_test() -> None:
    rows = list_rows()
    assert len(rows) >= 30
    assert [row for row in rows if len(row) != 4 or "::test_" not in row[-1]] == []
    happens = [tuple(row[:2]) for row in rows]
    assert len({*happens}) == len(happens)


def test_each_test_of_what_happens_there_is_in_a_row() -> None:
    shown = {row[-1].strip("`").partition("::")[2] for row in list_rows()}
    assert known_tests(ROOT / "tests" / "conformance" / "test_source.py") - shown == HOW
