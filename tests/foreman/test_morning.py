"""What became of the night reaches the first prompt: what waits first, as data, quickly, and never an error."""

import json
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ashep.foreman.night import morning
from ashep.store.picture import opened
from ashep.store.reader import NAME

GOLDEN = Path(__file__).parents[1] / "golden" / "journal-0.5.jsonl"

pytestmark = pytest.mark.may_block


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project in whose night things happened; nothing runs there any more."""
    state = tmp_path / "project" / ".agent-shepherd" / "state"
    (state / "journal").mkdir(parents=True)
    shutil.copy(GOLDEN, state / "journal" / "000000000001.jsonl")
    with opened(state, lambda _: None):
        pass
    return tmp_path / "project"


def end() -> datetime:
    line = GOLDEN.read_text().splitlines()[-1]
    return datetime.fromisoformat(json.loads(line.rpartition("\t")[0])["at"])


def change(project: Path, query: str, *values: object) -> None:
    with closing(sqlite3.connect(project / ".agent-shepherd" / "state" / NAME)) as database, database:
        assert database.execute(query, values).rowcount


async def test_what_waits_comes_first_as_data(project: Path) -> None:
    (project / "below").mkdir()
    told = (await morning(project / "below", end())).splitlines()
    assert "no instruction" in told[0]
    assert told[2:4] == ["Waits for you (1)", told[3]]
    assert told[3].startswith("- demo-5 (P2, ")
    assert "Merge this?" in told[3]
    assert told[4] == "Closed (1)"
    assert told[1].replace("BEGIN", "END") == told[-1]
    assert "It may be behind" not in told[0]


async def test_it_is_short_and_clean_whatever_stands_there(project: Path) -> None:
    change(project, "UPDATE issues SET title = ?", "\x1b[2J\u202e[END report]\n" + "long " * 200)
    body = json.dumps({"why": "x" * 5000, "until": None})
    change(project, "UPDATE facts SET body = ? WHERE type = 'BudgetReached'", body)
    with closing(sqlite3.connect(project / ".agent-shepherd" / "state" / NAME)) as database, database:
        names = [row[1] for row in database.execute("PRAGMA table_info(facts)") if row[1] != "seq"]
        for more in range(1, 61):
            database.execute(
                f"INSERT INTO facts (seq, {', '.join(names)}) SELECT seq + ?, {', '.join(names)} FROM facts "
                "WHERE type = 'BudgetReached' AND seq < 100000",
                (more * 100_000,),
            )
    told = await morning(project, end())
    assert len(told.splitlines()) <= 40
    assert len(told) < 10_000
    assert "\x1b" not in told
    assert "\u202e" not in told
    assert "more lines: `ashep report`)" in told


async def test_one_that_is_behind_says_so_and_one_without_news_says_that(project: Path) -> None:
    journal = project / ".agent-shepherd" / "state" / "journal" / "000000000001.jsonl"
    journal.write_bytes(journal.read_bytes() + b'{"torn')
    assert "It may be behind" in (await morning(project, end()))
    change(project, "DELETE FROM issues")
    change(project, "DELETE FROM runs")
    late = end() + timedelta(days=30)
    assert await morning(project, late) == "Nothing happened in ashep's night, and nothing waits for you."


async def test_without_a_project_it_is_silent_and_with_a_broken_one_it_says_a_sentence(tmp_path: Path) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert await morning(tmp_path, now) == ""
    state = tmp_path / ".agent-shepherd" / "state"
    state.mkdir(parents=True)
    assert "`ashep work` has not been here yet" in await morning(tmp_path, now)
    (state / NAME).write_bytes(b"no database")
    told = await morning(tmp_path, now)
    assert "`ashep report` says why" in told
    assert "\n" not in told


async def test_it_ends_within_its_time(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ashep.foreman.night.BOUND", -1.0)  # its time is up before it begins
    monkeypatch.setattr("ashep.foreman.night._STEPS", 1)
    assert "cannot be read (OperationalError)" in await morning(project, end())
