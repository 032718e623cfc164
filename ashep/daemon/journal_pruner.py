"""Pruner of the journal: executes `journal: {keep: 30d}` while the daemon runs.

What may go is decided by `ashep.core.resources.retention`, and is a fact before anything goes. It is looked at after
the start, then every hour, in a worker thread, file by file.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

import anyio
from anyio import to_thread

from ashep.core.facts.resources import JournalPruned
from ashep.core.resources.retention import SealedFile, pruned, why_kept
from ashep.core.state.world import World
from ashep.daemon.shepherd import Shepherd
from ashep.errors import AshepError
from ashep.journal import archive, prune, writer
from ashep.ports.clock import Clock

EVERY = 3600.0
"""Seconds between looks."""

MOST = 16
"""Files that go at a look: each one is folded once more for what is to stand for it."""


class _GivenUpError(Exception):
    """The daemon ends: the next one finishes it."""


class Pruner:
    """Deletes what is older than `journal.keep`, where that is a duration, of one journal."""

    def __init__(
        self, shepherd: Shepherd, journal: writer.Journal, clock: Clock, report: Callable[[str], None]
    ) -> None:
        self._shepherd, self._journal, self._clock, self._report = shepherd, journal, clock, report
        self._known: dict[str, SealedFile] = {}
        self._said = ""

    async def run(self) -> None:
        """Look for ever."""
        while True:
            if isinstance(self._shepherd.world.settings.journal.keep, timedelta) and not self._journal.unchecked:
                await self._look()
            await anyio.sleep(EVERY)

    async def _look(self) -> None:
        try:
            for _ in range(MOST):
                if not await self._prune_first_file():
                    break
            await self._finish()
            self._said = ""
        except _GivenUpError:
            return
        except (AshepError, OSError) as error:  # what is too old harms nobody: work goes on, and it is tried again
            said = f"what is older than journal.keep could not be deleted: {error}"
            if said != self._said:
                self._report(said)
            self._said = said

    async def _prune_first_file(self) -> bool:
        """Give up the first file, if it may go: first that is a fact, then something stands for it."""
        world, now = self._shepherd.world, self._clock.now()
        files = await to_thread.run_sync(self._files, world, now)
        decided = await self._shepherd.ask(lambda world: pruned(world, files, now)) if files else []
        for fact in decided:
            if isinstance(fact, JournalPruned):
                await to_thread.run_sync(prune.stand_in, self._journal.folder, fact.files[-1])
                self._known = {name: file for name, file in self._known.items() if name not in fact.files}
        return bool(decided)

    def _files(self, world: World, now: datetime) -> list[SealedFile]:
        """Archive what is old, and give the first file if it may go, as far as is known here. Blocks."""
        folder, keep = self._journal.folder, world.settings.journal.keep
        if not isinstance(keep, timedelta):
            return []
        self._journal.archive(keep, now)
        files = list[SealedFile]()
        for name in archive.aged(folder, now - keep)[:1]:
            file = self._known[name] = self._known.get(name) or archive.look(folder, name)
            files += [] if why_kept(world, file, now) else [file]
        return files

    async def _finish(self) -> None:
        """Delete what something stands for now, or has stood for since an earlier life."""
        folder, blobs = self._journal.folder, self._journal.blobs
        if not await to_thread.run_sync(prune.unfinished, folder):
            return
        gone = await to_thread.run_sync(prune.finish, folder, blobs, anyio.current_time(), self._go_on)
        count = f"{len(gone.files)} files of the journal and {gone.texts} texts"
        begins = await to_thread.run_sync(lambda: self._journal.begins)
        self._report(f"{count} are deleted, older than journal.keep; it begins with record {begins} now")

    def _go_on(self) -> None:
        if self._shepherd.stopping:
            raise _GivenUpError
