"""Source of facts about the machine's load: measures how late the event loop is, and asks for the kernel's figures.

It decides nothing: what counts as busy is `ashep.core.policy.load_limits`.
"""

from collections import deque
from collections.abc import Callable

import anyio
import anyio.to_thread

from ashep.core.reconcile.observe import machine_read
from ashep.daemon.shepherd import Shepherd
from ashep.ports.clock import Clock

EVERY = 5.0
"""Seconds between two measurements."""

SAMPLES = 12
"""Measurements of the loop that count: those of a minute."""


class MachineLoad:
    """Reports when the machine is behind, and when it no longer is."""

    def __init__(self, shepherd: Shepherd, clock: Clock, pressure: Callable[[], float | None]) -> None:
        """`pressure` returns the percent of a minute in which a process waited for a processor, or None. It blocks."""
        self._shepherd, self._clock, self._pressure = shepherd, clock, pressure
        self._lags = deque([0.0] * SAMPLES, SAMPLES)

    async def run(self) -> None:
        """Measure for ever."""
        while True:
            due = self._clock.monotonic() + EVERY
            await anyio.sleep(EVERY)
            self._lags.append(max(self._clock.monotonic() - due, 0.0))
            pressure = await anyio.to_thread.run_sync(self._pressure)
            lag = sum(self._lags) / SAMPLES
            if machine_read(self._shepherd.world, pressure, lag):
                self._shepherd.tell(lambda world, pressure=pressure, lag=lag: machine_read(world, pressure, lag))
