"""The World: everything that the core may know, folded from the journal by `evolve`, which knows no policy rules.

`evolve` takes facts and the records of commands (an intent is something that is known, too). An old journal folds to
the same World whatever the policies say by now; its cost does not grow with the number of flows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import assert_never

from rpds import HashTrieMap, HashTrieSet

from ashep.core.delivery import evolve_tree
from ashep.core.facts.commands import WRITES, Command
from ashep.core.facts.finding import Finding
from ashep.core.facts.records import Entry
from ashep.core.facts.vocabulary import (
    AccountAudited,
    Adopted,
    BudgetReached,
    BudgetWarned,
    ChangeHinted,
    ClaimRefused,
    ClockJumped,
    CycleBegan,
    DaemonStarted,
    DaemonStopped,
    DiskSeen,
    EditMended,
    EditRefused,
    IssueCancelled,
    IssueClosed,
    IssueCreated,
    IssueGivenBack,
    IssueGone,
    IssueLeft,
    IssueParked,
    IssueReclaimed,
    IssueSeen,
    IssueTaken,
    JournalBegun,
    JournalPruned,
    PersonAsked,
    PromptSent,
    ProviderRecovered,
    ProviderRefused,
    ReadyChanged,
    ReadySeen,
    RecycleWanted,
    RunnerSeen,
    RunPlanned,
    ServerEnded,
    ServerFailed,
    ServerMemorySeen,
    ServerRestartPlanned,
    TimerDue,
    TrackerLost,
    TrackerSeen,
    TreeKept,
    TreeLeft,
    TreePrepared,
    TreeRemoved,
    TreeRests,
    TreeSealed,
    TreeSeen,
    TurnSeen,
    WorkPaused,
    WorkResumed,
    WriteDelayed,
)
from ashep.core.issues import folding
from ashep.core.policy.settings import Agents, Policies, Policy, Settings, Tree
from ashep.core.runs.folding import budget, provider_of, spent
from ashep.core.state import files as edits
from ashep.core.state import notices, pauses, providers, server, spending
from ashep.core.state.flow import Flow, orphan_of, pause_time
from ashep.core.state.frozen import replace
from ashep.core.state.indexes import put
from ashep.core.state.landing_turns import Place
from ashep.core.state.ordered import Ordered
from ashep.core.state.server import NO_SERVER, Server
from ashep.core.state.spending import NOTHING_SPENT, Spending
from ashep.core.state.timers import flow_dues, over, shifted, split_timer

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DEFAULTS = Settings()
UNSEEN = "not seen since the start"
"""The tracker's error until the first look of a daemon: its actor and prefix are known from the time before."""

NO_FILES: HashTrieMap[str, tuple[str, str]] = HashTrieMap()
NO_SLOTS: HashTrieMap[str, int] = HashTrieMap()
NO_FLOWS: HashTrieMap[str, Flow] = HashTrieMap()
NO_ISSUES: HashTrieSet[str] = HashTrieSet()
NO_DUES: HashTrieMap[str, datetime] = HashTrieMap()
NO_ORDER: Ordered[tuple[datetime, str]] = Ordered()
NO_QUEUE: Ordered[Place] = Ordered()
NO_DEPENDENTS: HashTrieMap[str, HashTrieSet[str]] = HashTrieMap()


