"""Writer of the database: drawn from the journal, from where the database stands to where the journal does.

A `Store` blocks; the daemon has one behind `ashep.store.projector`. SQLAlchemyError, sqlite3.Error, OSError and
JournalDamaged may come out of it: that store is spoilt then, and the next `Store.open` sees to it.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import cast

from pydantic import TypeAdapter
from sqlalchemy import Connection, Engine, Select, create_engine, delete, event, func, insert, inspect, select, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.schema import CreateTable
from sqlmodel import SQLModel

from ashep.core.delivery.workspaces import mode
from ashep.core.facts.records import Entry, from_json
from ashep.core.runs.run_record import RunRecord, Tally, changes_what_is_over, run_of, tell
from ashep.core.state.indexes import turn
from ashep.core.state.pauses import Pauses
from ashep.core.state.world import World
from ashep.journal.reader import START, Position
from ashep.store.issue_row import Row, issue_row
from ashep.store.projection import CHUNK, Drawing, JournalSource, Progress
from ashep.store.schema import (
    ALL,
    FACTS,
    ISSUES,
    META,
    RUNS,
    edit_json,
    entry_data,
    fact_row,
    limits_json,
    marks_json,
    notices_json,
    outages_json,
    quotas_json,
    repository_json,
    run_row,
    runners_json,
    sources_json,
)
from ashep.store.sqlite_reader import NAME, VERSION

DRAFT = NAME + ".new"
"""Where it is drawn again."""

_PAUSES = TypeAdapter(Pauses)
_COLUMNS = tuple(column.name for column in FACTS.columns)
_INSERT_FACT = f"INSERT INTO {FACTS.name} ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"
"""As SQLAlchemy would write it; most rows are facts, and handing them over as they are halves what they cost."""


class RunLog:
    """`runs.jsonl`: one line for each finished run, in the order in which they ended; written by the daemon only.

    It is a picture, too: redrawn where it is not what it should be. All of this blocks and raises OSError.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._left: tuple[int, int] | None = None

    def stands(self) -> bool:
        """Say whether the file is as this one left it: nobody has deleted, replaced or cut it."""
        return self._left == _identify_file(self.path)

    def append(self, lines: Iterable[str]) -> None:
        """Add the lines of runs that ended just now. It need not be durable: `reconcile` draws what was lost."""
        data = "".join(line + "\n" for line in lines).encode()
        if data:
            with self.path.open("ab") as file:
                file.write(data)
            self._left = _identify_file(self.path)

    def reconcile(self, lines: Iterable[str]) -> bool:
        """Make the file hold exactly these lines; True: it had to be drawn again, in one piece."""
        draft = self.path.with_name(self.path.name + ".tmp")
        with draft.open("wb") as file:
            file.writelines((line + "\n").encode() for line in lines)
            file.flush()
            os.fsync(file.fileno())
        same = _same(self.path, draft)
        if same:
            draft.unlink()
        else:
            draft.rename(self.path)
        self._left = _identify_file(self.path)
        return not same


