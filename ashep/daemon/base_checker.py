"""Watcher of the base: the checks of policies are run there, before any work, so that a night is not lost on them.

It runs next to agents. A policy is looked at once for each state of the base, and again while no issues begin there.
"""

from functools import partial

import anyio

from ashep.core.delivery.base_checks import base_hold, is_awaited
from ashep.core.reconcile.observe import base_read, checked_policies
from ashep.core.state.world import World
from ashep.daemon.effects.work import WorkEffects
from ashep.daemon.shepherd import Shepherd

AGAIN = 900.0
"""Seconds after which a policy is looked at again that holds its issues, or whose checks could not be run."""

LOOK = 60.0
"""Seconds after which a base that moved is noticed, whatever else happens."""


class BaseWatch:
    """Looks at the base for each policy whose issues are worked on."""

    def __init__(self, shepherd: Shepherd, work: WorkEffects) -> None:
        self._shepherd, self._work = shepherd, work
        self._looks: dict[str, tuple[str | None, float]] = {}
        """What the base was when a policy was looked at, and when that was."""

    async def run(self) -> None:
        """Watch for ever."""
        while True:
            world = self._shepherd.world
            for name in checked_policies(world):
                await self._look(name)
            await self._shepherd.wait_while(lambda now, world=world: inputs(now) == inputs(world), LOOK)

    async def _look(self, name: str) -> None:
        """Run the checks of a policy, unless both it and the base are as they were."""
        world, now = self._shepherd.world, anyio.current_time()
        policy, checked = world.policy_of(name), world.bases.get(name)
        tip = await self._work.base_tip(world)
        before, looked = self._looks.get(name, ("", now))
        holds = policy is not None and base_hold(world, name, policy) is not None
        again = (holds or checked is None or checked.commit != tip) and now - looked >= AGAIN
        if tip != before or again or is_awaited(world, name):
            self._looks[name] = tip, now
            checked = await self._work.check_base(name, world, tip, again=again)
            await self._shepherd.ask(partial(base_read, checked=checked))


def inputs(world: World) -> tuple[object, ...]:
    """Give that on which it depends what is to be looked at."""
    return world.ready, world.indexes.live, world.indexes.landings, world.policies, world.settings, world.tree
