"""Log of the journal, the daemon's end of it: recovery at start, then one batch after the other."""

import os
import threading
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import anyio

from ashep.core.facts import records, resources
from ashep.core.policy import disk_limits
from ashep.core.state.world import World
from ashep.errors import AshepError, DiskFailed
from ashep.journal import disk_reserve, durable_io, hash_chain, snapshots
from ashep.journal.archive import archive, archive_aged
from ashep.journal.blobs import Aside, Blobs, in_thread
from ashep.journal.framing import encode_batch, header, parse
from ashep.journal.heads import head_at
from ashep.journal.reader import (
    START,
    Position,
    ReadBatch,
    Scan,
    base,
    batches,
    file_name,
    holds,
    journal_files,
    last_header,
    open_file,
    read_first_record,
)

if TYPE_CHECKING:
    from _hashlib import HASH


class Sizes(NamedTuple):
    """Bytes: how the journal is divided."""

    file: int = 16 * 1024 * 1024
    """The next file is begun once one has so many."""
    keep: int | timedelta = 256 * 1024 * 1024
    """Files older than the newest ones of so many bytes together, or than that long ago, are archived."""
    at_once: int = 64 * 1024 * 1024
    """Up to so many in sealed files are compared with their hashes before the start; more of them next to the work."""


SIZES = Sizes()
_sync = getattr(os, "fdatasync", os.fsync)


class Journal:
    """The only writer of a state folder's journal; hold the folder's `Lock` for as long as one is open."""

    def __init__(
        self, folder: Path, tail: "Tail", begun: resources.JournalBegun | None, aside: Aside, *, cut: int, sizes: Sizes
    ) -> None:
        """Use `Journal.open`."""
        self.folder, self.cut, self.begun, self._aside = folder, cut, begun, aside
        self.blobs = Blobs(folder.parent / "blobs", aside)
        self.unchecked = False
        """Whether sealed files are still to be compared with their hashes (`check_sealed`)."""
        self._reserve = disk_reserve.Reserve(folder.parent)
        self._file, self._position, self._digest = tail
        self.head: str = head_at(tail.position.seq, tail.digest.hexdigest())
        """The head of its chain, at the last durable batch."""
        self.sizes = sizes
        self._moving = threading.Lock()
        self._limiter = anyio.CapacityLimiter(1)
        self._refusal: str | None = None

    @classmethod
    def open(cls, state: Path, at: datetime, sizes: Sizes = SIZES, aside: Aside = in_thread) -> "Journal":
        """Check the journal and cut a torn tail; make the folders and a first file (headed `at`) if need be.

        The last file is read line by line, but for what a snapshot vouches for. Sealed ones are compared with their
        hashes, if they are few; else `unchecked` says that `check_sealed` is to be called.

        Blocks: call it before the event loop or in a worker thread. Raises `JournalDamaged`, and `DiskFailed` where
        the folders and files cannot be made or cut. `cut` of what is returned counts the bytes that were cut, `begun`
        is the journal's first record (None: it is still to be written). `aside`: executes what blocks later on.
        """
        folder = state / "journal"
        try:
            for path in (state, folder, state / "blobs"):
                durable_io.make_folder(path)
            wait = hash_chain.sealed_size(folder) > sizes.at_once
            if not wait:
                hash_chain.check_sealed(folder)
            scan = Scan(folder, _vouched(state) or last_header(folder), hashing=True)
            for _ in scan.records():
                pass
            tail, first = _prepare(folder, scan, at), read_first_record(folder)
            journal = cls(folder, tail, first, aside, cut=scan.torn, sizes=sizes)
        except OSError as error:
            raise DiskFailed(f"the journal in {folder} cannot be opened: {error}. Nothing was acted on.") from error
        journal.unchecked = wait
        return journal

    @property
    def instance(self) -> str | None:
        """The journal's id."""
        return self.begun.instance if self.begun else None

    async def check_sealed(self) -> None:
        """Compare the sealed files with their hashes, in a worker thread; raises `JournalDamaged`."""
        await self._aside(partial(hash_chain.check_sealed, self.folder), None)
        self.unchecked = False

    @property
    def mark(self) -> snapshots.JournalPosition:
        """The end of the last durable batch, as a snapshot of the World there needs it."""
        return snapshots.JournalPosition(self._position, self._digest.hexdigest())

    async def keep(self, world: World, mark: snapshots.JournalPosition) -> None:
        """Write a snapshot of the World as it was at a mark, and archive old files, in a worker thread.

        Raises OSError: then the next start has more to fold, and nothing else comes of it.
        """
        await self._aside(partial(self.keep_now, world, mark), None)

    def keep_now(self, world: World, mark: snapshots.JournalPosition) -> None:
        """Do what `keep` does in the calling thread."""
        snapshots.keep(self.folder.parent, world, mark)
        self.archive(self.sizes.keep, world.now)

    def archive(self, keep: int | timedelta, now: datetime) -> None:
        """Move old files to the archive, one caller at a time. Blocks; raises OSError."""
        with self._moving:
            if isinstance(keep, timedelta):
                archive_aged(self.folder, now - keep)
            else:
                archive(self.folder, keep)

    def load_world(self, until: tuple[str, int, int, str] | None = None) -> tuple[World, Position]:
        """Give the World of the newest good snapshot (not behind `until`) and its place: what `batches` gives follows.

        Without a snapshot they are those with which the journal begins. Blocks; raises `JournalDamaged`.
        """
        return snapshots.newest(self.folder.parent, Position(*until) if until else None)

    @property
    def begins(self) -> int:
        """What precedes this number was pruned; 0: nothing was. Blocks, for microseconds; raises `JournalDamaged`."""
        return base(self.folder).seq

    @property
    def position(self) -> Position:
        """The end of the last durable batch."""
        return self._position

    @property
    def next_seq(self) -> int:
        """The number of the next entry to be appended."""
        return self._position.seq + 1

    def room(self) -> int:
        """Give the bytes that may still be written where the journal lies; it takes microseconds."""
        try:
            return disk_reserve.free(self.folder)
        except OSError:
            return 2 * disk_limits.LOW_DISK  # whoever writes next will be told what is wrong

    def batches(self, after: tuple[str, int, int, str] = START) -> Iterator[ReadBatch]:
        """Give the durable batches behind a position that the journal `holds`; raises `JournalDamaged`. Blocks."""
        return batches(self.folder, Position(*after))

    def holds(self, position: tuple[str, int, int, str]) -> bool:
        """Say whether the journal goes on from this position: the same batch ends there. Blocks."""
        return holds(self.folder, Position(*position))

    async def append(self, entries: Sequence[records.Entry]) -> None:
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
            await self._aside(partial(self._write, data, end, entries), self._limiter)
        self._refusal = None

    def append_now(self, entries: Sequence[records.Entry]) -> None:
        """Do what `append` does in the calling thread."""
        if entries:
            self._write(*self._encode(entries), entries)

    def close(self) -> None:
        """Close the file; the journal takes no more."""
        self._refusal = "it was closed"
        os.close(self._file)

    def _encode(self, entries: Sequence[records.Entry]) -> tuple[bytes, Position]:
        if self._refusal:
            raise DiskFailed(f"the journal takes no more records: {self._refusal}. {self._safe()}")
        if [entry.seq for entry in entries] != list(range(self.next_seq, self.next_seq + len(entries))):
            raise ValueError(f"entries must be numbered from {self.next_seq} on: {[entry.seq for entry in entries]}")
        data = encode_batch(entries)
        file, offset, seq, _ = self._position
        return data, Position(file, offset + len(data), seq + len(entries) + 1, data[-9:-1].decode())

    def _write(self, data: bytes, end: Position, entries: Sequence[records.Entry]) -> None:
        try:
            self._reserve.see_to(len(data), plenty=2 * disk_limits.LOW_DISK)
            durable_io.write_all(self._file, data)
            _sync(self._file)
            self._digest.update(data)
            self._position = end
            if end.offset >= self.sizes.file:
                # between two batches: what follows is numbered behind the new file's header
                before, path = self._file, self.folder / file_name(self._position.seq + 1)
                at = entries[-1].at
                first = header(self.next_seq, at, self._position.file, self._digest.hexdigest())
                self._file, self._position, self._digest = _headed(path, first)
                os.close(before)
            self.head = head_at(self._position.seq, self._digest.hexdigest())
        except OSError as error:
            self._refusal = f"writing failed ({error})"
            path = self.folder / self._position.file
            raise DiskFailed(f"writing {path} failed: {error}. {self._safe()}") from error
        if self.begun is None and isinstance(first := entries[0].body, resources.JournalBegun):
            self.begun = first

    def _safe(self) -> str:
        return (
            f"Everything up to record {self._position.seq} is safe, and nothing after it was acted on. "
            "Look after the disk (space, quota, permissions, health), then start ashep again."
        )


