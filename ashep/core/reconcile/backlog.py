"""A backlog that is there before ashep has worked on anything: how much of it is worked on is decided once."""

from ashep.core.facts.resources import BacklogHeld
from ashep.core.facts.tracker import ReadyChanged, ReadySeen
from ashep.core.facts.vocabulary import Fact
from ashep.core.reconcile.dispatch import rank
from ashep.core.reconcile.eligibility import eligible
from ashep.core.state.world import World, WorldRules

MOST = 10
"""Issues that are worked on without anybody having been asked."""


def after_ready(earlier: World, world: World, fact: ReadySeen | ReadyChanged) -> list[Fact]:
    """Hold what is ready behind the first ten, or all of it, where nobody has said that all is to be worked on."""
    choice = world.daemon.backlog if world.daemon is not None else ""
    if not choice or world.backlog.settled or world.policies is None or len(world.ready) <= MOST:
        return []
    if any(flow.issue.stamp is not None for flow in world.flows.values()):
        return []  # something was worked on, by this journal or another one
    flows = [flow for issue in world.ready if (flow := world.flows.get(issue)) is not None]
    waiting = sorted((flow for flow in flows if eligible(world, flow)[0] is None), key=rank)
    if len(waiting) <= MOST:
        return []
    first = () if choice == "none" else (flow.issue.id for flow in waiting[:MOST])
    issues = tuple(sorted({*world.ready}.difference(first)))  # of those that nobody has read yet, too
    reason = (
        f"{len(waiting)} issues are ready, and none was worked on before: {len(issues)} of them wait. "
        "`ashep work --all` lets them go, `ashep work ISSUE` one"
    )
    return [BacklogHeld(issues, reason)]


RULES: WorldRules = {ReadySeen: after_ready, ReadyChanged: after_ready}
