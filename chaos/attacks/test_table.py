"""The table of ways: its page is fresh, and what is open is said."""

import pytest

from chaos.attacks.table import ROWS, Row
from tests.test_docs import ROOT
from tools.attacks_page import PAGE, page

ALL = [row for _, rows in ROWS for row in rows]


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text() == page(), ".venv/bin/python -m tools.attacks_page"


def test_there_are_many_and_each_once() -> None:
    assert len({row.way.name for row in ALL}) == len(ALL) > 30


@pytest.mark.parametrize("row", [row for row in ALL if row.way.boxed == "open"], ids=lambda row: row.way.name)
def test_what_is_open_is_said(row: Row) -> None:
    section = (ROOT / "docs" / "security.md").read_text().partition("\n## What is not contained\n")[2]
    assert row.way.said
    assert row.way.said.lower() in " ".join(section.partition("\n## ")[0].split()).lower()


def test_only_what_is_tried_without_a_sandbox_hangs_on_the_machine() -> None:
    assert {row.way.boxed for row in ALL} == {"contained", "detected", "open"}
