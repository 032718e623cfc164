"""What holds after every turn of every life, whatever happens. Each law raises AssertionError and says what broke."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import chain
from typing import get_args

from ashep.core.analysis.issue_status import State, account
from ashep.core.facts import commands as c
from ashep.core.facts import delivery, issues, resources, sources
from ashep.core.facts import runs as facts_runs
from ashep.core.facts.commands import WRITES, Command
from ashep.core.facts.records import Entry
from ashep.core.facts.runs import Model
from ashep.core.issues.routing import following
from ashep.core.policy.flags import must_ask
from ashep.core.policy.policies import CLOSE
from ashep.core.policy.runner_kinds import OPENCODE
from ashep.core.reconcile.dispatch import capacity_of
from ashep.core.reconcile.evolve import evolve
from ashep.core.resources import notices as telling
from ashep.core.resources.budgets import of_all, of_flow, used_up
from ashep.core.state import providers, runner_state
from ashep.core.state.flow import Flow
from ashep.core.state.holds import NO_BUDGET, PAUSED
from ashep.core.state.indexes import turn
from ashep.core.state.pauses import dues, find_hold
from ashep.core.state.run import Run, provider_of, runner_of
from ashep.core.state.runner_state import NOT_SEEN
from ashep.core.state.spending import TIMER, next_budget
from ashep.core.state.timers import flow_dues, split_timer
from ashep.core.state.world import World
from ashep.journal.reader import ReadBatch
from tests.core import given
from tests.core.world_of import MadeUp

SESSION = (
    c.OpenSession, c.PreparePrompt, c.SendPrompt, c.AnswerRequest, c.StopTurn, c.ReadTree, c.PrepareTree, c.SealTree,
    c.StopOrphan, c.RemoveTree,
)  # fmt: skip
AT_WORK = ("work", "person", "finishing", "giving_back")
"""Stages of an issue that somebody here goes on with."""
SETTLING = (c.StopTurn, c.ReadTree, c.SealTree)
UNDOING = (c.WriteIssue, c.PostComment)
FREEING = (c.ReclaimIssue, c.PostComment)
"""What is done about an issue of a dead daemon's."""
"""What may still be asked for once an issue is somebody else's: our own run is ended in order."""


