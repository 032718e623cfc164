"""Files of the journal, read: complete batches in order, and what is to be said of the bytes after them.

Used by the daemon (which then cuts a torn tail) and by readers next to a running daemon (which ignore it: a batch that
is being written looks just like a torn one).

The files are those of the journal's folder and of its `archive`, to which old ones move. Where the archive was pruned
the journal begins later: `base` says where.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from ashep.core.facts.records import Entry, from_json, is_known
from ashep.core.facts.resources import JournalBegun
from ashep.errors import AshepError, JournalDamaged
from ashep.journal.framing import COMMIT, HEADER, BadLine, Record, checksum, parse

ARCHIVE = "archive"
"""The folder in the journal's own to which old files move; it may be a symbolic link to another disk."""

BASE = "base.snapshot"
"""The file in the journal's folder that stands for what was pruned; its first line is a position."""

_REMEDY = (
    "Nothing was changed. Restore the folder {folder} from a backup. Or, to go on with what precedes this line, move "
    "the whole state folder away and start anew: ashep then finds its issues again in the tracker. "
    "`ashep journal verify --salvage DIR` writes what can be read to a new folder."
)


Told = Callable[[int], None]
"""How far it has got: the number of the last record."""


def nobody(*_: int) -> None:
    """Tell nobody."""


class Position(NamedTuple):
    """The end of a complete batch, or of a file's first line."""

    file: str
    """The file's name; empty: there is no journal yet."""
    offset: int
    """Bytes of that file that are good."""
    seq: int
    """The last sequence number that is taken."""
    crc: str
    """The checksum of the last line: two journals that agree in all four agree up to here."""


START = Position("", 0, 0, "")
"""Before everything."""


class ReadBatch(NamedTuple):
    """A complete batch."""

    end: Position
    entries: Sequence[Entry]


def journal_files(folder: Path) -> list[Path]:
    """List the journal's files in the order of their sequence numbers, archived ones included."""
    # the archive is looked at last: a file that moves there meanwhile is then listed twice, and never not at all
    found = {path.name: path for place in (folder, folder / ARCHIVE) for path in place.glob("*.jsonl")}
    return [found[name] for name in sorted(found) if found[name].stem.isdecimal()]


def file_name(seq: int) -> str:
    """Name the file whose first line has this sequence number: names sort as numbers do."""
    return f"{seq:012}.jsonl"


def open_file(folder: Path, name: str) -> BufferedReader:
    """Open a file of the journal for reading, wherever it is by now; raises FileNotFoundError."""
    try:
        return (folder / name).open("rb")
    except FileNotFoundError:
        return (folder / ARCHIVE / name).open("rb")


def base(folder: Path) -> Position:
    """Say where the journal begins: `START`, or what follows the pruned part. Raises `JournalDamaged`."""
    record = _base(folder)
    return Position(record["file"], record["offset"], record["seq"], record["crc"]) if record else START


def _base(folder: Path) -> Record | None:
    """Read the first line of what stands for the pruned part, if there is any."""
    path = folder / BASE
    try:
        with path.open("rb") as file:
            record = parse(file.readline())
    except FileNotFoundError:
        return None
    except BadLine as error:
        raise damaged(folder, path, 1, str(error)) from None
    if missing := {"file", "offset", "crc", "begun"} - record.keys():
        raise damaged(folder, path, 1, f"it does not say {', '.join(sorted(missing))}")
    return record


def head_of(folder: Path, name: str) -> tuple[Record, Position] | None:
    """Read a file's first line, and say where it ends; None: it has no good one."""
    with open_file(folder, name) as file:
        first = file.readline()
    try:
        record = parse(first)
    except BadLine:
        return None
    if record["type"] != HEADER:
        return None
    return record, Position(name, len(first), record["seq"], first[-9:-1].decode())


def last_header(folder: Path) -> Position:
    """Find the place from which a start reads line by line: behind the header of the last file that has a good one."""
    begin = base(folder)
    for path in reversed(journal_files(folder)):
        found = head_of(folder, path.name) if path.name >= begin.file else None
        if found is not None:
            return found[1]
    return begin


