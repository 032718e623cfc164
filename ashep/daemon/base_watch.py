"""Watch of the base before any work: runs the checks of policies there, and tells the shepherd. It decides nothing.

It runs next to agents and keeps no prompt waiting. A policy is looked at once for each state of the base, however many
issues begin there.
"""

from functools import partial

import anyio

from ashep.core.delivery.bases import base_hold
from ashep.core.facts.delivery import BaseChecked
from ashep.core.reconcile.observe import base_read, checked_policies
from ashep.core.state.world import World
from ashep.daemon.effects.work import WorkEffects
from ashep.daemon.shepherd import Shepherd

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
            world = self.world
            for name in checked_policies(world):
                await self._look(name)
            waits = [name for name in checked_policies(world) if name not in self._seen or is_holding(self.world, name)]
            with anyio.move_on_after(AGAIN if waits else None) as waiting:
                while inputs(self.world) == inputs(world):
                    await self._shepherd.changed()
            for name in waits if waiting.cancelled_caught else ():
                await self._look(name, again=True)

    @property
    def world(self) -> World:
        """What is known by now."""
        return self._shepherd.world

    async def _look(self, name: str, *, again: bool = False) -> None:
        """Run the checks of a policy, unless both it and the base are as they were."""
        world, tip = self.world, await self._work.base_tip(self.world)
        policy = world.policies.policies.get(name) if world.policies is not None else None
        state = (tip, policy.phases if policy is not None else ())
        if policy is None or (self._seen.get(name) == state and not again):
            return
        found = BaseChecked(name, "", "", error="there is no base: the checkout is on no branch with a commit")
        if tip is not None:
            found = await self._work.check_base(name, world, tip, again=again)
        if not found.error:
            self._seen[name] = state
        await self._shepherd.ask(partial(base_read, found=found))


def is_holding(world: World, name: str) -> bool:
    """Whether issues of a policy wait for its base."""
    policy = world.policies.policies.get(name) if world.policies is not None else None
    hold = base_hold(world, name, policy) if policy is not None else None
    return hold is not None and hold.code == "base_fails"


def inputs(world: World) -> tuple[object, ...]:
    """Give that on which it depends what is to be looked at."""
    return world.ready, world.indexes.live, world.indexes.landings, world.policies, world.settings, world.tree