@dataclass
class Laws:
    """Checks each turn of a life; remembers what the counting laws need."""

    signs: bool = True
    """Whether the made-up world says itself which turns show signs of life."""
    open: dict[str, set[str]] = field(default_factory=dict)
    runs: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    cycle_runs: Counter[str] = field(default_factory=Counter)
    cycle_visits: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    refused: set[str] = field(default_factory=set)
    """Runs whose turn a provider's refusal has ended."""
    continued: Counter[str] = field(default_factory=Counter)
    succeeded: dict[str, str] = field(default_factory=dict)
    """The phase whose run has just succeeded, by issue."""

    def __call__(self, made: MadeUp, entries: Sequence[Entry]) -> None:
        """Check a turn."""
        world = made.world
        for entry in entries:
            if isinstance(entry.body, Command):
                self._asked_once(entry.body)
                if isinstance(entry.body, c.IssueCommand):
                    _allowed(world, entry.body)
                if isinstance(entry.body, c.MoveBase):
                    may_move(world, entry.body)
                if isinstance(entry.body, c.RemoveTree):
                    may_go(world, entry.body)
            else:
                self._counted(world, entry.body)
        for entry in entries:
            if isinstance(entry.body, resources.TimerDue):
                the_wait_is_over(world, entry.body)
            if self.signs and isinstance(entry.body, facts_runs.RunEnded) and entry.body.state == "stalled":
                assert entry.body.run in made.silent, f"{entry.body.run} was alive"
        named = {str(getattr(entry.body, "issue", "")) for entry in entries}
        touched = [name for name in sorted(named) if name in world.flows]
        for name in touched:
            flow = world.flows[name]
            self.open[name] = {command.key for command in flow.open}
            at_most_one_write(flow)
            accounted(world, flow)
            somebody_is_at_work(world, flow)
            no_request_is_forgotten(world, flow)
        the_tree_is_shared(world)
        budgets_are_kept(made, entries)
        providers_are_left_alone(made, entries)
        caps_are_kept(world, entries)
        sources_are_asked(made, entries)

    def _asked_once(self, command: Command) -> None:
        lane = command.issue if isinstance(command, c.IssueCommand) else ""
        keys = self.open.setdefault(lane, set())
        assert command.key not in keys, f"{command.key} is asked again while its answer is due"
        keys.add(command.key)

    def _counted(self, world: World, fact: object) -> None:
        if key := getattr(fact, "key", None):
            self.open.get(getattr(fact, "issue", None) or "", set()).discard(key)
            self.open.get("", set()).discard(key)
        if isinstance(fact, facts_runs.RunEnded):
            assert fact.run not in self.ended, f"{fact.run} ends twice"
            self.ended.add(fact.run)
        match fact:
            case issues.CycleBegan(issue=issue):
                self.succeeded.pop(issue, None)
                self.cycle_runs[issue] = 0
                self.cycle_visits = Counter({k: n for k, n in self.cycle_visits.items() if k[0] != issue})
            case issues.PhaseEntered(issue=issue, phase=phase):
                self._along_an_edge(world, issue, phase)
                self.cycle_visits[issue, phase] += 1
                self.failures[issue] = 0
                bound = self._phase(world, issue, phase)
                assert bound is None or self.cycle_visits[issue, phase] <= bound.max_visits, f"{phase} has no bound"
            case issues.IssueFinished(issue=issue):
                self._along_an_edge(world, issue, CLOSE)
            case delivery.WorkVerified(issue=issue, run=run) if run and world.flows[issue].work.unproven:
                self.succeeded.pop(issue, None)  # the phase is repeated, or a person asked
            case issues.IssueTaken(issue=issue):
                assert find_hold(world.pauses, None) is None, f"{issue} is taken in a pause"
            case facts_runs.RunPlanned(issue=issue, run=run):
                assert find_hold(world.pauses, fact.model.provider if fact.model else None) is None, f"{run} in a pause"
                self._drained(world, run, fact.runner)
                assert run not in self.runs, f"{run} is planned twice"
                self.runs.add(run)
                self.cycle_runs[issue] += 1
                self._bounded(world, issue)
                _may_run(world, world.flows[issue])
            case facts_runs.RunWithdrawn(issue=issue):
                self.cycle_runs[issue] -= 1
            case facts_runs.TurnSeen(refused=refused, state="finished", run=run) if refused is not None:
                self.refused.add(run)
            case facts_runs.OutcomeRejected(issue=issue, run=run, then="continue"):
                self.continued[run] += 1
                bound = self._phase(world, issue, run.rpartition("/")[2].partition(".")[0])
                assert bound is None or self.continued[run] <= bound.retry.continues, f"{run} goes on without a bound"
            case facts_runs.RunEnded(issue=issue, counts=False):
                self.cycle_runs[issue] -= 1
            case facts_runs.RunEnded(issue=issue, run=run, state="succeeded"):
                self.succeeded[issue] = run.rpartition("/")[2].partition(".")[0]
            case facts_runs.RunEnded(issue=issue, run=run, state="failed" | "timed_out" | "stalled" as state):
                # a stall is one whatever its diagnosis came to
                assert run not in self.refused or state == "stalled", f"{run} is blamed for what its provider did"
                self.failures[issue] += 1
            case issues.RetryScheduled(issue=issue, phase=phase):
                bound = self._phase(world, issue, phase)
                assert bound is None or self.failures[issue] < bound.retry.max_attempts, "attempts have no bound"
            case delivery.TreeSealed(issue=issue, unwritable=names) if names:
                self.succeeded.pop(issue, None)  # nothing of it could land, whatever it is said to be
            case issues.PersonAsked(issue=issue):
                self.succeeded.pop(issue, None)  # what follows is the question's answer, or its deadline
            case facts_runs.RequestJudged(verdict="ask", due=due):
                assert due is not None, "a person is asked without an end"
                assert due <= world.now + world.settings.questions.deadline, f"{fact} is open for too long"
            case facts_runs.RequestJudged(by=by):
                assert not by.startswith("ashep-"), f"{by} is no person"
            case issues.PersonAnswered(actor=actor):
                assert not actor.startswith("ashep-"), f"{actor} is no person"
            case _:
                pass

    def _drained(self, world: World, run: str, runner: str) -> None:
        recycling, seen = runner_state.get_server(world.servers, runner).recycling, world.seen.get(runner)
        here = recycling is not None and seen is not None and recycling.instance == seen.instance
        assert not here, f"{run} begins on a server that is to be begun anew"

    def _along_an_edge(self, world: World, issue: str, target: str) -> None:
        source = self._phase(world, issue, self.succeeded.pop(issue, ""))
        policy = world.policy(world.flows[issue])
        if source is not None and policy is not None:
            ways = {*source.next.values(), *source.when_flags.values(), *source.allow_suggested}
            ways.add(following(policy, source))
            assert target in ways, f"a success of {source.name} leads to {target}"

    def _phase(self, world: World, issue: str, name: str) -> given.Phase | None:
        policy = world.policy(world.flows[issue])
        return policy.phase(name) if policy else None

    def _bounded(self, world: World, issue: str) -> None:
        policy = world.policy(world.flows[issue])
        assert policy is not None
        assert self.cycle_runs[issue] <= policy.limits.max_runs, f"{issue} has more runs than its limit"


