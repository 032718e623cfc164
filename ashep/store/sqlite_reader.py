"""Reader of the database, with the standard library alone: importing sqlmodel would cost a command most of a second."""

import sqlite3
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


def is_behind(state: Path) -> bool:
    """Say whether the database is missing, unreadable, of another version, or not drawn up to the journal's end.

    Beside a running daemon True is usual for a fraction of a second after each batch. Where none runs, True means that
    the last one was killed; the next one catches up.
    """
    files = sorted(path for path in (state / "journal").glob("*.jsonl") if path.stem.isdecimal())
    try:
        with closing(open_read_only(state)) as connection:
            rows = connection.execute(
                "SELECT key, value FROM meta WHERE key IN ('file', 'offset', 'version')"
            ).fetchall()
    except sqlite3.Error:
        return True
    known = {row["key"]: row["value"] for row in rows}
    end = (files[-1].name, str(files[-1].stat().st_size)) if files else ("", "0")
    return (known.get("file"), known.get("offset"), known.get("version")) != (*end, VERSION)
