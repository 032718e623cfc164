"""Auditor of the account: checks it while the daemon runs, and tells what it found. It decides nothing.

At the start after the first complete look, then every hour, and at the end. It causes reads only where something was
found: then it waits for another look, and asks the agent server for sessions again; only what is found twice counts.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime

import anyio
import anyio.lowlevel

from ashep.core.analysis.audit import OF_OTHERS, in_sessions, lasting, of_issue, of_look, of_sessions, of_world
from ashep.core.facts import commands, records, resources
from ashep.core.state.world import World
from ashep.daemon.shepherd import Shepherd
from ashep.daemon.tracker_poller import CompleteLook
from ashep.errors import RunnerError
from ashep.ports.clock import Clock
from ashep.ports.runner_router import RunnerRouter

EVERY = 3600.0
"""Seconds between audits."""

AGAIN = 5.0
"""Seconds after which what was found is looked for once more."""

LISTED = 50
"""Findings that a fact holds."""

SLICE = 100
"""Issues that are checked before other tasks get their turn."""


class Auditor:
    """A source of facts about the account as a whole."""

    def __init__(
        self, shepherd: Shepherd, runners: RunnerRouter, clock: Clock, look: Callable[[bool], Awaitable[CompleteLook]]
    ) -> None:
        """`look` gives the next look, and makes one at once where it is told to."""
        self._shepherd, self._runners, self._clock, self._next = shepherd, runners, clock, look
        self._asked: dict[str, datetime] = {}

    def note(self, entries: Sequence[records.Entry], world: World) -> None:
        """Remember since when effects are under way; a picture, for the shepherd."""
        for entry in entries:
            if isinstance(entry.body, commands.Command):
                self._asked[entry.body.key] = entry.at
            if isinstance(entry.body, resources.DaemonStarted):  # what was open then is probed now
                self._asked |= {one.key: entry.at for issue in world.indexes.busy for one in world.flows[issue].open}

    async def run(self) -> None:
        """Audit for ever."""
        at_once = False  # the first look comes by itself
        while True:
            found = await self.check(await self._next(at_once))
            if found:
                await anyio.sleep(AGAIN)
                found = lasting(found, await self.check(await self._next(True)))
            self._tell(found)
            await anyio.sleep(EVERY)
            at_once = True

    async def last(self) -> None:
        """Audit at the end of a daemon: the World alone. What the tracker and the server showed before still stands."""
        found = await self._alone()
        self._tell((*found, *(finding for finding in self._shepherd.world.findings if finding.code in OF_OTHERS)))

    async def check(self, look: CompleteLook) -> tuple[resources.Finding, ...]:
        """Give all that one look shows; some of it may only be under way."""
        found = [*await self._alone()]
        world, gone = self._shepherd.world, set[str]()
        found += of_look(world, look.issues, look.as_of, taken_in=True)
        for _, _, session in in_sessions(world):
            with suppress(RunnerError):  # its runner is away, which the monitor tells: nobody can say what that holds
                if not await self._runners.has_session(session):
                    gone.add(session)
        return (*found, *of_sessions(world, gone))

    async def _alone(self) -> tuple[resources.Finding, ...]:
        world, now = self._shepherd.world, self._clock.now()
        found = [*of_world(world)]
        for number, flow in enumerate(world.flows.values()):
            found += of_issue(world, flow, now, self._asked, living=True)
            if number % SLICE == SLICE - 1:
                await anyio.lowlevel.checkpoint()  # the World is a value: it does not change meanwhile
        under_way = {command.key for flow in world.flows.values() for command in flow.open}
        self._asked = {key: at for key, at in self._asked.items() if key in under_way}
        return tuple(found)

    def _tell(self, found: Sequence[resources.Finding]) -> None:
        fact = resources.AccountAudited(tuple(found[:LISTED]), len(found[LISTED:]))
        self._shepherd.tell(lambda world: [] if world.findings == fact.findings else [fact])
