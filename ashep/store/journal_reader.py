"""The journal for a reader: what the store draws a picture from, next to a daemon that goes on writing."""

from collections.abc import Iterator
from pathlib import Path

from ashep.core.state.world import World
from ashep.journal.reader import Position, ReadBatch, Scan, base, batches, holds, last_header, read_first_record
from ashep.journal.snapshots import newest


class JournalView:
    """A journal as it ended when this was made; a torn tail is not looked at. Raises `JournalDamaged`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        first = read_first_record(folder)
        self.instance: str | None = first.instance if first else None
        scan = Scan(folder, last_header(folder))  # what precedes the last file is checked when it is drawn
        for _ in scan.records():
            pass
        self.position: Position = scan.position
        self.begins: int = base(folder).seq

    def holds(self, position: Position, /) -> bool:
        """Say whether the journal goes on from this position."""
        return holds(self._folder, position)

    def batches(self, after: Position, /) -> Iterator[ReadBatch]:
        """Give the durable batches behind a position."""
        return batches(self._folder, after)

    def load_world(self, until: Position, /) -> tuple[World, Position]:
        """Give the World of the newest good snapshot not behind a position, or that of the beginning."""
        return newest(self._folder.parent, until)
