"""Checkpoints `state/playback.db`: Worlds at places of the journal, from which any moment is folded within a second.

They are a picture as the database is: deleted, damaged, of another journal or of other code, they are made again, from
what the journal still holds. A server makes them next to its work (`CheckpointWriter`), never the daemon; a reader can
do without.

A flow *rests* once it is closed and nothing of it is under way: it stays as it is until a record names it. A World is
folded without those that rest, and each is brought in by the record that names it, so that what is in memory grows with
what is open and not with the past. A flow's row is of the first checkpoint at which it stood so; a checkpoint that goes
leaves its rows to the next one.
"""

import gc
import os
import sqlite3
import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from zlib import compress, decompress

from rpds import HashTrieMap

from ashep.core.facts.records import parse_time
from ashep.core.facts.resources import TimerDue
from ashep.core.policy.disk_limits import is_low
from ashep.core.reconcile.evolve import evolve
from ashep.core.state.delivery import is_shared
from ashep.core.state.flow import Flow
from ashep.core.state.immutable import replace
from ashep.core.state.indexes import SETS, indexed
from ashep.core.state.snapshot import Part, dump, load
from ashep.core.state.timers import split_timer
from ashep.core.state.world import EPOCH, NO_FLOWS, World, put
from ashep.errors import AshepError
from ashep.journal.disk_reserve import free
from ashep.journal.reader import (
    START,
    Position,
    ReadBatch,
    base,
    batches,
    head_of,
    holds,
    journal_files,
    read_first_record,
)
from ashep.journal.snapshots import beginning, fingerprint

NAME = "playback.db"
"""The file in the state folder."""

MOST = 512
"""Checkpoints at most: of a million records there is one every 2,000 to 4,000."""

EVERY = 1000
"""Records between checkpoints while there are few."""

BEHIND = 512 * 1024
"""Bytes of the journal behind the last checkpoint that are left to whoever looks back: some 1,300 records."""

_FORM = 1
_LEVEL = 1  # of zlib: a flow becomes a quarter of itself
_TABLES = """
CREATE TABLE made (of TEXT);
CREATE TABLE checkpoints (seq INTEGER PRIMARY KEY, at INTEGER, file TEXT, offset INTEGER, crc TEXT, world BLOB);
CREATE TABLE flows (issue TEXT, seq INTEGER, rests INTEGER, policy TEXT, body BLOB);
CREATE INDEX flows_by_issue ON flows (issue, seq, rests, policy);
CREATE INDEX flows_by_seq ON flows (seq);
"""
_LAST = "SELECT issue, max(seq) AS seq, rests, policy FROM flows WHERE seq <= ? GROUP BY issue"
_OPEN = f"SELECT body FROM ({_LAST}) AS last JOIN flows USING (issue, seq) WHERE NOT last.rests"
RESTING = f"SELECT issue, policy FROM ({_LAST}) WHERE rests"
"""The issues that rested at a checkpoint, with their policies."""

_ONE = "SELECT body FROM flows WHERE issue = ? AND seq <= ? ORDER BY seq DESC LIMIT 1"


class Checkpoint(NamedTuple):
    """A checkpoint."""

    position: Position
    at: int
    """When the last record before it was written, in microseconds since 1970."""


def number(at: datetime) -> int:
    """Write a time as checkpoints do."""
    return (at - EPOCH) // timedelta(microseconds=1)


@dataclass
class Folding:
    """A World on its way through the journal."""

    world: World
    position: Position
    database: sqlite3.Connection | None = None
    """Where flows that rest are found; None: the World has them."""
    seq: int = 0
    """The checkpoint that it began at."""

    def take(self, batch: ReadBatch) -> None:
        """Fold a batch."""
        for entry in batch.entries:
            body = entry.body
            self.bring(split_timer(body.key)[1] if isinstance(body, TimerDue) else getattr(body, "issue", None))
            self.world = evolve(self.world, entry)
        self.position = batch.end

    def bring(self, issue: str | None) -> None:
        """Bring a flow in that rests, if this is one."""
        if self.database is None or issue is None or issue in self.world.flows:
            return
        row = self.database.execute(_ONE, [issue, self.seq]).fetchone()
        if row is not None:
            self.world = put(self.world, issue, load(_parts(row[0])).flows[issue])


