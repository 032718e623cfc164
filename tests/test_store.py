"""The database and runs.jsonl are pictures of the journal: whatever becomes of them, they are drawn the same again."""

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ashep.core.analysis.issue_status import account
from ashep.core.facts.issues import IssueHeld, RetryScheduled
from ashep.core.facts.records import Entry
from ashep.core.facts.resources import ClockJumped, RunnerSeen
from ashep.core.facts.runs import (
    OutcomeRejected,
    RunEnded,
    RunPlanned,
    RunWithdrawn,
    SessionOpened,
    TurnSeen,
    TurnStopped,
)
from ashep.core.reconcile.evolve import evolve
from ashep.core.runs.run_record import RunRecord, tell
from ashep.core.state.world import World
from ashep.journal.writer import Journal
from ashep.store.projector import Follower
from ashep.store.sqlite_reader import FORM, is_behind, open_read_only
from ashep.store.writer import Store
from ashep.views.report import report
from ashep.views.times import stamp
from tests.core.laws import folded
from tests.golden import make as golden
from tests.golden.story import RUN, T0, story
from tests.waiting import meanwhile, wait_until

TABLES = {"facts": "seq", "runs": "run", "issues": "issue", "meta": "key"}


def dump(state: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Give all rows of all tables."""
    with contextlib.closing(open_read_only(state)) as db:
        return {
            table: [tuple(row) for row in db.execute(f"SELECT * FROM {table} ORDER BY {key}")]
            for table, key in TABLES.items()
        }


def fold(batches: list[list[Entry]]) -> World:
    """Fold batches."""
    return folded(chain.from_iterable(batches))


def draw(state: Path, journal: Journal, world: World | None = None) -> str:
    """Open the store, which draws everything; say why it was drawn anew."""
    store = Store.open(state, journal, world)
    store.close()
    return store.redrawn


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Give a state folder's place."""
    return tmp_path / ".agent-shepherd" / "state"


@pytest.fixture
def blank(state: Path) -> Iterator[Journal]:
    """Give a journal that tells nothing so far."""
    journal = Journal.open(state, T0)
    yield journal
    with contextlib.suppress(OSError):
        journal.close()


@pytest.fixture
def journal(blank: Journal) -> Journal:
    """Give a journal that tells the story."""
    return telling(blank, story())


def telling(journal: Journal, batches: list[list[Entry]]) -> Journal:
    """Give the journal with these batches, too."""
    for batch in batches:
        journal.append_now(batch)
    return journal


def pictures(state: Path) -> tuple[dict[str, list[tuple[Any, ...]]], bytes]:
    """Give all that is drawn: the rows, and the log of runs."""
    log = state.parent / "runs.jsonl"
    return dump(state), log.read_bytes() if log.exists() else b""


def drawn_anew(state: Path, journal: Journal) -> object:
    """Give what is drawn where there was no database."""
    (state / "ashep.db").unlink()
    draw(state, journal)
    return pictures(state)


def is_drawn(state: Path) -> Awaitable[bool]:
    """Say whether the picture is complete."""
    return to_thread.run_sync(lambda: not is_behind(state))


# --- what is drawn ------------------------------------------------------------------------------------------------


def test_every_entry_is_a_fact_in_order(state: Path, journal: Journal) -> None:
    draw(state, journal)
    entries = [entry for batch in story() for entry in batch]
    with contextlib.closing(open_read_only(state)) as db:
        rows = db.execute("SELECT * FROM facts ORDER BY seq").fetchall()
    assert [(row["seq"], row["type"]) for row in rows] == [(e.seq, type(e.body).__name__) for e in entries]
    assert [row["issue"] for row in rows] == [getattr(e.body, "issue", None) for e in entries]
    kinds = {row["type"]: row["kind"] for row in rows}
    assert (kinds["RunPlanned"], kinds["IssueSeen"], kinds["SendPrompt"]) == ("decision", "fact", "command")
    held = next(row for row in rows if row["type"] == "IssueHeld")
    assert json.loads(held["body"]) == {"issue": "demo-2", "code": "slots", "why": "all 1 slots are taken"}
    assert "5ec2e7" not in "".join(row["body"] for row in rows), "the secret stays in the journal"


@pytest.mark.promise("G3")
def test_every_known_issue_has_its_account(state: Path, journal: Journal) -> None:
    draw(state, journal)
    world = fold(story())
    with contextlib.closing(open_read_only(state)) as db:
        rows = {row["issue"]: row for row in db.execute("SELECT * FROM issues")}
    assert rows.keys() == set(world.flows)
    for issue, row in rows.items():
        stands = account(world, issue)
        assert (row["title"], row["state"], row["code"]) == (stands.title, stands.state, stands.code)
        assert (row["reason"], row["phase"], row["policy"]) == (stands.reason, stands.phase, stands.policy)
    assert rows["demo-2"]["state"] == "parked"
    assert json.loads(rows["demo-2"]["body"])["priority"] == 2


def test_other_keys_of_an_issue_raise_the_form() -> None:
    """Older rows lack them: raise `FORM` in ashep/store/sqlite_reader.py, then call `python -m tests.golden.make`."""
    known = json.loads(golden.KEYS.read_text())
    assert known["form"] == FORM or known["keys"] != golden.row_keys(), "the file is of another form: make it again"
    assert known["form"] != FORM or known["keys"] == golden.row_keys(), "a new or lost key needs another `FORM`"


@pytest.mark.promise("T4")
def test_a_run_is_told_from_its_facts(state: Path, journal: Journal) -> None:
    draw(state, journal)
    with contextlib.closing(open_read_only(state)) as db:
        rows = {row["run"]: dict(row) for row in db.execute("SELECT * FROM runs")}
    first = rows[RUN]
    seqs = {
        type(e.body).__name__: e
        for batch in reversed(story())
        for e in reversed(batch)
        if getattr(e.body, "run", "") == RUN
    }
    expected = {
        "issue": "demo-1", "phase": "implement", "visit": 1, "attempt": 1, "agent": "builder", "runner": "opencode",
        "provider": "acme", "model": "large", "capability": "implement", "access": "write", "state": "succeeded",
        "session": "ses_1", "result": "success", "verdict": None, "summary": "Done: “it works”", "error": None,
        "tokens": 1000, "cost": 0.013, "restarts": 1, "trace": seqs["RunPlanned"].seq, "ended": seqs["RunEnded"].seq,
    }  # fmt: skip
    assert {key: first[key] for key in expected} == expected
    assert first["planned_at"] < first["started_at"] < first["ended_at"]
    assert {run.rpartition("/")[2]: row["state"] for run, row in rows.items() if run != RUN} == {
        "review.1.1": "timed_out", "implement.1.2": "withdrawn", "implement.1.1": "lost",
        "arbitrate.1.1": "planned",
    }  # fmt: skip


def test_each_finished_run_has_one_line(state: Path, journal: Journal) -> None:
    draw(state, journal)
    lines = (state.parent / "runs.jsonl").read_text().splitlines()
    records = [RunRecord.model_validate_json(line) for line in lines]
    assert [record.state for record in records] == ["succeeded", "timed_out", "lost"], "a withdrawn run never was one"
    assert records[0].outcome is not None
    assert records[0].outcome.created_issues[0].title == "Test the edges"
    assert records[1].error == "it still ran"


def test_a_success_that_was_not_believed_is_no_success_in_the_log(state: Path, journal: Journal) -> None:
    """Its line was written before it was looked into."""
    draw(state, journal)
    path, seq, why = (
        state.parent / "runs.jsonl", journal.position.seq, "implement says success, but tests does not pass",
    )  # fmt: skip
    again = RetryScheduled("demo-1", "implement", 0, T0, why, disbelieved=RUN)
    journal.append_now([Entry(seq + 1, T0 + timedelta(days=400), again)])
    draw(state, journal)
    lines = path.read_bytes()
    record = RunRecord.model_validate_json(lines.splitlines()[0])
    assert (record.run, record.state, record.error) == (RUN, "failed", why)
    assert record.outcome is not None
    assert record.outcome.result == "success"
    assert [RunRecord.model_validate_json(line).state for line in lines.splitlines()[1:]] == ["timed_out", "lost"]
    caught_up = pictures(state)
    assert drawn_anew(state, journal) == caught_up, "and drawn anew it is the same"


def test_what_a_turn_had_used_where_it_was_stopped_is_in_the_log(state: Path, journal: Journal) -> None:
    """Its line was written when its run was over."""
    draw(state, journal)
    path, seq = state.parent / "runs.jsonl", journal.position.seq
    journal.append_now([Entry(seq + 1, T0, TurnStopped("demo-1", RUN, "k", 2, 5000, 9.0, "acme"))])
    draw(state, journal)
    record = RunRecord.model_validate_json(path.read_bytes().splitlines()[0])
    assert (record.tokens, record.cost) == (900 + 5000, 0.0125 + 9.0)
    with contextlib.closing(open_read_only(state)) as db:
        assert db.execute("SELECT tokens FROM runs WHERE run = ?", [RUN]).fetchone()["tokens"] == 5900
        told: list[Any] = [*report(db, stamp(T0), T0 + timedelta(days=1))["sections"]["cost"]]
    assert [line["tokens"] for line in told if seq + 1 in line["seqs"]] == [5900]
    caught_up = pictures(state)
    assert drawn_anew(state, journal) == caught_up, "and drawn anew it is the same"


def test_nothing_is_added_to_a_run_that_is_over() -> None:
    entries = [entry for batch in story() for entry in batch if getattr(entry.body, "run", "") == RUN]
    tally = None
    for entry in entries:
        tally = tell(tally, entry)
    assert tally is not None
    late = TurnSeen("demo-1", RUN, 1, "m", 1, "finished", "i", tokens=5000)
    assert tell(tally, Entry(999, T0, late)) is tally
    assert tell(tally, Entry(999, T0, RunEnded("demo-1", RUN, "lost", "late"))) is tally
    assert tell(tally, Entry(999, T0, TurnStopped("demo-1", RUN, "k"))) is tally, "nobody read what it had used"
    assert tell(None, Entry(999, T0, late)) is None


def test_an_extraction_costs_but_is_not_who_answered() -> None:
    tally = None
    for entry in (entry for batch in story() for entry in batch if getattr(entry.body, "run", "") == RUN):
        tally = tell(tally, entry)
        if isinstance(entry.body, OutcomeRejected):
            break
    seen = TurnSeen("demo-1", RUN, 2, "m", 1, "finished", "i", provider="other", model="small", tokens=7, cost=0.5)
    tally = tell(tell(tally, Entry(998, T0, SessionOpened("demo-1", RUN, "k", "ses_x"))), Entry(999, T0, seen))
    assert tally is not None
    record = tally.record
    assert (record.provider, record.model, record.session, record.tokens) == ("acme", "large", "ses_1", 907)


def test_a_run_tells_when_its_agent_and_a_person_wrote_last_whatever_an_extraction_writes() -> None:
    tally, minute = None, timedelta(minutes=1)
    for entry in (entry for batch in story() for entry in batch if getattr(entry.body, "run", "") == RUN):
        tally = tell(tally, entry)
    assert tally is not None
    assert tally.record.last_agent_message_at == T0 + 7 * minute
    assert tally.record.last_human_message_at == T0 + 8 * minute
    running = replace(tally, record=tally.record.model_copy(update={"ended_at": None}), extracting=False)
    seen = TurnSeen("demo-1", RUN, 2, "m", 1, "running", "i", agent_message_at=T0 + 9 * minute)
    later = tell(running, Entry(998, T0, seen))
    extracted = tell(replace(running, extracting=True), Entry(998, T0, seen))
    assert later is not None
    assert extracted is not None
    assert later.record.last_agent_message_at == T0 + 9 * minute
    assert later.record.last_human_message_at == T0 + 8 * minute, "another prompt has nobody behind it"
    assert extracted.record.last_agent_message_at == T0 + 7 * minute


# --- drawn again --------------------------------------------------------------------------------------------------


def corrupt(state: Path) -> None:
    path = state / "ashep.db"
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xa5" * 4096 + data[8192:])


def outdate(state: Path) -> None:
    change(state, "UPDATE meta SET value = '0/0.0.1' WHERE key = 'version'")


def change(state: Path, statement: str) -> None:
    with contextlib.closing(sqlite3.connect(state / "ashep.db")) as db:
        db.execute(statement)
        db.commit()


SPOILT: dict[str, tuple[Callable[[Path], Any], str]] = {
    "deleted": (lambda state: (state / "ashep.db").unlink(), "there was none"),
    "no database": (lambda state: (state / "ashep.db").write_text("hello " * 1000), "could not be read"),
    "empty": (lambda state: (state / "ashep.db").write_text(""), "could not be read"),
    "cut": (lambda state: (state / "ashep.db").write_bytes((state / "ashep.db").read_bytes()[:20000]), ""),
    "corrupt": (corrupt, ""),
    "outdated": (outdate, "it was of version 0/0.0.1"),
    "without tables": (lambda state: change(state, "DROP TABLE issues"), "it was incomplete: issues"),
    "without rows": (lambda state: change(state, "DELETE FROM facts WHERE seq > 50"), "it was incomplete: facts"),
    "without meta": (lambda state: change(state, "DELETE FROM meta"), "could not be read"),
    "of another journal": (
        lambda state: change(state, "UPDATE meta SET value='x' WHERE key='instance'"),
        "another journal",
    ),
    "ahead": (lambda state: change(state, "UPDATE meta SET value=9999 WHERE key='seq'"), "it held records up to 9999"),
    "elsewhere": (lambda state: change(state, "UPDATE meta SET value=77 WHERE key='offset'"), "another journal"),
}


@pytest.mark.promise("V1")
@pytest.mark.parametrize("name", SPOILT)
def test_a_spoilt_database_is_drawn_the_same_again(state: Path, journal: Journal, name: str) -> None:
    draw(state, journal)
    before = dump(state)
    spoil, reason = SPOILT[name]
    spoil(state)
    redrawn = draw(state, journal)
    assert redrawn, "it must be noticed"
    assert reason in redrawn
    assert dump(state) == before
    assert draw(state, journal) == "", "once is enough"
    assert dump(state) == before


@pytest.mark.parametrize("with_world", [True, False])
@pytest.mark.parametrize(
    "behind", [pytest.param(at, marks=[] if at % 4 == 0 else [pytest.mark.slow]) for at in range(0, len(story()), 3)]
)
def test_a_database_that_lags_catches_up(state: Path, blank: Journal, behind: int, with_world: bool) -> None:
    draw(state, telling(blank, story()[:behind]))
    journal = telling(blank, story()[behind:])
    assert draw(state, journal, fold(story()) if with_world else None) == ""
    caught_up = pictures(state)
    (state.parent / "runs.jsonl").unlink()
    assert drawn_anew(state, journal) == caught_up


def test_it_is_drawn_up_to_the_world_that_was_offered(state: Path, blank: Journal) -> None:
    """The journal may be ahead of the offer; accounts and facts must still be of one moment."""
    journal, store = blank, Store.open(state, blank)
    places = []
    for batch in story():
        journal.append_now(batch)
        places.append(journal.position)
    store.catch_up(journal, places[9], fold(story()[:10]))
    early = dump(state)
    assert early["facts"][-1][0] == story()[9][-1].seq
    store.catch_up(journal, places[4], fold(story()[:10]))
    assert dump(state) == early, "never backwards"
    store.catch_up(journal, places[-1], fold(story()))
    store.close()
    late = pictures(state)
    assert drawn_anew(state, journal) == late


@pytest.mark.promise("V1")
@pytest.mark.slow
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(stops=st.sets(st.integers(1, len(story()) - 1), max_size=5))
def test_drawing_step_by_step_is_drawing_at_once(tmp_path_factory: pytest.TempPathFactory, stops: set[int]) -> None:
    state = tmp_path_factory.mktemp("steps") / ".agent-shepherd" / "state"
    journal = Journal.open(state, T0)
    store, world = Store.open(state, journal), World()
    for number, batch in enumerate(story()):
        journal.append_now(batch)
        world = folded(batch, world)
        if number in stops:
            store.catch_up(journal, journal.position, world)
    store.catch_up(journal, journal.position, world)
    store.close()
    step_by_step = pictures(state)
    assert drawn_anew(state, journal) == step_by_step
    journal.close()


@pytest.mark.promise("V1")
@pytest.mark.parametrize("spoil", [
    lambda path: path.unlink(),
    lambda path: path.write_bytes(path.read_bytes()[:-7]),
    lambda path: path.write_bytes(path.read_bytes() * 2),
    lambda path: path.write_bytes(path.read_bytes().replace(b"lost", b"lust")),
])  # fmt: skip
def test_a_spoilt_run_log_is_drawn_the_same_again(state: Path, journal: Journal, spoil: Callable[[Path], Any]) -> None:
    draw(state, journal)
    path = state.parent / "runs.jsonl"
    before, file = path.read_bytes(), path.stat().st_ino
    draw(state, journal)
    assert path.stat().st_ino == file, "a good file is left alone"
    spoil(path)
    draw(state, journal)
    assert path.read_bytes() == before
    assert sorted(entry.name for entry in state.parent.iterdir()) == ["runs.jsonl", "state"]


def test_a_batch_that_was_cut_from_the_journal_leaves_the_picture(state: Path, journal: Journal) -> None:
    draw(state, journal)
    journal.close()
    path = journal.folder / journal.position.file
    path.write_bytes(path.read_bytes()[:-3])
    again = Journal.open(state, T0)
    assert is_behind(state)
    assert "but the journal ends at" in draw(state, again)
    again.append_now([Entry(again.next_seq, T0, IssueHeld("demo-5", "slots", "w"))])
    assert draw(state, again) == ""
    again.close()


# --- readers ------------------------------------------------------------------------------------------------------


def test_issues_are_shown_as_they_are_after_facts_about_none(state: Path, blank: Journal) -> None:
    """An agent server that goes away changes how a running issue is shown, though nothing was said of the issue."""
    journal = telling(blank, story()[:9])
    world = fold(story()[:9])
    store = Store.open(state, journal, world)
    states = [account(world, "demo-1").state]
    for fact in (RunnerSeen("away", "refused"), ClockJumped(timedelta(minutes=5)), RunnerSeen("up")):
        entry = Entry(journal.next_seq, T0, fact)
        journal.append_now([entry])
        world = evolve(world, entry)
        store.catch_up(journal, journal.position, world)
        followed = dump(state)["issues"]
        copy = state.parent / "copy" / "state"
        copy.mkdir(parents=True)
        Store.open(copy, journal).close()
        assert dump(copy)["issues"] == followed
        shutil.rmtree(copy.parent)
        states.append(account(world, "demo-1").state)
    assert {"running", "time"} <= {*states}, states
    store.close()


@pytest.mark.promise("V2")
def test_a_reader_never_keeps_the_writer_waiting(state: Path, journal: Journal) -> None:
    store = Store.open(state, journal, world := fold(story()))
    with contextlib.closing(open_read_only(state)) as reader:
        reader.execute("BEGIN")
        count = reader.execute("SELECT count(*) FROM facts").fetchone()[0]
        entry = Entry(journal.next_seq, T0, IssueHeld("demo-5", "slots", "w"))
        journal.append_now([entry])
        store.catch_up(journal, journal.position, evolve(world, entry))
        assert reader.execute("SELECT count(*) FROM facts").fetchone()[0] == count, "it sees what it began with"
        reader.execute("COMMIT")
        assert reader.execute("SELECT count(*) FROM facts").fetchone()[0] == count + 1
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader.execute("DELETE FROM facts")
    store.close()


@pytest.mark.promise("V3")
def test_its_files_are_for_the_user_alone(state: Path, journal: Journal) -> None:
    old = os.umask(0)
    try:
        with contextlib.closing(Store.open(state, journal, fold(story()))):
            modes = {path.name: path.stat().st_mode & 0o777 for path in state.glob("ashep.db*")}
        assert modes.keys() >= {"ashep.db", "ashep.db-wal", "ashep.db-shm"}
        assert set(modes.values()) == {0o600}
        (state / "ashep.db").chmod(0o644)  # as earlier versions left it
        Store.open(state, journal, fold(story())).close()
        assert (state / "ashep.db").stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(old)


def test_readers_can_read_what_a_killed_daemon_left(state: Path, journal: Journal, tmp_path: Path) -> None:
    store = Store.open(state, journal)
    copy = tmp_path / "copy" / "state"
    copy.mkdir(parents=True)
    for name in ("ashep.db", "ashep.db-wal"):
        shutil.copy(state / name, copy / name)
    shutil.copytree(state / "journal", copy / "journal")
    assert not is_behind(copy)
    assert dump(copy) == dump(state)
    store.close()


def test_stale_says_whether_the_picture_is_complete(state: Path, journal: Journal) -> None:
    assert is_behind(state), "there is none"
    draw(state, journal)
    assert not is_behind(state)
    journal.append_now([Entry(journal.next_seq, T0, IssueHeld("demo-5", "slots", "w"))])
    assert is_behind(state)
    draw(state, journal)
    assert not is_behind(state)
    (state / "ashep.db").write_text("hello " * 1000)
    assert is_behind(state)


def test_reading_imports_nothing_heavy() -> None:
    heavy = "('sqlmodel', 'sqlalchemy', 'pydantic', 'anyio')"
    code = f"import sys, ashep.store.sqlite_reader; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


# --- beside the shepherd ------------------------------------------------------------------------------------------


async def tell_all(journal: Journal, follower: Follower, batches: list[list[Entry]], world: World) -> World:
    """Append and offer, as the shepherd does."""
    for batch in batches:
        await journal.append(batch)
        world = folded(batch, world)
        follower.offer(journal.position, world)
    return world


@asynccontextmanager
async def following(state: Path, journal: Any, **more: Any) -> AsyncGenerator[tuple[Follower, list[str]]]:
    """Give a follower at work, and what it reports."""
    reports: list[str] = []
    follower = Follower(state, journal, reports.append, every=0.01, **more)
    async with meanwhile(follower.run):
        yield follower, reports


@pytest.mark.may_block  # reading here, in the test, is no harm
async def test_what_is_offered_is_drawn_soon_and_at_the_end(state: Path, blank: Journal) -> None:
    async with following(state, blank) as (follower, reports):
        world = await tell_all(blank, follower, story()[:10], World())
        await wait_until(partial(is_drawn, state))
        world = await tell_all(blank, follower, story()[10:], world)
    assert await is_drawn(state)
    followed = await to_thread.run_sync(pictures, state)
    assert await to_thread.run_sync(drawn_anew, state, blank) == followed
    assert reports == [f"{state}: the database was drawn anew: there was none"]


@pytest.mark.promise("V2")
@pytest.mark.may_block
async def test_an_error_is_reported_and_drawn_over(state: Path, blank: Journal) -> None:
    store = await to_thread.run_sync(Store.open, state, blank)
    async with following(state, blank, store=store) as (follower, reports):
        await tell_all(blank, follower, story()[:3], World())
        await wait_until(partial(is_drawn, state))
        await to_thread.run_sync(change, state, "DROP TABLE facts")
        for batch in story()[3:]:
            await blank.append(batch)
        follower.offer(blank.position, fold(story()))  # once: it is tried again without being told to
        await wait_until(lambda: len(reports) >= 2)
        await wait_until(partial(is_drawn, state))
    assert "could not be drawn" in reports[0]
    assert "no such table" in reports[0]
    followed = pictures(state)
    assert await to_thread.run_sync(drawn_anew, state, blank) == followed


@pytest.mark.promise("V1")
@pytest.mark.may_block
@pytest.mark.parametrize(
    "spoil",
    [
        lambda state: (state / "ashep.db").unlink(),
        lambda state: [(state / f"ashep.db{suffix}").unlink(missing_ok=True) for suffix in ("", "-wal", "-shm")],
        lambda state: (state / "ashep.db").replace(state / "elsewhere"),
        lambda state: (state.parent / "runs.jsonl").unlink(),
        lambda state: (state.parent / "runs.jsonl").write_text(""),
    ],
    ids=["database", "with its log", "moved away", "runs.jsonl", "runs.jsonl emptied"],
)
async def test_files_that_are_deleted_under_a_running_daemon_are_drawn_again(
    state: Path, blank: Journal, spoil: Callable[[Path], Any]
) -> None:
    async with following(state, blank, look_every=0.05) as (follower, reports):
        await tell_all(blank, follower, story(), World())
        await wait_until(partial(is_drawn, state))
        before = await to_thread.run_sync(pictures, state)
        assert before[1]
        spoil(state)
        await wait_until((state / "ashep.db").exists)  # nothing is told to it meanwhile
        await wait_until(lambda: pictures(state)[1] == before[1])
        await wait_until(partial(is_drawn, state))
        assert await to_thread.run_sync(pictures, state) == before
    assert pictures(state) == before
    assert any("deleted or replaced" in report for report in reports)


@pytest.mark.may_block
async def test_the_end_does_not_wait_for_a_drawing_from_the_beginning(
    state: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ashep.store.projection.CHUNK", 10)
    monkeypatch.setattr("ashep.store.projector.TELL_EVERY", 0.05)
    slow = _Slowly(journal)
    async with following(state, slow) as (follower, reports):
        follower.offer(journal.position, fold(story()))
        await wait_until(lambda: reports)
        given = slow.given
    assert slow.given <= given + 20, "it went on although the daemon was to end"
    assert f"of {journal.position.seq:,} records" in reports[0]
    assert not (state / "ashep.db").exists(), "all or nothing"
    await to_thread.run_sync(draw, state, journal)
    assert not (state / "ashep.db.new").exists()


class _Slowly:
    """A journal that gives a batch at a time."""

    def __init__(self, journal: Journal) -> None:
        self.journal, self.given = journal, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.journal, name)

    def batches(self, after: Any) -> Iterator[Any]:
        for batch in self.journal.batches(after):
            self.given += 1
            time.sleep(0.03)
            yield batch


async def test_offering_does_not_wait_for_a_locked_database(state: Path, blank: Journal) -> None:
    store = await to_thread.run_sync(Store.open, state, blank)
    follower = Follower(state, blank, lambda _: None, store=store, every=0.01)
    locked, go = threading.Event(), threading.Event()

    def lock() -> None:
        with contextlib.closing(sqlite3.connect(state / "ashep.db")) as db:
            db.execute("BEGIN IMMEDIATE")
            locked.set()
            go.wait(30)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(to_thread.run_sync, lock)
        await to_thread.run_sync(locked.wait)
        tasks.start_soon(follower.run)
        with anyio.fail_after(60):
            await tell_all(blank, follower, story(), World())
        go.set()
        await wait_until(partial(is_drawn, state))
        tasks.cancel_scope.cancel()


def test_withdrawn_runs_have_a_place_in_the_story() -> None:
    """The tests above would not notice if the story lost these."""
    bodies = [entry.body for batch in story() for entry in batch]
    for kind in (RunPlanned, RunEnded, RunWithdrawn, TurnSeen):
        assert any(isinstance(body, kind) for body in bodies)
