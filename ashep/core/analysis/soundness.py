"""Whether a policy can be left alone: all that it can lead to, searched with the very rules of the core.

The states are the places in which an issue can stand, without the counters of its cycle; the moves are everything that
agents, people and time can do (`ashep.core.analysis.transition_system`). That loses nothing: counters only ever end a
way early, by parking, and each move is tried with all counters used up, too, to see that they do.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from ashep.core.analysis.cost_bounds import Bounds, bounds_of, cheapest
from ashep.core.analysis.transition_system import BUILT_IN, State, Step, TransitionSystem, describe_move, reached
from ashep.core.policy.agents import Agents
from ashep.core.policy.policies import CLOSE, Phase, Policies, Policy
from ashep.core.policy.settings import Settings

KeyPath = tuple[str | int, ...]

Code = Literal[
    "never-closes", "human-loop", "beyond-limits", "livelock", "no-deadline", "unreachable-phase", "dead-edge",
    "requires-unmet", "approval-skipped", "failure-left-behind", "too-complex",
]  # fmt: skip
"""What is looked for (docs/codes.md)."""


@dataclass(frozen=True, slots=True)
class Defect:
    """Something that a policy must not allow."""

    code: Code
    severity: Literal["error", "warning"]
    policy: str
    phase: str
    key_path: KeyPath
    """Where in the policy's file it is to be mended."""
    message: str
    story: tuple[str, ...]
    """The shortest way there, a line a step."""
    remedy: str


@dataclass(frozen=True, slots=True)
class PolicyEdge:
    """What leads from a phase to another; `close`, `park` and `ask` are targets, too."""

    source: str
    move: str
    target: str
    kind: Literal["success", "flagged", "failure", "answer", "deadline"]


@dataclass(frozen=True, slots=True)
class PolicyVerdict:
    """What was found of one policy."""

    findings: tuple[Defect, ...]
    edges: tuple[PolicyEdge, ...]
    bounds: Bounds | None
    """None where nothing leads to `close`."""


def analyse(policies: Policies, agents: Agents, settings: Settings) -> dict[str, PolicyVerdict]:
    """Search every policy, by its name; names, targets and agents must be in order (`ashep.config.consistency`)."""
    own, verdicts = settings.worker.workspace != "shared", dict[str, PolicyVerdict]()
    for name in policies.policies:
        board = TransitionSystem(policies, agents, settings, name)
        space = explore(board)
        found = tuple(_findings(space, board))
        bounds = bounds_of(board.policy, agents, space.start, space.steps, own_trees=own) if space.whole else None
        verdicts[name] = PolicyVerdict(found, tuple(dict.fromkeys(_edges(space.steps))), bounds)
    return verdicts


def _edges(steps: Mapping[State, tuple[Step, ...]]) -> Iterator[PolicyEdge]:
    for step in (step for some in steps.values() for step in some):
        if step.source.code in BUILT_IN or step.move.kind in ("question", "short", "back"):
            continue
        target = step.target.phase if step.target.kind in ("work", "ask") else step.target.kind
        yield PolicyEdge(step.source.phase, step.move.name, target, step.move.kind)


Way = tuple[Step, ...]
"""Steps from where an issue begins."""


@dataclass(frozen=True, slots=True)
class Space:
    """All states that can be reached, the nearest first."""

    start: State
    steps: Mapping[State, tuple[Step, ...]]
    ways: Mapping[State, Step | None]
    """The step by which the shortest way comes to a state."""
    whole: bool
    """Whether nothing was left out."""

    def show_path(self, state: State) -> tuple[str, ...]:
        """The shortest way to a state, a line a step."""
        return tuple(map(line, self.way(state)))

    def way(self, state: State) -> Way:
        """The shortest way to a state."""
        way: list[Step] = []
        while (step := self.ways[state]) is not None:
            way.append(step)
            state = step.source
        return tuple(reversed(way))


# --- what must not be -------------------------------------------------------------------------------------------------


