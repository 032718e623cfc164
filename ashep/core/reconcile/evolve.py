"""The fold: a fact makes a World of the World before it. It knows no policy rules."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import assert_never

from rpds import HashTrieSet

from ashep.core.delivery import trees
from ashep.core.delivery.landing import fold_landing, fold_verified
from ashep.core.delivery.pulls import PullFact, pull_fact
from ashep.core.facts.commands import WRITES, Command
from ashep.core.facts.delivery import (
    CriteriaAdopted,
    CriteriaChanged,
    LandingRefused,
    TreeKept,
    TreePrepared,
    TreeRemoved,
    TreeRests,
    TreeSealed,
    TreeSeen,
    VerificationWanted,
    WorkConflicted,
    WorkIntegrated,
    WorkLanded,
    WorkVerified,
)
from ashep.core.facts.issues import (
    CycleBegan,
    IssueCancelled,
    IssueClosed,
    IssueGivenBack,
    IssueLeft,
    IssueParked,
    IssueTaken,
    PersonAsked,
)
from ashep.core.facts.records import Entry
from ashep.core.facts.resources import (
    AccountAudited,
    Adopted,
    BudgetReached,
    BudgetWarned,
    ClockJumped,
    DaemonStarted,
    DaemonStopped,
    DiskSeen,
    EditMended,
    EditRefused,
    JournalBegun,
    JournalPruned,
    ProviderRecovered,
    ProviderRefused,
    RecycleWanted,
    RunnerSeen,
    ServerEnded,
    ServerFailed,
    ServerMemorySeen,
    ServerRestartPlanned,
    TimerDue,
    WorkPaused,
    WorkResumed,
    WriteDelayed,
)
from ashep.core.facts.runs import OrphanStopped, PromptSent, RunPlanned, TurnSeen
from ashep.core.facts.tracker import (
    AnswerRead,
    ChangeHinted,
    ClaimRefused,
    CommentPosted,
    EffectFailed,
    GuardRefused,
    IssueClaimed,
    IssueCreated,
    IssueGone,
    IssueReclaimed,
    IssueSeen,
    IssueWritten,
    LabelsTakenOff,
    LeaseExpired,
    LeaseLost,
    ReadyChanged,
    ReadySeen,
    TrackerLost,
    TrackerSeen,
    WriteRefused,
)
from ashep.core.facts.vocabulary import AuthorsRead, TreeLeft
from ashep.core.issues import folding
from ashep.core.issues.folding import Answer, Decision, fold_answer, fold_decision
from ashep.core.policy.policies import Policies
from ashep.core.runs.folding import RunFact, budget, run_fact, spent
from ashep.core.runs.requests import RequestFact, request_fact
from ashep.core.runs.takeover import HeldFact, held_fact
from ashep.core.state import files as edits
from ashep.core.state import intents, notices, pauses, providers, server, spending
from ashep.core.state.delivery import Criteria
from ashep.core.state.flow import Flow, orphan_of, pause_time
from ashep.core.state.frozen import replace
from ashep.core.state.indexes import put
from ashep.core.state.intents import done
from ashep.core.state.run import provider_of
from ashep.core.state.timers import flow_dues, over, shifted, split_timer
from ashep.core.state.world import UNSEEN, World

Lease = LeaseLost | LeaseExpired


WorkFact = (
    CriteriaAdopted | CriteriaChanged | VerificationWanted | WorkVerified | WorkIntegrated | WorkConflicted
    | WorkLanded | LandingRefused | PullFact
)  # fmt: skip


FlowFact = Decision | RunFact | RequestFact | Answer | Lease | HeldFact | WorkFact


def happened(flow: Flow, fact: FlowFact, seq: int, at: datetime) -> Flow:
    """Fold a fact that is about this issue."""
    if isinstance(fact, RunFact):
        return run_fact(flow, fact, seq, at)
    if isinstance(fact, RequestFact):
        return request_fact(flow, fact, seq, at)
    if isinstance(fact, WorkFact):
        return work_fact(flow, fact, seq, at)
    if isinstance(fact, HeldFact):
        return held_fact(flow, fact, seq, at)
    match fact:
        case (
            EffectFailed() | IssueClaimed() | ClaimRefused() | IssueWritten() | GuardRefused() | WriteRefused()
            | CommentPosted() | IssueCreated() | LabelsTakenOff() | AnswerRead() | IssueGone() | OrphanStopped()
            | IssueReclaimed() | AuthorsRead()
        ):  # fmt: skip
            return fold_answer(flow, fact, seq, at)
        case LeaseLost():
            return replace(flow, lease_lost=flow.leased, look_again=flow.leased or flow.look_again)
        case LeaseExpired():
            return replace(flow, expired=(fact.holder, fact.expired))
        case _:
            return fold_decision(flow, fact, seq, at)


def evolve(world: World, entry: Entry) -> World:
    """Fold one entry into the World."""
    if isinstance(entry.body, DaemonStarted):
        world = _rested(world, entry.at - world.now)
    body = entry.body
    told = notices.folded(world.notices, body, entry.seq, entry.at, world.now)
    world = replace(world, seq=entry.seq, now=entry.at, notices=told)
    if isinstance(body, notices.RECORDS):
        return world
    if isinstance(body, Command):
        if isinstance(body, WRITES):
            world = replace(world, spending=spending.wrote(world.spending, world.now))
        return put(world, body.issue, folding.asked(world.flows[body.issue], body))
    match body:
        case AccountAudited():
            return replace(world, findings=body.findings)
        case JournalBegun() | DaemonStarted() | DaemonStopped() | Adopted() | TimerDue() | ClockJumped():
            return _evolve_daemon(world, body)
        case TrackerSeen() | TrackerLost() | RunnerSeen() | ChangeHinted() | ReadySeen() | ReadyChanged():
            return _evolve_seen(world, body)
        case DiskSeen():
            return replace(world, disk_low=body.state == "low")
        case EditRefused() | EditMended():
            return replace(world, files=edits.happened(world.files, body, world.now))
        case WorkPaused():
            return replace(world, pauses=pauses.begun(world.pauses, body, world.now))
        case WorkResumed():
            freed = world.outages if body.window else providers.freed(world.outages, world.now, body.provider)
            return replace(world, pauses=pauses.ended(world.pauses, body), outages=freed)
        case ProviderRefused():
            return replace(world, outages=providers.refused(world.outages, body, world.now))
        case ProviderRecovered():
            return replace(world, outages=providers.recovered(world.outages, body))
        case ServerFailed() | ServerEnded() | ServerMemorySeen() | ServerRestartPlanned() | RecycleWanted():
            return replace(world, server=server.happened(world.server, body, world.now))
        case JournalPruned() | IssueCancelled():
            return world
        case TreeSeen():
            return trees.tree_seen(world, body)
        case TreePrepared() | TreeSealed() | TreeLeft():
            return trees.own_tree(world, body)
        case TreeRests() | TreeKept() | TreeRemoved():
            return trees.resting_tree(world, body)
        case IssueSeen():
            return _evolve_issue_seen(world, body)
        case BudgetWarned() | BudgetReached() | WriteDelayed():
            if body.issue is not None and body.issue in world.flows:
                return put(world, body.issue, budget(world.flows[body.issue], body))
            return replace(world, spending=spending.noted(world.spending, body))
        case _:
            return _evolve_issue(world, body)


def _rested(world: World, gap: timedelta) -> World:
    """No daemon ran for a while: that is no working time of a cycle, just as a suspended machine's is not."""
    for issue in world.unclosed:
        flow = world.flows[issue]
        if flow.stage == "work" and not flow.on_pause and not flow.waits_for_input:
            world = put(world, issue, replace(flow, thought=flow.thought + gap))
    return world


