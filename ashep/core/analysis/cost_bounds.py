"""What a policy can cost at best and at worst: runs, questions to people, time, money."""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import count

from ashep.core.analysis.transition_system import BUILT_IN, State, Step, reached
from ashep.core.issues.verification import is_looked_into
from ashep.core.policy.agents import Agent, Agents
from ashep.core.policy.policies import Human, Phase, Policy, Verify
from ashep.core.runs.registry_report import can
from ashep.core.state.runner_state import NOT_SEEN


@dataclass(frozen=True, slots=True)
class Bounds:
    """For one issue; the worst case is that of one cycle, up to where a person answers."""

    best_runs: int
    """On the shortest way to `close`."""
    best_questions: int
    """On the same way."""
    worst_runs: int
    worst_questions: int
    """Of human phases, as long as nobody answers; agents may ask, too."""
    worst_work: timedelta
    """Time in which it works: `max_wall_time`, and a last run that began just before."""
    worst_wait: timedelta
    """Time in which it waits for people, where nobody answers."""
    best_cost: float | None
    """On the shortest way; None where an agent that may run has no `cost`."""
    worst_cost: float | None


def bounds_of(
    policy: Policy, agents: Agents, start: State, steps: Mapping[State, tuple[Step, ...]], *, own_trees: bool
) -> Bounds | None:
    """Add up; None where nothing leads to `close`. Without own trees nothing is looked into or landed."""
    if not own_trees:
        steps = {state: tuple(step for step in some if not _of_own_tree(step)) for state, some in steps.items()}
    best = cheapest(start, steps)
    if best is None:
        return None
    working = [phase for phase in policy.phases if any(s.kind == "work" and s.phase == phase.name for s in steps)]
    question_phases = {s.phase for s in steps if s.kind == "ask" and s.code not in BUILT_IN}
    asking = [phase for phase in policy.phases if phase.name in question_phases]
    worn = _Wear(steps)
    attempts = {one.name: (_attempts(one, own_trees=own_trees), one.max_visits) for one in working}
    runs = min(policy.limits.max_runs, worn.most(attempts))
    asked = worn.most({one.name: (1, one.max_visits) for one in asking})
    deadlines = {one.name: (round((one.human or Human()).deadline.total_seconds()), one.max_visits) for one in asking}
    longest = max((_longest(phase, agents) for phase in working), default=timedelta())
    costs = {phase.name: _costs(phase, agents) for phase in working}
    worst = max((most for _, most in costs.values()), default=0.0) if all(c[0] >= 0 for c in costs.values()) else None
    way = [state for state in best if state.kind == "work"]
    known = all(costs[state.phase][0] >= 0 for state in way)
    return Bounds(
        best_runs=len(way),
        best_questions=sum(state.kind == "ask" for state in best),
        worst_runs=runs,
        worst_questions=asked,
        worst_work=policy.limits.max_wall_time + longest,
        worst_wait=timedelta(seconds=worn.most(deadlines)),
        best_cost=sum(costs[state.phase][0] for state in way) if known else None,
        worst_cost=worst * runs if worst is not None else None,
    )


def _of_own_tree(step: Step) -> bool:
    return step.move.kind in ("flagged", "short", "back") or step.move.of is not None


def _attempts(phase: Phase, *, own_trees: bool) -> int:
    """Runs of a visit: a failure uses up an attempt, and work that falls short one of `verify`."""
    looked_into = own_trees and is_looked_into(phase)
    return phase.retry.max_attempts + ((phase.verify or Verify()).max_attempts - 1 if looked_into else 0)


def _costs(phase: Phase, agents: Agents) -> tuple[float, float]:
    """The least and the most that a run of the phase costs; negative where that is not known."""
    costs = [agent.performance.cost for agent in fitting(phase, agents)]
    known = [cost for cost in costs if cost is not None]
    return (min(known), max(known)) if known and len(known) == len(costs) else (-1.0, -1.0)


def _longest(phase: Phase, agents: Agents) -> timedelta:
    slowest = max((agent.performance.timeout_multiplier for agent in fitting(phase, agents)), default=1.0)
    return phase.timeout * slowest


def fitting(phase: Phase, agents: Agents) -> list[Agent]:
    """The agents that may run a phase, as far as the files say."""
    return [agent for agent in agents.agents if not agent.is_human and can(agent, phase, NOT_SEEN)]


class _Wear:
    """How often a cycle can come through its phases before a person answers, which begins another.

    On any way a phase that lies on no circle comes once at most, and one that does as often as its `max_visits`: so the
    heaviest way through the circles, each taken as a whole, is a bound.
    """

    def __init__(self, steps: Mapping[State, tuple[Step, ...]]) -> None:
        after: dict[str, set[str]] = {}
        for step in (step for some in steps.values() for step in some):
            answered = step.source.kind == "ask" and step.move.kind in ("answer", "back")
            asked = step.move.kind in ("question", "short")  # either answer begins a cycle, or closes
            leads = not answered and not asked and step.target.kind in ("work", "ask")
            after.setdefault(step.source.phase, set()).update({step.target.phase} if leads else ())
        self._after = after
        self._ahead = {phase: reached([phase], lambda one: after.get(one, ())) for phase in after}

    def most(self, weights: Mapping[str, tuple[int, int]]) -> int:
        """The most that a way can weigh; a phase is given by the weight of a visit, and the visits it may have."""
        done: dict[str, int] = {}
        for phase in sorted(self._ahead, key=lambda one: len(self._ahead[one] | {one})):  # what lies ahead comes first
            circle = {one for one in self._ahead[phase] if phase in self._ahead[one]} or {phase}
            own = sum(
                weights[one][0] * (weights[one][1] if one in self._ahead[one] else 1) for one in circle & {*weights}
            )
            left = [done[one] for here in circle for one in self._after[here] - circle]
            done.update(dict.fromkeys(circle, own + max(left, default=0)))
        return max(done.values(), default=0)


def cheapest(start: State, steps: Mapping[State, tuple[Step, ...]]) -> list[State] | None:
    """The states of the way to `close` with the fewest runs, then the fewest questions."""
    order = count()
    queue: list[tuple[int, int, int, State, tuple[State, ...]]] = [(0, 0, next(order), start, ())]
    seen: set[State] = set()
    while queue:
        runs, questions, _, state, way = heapq.heappop(queue)
        if state.kind == "close":
            return list(way)
        if state in seen:
            continue
        seen.add(state)
        more = (runs + (state.kind == "work"), questions + (state.kind == "ask"))
        for step in steps.get(state, ()):
            if step.move.kind in ("success", "answer"):
                heapq.heappush(queue, (*more, next(order), step.target, (*way, state)))
    return None
