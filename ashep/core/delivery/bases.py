"""The base before any work: what the checks of policies find there, and which issues that keeps waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ashep.core.delivery.trees import mode
from ashep.core.facts.delivery import BaseChecked, CheckResult
from ashep.core.policy.checks import Check, passes_without_work
from ashep.core.state.frozen import replace
from ashep.core.state.holds import Hold
from ashep.core.state.world import World, WorldFolds

if TYPE_CHECKING:
    from ashep.core.policy.policies import Policy

MOST_NAMED = 5
"""Checks that a hold names."""


def checks_of(policy: Policy) -> tuple[Check, ...]:
    """Select the checks of a policy that are to pass on its base, before any work."""
    return tuple(check for phase in policy.phases for check in phase.checks if passes_without_work(check))


def failing_on_base(world: World, name: str | None) -> tuple[CheckResult, ...]:
    """Select the checks of a policy that failed on the base when they were last run there."""
    policy = world.policies.policies.get(name) if world.policies is not None and name is not None else None
    found = world.bases.get(name) if name is not None else None
    if policy is None or found is None or not checks_of(policy):
        return ()
    return tuple(result for result in found.results if result.on_base)


def base_hold(world: World, name: str, policy: Policy) -> Hold | None:
    """Say why an issue waits for the base, where its policy wants that; None: it does not."""
    if policy.on_base_failure != "hold" or mode(world) != "worktree" or not checks_of(policy):
        return None
    found = world.bases.get(name)
    if found is None:
        run = world.daemon is not None and world.daemon.bases
        return Hold("base_unchecked", f"the checks of {name} are run on the base first", name) if run else None
    if not (failing := failing_on_base(world, name)):
        return None
    named = "; ".join(f"{result.check_id}: {result.message[:200]}, {result.blame}" for result in failing[:MOST_NAMED])
    more = f"; and {len(failing) - MOST_NAMED} more" if len(failing) > MOST_NAMED else ""
    where = f"{found.branch} ({found.commit[:12]})"
    return Hold("base_fails", f"the checks of {name} fail on {where}, before any work: {named}{more}", name)


def _checked(world: World, fact: BaseChecked) -> World:
    return replace(world, bases=world.bases.insert(fact.policy, fact))


FOLDS: WorldFolds = {BaseChecked: _checked}
