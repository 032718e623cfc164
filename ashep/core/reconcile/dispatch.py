"""The only rule that starts runs: wanted phases first, then ready issues, and a reason for all that does not start."""

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from ashep.core.delivery import repository
from ashep.core.delivery.base_checks import base_hold
from ashep.core.delivery.workspaces import (
    branch_at,
    branch_taken,
    foreign_changes,
    has_base,
    mode,
    own_trees,
    slot_of,
    takers,
)
from ashep.core.facts.command_descriptions import REFUSES
from ashep.core.facts.issues import IssueAdopted, IssueHeld, IssueTaken, PhaseEntered
from ashep.core.facts.runs import RunPlanned
from ashep.core.facts.vocabulary import Fact
from ashep.core.issues.human_overrides import phase_labels
from ashep.core.issues.routing import ask, begin_cycle, park, park_unknown_phase
from ashep.core.policy.agents import Agent, Sandbox
from ashep.core.policy.policies import Human, Phase, ReuseFrom
from ashep.core.policy.runner_kinds import OPENCODE, spoken
from ashep.core.reconcile.eligibility import NOT_ASKED, adopt, eligible, is_ours, not_asked, policy_for, stands
from ashep.core.resources import agent_server, budgets
from ashep.core.resources.providers import is_tried
from ashep.core.runs import concurrency_caps
from ashep.core.runs.agent_selection import Choice, choose_for, model_of, provider_of
from ashep.core.runs.takeover import keeps
from ashep.core.state.delivery import is_shared
from ashep.core.state.flow import Flow, wall_time
from ashep.core.state.holds import PAUSED, Hold
from ashep.core.state.pauses import find_hold
from ashep.core.state.run import runner_of, sign_patience
from ashep.core.state.runner_state import NOT_SEEN
from ashep.core.state.world import World


@dataclass(frozen=True, slots=True)
class Capacity:
    """What is left to give away while one dispatch goes on."""

    slots: int
    lock: str | None
    readers: frozenset[str]
    """Issues with an unsettled read run."""
    writers: frozenset[str]
    """Issues with an unsettled write run."""
    takes: int | None
    """How many more issues may be taken."""
    starts: int | None = None
    """How many more runs may start this hour."""
    numbers: frozenset[tuple[str, int]] = frozenset()
    """The numbers of issues that are worked on in trees of their own."""
    branches: frozenset[tuple[str, str]] = frozenset()
    """Shared branches on which this dispatch begins or adopts issues or starts runs, and those."""
    used_up: Hold | None = None
    """The hold that stands for every run: want of budget."""
    tried: frozenset[str] = frozenset()
    """Providers on which a run that tries them has just started."""
    runs: tuple[concurrency_caps.Kind, ...] = ()
    """What the runs that have a slot count as where there are caps."""
    busy: str = ""
    """Why the machine counts as behind: then only one run is at work."""
    is_working: bool = False
    """A run is under way that waits for nobody."""

    def with_run(self, run: RunPlanned, policy: str | None, provider: str) -> "Capacity":
        """The room after this run started."""
        shared = run.access if run.branch is None else None
        return replace(
            self,
            slots=self.slots - 1,
            is_working=True,
            starts=None if self.starts is None else self.starts - 1,
            lock=run.issue if run.lock else self.lock,
            tried=self.tried | {provider},
            runs=self.runs + concurrency_caps.kinds(policy, run.phase, run.runner, run.agent, provider),
            readers=self.readers | {run.issue} if shared == "read" else self.readers,
            writers=self.writers | {run.issue} if shared == "write" else self.writers,
            branches=self.branches | {(run.branch, run.issue)} if is_shared(run.branch or "") else self.branches,
            numbers=self.numbers | {(run.issue, run.slot)} if run.branch is not None else self.numbers,
        )

    def with_adopted(self, adopted: IssueAdopted) -> "Capacity":
        """The room after this issue was adopted: it is not done on its branch."""
        if not is_shared(adopted.branch or ""):
            return self
        return replace(self, branches=self.branches | {(adopted.branch or "", adopted.issue)})


Kind = Literal["read", "write", "own", "take"]
"""For which kind of run there must be room; `own`: in a work tree of the issue's own; `take`: what is in the way is no
lack of room, but gives way to there being nothing left to take."""


