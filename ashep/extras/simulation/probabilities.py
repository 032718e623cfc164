"""Chances, how likely what is: the defaults, a file's, a command line's; and lives that go by them.

Every life has a generator of its own, made of the seed and its number: what happens in it does not depend on how many
others there are, or on anything else.
"""

import random  # noqa: TID251 - of a seed, and for lives that nobody lives
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from itertools import accumulate
from typing import Annotated, Literal

from pydantic import Field

from ashep.config.error_messages import nearest
from ashep.core.policy.base_types import Document, Duration
from ashep.core.policy.policies import Policy
from ashep.core.runs.turns import ASK_PERSON, CHANGE_AGENT, RETRY
from ashep.errors import UsageError
from ashep.extras.simulation.actor_moves import (
    APPROVED,
    CHANGES_REQUESTED,
    CONFLICT,
    FAILED,
    FALLS_SHORT,
    LANDINGS,
    LANDS,
    NEED_HUMAN,
    NO_OUTCOME,
    PARTIAL,
    SILENCE,
    STALLED,
    TIMED_OUT,
    ActorStep,
    Kind,
    Point,
    moves,
    proofs,
    successes,
)
from ashep.extras.simulation.script import possible_in

TROUBLE: Mapping[str, float] = {
    FAILED: 0.05, PARTIAL: 0.03, NEED_HUMAN: 0.02, NO_OUTCOME: 0.02, STALLED: 0.02, TIMED_OUT: 0.01,
}  # fmt: skip
"""How likely a run comes to no success, if nobody says otherwise."""

SHORT, TOUCHED = 0.1, 0.03
"""How likely the work of a run does not hold, or touches what a flag of its phase stands for, where that is looked into
and nobody says otherwise."""

LANDED: Mapping[str, float] = {LANDS: 0.95, CONFLICT: 0.05}
"""What comes of bringing work onto the base, if nobody says otherwise."""

FIRST = 0.7
"""Of the successes, how many bring the first verdict, or suggest nothing; the others share what is left."""

ANSWER: Mapping[str, float] = {APPROVED: 0.75, CHANGES_REQUESTED: 0.2, SILENCE: 0.05}
"""What a person answers, if nobody says otherwise."""

DIAGNOSED: Mapping[str, float] = {RETRY: 0.6, CHANGE_AGENT: 0.2, ASK_PERSON: 0.1, NO_OUTCOME: 0.1}
"""What comes of a diagnosis, if nobody says otherwise."""

EVERY = "*"
"""Stands for every phase."""

MOST = 500
"""Moves of a life; one that is longer (through people who never have enough) is left off."""

Chance = Annotated[float, Field(ge=0, le=1)]
Takes = tuple[Duration, Duration]


class PhaseChances(Document):
    """What is said of a phase, or of all."""

    chance: dict[str, Chance] = Field(default_factory=dict[str, Chance])
    """How likely a move is; the others share the rest as they do by default."""
    takes: Takes | None = None
    """How long its runs take, or the answers where a person is asked: from, to."""


class Chances(Document):
    """A file of chances."""

    version: Literal[1] = 1
    """The version of the file's language."""
    runs_take: Takes = (timedelta(minutes=2), timedelta(minutes=20))
    """How long a run takes, at least and at most; everything between is as likely."""
    people_take: Takes = (timedelta(minutes=10), timedelta(hours=8))
    """How long a person takes who answers."""
    phases: dict[str, PhaseChances] = Field(default_factory=dict[str, PhaseChances])
    """What is said of a phase by its name; `*` of all."""

    def but(self, words: list[str]) -> "Chances":
        """Say otherwise: `review.approve=0.7`, `*.failed=0`. Raises `UsageError`."""
        phases = dict(self.phases)
        for word in words:
            place, equals, number = word.partition("=")
            name, dot, move = place.partition(".")
            chance = _number(number)
            if not (equals and dot and name and move) or chance is None:
                raise UsageError(f"--chance {word}: expected PHASE.MOVE=NUMBER, the number from 0 to 1")
            before = phases.get(name, PhaseChances())
            phases[name] = before.model_copy(update={"chance": before.chance | {move: chance}})
        return self.model_copy(update={"phases": phases})


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number <= 1 else None


