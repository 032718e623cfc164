"""History of a worker: one line of JSON for each thing said, on the disk before anybody is answered.

`history.jsonl` grows; too large, it becomes `history.1.jsonl`, that one `history.2.jsonl`. One process writes.
"""

import os
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from threading import Lock as Turn
from typing import Literal, NamedTuple

from pydantic import AwareDatetime, BaseModel, ValidationError

from ashep.core.text import clean
from ashep.errors import AlreadyRunning, DiskFailed
from ashep.journal import durable_io
from ashep.journal.lock import Lock, holder
from ashep.redaction import Redaction

Kind = Literal["prompt", "answer", "plan", "asked", "result", "restart", "topic", "cleared"]
"""prompt, answer: of the person, of the main agent · plan: one that was accepted · asked, result: of a subagent ·
restart, topic: the session was begun again, because it was long, or because of a new topic · cleared: by the person."""


class HistoryEntry(BaseModel, frozen=True):
    """A thing said, as a line of `history.jsonl`."""

    id: str  # derived from what was said where (session, prompt or tool call, kind): told twice it stands once
    at: AwareDatetime
    session: str  # Claude's
    kind: Kind
    text: str  # redacted
    agent: str = ""  # the kind of subagent that was asked
    call: str = ""  # of a tool; it ties a subagent's result to what it was asked


class HistoryContent(NamedTuple):
    """All that was read of a folder."""

    entries: tuple[HistoryEntry, ...]  # old first, each once, also those that were cleared
    damaged: tuple[str, ...]  # what is to be said of lines that are no entries, each with its file and number


FILES = ("history.2.jsonl", "history.1.jsonl", "history.jsonl")  # old first
RECENT = "recent-history.json"  # what was said since the last topic, for other programs
PROMPT = "last-system-prompt.log"  # what the last session was told
LONGEST = 200_000  # characters of one entry's text; the rest is cut off, and counted


class WorkerBusy(AlreadyRunning):
    """Another wrapper has this worker's history."""


