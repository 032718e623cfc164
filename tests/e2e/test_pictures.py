"""The journal is the truth: what is drawn from it comes back as it was, and what is wrong with it is said."""

import json
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from ashep.extras.demo.scripted_model import ModelRequest, Reply, outcome_text
from tests.e2e.site import Site, until

pytestmark = pytest.mark.real


def slowly(_: ModelRequest) -> Reply:
    return Reply("I think about it. " * 8 + outcome_text(), drip=0.1)


def delete(site: Site) -> None:
    for name in ("ashep.db", "ashep.db-wal", "ashep.db-shm"):
        (site.state / name).unlink(missing_ok=True)
    run_log(site).unlink(missing_ok=True)


def run_log(site: Site) -> Path:
    return site.project / ".agent-shepherd" / "runs.jsonl"


def drawn(site: Site) -> tuple[dict[str, list[tuple[object, ...]]], str]:
    """All that is in the pictures: every row of every table, and the run log."""
    json.loads(site.ashep("status", "--all", "--json"))  # a reader draws what is not drawn
    with closing(sqlite3.connect(f"file:{site.state}/ashep.db?mode=ro", uri=True)) as database:
        names = [str(row[0]) for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = {name: sorted(database.execute(f"SELECT * FROM {name}"), key=repr) for name in sorted(names)}
    assert all(rows[name] for name in ("facts", "runs", "issues")), {name: len(of) for name, of in rows.items()}
    return rows, run_log(site).read_text()


@pytest.mark.promise("V1")
def test_deleted_pictures_come_back_equal_without_a_daemon_and_beside_one(site: Site) -> None:
    first = site.add("first")
    assert site.work_until_idle(first) == 0
    rows, log = drawn(site)
    (site.state / "ashep.db").unlink()
    assert drawn(site)[0] == rows
    # beside a daemon in the middle of a turn
    second = site.add("second", behaves=slowly)
    with site.working(second, "--until-idle", "--idle-grace", "20s") as working:
        until(lambda: site.prompts(f"{second}/implement.1.1"), 60)
        delete(site)
        assert first in site.ashep("status", "--all"), "it is drawn again while the daemon runs"
        assert working.wait(240) == 0, working.text
    rows, log_after = drawn(site)
    assert log_after.startswith(log), "what was there before, and the new run"
    assert second in log_after
    delete(site)
    with site.working(second, "--until-idle", "--idle-grace", "1s") as working:
        working.wait(240)
    again, log_again = drawn(site)
    assert log_again == log_after
    assert again["runs"] == rows["runs"]
    assert set(map(repr, again["facts"])) >= set(map(repr, rows["facts"]))


@contextmanager
def flipped(path: Path, offset: int) -> Iterator[None]:
    """One bit of one byte is not what was written."""
    data = path.read_bytes()
    path.write_bytes(data[:offset] + bytes([data[offset] ^ 1]) + data[offset + 1 :])
    try:
        yield
    finally:
        path.write_bytes(data)


@pytest.mark.promise("J3")
def test_a_byte_flipped_in_the_middle_of_the_journal_is_refused_with_file_and_line(site: Site) -> None:
    issue = site.add("before the flip")
    assert site.work_until_idle(issue) == 0
    path = sorted((site.state / "journal").glob("*.jsonl"))[-1]
    data = path.read_bytes()
    offset = len(data) // 2
    line = data[:offset].count(b"\n") + 1
    with flipped(path, offset), site.working("--until-idle") as working:
        assert working.wait(240) == 65
        assert f"{path}:{line}:" in working.text
    assert path.read_bytes() == data, "nothing was changed"
    assert site.work_until_idle(issue) in (0, 1), "and restored it goes on"


@pytest.mark.full
def test_killed_again_and_again_at_moments_of_its_own_choice(site: Site) -> None:
    """Where boundaries are not known beforehand: in the middle of bd, of a turn, of drawing."""
    issue = site.add("kill me often", behaves=slowly)
    run = f"{issue}/implement.1.1"
    for seconds in (1.2, 1.7, 2.3, 3.1):
        with site.working(issue) as working:
            time.sleep(seconds)
            working.signal(signal.SIGKILL)
            working.wait(10)
    assert site.work_until_idle(issue) == 0
    assert site.issue(issue)["status"] == "closed"
    assert (site.prompts(run), site.requests(run)) == (1, 1)
