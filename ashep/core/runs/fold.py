"""A run, folded: how it is planned, prompted, seen and ended."""

import dataclasses
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import wraps
from typing import Any, get_args

from ashep.core.facts import runs as run_facts
from ashep.core.facts.resources import BudgetReached, BudgetWarned, WriteDelayed
from ashep.core.state.delivery import OwnTree
from ashep.core.state.flow import Flow, Folds, Posture, ended_with, with_work
from ashep.core.state.immutable import replace
from ashep.core.state.pending_intents import MAX_REPORTS, unfounded
from ashep.core.state.run import (
    MOST_STOPS,
    NO_SIGN,
    Report,
    Run,
    Sent,
    Watch,
    due_after,
    growth,
    provider_of,
    sign_patience,
    used,
    with_watch,
)
from ashep.core.state.runner_state import Seen
from ashep.core.state.spending import Spending, add, marked

DIAGNOSIS = timedelta(minutes=5)
"""How long the diagnosis of a stalled turn may take."""

LONGEST_START = timedelta(hours=1)
"""How long a process may start that is to answer a prompt, whatever its runner says of it."""

Fold = Callable[[Flow, Run, Any, int, datetime], Flow]


def of_run(fold: Fold) -> Callable[[Flow, Any, int, datetime], Flow]:
    """Fold what is about the run that an issue has now; what is told of an earlier one changes nothing."""

    @wraps(fold)
    def folded(flow: Flow, fact: Any, seq: int, time: datetime) -> Flow:
        run = flow.run
        return flow if run is None or run.id != fact.run else fold(flow, run, fact, seq, time)

    return folded


def _withdrawn(flow: Flow, run: Run, fact: run_facts.RunWithdrawn, seq: int, time: datetime) -> Flow:
    run = replace(run, state="aborted", tree_wanted="no")
    sessions = tuple(session for session in flow.sessions if session[1] != fact.leave)
    counters = replace(flow.counters, cycle_runs=flow.counters.cycle_runs - 1)
    flow = replace(flow, run=run, wanted=True, counters=counters, sessions=sessions)
    return replace(flow, code=fact.code, why=fact.why, since=time)


def _opened(flow: Flow, run: Run, fact: run_facts.SessionOpened, seq: int, time: datetime) -> Flow:
    extract = "open" if run.extract == "wanted" else run.extract
    unseen = run.abort_unseen and fact.session == run.session
    run = replace(run, session=fact.session, extract=extract, abort_unseen=unseen)
    if run.prompt.kind == "resume" and not fact.reused:  # the session that a person had is gone
        run, flow = replace(run, prompt=replace(run.prompt, kind="task")), replace(flow, resume=None)
    flow = replace(flow, run=run)
    if extract == "open":
        return flow
    sessions = dict(flow.sessions) | {run.phase: fact.session}
    own = dict(flow.sandboxes) | ({fact.session: run.sandbox} if run.sandbox is not None else {})
    sandboxes = tuple(sandbox for sandbox in own.items() if sandbox[0] in sessions.values())
    return replace(flow, sessions=tuple(sessions.items()), sandboxes=sandboxes)


def _prepared(flow: Flow, run: Run, fact: run_facts.PromptPrepared, seq: int, time: datetime) -> Flow:
    run = replace(run, prompt=replace(run.prompt, blob=fact.blob, before=fact.before, stamp=time))
    return replace(flow, run=run, shown=flow.shown | set(fact.comments))


def _turn_stopped(flow: Flow, run: Run, fact: run_facts.TurnStopped, seq: int, time: datetime) -> Flow:
    watch = run.watch
    if watch.probation == "stop":
        watch = replace(watch, probation="second_look", fresh_after=seq)
    flow, run = _counted(flow, run, fact)
    run = replace(run, stop=False, stop_due=None, watch=watch, effect_seq=seq)
    if run.ended and run.stops < MOST_STOPS and _may_begin(flow, run, fact):
        run = replace(run, stop=True, stop_due=time + sign_patience(run.stops), stops=run.stops + 1)
    return replace(flow, run=run)