class History(ExitStack):
    """A worker's history, ours to write from `open` to `close`, or until this process ends, for all its threads."""

    def __init__(self, folder: Path, redaction: Redaction, keep: int, lock: Lock) -> None:
        super().__init__()
        self.callback(lock.release)
        self._folder, self._redaction, self._keep, self._lock, self._turn = folder, redaction, keep, lock, Turn()
        self._read()

    @classmethod
    def open(cls, folder: Path, redaction: Redaction, keep: int) -> "History":
        """Take a worker's folder (made if need be, 0700). `keep`: bytes of a file. Raises WorkerBusy, DiskFailed."""
        with _explain_errors(folder):
            durable_io.make_folder(folder)
            folder.chmod(0o700)
            if who := holder(folder):
                busy = f"another `ashep foreman` works as {folder.name}: process {who.pid}. End it, be another"
                raise WorkerBusy(f"{busy} (--worker NAME), or say /foreman:clear-worker-history in its session")
            return cls(folder, redaction, keep, Lock.acquire(folder, datetime.fromtimestamp(0, UTC)))

    def append(self, entry: HistoryEntry) -> bool:
        """Keep what was said; it is on the disk when this returns. False: it was there. Raises `DiskFailed`."""
        entry = self._safe(entry)
        with self._turn, _explain_errors(self._folder):
            if new := entry.id not in self._entries:
                self._write(f"{entry.model_dump_json()}\n".encode())
                self._entries[entry.id] = entry
                self._put_recent()
        return new

    def entries(self) -> Sequence[HistoryEntry]:
        """Give what was said since the last `cleared`, old first: what a new session may be told of."""
        return since(tuple(self._entries.values()), "cleared")

    def recent(self) -> Sequence[HistoryEntry]:
        """Give what was said since the last `topic` or `cleared`, old first."""
        return since(tuple(self._entries.values()), "cleared", "topic")

    def clear(self, at: datetime, session: str) -> None:
        """Let no session be told any more of what was said; it is still kept, and shown by `--history`."""
        name = derived("cleared", session, at.isoformat())
        self.append(HistoryEntry(id=name, at=at, session=session, kind="cleared", text=""))

    def prepend(self, entries: Iterable[HistoryEntry]) -> int:
        """Put older entries before all others, all at once or none; give how many were not there yet."""
        with self._turn, _explain_errors(self._folder):
            new = {one.id: one for one in map(self._safe, entries) if one.id not in self._entries}
            oldest = self._folder / FILES[0]
            lines = [f"{one.model_dump_json()}\n".encode() for one in new.values()]
            durable_io.replace(oldest, [*lines, oldest.read_bytes() if oldest.exists() else b""])
            self._read()
        return len(new)

    def keep_prompt(self, text: str) -> Path:
        """Write what a session is told at its start to `last-system-prompt.log` (0600), and give its path."""
        durable_io.replace(self._folder / PROMPT, text.encode())
        return self._folder / PROMPT

    def _safe(self, entry: HistoryEntry) -> HistoryEntry:
        text = self._redaction.text(clean(self._redaction.text(entry.text)))  # cleaning may join what was apart
        if len(text) > LONGEST:
            text = f"{text[:LONGEST]}\n[… {len(text) - LONGEST} characters more]"
        names = {name: clean(getattr(entry, name)) for name in ("id", "session", "agent", "call")}
        return entry.model_copy(update={**names, "text": text})

    def _read(self) -> None:
        self._entries = {entry.id: entry for entry in read(self._folder).entries}
        self._put_recent()

    def _write(self, line: bytes) -> None:
        """Put a line at the end, durably, and on a line of its own, whatever an editor or a full disk left there."""
        if not self._lock.stands():
            raise DiskFailed(f"{self._folder} is no more the folder that was taken: it was moved, or deleted")
        oldest, older, newest = (self._folder / name for name in FILES)
        file = os.open(newest, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        size = os.fstat(file).st_size
        try:
            if size == 0:
                durable_io.sync_folder(self._folder)
            elif os.pread(file, 1, size - 1) != b"\n":
                line = b"\n" + line
            durable_io.write_all(file, line)
            os.fsync(file)
        except OSError:
            os.ftruncate(file, size)
            raise
        finally:
            os.close(file)
        if size + len(line) > self._keep:  # who is killed between two renames finds every line once
            with suppress(FileNotFoundError):
                older.replace(oldest)
            newest.replace(older)
            self._read()

    def _put_recent(self) -> None:
        """Derive the read model again; opening makes it, too, so that a disk that has no room for it is no harm."""
        lines = (one.model_dump_json() for one in since(tuple(self._entries.values())[-50:], "cleared", "topic"))
        draft = self._folder / f"{RECENT}.tmp"
        with suppress(OSError):
            draft.touch(0o600)
            draft.write_text("[" + ",\n".join(lines) + "]\n", "utf-8")
            draft.replace(self._folder / RECENT)


def since(entries: Sequence[HistoryEntry], *kinds: Kind) -> Sequence[HistoryEntry]:
    """Give what was said behind the last entry of such kinds."""
    begin = next((at for at in range(len(entries), 0, -1) if entries[at - 1].kind in kinds), 0)
    return entries[begin:]


def derived(*words: str) -> str:
    """Give an id of what an entry is: the same words give the same."""
    return sha256("\n".join(words).encode(errors="surrogatepass")).hexdigest()[:32]


def read(folder: Path) -> HistoryContent:
    """Read a worker's history, also next to a wrapper that writes; raises `DiskFailed` where it cannot be read."""
    found, entries, damaged = {name: [b""] for name in FILES}, dict[str, HistoryEntry](), list[str]()
    with _explain_errors(folder):
        for name in reversed(FILES):  # a file that becomes an older one meanwhile is read twice so, and not left out
            with suppress(FileNotFoundError), durable_io.opened(folder / name) as file:
                found[name] = file.read().split(b"\n")
    for name, lines in found.items():
        for number, line in enumerate(lines, 1):
            try:
                entry = HistoryEntry.model_validate_json(line)
                entries.setdefault(entry.id, entry)
            except ValidationError:
                if number < len(lines):  # the last one is empty, or torn: it is being written, or nobody was answered
                    damaged.append(f"{folder / name}:{number}: this line is no entry; it is left out, and stays there")
    return HistoryContent(tuple(entries.values()), tuple(damaged))


@contextmanager
def _explain_errors(folder: Path) -> Generator[None]:
    """Say of an error of the system's what it is about."""
    try:
        yield
    except OSError as error:
        raise DiskFailed(f"the history in {error.filename or folder} cannot be used: {error.strerror}") from error
