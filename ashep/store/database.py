"""The writing end of the database: drawn from the journal, from where the database stands to where the journal does.

A `Store` blocks; the daemon has one behind `ashep.store.follow`. SQLAlchemyError, sqlite3.Error, OSError and
JournalDamaged may come out of it: that store is spoilt then, and the next `Store.open` sees to it.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol, cast

from rpds import HashTrieMap
from sqlalchemy import Connection, Engine, Select, create_engine, delete, event, func, insert, inspect, select, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import SQLModel

from ashep import __version__
from ashep.core.flow import Flow
from ashep.core.records import Entry, from_json
from ashep.core.runs import Tally, run_of, tell
from ashep.core.world import World, evolve
from ashep.store.reader import NAME
from ashep.store.runlog import RunLog
from ashep.store.tables import ALL, FACTS, FORM, ISSUES, META, RUNS, Row, entry_data, fact_row, issue_row, run_row

Position = tuple[str, int, int, str]
"""A place in the journal: file, offset, last sequence number, checksum of the last line."""

NOWHERE: Position = ("", 0, 0, "")
CHUNK = 1000
"""Entries that are written at a time while the database catches up, so that memory stays flat."""


class Source(Protocol):
    """What the store needs of the journal."""

    @property
    def instance(self) -> str | None:
        """The journal's id."""
        ...

    @property
    def position(self) -> Position:
        """The end of the last durable batch."""
        ...

    def holds(self, position: Position, /) -> bool:
        """Whether the journal goes on from this position."""
        ...

    def batches(self, after: Position, /) -> Iterator[tuple[Position, Sequence[Entry]]]:
        """The durable batches behind a position, each with its end."""
        ...

    def known(self, until: Position, /) -> tuple[World, Position]:
        """A World that is known without folding, and its place, which is not behind this position."""
        ...