def read_first_record(folder: Path) -> JournalBegun | None:
    """Read the journal's first record, as what stands for the pruned part has it; None: it is still to be written."""
    record = _base(folder)
    if record is not None:
        fields = record["begun"]
        return JournalBegun(fields["instance"], fields["secret"], fields["actor"])
    for _, _, records in Scan(folder).records():
        body = from_json(records[0]).body if records[0]["type"] == JournalBegun.__name__ else None
        return body if isinstance(body, JournalBegun) else None
    return None


def batches(folder: Path, after: Position = START) -> Iterator[ReadBatch]:
    """Give the complete batches behind a position; raises `JournalDamaged`.

    Those behind `START` are all there are: where the archive was pruned, they begin at `base`.
    """
    return Scan(folder, after).batches()


def holds(folder: Path, position: Position) -> bool:
    """Say whether a batch (or a file's first line) of exactly this number and checksum ends at this position."""
    try:
        with open_file(folder, position.file) as file:
            if file.seek(0, 2) < position.offset:
                return False
            file.seek(max(0, position.offset - 4096))
            tail = file.read(min(4096, position.offset))
    except OSError:
        return False
    try:
        last = tail[tail.rfind(b"\n", 0, -1) + 1 :]
        record = parse(last)
    except BadLine:
        return False
    return (record["type"] in (COMMIT, HEADER), record["seq"], last[-9:-1].decode()) == (True, *position[2:])


class Scan:
    """One pass over the files behind a position.

    After the last batch `position` is the end of what is good, and `torn` counts the bytes after it. With `hashing`
    each file is compared with the hash in the next one's header, and `digest` is that of the last file's good bytes.
    """

    def __init__(self, folder: Path, after: Position = START, *, hashing: bool = False) -> None:
        self.folder, self.torn = folder, 0
        self.position = base(folder) if after == START else after
        self.digest = sha256()
        self.before: str | None = None
        """With `hashing`: the hash of the file before the last one."""
        self.seq, self.reached = 0, ""
        """With `hashing`: a number, and the hash of its file up to there; empty: no batch or header ends at it."""
        self._hashing = hashing
        self._previous: str | None = None
        self._bad: tuple[int, str] | None = None
        """Where the last file's torn end begins with a bad line, and what is wrong with that."""

    def batches(self) -> Iterator[ReadBatch]:
        """Give the complete batches, entries decoded; raises `JournalDamaged`."""
        for start, end, records in self.records():
            try:
                entries = [from_json(record) for record in records]
            except ValueError as error:
                why = f"a record that this version cannot read: {error}".replace("\n", " ")
                raise self._damaged(end.file, start, why) from None
            yield ReadBatch(end, entries)

    def records(self) -> Iterator[tuple[int, Position, list[Record]]]:
        """Give each complete batch as the offset of its start, its end, and its entries as JSON."""
        names = [path.name for path in journal_files(self.folder) if path.name >= self.position.file]
        if self.position.file and not (names and names[0] == self.position.file):
            self._check_base()
            raise self._damaged(self.position.file, 0, "the file is missing")
        for name in names:
            if self.torn:
                at, why = self._bad or (self.position.offset, "a batch is not complete")
                why = f"{why}: the file does not end with a batch, but {name} follows"
                raise self._damaged(self.position.file, at, why)
            yield from self._file(name)

    def _file(self, name: str) -> Iterator[tuple[int, Position, list[Record]]]:
        with self._open(name) as file:
            self._begin(file, name)
            start = at = self.position.offset
            size = file.seek(0, 2)
            pending: list[Record] = []
            raws: list[bytes] = []
            crc = 0
            lines = _lines(file, start, size)
            for raw in lines:
                try:
                    record = parse(raw)
                    _check_place(record, first=at == 0, pending=len(pending), crc=crc)
                except BadLine as error:
                    self._check_tail(name, at, str(error), chain([raw], lines))
                    break
                if at == 0:
                    self._check_header(name, record)
                at += len(raw)
                raws.append(raw)
                if record["type"] not in (HEADER, COMMIT):
                    pending.append(record)
                    crc = crc32(raw, crc)
                    continue
                self._check_content(name, start, record, pending)
                self.position = Position(name, at, record["seq"], raw[-9:-1].decode())
                if self._hashing:
                    self.digest.update(b"".join(raws))
                    if record["seq"] == self.seq:
                        self.reached = self.digest.hexdigest()
                if pending:
                    yield start, self.position, pending
                start, pending, raws, crc = at, [], [], 0
        self.torn = size - start
        self._previous = name

    def _open(self, name: str) -> BufferedReader:
        try:
            return open_file(self.folder, name)
        except FileNotFoundError:
            self._check_base()
            raise

    def _check_base(self) -> None:
        """A daemon next to us may have deleted what was to be read: then nothing is damaged."""
        if base(self.folder).seq > self.position.seq:
            raise AshepError(f"{self.folder} was pruned while it was read: begin again")

    def _begin(self, file: BufferedReader, name: str) -> None:
        self.before = self.digest.hexdigest() if self._hashing and self._previous is not None else None
        self.digest = sha256()
        if name != self.position.file:
            self.position = self.position._replace(file=name, offset=0)
        elif self._hashing:
            self.digest.update(file.read(self.position.offset))

    def _check_header(self, name: str, header: Record) -> None:
        if header.get("previous") != self._previous:
            raise self._damaged(name, 0, f"it continues {header.get('previous')}, but that is not the file before it")
        if self.before is not None and header.get("hash") not in (self.before, None):
            why = f"the hash of {self._previous} is not the one that stands here: that file is not what was written"
            raise self._damaged(name, 0, why)

    def _check_content(self, name: str, start: int, closing: Record, pending: list[Record]) -> None:
        """Refuse good lines that do not continue the journal, or that another version of ashep has written."""
        for number, record in enumerate((*pending, closing), self.position.seq + 1):
            kind, version = record["type"], record["v"]
            if record["seq"] != number:
                raise self._damaged(name, start, f"sequence number {number} is missing")
            if not is_known("" if kind in (HEADER, COMMIT) else kind, version):
                why = f"record {number} ({kind}, v{version}) was written by another version of ashep: run that one"
                raise self._damaged(name, start, why)

    def _check_tail(self, name: str, at: int, why: str, tail: Iterable[bytes]) -> None:
        """Refuse a bad line unless it may belong to the one batch that was being written.

        That batch has the next numbers; a commit of others shows that a later batch was durable.
        """
        self._bad = (at, why)
        for raw in tail:
            try:
                record = parse(raw)
            except BadLine:
                continue
            if record["type"] == COMMIT and record["seq"] - record["count"] != self.position.seq + 1:
                raise self._damaged(name, at, f"{why}, and later batches follow it")

    def _damaged(self, name: str, at: int, why: str) -> JournalDamaged:
        return damaged(self.folder, path_of(self.folder, name), line_at(self.folder, name, at), why)


