"""The daemon's end of the journal: recovery at start, then one batch after the other."""

import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

import anyio
from anyio import to_thread

from ashep.core.events import JournalBegun
from ashep.core.records import Entry, from_json
from ashep.errors import AshepError, DiskFailed
from ashep.journal.blobs import Blobs
from ashep.journal.files import START, Batch, Position, Scan, batches, file_name, holds, journal_files
from ashep.journal.lines import encode_batch, header
from ashep.journal.paths import make_folder, sync_folder, write_all

_sync = getattr(os, "fdatasync", os.fsync)


class Journal:
    """The only writer of a state folder's journal; hold the folder's `Lock` for as long as one is open."""

    def __init__(self, folder: Path, file: int, position: Position, *, cut: int, instance: str | None) -> None:
        """Use `Journal.open`."""
        self.folder, self.cut, self.instance = folder, cut, instance
        self.blobs = Blobs(folder.parent / "blobs")
        self._file, self._position = file, position
        self._limiter = anyio.CapacityLimiter(1)
        self._refusal: str | None = None

    @classmethod
    def open(cls, state: Path, at: datetime) -> "Journal":
        """Check the whole journal and cut a torn tail; make the folders and a first file (headed `at`) if need be.

        Blocks: call it before the event loop or in a worker thread. Raises `JournalDamaged`, and `DiskFailed` where
        the folders and files cannot be made or cut. `cut` of what is returned counts the bytes that were cut,
        `instance` is the journal's id (None: it has no `JournalBegun` yet, which is to be its first record).
        """
        folder = state / "journal"
        try:
            for path in (state, folder, state / "blobs"):
                make_folder(path)
            scan, instance = Scan(folder), None
            for _, _, records in scan.records():
                if instance is None and records[0]["type"] == JournalBegun.__name__:
                    body = from_json(records[0]).body
                    instance = body.instance if isinstance(body, JournalBegun) else None
            file, position = _prepare(folder, scan, at)
        except OSError as error:
            raise DiskFailed(f"the journal in {folder} cannot be opened: {error}. Nothing was acted on.") from error
        return cls(folder, file, position, cut=scan.torn, instance=instance)

    @property
    def position(self) -> Position:
        """The end of the last durable batch."""
        return self._position

    @property
    def next_seq(self) -> int:
        """The number of the next entry to be appended."""
        return self._position.seq + 1

    def read(self) -> Iterator[Entry]:
        """Give every durable entry, in order; raises `JournalDamaged`. Blocks."""
        for batch in self.batches():
            yield from batch.entries

    def batches(self, after: tuple[str, int, int, str] = START) -> Iterator[Batch]:
        """Give the durable batches behind a position that the journal `holds`; raises `JournalDamaged`. Blocks."""
        return batches(self.folder, Position(*after))

    def holds(self, position: tuple[str, int, int, str]) -> bool:
        """Say whether the journal goes on from this position: the same batch ends there. Blocks."""
        return holds(self.folder, Position(*position))

    async def append(self, entries: Sequence[Entry]) -> None:
        """Make a batch durable: one write, one fdatasync, in a worker thread. An empty batch is nothing.

        Entries are numbered from `next_seq` on; ValueError (before anything is written) where they are not, or where
        one of them would not come back as it is. `DiskFailed` where the disk does: nothing of the batch may be acted
        on, and this journal takes no more. It is not interrupted by cancellation.
        """
        if not entries:
            return
        data, end = self._encode(entries)
        self._refusal = "an append did not come to its end"
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(self._write, data, limiter=self._limiter)
        self._position, self._refusal = end, None
        self._note_instance(entries)

    def append_now(self, entries: Sequence[Entry]) -> None:
        """Do what `append` does in the calling thread."""
        if not entries:
            return
        data, end = self._encode(entries)
        self._write(data)
        self._position = end
        self._note_instance(entries)

    def close(self) -> None:
        """Close the file; the journal takes no more."""
        self._refusal = "it was closed"
        os.close(self._file)

    def _encode(self, entries: Sequence[Entry]) -> tuple[bytes, Position]:
        if self._refusal:
            raise DiskFailed(f"the journal takes no more records: {self._refusal}. {self._safe()}")
        if [entry.seq for entry in entries] != list(range(self.next_seq, self.next_seq + len(entries))):
            raise ValueError(f"entries must be numbered from {self.next_seq} on: {[entry.seq for entry in entries]}")
        data = encode_batch(entries)
        file, offset, seq, _ = self._position
        return data, Position(file, offset + len(data), seq + len(entries) + 1, data[-9:-1].decode())

    def _write(self, data: bytes) -> None:
        try:
            write_all(self._file, data)
            _sync(self._file)
        except OSError as error:
            self._refusal = f"writing failed ({error})"
            path = self.folder / self._position.file
            raise DiskFailed(f"writing {path} failed: {error}. {self._safe()}") from error

    def _safe(self) -> str:
        return (
            f"Everything up to record {self._position.seq} is safe, and nothing after it was acted on. "
            "Look after the disk (space, quota, permissions, health), then start ashep again."
        )

    def _note_instance(self, entries: Sequence[Entry]) -> None:
        first = entries[0].body
        if self.instance is None and isinstance(first, JournalBegun):
            self.instance = first.instance


def _prepare(folder: Path, scan: Scan, at: datetime) -> tuple[int, Position]:
    """Cut what is torn, head an empty file, and open the last file for appending."""
    files = journal_files(folder)
    position = scan.position
    path = files[-1] if files else folder / file_name(position.seq + 1)
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if scan.torn:
            os.ftruncate(file, position.offset)
            os.fsync(file)
        if not os.fstat(file).st_size:
            first = header(position.seq + 1, at, files[-2].name if len(files) > 1 else None)
            write_all(file, first)
            os.fsync(file)
            sync_folder(folder)
            position = Position(path.name, len(first), position.seq + 1, first[-9:-1].decode())
        if os.fstat(file).st_size != position.offset:
            raise AshepError(f"{path} changed while it was read: something else writes to it")
    except BaseException:
        os.close(file)
        raise
    return file, position
