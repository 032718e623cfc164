"""What an edit of the policies means for issues that are under way.

A run goes on to its end under the phase with which it began; what follows its end is decided by the policies that are
in force then. An issue whose phase is gone waits for a person, who is told so.
"""

from ashep.core.facts.vocabulary import Fact
from ashep.core.issues.routing import gone, park
from ashep.core.policy.settings import Phase
from ashep.core.state.flow import Flow
from ashep.core.state.world import World


def phase_of(world: World, flow: Flow) -> Phase | None:
    """Give the phase of the flow's run, as it was when the run began."""
    run, policy = flow.run, world.policy(flow)
    if run is None:
        return None
    return run.began or (policy.phase(run.phase) if policy else None)


def after_policies(world: World) -> list[Fact]:
    """Park what asks a person for a phase that is gone: no answer would lead on. `dispatch` sees to the rest."""
    facts: list[Fact] = []
    for issue in sorted(world.unclosed):
        flow = world.flows[issue]
        policy, question = world.policy(flow), flow.question
        if flow.stage == "person" and question and (policy is None or policy.phase(question.phase) is None):
            facts += park(flow, "unknown_phase", gone(world, flow, question.phase))
    return facts
