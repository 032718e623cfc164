"""What is promised is proven: each promise of docs/SPEC.md has a test that names it, and no test names another one."""

import re
from functools import cache
from pathlib import Path

import pytest

from tools.promises_page import PAGE, ROOT, SPEC, Unreadable, page, proofs, statements

PROMISES = statements(SPEC.read_text())
PROOFS = cache(proofs)


def test_each_promise_has_a_test_that_names_it_or_is_said_to_have_none() -> None:
    section = SPEC.read_text().partition("\n## Not yet tested\n")[2]
    untested = set(re.findall(r"\b[A-Z]\d+\b", section.partition("\n## ")[0]))
    assert len(PROMISES) > 190
    assert set(PROMISES) - set(PROOFS()) == untested


def test_the_specification_is_read_in_half_an_hour() -> None:
    assert len(SPEC.read_bytes()) <= 60_000
    assert [line for line in SPEC.read_text().splitlines() if len(line) > 400] == []


def test_no_test_names_a_promise_that_there_is_not() -> None:
    assert {number: tests for number, tests in PROOFS().items() if number not in PROMISES} == {}


def test_the_page_of_proofs_is_fresh() -> None:
    assert PAGE.read_text() == page(SPEC.read_text(), PROOFS()), ".venv/bin/python -m tools.promises_page"


def test_the_suites_for_users_know_nothing_of_promises() -> None:
    paths = (ROOT / "ashep").rglob("*.py")
    assert [str(path) for path in paths if "mark.promise" in path.read_text()] == []


@pytest.mark.parametrize(("text", "why"), [
    ('@pytest.mark.promise("G1")\ndef helper(): ...\n', "is no test"),
    ('ONE = pytest.mark.promise("G1")\n', "a mark is not at a test"),
    ("@pytest.mark.promise(ONE)\ndef test_one(): ...\n", "no plain words"),
    ('@pytest.mark.promise("G1")\n@pytest.mark.full\ndef test_one(): ...\n', "leaves it out"),
    ("@pytest.mark.promise()\ndef test_one(): ...\n", "no plain words"),
    ('PROVES: dict[str, tuple[str, ...]] = {"test_one": ("G1",)}\n', "what it does not collect"),
])  # fmt: skip
def test_a_mark_that_proves_nothing_is_refused(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text(text)
    with pytest.raises(Unreadable, match=why):
        proofs(tmp_path)


def test_marks_of_files_classes_methods_and_suites_are_read(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text(
        "from suite import *\n"
        'pytestmark = [pytest.mark.slow, pytest.mark.promise("A1")]\n'
        'PROVES: dict[str, tuple[str, ...]] = {"test_of_the_suite": ("A2", "A3")}\n'
        "@pytest.mark.promise('A4')\nclass TestIt:\n    @pytest.mark.promise('A5')\n    def test_one(self): ...\n"
        "@pytest.mark.real\n@pytest.mark.promise('A4', 'A6')\nasync def test_two(): ...\n"
    )
    (tmp_path / "suite.py").write_text("def test_of_the_suite(): ...\n")
    name = "tests/test_it.py"
    assert proofs(tmp_path) == {
        "A1": [name],
        "A2": [f"{name}::test_of_the_suite"],
        "A3": [f"{name}::test_of_the_suite"],
        "A4": [f"{name}::TestIt", f"{name}::test_two"],
        "A5": [f"{name}::TestIt::test_one"],
        "A6": [f"{name}::test_two"],
    }