class Store:
    """The database and runs.jsonl of a state folder."""

    def __init__(self, engine: Engine, runs: RunLog | None, redrawn: str, progress: Progress) -> None:
        """Use `Store.open`."""
        self.redrawn = redrawn
        """Why the database was drawn again; empty: it was not."""
        self._engine, self._log, self._progress = engine, runs, progress
        self._db: Connection = engine.connect()
        self._tallies: dict[str, Tally] = {}
        self._position, self._turn = START, ""
        self._path = Path(engine.url.database or "")
        self._file = _identify_file(self._path, by_size=False)
        self._begins = 0
        """What precedes this number has no rows any more."""
        self._amended = False
        """Whether a run that was over was told of once more."""

    @classmethod
    def open(
        cls,
        state: Path,
        source: JournalSource,
        world: World | None = None,
        *,
        until: Position | None = None,
        progress: Progress = lambda _done, _end: None,
    ) -> "Store":
        """Open, and draw again or catch up as need be, up to a position: by default the journal's present end.

        `world` is the World there, if known. The database is drawn again where it is missing, damaged, of another
        version, or not of this journal: next to its place, so that whoever reads sees all of it or nothing.
        """
        path, end = state / NAME, until or source.position
        reason = _reason(path, source)
        if reason:
            _draw_anew(state, source, end, world, progress)
        log = RunLog(state.parent / "runs.jsonl")
        store = cls(_engine(_private(path)), log, reason, progress)
        try:
            store._begin()
            store.catch_up(source, end, world)
            log.reconcile(store._finished())
        except BaseException:
            store.close()
            raise
        return store

    def stands(self) -> bool:
        """Say whether the files that are written to are still the ones that readers find. Blocks, for microseconds."""
        return _identify_file(self._path, by_size=False) == self._file and (self._log is None or self._log.stands())

    def catch_up(self, source: JournalSource, until: Position, world: World | None = None) -> None:
        """Draw what the journal holds up to a position, in one transaction.

        `world` is the World at that position; without it the journal is folded from a snapshot on, if there is
        something to draw.
        """
        begins = source.begins
        if begins > self._begins:
            self._forget(begins)
        if until.seq <= self._position.seq:
            return
        ended: list[str] = []
        drawing = Drawing(source, self._position, until, world, self._turn)
        with self._db.begin():
            for entries in drawing.chunks(self._progress):
                rows = map(fact_row, entries)
                self._db.exec_driver_sql(_INSERT_FACT, [tuple(map(row.__getitem__, _COLUMNS)) for row in rows])
                ended += self._write_runs(self._tally_entries(entries))
            self._position = until
            known, issues = drawing.end()
            self._turn = turn(known.indexes)
            if changed := [issue_row(known, issue) for issue in issues]:
                self._db.execute(insert(ISSUES).prefix_with("OR REPLACE"), changed)
            self._write_meta(source, known)
        if self._log is not None and self._amended:
            self._log.reconcile(self._finished())
        elif self._log is not None:
            self._log.append(ended)
        self._amended = False

    def draw_all(self, source: JournalSource, until: Position, world: World | None) -> None:
        """Fill an empty database."""
        for table in ALL:
            self._db.execute(CreateTable(table))
        self._db.commit()
        self.catch_up(source, until, world)
        for index in (index for table in ALL for index in table.indexes):
            index.create(self._db)  # once all rows are there: kept up row by row they would cost several times as much
        self._db.commit()

    def close(self) -> None:
        """Close the database."""
        self._db.close()
        self._engine.dispose()

    def _begin(self) -> None:
        SQLModel.metadata.create_all(self._db, tables=list(ALL))
        self._db.commit()
        meta = _meta(self._db)
        self._db.commit()
        if meta:
            self._position = _position(meta)
            # the runs that are not over are told again, from their facts
            under_way = select(RUNS.c.run).where(RUNS.c.ended.is_(None))
            for row in self._rows(select(FACTS).where(FACTS.c.run.in_(under_way)).order_by(FACTS.c.seq)):
                self._tally_entries([from_json(entry_data(row))])
            self._db.commit()

    def _tally_entries(self, entries: Iterable[Entry]) -> dict[str, Tally]:
        """Give the runs that changed."""
        changed: dict[str, Tally] = {}
        for entry in entries:
            run = run_of(entry)
            if run:
                before = self._tallies.get(run) or (self._load_tally(run) if changes_what_is_over(entry) else None)
                after = tell(before, entry)
                if after is not None and after is not before:
                    changed[run] = self._tallies[run] = after
        return changed

    def _load_tally(self, run: str) -> Tally | None:
        """A run that is over, as its row and its facts tell it: the line of runs.jsonl is not what it should be any
        more.
        """
        rows = [*self._db.execute(select(RUNS.c.body, RUNS.c.ended).where(RUNS.c.run == run)).mappings()]
        self._amended |= bool(rows)
        if not rows:
            return None
        tally = None
        for row in self._rows(select(FACTS).where(FACTS.c.run == run).order_by(FACTS.c.seq)):
            tally = tell(tally, from_json(entry_data(row)))
        turns = tally.turns if tally is not None else ()
        return Tally(RunRecord.model_validate_json(rows[0]["body"]), turns, rows[0]["ended"])

    def _write_runs(self, tallies: dict[str, Tally]) -> list[str]:
        """Write runs; give the lines of runs.jsonl for those that finished."""
        rows = [run_row(tally.record, tally.ended) for tally in tallies.values()]
        if rows:
            self._db.execute(insert(RUNS).prefix_with("OR REPLACE"), rows)
        over = sorted((tally.ended, run) for run, tally in tallies.items() if tally.ended is not None)
        for _, run in over:
            del self._tallies[run]
        records = (tallies[run].record for _, run in over)
        return [record.model_dump_json() for record in records if record.state != "withdrawn"]

    def _forget(self, begins: int) -> None:
        """Delete the rows of what was pruned, as a drawing from the beginning would not have them: facts, and runs that
        were planned before it. A run that is not over is still to be shown.
        """
        with self._db.begin():
            self._db.execute(delete(FACTS).where(FACTS.c.seq < begins))
            over = (RUNS.c.trace < begins) & RUNS.c.ended.is_not(None)
            gone = self._db.execute(delete(RUNS).where(over)).rowcount
            self._db.execute(insert(META).prefix_with("OR REPLACE"), [{"key": "begins", "value": str(begins)}])
        self._begins = begins
        if gone and self._log is not None:
            self._log.reconcile(self._finished())

    def _write_meta(self, source: JournalSource, world: World) -> None:
        file, offset, seq, crc = self._position
        values = {"version": VERSION, "instance": source.instance or "", "file": file, "offset": offset}
        values["findings"] = len(world.findings)
        values["pauses"] = _PAUSES.dump_json(tuple(pause for pause in world.pauses if not pause.lifted)).decode()
        values["budgets"], values["providers"] = marks_json(world), outages_json(world)
        values["notices"], values["server"] = notices_json(world), runners_json(world)
        values["begins"], values["limits"] = self._begins, limits_json(world)
        values["edit"], values["workspace"], values["quotas"] = edit_json(world), mode(world), quotas_json(world)
        values["repository"], values["sources"] = repository_json(world), sources_json(world)
        rows = [{"key": key, "value": str(value)} for key, value in (values | {"seq": seq, "crc": crc}).items()]
        self._db.execute(delete(META))
        self._db.execute(insert(META), rows)

    def _finished(self) -> Iterator[str]:
        finished = RUNS.c.ended.is_not(None) & (RUNS.c.state != "withdrawn")
        for row in self._rows(select(RUNS.c.body).where(finished).order_by(RUNS.c.ended)):
            yield row["body"]
        self._db.commit()

    def _rows(self, query: Select[*tuple[object, ...]]) -> Iterator[Row]:
        for row in self._db.execute(query, execution_options={"yield_per": CHUNK}).mappings():
            yield cast(Row, row)