def damaged(folder: Path, path: Path, line: int, why: str) -> JournalDamaged:
    """Say what is wrong where, and what to do."""
    return JournalDamaged(f"{path}:{line}: {why}. {_REMEDY.format(folder=folder)}", file=path, line=line)


def path_of(folder: Path, name: str) -> Path:
    """Say where a file of the journal lies."""
    archived = folder / ARCHIVE / name
    return archived if not (folder / name).exists() and archived.exists() else folder / name


def _lines(file: BufferedReader, start: int, end: int) -> Iterator[bytes]:
    """Give the lines between two offsets; what a running daemon appends meanwhile is not looked at."""
    file.seek(start)
    for raw in file:
        yield raw[: end - start]
        start += len(raw)
        if start >= end:
            return


def line_at(folder: Path, name: str, offset: int) -> int:
    """Count the number of the line that begins at an offset; for that of the first, the file need not be there."""
    if not offset:
        return 1
    with open_file(folder, name) as file:
        return 1 + file.read(offset).count(b"\n")


def _check_place(record: Record, *, first: bool, pending: int, crc: int) -> None:
    kind = record["type"]
    if (kind == HEADER) != first:
        raise BadLine("a file begins with its header, and only there is one")
    if kind == COMMIT and (not pending or (record.get("count"), record.get("crc")) != (pending, checksum(b"", crc))):
        raise BadLine("the commit record does not match its batch")
