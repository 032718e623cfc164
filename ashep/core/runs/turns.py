"""What a read of a session means: finished, died, never begun, too late, or a person's."""

from datetime import datetime, timedelta

from ashep.core.delivery.workspaces import speaks_for_itself
from ashep.core.facts import runs
from ashep.core.facts.issues import RetryScheduled
from ashep.core.facts.outcome import Ending, Outcome, read_outcome
from ashep.core.facts.vocabulary import Fact, ReadRefused
from ashep.core.issues.routing import after_run, park
from ashep.core.policy.base_types import format_duration
from ashep.core.policy.policies import Phase
from ashep.core.resources.budgets import after_turn
from ashep.core.resources.providers import ABORTED, after_read, ends_run, stopped
from ashep.core.runs.agent_selection import choose_beside, model_of
from ashep.core.runs.fold import DIAGNOSIS
from ashep.core.runs.requests import close_requests
from ashep.core.runs.takeover import in_session, turn_of_held
from ashep.core.state.flow import Flow
from ashep.core.state.pending_intents import infra_delay, is_exhausted, unfounded
from ashep.core.state.run import UNBEGUN, Run, Watch, due_after, sign_patience
from ashep.core.state.runner_state import NOT_SEEN
from ashep.core.state.world import IssueRules, World, phase_of

MAX_RESTARTS = 10
"""Turns of one run that are started again because the agent server died; one more parks the issue."""

EXTRACT = Phase(name="extract")
"""What an extraction asks of an agent: the capability `extract`, to read."""


def turn_seen(world: World, earlier: Flow, flow: Flow, fact: runs.TurnSeen) -> list[Fact]:
    """Judge a read: what it shows of its provider and of the run, and of what was used."""
    judged = [*after_read(world, flow, fact), *_of_run(world, earlier, flow, fact)]
    return judged if flow.counters.spent == earlier.counters.spent else judged + after_turn(world, flow, judged)


def turn_stopped(world: World, earlier: Flow, flow: Flow, fact: runs.TurnStopped) -> list[Fact]:
    """Judge what it had used by then."""
    return [] if flow.counters.spent == earlier.counters.spent else after_turn(world, flow, [])


def run_ended(world: World, earlier: Flow, flow: Flow, fact: runs.RunEnded) -> list[Fact]:
    """Wait for nobody any more, and go where the run leads."""
    return [*close_requests(flow, "its run is over"), *after_run(world, flow, fact)]


def _of_run(world: World, before: Flow, flow: Flow, fact: runs.TurnSeen) -> list[Fact]:
    """Judge a read; `before` is the flow before it was folded."""
    run = flow.run
    if run is None or before.run is None or unfounded(flow, run, fact):
        return []
    if flow.takeover is not None:
        return turn_of_held(world, flow, run, fact)
    if fact.state == "finished":
        return _finished(world, flow, run, fact)
    if fact.people and not speaks_for_itself(world, run):
        why = f"a person wrote in the session ({fact.people[0]})"
        return in_session(world, flow, run, why, running=True)
    if fact.not_started and fact.state in UNBEGUN:
        return _not_begun(world, flow, run, fact.not_started, world.now + infra_delay(flow.doubts))
    if run.watch.overdue and run.watch.fresh_after == 0 and fact.state not in UNBEGUN:
        late = runs.RunEnded(fact.issue, run.id, "timed_out", f"no outcome within {run.timeout}", abort=True)
        return [runs.DeadlineReached(fact.issue, run.id), overdue(flow, run) if is_diagnosis(run) else late]
    if fact.state == "running" and ends_run(world, fact):
        return [overdue(flow, run)] if is_diagnosis(run) else stopped(world, flow, run, fact)
    if fact.state == "running":
        if fact.life is None or not has_stalled(before.run.watch, run.watch, fact.life, world.now):
            return []
        return after_stall(world, flow, run, why_stalled(run.watch, fact.life))
    same = fact.state != "incomplete" or before.run.turn == "incomplete"
    suspicion = before.run.watch.probation if same and run.watch.fresh_after == 0 else "no"
    return _quiet(world, flow, run, fact, suspicion)


def read_refused(world: World, earlier: Flow, flow: Flow, fact: ReadRefused) -> list[Fact]:
    """Give up a run that is over its time, or was taken, although nobody can see how its turn stands."""
    run = flow.run
    if fact.what != "turn" or run is None or run.id != fact.run or run.ended or run.watch.fresh_after:
        return []
    if flow.takeover is not None:
        return [runs.RunEnded(fact.issue, run.id, "aborted", flow.why)]
    if not run.watch.overdue:
        return []
    why = f"no outcome within {run.timeout}, and the agent server shows nothing of it: {fact.why[:300]}"
    if fact.away:  # whatever became of the turn, no agent is to blame
        aborted = runs.RunEnded(fact.issue, run.id, "aborted", why, abort=True, counts=False)
        return [runs.DeadlineReached(fact.issue, run.id), aborted, *park(flow, "infrastructure", why)]
    return [runs.DeadlineReached(fact.issue, run.id), runs.RunEnded(fact.issue, run.id, "timed_out", why, abort=True)]


