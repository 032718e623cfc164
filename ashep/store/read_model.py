"""Picture of the journal as people look at it, and what is known next to it of the daemon and the disk.

A picture that is behind is caught up with before it is read. Beside a running daemon that only means to wait a moment:
the daemon draws. Where none runs the picture is drawn by the reader, *beside* the state folder's own, and put into its
place only if still nobody runs: so that a reader never stands in the way of a daemon that starts.
"""

from __future__ import annotations  # the types bring pydantic along, for which no command that reads has time

import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ashep.errors import AshepError, DiskFailed
from ashep.journal.lock import Holder, holder
from ashep.store.sqlite_reader import NAME, VERSION, drawn_end, is_behind, journal_end, open_read_only, read_meta

if TYPE_CHECKING:
    from ashep.store import row_types

LAG = 2.0
"""Seconds that a reader waits for a daemon's picture."""

_SILENCE = 2.0
"""Seconds of drawing after which a person is told."""


@dataclass(frozen=True, slots=True)
class ReadModel:
    """What a reading command looks at."""

    database: sqlite3.Connection | None
    """None: there is nothing to look at yet."""
    daemon: Holder | None
    behind: bool
    """The running daemon has not drawn everything yet."""


@contextmanager
def open_read_model(
    state: Path,
    say: Callable[[str], None],
    patience: float = LAG,
    progress: Callable[[int, int], None] = lambda _reached, _end: None,
) -> Generator[ReadModel]:
    """Open the picture of the journal, caught up with; `say` is told where it is drawn, and that takes long.

    `patience`: seconds to wait for a running daemon's; `progress`: as of `ashep.store.projection`. Raises `AshepError`,
    `DiskFailed`, `JournalDamaged`, and what `progress` does of these.
    """
    daemon = holder(state)
    if daemon is not None:
        behind = not _drawn_soon(state, patience)
        if (version := read_meta(state).get("version", VERSION)) != VERSION:
            why = f"{state / NAME} is of version {version}, and this ashep reads {VERSION}"
            raise AshepError(
                f"{why}: restart the daemon that runs here; where it has just begun, wait until it has drawn"
            )
        yield from _opened(state, daemon, behind)
    elif not any((state / "journal").glob("*.jsonl")):
        yield ReadModel(None, None, False)
    elif not is_behind(state):
        yield from _opened(state, None, False)
    else:
        import tempfile  # it brings a lot along, and is seldom needed

        where = state if os.access(state, os.W_OK) else None  # the system's folder for somebody who may only read
        with tempfile.TemporaryDirectory(prefix="redraw-", dir=where, ignore_cleanup_errors=True) as scratch:
            drawn = _draw(state, Path(scratch), say, progress)
            yield from _opened(state if _put_in_place(drawn, state) else drawn, None, False)


def _opened(folder: Path, daemon: Holder | None, behind: bool) -> Generator[ReadModel]:
    try:
        database = open_read_only(folder)
    except sqlite3.Error:
        yield ReadModel(None, daemon, behind)
        return
    with closing(database):
        try:
            yield ReadModel(database, daemon, behind)
        except sqlite3.Error as error:
            remedy = f"stop ashep and delete {folder / NAME}; it is drawn again"
            raise AshepError(f"{folder / NAME} cannot be read: {error}; if it stays so, {remedy}") from error


def _drawn_soon(state: Path, patience: float) -> bool:
    """Wait until the daemon has drawn up to where its journal ends now; False: it takes longer."""
    end = journal_end(state)
    until = time.monotonic() + patience  # noqa: TID251 - for people, outside of everything that is replayed
    while end[0] and drawn_end(read_meta(state)) < end:
        if time.monotonic() > until:  # noqa: TID251 - as above
            return False
        time.sleep(0.02)  # noqa: TID251 - as above
    return True


# --- drawing ------------------------------------------------------------------------------------------------------


def _draw(state: Path, scratch: Path, say: Callable[[str], None], progress: Callable[[int, int], None]) -> Path:
    """Draw a picture of the journal in a folder of its own; give that folder."""
    import threading

    from ashep.store.journal_reader import JournalView
    from ashep.store.writer import Store

    told = threading.Timer(_SILENCE, say, ["drawing the picture of the journal anew; this can take a while"])
    told.daemon = True
    told.start()
    try:
        folder = scratch / "state"
        folder.mkdir(mode=0o700)
        with suppress(sqlite3.Error):  # begin with what was drawn before: the store finds out if that copy is broken
            if (state / NAME).exists():
                with closing(open_read_only(state)) as before, closing(sqlite3.connect(folder / NAME)) as after:
                    before.backup(after)
        Store.open(folder, JournalView(state / "journal"), progress=progress).close()
    except OSError as error:
        raise DiskFailed(f"the picture of the journal cannot be drawn in {scratch}: {error}") from error
    except AshepError:
        raise
    except Exception as error:  # the store's own library has errors of its own; only the picture is concerned
        raise AshepError(f"the picture of the journal in {state} cannot be drawn: {error}") from error
    finally:
        told.cancel()
    return folder


def _put_in_place(drawn: Path, state: Path) -> bool:
    """Let the new picture be the state folder's, if nobody runs; a daemon that starts waits the moment it takes."""
    if drawn.stat().st_dev != state.stat().st_dev:
        return False
    try:
        lock = os.open(state / "lock", os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared, as readers ask for the holder: none mistakes us
        for suffix in ("-wal", "-shm"):  # of the picture before; next to the new one they would spoil it
            (state / (NAME + suffix)).unlink(missing_ok=True)
        (drawn / NAME).replace(state / NAME)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True


# --- next to it ----------------------------------------------------------------------------------------------------


def disk_of(state: Path) -> Literal["ok", "low"]:
    """Say whether there is room where the state folder lies."""
    from ashep.core.policy.disk_limits import is_low
    from ashep.journal.disk_reserve import free

    try:
        return "low" if is_low(free(state)) else "ok"
    except OSError:  # there is no state folder yet
        return "ok"


def servers_of(state: Path) -> row_types.ServersSeenJson:
    """Count the agent servers that live where places have their own, and what they hold; nothing where none does."""
    home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    if not any(Path(home, "ashep").glob("*/servers/*/server.json")):  # what follows takes long to import
        return {}
    from ashep.adapters.runners.opencode.isolated_runner import living
    from ashep.adapters.runners.opencode.server import folder_of

    count, held = living(folder_of(state, os.environ))
    return {"servers": {"count": count, "bytes": held}} if count else {}


def daemon_of(seen: ReadModel) -> row_types.ProcessJson:
    """Say what is known of the daemon without the journal."""
    if seen.daemon is None:
        return {"running": False}
    since, version = seen.daemon.started or None, seen.daemon.version
    return {"running": True, "pid": seen.daemon.pid, "since": since, "version": version, "behind": seen.behind}