class Tail(NamedTuple):
    """Where the next batch goes."""

    file: int
    position: Position
    digest: "HASH"
    """Of the bytes before it in its file."""


def _vouched(state: Path) -> Position | None:
    """Find a place in the last file of which a snapshot knows the hash of what precedes it, and that is right."""
    folder = state / "journal"
    last = last_header(folder).file
    for kept in snapshots.usable(state):
        if kept.mark.position.file == last:
            with open_file(folder, last) as file:
                if sha256(file.read(kept.mark.position.offset)).hexdigest() == kept.mark.digest:
                    return kept.mark.position
    return None


def _prepare(folder: Path, scan: Scan, at: datetime) -> Tail:
    """Cut what is torn, head an empty file, and open the last file for appending."""
    files, position = journal_files(folder), scan.position
    path = files[-1] if files else folder / file_name(position.seq + 1)
    if not position.offset:
        return _headed(path, header(position.seq + 1, at, files[-2].name if len(files) > 1 else None, scan.before))
    durable_io.sync_folder(folder)  # who began the file may have been killed before its name was durable
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        if scan.torn:
            os.ftruncate(file, position.offset)
        os.fsync(file)  # who wrote the last batch may have been killed before it was durable, or its fsync failed
        if os.fstat(file).st_size != position.offset:
            raise AshepError(f"{path} changed while it was read: something else writes to it")
    except BaseException:
        os.close(file)
        raise
    return Tail(file, position, scan.digest)


def _headed(path: Path, first: bytes) -> Tail:
    """Begin a file, or begin it again: a power cut may have left nothing of use in it."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        durable_io.write_all(file, first)
        os.fsync(file)
        durable_io.sync_folder(path.parent)
    except BaseException:
        os.close(file)
        raise
    seq = parse(first)["seq"]
    return Tail(file, Position(path.name, len(first), seq, first[-9:-1].decode()), sha256(first))