def _may_run(world: World, flow: Flow) -> None:
    labels = world.settings.labels
    writes = any(isinstance(one, c.WriteIssue) and one.assignee == world.actor for one in flow.open)
    put_back = flow.authors.undo is not None or writes  # an agent closed or assigned it; the run begins after the write
    assert flow.issue.status != "closed" or put_back, "a run of a closed issue"
    assert not {labels.excluded, labels.paused} & set(flow.issue.labels), "a run of an issue that people keep"
    assert flow.issue.assignee in (None, world.actor) or put_back, "a run of somebody else's issue"


def _allowed(world: World, command: c.IssueCommand) -> None:
    flow = world.flows[command.issue]
    if flow.takeover is not None:
        assert not isinstance(command, c.SendPrompt), f"a prompt while a person has the session: {command}"
        stops = isinstance(command, c.StopTurn) and not world.apart(runner_of(command.session))
        assert not (stops and flow.takeover.people), f"a person's turn is stopped: {command}"
    if flow.stage == "closed":
        assert isinstance(command, (*SETTLING, c.RemoveTree)), f"a closed issue asks for {command}"
    if flow.stage in ("left", "idle"):
        more = (*(FREEING if flow.expired else ()), *(UNDOING if _undoes(flow) else ()))
        assert isinstance(command, (*SETTLING, c.ReadIssue, c.ReadAuthors, *more)), (
            f"{flow.stage} issue asks for {command}"
        )


def _undoes(flow: Flow) -> bool:
    """Whether an agent's change of an issue that is nobody's is put back, and said."""
    return flow.authors.undo is not None or any(name.startswith("undone.") for name, _ in flow.comments)


