"""Archive of the journal: old files move there, where everything that reads the journal finds them; and what is
deleted from there, for good.

The order of a deletion is that of any effect: first the fact that it is wanted, then what stands for the part that
goes, then the texts that nothing names any more, and only then the files. Whatever of it a crash leaves out, the next
one does: a file that the journal does not begin with any more says that there is something left to be done.
"""

from datetime import datetime
from errno import EXDEV
from itertools import accumulate, pairwise
from pathlib import Path

from ashep.core.facts.records import parse_time
from ashep.core.resources.retention import SealedFile, issue_of
from ashep.journal import durable_io, hash_chain, reader


def archive(folder: Path, keep: int) -> list[str]:
    """Move whole files older than the newest `keep` bytes; give their names. The last file stays, whatever its size.

    Blocks; raises OSError, and nothing is lost by that.
    """
    names = hash_chain.sealed(folder)[-2::-1]  # from the newest sealed one to the oldest
    sizes = accumulate((folder / name).stat().st_size for name in names)
    old = [name for name, together in zip(names, sizes, strict=True) if together > keep]
    return _to_archive(folder, old[::-1])


def archive_aged(folder: Path, before: datetime) -> list[str]:
    """Move whole files in which nothing is younger; give their names. The last file stays. As `archive` otherwise."""
    return _to_archive(folder, [name for name in aged(folder, before) if (folder / name).exists()])


def _to_archive(folder: Path, names: list[str]) -> list[str]:
    for name in names:
        path, target = folder / name, folder / reader.ARCHIVE / name
        durable_io.make_folder(target.parent)
        try:
            path.rename(target)
        except OSError as error:
            if error.errno != EXDEV:
                raise
            durable_io.copy(path, target)  # the archive is a link to another disk
            path.unlink()
        durable_io.sync_folder(target.parent)
        durable_io.sync_folder(folder)
    return names


def archived(folder: Path) -> list[Path]:
    """The archived files, the oldest first."""
    return sorted(path for path in (folder / reader.ARCHIVE).glob("*.jsonl") if path.stem.isdecimal())


# --- what may go ------------------------------------------------------------------------------------------------------


def aged(folder: Path, before: datetime) -> list[str]:
    """Name the files with which the journal begins, in order, in which nothing is younger: each one ends with the
    record whose time stands in the next one's header. Blocks.
    """
    begin, old = reader.base(folder).file, list[str]()
    for name, following in pairwise(path.name for path in reader.journal_files(folder)):
        found = reader.head_of(folder, following)
        if found is None or parse_time(found[0]["at"]) > before:
            break
        if name >= begin:
            old.append(name)
    return old


def look(folder: Path, name: str) -> SealedFile:
    """Read which issues have a record in a file that is followed by another. Blocks; raises `JournalDamaged`."""
    following = next(path.name for path in reader.journal_files(folder) if path.name > name)
    found, after = reader.head_of(folder, name), reader.head_of(folder, following)
    if found is None or after is None:
        raise reader.damaged(folder, reader.path_of(folder, name), 1, "the file does not begin with a good header")
    issues = set[str | None]()
    for end, entries in reader.Scan(folder, found[1]).batches():
        if end.file != name:
            break
        issues.update(issue_of(entry.body) for entry in entries)
    named = frozenset(issue for issue in issues if issue is not None)
    return SealedFile(name, parse_time(after[0]["at"]), after[1].seq, named)
