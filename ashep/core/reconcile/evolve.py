"""The fold: a fact makes a World of the World before it, as each domain's table says. It knows no policy rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from rpds import HashTrieSet

from ashep.core.delivery import base_checks, landing, pull_requests, repository, workspaces
from ashep.core.facts import issues, resources, tracker
from ashep.core.facts import runs as run_facts
from ashep.core.facts.commands import WRITES, Command, SendNotice
from ashep.core.facts.records import Entry
from ashep.core.issues import fold as folding
from ashep.core.policy.policies import Policies
from ashep.core.policy.runner_kinds import OPENCODE
from ashep.core.reconcile import sources
from ashep.core.runs import fold as runs
from ashep.core.runs import requests, takeover
from ashep.core.state import config_edits as edits
from ashep.core.state import notices, pauses, pending_intents, providers, runner_state, spending
from ashep.core.state.flow import Flow, idled, orphan_of, pause_time
from ashep.core.state.holds import Backlog
from ashep.core.state.immutable import replace
from ashep.core.state.run import provider_of
from ashep.core.state.timers import expire_timer, flow_dues, shifted, split_timer
from ashep.core.state.world import UNSEEN, World, WorldFolds, merged, put


def evolve(world: World, entry: Entry) -> World:
    """Fold one entry into the World."""
    body = entry.body
    kind = type(body)
    if kind is resources.DaemonStarted:
        world = _rested(world, entry.at - world.now)
    told = notices.folded(world.notices, body, entry.seq, entry.at, world.now)
    world = replace(world, seq=entry.seq, now=entry.at, notices=told)
    if (fold := FOLDS.get(kind)) is not None:
        return _of_issue(world, kind, body, fold)
    if (of_world := WORLD_FOLDS.get(kind)) is not None:
        return of_world(world, body)
    if (part := PARTS.get(kind)) is not None:
        name, of_part = part
        return replace(world, **{name: of_part(getattr(world, name), body, world.now)})
    if not isinstance(body, Command) or isinstance(body, SendNotice):
        return world
    if isinstance(body, WRITES):
        world = replace(world, spending=spending.wrote(world.spending, world.now))
    return put(world, body.issue, folding.fold_intent(world.flows[body.issue], body))


def _of_issue(world: World, kind: type, fact: Any, fold: Callable[[Flow, Any, int, datetime], Flow]) -> World:
    """Fold a fact about an issue: what it changes next to the flow, the intent that it answers, and the flow."""
    flow = world.flows.get(fact.issue)
    if flow is None:
        return world
    if (beside := BESIDE.get(kind)) is not None:
        world = beside(world, flow, fact)
    known = flow
    if kind is issues.IssueTaken and (orphan := orphan_of(flow, world.instance)) is not None:
        known = replace(folding.inherited(flow), orphan=orphan)
    elif (key := getattr(fact, "key", None)) is not None and kind is not tracker.EffectFailed:
        known = pending_intents.settle_intent(flow, key, world.seq)
    after = fold(known, fact, world.seq, world.now)
    if flow.on_pause and after.since != flow.since and after.counters.cycle == flow.counters.cycle:
        after = idled(after, pause_time(flow, world.now))
    return put(world, fact.issue, after)


# --- next to the flow ----------------------------------------------------------------------------------------------


def _closed(world: World, flow: Flow, fact: issues.IssueClosed) -> World:
    world = _unlocked(world, flow, fact)
    if fact.by != "shepherd":
        return world
    # what waited for it may be ready now: a new look is due before anything else is taken
    return replace(world, ready_fresh=world.ready_fresh and fact.issue not in world.indexes.dependents)


def _planned(world: World, flow: Flow, fact: run_facts.RunPlanned) -> World:
    lock = fact.issue if fact.lock else world.lock
    return replace(world, lock=lock, spending=spending.started(world.spending, world.now))


def _used(world: World, flow: Flow, fact: run_facts.TurnSeen | run_facts.TurnStopped) -> World:
    return replace(world, spending=runs.spent(world.spending, flow, fact, world.seen, world.now))


def _prompted(world: World, flow: Flow, fact: run_facts.PromptSent) -> World:
    if not world.outages or flow.run is None:
        return world
    provider = provider_of(flow.run, world.seen)
    return replace(world, outages=providers.start_trial(world.outages, provider, world.now))


def _unclaimable(world: World, flow: Flow, fact: tracker.ClaimRefused | tracker.IssueReclaimed) -> World:
    """The view that made it look claimable is not believed again."""
    return replace(world, ready_fresh=False, hint_seq=world.seq)


def _unlocked(world: World, flow: Flow, fact: Any) -> World:
    return replace(world, lock=None) if world.lock == fact.issue else world


BESIDE: Mapping[type, Callable[[World, Flow, Any], World]] = {
    issues.IssueTaken: lambda world, flow, fact: replace(world, taken=world.taken + 1),
    tracker.IssueCreated: lambda world, flow, fact: replace(world, ready_fresh=False),
    run_facts.RunPlanned: _planned,
    run_facts.TurnSeen: _used,
    run_facts.TurnStopped: _used,
    run_facts.QuotaSeen: lambda world, flow, fact: replace(
        world, quotas=providers.quota_seen(world.quotas, fact, world.now)
    ),
    run_facts.PromptSent: _prompted,
    tracker.ClaimRefused: _unclaimable,
    tracker.IssueReclaimed: _unclaimable,
    issues.CycleBegan: _unlocked,
    issues.PersonAsked: _unlocked,
    issues.IssueParked: _unlocked,
    issues.IssueGivenBack: _unlocked,
    issues.IssueLeft: _unlocked,
    issues.IssueClosed: _closed,
    tracker.IssueGone: lambda world, flow, fact: replace(world, ready=world.ready.discard(fact.issue)),
}
"""What a fact about an issue changes of the World next to its flow; the flow is as it was before the fact."""


# --- the daemon ---------------------------------------------------------------------------------------------------


def _rested(world: World, gap: timedelta) -> World:
    """No daemon ran for a while: that is no working time of a cycle, just as a suspended machine's is not."""
    for issue in world.indexes.unclosed:
        flow = world.flows[issue]
        if flow.stage == "work" and not flow.on_pause and not flow.waits_for_input:
            world = put(world, issue, idled(flow, gap))
    return world


