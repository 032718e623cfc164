"""Names of the states and events of a transition table, by the phases of a policy.

An agent phase has a state in which its agent works (`IMPLEMENTING`) and states in which it waits for one: `READY_FOR_…`
where a phase before it led there, `NEEDS_FIXES` (`BACK_TO_…`) where it was sent back. A human phase has one state.
Nothing heavy is imported: `ashep policy state` names states too.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

IDLE, APPROVED, DONE, BLOCKED = "IDLE", "APPROVED", "DONE", "BLOCKED"
"""Not taken yet · closed by a verdict · closed by a success · waits for a person."""
TAKEN, ANY = "task_received", "any"
"""The event that takes an issue · the event of a state that only waits for its agent."""
HUMAN, COMPLETE = "human", "complete"
"""Whom a row routes to, where that is no agent."""

_WORDS = {
    "plan": ("PLANNING", "PLANNING"),
    "implement": ("IMPLEMENTING", "IMPLEMENTATION"),
    "code": ("CODING", "CODE"),
    "test": ("TESTING", "TEST"),
    "review": ("REVIEWING", "REVIEW"),
    "arbitrate": ("ARBITRATING", "ARBITRATION"),
    "debug": ("DEBUGGING", "DEBUGGING"),
    "doc": ("DOCUMENTING", "DOCUMENTATION"),
    "analyze": ("ANALYZING", "ANALYSIS"),
}
"""By the capability that a phase needs first: what is done, and what it is ready for."""

_REPORTS = {
    "review": "review_result",
    "arbitrate": "review_result",
    "test": "test_result",
    "browsertest": "test_result",
}
"""By the first capability: the report in which an event stands; every other phase writes an `impl_summary`."""


class NamedPhase(NamedTuple):
    """A phase, as far as names need it."""

    name: str
    needs: tuple[str, ...]
    human: bool
    anew: bool = False
    """A human phase after which everything begins again, whatever the answer is: a table has no row for that."""


def named_phases(policy: Mapping[str, Any]) -> Iterator[NamedPhase]:
    """Give the phases of a policy as a mapping, which is how the journal holds it."""
    phases = policy["phases"]
    for phase in phases:
        name, human = phase["name"], phase.get("human")
        anew = human is not None and human.get("approved") == human.get("changes_requested") == phases[0]["name"]
        yield NamedPhase(name, tuple(phase.get("capabilities") or (name,)), human is not None, anew)


class States:
    """The names of all states of a policy; no two are the same."""

    def __init__(self, places: Iterable[NamedPhase]) -> None:
        self.places = tuple(places)
        self._anew = {place.name for place in self.places if place.anew}
        self._order = {place.name: index for index, place in enumerate(self.places)}
        kinds = [_WORDS.get(place.needs[0]) for place in self.places if not place.human]
        self._ready: dict[str, str] = {}
        self._back: dict[str, str] = {}
        self._at: dict[str, str] = {}
        taken = {IDLE, APPROVED, DONE}
        for place in self.places:
            word = place.name.upper().replace("-", "_")
            if place.human:
                self._at[place.name] = _free(word, taken)
                continue
            known = _WORDS.get(place.needs[0])
            if known is None or kinds.count(known) > 1:
                known = (f"IN_{word}", word)
            back = "NEEDS_FIXES" if known[1] == "IMPLEMENTATION" else f"BACK_TO_{known[1]}"
            self._at[place.name] = _free(known[0], taken)
            self._ready[place.name] = _free(f"READY_FOR_{known[1]}", taken)
            self._back[place.name] = _free(back, taken)

    def __contains__(self, phase: str) -> bool:
        return phase in self._order

    def name_state(self, phase: str) -> str:
        """Name the state in which an agent is at work in the phase, or a person is asked."""
        return self._at[phase]

    def towards(self, source: str | None, phase: str) -> str:
        """Name the state in which an issue is that was led to a phase from another (None: it was taken)."""
        if phase not in self._ready or source is None or source in self._anew:
            return self._at[phase]
        return self._back[phase] if self._order[phase] <= self._order.get(source, -1) else self._ready[phase]

    def dispatched(self) -> dict[str, str]:
        """Give what each `READY_FOR_…` becomes when an agent begins."""
        return {self._ready[name]: self._at[name] for name in self._ready}

    def sent_back(self) -> dict[str, str]:
        """Give, by phase, the state in which it waits once it was sent back."""
        return dict(self._back)


def event_of(place: NamedPhase, edge: str) -> str:
    """Name the event of an edge: of a verdict, or of the result `success`, `failed` or `partial`."""
    if place.human or edge == "blocked":
        return edge
    return f"{_REPORTS.get(place.needs[0], 'impl_summary')}.{'done' if edge == 'success' else edge}"


def route_of(place: NamedPhase) -> str:
    """Name who works in a phase."""
    return HUMAN if place.human else place.name


def _free(word: str, taken: set[str]) -> str:
    name, number = word, 2
    while name in taken:
        name, number = f"{word}_{number}", number + 1
    taken.add(name)
    return name