DaemonFact = JournalBegun | DaemonStarted | DaemonStopped | Adopted | TimerDue | ClockJumped


def _evolve_daemon(world: World, fact: DaemonFact) -> World:
    match fact:
        case JournalBegun():
            return replace(world, instance=fact.instance, secret=fact.secret, name=fact.actor)
        case DaemonStarted():
            outages = providers.with_other_credentials(world.outages, world.now)
            world = replace(world, taken=0, tracker_error=UNSEEN, runner=None, ready_fresh=False, tree=None)
            files = edits.happened(world.files, fact, world.now)
            return replace(world, daemon=fact, outages=outages, server=server.begun(world.server), files=files)
        case DaemonStopped():
            return world
        case Adopted():
            return _adopt(world, fact)
        case TimerDue():
            name, issue = split_timer(fact.key)
            if name == pauses.TIMER:
                return replace(world, pauses=pauses.over(world.pauses, issue, fact.due))
            if name == providers.TIMER:
                return replace(world, outages=providers.over(world.outages, issue, fact.due, world.now))
            if name == providers.PROOF:
                return replace(world, outages=providers.proven(world.outages, issue, fact.due, world.seq))
            if name == spending.TIMER:
                return replace(world, spending=spending.passed(world.spending, world.now))
            if name in (server.RESTART, server.RECYCLE) and not issue:
                return replace(world, server=server.over(world.server, name, fact.due, world.now))
            flow = world.flows.get(issue)
            if flow is None or (name, fact.due) not in flow_dues(flow):
                return world
            return put(world, issue, over(flow, name, world.seq, world.now))
        case ClockJumped():
            moved = trees.slept(_moved(world, lambda flow: shifted(flow, fact.gap)), fact.gap)
            return replace(moved, server=server.jumped(world.server, fact.gap))
        case _:
            assert_never(fact)