def _quiet(world: World, flow: Flow, run: Run, fact: runs.TurnSeen, suspicion: str) -> list[Fact]:
    issue = flow.issue.id
    given = run.prompt.instance  # unknown where a prompt was found delivered after a crash
    died = world.dies(run.session_runner) and bool(fact.instance) and bool(given) and fact.instance != given
    if died or (fact.state == "incomplete" and suspicion == "suspect"):
        gone = "its process has ended" if world.apart(run.session_runner) else "its server is gone"
        proof = gone if died else "incomplete and not busy for 30 s"
        if run.restarts >= MAX_RESTARTS:
            why = f"its turn died {run.restarts + 1} times, the last time: {proof}"
            return [runs.RunEnded(issue, run.id, "aborted", why), *park(flow, "infrastructure", why)]
        return [runs.TurnDied(issue, run.id, fact.n, f"the turn died: {proof}")]
    if fact.state in UNBEGUN and suspicion == "second_look":
        patience = format_duration(run.watch.sign_after)
        cause = f": {fact.error[:300]}" if fact.error else ""
        return _not_begun(world, flow, run, f"{patience} without a sign of a turn, and none after an abort{cause}")
    return []


def _not_begun(world: World, flow: Flow, run: Run, why: str, due: datetime | None = None) -> list[Fact]:
    """Send a prompt again that began no turn, under a new id: that is no failure of the agent's.

    It goes out at `due`; None: at once. It goes to the same session, where one turn runs at a time: a prompt that
    begins after all (facts/opencode.md 26) acts next to no other.
    """
    if is_exhausted(flow.doubts + 1, flow.doubts_began, world.now):
        return _end_doubted(world, flow, run, f"its prompt began no turn: {why}")
    return [runs.PromptAbandoned(flow.issue.id, run.id, run.prompt.n, why, sign_patience(flow.doubts + 1), due)]


def _end_doubted(world: World, flow: Flow, run: Run, why: str) -> list[Fact]:
    """End a run whose turn ashep stopped because it seemed not to begin, or never began; the phase is tried again.

    It uses up no attempt and no run of the cycle. The count of such ends in a row bounds it, as it does any failure of
    infrastructure.
    """
    issue, doubts = flow.issue.id, flow.doubts + 1
    may_begin = run.turn in UNBEGUN
    ended = runs.RunEnded(issue, run.id, "aborted", why, abort=may_begin, counts=False, doubt=True)
    if is_exhausted(doubts, flow.doubts_began, world.now):
        return [ended, *park(flow, "infrastructure", f"{doubts} prompts in a row came to no turn, the last: {why}")]
    if flow.phase is None:
        return [ended]
    due = world.now + infra_delay(flow.doubts)
    return [ended, RetryScheduled(issue, flow.phase, flow.failures, due, f"{why}; tried again")]


def _finished(world: World, flow: Flow, run: Run, fact: runs.TurnSeen) -> list[Fact]:
    # what they want is decided before what was reported, which is kept
    if fact.people and not speaks_for_itself(world, run):
        said = _read_report(world, flow, fact)
        why = f"a person wrote in the session ({fact.people[0]})"
        return in_session(world, flow, run, why, said if isinstance(said, runs.RunEnded) else None)
    if fact.error is not None:
        is_stopped = fact.error.startswith(ABORTED)
        by_ashep = run.watch.stopping or run.abort_unseen  # also where the call to stop it was answered late, or never
        by_server = run.prompt.instance not in ("", fact.instance)  # it ended, and stopped its turns
        if is_stopped and not by_ashep and not by_server and not speaks_for_itself(world, run):
            return in_session(world, flow, run, "somebody stopped the turn in OpenCode")
        if is_diagnosis(run):
            return diagnosed(flow, run, fact)
        if is_stopped and (by_ashep or by_server):
            who = "ashep, to which it seemed not to begin" if by_ashep else "the agent server, which ended"
            return _end_doubted(world, flow, run, f"its turn was stopped by {who}")
        if fact.refused is not None:
            return stopped(world, flow, run, fact)
        why = f"the turn ended with {fact.error[:500]}"
        return [runs.RunEnded(fact.issue, run.id, "failed", why, error=fact.error[:2000])]
    if is_diagnosis(run):
        return diagnosed(flow, run, fact)
    end = _read_report(world, flow, fact)
    if (goes_on := _going_on(world, flow, run, fact, end)) is not None:
        return [goes_on]
    return [end] if isinstance(end, runs.RunEnded) else _rejected(world, flow, run, end)


ENDINGS: dict[Ending | None, str] = {
    "cut": "the answer was cut off by a limit on its length",
    "empty": "the final message is empty",
    "announced": "the final message announces more work and reports nothing",
}
"""What the end of a turn is called where it looks like no end of its work."""