@dataclass(frozen=True)
class World:
    """What is known after the entry `seq`."""

    seq: int = 0
    now: datetime = EPOCH
    instance: str = ""
    secret: str = ""
    name: str = ""
    """The name under which this state folder claims, where the settings give none."""
    daemon: DaemonStarted | None = None
    taken: int = 0
    """Issues taken since the daemon started."""
    policies: Policies | None = None
    agents: Agents | None = None
    settings: Settings = DEFAULTS
    files: edits.Files = edits.NO_FILES
    """What is kept in mind of the user's files beside that."""
    rules: int = 0
    """The number of the core's rules under which decisions are made since the last start; 0: none is on record."""
    tracker: TrackerSeen | None = None
    tracker_error: str = ""
    runner: RunnerSeen | None = None
    ready: HashTrieSet[str] = NO_ISSUES
    """The issues that the tracker lists as ready."""
    ready_fresh: bool = False
    """Whether the ready view was read after the last change hint."""
    hint_seq: int = 0
    """The last change hint: a ready view whose read began before it is not fresh."""
    tree: Tree | None = None
    left_over: HashTrieMap[str, tuple[str, str]] = NO_FILES
    """Paths that our runs left dirty: hash of the content, and the issue."""
    lock: str | None = None
    """The issue that holds the work tree."""
    slots: HashTrieMap[str, int] = NO_SLOTS
    """The numbers of issues that are worked on in trees of their own."""
    branches: HashTrieMap[str, HashTrieSet[str]] = NO_DEPENDENTS
    """Issues of ours that are not done on a branch that they share with others."""
    branch_runs: HashTrieMap[str, HashTrieSet[str]] = NO_DEPENDENTS
    """Those of which a run may be at work on such a branch."""
    landings: Ordered[Place] = NO_QUEUE
    """Issues whose work is to land, one at a time (`ashep.core.state.landing_turns`)."""
    disk_low: bool = False
    """Whether there is little room where the state folder lies: nothing new is taken."""
    flows: HashTrieMap[str, Flow] = NO_FLOWS
    live: HashTrieSet[str] = NO_ISSUES
    """Issues whose run is not settled."""
    unclosed: HashTrieSet[str] = NO_ISSUES
    """Issues that are not closed."""
    busy: HashTrieSet[str] = NO_ISSUES
    """Issues of which something is under way, or could start by itself."""
    leased: HashTrieSet[str] = NO_ISSUES
    """Issues whose lease is kept alive."""
    held: HashTrieSet[str] = NO_ISSUES
    """Issues whose session a person has."""
    reviewed: HashTrieSet[str] = NO_ISSUES
    """Issues whose pull request people look at."""
    dues: HashTrieMap[str, datetime] = NO_DUES
    """The earliest due time of each issue that has one."""
    due_order: Ordered[tuple[datetime, str]] = NO_ORDER
    """The same, the earliest first."""
    dependents: HashTrieMap[str, HashTrieSet[str]] = NO_DEPENDENTS
    """The issues that depend on an issue."""
    findings: tuple[Finding, ...] = ()
    """What the last audit found."""
    pauses: pauses.Pauses = ()
    """What keeps runs from starting by somebody's will."""
    outages: providers.Outages = ()
    """Providers that take nothing."""
    spending: Spending = NOTHING_SPENT
    """What was used, for budgets."""
    notices: notices.Notices = notices.NOTHING_TOLD
    """What people are to be told."""
    server: Server = NO_SERVER
    """What is kept in mind of the agent server."""

    def policy(self, flow: Flow) -> Policy | None:
        """The policy of a flow, as it is in force now."""
        return self.policies.policies.get(flow.policy) if self.policies and flow.policy else None

    @property
    def managed(self) -> bool:
        """Whether the agent server is ours, so that a new instance proves the old one dead."""
        runners = self.settings.runners
        return not runners.own and runners.opencode.managed and runners.opencode.url is None

    @property
    def in_use(self) -> bool:
        """Whether a run is under way on the agent server, or a person has a session there."""
        held = (self.flows[issue].held for issue in self.held)
        return bool(self.live) or any(one is not None and one.session for one in held)

    @property
    def actor(self) -> str:
        """The name under which we write to the tracker."""
        return self.tracker.actor if self.tracker else ""


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
            return evolve_tree.tree_seen(world, body)
        case TreePrepared() | TreeSealed() | TreeLeft():
            return evolve_tree.own_tree(world, body)
        case TreeRests() | TreeKept() | TreeRemoved():
            return evolve_tree.resting_tree(world, body)
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
            moved = evolve_tree.slept(_moved(world, lambda flow: shifted(flow, fact.gap)), fact.gap)
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
    if landed and not folding.stale(flow, fact.as_of):
        # the write whose answer was lost has landed: what stands there is ours, not a person's
        flow = folding.landed(flow, world.seq)
    return put(world, fact.issue, folding.seen(flow, fact, world.seq, world.now))


def _evolve_issue(world: World, fact: folding.FlowFact) -> World:
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
    after = folding.happened(flow, fact, world.seq, world.now)
    if flow.on_pause and after.since != flow.since and after.cycle == flow.cycle:
        after = replace(after, thought=after.thought + pause_time(flow, world.now))
    return put(world, fact.issue, after)