def _moved(world: World, move: Callable[[Flow], Flow]) -> World:
    """Move the times of what is under way."""
    for issue in {*world.unclosed, *world.live}:
        flow = world.flows[issue]
        if flow.stage == "work" or issue in world.live:
            world = put(world, issue, move(flow))
    return world


def _adopt(world: World, fact: Adopted) -> World:
    outages = providers.with_other_credentials(world.outages, world.now)
    if fact.kind == "prompts":
        return replace(world, files=edits.happened(world.files, fact, world.now))
    adopted, before = edits.parsed(fact.kind, fact.content), world.policies
    if isinstance(adopted, Policies) and before is not None:
        for issue in world.live:
            world = put(world, issue, edits.kept(world.flows[issue], before, adopted))
    return replace(world, rules=fact.rules, outages=outages, **{fact.kind: adopted})  # fields of these names


def _evolve_seen(
    world: World, fact: TrackerSeen | TrackerLost | RunnerSeen | ChangeHinted | ReadySeen | ReadyChanged
) -> World:
    match fact:
        case TrackerSeen():
            return replace(world, tracker=fact, tracker_error="")
        case TrackerLost():
            return replace(world, tracker_error=fact.error, ready_fresh=False)
        case RunnerSeen():
            gap = server.absence(world.server, fact, world.now)
            other = fact.state == "up" and world.runner is not None and fact.instance != world.runner.instance
            outages = providers.with_other_credentials(world.outages, world.now) if other else world.outages
            world = replace(world, runner=fact, outages=outages, server=server.seen(world.server, fact, world.now))
            return _moved(world, lambda flow: server.returned(flow, gap, world.now)) if gap else world
        case ChangeHinted():
            return replace(world, ready_fresh=False, hint_seq=world.seq)
        case ReadySeen():
            return replace(world, ready=HashTrieSet(fact.ids), ready_fresh=fact.as_of >= world.hint_seq)
        case ReadyChanged():
            ready = world.ready.update(fact.added)
            for issue in fact.removed:
                ready = ready.discard(issue)
            return replace(world, ready=ready, ready_fresh=fact.as_of >= world.hint_seq)
        case _:
            assert_never(fact)


