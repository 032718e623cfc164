"""A journal in memory: nothing of it outlives the process, and nobody waits for a disk."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from ashep.core.facts.records import Entry
from ashep.core.facts.resources import LOW_DISK
from ashep.core.state.world import World
from ashep.journal.blobs import Blobs
from ashep.journal.files import START, Batch, Position
from ashep.journal.log import Journal


class MemoryBlobs(Blobs):
    """Texts by their hash."""

    def __init__(self) -> None:
        super().__init__(Path())
        self._texts: dict[str, str] = {}

    async def keep(self, text: str) -> str:
        """Keep a text and give its hash."""
        name = sha256(text.encode(errors="replace")).hexdigest()
        self._texts[name] = text
        return name

    def has(self, name: str) -> bool:
        """Say whether a text is there."""
        return name in self._texts

    def text(self, name: str) -> str:
        """Give a text."""
        return self._texts[name]


class MemoryJournal(Journal):
    """A journal that remembers how many entries it has, and forgets them."""

    def __init__(self) -> None:  # nothing is opened, so the parent's is not called
        self.blobs = MemoryBlobs()
        self._last = 0

    @property
    def next_seq(self) -> int:
        """The number of the next entry."""
        return self._last + 1

    def room(self) -> int:
        """Say that there is room."""
        return 4 * LOW_DISK

    def known(self, until: tuple[str, int, int, str] | None = None) -> tuple[World, Position]:
        """Know nothing."""
        return World(), START

    def batches(self, after: tuple[str, int, int, str] = START) -> Iterator[Batch]:
        """Give nothing."""
        return iter(())

    async def append(self, entries: Sequence[Entry]) -> None:
        """Count the batch's entries."""
        self._last += len(entries)

    def close(self) -> None:
        """Do nothing."""