def the_wait_is_over(world: World, fact: resources.TimerDue) -> None:
    """A timer that was due is not due again: the machine would turn on the spot."""
    name, issue = split_timer(fact.key)
    assert (fact.key, fact.due) not in dues(world.pauses), f"{fact} is due for ever"
    assert (fact.key, fact.due) not in telling.dues(world), f"{fact} is due for ever"
    assert (fact.key, fact.due) not in providers.dues(world.outages), f"{fact} is due for ever"
    assert name != TIMER or next_budget(world.spending) != fact.due, f"{fact} is due for ever"
    assert (fact.key, fact.due) not in [*runner_state.dues(world.servers)], f"{fact} is due for ever"
    flow = world.flows.get(issue)
    assert flow is None or (name, fact.due) not in flow_dues(flow), f"{fact} is due for ever"


def at_most_one_write(flow: Flow) -> None:
    """At most one write to the issue and one to the session is open."""
    assert sum(isinstance(command, WRITES) for command in flow.open) <= 1, f"two writes are open: {flow.open}"
    assert sum(isinstance(command, SESSION) for command in flow.open) <= 1, f"two effects on a run: {flow.open}"


def may_move(world: World, move: c.MoveBase) -> None:
    """The base moves for one issue at a time, to what was verified where anything is to be, and what people know of."""
    flow = world.flows[move.issue]
    landing, own, evidence = flow.work.landing, flow.work.own, flow.work.evidence
    assert landing is not None
    assert own is not None
    assert (move.head, move.old, move.new) == (own.head, landing.base, landing.commit), f"another base moves: {move}"
    assert not must_ask(own.flags) or own.approved == own.head, f"nobody was asked about {own.flags}"
    if landing.verify:
        assert evidence is not None
        assert evidence.commit == move.new, f"{move.new} was not verified"
        assert not evidence.lacking(flow.work.waived), f"{move.new} does not hold: {evidence}"
    others = [
        command
        for name in world.indexes.unclosed
        if name != move.issue and world.flows[name].stage == "finishing"
        for command in world.flows[name].open
        if isinstance(command, (c.IntegrateWork, c.MoveBase))
    ]
    assert not others, f"two land at once: {move} and {others}"


def may_go(world: World, removal: c.RemoveTree) -> None:
    """A tree goes once its issue has been closed for as long as is set, at least, and nobody is at work there."""
    flow, keep = world.flows[removal.issue], world.settings.trees.keep
    assert flow.stage == "closed", f"the tree of {removal.issue} goes, which is not closed"
    assert keep is not None, f"the tree of {removal.issue} goes, and all are to be kept"
    assert flow.since is not None
    assert world.now - flow.since >= keep, f"the tree of {removal.issue} goes before its time"
    others = [one for one in world.flows.values() if one.work.own and one.work.own.branch == removal.branch]
    used = [one for one in others if one.stage != "closed" and one.work.own and one.work.own.base]
    assert not used, f"{removal.branch} is used"


def accounted(world: World, flow: Flow) -> None:
    """Exactly one state, with a reason."""
    told = account(world, flow.issue.id)
    assert told.state in get_args(State)
    assert told.reason, f"no reason: {told}"
    if flow.stage == "closed":
        assert told.state == "closed"
    if flow.stage == "parked":
        assert told.state == "parked"
        assert told.code