class Store:
    """The database and runs.jsonl of a state folder."""

    def __init__(self, engine: Engine, runs: RunLog, redrawn: str) -> None:
        """Use `Store.open`."""
        self.redrawn = redrawn
        """Why the database was drawn anew; empty: it was not."""
        self._engine, self._log = engine, runs
        self._file: tuple[int, int] | None = None
        self._db: Connection = engine.connect()
        self._tallies: dict[str, Tally] = {}
        self._flows: HashTrieMap[str, Flow] = HashTrieMap()
        self._position = NOWHERE

    @classmethod
    def open(cls, state: Path, source: Source, world: World | None = None) -> "Store":
        """Open, and draw anew or catch up as need be; `world` is the journal's at its present end, if known.

        The database is drawn anew where it is missing, damaged, of another version, or not of this journal.
        """
        path = state / NAME
        reason = _reason(path, source)
        if reason:
            for suffix in ("", "-wal", "-shm", "-journal"):
                path.with_name(NAME + suffix).unlink(missing_ok=True)
        store = cls(_engine(path), RunLog(state.parent / "runs.jsonl"), reason)
        try:
            store._begin(source)
            store.catch_up(source, source.position, world)
            store._log.reconcile(store._finished())
            store._file = _identity(path)
        except BaseException:
            store.close()
            raise
        return store

    def catch_up(self, source: Source, until: Position, world: World | None = None) -> None:
        """Draw what the journal holds up to a position, in one transaction.

        `world` is the World at that position; without it the journal is folded from a snapshot on, if there is
        something to draw.
        """
        if until[2] <= self._position[2] and (world is None or not self._changed(world)):
            return
        ended: list[str] = []
        with self._db.begin():
            for rows, tallies in self._chunks(source, until):
                self._db.execute(insert(FACTS), rows)
                ended += self._write_runs(tallies)
            self._position = max(self._position, until, key=lambda position: position[2])
            world = world or _fold(source, until)
            self._write_issues(world)
            self._write_meta(source)
        self._flows = world.flows
        self._log.append(ended)

    def stands(self) -> bool:
        """Say whether the files that are written to are still the ones that readers find. Blocks, for microseconds."""
        return self._file == _identity(Path(self._engine.url.database or "")) and self._log.stands()

    def close(self) -> None:
        """Close the database."""
        self._db.close()
        self._engine.dispose()

    def _begin(self, source: Source) -> None:
        SQLModel.metadata.create_all(self._db, tables=list(ALL))
        self._db.commit()
        meta = _meta(self._db)
        self._db.commit()
        if meta:
            self._position = _position(meta)
            self._load_tallies()

    def _chunks(self, source: Source, until: Position) -> Iterator[tuple[list[Row], dict[str, tuple[Tally, int]]]]:
        """Give the rows of facts, and the runs that changed (each with the number of the entry that did it last)."""
        rows: list[Row] = []
        tallies: dict[str, tuple[Tally, int]] = {}
        for end, entries in source.batches(self._position):
            if end[2] > until[2]:
                break
            for entry in entries:
                rows.append(fact_row(entry))
                self._tell(entry, tallies)
            self._position = end
            if len(rows) >= CHUNK:
                yield rows, tallies
                rows, tallies = [], {}
        if rows:
            yield rows, tallies

    def _tell(self, entry: Entry, changed: dict[str, tuple[Tally, int]]) -> None:
        run = run_of(entry)
        if run is None:
            return
        before = self._tallies.get(run)
        after = tell(before, entry)
        if after is None or after is before:
            return
        changed[run] = (after, entry.seq)
        self._tallies[run] = after

    def _write_runs(self, tallies: dict[str, tuple[Tally, int]]) -> list[str]:
        """Write runs; give the lines of runs.jsonl for those that finished."""
        rows = [run_row(tally.record, seq if tally.record.over else None) for tally, seq in tallies.values()]
        if rows:
            self._db.execute(insert(RUNS).prefix_with("OR REPLACE"), rows)
        over = [(seq, run, tally.record) for run, (tally, seq) in tallies.items() if tally.record.over]
        for _, run, _ in over:
            del self._tallies[run]
        return [record.model_dump_json() for _, _, record in sorted(over) if record.state != "withdrawn"]

    def _changed(self, world: World) -> list[str]:
        return [issue for issue, flow in world.flows.items() if self._flows.get(issue) is not flow]

    def _write_issues(self, world: World) -> None:
        rows = [issue_row(world, issue) for issue in self._changed(world)]
        if rows:
            self._db.execute(insert(ISSUES).prefix_with("OR REPLACE"), rows)

    def _write_meta(self, source: Source) -> None:
        file, offset, seq, crc = self._position
        values = {"version": _version(), "instance": source.instance or "", "file": file, "offset": offset}
        rows = [{"key": key, "value": str(value)} for key, value in (values | {"seq": seq, "crc": crc}).items()]
        self._db.execute(delete(META))
        self._db.execute(insert(META), rows)

    def _load_tallies(self) -> None:
        """Tell the runs that are not over again, from their facts."""
        under_way = select(RUNS.c.run).where(RUNS.c.ended.is_(None))
        for row in self._rows(select(FACTS).where(FACTS.c.run.in_(under_way)).order_by(FACTS.c.seq)):
            self._tell(from_json(entry_data(row)), {})
        self._db.commit()

    def _finished(self) -> Iterator[str]:
        finished = RUNS.c.ended.is_not(None) & (RUNS.c.state != "withdrawn")
        for row in self._rows(select(RUNS.c.body).where(finished).order_by(RUNS.c.ended)):
            yield row["body"]
        self._db.commit()

    def _rows(self, query: Select[*tuple[object, ...]]) -> Iterator[Row]:
        for row in self._db.execute(query, execution_options={"yield_per": CHUNK}).mappings():
            yield cast(Row, row)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _engine(path: Path) -> Engine:
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": 10})
    event.listen(engine, "connect", _prepare)
    return engine


def _prepare(connection: DBAPIConnection, _: object) -> None:
    """Let readers go on while we write; a power cut may take the last transactions, which are drawn again."""
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.close()


def _version() -> str:
    return f"{FORM}/{__version__}"


def _fold(source: Source, until: Position) -> World:
    world, after = source.known(until)
    for end, entries in source.batches(after):
        if end[2] > until[2]:
            break
        for entry in entries:
            world = evolve(world, entry)
    return world


def _meta(db: Connection) -> dict[str, str]:
    return {str(row["key"]): str(row["value"]) for row in db.execute(select(META)).mappings()}


def _position(meta: dict[str, str]) -> Position:
    return meta["file"], int(meta["offset"]), int(meta["seq"]), meta["crc"]


def _reason(path: Path, source: Source) -> str:
    """Say why the database must be drawn anew; empty: it need not."""
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
        if meta["version"] != _version():
            return f"it was of version {meta['version']}, this is {_version()}"
        position = _position(meta)
    except (SQLAlchemyError, sqlite3.Error, KeyError, ValueError) as error:
        return f"it could not be read: {error}"
    finally:
        engine.dispose()
    if position[2] > source.position[2]:
        return f"it held records up to {position[2]}, but the journal ends at {source.position[2]}"
    # behind the last entry there is its batch's commit, and where the next file was begun that one's header
    if missing or (last and last not in (position[2] - 1, position[2] - 2)):
        return f"it was incomplete: {', '.join(sorted(missing)) or 'facts'}"
    if (meta["instance"] or source.instance or "") != (source.instance or "") or not source.holds(position):
        return "it was of another journal"
    return ""
