"""History of a worker: one line of JSON for each thing said, on the disk before anybody is answered.

`history.jsonl` grows at its end; where it would hold more than it may it becomes `history.1.jsonl`, that one
`history.2.jsonl`, and the one before is gone. One process at a time writes (`lock`); anybody of this user's may read.
"""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from itertools import chain
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from ashep.core.text import clean
from ashep.errors import AlreadyRunning, AshepError, DiskFailed
from ashep.foreman.entries import Entry
from ashep.journal import paths
from ashep.journal.lock import Lock, holder
from ashep.redaction import Redaction

FILES = ("history.2.jsonl", "history.1.jsonl", "history.jsonl")
"""Old first."""

RECENT, PROMPT = "recent-history.json", "last-system-prompt.log"
"""What is derived from them: what was said since the last topic, and what the last session was told at its start."""

LONGEST = 200_000
"""Characters of one entry's text; the rest is cut off, and counted."""

_RECENT = 100  # entries in the read model, which is written anew with each
_UNTOLD = datetime.fromtimestamp(0, UTC)  # since when a wrapper runs is asked by nobody


class WorkerBusy(AshepError):
    """Another wrapper has this worker's history."""

    exit_code = AlreadyRunning.exit_code

    def __init__(self, folder: Path, pid: int) -> None:
        super().__init__(
            f"another `ashep foreman` works as {folder.name}: process {pid}. End it, or be another worker (--worker)"
        )
        self.pid = pid


@dataclass(frozen=True, slots=True)
class Damage:
    """A line that is no entry; it stays where it is."""

    file: Path
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: this line is no entry; it is left out, and stays there"


@dataclass(frozen=True, slots=True)
class Kept:
    """All that was read of a folder."""

    entries: tuple[Entry, ...]
    """Old first, each once, also those that were cleared."""
    damaged: tuple[Damage, ...]


class History:
    """A worker's history, ours to write until `close`, or until this process ends. A context manager.

    All of it blocks for the time of a write to the disk; it is not for several threads.
    """

    def __init__(self, folder: Path, redaction: Redaction, keep: int, lock: Lock) -> None:
        """Use `History.open`."""

    @classmethod
    def open(cls, folder: Path, redaction: Redaction, keep: int) -> "History":
        """Take a worker's folder (made if need be, 0700), and read what is there; a torn last line is cut.

        `keep`: bytes of one file. Raises `WorkerBusy` where a live process has it, `DiskFailed` where it cannot be
        written.
        """
        raise NotImplementedError

    torn: int
    """Bytes of a last line that had been half written, and were cut: nobody was answered for it."""
    damaged: tuple[Damage, ...]
    """Lines that could not be read when it was opened."""

    def append(self, entry: Entry) -> bool:
        """Keep a thing that was said, redacted and cleaned; it is on the disk when this returns.

        False: its id is there already, and nothing is written. Raises `DiskFailed`; then all is as it was before.
        """
        raise NotImplementedError

    def entries(self) -> Sequence[Entry]:
        """Give what was said since the last `cleared`, old first: what a new session may be told of."""
        raise NotImplementedError

    def recent(self) -> Sequence[Entry]:
        """Give what was said since the last `topic` or `cleared`, old first."""
        raise NotImplementedError

    def clear(self, at: datetime, session: str) -> None:
        """Let all that was said be told to no session any more; it is still kept, and shown by `--history`."""
        raise NotImplementedError

    def prepend(self, entries: Iterable[Entry]) -> int:
        """Put older entries before all others, at once or not at all; give how many were not there yet."""
        raise NotImplementedError

    def keep_prompt(self, text: str) -> Path:
        """Write what a session is told at its start to `last-system-prompt.log` (0600), and give its path."""
        raise NotImplementedError

    def close(self) -> None:
        """Let the folder go."""
        raise NotImplementedError

    def __enter__(self) -> "History":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read(folder: Path) -> Kept:
    """Read a worker's history beside a wrapper that may be writing; raises `AshepError` where it cannot be read."""
    raise NotImplementedError