class ForRoom(NamedTuple):
    """It waits for room: what is in the way depends on what else runs, and on nothing else of the issue itself."""

    kind: Kind
    code: str
    """The hold."""
    full: frozenset[concurrency_caps.Cap] = frozenset()
    """The caps that are in the way, all of them; then the hold is theirs."""


Waits = ForRoom | Literal["look", "change"]


class DispatchVerdict(NamedTuple):
    """What became of an issue in one dispatch."""

    facts: list[Fact]
    room: Capacity
    """What is left."""
    waits: Waits = "change"
    """For room; for a look at the tracker; or until something of its own, or what every rule reads, changes."""


ALL_TAKEN = Hold("max_issues", "this daemon took as many issues as it was asked to")
NO_TREES = {
    "impossible": Hold("no_repository", "worker.workspace is worktree, and this is no git repository with a commit"),
    "unknown": Hold("tree_unseen", "the work tree was not read since the start"),
}
"""Why an issue gets no work tree of its own."""
NO_BASE = Hold("no_base", "its work could land nowhere: the checkout is on no branch, and landing.base is not set")
NO_ROOM = Hold("disk_low", "the disk that holds the journal has hardly any room, for bytes or for files (inodes)")


def dispatch_all(world: World) -> list[Fact]:
    """Start what can be started now, and say for everything else why not.

    This is the rule. `ashep.core.reconcile.dispatcher` comes to the same without looking at every issue.
    """
    if not is_begun(world):
        return []
    room = capacity_of(world)
    facts: list[Fact] = []
    for queue, rule in QUEUES:
        for flow in sorted((flow for flow in world.flows.values() if queue_of(flow) == queue), key=rank):
            verdict = rule(world, flow, room)
            room = verdict.room
            facts += verdict.facts
    return facts


def is_begun(world: World) -> bool:
    """Whether a daemon has adopted what it needs to dispatch anything."""
    return world.policies is not None and world.agents is not None and world.daemon is not None


def capacity_of(world: World) -> Capacity:
    """What there is to give away."""
    worker, daemon, taken = world.settings.worker, world.daemon, takers(world)
    runs = [(issue, world.flows[issue].run) for issue in world.indexes.live]
    shared = [(issue, run.access) for issue, run in runs if run is not None and run.branch is None]
    writers = frozenset(issue for issue, access in shared if access == "write")
    takes = None if daemon is None or daemon.max_issues is None else max(daemon.max_issues - world.taken, 0)
    return Capacity(
        max(worker.max_concurrent_runs - len(taken), 0),
        world.lock if world.settings.worker.lock_work_tree else None,
        frozenset(issue for issue, access in shared if access == "read"),
        writers,
        takes,
        budgets.starts_left(world),
        frozenset(world.indexes.slots.items()),
        used_up=budgets.used_up(world),
        runs=concurrency_caps.under_way(world, taken),
        busy=world.machine_busy if world.settings.worker.hold_when_busy else "",
        is_working=not all(world.flows[issue].waits_for_input for issue in taken),
    )


WANTED = "wanted"
BEGUN = "begun"
CANDIDATE = "candidate"


def queue_of(flow: Flow) -> str | None:
    """Whether its phase is wanted, it may be one that another journal began, or may be taken; None: there is nothing
    to dispatch. What was begun is gone on with before anything is taken: it may be on a branch that both share.
    """
    if flow.stage == "work":
        return WANTED if flow.wanted else None
    if flow.stage == "idle" and flow.issue.stamp is not None and flow.issue.status in ("in_progress", "blocked"):
        return BEGUN
    return CANDIDATE if flow.stage in ("idle", "left") else None


Rank = tuple[int, str, str]


def rank(flow: Flow) -> Rank:
    """The order in which issues go first: priority, age, id."""
    return (flow.issue.priority, flow.issue.created_at.isoformat(), flow.issue.id)


def _hold(flow: Flow, hold: Hold) -> list[Fact]:
    told = (flow.code, flow.held_by) == (hold.code, hold.of)
    if hold.code in (*PAUSED, "repository"):
        told = told and flow.why == hold.why  # it may get another end, or be another fault
    return [] if told else [IssueHeld(flow.issue.id, *hold)]


# --- phases that are wanted ---------------------------------------------------------------------------------------