def _may_begin(flow: Flow, run: Run, fact: run_facts.TurnStopped) -> bool:
    """Whether the prompt of a run that was stopped may begin a turn all the same.

    One that waits still may (facts/opencode.md 26), one that was sent again after its turn died and shows only what
    that one left, and one whose delivery got no answer: it may arrive later.
    """
    delivery = f"{run.id}/prompt/{run.prompt.n}."
    is_sent_again = fact.state == "incomplete" and run.restarts > 0
    is_lost = not run.prompt.sent and any(key.startswith(delivery) for key, _ in flow.tries)
    return fact.state == "stored" or is_sent_again or is_lost


_Again = run_facts.OutcomeRejected | run_facts.DiagnosisWanted | run_facts.TurnDied | run_facts.PromptAbandoned


def _prompt_again(flow: Flow, run: Run, fact: _Again, seq: int, time: datetime) -> Flow:
    flow = replace(flow, run=_restart_prompt(run, fact, time))
    if isinstance(fact, run_facts.PromptAbandoned):
        return _doubted(replace(flow, effect_after=fact.due), time)
    return flow if isinstance(fact, run_facts.TurnDied) else replace(flow, doubts=0, doubts_began=None)


def _doubted(flow: Flow, time: datetime) -> Flow:
    """Another prompt in a row began no turn, or its turn was stopped because it seemed not to begin."""
    return replace(flow, doubts=flow.doubts + 1, doubts_began=flow.doubts_began or time)


def _counts(run: Run, fact: run_facts.TurnSeen | run_facts.TurnStopped) -> bool:
    """Whether a read tells what a run used: once that is over, the one at its stop alone."""
    return fact.n > 0 if isinstance(fact, run_facts.TurnStopped) else not run.ended


def _counted(flow: Flow, run: Run, fact: run_facts.TurnSeen | run_facts.TurnStopped) -> tuple[Flow, Run]:
    """What a turn used, as `ashep.core.runs.run_record` tells it."""
    turns = used(run.turns, fact) if _counts(run, fact) else run.turns
    if turns == run.turns:
        return flow, run
    tokens, cost = growth(run.turns, fact)
    spent = (flow.counters.spent[0] + tokens, round(flow.counters.spent[1] + cost, 9))
    return replace(flow, counters=replace(flow.counters, spent=spent)), replace(run, turns=turns)


def spent(
    spending: Spending, flow: Flow, fact: run_facts.TurnSeen | run_facts.TurnStopped, seen: Seen, time: datetime
) -> Spending:
    """What a turn used, in the account of the day and of all; `seen` knows runners' models. Before it is folded."""
    run = flow.run
    if run is None or run.id != fact.run or not _counts(run, fact):
        return spending
    tokens, cost = growth(run.turns, fact)
    if not tokens and not cost:
        return spending
    return add(spending, fact.provider or provider_of(run, seen), tokens, cost, time)


def budget(flow: Flow, fact: BudgetWarned | BudgetReached | WriteDelayed) -> Flow:
    """A limit of the issue or its run was passed, or a write of it waits."""
    if isinstance(fact, WriteDelayed):
        return replace(flow, write_after=fact.due)
    return replace(flow, counters=replace(flow.counters, marks=marked(flow.counters.marks, fact)))


def _planned(flow: Flow, fact: run_facts.RunPlanned, seq: int, time: datetime) -> Flow:
    run = Run(
        fact.run, fact.phase, fact.visit, fact.attempt, fact.agent, fact.runner, fact.slug, fact.model, fact.access,
        fact.timeout, seq, time, fact.reuse, fact.branch, prompt=Sent(1, fact.prompt, slug=fact.slug, model=fact.model),
        tree_wanted="before" if fact.access == "write" or fact.branch else "no",
        watch=Watch(
            stall_after=fact.stall_after, tool_timeout=fact.tool_timeout, sign_after=fact.sign_after or NO_SIGN
        ),
        sandbox=fact.sandbox,
    )  # fmt: skip
    counters, marks = flow.counters, tuple(mark for mark in flow.counters.marks if mark.scope != "run")
    counters = replace(counters, runs=counters.runs + 1, cycle_runs=counters.cycle_runs + 1, marks=marks)
    if fact.branch is not None:  # it is to work in a tree of the issue's own: what was known of that stays known
        own = flow.work.own
        if own is None or own.branch != fact.branch:
            own = OwnTree(fact.branch, fact.slot)
        flow = with_work(flow, own=dataclasses.replace(own, slot=fact.slot, onto=own.onto or fact.onto))
    flow = replace(flow, run=run, attempt=fact.attempt, wanted=False, counters=counters, not_before=None)
    stamp = flow.issue.stamp
    if fact.attempt > 1 and (stamp is None or stamp.run != fact.run):
        # the stamp is to name this run: whoever adopts the issue counts on from it
        flow = replace(flow, target=Posture(seq, "work", fact.phase))
    return replace(flow, code="", why=fact.why, since=time)