def _started(world: World, fact: resources.DaemonStarted) -> World:
    outages = providers.with_other_credentials(world.outages, world.now)
    world = replace(world, taken=0, tracker_error=UNSEEN, seen=runner_state.NOT_SEEN, ready_fresh=False)
    world = base_checks.unchecked(replace(world, machine_busy="", tree=None, repository=None))
    for issue in world.indexes.unclosed:
        if world.flows[issue].given_up:
            world = put(world, issue, replace(world.flows[issue], given_up=False))
    files = edits.happened(world.files, fact, world.now)
    if fact.backlog == "all":
        world = replace(world, backlog=Backlog(settled=True))
    return replace(world, daemon=fact, outages=outages, servers=runner_state.reset_servers(world.servers), files=files)


def _adopt(world: World, fact: resources.Adopted) -> World:
    outages = providers.with_other_credentials(world.outages, world.now)
    if fact.kind == "prompts":
        return replace(world, files=edits.happened(world.files, fact, world.now))
    adopted, before = edits.parsed(fact.kind, fact.content), world.policies
    if isinstance(adopted, Policies) and before is not None:
        for issue in world.indexes.live:
            world = put(world, issue, edits.keep_phase(world.flows[issue], before, adopted))
        world = base_checks.unchecked(world) if adopted != before else world
    return replace(world, rules=fact.rules, outages=outages, **{fact.kind: adopted})  # fields of these names


def _timer(world: World, fact: resources.TimerDue) -> World:
    name, issue = split_timer(fact.key)
    if name == pauses.TIMER:
        return replace(world, pauses=pauses.expire_pause(world.pauses, issue, fact.due))
    if name == providers.TIMER:
        return replace(world, outages=providers.allow_trial(world.outages, issue, fact.due, world.now))
    if name == providers.PROOF:
        return replace(world, outages=providers.proven(world.outages, issue, fact.due, world.seq))
    if name == spending.TIMER:
        return replace(world, spending=spending.drop_expired(world.spending, world.now))
    if name in (runner_state.RESTART, runner_state.RECYCLE):
        return replace(world, servers=runner_state.expire_timer(world.servers, name, issue, fact.due, world.now))
    flow = world.flows.get(issue)
    if flow is None or (name, fact.due) not in flow_dues(flow):
        return world
    return put(world, issue, expire_timer(flow, name, world.seq, world.now))


def _clock_jumped(world: World, fact: resources.ClockJumped) -> World:
    moved = workspaces.slept(_moved(world, lambda flow: shifted(flow, fact.gap)), fact.gap)
    return replace(moved, servers=runner_state.jumped(world.servers, fact.gap))


def _moved(world: World, move: Callable[[Flow], Flow], runner: str | None = None) -> World:
    """Move the times of what is under way; `runner`: of what waited for this one, where there are others."""
    alone = runner is None or len(world.servers) == 1
    for issue in {*world.indexes.unclosed, *world.indexes.live}:
        flow = world.flows[issue]
        waits_for = flow.held_by if flow.code.startswith("runner_") else ""
        if flow.run is not None and not flow.run.ended:
            waits_for = flow.run.session_runner
        if (flow.stage == "work" or issue in world.indexes.live) and (alone or waits_for == runner):
            world = put(world, issue, move(flow))
    return world