def _findings(space: Space, board: TransitionSystem) -> Iterator[Defect]:
    found = _Found(space, board.name, board.policy)
    if not space.whole:
        more = "`requires` makes too many different states of this policy to look at all"
        yield found.defect("too-complex", "", ("phases",), more, (), "let fewer phases require something")
        return
    yield from _without_end(found, board)
    yield from _dead_ends(found)
    yield from _never_closes(found)
    yield from _beyond_limits(found)
    names = {state.phase for state in space.ways}
    for phase in (phase.name for phase in board.policy.phases if phase.name not in names):
        message = f"nothing leads to the phase {phase}"
        yield found.defect("unreachable-phase", phase, ("name",), message, (), "lead an edge there, or remove it")
    for phase in board.policy.phases:
        if phase.must_pass:
            yield from _skipped(found, phase)
        yield from _left_behind(found, phase)


@dataclass(frozen=True, slots=True)
class _Found:
    """What the searches look at, and how a finding is written."""

    space: Space
    name: str
    policy: Policy

    def defect(self, code: Code, phase: str, key: KeyPath, message: str, story: tuple[str, ...], remedy: str) -> Defect:
        """Write a finding; `key` is beneath its phase, or, without one, beneath the policy."""
        names = [phase.name for phase in self.policy.phases]
        place: KeyPath = ("phases", names.index(phase)) if phase in names else ()
        return Defect(code, "error", self.name, phase, ("policies", self.name, *place, *key), message, story, remedy)

    def all_steps(self) -> Iterator[Step]:
        """Every step, from the nearest states on."""
        for some in self.space.steps.values():
            yield from some


def key_of(policy: Policy, step: Step) -> KeyPath:
    """The key that makes this step lead where it does, beneath its phase."""
    phase = policy.phase(step.source.phase)
    if phase is not None and phase.human is not None:
        key = {"deadline": "on_deadline"}.get(step.move.name, step.move.name)
        return ("human", key) if key in phase.human.model_fields_set else ("human",)
    if phase is not None and step.move.kind == "flagged":
        return ("when_flags", step.move.flag)
    if phase is not None and step.move.name in phase.next:
        return ("next", step.move.name)
    return ("next", "failed") if step.move.kind == "failure" else ("next",)


def _without_end(found: _Found, board: TransitionSystem) -> Iterator[Defect]:
    """A question without a deadline, and a circle that uses up no counter."""
    for state in found.space.steps:
        if state.kind == "ask" and board.due(state) is None:
            text, story = f"the question of {state.phase} never ends by itself", found.space.show_path(state)
            yield found.defect("no-deadline", state.phase, ("human",), text, story, "give it a deadline")
    if (circle := _circle([step for step in found.all_steps() if _is_unbounded(step)])) is not None:
        first = circle[0]
        text = f"an issue can go round from {first.source.phase} for ever: nothing in this circle is counted"
        story = (*found.space.show_path(first.source), *map(line, circle))
        remedy = "bound it by max_visits or max_attempts"
        yield found.defect("livelock", first.source.phase, key_of(found.policy, first), text, story, remedy)


def _is_unbounded(step: Step) -> bool:
    """Whether the step leads on even where every counter of the cycle is used up; what a person does is their wish."""
    asks = step.target.kind == "ask" and step.move.kind != "deadline"
    return step.move.kind not in ("answer", "question") and step.worn.kind in ("work", "ask") and not asks


_DEAD: Mapping[str, Code] = {"requires": "requires-unmet", "no_edge": "dead-edge", "unknown_phase": "dead-edge"}
"""Codes of parking that say that an edge is wrong."""


def _dead_ends(found: _Found) -> Iterator[Defect]:
    """Edges that lead where the rules do not let an issue in, so that it parks there."""
    if found.space.start.kind == "park":
        first = found.policy.phases[0]
        text = f"an issue cannot even begin: {first.name} requires what did not happen yet"
        yield found.defect("requires-unmet", first.name, ("requires",), text, (), "let another phase be the first")
    told_of: set[tuple[str, KeyPath, bool]] = set()
    for step in found.all_steps():
        code = _DEAD.get(step.target.code)
        key, back = key_of(found.policy, step), step.move.kind == "back"
        if code is None or step.target.kind != "park" or (step.source.phase, key, back) in told_of:
            continue
        told_of.add((step.source.phase, key, back))
        text = f"{step.source.phase}: {step.move.name} leads to a dead end, for {step.why.split(' (')[0]}"
        remedy = "lead it elsewhere, or let what is required happen on every way there"
        one = found.defect(
            code, step.source.phase, key, text, (*found.space.show_path(step.source), line(step)), remedy
        )
        # no edge of the policy leads there: an issue that waits for a person then is no reason not to begin
        yield replace(one, severity="warning") if back else one


