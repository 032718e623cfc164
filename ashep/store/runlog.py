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
        self._written = False

    def stands(self) -> bool:
        """Say whether the file is there, where it holds anything."""
        return not self._written or self.path.exists()

    def append(self, lines: Iterable[str]) -> None:
        """Add the lines of runs that ended just now. It need not be durable: `reconcile` draws what was lost."""
        data = "".join(line + "\n" for line in lines).encode()
        if data:
            with self.path.open("ab") as file:
                file.write(data)
            self._written = True

    def reconcile(self, lines: Iterable[str]) -> bool:
        """Make the file hold exactly these lines; True: it had to be drawn anew, in one piece."""
        draft = self.path.with_name(self.path.name + ".tmp")
        with draft.open("wb") as file:
            file.writelines((line + "\n").encode() for line in lines)
            file.flush()
            os.fsync(file.fileno())
            self._written = file.tell() > 0
        if _same(self.path, draft):
            draft.unlink()
            return False
        draft.rename(self.path)
        return True


def _same(one: Path, other: Path) -> bool:
    size = one.stat().st_size if one.exists() else 0
    if size != other.stat().st_size:
        return False
    if not size:
        return True
    with one.open("rb") as left, other.open("rb") as right:
        return all(a == b for a, b in zip_longest(left, right))
