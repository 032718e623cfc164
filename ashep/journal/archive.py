"""Old files leave the journal's folder for its archive, where everything that reads the journal finds them."""

import os
import shutil
from errno import EXDEV
from itertools import accumulate
from pathlib import Path

from ashep.journal.chain import sealed
from ashep.journal.files import ARCHIVE
from ashep.journal.paths import make_folder, sync_folder


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