def _sent(run: Run, fact: run_facts.PromptSent, seq: int, time: datetime) -> Run:
    prompt = replace(run.prompt, sent=True, instance=fact.instance, again=False)
    if run.ended:  # it was aborted while the prompt was on its way
        return replace(run, prompt=prompt, effect_seq=seq)
    stall_due = time + run.watch.stall_after if run.watch.stall_after is not None else None
    watch = replace(run.watch, probation="no", sign_due=time + run.watch.sign_after, stall_due=stall_due, doubted=False)
    run = replace(run, prompt=prompt, state="running", turn="", watch=watch, effect_seq=seq)
    if prompt.kind == "diagnose":
        return replace(run, deadline=time + DIAGNOSIS)
    return run if run.started else replace(run, started=time, deadline=time + run.timeout)


def _begin_turn(flow: Flow, run: Run, fact: run_facts.TurnBegun, seq: int, time: datetime) -> Flow:
    same = run.prompt.n == fact.n
    return replace(flow, run=replace(run, prompt=replace(run.prompt, begun=True))) if same else flow


def _turn(flow: Flow, run: Run, fact: run_facts.TurnSeen, time: datetime) -> Flow:
    if unfounded(flow, run, fact):
        return flow
    fresh = 0 if fact.as_of >= run.watch.fresh_after else run.watch.fresh_after
    began = fact.state == "incomplete" and run.turn != "incomplete"
    run = _started(run, fact, time)
    stop, watch = run.stop, replace(run.watch, fresh_after=fresh)
    if fact.starting and not (watch.probation == "suspect" and fresh == 0):
        due = (watch.starting_since or time) + LONGEST_START
        stop, watch = False, replace(watch, sign_due=due, stall_due=None, probation="no")
    elif fact.state in ("running", "finished"):
        # a turn that runs behind an answered call to stop it began later: who stops it now is somebody else
        stopping = watch.stopping and (fact.state == "finished" or run.abort_unseen)
        stop, watch = False, replace(watch, sign_due=None, probation="no", stopping=stopping)
    elif began:  # it must look so in every read over 30 s, whatever was thought of it before
        stop, watch = False, replace(watch, sign_due=time + NO_SIGN, probation="no")
    elif watch.probation == "suspect" and fresh == 0 and fact.state in ("missing", "stored"):
        stop, watch = True, replace(watch, probation="stop")
    if watch.doubted and fresh == 0 and fact.life is not None and fact.state == "running":
        watch = replace(watch, doubted=False, stall_due=due_after(watch, fact.life, time))
    run = replace(run, turn=fact.state, turn_instance=fact.instance, people=fact.people, stop=stop, watch=watch)
    return replace(flow, run=_refusal(run, fact, time))


def _started(run: Run, fact: run_facts.TurnSeen, time: datetime) -> Run:
    """The process that answers the prompt starts, or has started: that is no time of the run's."""
    since = run.watch.starting_since
    if fact.starting:
        return run if since is not None else with_watch(run, starting_since=time)
    if since is None:
        return run
    stall_due = time + run.watch.stall_after if run.watch.stall_after is not None else None
    run = replace(run, deadline=run.deadline + (time - since) if run.deadline is not None else None)
    return with_watch(run, starting_since=None, sign_due=time + run.watch.sign_after, stall_due=stall_due)


def _refusal(run: Run, fact: run_facts.TurnSeen, time: datetime) -> Run:
    """A provider's refusal, if there is one; while it is waited for in the turn, that is no time of the run's."""
    if fact.refused is None or fact.refused.attempt == run.refused:
        return run if fact.refused is not None else replace(run, refused=0)
    wait = fact.refused.wait(time) if fact.state == "running" else None
    deadline = run.deadline + wait if run.deadline is not None and wait is not None else run.deadline
    return replace(run, refused=fact.refused.attempt, deadline=deadline)


