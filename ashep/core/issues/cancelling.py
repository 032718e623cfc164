"""A person cancels what is done for an issue: its run is stopped, and it parks; `ashep retry` starts it afresh."""

from ashep.core.facts.vocabulary import Fact, IssueCancelled
from ashep.core.issues.routing import abort, park
from ashep.core.state.flow import Flow
from ashep.core.state.world import World


def cancellation(world: World, target: str, by: str) -> tuple[IssueCancelled | None, str]:
    """Give the fact that an issue, or the run of one, is cancelled; None and a sentence: why it cannot be."""
    issue = target if target in world.flows else target.rpartition("/")[0]
    flow = world.flows.get(issue)
    if flow is None:
        return None, f"there is no issue and no run {target}"
    run = None if target == issue else target
    if run is not None and (flow.run is None or flow.run.id != run or flow.run.ended):
        return None, f"{run} is not under way"
    if not _cancellable(flow):
        return None, f"{issue} is {flow.stage.replace('_', ' ')}: there is nothing to cancel"
    return IssueCancelled(issue, by, run), ""


def cancelled(flow: Flow, fact: IssueCancelled) -> list[Fact]:
    """Stop the run and park the issue."""
    run, why = flow.run, f"cancelled by {fact.by}"
    if not _cancellable(flow) or (fact.run is not None and (run is None or run.id != fact.run or run.ended)):
        return []
    return [*abort(flow, why), *park(flow, "cancelled", why)]


def _cancellable(flow: Flow) -> bool:
    return flow.stage in ("work", "person")
