"""A stalled turn is looked into: an agent with the capability `debug` reads its end, and says how to go on.

It reads in a session of its own, which may change nothing, once for a run, within a bound of its own; it is a part of
the stalled run, as an extraction is. Where it comes to nothing, the phase is tried again as `stall.action: retry` does.
"""

from ashep.core.facts.outcome import Outcome, read_outcome
from ashep.core.facts.vocabulary import DiagnosisWanted, Fact, RunEnded, TurnSeen
from ashep.core.issues.adopting import phase_of
from ashep.core.policy.language import format_duration
from ashep.core.policy.settings import Phase
from ashep.core.runs.choice import model_of
from ashep.core.runs.choosing import choose_beside
from ashep.core.runs.folding import DIAGNOSIS
from ashep.core.state.flow import Flow, Run
from ashep.core.state.world import World

DEBUG = Phase(name="debug", access="read")
"""What a diagnosis asks of an agent: the capability `debug`, to read."""

RETRY, CHANGE_AGENT, ASK_PERSON = "retry", "change_agent", "ask_person"
VERDICTS = (RETRY, CHANGE_AGENT, ASK_PERSON)
"""What a diagnosis says: try again, let another agent try, or ask a person."""


def after_stall(world: World, flow: Flow, run: Run, why: str) -> list[Fact]:
    """Say what follows when a turn has stalled: its run ends, or is looked into first."""
    issue, phase = flow.issue.id, phase_of(world, flow)
    if is_diagnosis(run):
        return [_ended(flow, run, f"{run.prompt.wrong}; its diagnosis stalled, too")]
    if phase is None or phase.stall.action != "diagnose":
        return [RunEnded(issue, run.id, "stalled", why, abort=True)]
    agent = choose_beside(world, DEBUG, {run.agent: 1})
    if agent is None:
        why = f"{why}; no agent with the capability debug can look into it now"
        return [RunEnded(issue, run.id, "stalled", why, abort=True)]
    slug, model = agent.runner.agent_slug, model_of(agent, None)
    return [DiagnosisWanted(issue, run.id, run.prompt.n, why, agent.id, slug, model)]


def is_diagnosis(run: Run) -> bool:
    """Whether the run has stalled, and its present prompt asks another agent about it."""
    return run.prompt.kind == "diagnose"


def overdue(flow: Flow, run: Run) -> RunEnded:
    """A diagnosis took too long."""
    return _ended(flow, run, f"{run.prompt.wrong}; its diagnosis took longer than {format_duration(DIAGNOSIS)}")


def diagnosed(flow: Flow, run: Run, fact: TurnSeen) -> list[Fact]:
    """Read what the diagnosis says; where it says nothing that counts, the stall is one like any other."""
    stalled = run.prompt.wrong
    if fact.error is not None:
        return [_ended(flow, run, f"{stalled}; its diagnosis ended with {fact.error[:200]}")]
    outcome = read_outcome(fact.block, VERDICTS)
    if not isinstance(outcome, Outcome):
        return [_ended(flow, run, f"{stalled}; its diagnosis said nothing valid: {outcome}")]
    if outcome.verdict is None:
        return [_ended(flow, run, f"{stalled}; its diagnosis came to nothing: {outcome.summary[:300]}")]
    verdict = ASK_PERSON if outcome.needs_human or outcome.next_action == "need_human" else outcome.verdict
    outcome = outcome.model_copy(update={"verdict": verdict})
    why = f"{stalled}; {run.prompt.by} says {verdict}: {outcome.summary[:300]}"
    return [RunEnded(flow.issue.id, run.id, "stalled", why, diagnosis=outcome)]


def _ended(flow: Flow, run: Run, why: str) -> RunEnded:
    return RunEnded(flow.issue.id, run.id, "stalled", why, abort=True)