def _evolve_issue_seen(world: World, fact: IssueSeen) -> World:
    flow = world.flows.get(fact.issue)
    if flow is None:
        flow = Flow(fact.view, since=world.now, view_seq=world.seq)
        return put(world, fact.issue, folding.inherited(flow))
    stamp, writing = fact.view.stamp, flow.writing
    landed = writing is not None and stamp is not None and (stamp.instance, stamp.seq) == (world.instance, writing.seq)
    if landed and not intents.stale(flow, fact.as_of):
        # the write whose answer was lost has landed: what stands there is ours, not a person's
        flow = folding.landed(flow, world.seq)
    return put(world, fact.issue, folding.seen(flow, fact, world.seq, world.now))


def _evolve_issue(world: World, fact: FlowFact) -> World:
    flow = world.flows.get(fact.issue)
    if flow is None:
        return world
    match fact:
        case IssueTaken():
            world = replace(world, taken=world.taken + 1)
            if (orphan := orphan_of(flow, world.instance)) is not None:
                flow = replace(folding.inherited(flow), orphan=orphan)
        case IssueCreated():
            world = replace(world, ready_fresh=False)
        case IssueClosed(by="shepherd"):
            # what waited for it may be ready now: a new look is due before anything else is taken
            waited_for = fact.issue in world.dependents
            lock = None if world.lock == fact.issue else world.lock
            world = replace(world, lock=lock, ready_fresh=world.ready_fresh and not waited_for)
        case RunPlanned():
            lock = fact.issue if fact.lock else world.lock
            world = replace(world, lock=lock, spending=spending.started(world.spending, world.now))
        case TurnSeen():
            default = world.runner.default if world.runner else None
            world = replace(world, spending=spent(world.spending, flow, fact, default, world.now))
        case PromptSent() if world.outages and flow.run is not None:
            provider = provider_of(flow.run, world.runner.default if world.runner else None)
            world = replace(world, outages=providers.asked(world.outages, provider, world.now))
        case ClaimRefused() | IssueReclaimed():
            # the view that made it look claimable is not believed again
            world = replace(world, ready_fresh=False, hint_seq=world.seq)
        case CycleBegan() | PersonAsked() | IssueParked() | IssueGivenBack() | IssueLeft() | IssueClosed() if (
            world.lock == fact.issue
        ):
            world = replace(world, lock=None)
        case IssueGone() if fact.issue in world.ready:
            world = replace(world, ready=world.ready.remove(fact.issue))
        case _:
            pass
    after = happened(flow, fact, world.seq, world.now)
    if flow.on_pause and after.since != flow.since and after.cycle == flow.cycle:
        after = replace(after, thought=after.thought + pause_time(flow, world.now))
    return put(world, fact.issue, after)


def work_fact(flow: Flow, fact: WorkFact, seq: int, at: datetime) -> Flow:
    """Fold a fact that is about the work of this issue."""
    flow = done(flow, getattr(fact, "key", None), seq)
    if isinstance(fact, PullFact):
        return pull_fact(flow, fact, seq, at)
    match fact:
        case CriteriaAdopted():
            # those that cannot be read are not none: they are read again before anything rests on them
            return replace(
                flow, criteria=None if fact.error or fact.left_out else Criteria(fact.hash, fact.blob, fact.manual)
            )
        case CriteriaChanged():
            return replace(flow, criteria=flow.criteria and dataclasses.replace(flow.criteria, seen=fact.hash))
        case VerificationWanted():
            # a person who let it go left the phase wanted: their outcome is looked into first
            return replace(flow, verifying=fact.run, wanted=False, why=fact.why, since=at)
        case WorkVerified():
            return fold_verified(flow, fact, at)
        case _:
            return fold_landing(flow, fact, at)