def _resumed(world: World, fact: resources.WorkResumed) -> World:
    freed = world.outages if fact.window else providers.freed(world.outages, world.now, fact.provider)
    return replace(world, pauses=pauses.end_pause(world.pauses, fact), outages=freed)


def _limit(world: World, fact: resources.BudgetWarned | resources.BudgetReached | resources.WriteDelayed) -> World:
    if fact.issue is not None and fact.issue in world.flows:
        return put(world, fact.issue, runs.budget(world.flows[fact.issue], fact))
    return replace(world, spending=spending.noted(world.spending, fact))


# --- what was seen ------------------------------------------------------------------------------------------------


def _runner(world: World, fact: resources.RunnerSeen) -> World:
    name = fact.runner or OPENCODE
    known = runner_state.get_server(world.servers, name)
    gap, before = runner_state.absence(known, fact, world.now), world.seen.get(name)
    other = fact.state == "up" and before is not None and fact.instance != before.instance
    outages = providers.with_other_credentials(world.outages, world.now) if other else world.outages
    servers = world.servers.insert(name, runner_state.update_server(known, fact, world.now))
    world = replace(world, seen=world.seen.insert(name, fact), outages=outages, servers=servers)
    return _moved(world, lambda flow: runner_state.returned(flow, gap, world.now), name) if gap else world


def _ready(world: World, fact: tracker.ReadySeen) -> World:
    return replace(world, ready=HashTrieSet(fact.ids), ready_fresh=fact.as_of >= world.hint_seq)


def _ready_changed(world: World, fact: tracker.ReadyChanged) -> World:
    ready = world.ready.update(fact.added)
    for issue in fact.removed:
        ready = ready.discard(issue)
    return replace(world, ready=ready, ready_fresh=fact.as_of >= world.hint_seq)


def _issue_seen(world: World, fact: tracker.IssueSeen) -> World:
    flow = world.flows.get(fact.issue)
    if flow is None:
        flow = Flow(fact.view, since=world.now, view_seq=world.seq)
        return put(world, fact.issue, folding.inherited(flow))
    stamp, writing = fact.view.stamp, flow.writing
    landed = writing is not None and stamp is not None and (stamp.instance, stamp.seq) == (world.instance, writing.seq)
    if landed and not pending_intents.stale(flow, fact.as_of):
        # the write whose answer was lost has landed: what stands there is ours, not a person's
        flow = folding.settle_write(flow, world.seq)
    return put(world, fact.issue, folding.fold_view(flow, fact, world.seq, world.now))


# --- tables -------------------------------------------------------------------------------------------------------


FOLDS = merged(folding.FOLDS, runs.FOLDS, requests.FOLDS, takeover.FOLDS, landing.FOLDS, pull_requests.FOLDS)
"""What a fact makes of the flow of its issue."""

_WORLD: WorldFolds = {
    resources.JournalBegun: lambda world, fact: replace(
        world, instance=fact.instance, secret=fact.secret, name=fact.actor
    ),
    resources.DaemonStarted: _started,
    resources.Adopted: _adopt,
    resources.BacklogHeld: lambda world, fact: replace(
        world, backlog=Backlog(settled=True, issues=frozenset(fact.issues))
    ),
    resources.TimerDue: _timer,
    resources.ClockJumped: _clock_jumped,
    resources.AccountAudited: lambda world, fact: replace(world, findings=fact.findings),
    resources.DiskSeen: lambda world, fact: replace(world, disk_low=fact.state == "low"),
    resources.MachineSeen: lambda world, fact: replace(world, machine_busy=fact.why if fact.state == "busy" else ""),
    resources.WorkResumed: _resumed,
    resources.BudgetWarned: _limit,
    resources.BudgetReached: _limit,
    resources.WriteDelayed: _limit,
    resources.RunnerSeen: _runner,
    tracker.TrackerSeen: lambda world, fact: replace(world, tracker=fact, tracker_error=""),
    tracker.TrackerLost: lambda world, fact: replace(world, tracker_error=fact.error, ready_fresh=False),
    tracker.ChangeHinted: lambda world, fact: replace(world, ready_fresh=False, hint_seq=world.seq),
    tracker.ReadySeen: _ready,
    tracker.ReadyChanged: _ready_changed,
    tracker.IssueSeen: _issue_seen,
}

WORLD_FOLDS = merged(_WORLD, workspaces.FOLDS, base_checks.FOLDS, repository.WORLD_FOLDS, sources.FOLDS)
"""What any other fact makes of the World."""

PARTS: Mapping[type, tuple[str, Callable[[Any, Any, datetime], Any]]] = {
    kind: (name, fold)
    for name, folds in (
        ("pauses", pauses.FOLDS),
        ("outages", providers.FOLDS),
        ("servers", runner_state.FOLDS),
        ("files", edits.FOLDS),
    )
    for kind, fold in folds.items()
}
"""What a fact makes of a part of the World that folds by itself: the part's field, and its fold."""
