"""`runs.jsonl`: one line for each finished run, in the order in which they ended.

It is a picture, too: redrawn where it is not what it should be. All of this blocks and raises OSError.
"""

import os
from collections.abc import Iterable
from itertools import zip_longest
from pathlib import Path


class RunLog:
    """The file, written by the daemon only."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._left: tuple[int, int] | None = None

    def stands(self) -> bool:
        """Say whether the file is as this one left it: nobody has deleted, replaced or cut it."""
        return self._left == _found(self.path)

    def append(self, lines: Iterable[str]) -> None:
        """Add the lines of runs that ended just now. It need not be durable: `reconcile` draws what was lost."""
        data = "".join(line + "\n" for line in lines).encode()
        if data:
            with self.path.open("ab") as file:
                file.write(data)
            self._left = _found(self.path)

    def reconcile(self, lines: Iterable[str]) -> bool:
        """Make the file hold exactly these lines; True: it had to be drawn anew, in one piece."""
        draft = self.path.with_name(self.path.name + ".tmp")
        with draft.open("wb") as file:
            file.writelines((line + "\n").encode() for line in lines)
            file.flush()
            os.fsync(file.fileno())
        same = _same(self.path, draft)
        if same:
            draft.unlink()
        else:
            draft.rename(self.path)
        self._left = _found(self.path)
        return not same


def _found(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size


def _same(one: Path, other: Path) -> bool:
    size = one.stat().st_size if one.exists() else 0
    if size != other.stat().st_size:
        return False
    if not size:
        return True
    with one.open("rb") as left, other.open("rb") as right:
        return all(a == b for a, b in zip_longest(left, right))
