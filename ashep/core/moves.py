"""What can happen to an issue where it stands, and where the rules of the core lead it then.

Nothing here knows what a policy means: each move is told as a fact to `decide`, and where the issue stands is read from
what was folded. The counters of a cycle are as at its beginning, or, where a move is asked `worn`, all used up.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from ashep.core.decide import decide
from ashep.core.dispatch import Room, wanted
from ashep.core.events import AnswerRead, DaemonStarted, Fact, RunEnded, RunnerSeen, TimerDue, TrackerSeen
from ashep.core.flow import Flow
from ashep.core.indexes import put
from ashep.core.model import Agents, Issue, LabelEvent, Model, Policies, Settings
from ashep.core.outcome import Outcome
from ashep.core.passing import Passed
from ashep.core.records import Entry
from ashep.core.routing import begin_cycle
from ashep.core.timers import flow_dues
from ashep.core.values import replace
from ashep.core.world import World, evolve

ISSUE = "x-1"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
PERSON = "somebody"
ROOM = Room(1, None, frozenset(), frozenset(), None)
_KEPT = ("", "kept")
"""Stands among what was passed to show whether a move undoes all of it; no phase has an empty name."""
_SAME = "="
"""What a phase ended with before, where nobody requires it: no verdict is called so."""

Kind = Literal["success", "failure", "answer", "question", "deadline"]


@dataclass(frozen=True, slots=True)
class Move:
    """Something that agents, people or time do."""

    name: str
    """A verdict, a result, an answer, …"""
    kind: Kind


@dataclass(frozen=True, slots=True)
class State:
    """Where an issue stands, but for its counters."""

    kind: Literal["work", "ask", "close", "park"]
    phase: str = ""
    code: str = ""
    """Of parking; `own` where it is an agent phase that asks."""
    passed: Passed = ()
    """What phases ended with, as far as a phase of the policy requires it."""


@dataclass(frozen=True, slots=True)
class Step:
    """A move, and where it leads."""

    source: State
    move: Move
    target: State
    why: str
    ended: str | None
    """What the source's phase has ended with by now; `=`: what it had before."""
    resets: bool
    """Whether what was passed counts no more."""
    worn: State
    """Where it leads once the counters are used up."""


class Board:
    """One policy, with one issue to be moved about."""

    def __init__(self, policies: Policies, agents: Agents, settings: Settings, name: str) -> None:
        policy = policies.policies[name]
        # an agent without a model of its own may be of any: whether one fits is not asked here
        phases = tuple(phase.model_copy(update={"provider": None, "model": None}) for phase in policy.phases)
        self.name, self.policy = name, policy.model_copy(update={"phases": phases})
        self._world = _begun(Policies.model_construct(version=1, policies={name: self.policy}), agents, settings)
        self._required = {
            (other, word) for phase in phases for other, words in phase.requires.items() for word in words
        }
        self._flows: dict[State, Flow] = {}

    def start(self) -> State:
        """Where an issue begins."""
        flow = Flow(_issue(), since=NOW, policy=self.name, passed=(_KEPT,))
        world = put(self._world, ISSUE, flow)
        return self._seen(_follow_all(world, begin_cycle(world, flow, self.policy.phases[0].name, "taken")))

    def steps(self, state: State) -> Iterator[Step]:
        """Everything that can happen next."""
        flow = self._flows.get(state)
        for move in self._moves(state):
            if flow is None:
                return
            after = self._moved(flow, move)
            ended = dict(after.flows[ISSUE].passed)
            target, worn = self._seen(after), self._seen(self._moved(self._worn(flow), move))
            resets = _KEPT[0] not in ended
            yield Step(state, move, target, after.flows[ISSUE].why, ended.get(state.phase), resets, worn)

    def due(self, state: State) -> datetime | None:
        """When a question ends by itself."""
        return dict(flow_dues(self._flows[state])).get("question")

    def _moves(self, state: State) -> Iterator[Move]:
        if state.kind == "ask":
            yield from (Move("approved", "answer"), Move("changes_requested", "answer"), Move("deadline", "deadline"))
        phase = self.policy.phase(state.phase)
        if state.kind != "work" or phase is None:
            return
        yield from (Move(word, "success") for word in phase.verdicts or ("success",))
        if not phase.verdicts and "success" not in phase.next:
            yield from (Move(f"suggests {target}", "success") for target in phase.allow_suggested)
        yield Move("asks a person", "question")
        yield from (Move(word, "failure") for word in ("failed", "partial", "timed out", "stalled"))

    def _moved(self, flow: Flow, move: Move) -> World:
        world = put(self._world, ISSUE, flow)
        if move.kind == "answer":
            return _follow(world, _answer(world, flow, approved=move.name == "approved"))
        if move.kind == "deadline":
            due = dict(flow_dues(flow)).get("question")
            return world if due is None else _follow(replace(world, now=due), TimerDue(f"question:{ISSUE}", due))
        assert flow.run is not None
        return _follow(world, _ended(flow.run.id, move))

    def _worn(self, flow: Flow) -> Flow:
        visits = tuple((phase.name, phase.max_visits) for phase in self.policy.phases)
        return replace(flow, cycle_visits=visits)

    def _seen(self, world: World) -> State:
        """Where the issue stands now; a phase that is wanted gets its run, or its question, at once."""
        flow = replace(world.flows[ISSUE], not_before=None, run=None, failures=0)
        if flow.stage == "work":
            world = put(world, ISSUE, flow)
            world = _follow_all(world, wanted(world, flow, ROOM).facts)
            flow = world.flows[ISSUE]
        state = self._state(flow)
        if state.kind in ("work", "ask") and state not in self._flows:
            self._flows[state] = self._fresh(flow, state)
        return state

    def _state(self, flow: Flow) -> State:
        passed = tuple(sorted(one for one in flow.passed if one in self._required))
        match flow.stage:
            case "work":
                return State("work", flow.phase or "", "", passed)
            case "person" if flow.question is not None:
                return State("ask", flow.question.phase, "" if flow.question.human_phase else "own", passed)
            case "finishing":
                return State("close")
            case _:
                return State("park", code=flow.code)

    def _fresh(self, flow: Flow, state: State) -> Flow:
        """The flow as it would be in a cycle that has just begun; its present attempt is the last."""
        phase = self.policy.phase(state.phase)
        last = phase.retry.max_attempts - 1 if phase else 0
        passed = state.passed if dict(state.passed).get(state.phase) else (*state.passed, (state.phase, _SAME))
        return replace(
            flow, cycle_visits=(), cycle_runs=0, failures=last, reports=(), comments=(), passed=(*passed, _KEPT),
            issue=_issue(), visits=(), answers=(),
        )  # fmt: skip


