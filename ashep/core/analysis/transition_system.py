"""What can happen to an issue where it stands, and where the rules of the core lead it then.

Nothing here knows what a policy means: each move is told as a fact to `decide`, and where the issue stands is read from
what was folded. The counters of a cycle are as at its beginning, or, where a move is asked `worn`, all used up.

The issue has a work tree of its own: in the shared one less can happen to it, and nothing else.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeVar

from ashep.core.facts import delivery, issues, records, runs, tracker
from ashep.core.facts.outcome import Outcome
from ashep.core.facts.resources import DaemonStarted, RunnerSeen, TimerDue
from ashep.core.facts.vocabulary import Fact
from ashep.core.issues.routing import begin_cycle
from ashep.core.issues.verification import claims, is_looked_into
from ashep.core.policy.agents import Agents
from ashep.core.policy.flags import ALWAYS_ASK
from ashep.core.policy.landing import LandingSettings
from ashep.core.policy.policies import Phase, Policies, Verify
from ashep.core.policy.settings import Settings
from ashep.core.reconcile.decide import decide
from ashep.core.reconcile.dispatch import Capacity, plan_run
from ashep.core.reconcile.evolve import evolve
from ashep.core.state.delivery import OwnTree, Work
from ashep.core.state.flow import Counters, Flow, with_work
from ashep.core.state.immutable import replace
from ashep.core.state.run import Report
from ashep.core.state.runner_state import NOT_SEEN
from ashep.core.state.timers import flow_dues
from ashep.core.state.world import World, put

Place = TypeVar("Place")
ISSUE = "x-1"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
PERSON = "somebody"
ROOM = Capacity(1, None, frozenset(), frozenset(), None)
_KEPT = ("", "kept")
"""Stands among what was passed to show whether a move undoes all of it; no phase has an empty name."""
_SAME = "="  # what a phase ended with before, where nobody requires it: no verdict is called so

_OWN = OwnTree("ashep/x-1", 0, "/x-1", base="base", head="head", tree="tree", onto="main")

Kind = Literal["success", "flagged", "short", "failure", "back", "answer", "question", "deadline"]
"""flagged: a success whose work touches what `when_flags` names · short: one whose work does not hold · back: it was to
be closed, and its work does not fit the base."""

BUILT_IN = ("own", "proof", "change")
"""Codes of questions that no human phase asks: an agent's; whether work passes that falls short; whether it lands."""


@dataclass(frozen=True, slots=True)
class Transition:
    """Something that agents, people or time do."""

    name: str
    """A verdict, a result, an answer, …"""
    kind: Kind
    flag: str = ""
    """What the work touches."""
    of: Kind | None = None
    """Of which kind it would be if nothing came of what is said behind it."""


@dataclass(frozen=True, slots=True)
class State:
    """Where an issue stands, but for its counters."""

    kind: Literal["work", "ask", "close", "park"]
    phase: str = ""
    code: str = ""
    """Of parking; one of `BUILT_IN` where an agent phase, or the work, makes somebody ask."""
    passed: issues.Passed = ()
    """What phases ended with, as far as a phase of the policy requires it."""
    writer: str = ""
    """The phase that wrote last: work that does not land goes back there."""
    said: str = ""
    """What the agent said whose work is asked about: its verdict, or the phase that it suggested."""


@dataclass(frozen=True, slots=True)
class Step:
    """A move, and where it leads."""

    source: State
    move: Transition
    target: State
    why: str
    ended: str | None
    """What the source's phase has ended with by now; `=`: what it had before."""
    resets: bool
    """Whether what was passed counts no more."""
    worn: State
    """Where it leads once the counters are used up."""


def reached(begin: Iterable[Place], after: Callable[[Place], Iterable[Place]]) -> set[Place]:
    """All that lies ahead, near or far: what it begins from is among it where a way leads back there."""
    found, stack = set[Place](), [*begin]
    while stack:
        for node in after(stack.pop()):
            if node not in found:
                found.add(node)
                stack.append(node)
    return found


