"""Hints that somebody else wrote to the database: from bd's events journal, or from the store's manifest.

The journal is the owner's setting, and says who wrote. Without it the manifest of the embedded store is watched: its
content changes with every write and with no read (facts/beads.md 9). It is bd's internal file, so that what it tells
is a hint and no more: one write of others that falls together with one of ours may go unnoticed until the next look.
"""

import hashlib
import os
import signal
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from pathlib import Path

import anyio
import anyio.to_thread
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from pydantic import ValidationError

from ashep.adapters.beads.command import Bd
from ashep.adapters.beads.schema import JournalLine, Truncated
from ashep.adapters.system.filesystems import FileIdentity, identify_file
from ashep.errors import TrackerError

_LOOK = 0.1
"""Seconds between looks at the manifests' dates. That is a system call for each, where the system's own word of what
stirs in their folders would come for every file that bd opens there, some dozens a call."""

_LOOKS = 4  # how many looks a thread makes before it gives itself back: an end of the daemon waits for them

_RECHECK = 5.0  # seconds after which their content is compared, whatever their dates say

_PATIENCE = (1.0, 30.0)  # seconds between restarts of the journal's reader, first and longest
_LINE = 16 * 1024 * 1024  # bytes; a line of the journal holds a whole issue


class Manifest:
    """The store's manifests, and what they were when we last knew who had written."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._known: str | None = None
        self._dates: list[FileIdentity] = []
        self._foreign = False

    def _find(self) -> list[Path]:
        """Return the manifests; none where the database is not an embedded one."""
        return sorted(self._database.glob("*/.dolt/noms/manifest"))

    def _read(self) -> tuple[str, list[FileIdentity]]:
        """Give what the manifests hold; and their dates, which are read before, so that what comes between is seen."""
        digest, files = hashlib.sha256(), self._find()
        dates = [*map(identify_file, files)]
        for file in files:
            with suppress(OSError):  # bd replaces the file; one that is missing now is back at the next look
                digest.update(file.read_bytes())
        return digest.hexdigest(), dates

    async def before_write(self) -> None:
        """Note a change that cannot be ours, before ours covers it."""
        now, _ = await anyio.to_thread.run_sync(self._read)
        self._foreign = self._foreign or (self._known is not None and now != self._known)

    async def after_write(self) -> None:
        """Note how our write left the store."""
        self._known, self._dates = await anyio.to_thread.run_sync(self._read)

    def _stirs(self, files: list[Path]) -> bool:
        """Wait a while for dates other than those that are known, and say whether there are. It blocks, in a thread."""
        for _ in range(_LOOKS):
            time.sleep(_LOOK)  # noqa: TID251 - in a thread of its own; it decides nothing
            if [*map(identify_file, files)] != self._dates:
                return True
        return False

    async def changes(self, bd: Bd) -> AsyncGenerator[None]:
        """Yield after each change that our own writes don't explain. Ends at once where there is no manifest."""
        files = await anyio.to_thread.run_sync(self._find)
        if not files:
            return
        async with bd.lock:
            await self.after_write()
        due = anyio.current_time() + _RECHECK
        while True:
            stirred = await anyio.to_thread.run_sync(self._stirs, files, abandon_on_cancel=True)
            if not (stirred or self._foreign) and anyio.current_time() < due:
                continue
            due = anyio.current_time() + _RECHECK
            async with bd.lock:  # a write of ours that is under way is ours until it has ended
                before = self._known
                await self.after_write()
                changed, self._foreign = self._foreign or self._known != before, False
            if changed:
                yield


class EventFeed:
    """bd's events journal, followed by a process of its own."""

    def __init__(self, bd: Bd) -> None:
        self._bd = bd
        self._process: Process | None = None
        self._since = 0
        self._start = datetime.now(UTC)  # noqa: TID251  # compared with bd's own times; decides nothing

    async def changes(self) -> AsyncGenerator[None]:
        """Yield after each line that somebody else's write left, and after each restart of the reader."""
        wait = _PATIENCE[0]
        while True:
            # it is started again whatever went wrong; whoever looks at the tracker hears of the reason
            with suppress(TrackerError, OSError):
                # a journal that was pruned refuses an earlier number than it reaches back to
                finished = await self._bd.attempt("events", "tail", f"--since={self._since}", "--limit=1", "--json")
                for answer in (finished.stdout, *finished.stderr.split(b"\n")):
                    with suppress(ValidationError):
                        self._since = Truncated.model_validate_json(answer).head
                async with aclosing(self._lines()) as lines:
                    async for line in lines:
                        self._since, wait = max(self._since, line.seq), _PATIENCE[0]
                        if line.actor != self._bd.actor and line.ts >= self._start:
                            yield
            await anyio.sleep(wait)
            wait = min(wait * 2, _PATIENCE[1])
            yield

    async def _lines(self) -> AsyncGenerator[JournalLine]:
        argv = await self._bd.argv("events", "tail", f"--since={self._since}", "--follow")
        process = await anyio.open_process(  # noqa: TID251  # it goes on printing; programs.run waits for an end
            argv,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=DEVNULL,
            cwd=self._bd.project,
            env=self._bd.env,
            start_new_session=True,
        )
        self._bd.calls["events --follow"] += 1
        self._process = process
        try:
            assert process.stdout is not None
            stream = BufferedByteReceiveStream(process.stdout)
            with suppress(anyio.EndOfStream, anyio.IncompleteRead, anyio.DelimiterNotFound, anyio.ClosedResourceError):
                while True:
                    with suppress(ValidationError):  # a line of another shape tells us nothing
                        yield JournalLine.model_validate_json(await stream.receive_until(b"\n", _LINE))
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """End the reader with its process group."""
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with anyio.CancelScope(shield=True):
            await process.aclose()
