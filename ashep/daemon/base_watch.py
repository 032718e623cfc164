"""Watch of the base before any work: runs the checks of policies there, and tells the shepherd. It decides nothing.

It runs next to agents and keeps no prompt waiting. A policy is looked at once for each state of the base, however many
issues begin there.
"""

from contextlib import suppress
from functools import partial

import anyio

from ashep.core.delivery.bases import failing_on_base
from ashep.core.reconcile.observe import base_read, checked_policies
from ashep.core.state.world import World
from ashep.daemon.effects.work import WorkEffects
from ashep.daemon.shepherd import Shepherd
from ashep.errors import AshepError

AGAIN = 900.0
"""Seconds after which the base is looked at again of a policy that holds its issues for it."""


class BaseWatch:
    """A source of facts about the base."""

    def __init__(self, shepherd: Shepherd, work: WorkEffects) -> None:
        self._shepherd, self._work = shepherd, work
        self._seen: dict[str, tuple[object, ...]] = {}
        """What the base and the policy were when a policy was looked at."""

    async def run(self) -> None:
        """Watch for ever."""
        while True:
            world = self._shepherd.world
            for name in checked_policies(world):
                await self._look(name)
            holding = [name for name in checked_policies(world) if is_holding(self._shepherd.world, name)]
            with anyio.move_on_after(AGAIN if holding else None) as waiting:
                while inputs(self._shepherd.world) == inputs(world):
                    await self._shepherd.changed()
            for name in holding if waiting.cancelled_caught else ():
                await self._look(name, again=True)

    async def _look(self, name: str, *, again: bool = False) -> None:
        """Run the checks of a policy, unless both it and the base are as they were."""
        world, tip = self._shepherd.world, None
        with suppress(AshepError):  # the look itself says what is wrong
            tip = await self._work.base_tip(world)
        policy = world.policies.policies.get(name) if world.policies is not None else None
        state = (tip, policy.phases if policy is not None else (), world.settings.landing.base)
        if policy is None or (self._seen.get(name) == state and not again):
            return
        found = await self._work.check_base(name, world, again=again)
        self._seen[name] = state
        await self._shepherd.ask(partial(base_read, found=found))


def is_holding(world: World, name: str) -> bool:
    """Whether issues of a policy wait for its base."""
    policy = world.policies.policies.get(name) if world.policies is not None else None
    return policy is not None and policy.on_base_failure == "hold" and bool(failing_on_base(world, name))


def inputs(world: World) -> tuple[object, ...]:
    """Give that on which it depends what is to be looked at."""
    return world.ready, world.indexes.live, world.indexes.landings, world.policies, world.settings, world.tree