class TransitionSystem:
    """One policy, with one issue to be moved about."""

    def __init__(self, policies: Policies, agents: Agents, settings: Settings, name: str) -> None:
        policy = policies.policies[name]
        # an agent without a model of its own may be of any: whether one fits is not asked here
        phases = tuple(phase.model_copy(update={"provider": None, "model": None}) for phase in policy.phases)
        self.name, self.policy = name, policy.model_copy(update={"phases": phases})
        self._world = _make_world(Policies.model_construct(version=1, policies={name: self.policy}), agents, settings)
        self._required = {
            (other, word) for phase in phases for other, words in phase.requires.items() for word in words
        }
        self._writers = tuple(phase.name for phase in phases if phase.human is None and phase.makes)
        self._flows: dict[State, Flow] = {}

    def start(self) -> State:
        """Where an issue begins."""
        counters, work = Counters(passed=(_KEPT,)), Work(own=_OWN)
        flow = Flow(_issue(), since=NOW, policy=self.name, counters=counters, work=work)
        world = put(self._world, ISSUE, flow)
        return self._read_state(_follow_all(world, begin_cycle(world, flow, self.policy.phases[0].name, "taken")))

    def steps(self, state: State) -> Iterator[Step]:
        """Everything that can happen next."""
        flow = self._flows.get(state)
        for move in self._moves(state):
            if flow is None:
                return
            after, worn = self._moved(flow, move), self._moved(self._worn(flow), move)
            yield self._step(state, move, after, worn)
            if after.flows[ISSUE].stage == "finishing" and self._is_changed(state):
                back = Transition(f"{describe_move(move)}, but it does not fit the base", "back", of=move.kind)
                yield self._step(state, back, _conflicted(after), _conflicted(worn))
                yield from self._looked_at(state, flow, move)

    def _is_changed(self, state: State) -> bool:
        """Whether somebody wrote: where nothing is changed there is nothing that could touch anything, or not fit."""
        return bool(state.writer) or (state.kind == "work" and state.phase in self._writers)

    def _step(self, state: State, move: Transition, after: World, worn: World) -> Step:
        ended = dict(after.flows[ISSUE].counters.passed)
        target, why = self._read_state(after), after.flows[ISSUE].why
        return Step(state, move, target, why, ended.get(state.phase), _KEPT[0] not in ended, self._read_state(worn))

    def _looked_at(self, state: State, flow: Flow, move: Transition) -> Iterator[Step]:
        """Have work closed that touches what a person is always asked about."""
        phase = self.policy.phase(state.phase)
        flag = next((flag for flag in ALWAYS_ASK if phase is None or flag not in phase.when_flags), None)
        if flag is None or state.code == "change":
            return
        own = dataclasses.replace(_OWN, flags=(flag,))
        after, worn = (self._moved(with_work(one, own=own), move) for one in (flow, self._worn(flow)))
        if after.flows[ISSUE].stage == "person":
            asks = Transition(f"{describe_move(move)}, and it touches {flag}", "question", flag, move.kind)
            yield self._step(state, asks, after, worn)

    def due(self, state: State) -> datetime | None:
        """When a question ends by itself."""
        return dict(flow_dues(self._flows[state])).get("question")

    def _moves(self, state: State) -> Iterator[Transition]:
        if state.kind == "ask":
            yield from (Transition("approved", "answer"), Transition("changes_requested", "answer"))
            yield Transition("deadline", "deadline")
        phase = self.policy.phase(state.phase)
        if state.kind != "work" or phase is None:
            return
        good = [Transition(word, "success") for word in phase.verdicts or ("success",)]
        if not phase.verdicts and "success" not in phase.next:
            good += [Transition(f"suggests {target}", "success") for target in phase.allow_suggested]
        yield from good
        if is_looked_into(phase):
            flags = phase.when_flags if self._is_changed(state) else ()
            yield from (
                Transition(f"{word} that touches {flag}", "flagged", flag) for word in claims(phase) for flag in flags
            )
            good = [move for move in good if not phase.verdicts or move.name in claims(phase)]
            yield from (Transition(f"{move.name}, but it does not hold", "short") for move in good)
        yield Transition("asks a person", "question")
        yield from (Transition(word, "failure") for word in ("failed", "partial", "timed out", "stalled"))

    def _moved(self, flow: Flow, move: Transition) -> World:
        world = put(self._world, ISSUE, flow)
        if move.kind == "answer":
            labels = world.settings.labels
            label = labels.approved if move.name == "approved" else labels.changes_requested
            event = tracker.LabelEvent("1", label, PERSON, NOW)
            return _follow(world, tracker.AnswerRead(ISSUE, "", _issue(label), (event,)))
        if move.kind == "deadline":
            due = dict(flow_dues(flow)).get("question")
            return world if due is None else _follow(replace(world, now=due), TimerDue(f"question:{ISSUE}", due))
        assert flow.run is not None
        if move.flag and flow.work.own is not None:
            own = dataclasses.replace(flow.work.own, flags=(move.flag,))
            world = put(world, ISSUE, with_work(flow, own=own))
        world = _follow(world, _ended(flow.run.id, move))
        if world.flows[ISSUE].work.verifying:
            holds = move.kind != "short"
            world = _follow(world, delivery.WorkVerified(ISSUE, "", _OWN.head, _OWN.tree, holds, flow.run.id))
        return world

    def _worn(self, flow: Flow) -> Flow:
        visits = tuple((phase.name, phase.max_visits) for phase in self.policy.phases)
        return replace(flow, counters=replace(flow.counters, cycle_visits=visits))

    def _read_state(self, world: World) -> State:
        """Where the issue stands now; a phase that is wanted gets its run, or its question, at once."""
        flow = with_work(replace(world.flows[ISSUE], not_before=None, run=None, failures=0), unproven=0)
        if flow.stage == "work":
            world = put(world, ISSUE, flow)
            world = _follow_all(world, plan_run(world, flow, ROOM).facts)
            flow = world.flows[ISSUE]
        state = self._state(flow)
        if state.kind in ("work", "ask") and state not in self._flows:
            self._flows[state] = self._fresh(flow, state)
        return state

    def _state(self, flow: Flow) -> State:
        passed = tuple(sorted(one for one in flow.counters.passed if one in self._required))
        writer = next((report.phase for report in reversed(flow.reports) if report.phase in self._writers), "")
        match flow.stage:
            case "work":
                return State("work", flow.phase or "", "", passed, writer)
            case "person" if flow.question is not None:
                asked = flow.question
                code = "" if asked.human_phase else "own" if asked.about == "phase" else asked.about
                said = flow.reports[-1].outcome if code == "proof" else None
                words = (said.verdict or said.suggested_next_phase or "") if said else ""
                return State("ask", asked.phase, code, passed, writer, words)
            case "finishing":
                return State("close")
            case _:
                return State("park", code=flow.code)

    def _fresh(self, flow: Flow, state: State) -> Flow:
        """The flow as it would be in a cycle that has just begun; its present attempt is the last."""
        phase = self.policy.phase(state.phase)
        last = phase.retry.max_attempts - 1 if phase else 0
        short = ((phase.verify if phase else None) or Verify()).max_attempts - 1
        passed = state.passed if dict(state.passed).get(state.phase) else (*state.passed, (state.phase, _SAME))
        names = (state.writer, state.phase if state.said else "")
        reports = tuple(_report(state, self.policy.phase(name)) for name in names if name)
        return replace(
            flow, counters=replace(flow.counters, cycle_visits=(), cycle_runs=0, passed=(*passed, _KEPT), visits=()),
            failures=last, work=replace(flow.work, unproven=short, own=_OWN, waived=(), evidence=None, flaw=None),
            reports=reports, comments=(), issue=_issue(), answers=(),
        )  # fmt: skip


