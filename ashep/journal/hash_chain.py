"""Chain of the sealed files: each one's hash stands in the next one's header, so that they need not be read as lines.

So the hash of the last file up to a batch stands for all that precedes: the head of the chain (`ashep.journal.heads`).

A start reads only the last file line by line. What came before it is compared by its hash, at once where that is
little, else in a worker thread next to the work (`Journal.check_sealed`).
"""

from hashlib import file_digest
from itertools import pairwise
from pathlib import Path

from ashep.errors import JournalDamaged
from ashep.journal.reader import Scan, damaged, head_of, journal_files, open_file, path_of


def sealed(folder: Path) -> list[str]:
    """Name the files that are not archived, in order; all but the last are sealed."""
    return [path.name for path in journal_files(folder) if path.parent == folder]


def sealed_size(folder: Path) -> int:
    """Count the bytes that `check_sealed` will read."""
    return sum((folder / name).stat().st_size for name in sealed(folder)[:-1])


def check_sealed(folder: Path) -> None:
    """Compare each sealed file with its hash; raises `JournalDamaged`, which names file and line. Blocks."""
    names = sealed(folder)
    for name, following in pairwise(names):
        found = head_of(folder, following)
        if found is None:
            if following == names[-1]:  # its beginning was torn: whoever opens the journal reads both line by line
                continue
            raise damaged(folder, path_of(folder, following), 1, "the file does not begin with a good header")
        header, _ = found
        if header["previous"] != name:
            why = f"it continues {header['previous']}, but that is not the file before it"
            raise damaged(folder, path_of(folder, following), 1, why)
        if header["hash"] is None or digest(folder, name) != header["hash"]:
            _find_damage(folder, name)
            if header["hash"] is not None:
                why = f"its bytes are not those whose hash stands in {following}"
                raise damaged(folder, path_of(folder, name), 1, why)


def digest(folder: Path, name: str) -> str:
    """Give the SHA-256 of a file's bytes."""
    with open_file(folder, name) as file:
        return file_digest(file, "sha256").hexdigest()


def _find_damage(folder: Path, name: str) -> None:
    found = head_of(folder, name)
    if found is None:
        raise damaged(folder, path_of(folder, name), 1, "the file does not begin with a good header")
    try:
        for _, end, _ in Scan(folder, found[1]).records():
            if end.file != name:
                break
    except JournalDamaged as error:
        if error.file == str(path_of(folder, name)):  # the next file does not follow where this one's end is missing
            raise
