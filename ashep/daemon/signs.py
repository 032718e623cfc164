"""How alive the runs under way are, for people who watch: asked of the agent server while somebody looks; not kept."""

from typing import Any

import anyio

from ashep.core.analysis.audit import in_sessions
from ashep.daemon.shepherd import Shepherd
from ashep.errors import RunnerError
from ashep.ports.tracker import Clock, Runner

FRESH = 1.0
"""Seconds for which what was read is told again: several may watch."""

BOUND = 5.0
"""Seconds that reading may take; what is not known by then is not told."""

Signs = dict[str, dict[str, Any]]
"""By run: `quiet` seconds without a sign, `tool` at work for `tool_for` seconds, the provider's wait `retry_in`."""


class LiveSigns:
    """Reads signs of life."""

    def __init__(self, shepherd: Shepherd, runner: Runner, clock: Clock) -> None:
        self._shepherd, self._runner, self._clock = shepherd, runner, clock
        self._known: Signs = {}
        self._read_at: float | None = None
        self._reading = anyio.Lock()

    async def read(self) -> Signs:
        """Give the signs of every run whose server answers."""
        async with self._reading:
            if self._read_at is None or self._clock.monotonic() - self._read_at >= FRESH:
                self._known = await self._anew()
                self._read_at = self._clock.monotonic()
            return self._known

    async def _anew(self) -> Signs:
        world, found = self._shepherd.world, Signs()
        if world.runner is None or world.runner.state != "up":
            return found
        with anyio.move_on_after(BOUND):
            for _, run, session in in_sessions(world):
                try:
                    life = await self._runner.life(session)
                except RunnerError:
                    break
                found[run.id] = {
                    "quiet": life.quiet.total_seconds(),
                    "tool": life.tool,
                    "tool_for": life.tool_for.total_seconds(),
                    "retry_in": None if life.retry_in is None else life.retry_in.total_seconds(),
                }
        return found