def _restart_prompt(run: Run, fact: _Again, time: datetime) -> Run:
    watch = replace(run.watch, probation="no", sign_due=None, fresh_after=0, stall_due=None, doubted=False)
    watch = replace(watch, stopping=False, starting_since=None)
    run = replace(run, turn="", watch=watch)
    match fact:
        case run_facts.OutcomeRejected() if fact.then == "extract":
            prompt = Sent(fact.n + 1, "extract", slug=fact.slug, model=fact.model, wrong=fact.why, runner=fact.runner)
            return replace(run, prompt=prompt, extract="wanted")
        case run_facts.OutcomeRejected():
            kind = "continue" if fact.then == "continue" else "recover"
            prompt = Sent(fact.n + 1, kind, slug=run.slug, model=run.model, wrong=fact.why)
            return replace(run, prompt=prompt, continues=run.continues + (kind == "continue"))
        case run_facts.DiagnosisWanted():
            prompt = Sent(fact.n + 1, "diagnose", slug=fact.slug, model=fact.model, wrong=fact.why, runner=fact.runner)
            prompt, watch = replace(prompt, by=fact.agent), replace(watch, overdue=False)
            return replace(run, prompt=prompt, extract="wanted", stop=True, deadline=None, watch=watch)
        case run_facts.TurnDied():
            prompt = replace(run.prompt, sent=False, begun=False, again=True)
            return replace(run, prompt=prompt, restarts=run.restarts + 1)
        case run_facts.PromptAbandoned():
            prompt = replace(run.prompt, sent=False, begun=False, tries=run.prompt.tries + 1, stamp=time)
            deadline = run.deadline
            if deadline is not None and run.prompt.stamp is not None and fact.sign_after is not None:
                deadline += time - run.prompt.stamp  # no turn ran in that time
            watch = replace(watch, overdue=False, sign_after=fact.sign_after or NO_SIGN)
            return replace(run, prompt=prompt, deadline=deadline, watch=watch)


def _ended(flow: Flow, run: Run, fact: run_facts.RunEnded, seq: int, time: datetime) -> Flow:
    avoid = fact.diagnosis is not None and fact.diagnosis.verdict == "change_agent"
    ending, denied = (fact.state, fact.why, fact.outcome, fact.error), run.asks.denied or ()
    report = Report(run.id, run.phase, run.agent, *ending, avoid, run.trace, denied)
    failed = fact.state in ("failed", "timed_out", "stalled")
    watch, asks = replace(run.watch, sign_due=None, probation="no"), replace(run.asks, requests=())
    ended = replace(
        run, state=fact.state, stop=fact.abort and run.session is not None, watch=watch, asks=asks,
        tree_wanted="after" if run.before is not None else "no",
    )  # fmt: skip
    models = tuple((dict(flow.models) | {run.phase: run.model}).items()) if run.model else flow.models
    reports = (*flow.reports, report)[-MAX_REPORTS:]
    over = (*flow.requests, *(pending.request.id for pending in run.asks.requests))[-MAX_REPORTS:]
    flow = _doubted(flow, time) if fact.doubt else replace(flow, doubts=0, doubts_began=None)
    counters, word = flow.counters, fact.outcome.result_word if fact.outcome else None
    if not fact.counts:
        counters = replace(counters, cycle_runs=counters.cycle_runs - 1)
    flow = replace(flow, models=models, requests=over, counters=counters)
    flow = ended_with(flow, run.phase, word)
    return replace(flow, run=ended, reports=reports, failures=flow.failures + failed)


FOLDS: Folds = {
    run_facts.RunPlanned: _planned,
    run_facts.RunWithdrawn: of_run(_withdrawn),
    run_facts.RunEnded: of_run(_ended),
    run_facts.SessionOpened: of_run(_opened),
    run_facts.PromptPrepared: of_run(_prepared),
    run_facts.PromptSent: of_run(
        lambda flow, run, fact, seq, time: replace(flow, run=_sent(run, fact, seq, time), resume=None)
    ),
    run_facts.TurnSeen: of_run(lambda flow, run, fact, seq, time: _turn(*_counted(flow, run, fact), fact, time)),
    run_facts.QuotaSeen: of_run(lambda flow, run, fact, seq, time: replace(flow, run=replace(run, quota=fact.quota))),
    run_facts.TurnStopped: of_run(_turn_stopped),
    run_facts.TurnBegun: of_run(_begin_turn),
    **dict.fromkeys(get_args(_Again), of_run(_prompt_again)),
}
