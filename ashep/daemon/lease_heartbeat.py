"""Heartbeat of leases: renews those of the issues that we work on, one at a time, and tells when one is lost.

It decides nothing and journals nothing but a loss: the tracker's leases are node-local and ephemeral.
"""

import anyio

from ashep.core.reconcile.observe import lease_lost
from ashep.daemon.leases import EVERY, Leases
from ashep.daemon.shepherd import Shepherd
from ashep.errors import ClaimLost, TrackerError

AGAIN = 15.0
"""Seconds until a heartbeat that got no answer is tried again."""

SHORTEST = 0.001
"""Seconds; a wait that is shorter than what the clock can tell would end at once, again and again."""


class Heartbeat:
    """A source of facts about our leases."""

    def __init__(self, shepherd: Shepherd, leases: Leases) -> None:
        self._shepherd, self._leases = shepherd, leases

    async def run(self) -> None:
        """Beat for ever."""
        while True:
            held = self._list_leased()
            self._leases.keep_only(held)
            due = sorted(held, key=lambda issue: (-self._leases.age(issue), issue))
            if not due:
                await self._shepherd.until(lambda _: bool(self._list_leased()))
                continue
            left = EVERY - self._leases.age(due[0])
            if left > 0:
                await self._shepherd.wait_while(lambda _, held=held: self._list_leased() == held, max(left, SHORTEST))
                continue
            await self._beat(due[0])

    def _list_leased(self) -> frozenset[str]:
        return frozenset(self._shepherd.world.indexes.leased)

    async def _beat(self, issue: str) -> None:
        as_of = self._shepherd.world.seq
        try:
            await self._leases.renew(issue)
        except ClaimLost as error:
            why = str(error)[:300]
            await self._shepherd.ask(lambda world: lease_lost(world, issue, why, as_of))
        except TrackerError:
            await anyio.sleep(AGAIN)  # the looks tell that the tracker is away