def _never_closes(found: _Found) -> Iterator[Defect]:
    """States from which no success of agents and no answer of people leads to `close` any more."""
    good = [step for step in found.all_steps() if _is_good(step)]
    before: dict[State, list[State]] = {}
    after: dict[State, list[State]] = {}
    for step in good:
        source, target = _bare(step.source), _bare(step.target)
        before.setdefault(target, []).append(source)
        after.setdefault(source, []).append(target)
    closed = {state for state in found.space.ways if state.kind == "close"}
    reach = closed | reached(closed, lambda state: before.get(state, ()))
    states = dict.fromkeys(map(_bare, found.space.steps))
    trapped = [state for state in states if state.kind in ("work", "ask") and state not in reach]
    while trapped:
        ahead = {
            state: reached([state], lambda one: [step for step in after.get(one, ()) if step.kind in ("work", "ask")])
            for state in trapped
        }
        first = next(state for state in trapped if all(state in ahead[other] for other in ahead[state]))
        yield _trap(found, first, [step for step in good if _bare(step.source) in {first, *ahead[first]}])
        trapped = [state for state in trapped if first not in ahead[state] and state != first]


def _is_good(step: Step) -> bool:
    """Whether everybody does well; that a flag is raised, or work does not fit, is nobody's wish."""
    if step.move.kind == "question" and step.move.of is not None:
        return step.move.of in ("success", "answer")
    return step.move.kind in ("success", "answer", "question")


def _bare(state: State) -> State:
    return replace(state, writer="")


def _trap(found: _Found, first: State, steps: list[Step]) -> Defect:
    """The states that nobody comes out of, told by what there is in them."""
    names = list(dict.fromkeys(step.source.phase for step in steps))
    people = all(step.source.kind == "ask" for step in steps)
    text = f"an issue in {first.phase} can never be closed: no success and no answer leads from there to `close`"
    lines = dict.fromkeys(
        line(step) for step in steps if step.move.kind != "question" and step.source.code not in BUILT_IN
    )
    nearest = next(state for state in found.space.ways if _bare(state) == first)
    story = (*found.space.show_path(nearest), "from there on there is only:", *lines)
    remedy = f"lead an edge of {' or '.join(names)} on to a phase that leads to `close`"
    key: KeyPath = ("next",) if first.kind == "work" else ("human",)
    return found.defect("human-loop" if people else "never-closes", first.phase, key, text, story, remedy)


def _beyond_limits(found: _Found) -> Iterator[Defect]:
    """Where `close` can be reached, but only with more runs or visits in a cycle than the policy allows."""
    limits, space = found.policy.limits, found.space
    visits_count = any(phase.requires for phase in found.policy.phases)  # else no shortest way comes twice to a phase
    most = {phase.name: phase.max_visits for phase in found.policy.phases} if visits_count else {}

    def entered(state: State, worn: _Worn) -> _Worn | None:
        runs, visits = worn[0] + 1, dict(worn[1])
        if state.phase in most:
            visits[state.phase] = visits.get(state.phase, 0) + 1
        fits = runs <= limits.max_runs and visits.get(state.phase, 0) <= most.get(state.phase, 1)
        return (runs, tuple(sorted(visits.items()))) if fits else None

    fresh: _Worn = (0, ())
    begin = entered(space.start, fresh) if space.start.kind == "work" else fresh
    queue = deque([(space.start, begin or fresh)])
    seen = {*queue}
    while queue and len(seen) <= MAX_STATES:
        state, worn = queue.popleft()
        for step in space.steps.get(state, ()):
            if step.move.kind not in ("success", "answer"):
                continue
            if step.target.kind == "close":
                return
            before = fresh if step.move.kind == "answer" else worn
            after = entered(step.target, before) if step.target.kind == "work" else before
            if after is not None and (step.target, after) not in seen:
                seen.add((step.target, after))
                queue.append((step.target, after))
    if not queue and cheapest(space.start, space.steps) is not None:
        text = f"no way to `close` stays within max_runs ({limits.max_runs}) and every max_visits: each issue parks"
        yield found.defect("beyond-limits", "", ("limits", "max_runs"), text, (), "raise them, or take a shorter way")


