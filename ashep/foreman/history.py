"""History of a worker: one line of JSON for each thing said, on the disk before anybody is answered.

`history.jsonl` grows at its end; before it would hold more than it may it becomes `history.1.jsonl`, that one
`history.2.jsonl`, and the one before is gone. One process at a time writes (`lock`); anybody of this user's may read.
"""

import os
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from threading import Lock as Turn
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, TypeAdapter, ValidationError

from ashep.core.text import clean
from ashep.errors import AlreadyRunning, AshepError, DiskFailed
from ashep.journal import paths
from ashep.journal.lock import Lock, holder
from ashep.redaction import Redaction

Kind = Literal["prompt", "answer", "plan", "asked", "result", "restart", "topic", "cleared"]
"""prompt, answer: of the person, of the main agent · plan: one that was accepted · asked, result: of a subagent ·
restart, topic: the session was begun anew, because it was long, or because of a new topic · cleared: by the person."""


class Entry(BaseModel):
    """A thing said, as a line of `history.jsonl`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    """Derived from what was said where (session, prompt or tool call, kind): the same thing told twice stands once."""
    at: AwareDatetime
    session: str
    """Claude's session."""
    kind: Kind
    text: str
    """Redacted."""
    agent: str = ""
    """The kind of subagent that was asked."""
    call: str = ""
    """The tool call that ties a subagent's result to what it was asked."""


FILES = ("history.2.jsonl", "history.1.jsonl", "history.jsonl")
"""Old first."""

RECENT, PROMPT = "recent-history.json", "last-system-prompt.log"
"""What is derived of them: what was said since the last topic, and what the last session was told at its start."""

LONGEST = 200_000
"""Characters of one entry's text; the rest is cut off, and counted."""

_RECENT = 100, 200_000  # entries and characters of the read model, which is written anew with each entry
_ENTRIES = TypeAdapter(list[Entry])
_UNTOLD = datetime.fromtimestamp(0, UTC)  # since when a wrapper runs is asked by nobody


class WorkerBusy(AshepError):
    """Another wrapper has this worker's history."""

    exit_code = AlreadyRunning.exit_code

    def __init__(self, worker: str, pid: int) -> None:
        super().__init__(
            f"another `ashep foreman` works as {worker}: process {pid}. End it, or be another (--worker NAME); "
            "/foreman:clear-worker-history in its session clears what it keeps"
        )
        self.pid = pid