def _begun(policies: Policies, agents: Agents, settings: Settings) -> World:
    runners = [agent.runner for agent in agents.agents if not agent.is_human]
    models = tuple(Model(one.provider, one.model) for one in runners if one.provider and one.model)
    slugs = tuple(one.agent_slug for one in runners if one.agent_slug)
    up = RunnerSeen("up", instance="server", agents=slugs, models=models)
    worker = settings.worker.model_copy(update={"workspace": "shared"})  # where a run works leads an issue nowhere
    settings = settings.model_copy(update={"worker": worker})
    world = replace(World(), now=NOW, policies=policies, agents=agents, settings=settings, instance="instance")
    return replace(world, daemon=DaemonStarted(1, ""), tracker=TrackerSeen("ashep", "x", ""), runner=up)


def _issue(*labels: str) -> Issue:
    return Issue(ISSUE, "", "open", labels=labels, type="task", priority=2, created_at=NOW)


def _answer(world: World, flow: Flow, *, approved: bool) -> Fact:
    labels = world.settings.labels
    label = labels.approved if approved else labels.changes_requested
    return AnswerRead(ISSUE, "", _issue(label), (LabelEvent("1", label, PERSON, NOW),))


def _ended(run: str, move: Move) -> Fact:
    match move:
        case Move("timed out"):
            return RunEnded(ISSUE, run, "timed_out", "it took too long")
        case Move("stalled"):
            return RunEnded(ISSUE, run, "stalled", "it showed no sign of life")
        case Move("failed" | "partial" as result):
            return RunEnded(ISSUE, run, "failed", f"reported {result}", Outcome(result=result, summary=""))
        case Move(kind="question"):
            outcome = Outcome(result="success", summary="?", needs_human=True)
        case Move("success"):
            outcome = Outcome(result="success", summary="")
        case Move(name) if name.startswith("suggests "):
            outcome = Outcome(result="success", summary="", suggested_next_phase=name.removeprefix("suggests "))
        case _:
            outcome = Outcome(result="success", summary="", verdict=move.name)
    return RunEnded(ISSUE, run, "succeeded", "finished", outcome)


def _follow_all(world: World, facts: list[Fact]) -> World:
    for fact in facts:
        world = _follow(world, fact)
    return world


def _follow(world: World, fact: Fact) -> World:
    """Fold a fact and all that the rules make of it, as a turn of the shepherd does."""
    after = evolve(world, Entry(world.seq + 1, world.now, fact))
    return _follow_all(after, decide(world, after, fact))