class Dice:
    """Chances of a policy: an `Act` for lives whose issues are numbered, `<prefix>-<number>`."""

    def __init__(self, policy: Policy, chances: Chances, seed: int) -> None:
        """Raises `UsageError` where chances name what there is not, or do not add up."""
        _refuse_unknown(policy, chances)
        self._chances, self._seed = chances, seed
        self._left: dict[str, int] = {}
        self._random: dict[str, random.Random] = {}
        self._weights = cache(self._weigh)
        for phase in policy.phases:
            works: tuple[Kind, ...] = ("run", "question", "diagnosis", "landing")
            for kind in works if phase.human is None else ("question", "landing"):
                self._weights(phase.name, kind, moves(phase, kind), successes(phase), proofs(phase))

    def __call__(self, point: Point) -> ActorStep | None:
        """Let chance decide; None where this has gone on for too long."""
        issue = point.issue
        chance = self._random.get(issue)
        if chance is None:
            chance = self._random[issue] = random.Random(f"{self._seed}:{issue}")
        self._left[issue] = left = self._left.get(issue, MOST) - 1
        if left < 0:
            return None
        names = point.moves
        weights = self._weights(point.phase.name, point.kind, names, successes(point.phase), proofs(point.phase))
        move = chance.choices(names, cum_weights=weights)[0]
        return ActorStep(move, self._takes(point, chance.random()))

    def forget(self) -> None:
        """The lives so far are over."""
        self._random.clear()
        self._left.clear()

    def _takes(self, point: Point, share: float) -> timedelta | None:
        if point.kind in ("diagnosis", "landing"):
            return None
        usual = self._chances.people_take if point.kind == "question" else self._chances.runs_take
        said = (self._chances.phases.get(name, PhaseChances()).takes for name in (point.phase.name, EVERY))
        least, most = next((takes for takes in said if takes is not None), usual)
        takes = point.in_time(least + (most - least) * share)
        return timedelta(seconds=round(takes.total_seconds()))

    def _weigh(
        self, name: str, kind: Kind, known: tuple[str, ...], good: tuple[str, ...], looked: tuple[str, ...]
    ) -> tuple[float, ...]:
        """The chances of the moves, added up one after the other, as `random.choices` wants them."""
        given = {
            move: chance
            for one in (EVERY, name)
            for move, chance in self._chances.phases.get(one, PhaseChances()).chance.items()
            if move in known
        }
        usual = _usual(kind, good, looked)
        left, others = 1 - sum(given.values()), sum(usual[move] for move in known if move not in given)
        if left < -1e-9 or (left > 1e-9 and others <= 0):
            said = ", ".join(f"{move} {chance:g}" for move, chance in given.items())
            raise UsageError(f"the chances of {name} add up to {1 - left:g} ({said}); expected 1 at most, or just 1")
        scale = left / others if others > 0 else 0.0
        return tuple(accumulate(given[move] if move in given else usual[move] * scale for move in known))


def _usual(kind: Kind, good: tuple[str, ...], looked: tuple[str, ...]) -> Mapping[str, float]:
    if kind != "run":
        return {"question": ANSWER, "diagnosis": DIAGNOSED, "landing": LANDED}[kind]
    trouble = {**TROUBLE, **{move: SHORT if move == FALLS_SHORT else TOUCHED for move in looked}}
    well = 1 - sum(trouble.values())
    if len(good) == 1:
        return {good[0]: well, **trouble}
    others = {move: well * (1 - FIRST) / (len(good) - 1) for move in good[1:]}
    return {good[0]: well * FIRST, **others, **trouble}


def _refuse_unknown(policy: Policy, chances: Chances) -> None:
    """Refuse the names of phases and moves that there are not."""
    everything = tuple(
        dict.fromkeys(move for phase in policy.phases for move in (*possible_in(phase), *DIAGNOSED, *LANDINGS))
    )
    for name, said in chances.phases.items():
        phase = policy.phase(name)
        if phase is None and name != EVERY:
            names = [one.name for one in policy.phases]
            raise UsageError(f"chances of {name}: the policy has no such phase{nearest(name, names)}")
        possible = everything if phase is None else (*possible_in(phase), *DIAGNOSED, *LANDINGS)
        for move in said.chance:
            if move not in possible:
                raise UsageError(f"chances of {name}: there is no move {move}{nearest(move, possible)}")
        if said.takes is not None and said.takes[0] > said.takes[1]:
            raise UsageError(f"chances of {name}: takes: the first time is longer than the second")