@dataclass(frozen=True, slots=True)
class Kept:
    """All that was read of a folder."""

    files: tuple[tuple[Entry, ...], ...]
    """Of each file, old first, each entry once, also those that were cleared."""
    damaged: tuple[str, ...]
    """What is to be said of lines that are no entries, each with its file and number."""
    torn: int
    """Bytes of the last line where it is none: it is being written, or who wrote it was killed."""

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All of them, old first."""
        return tuple(entry for file in self.files for entry in file)


class History:
    """A worker's history, ours to write until `close`, or until this process ends. A context manager.

    All of it blocks for the time of a write to the disk, and may be called by several threads.
    """

    def __init__(self, folder: Path, redaction: Redaction, keep: int, lock: Lock) -> None:
        """Use `History.open`."""
        self.folder = folder
        self._redaction, self._keep, self._lock, self._turn = redaction, keep, lock, Turn()
        kept = read(folder)
        self.torn, self.damaged = kept.torn, kept.damaged
        """What was cut of the end, since nobody was answered for it, and the lines that could not be read."""
        self._files = [list(file) for file in kept.files]
        self._ids = {entry.id for entry in kept.entries}
        self._file, self._unsure = -1, False
        if self.torn:
            path = folder / FILES[-1]
            os.truncate(path, path.stat().st_size - self.torn)
        self._open_file()
        self._put_recent()

    @classmethod
    def open(cls, folder: Path, redaction: Redaction, keep: int) -> "History":
        """Take a worker's folder (made if need be, 0700), and read what is there; a torn last line is cut.

        `keep`: bytes of one file. Raises `WorkerBusy` where a live process has it, `DiskFailed` where it cannot be
        written.
        """
        with _told(folder):
            paths.make_folder(folder)
            folder.chmod(0o700)
            try:
                lock = Lock.acquire(folder, _UNTOLD)
            except AlreadyRunning as error:
                who = holder(folder)
                raise WorkerBusy(folder.name, who.pid if who else 0) from error
            try:
                return cls(folder, redaction, keep, lock)
            except BaseException:
                lock.release()
                raise

    def append(self, entry: Entry) -> bool:
        """Keep a thing that was said, redacted and cleaned; it is on the disk when this returns.

        False: its id is there already, and nothing is written. Raises `DiskFailed`; then all is as it was before.
        """
        entry = self._safe(entry)
        with self._turn, _told(self.folder):
            if entry.id in self._ids:
                return False
            self._write(_line(entry))
            self._files[-1].append(entry)
            self._ids.add(entry.id)
            self._put_recent()
        return True

    def entries(self) -> Sequence[Entry]:
        """Give what was said since the last `cleared`, old first: what a new session may be told of."""
        return since(self._all(), "cleared")

    def recent(self) -> Sequence[Entry]:
        """Give what was said since the last `topic` or `cleared`, old first."""
        return since(self._all(), "cleared", "topic")

    def clear(self, at: datetime, session: str) -> None:
        """Let no session be told any more of what was said; it is still kept, and shown by `--history`."""
        name = derived("cleared", session, at.isoformat())
        self.append(Entry(id=name, at=at, session=session, kind="cleared", text=""))

    def prepend(self, entries: Iterable[Entry]) -> int:
        """Put older entries before all others, all at once or none; give how many were not there yet."""
        safe = [self._safe(one) for one in entries]
        with self._turn, _told(self.folder):
            new = {one.id: one for one in safe if one.id not in self._ids}
            if new:
                at = next(number for number, name in enumerate(FILES) if (self.folder / name).exists())
                path = self.folder / FILES[at]
                paths.replace(path, [b"".join(map(_line, new.values())), path.read_bytes()])
                self._files[at][:0] = new.values()
                self._ids |= new.keys()
                self._open_file()
                self._put_recent()
        return len(new)

    def keep_prompt(self, text: str) -> Path:
        """Write what a session is told at its start to `last-system-prompt.log` (0600), and give its path."""
        with _told(self.folder):
            return _put(self.folder / PROMPT, text.encode())

    def close(self) -> None:
        """Let the folder go."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            self._lock.release()

    def __enter__(self) -> "History":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _all(self) -> list[Entry]:
        return [entry for file in self._files for entry in file]

    def _safe(self, entry: Entry) -> Entry:
        """Give an entry as it may be written down."""
        text = self._redaction.text(clean(self._redaction.text(entry.text)))  # cleaning may join what was apart
        if len(text) > LONGEST:
            text = f"{text[:LONGEST]}\n[… {len(text) - LONGEST} characters more]"
        names = {name: clean(getattr(entry, name)) for name in ("id", "session", "agent", "call")}
        return entry.model_copy(update={**names, "text": text})

    def _write(self, line: bytes) -> None:
        """Put a line at the end, durably; where that fails, nothing of it stays."""
        if not self._lock.stands():
            raise DiskFailed(f"{self.folder} is no more the folder that was taken: it was moved, or deleted")
        if not self._is_ours():
            self._open_file()  # an editor has put another file in its place
        size = os.fstat(self._file).st_size
        if self._unsure:  # a line that failed could not be taken back then
            os.ftruncate(self._file, size := self._sure)
            self._unsure = False
        if size and size + len(line) > self._keep:
            self._rotate()
            size = 0
        try:
            paths.write_all(self._file, line)
            os.fsync(self._file)
        except BaseException:
            self._sure, self._unsure = size, True
            with suppress(OSError):
                os.ftruncate(self._file, size)
                self._unsure = False
            raise

    def _is_ours(self) -> bool:
        try:
            return os.path.samestat(os.stat(self.folder / FILES[-1]), os.fstat(self._file))
        except OSError:
            return False

    def _rotate(self) -> None:
        """Begin a new file. Who is killed between two of these steps finds every line once: each is a rename."""
        oldest, older, newest = (self.folder / name for name in FILES)
        if older.exists():
            older.replace(oldest)
            self._files = [self._files[1], [], self._files[2]]
        newest.replace(older)
        self._files = [self._files[0], self._files[2], []]
        self._ids = {entry.id for file in self._files for entry in file}
        self._open_file()

    def _open_file(self) -> None:
        """Open the newest file, which may not be there; what is written next begins a line of its own."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(self.folder / FILES[-1], flags, 0o600)
        try:
            os.fchmod(file, 0o600)
            size = os.fstat(file).st_size
            if size and os.pread(file, 1, size - 1) != b"\n":
                paths.write_all(file, b"\n")
            os.fsync(file)
            paths.sync_folder(self.folder)
        except BaseException:
            os.close(file)
            raise
        if self._file >= 0:
            os.close(self._file)
        self._file, self._sure, self._unsure = file, size, False

    def _put_recent(self) -> None:
        """Derive the read model anew; it is made at each opening, so that a disk that has no room for it is no harm."""
        chosen, left = list[Entry](), _RECENT[1]
        for entry in reversed(self.recent()[-_RECENT[0] :]):
            left -= len(entry.text)
            if left < 0:
                break
            chosen.insert(0, entry)
        with suppress(OSError):
            _put(self.folder / RECENT, _ENTRIES.dump_json(chosen, indent=1) + b"\n")


def since(entries: Sequence[Entry], *kinds: Kind) -> Sequence[Entry]:
    """Give what was said behind the last entry of such kinds."""
    begin = next((at for at in range(len(entries), 0, -1) if entries[at - 1].kind in kinds), 0)
    return entries[begin:]


def derived(*words: str) -> str:
    """Give an id of what an entry is: the same words give the same."""
    return sha256("\n".join(words).encode(errors="surrogatepass")).hexdigest()[:32]


def read(folder: Path) -> Kept:
    """Read a worker's history, also beside a wrapper that writes; raises `AshepError` where it cannot be read."""
    parts = dict[str, tuple[list[Entry | None], int]]()
    for name in reversed(FILES):  # a file that becomes an older one meanwhile is read twice so, and not left out
        try:
            with paths.opened(folder / name) as file:
                parts[name] = _parsed(file.read())
        except FileNotFoundError:
            parts[name] = [], 0
        except OSError as error:
            raise AshepError(f"{folder / name} cannot be read: {error.strerror}") from error
    damaged, seen = list[str](), set[str]()
    files = list[tuple[Entry, ...]]()
    for name in FILES:
        lines, _ = parts[name]
        damaged += (
            f"{folder / name}:{number}: this line is no entry; it is left out, and stays in the file"
            for number, line in enumerate(lines, 1)
            if line is None
        )
        once = {line.id: line for line in reversed(lines) if line is not None and line.id not in seen}
        seen |= once.keys()
        files.append(tuple(reversed(once.values())))
    return Kept(tuple(files), tuple(damaged), parts[FILES[-1]][1])


def _parsed(data: bytes) -> tuple[list[Entry | None], int]:
    """Give the entry of each line, and the bytes of a last line that is not whole."""
    *lines, rest = data.split(b"\n")
    entries = [_entry(line) for line in lines]
    if rest and (last := _entry(rest)) is not None:  # an editor may have left the newline out
        return [*entries, last], 0
    return entries, len(rest)


def _entry(line: bytes) -> Entry | None:
    try:
        return Entry.model_validate_json(line)
    except ValidationError:
        return None


def _line(entry: Entry) -> bytes:
    return entry.model_dump_json().encode() + b"\n"


def _put(path: Path, data: bytes) -> Path:
    """Give a file this content, all of it or none; after a power cut it may be gone."""
    draft = path.with_name(path.name + ".tmp")
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        paths.write_all(file, data)
    finally:
        os.close(file)
    draft.replace(path)
    return path


@contextmanager
def _told(folder: Path) -> Generator[None]:
    """Say of an error of the system's what it is about."""
    try:
        yield
    except OSError as error:
        raise DiskFailed(f"the history in {error.filename or folder} cannot be kept: {error.strerror}") from error
