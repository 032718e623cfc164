"""Playback: how everything stood at a moment, as the tables had it then, folded from the checkpoint before that."""

import sqlite3
import zlib
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from datetime import datetime
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from ashep.core.state.world import World
from ashep.journal.reader import batches
from ashep.store import checkpoints
from ashep.store.checkpoints import Checkpoint, CheckpointWriter, Folding, number
from ashep.store.issue_row import issue_row

FOLDED = 20_000
"""Records that a server folds for one answer: a second's work."""

_COLUMNS = ("issue", "title", "state", "code", "reason", "since", "phase", "policy", "run", "due", "body")
_RESTING = f"SELECT issue, policy, '', 'closed', '', '', '{{}}' FROM ({checkpoints.RESTING})"
_INSERT = f"INSERT OR REPLACE INTO issues VALUES ({', '.join('?' * len(_COLUMNS))})"


class Stood(NamedTuple):
    """What was known at a moment."""

    database: sqlite3.Connection
    """The tables `issues` and `meta` of then; of closed issues at rest little more than that they are."""
    world: World
    """As it was then, without issues at rest."""


class PastView(NamedTuple):
    """What can be told of a moment."""

    stood: Stood | None
    """None: the journal says nothing of it, or it takes too long as yet."""
    begins: int
    """From when on the journal tells, in microseconds since 1970; 0: there is none."""
    made: float = 1.0
    """How much of the checkpoints there is, of 1; with 1 it can be told."""


@contextmanager
def open_past(
    state: Path,
    moment: datetime,
    issue: str | None = None,
    *,
    most: int | None = None,
    keeper: CheckpointWriter | None = None,
    tell: Callable[[int], None] = lambda _: None,
) -> Generator[PastView]:
    """Go back to a moment, with all records that were written until then; `issue` is told of in full, whatever it is.

    No more than `most` records are folded for it; what is damaged `keeper` is told, and `tell` how many records were
    folded by now. Raises `JournalDamaged`.
    """
    with checkpoints.opened(state) as database:
        known = checkpoints.places(database, state) if database is not None else []
        try:
            tables = _fold_until(state, number(moment), issue, database, known, most, keeper, tell)
        except (sqlite3.Error, ValueError, TypeError, zlib.error):
            if keeper is not None:
                keeper.forget()
            known = list[Checkpoint]()
            tables = _fold_until(state, number(moment), issue, None, known, most, None, tell)
        begins = known[0].at if known else checkpoints.origin(state / "journal")[1].at
        if not isinstance(tables, Stood):
            yield PastView(None, begins, tables)
            return
        with closing(tables.database):
            yield PastView(tables, begins)


def _fold_until(
    state: Path,
    moment: int,
    issue: str | None,
    database: sqlite3.Connection | None,
    known: list[Checkpoint],
    most: int | None,
    keeper: CheckpointWriter | None,
    tell: Callable[[int], None],
) -> Stood | float:
    """Fold to a moment; else say how much of the checkpoints there is."""
    folder = state / "journal"
    world, begins = (None, known[0]) if known else checkpoints.origin(folder)
    if moment < begins.at:
        return 1.0
    place = [begins, *takewhile(lambda one: one.at <= moment, known)][-1]
    is_last = place == (known or [begins])[-1]
    if is_last and keeper is not None and keeper.busy:
        return _share(folder, place)
    if world is not None or database is None:
        made = Folding(world or World(), place.position)
    else:
        made = checkpoints.folding(database, place)
    for batch in batches(folder, made.position):
        if number(batch.entries[-1].at) > moment:
            break
        made.take(batch)
        folded = made.position.seq - place.position.seq
        tell(folded)
        if is_last and most is not None and folded > most:
            return _share(folder, place)
    made.bring(issue)
    return Stood(_tables(made), made.world)


def _share(folder: Path, place: Checkpoint) -> float:
    return min(checkpoints.share(folder, place.position), 0.99)


def _tables(made: Folding) -> sqlite3.Connection:
    """Lay the tables out in memory, next to the checkpoints."""
    tables = made.database if made.database is not None else sqlite3.connect(":memory:")
    tables.row_factory = sqlite3.Row
    tables.execute("PRAGMA temp_store = MEMORY")
    tables.execute(f"CREATE TEMP TABLE issues ({', '.join(_COLUMNS)}, PRIMARY KEY (issue))")
    tables.execute("CREATE TEMP TABLE meta (key, value)")
    if made.database is not None:
        resting = f"INSERT INTO issues (issue, policy, title, state, code, reason, body) {_RESTING}"
        tables.execute(resting, [made.seq])
    rows = (issue_row(made.world, issue) for issue in made.world.flows)
    tables.executemany(_INSERT, ([row[name] for name in _COLUMNS] for row in rows))
    values = [("instance", made.world.instance), ("seq", made.position.seq)]
    tables.executemany("INSERT INTO meta VALUES (?, ?)", values)
    return tables
