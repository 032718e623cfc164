"""Reader of the database, with the standard library alone: importing sqlmodel would cost a command most of a second."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from ashep import __version__

NAME = "ashep.db"
"""The database's file in the state folder."""

FORM = 8
"""Number of the tables' form and of the JSON in their rows: a key that comes or goes raises it."""

VERSION = f"{FORM}/{__version__}"
"""What a database says of itself; one that says another is drawn again before anybody reads it."""


def open_read_only(state: Path) -> sqlite3.Connection:
    """Open the database for reading, rows by name; it never keeps the daemon waiting.

    Raises sqlite3.OperationalError where there is none. Close it (`contextlib.closing`).
    """
    path = state / NAME
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5)
    connection.row_factory = sqlite3.Row
    return connection


def read_meta(state: Path) -> dict[str, str]:
    """Read of what the database is a picture; nothing where it is missing or unreadable."""
    try:
        with closing(open_read_only(state)) as database:
            return {row["key"]: str(row["value"]) for row in database.execute("SELECT key, value FROM meta")}
    except sqlite3.Error:
        return {}


def drawn_end(meta: Mapping[str, str]) -> tuple[str, int]:
    """Say up to where the database is drawn: names of the journal's files sort as their numbers do."""
    offset = meta.get("offset", "")
    return meta.get("file", ""), int(offset) if offset.isdecimal() else -1


def journal_end(state: Path) -> tuple[str, int]:
    """Say where the journal ends now: its last file, empty where there is none, and how long that is."""
    last = max((path for path in (state / "journal").glob("*.jsonl") if path.stem.isdecimal()), default=None)
    return (last.name, last.stat().st_size) if last is not None else ("", 0)


def is_behind(state: Path) -> bool:
    """Say whether the database is missing, unreadable, of another version, or not drawn up to the journal's end.

    Beside a running daemon True is usual for a fraction of a second after each batch. Where none runs, True means that
    the last one was killed; the next one catches up.
    """
    meta = read_meta(state)
    return meta.get("version") != VERSION or drawn_end(meta) != journal_end(state)
