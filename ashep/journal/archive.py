"""Old files leave the journal's folder for its archive, where everything that reads the journal finds them."""

import os
import shutil
from datetime import datetime
from errno import EXDEV
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from ashep.core.events import JournalPruned
from ashep.core.records import Entry
from ashep.core.world import World, evolve
from ashep.errors import DiskFailed
from ashep.journal import snapshots
from ashep.journal.chain import sealed
from ashep.journal.files import ARCHIVE, BASE, Position, base, batches, damaged, head_of, journal_files
from ashep.journal.paths import make_folder, sync_folder
from ashep.journal.snapshots import Mark

if TYPE_CHECKING:
    from ashep.journal.log import Journal


def archive(folder: Path, keep: int) -> list[str]:
    """Move whole files older than the newest `keep` bytes; give their names. The last file stays, whatever its size.

    Blocks; raises OSError, and nothing is lost by that.
    """
    names = sealed(folder)[-2::-1]  # from the newest sealed one to the oldest
    sizes = accumulate((folder / name).stat().st_size for name in names)
    old = [name for name, together in zip(names, sizes, strict=True) if together > keep]
    for name in reversed(old):
        make_folder(folder / ARCHIVE)
        _move(folder / name, folder / ARCHIVE / name)
    return old[::-1]


def _move(path: Path, target: Path) -> None:
    try:
        path.rename(target)
    except OSError as error:
        if error.errno != EXDEV:
            raise
        _copy(path, target)  # the archive is a link to another disk
        path.unlink()
    sync_folder(target.parent)
    sync_folder(path.parent)


def _copy(path: Path, target: Path) -> None:
    draft = target.with_name(target.name + ".tmp")
    with path.open("rb") as source, draft.open("wb") as copy:
        os.fchmod(copy.fileno(), 0o600)
        shutil.copyfileobj(source, copy, 1 << 20)
        copy.flush()
        os.fsync(copy.fileno())
    draft.rename(target)
    sync_folder(target.parent)


def archived(folder: Path) -> list[Path]:
    """The archived files, the oldest first."""
    return sorted(path for path in (folder / ARCHIVE).glob("*.jsonl") if path.stem.isdecimal())


def prune(journal: "Journal", at: datetime) -> list[Path]:
    """Delete the archive for good; give the files that went. Blocks; raises `JournalDamaged` and `DiskFailed`.

    The order is that of any effect: first the fact that the owner wanted it, then what stands for the pruned part, and
    only then the files go. Whatever of it a crash leaves out, doing it again does.
    """
    folder = journal.folder
    gone = archived(folder)
    try:
        left = [path for path in gone if path.name >= base(folder).file]
        if left:
            world, first = _folded(folder, left[-1].name)
            journal.append_now([Entry(journal.next_seq, at, JournalPruned(first.seq, tuple(map(_name, left))))])
            snapshots.write(folder / BASE, world, Mark(first, ""))
        for path in gone:
            path.unlink()
        if gone:
            sync_folder(folder / ARCHIVE)
    except OSError as error:
        raise DiskFailed(f"pruning {folder / ARCHIVE} failed: {error}. It can be done again.") from error
    return gone


def _name(path: Path) -> str:
    return path.name


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