_Worn = tuple[int, tuple[tuple[str, int], ...]]  # runs and visits of a cycle


def _skipped(found: _Found, phase: Phase) -> Iterator[Defect]:
    """A way to `close` on which this phase was not passed in the cycle."""

    def has_passed(step: Step, before: bool) -> bool:
        if step.resets:
            before = False
        if step.source.phase == phase.name and step.ended != "=":
            before = step.ended in phase.must_pass
        return before

    way = _first_close(found, [(found.space.start, False, ())], has_passed)
    if way is not None:
        text = f"an issue can be closed although {phase.name} did not end with {' or '.join(phase.must_pass)}"
        remedy = f"lead every way to `close` through {phase.name}"
        yield found.defect("approval-skipped", phase.name, ("must_pass",), text, tuple(map(line, way)), remedy)


def _left_behind(found: _Found, phase: Phase) -> Iterator[Defect]:
    """A way on which this phase failed, nobody made it good, no person looked at it, and the issue is closed."""
    failed = [step for step in found.all_steps() if step.source.phase == phase.name and step.move.kind == "failure"]
    begins = [
        (step.target, False, (*found.space.way(step.source), step)) for step in failed if step.move.name != "partial"
    ]

    def healed(step: Step, before: bool) -> bool:
        kind = step.move.of or step.move.kind
        good = step.source.phase == phase.name and kind in ("success", "flagged")
        return before or good or (kind == "answer" and step.source.code != "own")

    way = _first_close(found, begins, healed)
    if way is not None:
        text = f"an issue can be closed although {phase.name} failed, and nobody made it good or looked at it"
        remedy = f"lead the failure to a phase that leads back to {phase.name}, or to a person"
        yield found.defect("failure-left-behind", phase.name, ("next", "failed"), text, tuple(map(line, way)), remedy)


def _first_close(found: _Found, begins: list[tuple[State, bool, Way]], bit: Callable[[Step, bool], bool]) -> Way | None:
    """The shortest way to `close` on which the bit is not set at the end."""
    queue = deque(sorted(begins, key=lambda begin: len(begin[2])))
    seen: set[tuple[State, bool]] = set()
    while queue:
        state, now, way = queue.popleft()
        if state.kind == CLOSE and not now:
            return way
        if (state, now) in seen:
            continue
        seen.add((state, now))
        for step in found.space.steps.get(state, ()):
            queue.append((step.target, bit(step, now), (*way, step)))
    return None


def _circle(steps: list[Step]) -> Way | None:
    """The first circle of these steps, as short as there is one from where it begins."""
    after: dict[State, list[Step]] = {}
    for step in steps:
        after.setdefault(step.source, []).append(step)
    for begin in steps:
        queue: deque[Way] = deque([(begin,)])
        seen = {begin.source}
        while queue:
            way = queue.popleft()
            if way[-1].target == begin.source:
                return way
            if way[-1].target not in seen:
                seen.add(way[-1].target)
                queue.extend((*way, step) for step in after.get(way[-1].target, ()))
    return None


MAX_STATES = 20_000
"""Where `requires` makes more than so many states of a policy, the search is given up, and that is said."""


def explore(board: TransitionSystem) -> Space:
    """Try every move in every state."""
    start = board.start()
    steps: dict[State, tuple[Step, ...]] = {}
    ways: dict[State, Step | None] = {start: None}
    queue = deque([start])
    while queue and len(ways) <= MAX_STATES:
        state = queue.popleft()
        steps[state] = tuple(board.steps(state))
        for step in steps[state]:
            if step.target not in ways:
                ways[step.target] = step
                queue.append(step.target)
    return Space(start, steps, ways, not queue)


def line(step: Step) -> str:
    """A step as people say it."""
    return f"{step.source.phase}: {describe_move(step.move)} → {place(step.target)}"


def place(state: State) -> str:
    """A state as people say it."""
    match state.kind:
        case "work":
            return state.phase
        case "ask":
            return f"{state.phase} asks a person"
        case "close":
            return "closed"
        case "park":
            return f"parked ({state.code})"
