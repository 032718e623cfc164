"""The exact replay of a state folder's journal, whoever writes to it: nothing else is read, and nothing is written."""

from collections.abc import Callable, Iterator
from pathlib import Path

from ashep.core.replay import Difference, Replay
from ashep.journal.files import batches
from ashep.journal.snapshots import beginning

Told = Callable[[int], None]
"""How far it has got: the number of the last record."""


def nobody(_: int) -> None:
    """Tell nobody."""


def replay(state: Path, again: Replay, told: Told = nobody) -> Iterator[Difference]:
    """Derive every decision again, up to the last complete batch; give what differs, as it comes.

    `again` counts, and holds the World at the end. It begins where the journal does: at what stands for the part that
    was pruned, where one was. Raises `JournalDamaged`.
    """
    again.world, after = beginning(state / "journal")
    again.covers = after.seq + 1
    for batch in batches(state / "journal", after):
        yield from again.batch(batch.entries)
        told(batch.end.seq)
