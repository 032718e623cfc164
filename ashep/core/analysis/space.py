"""All that a policy can lead to, the nearest first, and the ways there as people tell them."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from ashep.core.analysis.moves import Board, State, Step, told

MAX_STATES = 20_000
"""Where `requires` makes more than so many states of a policy, the search is given up, and that is said."""

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

    def told(self, state: State) -> tuple[str, ...]:
        """The shortest way to a state, a line a step."""
        return tuple(map(line, self.way(state)))

    def way(self, state: State) -> Way:
        """The shortest way to a state."""
        way: list[Step] = []
        while (step := self.ways[state]) is not None:
            way.append(step)
            state = step.source
        return tuple(reversed(way))


def explore(board: Board) -> Space:
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
    return f"{step.source.phase}: {told(step.move)} → {place(step.target)}"


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
