"""Pruning: archived files go for good, once a snapshot stands for them, and the texts that nothing names."""

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ashep.core.facts import records, resources
from ashep.core.reconcile.evolve import evolve
from ashep.core.resources.retention import lasting
from ashep.core.state.snapshot import dump
from ashep.core.state.world import World
from ashep.errors import DiskFailed
from ashep.journal import archive, durable_io, snapshots
from ashep.journal.blobs import Blobs
from ashep.journal.reader import ARCHIVE, BASE, Position, base, batches, damaged, head_of, journal_files, open_file

if TYPE_CHECKING:
    from ashep.journal.writer import Journal

_NAMES = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
"""What may be a text's name, wherever a record or the World has it: what is kept for nothing costs some room only."""


# --- deleting ---------------------------------------------------------------------------------------------------------


class Deleted(NamedTuple):
    """What is gone for good."""

    files: list[Path]
    texts: int


def prune(journal: "Journal", at: datetime) -> Deleted:
    """Delete the archive for good, as its owner says. Blocks; raises `JournalDamaged` and `DiskFailed`."""
    folder = journal.folder
    left = [path.name for path in archive.archived(folder) if path.name >= base(folder).file]
    try:
        if left:
            world, first = _folded(folder, left[-1])
            journal.append_now([records.Entry(journal.next_seq, at, resources.JournalPruned(first.seq, tuple(left)))])
            snapshots.write(folder / BASE, world, snapshots.JournalPosition(first, ""))
    except OSError as error:
        raise _failed(folder, error) from error
    return finish(folder, journal.blobs)


def stand_in(folder: Path, last: str) -> None:
    """Write what stands for the files up to this one, which a fact gives up. Blocks; raises as `prune` does."""
    try:
        if last >= base(folder).file:
            world, first = _folded(folder, last)
            snapshots.write(folder / BASE, world, snapshots.JournalPosition(first, ""))
    except OSError as error:
        raise _failed(folder, error) from error


def unfinished(folder: Path) -> bool:
    """Whether an earlier deletion was interrupted: files stand there that the journal does not begin with any more."""
    begin = base(folder).file
    return any(path.name < begin for path in archive.archived(folder))


def finish(folder: Path, blobs: Blobs, now: float = 0.0, told: Callable[[], None] = lambda: None) -> Deleted:
    """Delete the texts and the files that nothing needs, now that something stands for them.

    `now` is the event loop's time; `told` is called from time to time, and may raise to end it before anything goes.
    Blocks; raises as `prune` does.
    """
    begin = base(folder).file
    gone = [path for path in archive.archived(folder) if path.name < begin]
    try:
        texts = blobs.sweep(find_blob_names(folder, told), now) if gone else 0
        for path in gone:
            if (twin := folder / path.name).exists():  # a move to another disk that was interrupted
                twin.unlink()
            path.unlink()
        if gone:
            durable_io.sync_folder(folder / ARCHIVE)
    except OSError as error:
        raise _failed(folder, error) from error
    return Deleted(gone, texts)


def find_blob_names(folder: Path, tell: Callable[[], None] = lambda: None) -> set[str]:
    """Find everything that may be the name of a text in what the journal holds, and in what stands for the rest."""
    world, begin = snapshots.beginning(folder)
    names = {name for _, data in dump(lasting(world)) for name in _names(data)}
    for path in journal_files(folder):
        if path.name >= begin.file:
            tell()
            with open_file(folder, path.name) as file:
                names.update(name for line in file for name in _names(line))
    return names


def _names(data: bytes) -> Iterator[str]:
    return (name.decode() for name in _NAMES.findall(data))


def _failed(folder: Path, error: OSError) -> DiskFailed:
    return DiskFailed(f"pruning {folder / ARCHIVE} failed: {error}. It can be done again.")


def _folded(folder: Path, last: str) -> tuple[World, Position]:
    """Fold the journal up to the end of a file; give the World there, and where the next file's first line ends."""
    world, after = snapshots.beginning(folder)
    for end, entries in batches(folder, after):
        if end.file > last:
            break
        for entry in entries:
            world = evolve(world, entry)
    following = next(path.name for path in journal_files(folder) if path.name > last)
    found = head_of(folder, following)
    if found is None:
        raise damaged(folder, folder / following, 1, "the file does not begin with a good header")
    return world, found[1]