def _draw_anew(state: Path, source: JournalSource, until: Position, world: World | None, progress: Progress) -> None:
    """Draw a database next to the one that is to be replaced, and put it in its place."""
    path, draft = state / NAME, state / DRAFT
    draft.unlink(missing_ok=True)
    store = Store(_engine(_private(draft), draft=True), None, "", progress)
    try:
        store.draw_all(source, until, world)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    finally:
        store.close()
    for suffix in ("-wal", "-shm", "-journal"):  # of the one before; next to the new one they would spoil it
        path.with_name(NAME + suffix).unlink(missing_ok=True)
    draft.replace(path)


def _engine(path: Path, *, draft: bool = False) -> Engine:
    """Let readers go on while we write; a power cut may take the last transactions, which are drawn again.

    Nobody reads a draft, and what a crash leaves of it is thrown away.
    """

    def prepare(connection: DBAPIConnection, _: object) -> None:
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA journal_mode={'OFF' if draft else 'WAL'}")
        cursor.execute(f"PRAGMA synchronous={'OFF' if draft else 'NORMAL'}")
        cursor.close()

    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": 10})
    event.listen(engine, "connect", prepare)
    return engine


def _private(path: Path) -> Path:
    """Make the file the user's alone, before SQLite opens it: it gives its other files the same mode."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    path.chmod(0o600)
    return path


def _meta(db: Connection) -> dict[str, str]:
    return {str(row["key"]): str(row["value"]) for row in db.execute(select(META)).mappings()}


def _position(meta: dict[str, str]) -> Position:
    return Position(meta["file"], int(meta["offset"]), int(meta["seq"]), meta["crc"])


def _reason(path: Path, source: JournalSource) -> str:
    """Say why the database must be drawn again; empty: it need not."""
    if not path.exists():
        return "there was none"
    engine = _engine(path)
    try:
        with engine.connect() as db:
            if (found := db.execute(text("PRAGMA quick_check(1)")).scalar()) != "ok":
                return f"it was damaged: {found}"
            meta = _meta(db)
            last = db.execute(select(func.max(FACTS.c.seq))).scalar() or 0
            missing = {table.name for table in ALL} - {*inspect(db).get_table_names()}
        if meta["version"] != VERSION:
            return f"it was of version {meta['version']}, this is {VERSION}"
        position = _position(meta)
    except (SQLAlchemyError, sqlite3.Error, KeyError, ValueError) as error:
        return f"it could not be read: {error}"
    finally:
        engine.dispose()
    if position.seq > source.position.seq:
        return f"it held records up to {position.seq}, but the journal ends at {source.position.seq}"
    # behind the last entry there is its batch's commit, and where the next file was begun that one's header
    if missing or (last and last not in (position.seq - 1, position.seq - 2)):
        return f"it was incomplete: {', '.join(sorted(missing)) or 'facts'}"
    if (meta["instance"] or source.instance or "") != (source.instance or "") or not source.holds(position):
        return "it was of another journal"
    return ""


def _identify_file(path: Path, *, by_size: bool = True) -> tuple[int, int] | None:
    """Say which file stands at a place; None: none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size if by_size else status.st_dev


def _same(one: Path, other: Path) -> bool:
    size = one.stat().st_size if one.exists() else 0
    if size != other.stat().st_size:
        return False
    if not size:
        return True
    with one.open("rb") as left, other.open("rb") as right:
        return all(a == b for a, b in zip_longest(left, right))