def somebody_is_at_work(world: World, flow: Flow) -> None:
    """No issue of ours without somebody working on it or something it waits for."""
    if not flow.active or flow.open or flow.effect_after is not None or flow.write_after is not None:
        return
    run = flow.run
    if flow.given_up:  # the tracker takes nothing of it; `status` and the notices say what it is
        assert flow.stage == "parked", f"nothing is asked for, and it is {flow.stage}"
        return
    if run is not None and not run.settled:
        away = not world.is_up(OPENCODE)
        waits = run.stop_due is not None  # whether its prompt begins after all
        assert run.prompt.sent or away or waits, f"nobody works on {run}"
        return
    if flow.stage == "person":
        assert flow.question is not None, "nobody knows the question"
        assert posted(flow), "the question is not asked"
    elif flow.stage == "parked":
        assert flow.code, "parked without a reason"
        assert posted(flow), "nobody is told of the parking"
    elif flow.takeover is not None:
        takeover = flow.takeover
        ends = (
            takeover.due
            or takeover.busy
            or takeover.fresh_after
            or (takeover.label != "none" and takeover.cooldown is None)
        )
        assert flow.wanted, f"a person is done, and nothing goes on: {flow}"
        assert ends or takeover.label != "none", f"nothing ends it that a person has the session: {takeover}"
    elif flow.stage == "finishing":
        landing, first = flow.work.landing, turn(world.indexes)
        assert landing is not None
        assert landing.onto or landing.into, f"finishing and nothing under way: {flow}"
        queued = landing.onto and first is not None and first != flow.issue.id
        assert landing.due or queued or flow.issue.id in world.indexes.reviewed, f"nobody lands it: {flow}"
        assert landing.due is None or flow.code, f"waits to land without a reason: {flow}"
    else:
        assert flow.stage == "work", f"{flow.stage} and nothing under way: {flow}"
        assert flow.wanted, f"no run, none wanted: {flow}"
        assert flow.code or flow.not_before, f"wanted, not started, and no reason: {flow}"
        assert flow.code not in PAUSED or world.pauses or flow.not_before, f"held by a pause that is over: {flow}"
        assert flow.code != "recycling" or runner_state.get_server(world.servers, OPENCODE).recycling, (
            f"held for a recycling that is over: {flow}"
        )


def no_request_is_forgotten(world: World, flow: Flow) -> None:
    """What a session asks is judged at once, has an end, and is shown to people where one is to answer."""
    run = flow.run
    if run is None or run.ended or flow.stage != "work":
        return
    dues = dict(flow_dues(flow))
    for pending in run.asks.requests:
        assert pending.verdict is not None, f"{pending} is not judged"
        assert pending.verdict != "ask" or "input" in dues or flow.takeover is not None, f"{pending} has no end"
    asks = [pending.request.id for pending in run.asks.requests if pending.verdict == "ask"]
    assert not asks or flow.waits_for_input, f"nobody is told of {asks}"
    assert flow.target is None or flow.target.input == flow.waits_for_input, f"the tracker tells otherwise: {flow}"
    if flow.waits_for_input:
        assert not {"deadline", "stall", "sign"} & set(dues), f"its times go on while it waits: {dues}"
        assert run.asks.requests, f"{run.id} waits for nothing"


def posted(flow: Flow) -> bool:
    """Whether the tracker shows what it should."""
    return flow.target is not None and flow.written is not None and flow.target.seq == flow.written.seq


def the_tree_is_shared(world: World) -> None:
    """Slots are not exceeded, nor kept for nothing, and a write run excludes every other run."""
    live = [*world.indexes.live]
    runs = [run for name in live if (run := world.flows[name].run) is not None]
    assert len(runs) == len(live), "a run that is not there takes a slot"
    most, turns = world.settings.worker.max_concurrent_runs, {one.id for one in runs if not one.ended or one.stop}
    assert len(turns) <= most, "more turns than slots"
    given_up = [run.id for name in live if world.flows[name].stage not in AT_WORK and (run := world.flows[name].run)]
    most_taken = len(turns.union(run.id for run in runs if run.id not in given_up))
    assert capacity_of(world).slots >= most - most_taken, f"nothing is done for {given_up}, and slots are taken"
    shared = [run for run in runs if run.branch is None]
    if world.settings.worker.lock_work_tree and any(run.access == "write" for run in shared):
        assert len(shared) == 1, f"a write run shares the tree: {[run.id for run in shared]}"
    branches = [run.branch for run in runs if run.branch is not None]
    assert len({*branches}) == len(branches), f"two runs in one tree: {branches}"
    numbers = [world.indexes.slots[name] for name in live if (run := world.flows[name].run) and run.branch]
    assert len({*numbers}) == len(numbers), f"two issues with one number: {numbers}"
    strayed = [
        run.id for run in shared if (own := world.flows[run.id.split("/")[0]].work.own) and not run.ended and own.path
    ]
    assert not strayed, f"in the shared tree, and has one of its own: {strayed}"