def rests(world: World, flow: Flow) -> bool:
    """Whether no record changes a flow that does not name its issue."""
    issue, own, known = flow.issue.id, flow.work.own, vars(world.indexes)
    if flow.stage != "closed" or issue in known["dues"] or issue in known["slots"]:
        return False
    return not any(issue in known[name] for name in SETS) and (own is None or not is_shared(own.branch))


def _compress_parts(parts: Iterator[Part] | list[Part]) -> bytes:
    return compress(b"\n".join(b"%b\t%b" % (name.encode(), data) for name, data in parts), _LEVEL)


def _parts(data: bytes) -> Iterator[Part]:
    for line in decompress(data).split(b"\n"):
        name, _, rest = line.partition(b"\t")
        yield name.decode(), rest


# --- reading ----------------------------------------------------------------------------------------------------------


def _made_of(state: Path) -> str:
    known = read_first_record(state / "journal")
    return f"{_FORM}/{fingerprint()}/{known.instance if known else ''}"


@contextmanager
def opened(state: Path) -> Generator[sqlite3.Connection | None]:
    """Open the checkpoints for reading; None: there are none that this version made of this journal."""
    try:
        connection = sqlite3.connect(f"{(state / NAME).absolute().as_uri()}?mode=ro", uri=True, timeout=5)
    except sqlite3.Error:
        yield None
        return
    with closing(connection):
        try:
            good = connection.execute("SELECT of FROM made").fetchone() == (_made_of(state),)
            known = places(connection, state) if good else []
            good = bool(known) and (known[-1].position == START or holds(state / "journal", known[-1].position))
        except sqlite3.Error:
            good = False
        yield connection if good else None


def places(database: sqlite3.Connection, state: Path) -> list[Checkpoint]:
    """Give the checkpoints from which the journal goes on, in order: what precedes them may be pruned."""
    rows = database.execute("SELECT file, offset, seq, crc, at FROM checkpoints ORDER BY seq").fetchall()
    begins = base(state / "journal").seq
    return [Checkpoint(Position(*row[:4]), row[4]) for row in rows if row[2] >= begins]


def folding(database: sqlite3.Connection, place: Checkpoint) -> Folding:
    """Begin at a checkpoint. Raises `ValueError` and `sqlite3.Error` where it is damaged."""
    seq = place.position.seq
    (kept,) = database.execute("SELECT world FROM checkpoints WHERE seq = ?", [seq]).fetchone()
    flows = (part for (body,) in database.execute(_OPEN, [seq]) for part in _parts(body))
    collects = gc.isenabled()
    gc.disable()  # as where a snapshot is read: it would look through all that is made here, and find nothing
    try:
        return Folding(load([*_parts(kept), *flows]), place.position, database, seq)
    finally:
        if collects:
            gc.enable()


def origin(folder: Path) -> tuple[World, Checkpoint]:
    """Give the World with which the journal in this folder begins, its place, and when its first line was written."""
    world, position = beginning(folder)
    if position != START:
        return world, Checkpoint(position, number(world.now))
    head = next((head_of(folder, path.name) for path in journal_files(folder)), None)
    return world, Checkpoint(START, number(parse_time(head[0]["at"])) if head else 0)


def share(folder: Path, position: Position) -> float:
    """Say how much of the journal precedes a position, of 1."""
    whole = _bytes_behind(folder, START)
    return 1 - _bytes_behind(folder, position) / whole if whole else 1.0


# --- making -----------------------------------------------------------------------------------------------------------


