"""What a read of a session means: finished, died, never begun, too late, or a person's (design section 6)."""

from ashep.core.facts.outcome import Outcome, read_outcome
from ashep.core.facts.vocabulary import (
    DeadlineReached,
    Fact,
    OutcomeRejected,
    PromptAbandoned,
    ReadRefused,
    RunEnded,
    TurnDied,
    TurnSeen,
)
from ashep.core.issues.adopting import phase_of
from ashep.core.policy.settings import Phase
from ashep.core.resources.providers import ABORTED, ends_run, stopped
from ashep.core.runs.choice import model_of
from ashep.core.runs.choosing import choose_beside
from ashep.core.runs.diagnosing import after_stall, diagnosed, is_diagnosis, overdue
from ashep.core.runs.folding import unfounded
from ashep.core.runs.stalls import has_stalled, why_stalled
from ashep.core.runs.takeover import in_session, turn_of_held
from ashep.core.state.flow import Flow, Probation, Run
from ashep.core.state.world import World

MAX_RESTARTS = 10
"""Turns of one run that are started again because the agent server died."""

MAX_ABANDONED = 1
"""Prompts of one run that are sent again under new ids; one more and the attempt has failed (facts/opencode.md 16)."""

EXTRACT = Phase(name="extract")
"""What an extraction asks of an agent: the capability `extract`, to read."""


def turn_seen(world: World, before: Flow, flow: Flow, fact: TurnSeen) -> list[Fact]:
    """Judge a read; `before` is the flow before it was folded."""
    run = flow.run
    if run is None or before.run is None or unfounded(flow, run, fact):
        return []
    if flow.held is not None:
        return turn_of_held(flow, run, fact)
    if fact.state == "finished":
        return _finished(world, flow, run, fact, before.run.probation)
    if fact.people:
        return in_session(world, flow, run, f"a person wrote in the session ({fact.people[0]})")
    if run.overdue and run.fresh_after == 0:
        why = f"no outcome within {run.timeout}"
        issue = flow.issue.id
        late = RunEnded(issue, run.id, "timed_out", why, abort=True)
        return [DeadlineReached(issue, run.id), overdue(flow, run) if is_diagnosis(run) else late]
    if fact.state == "running" and ends_run(fact):
        return [overdue(flow, run)] if is_diagnosis(run) else stopped(world, flow, run, fact)
    if fact.state == "running":
        return _stalled(world, flow, before.run, run, fact)
    same = fact.state != "incomplete" or before.run.turn == "incomplete"
    suspicion = before.run.probation if same and run.fresh_after == 0 else "no"
    return _quiet(world, flow, run, fact, suspicion)


def read_refused(flow: Flow, fact: ReadRefused) -> list[Fact]:
    """Give up a run that is over its time, or was taken, although nobody can see how its turn stands."""
    run = flow.run
    if fact.what != "turn" or run is None or run.id != fact.run or run.ended or run.fresh_after:
        return []
    if flow.held is not None:
        return [RunEnded(fact.issue, run.id, "aborted", flow.why)]
    if not run.overdue:
        return []
    why = f"no outcome within {run.timeout}, and the agent server shows nothing of it: {fact.why[:300]}"
    return [DeadlineReached(fact.issue, run.id), RunEnded(fact.issue, run.id, "timed_out", why, abort=True)]


def _stalled(world: World, flow: Flow, before: Run, run: Run, fact: TurnSeen) -> list[Fact]:
    if fact.life is None or not has_stalled(before, run, fact.life, world.now):
        return []
    return after_stall(world, flow, run, why_stalled(run, fact.life))


def _quiet(world: World, flow: Flow, run: Run, fact: TurnSeen, suspicion: str) -> list[Fact]:
    issue = flow.issue.id
    given = run.prompt.instance  # unknown where a prompt was found delivered after a crash
    died = world.managed and bool(fact.instance) and bool(given) and fact.instance != given
    if died or (fact.state == "incomplete" and suspicion == "suspect"):
        if run.restarts >= MAX_RESTARTS:
            return [RunEnded(issue, run.id, "failed", f"the agent server died {run.restarts} times during the run")]
        proof = "its server is gone" if died else "incomplete and not busy for 30 s"
        return [TurnDied(issue, run.id, fact.n, f"the turn died: {proof}")]
    if fact.state in ("missing", "stored") and suspicion == "second_look":
        if run.prompt.tries >= MAX_ABANDONED:
            why = "the server took the prompt and began no turn"
            return [RunEnded(issue, run.id, "failed", why, error="no_turn")]
        return [PromptAbandoned(issue, run.id, fact.n, "30 s without a sign of a turn, and none after an abort")]
    return []


def _finished(world: World, flow: Flow, run: Run, fact: TurnSeen, probation: Probation) -> list[Fact]:
    issue = flow.issue.id
    if fact.people:  # what they want is decided before what was reported, which is kept
        said = _said(world, flow, fact)
        why = f"a person wrote in the session ({fact.people[0]})"
        return in_session(world, flow, run, why, said if isinstance(said, RunEnded) else None)
    if fact.error is not None:
        ours = probation in ("stop", "second_look")  # we stopped it, because it seemed not to begin
        if fact.error.startswith(ABORTED) and run.prompt.instance in ("", fact.instance) and not ours:
            return in_session(world, flow, run, "somebody stopped the turn in OpenCode")
        if is_diagnosis(run):
            return diagnosed(flow, run, fact)
        if fact.refused is not None:
            return stopped(world, flow, run, fact)
        return [RunEnded(issue, run.id, "failed", f"the turn ended with {fact.error[:500]}", error=fact.error[:2000])]
    if is_diagnosis(run):
        return diagnosed(flow, run, fact)
    said = _said(world, flow, fact)
    return [said] if isinstance(said, RunEnded) else _rejected(world, flow, run, said)


def _said(world: World, flow: Flow, fact: TurnSeen) -> RunEnded | str:
    """How a run ends with what was reported in its turn; a text says why that is no outcome of its phase."""
    phase = phase_of(world, flow)
    if fact.error is not None or (flow.run is not None and is_diagnosis(flow.run)):
        return "an error, or a diagnosis"
    outcome = read_outcome(fact.block, phase.verdicts if phase else ())
    if not isinstance(outcome, Outcome):
        return outcome
    state = "succeeded" if outcome.result == "success" and outcome.next_action != "repeat_phase" else "failed"
    return RunEnded(fact.issue, fact.run, state, f"reported {outcome.verdict or outcome.result}", outcome)


def _rejected(world: World, flow: Flow, run: Run, why: str) -> list[Fact]:
    issue, phase = flow.issue.id, phase_of(world, flow)
    if run.prompt.kind in ("task", "resume"):
        return [OutcomeRejected(issue, run.id, run.prompt.n, why, "recover")]
    extractor = choose_beside(world, EXTRACT)
    if run.prompt.kind == "recover" and extractor is not None and phase is not None:
        slug, model = extractor.runner.agent_slug, model_of(extractor, None)
        return [OutcomeRejected(issue, run.id, run.prompt.n, why, "extract", extractor.id, slug, model)]
    return [RunEnded(issue, run.id, "failed", f"no_outcome: {why}", error="no_outcome")]