def sources_are_asked(made: MadeUp, entries: Sequence[Entry]) -> None:
    """Nothing begins, and no agent hears more, that nobody whose word counts asks for at its source."""
    for entry in entries:
        match entry.body:
            case sources.SourceWordJudged(counts=True, why=why) as verdict:
                assert "eve" not in why, f"a stranger's word counts: {why}"
                made.forge.judged(verdict)
            case issues.IssueTaken(issue=issue) if issue in made.forge.views:
                assert made.forge.is_asked_for(issue), f"{issue} is taken, and nobody asks for it"
            case c.SendPrompt(issue=issue) if issue in made.forge.views:
                code = made.world.sources[issue].code
                assert code in ("", "edited"), f"an agent goes on with {issue}, which is {code}"
            case _:
                pass


def budgets_are_kept(made: MadeUp, entries: Sequence[Entry]) -> None:
    """Nothing starts without budget, no fuse is overstepped, and what is counted is what was used."""
    world, limits = made.world, made.world.settings.budgets
    planned = [entry.body for entry in entries if isinstance(entry.body, facts_runs.RunPlanned)]
    if planned:
        assert used_up(world) is None, f"{planned} without budget"
        spent = {gauge.name.partition(" on ")[0] for gauge in of_all(world) if gauge.used >= gauge.limit}
        assert not spent & {run.model.provider for run in planned if run.model}, f"{planned} of a spent provider"
    recent = [one for one in made.entries[-400:] if one.at > world.now - timedelta(hours=1)]
    if limits.runs_per_hour is not None:
        assert sum(isinstance(one.body, facts_runs.RunPlanned) for one in recent) <= limits.runs_per_hour, (
            "too many runs"
        )
    if limits.writes_per_minute is not None:
        late = [one for one in recent if one.at > world.now - timedelta(minutes=1)]
        assert sum(isinstance(one.body, WRITES) for one in late) <= limits.writes_per_minute, "too many writes"
    for name in world.indexes.live:
        flow = world.flows[name]
        over = [gauge for gauge in of_flow(world, flow) if gauge.used >= gauge.limit]
        assert not over or flow.run is None or flow.run.ended, f"{name} goes on without budget: {over}"


def providers_are_left_alone(made: MadeUp, entries: Sequence[Entry]) -> None:
    """Nothing starts on a provider that takes nothing, and one run alone where it may be tried."""
    for outage in made.world.outages:
        begun = [entry.body for entry in entries if isinstance(entry.body, facts_runs.RunPlanned)]
        planned = [run.run for run in begun if run.model is not None and run.model.provider == outage.provider]
        assert outage.tried_since is not None or not planned, f"{planned} on {outage}"
        assert len(planned) <= 1, f"{planned} try {outage}"
        tried = outage.tried_since
        under_way = (made.world.flows[name].run for name in made.world.indexes.live)
        runs = [run for run in under_way if run is not None and not run.ended]
        late = [
            run.id for run in runs if tried and run.planned > tried and provider_of(run, NOT_SEEN) == outage.provider
        ]
        assert len(late) <= 1, f"{late} try {outage}"