def _report(state: State, phase: Phase | None) -> Report:
    """What the last run of a phase left, as far as anything follows from it."""
    assert phase is not None  # no other is ever asked for
    said = (state.said or None) if state.phase == phase.name else None
    verdict, suggested = (said, None) if phase.verdicts else (None, said)
    outcome = Outcome(result="success", summary="", verdict=verdict, suggested_next_phase=suggested)
    return Report(f"{ISSUE}/{phase.name}.1.1", phase.name, "", "succeeded", "", outcome)


def describe_move(move: Transition) -> str:
    """A move as people say it."""
    if move.kind == "deadline":
        return "nobody answers in time"
    return f"a person answers {move.name}" if move.kind == "answer" else move.name


def _conflicted(world: World) -> World:
    return _follow(world, delivery.WorkConflicted(ISSUE, "", _OWN.head, _OWN.base, ("x",)))


def _make_world(policies: Policies, agents: Agents, settings: Settings) -> World:
    runners = [agent.runner for agent in agents.agents if not agent.is_human]
    models = tuple(runs.Model(runner.provider, runner.model) for runner in runners if runner.provider and runner.model)
    slugs = tuple(runner.agent_slug for runner in runners if runner.agent_slug)
    up = RunnerSeen("up", instance="server", agents=slugs, models=models, exhaustive=False)
    seen = NOT_SEEN.update({runner.type: dataclasses.replace(up, runner=runner.type) for runner in runners})
    # where a run works, and on which branch its work lands, leads an issue nowhere else
    worker = settings.worker.model_copy(update={"workspace": "shared"})
    settings = settings.model_copy(update={"worker": worker, "landing": LandingSettings(), "people": None})
    world = replace(World(), now=NOW, policies=policies, agents=agents, settings=settings, instance="instance")
    return replace(world, daemon=DaemonStarted(1, ""), tracker=tracker.TrackerSeen("ashep", "x", ""), seen=seen)


def _issue(*labels: str) -> tracker.Issue:
    return tracker.Issue(ISSUE, "", "open", labels=labels, type="task", priority=2, created_at=NOW)


def _ended(run: str, move: Transition) -> Fact:
    match move:
        case Transition("timed out"):
            return runs.RunEnded(ISSUE, run, "timed_out", "it took too long")
        case Transition("stalled"):
            return runs.RunEnded(ISSUE, run, "stalled", "it showed no sign of life")
        case Transition("failed" | "partial" as result):
            return runs.RunEnded(ISSUE, run, "failed", f"reported {result}", Outcome(result=result, summary=""))
        case Transition(kind="question"):
            outcome = Outcome(result="success", summary="?", needs_human=True)
        case Transition(name) if name.startswith("suggests "):
            target = name.removeprefix("suggests ").partition(",")[0]
            outcome = Outcome(result="success", summary="", suggested_next_phase=target)
        case _:
            word = move.name.partition(",")[0].partition(" ")[0]
            outcome = Outcome(result="success", summary="", verdict=None if word == "success" else word)
    return runs.RunEnded(ISSUE, run, "succeeded", "finished", outcome)


def _follow_all(world: World, facts: list[Fact]) -> World:
    for fact in facts:
        world = _follow(world, fact)
    return world


def _follow(world: World, fact: Fact) -> World:
    """Fold a fact and all that the rules make of it, as a turn of the shepherd does."""
    after = evolve(world, records.Entry(world.seq + 1, world.now, fact))
    return _follow_all(after, decide(world, after, fact))