def plan_run(world: World, flow: Flow, room: Capacity) -> DispatchVerdict:
    """Plan a run of a phase that is wanted, or say why not."""
    policy = world.policy(flow)
    phase = policy.phase(flow.phase) if policy and flow.phase else None
    if (policy is None or phase is None) and flow.takeover is None:
        return DispatchVerdict(park_unknown_phase(world, flow, flow.phase), room)
    if flow.not_before is not None or flow.authors.doubts:
        return DispatchVerdict([], room)
    hold = NOT_ASKED if not_asked(world, flow) else keeps(world, flow)
    if hold is None and phase is not None:
        hold = _paused(world, flow, phase)
    if hold is not None:
        return DispatchVerdict(_hold(flow, hold), room)
    assert policy is not None and phase is not None
    if flow.counters.cycle_runs >= policy.limits.max_runs:
        why = f"{flow.counters.cycle_runs} runs in this cycle, the limit of the policy"
        return DispatchVerdict(park(flow, "max_runs", why), room)
    if wall_time(flow, world.now) >= policy.limits.max_wall_time:
        why = f"the cycle took longer than {policy.limits.max_wall_time}"
        return DispatchVerdict(park(flow, "max_wall_time", why), room)
    if (why := budgets.over_issue(world, flow)) is not None:
        return DispatchVerdict(park(flow, "budget", why), room)
    if flow.run is not None and not flow.run.forgettable:
        return DispatchVerdict([], room)  # it is still being stopped, or its tree read: a moment, not a reason
    hold, choice, waits = _start(world, flow, phase, room)
    if hold is not None:
        return DispatchVerdict(_hold(flow, hold), room, waits)
    assert choice is not None and choice.agent is not None
    if choice.agent.is_human:
        question = f"{phase.name}: {', '.join(phase.needs)}. Is it done?"
        human = Human(ask=question)
        return DispatchVerdict(ask(world, flow, phase.name, question, choice.why, human=human), room)
    return _plan(world, flow, phase, choice, choice.agent, room)


def _paused(world: World, flow: Flow, phase: Phase) -> Hold | None:
    """Say which pause keeps a run of this phase from starting; asking a person starts none."""
    if not world.pauses:
        return None
    assert world.agents is not None
    agent = choose_for(world, flow, phase)[1].agent
    if agent is not None and agent.is_human:
        return None
    model = model_of(agent, world.seen) if agent else None
    return find_hold(world.pauses, model.provider if model else None)


def _kind(world: World, flow: Flow, phase: Phase) -> Literal["read", "write", "own"]:
    """Which kind of room a run of this phase needs; an issue that has a tree of its own goes on in it."""
    if flow.work.own is not None or own_trees(world):
        return "own"
    return "write" if phase.writes else "read"


def _start(world: World, flow: Flow, phase: Phase, room: Capacity) -> tuple[Hold | None, Choice | None, Waits]:
    """Find what stands in the way of a run of this phase, and what is waited for then, or the agent for it."""
    hold, choice = _agent(world, flow, phase)
    if hold is not None or choice is None or choice.agent is None or choice.agent.is_human:
        return hold, choice, "change"
    kind = _kind(world, flow, phase)
    if kind == "own" and (taken := branch_taken(world, flow, room.branches)) is not None:
        return taken, None, "change"
    if (anew := agent_server.hold(world, choice.agent.runner.type)) is not None:
        return anew, None, "change"
    way = in_the_way(world, flow.issue.id, room, kind)
    ways: list[tuple[Hold, ForRoom]] = [] if way is None else [(way, ForRoom(kind, way.code))]
    full, choice = concurrency_caps.in_the_way(world, flow, phase, choice, room.runs)
    ways += [(hold, ForRoom("take", hold.code, of)) for hold, of in full]
    # of several the one that was told stands for as long as it is in the way: else many would be told at each start
    told = ((hold, waits) for hold, waits in ways if (hold.code, hold.of) == (flow.code, flow.held_by))
    hold, waits = next(told, ways[0] if ways else (None, "change"))
    return hold, choice, waits