class CheckpointWriter:
    """Makes the checkpoints of one journal, a slice at a time; one process at a time may. All of it blocks."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.busy = True
        """Whether more is to be made, or nobody has looked yet."""
        self._folding: Folding | None = None
        self._batches: Iterator[ReadBatch] = iter(())
        self._before: HashTrieMap[str, Flow] = NO_FLOWS

    def advance(self, seconds: float) -> bool:
        """Go on for so long; False: for now there is no more. What fails is tried another time: nothing needs it."""
        until = time.monotonic() + seconds  # noqa: TID251 - a picture's, outside of everything that is replayed
        try:
            self.busy = self._folding is not None or self._begin()
            while self.busy and time.monotonic() < until:  # noqa: TID251 - as above
                self.busy = self._fold_batch()
        except sqlite3.OperationalError:  # of the disk, or of another process
            self.busy = False
        except sqlite3.DatabaseError:
            self.forget()
        except (AshepError, OSError, ValueError):
            self.busy = False
        if not self.busy:
            self.close()
        return self.busy

    def forget(self) -> None:
        """Throw away what was made: it is damaged."""
        self.busy = False
        for suffix in ("", "-wal", "-shm"):
            self.state.joinpath(NAME + suffix).unlink(missing_ok=True)

    def close(self) -> None:
        """Stop; what was folded since the last checkpoint is folded again."""
        if self._folding is not None and self._folding.database is not None:
            self._folding.database.close()
        self._folding, self._batches, self._before = None, iter(()), NO_FLOWS

    def _begin(self) -> bool:
        """Open the file, or make it; False: nothing is to be made, or there is no room for it."""
        folder = self.state / "journal"
        if not journal_files(folder) or is_low(free(self.state), was_low=True):
            return False
        with opened(self.state) as database:
            known = places(database, self.state) if database is not None else []
        if known and _bytes_behind(folder, known[-1].position) < BEHIND:
            return False
        path = self.state / NAME
        if not known:
            self.forget()
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        database = sqlite3.connect(path, timeout=5, check_same_thread=False, isolation_level=None)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        if known:
            self._folding = folding(database, known[-1])
            self._before = self._folding.world.flows
        else:
            world, place = origin(folder)
            self._folding = Folding(world, place.position, database, place.position.seq)
            with _transaction(database):
                for statement in filter(str.strip, _TABLES.split(";")):
                    database.execute(statement)
                database.execute("INSERT INTO made VALUES (?)", [_made_of(self.state)])
                self._write(self._folding, place.at)
            self._rest(self._folding)
        self._batches = batches(folder, self._folding.position)
        return True

    def _fold_batch(self) -> bool:
        """Fold a batch, and keep the World where it is time; False: the journal ends."""
        made = self._folding
        assert made is not None
        batch = next(self._batches, None)
        if batch is not None:
            made.take(batch)
        if made.position.seq - made.seq >= EVERY or (batch is None and made.position.seq > made.seq):
            assert made.database is not None
            with _transaction(made.database):
                self._write(made, number(made.world.now))
                self._thin(made.database)
            made.seq = made.position.seq
            self._rest(made)
        return batch is not None

    def _write(self, made: Folding, at: int) -> None:
        assert made.database is not None
        world, (file, offset, seq, crc) = made.world, made.position
        kept = _compress_parts(dump(replace(world, flows=NO_FLOWS)))
        made.database.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?)", [seq, at, file, offset, crc, kept])
        changed = HashTrieMap({name: flow for name, flow in world.flows.items() if self._before.get(name) is not flow})
        flows = (part for part in dump(World(flows=changed), 1) if part[0] == "flows")
        rows = (
            (issue, seq, rests(world, flow), flow.policy, _compress_parts([part]))
            for (issue, flow), part in zip(changed.items(), flows, strict=True)
        )
        made.database.executemany("INSERT INTO flows VALUES (?, ?, ?, ?, ?)", rows)

    def _rest(self, made: Folding) -> None:
        left = HashTrieMap({name: flow for name, flow in made.world.flows.items() if not rests(made.world, flow)})
        made.world = replace(made.world, flows=left, indexes=indexed(left))
        self._before = left

    def _thin(self, database: sqlite3.Connection) -> None:
        """Let those go that the journal does not lead on from any more, and where there are too many the one whose
        neighbours are nearest to each other.
        """
        begins = base(self.state / "journal").seq
        known = [seq for (seq,) in database.execute("SELECT seq FROM checkpoints ORDER BY seq")]
        gone = [seq for seq in known[:-1] if seq < begins]
        left = known[len(gone) :]
        if len(left) > MOST:
            gone.append(min(zip(left, left[1:], left[2:], strict=False), key=lambda one: one[2] - one[0])[1])
        for seq in gone:
            place = known.index(seq)
            database.execute("DELETE FROM checkpoints WHERE seq = ?", [seq])
            database.execute(
                "DELETE FROM flows AS old WHERE seq > ? AND seq <= ? AND EXISTS "
                "(SELECT 1 FROM flows AS new WHERE new.issue = old.issue AND new.seq > old.seq AND new.seq <= ?)",
                [known[place - 1] if place else -1, seq, known[place + 1]],
            )
            known.remove(seq)


@contextmanager
def _transaction(database: sqlite3.Connection) -> Generator[None]:
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


def _bytes_behind(folder: Path, position: Position) -> int:
    sizes = [path.stat().st_size for path in journal_files(folder) if path.name >= position.file]
    return sum(sizes) - position.offset
