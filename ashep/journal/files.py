"""Reading the journal's files: complete batches in order, and what is to be said of the bytes after them.

Used by the daemon (which then cuts a torn tail) and by readers beside a running daemon (which ignore it: a batch that
is being written looks just like a torn one).
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import BinaryIO, NamedTuple
from zlib import crc32

from ashep.core.records import TYPES, VERSION, Entry, from_json
from ashep.errors import JournalDamaged
from ashep.journal.lines import COMMIT, HEADER, BadLine, Record, checksum, parse

_REMEDY = (
    "Nothing was changed. Restore the folder {folder} from a backup. Or, to go on with what precedes this line, move "
    "the whole state folder away and start anew: ashep then finds its issues again in the tracker."
)


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


class Batch(NamedTuple):
    """A complete batch."""

    end: Position
    entries: Sequence[Entry]


def journal_files(folder: Path) -> list[Path]:
    """List the journal's files in the order of their sequence numbers."""
    return sorted(path for path in folder.glob("*.jsonl") if path.stem.isdecimal())


def file_name(seq: int) -> str:
    """Name the file whose first line has this sequence number: names sort as numbers do."""
    return f"{seq:012}.jsonl"


def batches(folder: Path, after: Position = START) -> Iterator[Batch]:
    """Give the complete batches behind a position; raises `JournalDamaged`."""
    return Scan(folder, after).batches()


def holds(folder: Path, position: Position) -> bool:
    """Say whether a batch (or a file's first line) of exactly this number and checksum ends at this position."""
    try:
        with (folder / position.file).open("rb") as file:
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

    After the last batch `position` is the end of what is good, and `torn` counts the bytes after it.
    """

    def __init__(self, folder: Path, after: Position = START) -> None:
        self.folder, self.position, self.torn = folder, after, 0
        self._previous: str | None = None

    def batches(self) -> Iterator[Batch]:
        """Give the complete batches, entries decoded; raises `JournalDamaged`."""
        for start, end, records in self.records():
            try:
                entries = [from_json(record) for record in records]
            except ValueError as error:
                why = f"a record that this version cannot read: {error}".replace("\n", " ")
                raise self._damaged(self.folder / end.file, start, why) from None
            yield Batch(end, entries)

    def records(self) -> Iterator[tuple[int, Position, list[Record]]]:
        """Give each complete batch as the offset of its start, its end, and its entries as JSON."""
        files = [path for path in journal_files(self.folder) if path.name >= self.position.file]
        if self.position.file and not (files and files[0].name == self.position.file):
            raise self._damaged(self.folder / self.position.file, 0, "the file is missing")
        for path in files:
            if self.torn:
                raise self._damaged(path, 0, f"the file before it, {self.position.file}, does not end with a batch")
            yield from self._file(path)

    def _file(self, path: Path) -> Iterator[tuple[int, Position, list[Record]]]:
        resumed = path.name == self.position.file
        start = at = self.position.offset if resumed else 0
        if not resumed:
            self.position = self.position._replace(file=path.name, offset=0)
        previous = self._previous
        pending: list[Record] = []
        crc = 0
        with path.open("rb") as file:
            size = file.seek(0, 2)
            lines = _lines(file, start, size)
            for raw in lines:
                try:
                    record = parse(raw)
                    _check_place(record, first=at == 0, pending=len(pending), crc=crc)
                except BadLine as error:
                    self._check_tail(path, at, str(error), chain([raw], lines))
                    break
                at += len(raw)
                if record["type"] not in (HEADER, COMMIT):
                    pending.append(record)
                    crc = crc32(raw, crc)
                    continue
                self._check_content(path, start, record, pending, previous)
                self.position = Position(path.name, at, record["seq"], raw[-9:-1].decode())
                if pending:
                    yield start, self.position, pending
                start, pending, crc = at, [], 0
        self.torn = size - start
        self._previous = path.name

    def _check_content(
        self, path: Path, start: int, closing: Record, pending: list[Record], previous: str | None
    ) -> None:
        """Refuse good lines that do not continue the journal, or that another version of ashep has written."""
        if closing["type"] == HEADER and closing["previous"] != previous:
            raise self._damaged(path, 0, f"it continues {closing['previous']}, but that is not the file before it")
        for number, record in enumerate((*pending, closing), self.position.seq + 1):
            kind, version = record["type"], record["v"]
            if record["seq"] != number:
                raise self._damaged(path, start, f"sequence number {number} is missing")
            if version > VERSION or (kind not in (HEADER, COMMIT) and kind not in TYPES):
                why = f"record {number} ({kind}, v{version}) was written by another version of ashep: run that one"
                raise self._damaged(path, start, why)

    def _check_tail(self, path: Path, at: int, why: str, tail: Iterable[bytes]) -> None:
        """Refuse a bad line unless it may belong to the one batch that was being written.

        That batch has the next numbers; a commit of others shows that a later batch was durable.
        """
        for raw in tail:
            try:
                record = parse(raw)
            except BadLine:
                continue
            if record["type"] == COMMIT and record["seq"] - record["count"] != self.position.seq + 1:
                raise self._damaged(path, at, f"{why}, and later batches follow it")

    def _damaged(self, path: Path, at: int, why: str) -> JournalDamaged:
        return JournalDamaged(f"{path}:{line_at(path, at)}: {why}. {_REMEDY.format(folder=self.folder)}")


def _lines(file: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    """Give the lines between two offsets; what a running daemon appends meanwhile is not looked at."""
    file.seek(start)
    for raw in file:
        yield raw[: end - start]
        start += len(raw)
        if start >= end:
            return


def line_at(path: Path, offset: int) -> int:
    """Count the number of the line that begins at an offset."""
    if not offset:
        return 1
    with path.open("rb") as file:
        return 1 + _newlines(file, offset)


def _newlines(file: BinaryIO, size: int) -> int:
    count = 0
    while size > 0 and (chunk := file.read(min(size, 1 << 20))):
        count += chunk.count(b"\n")
        size -= len(chunk)
    return count


def _check_place(record: Record, *, first: bool, pending: int, crc: int) -> None:
    """Raise `BadLine` where a good line does not fit the ones before it."""
    kind = record["type"]
    if (kind == HEADER) != first:
        raise BadLine("a file begins with its header, and only there is one")
    if kind == COMMIT and (not pending or (record.get("count"), record.get("crc")) != (pending, checksum(b"", crc))):
        raise BadLine("the commit record does not match its batch")