def _agent(world: World, flow: Flow, phase: Phase) -> tuple[Hold | None, Choice | None]:
    """Find what stands in the way of any run of this phase, whatever else runs, or the agent that is chosen for it."""
    assert world.agents is not None
    hold, choice = choose_for(world, flow, phase)
    if hold is not None:
        return hold, None
    if choice.agent is None:
        against = "; ".join(f"{agent}: {why}" for agent, why in choice.others[:8])
        return Hold("no_agent", f"no agent can take {phase.name} ({against})"), None
    if choice.agent.is_human:
        return None, choice
    if not world.is_up(name := choice.agent.runner.type):
        seen = world.seen.get(name)
        state = seen.state if seen else "away"
        why = REFUSES.get(state, "does not answer")
        detail = f": {seen.detail[:300]}" if seen and seen.detail else ""
        return Hold(f"runner_{state}", f"{spoken(name)} {why}{detail}", "" if name == OPENCODE else name), None
    if flow.work.own is None and (none := NO_TREES.get(mode(world))) is not None:
        return none, None
    if flow.work.own is None and mode(world) == "worktree" and not has_base(world):
        return NO_BASE, None
    if _kind(world, flow, phase) == "own" and (fault := repository.hold_of(world)) is not None:
        return fault, None
    if world.tracker is None or world.tracker_error:
        return Hold("tracker_away", f"the tracker does not answer: {world.tracker_error[:200]}"), None
    return None, choice


def in_the_way(world: World, issue: str, room: Capacity, kind: Literal["read", "write", "own"]) -> Hold | None:
    """Say what else is in the way of a run of this issue; None: there is room."""
    if room.used_up is not None:
        return room.used_up
    if room.starts is not None and room.starts <= 0:
        return Hold("runs_per_hour", f"{world.settings.budgets.runs_per_hour} runs started in an hour, as many as may")
    if room.slots <= 0:
        return Hold("slot", f"all {world.settings.worker.max_concurrent_runs} slots are taken")
    if room.busy and room.is_working:
        return Hold("machine_busy", f"the machine is behind, and other runs are under way: {room.busy}")
    if kind == "own":
        return None
    if world.settings.worker.lock_work_tree:
        if room.lock not in (None, issue):
            return Hold("work_tree", f"{room.lock} holds the work tree")
        others = (room.writers | room.readers if kind == "write" else room.writers) - {issue}
        if others:
            return Hold("work_tree", f"{min(others)} still works in the tree")
    watched = kind == "write" and not world.settings.worker.allow_dirty and not room.writers
    if watched and (foreign := foreign_changes(world)):
        return Hold("tree_dirty", f"the work tree has changes that are not ashep's: {', '.join(foreign[:5])}")
    return None


def _plan(world: World, flow: Flow, phase: Phase, choice: Choice, agent: Agent, room: Capacity) -> DispatchVerdict:
    provider, attempt = provider_of(world, agent) or "", flow.attempt + 1
    if provider in room.tried and is_tried(world, provider):
        return DispatchVerdict([], room)  # what it is held for shows when that start is known: `shut` is an input
    alone = _kind(world, flow, phase) == "own"
    branch = branch_at(world, flow) if alone else None
    sandbox = agent.sandbox if phase.writes else None
    planned = RunPlanned(
        issue=flow.issue.id,
        run=f"{flow.issue.id}/{phase.name}.{flow.visit}.{attempt}",
        phase=phase.name,
        visit=flow.visit,
        attempt=attempt,
        agent=agent.id,
        runner=agent.runner.type,
        slug=agent.runner.agent_slug,
        model=model_of(agent, NOT_SEEN),
        capabilities=phase.needs,
        access="write" if phase.writes else "read",
        timeout=phase.timeout * agent.performance.timeout_multiplier,
        reuse=_session(flow, phase, agent, sandbox),
        lock=phase.writes and not alone and world.settings.worker.lock_work_tree,
        why=choice.why,
        others=choice.others,
        stall_after=phase.stall.after,
        tool_timeout=phase.stall.tool_timeout,
        prompt="resume" if flow.resume is not None else "task",
        branch=branch,
        sign_after=sign_patience(flow.doubts) if flow.doubts else None,
        slot=slot_of(flow.issue.id, room.numbers) if alone else 0,
        onto=world.tree.branch if alone and world.tree else None,
        sandbox=sandbox,
    )
    return DispatchVerdict([planned], room.with_run(planned, flow.policy, provider))


def _session(flow: Flow, phase: Phase, agent: Agent, sandbox: Sandbox | None) -> str | None:
    """Give the session to go on in, which is never one of another runner, or that was in another sandbox."""
    wish: Literal["new", "reuse"] | ReuseFrom = phase.session or agent.runner.session_strategy
    last, here = flow.run, (agent.id, phase.name, flow.visit)
    stopped = last is not None and last.refused > 0 and (last.agent, last.phase, last.visit) == here  # by its provider
    found = dict(flow.sessions).get(phase.name) if wish == "reuse" or flow.resume is not None or stopped else None
    if isinstance(wish, ReuseFrom) and flow.resume is None and not stopped:
        found = dict(flow.sessions).get(wish.reuse_from)
    if found is None or runner_of(found) != agent.runner.type:
        return None
    return found if dict(flow.sandboxes).get(found) == sandbox else None


