"""Keeper of the snapshots, when one is due, next to the work: nobody waits for it, and nothing depends on it."""

from collections.abc import Callable, Sequence

import anyio

from ashep.core.facts.records import Entry
from ashep.core.state.world import World
from ashep.journal.snapshots import JournalPosition
from ashep.journal.writer import Journal

EVERY = 5000
"""Entries between two snapshots, at least: what a start after a kill has to fold."""

SHARE = 2
"""There are also at least 1/SHARE as many entries between two snapshots as there are issues: the whole World is
written each time, so that otherwise an entry would cost the more, the more issues are known."""


class SnapshotWriter:
    """Writes snapshots of one journal. Run `run` as a task; then `finish`."""

    def __init__(self, journal: Journal, report: Callable[[str], None], every: int = EVERY) -> None:
        self._journal, self._report, self._every = journal, report, every
        self._latest: tuple[World, JournalPosition] | None = None
        self._due: tuple[World, JournalPosition] | None = None
        self._file: str = journal.position.file
        self._entries = 0
        self._written: JournalPosition | None = None
        self._news = anyio.Event()

    def offer(self, entries: Sequence[Entry], world: World) -> None:
        """Say that a batch is durable, and the World after it. Never waits, never fails."""
        self._latest = (world, self._journal.mark)
        self._entries += len(entries)
        file = self._journal.position.file
        if file != self._file or self._entries >= max(self._every, len(world.flows) // SHARE):
            self._file, self._entries, self._due = file, 0, self._latest
            self._news.set()

    async def run(self) -> None:
        """Look after sealed files that were too many to look at before; then write what is due. Until cancelled.

        Raises `JournalDamaged`.
        """
        if self._journal.unchecked:
            await self._journal.check_sealed()
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            await self._write()

    async def finish(self) -> None:
        """Write a last one at an orderly end, so that the next start has nothing to fold."""
        self._due = self._latest
        with anyio.CancelScope(shield=True):
            await self._write()

    async def _write(self) -> None:
        due, self._due = self._due, None
        if due is None or due[1] == self._written:
            return
        self._written = due[1]
        try:
            await self._journal.keep(*due)
        except OSError as error:
            self._written = None
            self._report(f"a snapshot could not be written ({error}): the next start takes longer, nothing else")
