"""Port of the journal: where the shepherd's batches become durable, and the texts that their facts name."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from ashep.core.facts.records import Entry
from ashep.core.state.world import World

Place = tuple[str, int, int, str]
"""The end of a batch, as the journal writes it down."""

START: Place = ("", 0, 0, "")
"""Before everything."""


class Batch(Protocol):
    """What became durable at once."""

    @property
    def entries(self) -> Sequence[Entry]:
        """In their order."""
        ...


class Blobs(Protocol):
    """Texts, each by its hash."""

    def redact(self, text: str, /) -> str:
        """Take secrets out, as `keep` does."""
        ...

    async def keep(self, text: str) -> str:
        """Make a text durable and give its hash; keeping it again is cheap. Raises `DiskFailed`."""
        ...

    def has(self, name: str) -> bool:
        """Say whether a text is there. May block."""
        ...

    def text(self, name: str) -> str:
        """Give a text that was kept. May block; raises `JournalDamaged` where it is gone."""
        ...


class Journal(Protocol):
    """Has one writer. A journal may forget what it was told, but not how much that was."""

    @property
    def blobs(self) -> Blobs:
        """The texts next to it."""
        ...

    @property
    def next_seq(self) -> int:
        """The number of the next entry to be appended."""
        ...

    def room(self) -> int:
        """Give the bytes that may still be written; it takes microseconds."""
        ...

    def load_world(self) -> tuple[World, Place]:
        """Give a World to begin with, and its place: what `batches` gives follows. Blocks; raises `JournalDamaged`."""
        ...

    def batches(self, after: Place) -> Iterator[Batch]:
        """Give the durable batches behind a place. Blocks; raises `JournalDamaged`."""
        ...

    async def append(self, entries: Sequence[Entry]) -> None:
        """Make a batch durable that is numbered from `next_seq` on; an empty one is nothing.

        `DiskFailed` where the disk does: nothing of the batch may be acted on, and the journal takes no more. It is not
        interrupted by cancellation.
        """
        ...

    def close(self) -> None:
        """Let go of it; it takes no more."""
        ...