def _going_on(
    world: World, flow: Flow, run: Run, fact: runs.TurnSeen, end: runs.RunEnded | str
) -> runs.OutcomeRejected | None:
    """Ask the agent to go on in its session where the turn ended before its work; None: this was the end of it.

    That keeps what the agent knows, and costs less than another attempt: it is bounded by `retry.continue` for a run.
    """
    phase = phase_of(world, flow)
    if phase is None or run.prompt.kind == "extract" or run.continues >= phase.retry.continues:
        return None
    if isinstance(end, str):
        if fact.ending is None or run.prompt.kind == "recover":  # that asks for a report alone
            return None
        why = end
    else:
        outcome = end.outcome
        if outcome is None or outcome.result != "partial" or run.access != "write":
            return None
        if outcome.needs_human or outcome.next_action in ("need_human", "repeat_phase"):
            return None
        why = f"the work is reported as partial: {outcome.summary[:300]}"
    return runs.OutcomeRejected(flow.issue.id, run.id, run.prompt.n, why, "continue")


def _read_report(world: World, flow: Flow, fact: runs.TurnSeen) -> runs.RunEnded | str:
    """How a run ends with what was reported in its turn; a text says why that is no outcome of its phase."""
    phase = phase_of(world, flow)
    if fact.error is not None or (flow.run is not None and is_diagnosis(flow.run)):
        return "an error, or a diagnosis"
    outcome = read_outcome(fact.block, phase.verdicts if phase else ())
    if not isinstance(outcome, Outcome):
        ending = ENDINGS.get(fact.ending, outcome)
        return ending if fact.block is None else f"{ending}; {outcome}" if fact.ending else outcome
    state = "succeeded" if outcome.result == "success" and outcome.next_action != "repeat_phase" else "failed"
    return runs.RunEnded(fact.issue, fact.run, state, f"reported {outcome.verdict or outcome.result}", outcome)


def _rejected(world: World, flow: Flow, run: Run, why: str) -> list[Fact]:
    issue, phase = flow.issue.id, phase_of(world, flow)
    if run.prompt.kind in ("task", "resume", "continue"):
        return [runs.OutcomeRejected(issue, run.id, run.prompt.n, why, "recover")]
    extractor = choose_beside(world, EXTRACT)
    if run.prompt.kind == "recover" and extractor is not None and phase is not None:
        slug, model, on = extractor.runner.agent_slug, model_of(extractor, NOT_SEEN), extractor.runner.type
        return [runs.OutcomeRejected(issue, run.id, run.prompt.n, why, "extract", extractor.id, slug, model, on)]
    return [runs.RunEnded(issue, run.id, "failed", f"no_outcome: {why}", error="no_outcome")]


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
        return [_ended(flow, run, why)]
    agent = choose_beside(world, DEBUG, {run.agent: 1})
    if agent is None:
        return [_ended(flow, run, f"{why}; no agent with the capability debug can look into it now")]
    slug, model = agent.runner.agent_slug, model_of(agent, NOT_SEEN)
    return [runs.DiagnosisWanted(issue, run.id, run.prompt.n, why, agent.id, slug, model, agent.runner.type)]


def is_diagnosis(run: Run) -> bool:
    """Whether the run has stalled, and its present prompt asks another agent about it."""
    return run.prompt.kind == "diagnose"


def overdue(flow: Flow, run: Run) -> runs.RunEnded:
    """A diagnosis took too long."""
    return _ended(flow, run, f"{run.prompt.wrong}; its diagnosis took longer than {format_duration(DIAGNOSIS)}")


def diagnosed(flow: Flow, run: Run, fact: runs.TurnSeen) -> list[Fact]:
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
    return [runs.RunEnded(flow.issue.id, run.id, "stalled", why, diagnosis=outcome)]


def _ended(flow: Flow, run: Run, why: str) -> runs.RunEnded:
    return runs.RunEnded(flow.issue.id, run.id, "stalled", why, abort=True)


def has_stalled(before: Watch, watch: Watch, life: runs.Life | None, now: datetime) -> bool:
    """Whether a fresh read of a doubted turn shows that it has stalled; `before`: the watch before that read."""
    if not before.doubted or life is None or watch.fresh_after != 0:
        return False
    due = due_after(watch, life, now)
    return due is not None and due <= now


def why_stalled(watch: Watch, life: runs.Life) -> str:
    """Say it in a sentence."""
    quiet = _whole(life.quiet)
    if life.tool is not None:
        return f"the tool {life.tool} has run for {_whole(life.tool_for)} and shown nothing for {quiet}"
    return f"no sign of life for {quiet}, and {_whole(watch.stall_after or timedelta())} is the bound"


def _whole(span: timedelta) -> str:
    return format_duration(timedelta(seconds=round(span.total_seconds())))


RULES: IssueRules = {
    runs.TurnSeen: turn_seen, runs.TurnStopped: turn_stopped, runs.RunEnded: run_ended, ReadRefused: read_refused,
}  # fmt: skip
