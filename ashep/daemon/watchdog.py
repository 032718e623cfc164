"""Watchdog feed: systemd is told that the daemon lives after a completed tick, and only then.

A tick is complete when the shepherd has taken a turn (its queue, the core and, where there was something to be written,
the journal went through) and the worker has looked at the tracker, or tried to, not too long ago. A loop that spins, a
disk that hangs and a task that died are all found out so.
"""

from collections.abc import Callable

import anyio

from ashep.core.policy.runner_kinds import OPENCODE, spoken
from ashep.core.state.world import World
from ashep.daemon.shepherd import Shepherd
from ashep.ports.clock import Clock

LONGEST = 30.0
"""Seconds between ticks, however patient the service manager is."""

STALE = 600.0
"""Seconds since the last look at the tracker, beyond its own longest gap, after which the worker counts as stuck."""

Tell = Callable[..., None]


class Watchdog:
    """Feeds a service manager's watchdog."""

    def __init__(self, shepherd: Shepherd, clock: Clock, looks: Callable[[], int], tell: Tell) -> None:
        """`looks`: how many looks the worker has ended. `tell`: sends lines."""
        self._shepherd, self._clock, self._looks, self._tell = shepherd, clock, looks, tell

    async def run(self, bound: float | None, gap: float) -> None:
        """Tick for ever. `bound`: seconds within which the manager wants a sign; `gap`: the longest between looks."""
        every = min(LONGEST, bound / 3) if bound is not None else LONGEST
        seen = (-1, 0.0)
        while True:
            await self._shepherd.ask(lambda _: ())  # a turn that begins after this; it leaves nothing in the journal
            now, looks = self._clock.monotonic(), self._looks()
            if looks != seen[0]:
                seen = (looks, now)
            if now - seen[1] <= gap + STALE:  # the worker goes on
                self._tell("WATCHDOG=1", f"STATUS={standing(self._shepherd.world)}")
            await anyio.sleep(every)


def standing(world: World) -> str:
    """Say in a line what is under way; it costs the same however many issues there are."""
    runs, issues = len(list(world.indexes.live)), len(world.indexes.unclosed)
    names = world.runners or (OPENCODE,)
    states = {name: seen.state if (seen := world.seen.get(name)) else "not seen yet" for name in names}
    away = "".join(f"; {spoken(name)} is {state}" for name, state in states.items() if state != "up")
    tracker = "; the tracker does not answer" if world.tracker_error else ""
    paused = "; paused" if any(not pause.lifted and pause.provider is None for pause in world.pauses) else ""
    return f"{runs} run{'' if runs == 1 else 's'} under way, {issues} issues known{paused}{away}{tracker}"