def caps_are_kept(world: World, entries: Sequence[Entry]) -> None:
    """What has just started is none too many of its agent's, its provider's, its phase's or its runner's."""
    flows = [world.flows[name] for name in world.indexes.live]
    turns = [(flow, flow.run) for flow in flows if flow.run is not None and (not flow.run.ended or flow.run.stop)]
    default = seen.default if (seen := world.seen.get(OPENCODE)) else None
    for planned in (entry.body for entry in entries if isinstance(entry.body, facts_runs.RunPlanned)):
        flow, name = world.flows[planned.issue], (planned.model or default or given.LARGE).provider
        policy, budget = world.policy(flow), world.settings.budgets.providers.get(name)
        agent = next((one for one in world.agents.agents if one.id == planned.agent), None) if world.agents else None
        phase = policy.phase(planned.phase) if policy else None
        assert phase is not None, planned
        assert agent is not None, planned
        many = {
            "agent": (agent.max_runs, [run.id for _, run in turns if run.agent == agent.id]),
            "provider": (budget and budget.max_runs, [run.id for _, run in turns if model_of(run, default) == name]),
            "phase": (phase.max_runs, [r.id for f, r in turns if (f.policy, r.phase) == (flow.policy, phase.name)]),
            "runner": (world.settings.runners.max_runs(OPENCODE), [run.id for _, run in turns]),
        }
        beyond = {what: (most, found) for what, (most, found) in many.items() if most and len(found) > most}
        assert not beyond, f"{planned.run} is one too many: {beyond}"


def model_of(run: Run, default: Model | None) -> str:
    """The provider of a run's own agent."""
    model = run.model or default
    return model.provider if model else ""


def at_rest(made: MadeUp) -> None:
    """After a calm while nothing hangs: all is closed, not ours, waits for people, or is held with a reason."""
    for name, flow in made.world.flows.items():
        told = account(made.world, name)
        assert told.state != "running", f"{name} hangs: {told} {flow.run}"
        if flow.stage == "work":
            assert flow.code in ("paused", "no_agent", "work_tree", *NO_BUDGET), f"{name} hangs: {told} {flow}"
        assert not flow.open, f"{name} has open intents: {flow.open}"
    for name, flow in made.world.flows.items():
        if (flow.stage, flow.code) == ("closed", "shepherd") and flow.work.own is not None:
            assert flow.work.own.head in made.base.landed.get(name, ()), (
                f"{name} is closed, and its work landed nowhere"
            )
    for name, heads in made.base.landed.items():
        assert len(heads) == len({*heads}), f"the work of {name} landed twice: {heads}"
    taken = [command.request for command in made.delivered]
    assert len(taken) == len(set(taken)), f"answered twice: {taken}"
    everybody_was_told(made)


def everybody_was_told(made: MadeUp) -> None:
    """Each target was told of each notice, or it was over before, or was given up; and once but for lost answers."""
    bodies = [entry.body for entry in made.entries]
    left = Counter(
        (one.target, id) for one in bodies if isinstance(one, resources.NoticesGathered) for id in one.left_out
    )
    left += Counter(
        (one.target, id) for one in bodies if isinstance(one, resources.NoticesGivenUp) for id in one.notices
    )
    unsure = {
        (sent.target, one.id)
        for sent in bodies
        if isinstance(sent, c.SendNotice)
        for one in sent.notices
        if not any(isinstance(body, resources.NoticeSent) and body.key == sent.key for body in bodies)
    }
    told = Counter(made.told)
    restarted = sum(isinstance(body, resources.DaemonStarted) for body in bodies) > 1
    for entry in made.entries:
        if isinstance(entry.body, resources.NoticeWanted):
            for target in entry.body.to:
                about = (target, entry.seq)
                assert told[about] or left[about], f"{target} was never told {entry.body}"
                assert told[about] <= 1 or about in unsure or restarted, f"{target} was told {told[about]} times"
                assert not (told[about] and left[about]) or about in unsure or restarted


def folded(entries: Iterable[Entry], world: World | None = None) -> World:
    """Fold entries from nothing, or from what was known before."""
    world = world or World()
    for entry in entries:
        world = evolve(world, entry)
    return world


def entries_of(found: Iterable[ReadBatch]) -> Iterator[Entry]:
    """Give the entries of these batches of a journal."""
    return chain.from_iterable(batch.entries for batch in found)


def of_batches(found: Iterable[ReadBatch], world: World | None = None) -> World:
    """Fold what stands in these batches of a journal, too."""
    return folded(entries_of(found), world)
