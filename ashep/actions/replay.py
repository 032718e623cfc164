"""What a state folder's journal says, whoever writes to it: nothing else is read, and nothing is written."""

from collections.abc import Callable, Iterator
from pathlib import Path

from ashep.core.analysis.replay import Difference, Replay
from ashep.core.reconcile.evolve import evolve
from ashep.core.state.world import World
from ashep.journal.files import batches
from ashep.journal.snapshots import beginning, newest

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


def recorded(state: Path) -> World:
    """Fold the journal up to the last complete batch, also beside a daemon that writes. Raises `JournalDamaged`."""
    world = World()
    if (state / "journal").is_dir():
        world, after = newest(state)
        for batch in batches(state / "journal", after):
            for entry in batch.entries:
                world = evolve(world, entry)
    return world
