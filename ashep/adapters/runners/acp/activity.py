"""Signs of life of sessions, by what grows in their folders: only what was watched counts as quiet."""

import os
from collections.abc import AsyncIterator
from contextlib import nullcontext, suppress
from datetime import timedelta
from pathlib import Path

import anyio
import anyio.to_thread

from ashep.adapters.runners.acp.mailbox import MARK, Mailbox, keeper_lives
from ashep.adapters.system import process_table
from ashep.adapters.system.filesystems import identify_file
from ashep.core.facts.runs import Life
from ashep.journal import durable_io
from ashep.ports.runner import Sign

_LOOK = 0.15  # seconds between looks
_SPACING = 1.0  # seconds between two signs of a session that goes on
_TAIL = 64 * 1024
_BUSY = 0.2  # of a processor: what a tool's processes use while they work
_INSIDE = 3  # processes of a sandbox that are no tool's: two put it up, the third is the agent

_Seen = tuple[object, object]


class ActivityMonitor:
    """What was seen of which session, and since when: on the clock that only grows."""

    def __init__(self, folder: Path) -> None:
        self._alive, self._sessions = folder / "alive", folder / "sessions"
        self._since: float | None = None
        self._signs = dict[str, float]()
        self._seen = dict[str, _Seen]()
        self._tools = dict[str, dict[str, float]]()
        self._used = dict[str, tuple[float, int]]()

    def watch_session(self, session: str) -> None:
        """A keeper of a session was started: it is watched until that is dead. Blocks."""
        durable_io.make_folder(self._alive)
        (self._alive / session).touch()

    def alive(self) -> list[str]:
        """Sessions that have a keeper, or had one a moment ago. Blocks."""
        with suppress(OSError):
            return sorted(os.listdir(self._alive))
        return []

    async def listen(self) -> AsyncIterator[Sign]:
        """Signs for ever; the first says that it is watched from now on."""
        self._seen = await anyio.to_thread.run_sync(self._look)
        self._signs, self._since = dict[str, float](), anyio.current_time()
        last = dict[str, float]()
        try:
            yield Sign(None)
            while True:
                await anyio.sleep(_LOOK)
                states, now = await anyio.to_thread.run_sync(self._look), anyio.current_time()
                for session in states.keys() | self._seen.keys():
                    old, new = self._seen.get(session, (None, None)), states.get(session, (None, None))
                    if old == new:
                        continue
                    self._signs[session] = now
                    urgent = old[1] != new[1]
                    if urgent or now - last.get(session, -_SPACING) >= _SPACING:
                        last[session] = now
                        yield Sign(session, urgent)
                self._seen = states
        finally:
            self._since = None

    def _look(self) -> dict[str, _Seen]:
        states = dict[str, _Seen]()
        for session in self.alive():
            mailbox = Mailbox(self._sessions / session)
            if keeper_lives(mailbox.keeper()):
                record, *asks = map(identify_file, (mailbox.path / "record.jsonl", mailbox.turns, mailbox.questions))
                states[session] = record, asks
                continue
            # another keeper may be started in this moment
            with mailbox.door() if mailbox.path.is_dir() else nullcontext():
                if not keeper_lives(mailbox.keeper()):
                    (self._alive / session).unlink(missing_ok=True)
        return states

    def life(self, session: str, mailbox: Mailbox, now: float) -> Life:
        """How alive a session is. Blocks."""
        tools = dict[str, str]()
        for entry in mailbox.tail(_TAIL):
            if entry.get("k") == "tool":
                ident = str(entry.get("id"))
                tools.pop(ident, None)
                if entry.get("status") not in ("completed", "failed"):
                    tools[ident] = str(entry.get("name"))
            elif entry.get("k") in ("end", "user"):
                tools.clear()
        earlier = self._tools.get(session, {})
        self._tools[session] = {ident: earlier.get(ident, now) for ident in tools}
        if tools and self._works(session, mailbox, now):
            self._signs[session] = now
        quiet = 0.0 if self._since is None else now - max(self._since, self._signs.get(session, 0.0))
        newest = next(reversed(tools), "")
        tool_for = timedelta(seconds=now - self._tools[session].get(newest, now))
        return Life(timedelta(seconds=quiet), tools.get(newest), tool_for)

    def _works(self, session: str, mailbox: Mailbox, now: float) -> bool:
        """Whether what the agent has started used the processor since the last look; the agent itself always does."""
        holders = process_table.holders_of(process_table.ProcessMark(MARK, str(mailbox.path)))
        first = 1 if mailbox.things() is None else _INSIDE
        used = 0
        for pid, _ in holders[first:]:
            with suppress(OSError, ValueError, IndexError):
                used += sum(map(int, process_table.read_stat(pid)[11:13]))
        before = self._used.get(session)
        self._used[session] = now, used
        ticks = os.sysconf("SC_CLK_TCK")
        return before is not None and used - before[1] > _BUSY * ticks * max(now - before[0], 0.1)