# --- issues that may be taken -------------------------------------------------------------------------------------


def candidate(world: World, flow: Flow, room: Capacity) -> DispatchVerdict:
    """Take an issue that may be taken, or say why not."""
    assert world.policies is not None
    if flow.look_again or flow.authors.doubts or stands(world, flow):
        return DispatchVerdict([], room)  # its own reason stands until a person acts
    if flow.run is not None and not flow.run.settled:
        return DispatchVerdict([], room)
    if is_ours(world, flow.issue) and flow.stage == "idle" and not not_asked(world, flow):
        hold, name, policy = policy_for(world.policies, flow.issue, world.settings.labels.policy_prefix)
        if name is not None and policy is not None:
            adopted = adopt(world, flow, name, policy)
            return DispatchVerdict([adopted], room.with_adopted(adopted))
        return DispatchVerdict(_hold(flow, hold or Hold("no_policy", "no policy claims it")), room)
    hold, name, policy = eligible(world, flow)
    if hold is not None or policy is None or name is None:
        return DispatchVerdict(_hold(flow, hold or Hold("no_policy", "no policy claims it")), room)
    if not world.ready_fresh:
        return DispatchVerdict([], room, "look")  # one is due at once; nothing about this issue has changed
    if (paused := find_hold(world.pauses, None)) is not None:
        return DispatchVerdict(_hold(flow, paused), room)
    if world.disk_low:
        return DispatchVerdict(_hold(flow, NO_ROOM), room)
    if (fails := base_hold(world, name, policy)) is not None:
        return DispatchVerdict(_hold(flow, fails), room)
    if room.takes is not None and room.takes <= 0:
        return DispatchVerdict(_hold(flow, ALL_TAKEN), room)
    names = phase_labels(world, flow.issue)
    phase = policy.phase(names[0]) if names else policy.phases[0]
    assert phase is not None
    counters, visit = replace(flow.counters, cycle_visits=()), flow.times(phase.name) + 1
    fresh = replace(flow, policy=name, visit=visit, attempt=0, phase=phase.name, counters=counters)
    if phase.human is None:
        if (paused := _paused(world, fresh, phase)) is not None:
            return DispatchVerdict(_hold(flow, paused), room, ForRoom("take", paused.code))
        hold, choice, waits = _start(world, fresh, phase, room)
        if hold is not None:
            return DispatchVerdict(_hold(flow, hold), room, ForRoom("take", hold.code) if waits == "change" else waits)
        if choice is not None and choice.agent is not None and not choice.agent.is_human:
            return _take(world, fresh, phase, choice, choice.agent, room)
    taken: list[Fact] = [IssueTaken(flow.issue.id, name, f"ready, and the policy {name} claims it")]
    entered = begin_cycle(world, fresh, phase.name, "taken", by_hand=bool(names))
    return DispatchVerdict(taken + entered, _count_taken(room))


def _take(world: World, flow: Flow, phase: Phase, choice: Choice, agent: Agent, room: Capacity) -> DispatchVerdict:
    assert flow.policy is not None
    plan = _plan(world, flow, phase, choice, agent, _count_taken(room))
    if not plan.facts:
        return DispatchVerdict([], room)
    by_hand = bool(phase_labels(world, flow.issue))
    entered = begin_cycle(world, flow, phase.name, f"taken under the policy {flow.policy}", by_hand=by_hand)
    why = f"ready, priority {flow.issue.priority}, and the policy {flow.policy} claims it"
    facts: list[Fact] = [IssueTaken(flow.issue.id, flow.policy, why), *entered]
    if not any(isinstance(fact, PhaseEntered) for fact in entered):
        return DispatchVerdict(facts, room)
    return DispatchVerdict(facts + plan.facts, plan.room)


def _count_taken(room: Capacity) -> Capacity:
    return room if room.takes is None else replace(room, takes=room.takes - 1)


QUEUES = ((WANTED, plan_run), (BEGUN, candidate), (CANDIDATE, candidate))
"""The queues in their order, and the rule of each."""
