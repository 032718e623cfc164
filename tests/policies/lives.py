"""Lives under made-up policies, through the real shepherd: what the checker proves of a policy must be so in them.

Half of the lives go by chances as they may be; in the other half every move is as likely as any other, so that
no corner is spared.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ashep.config import read
from ashep.config.presets import PRESETS
from ashep.config.presets import preset as shipped
from ashep.core.analysis.soundness import PolicyVerdict, analyse
from ashep.core.policy.policies import Policies
from ashep.core.policy.settings import Settings, WorkerSettings
from ashep.extras.simulation.actor_moves import CONFLICT, FALLS_SHORT, SILENCE, TOUCHES, TROUBLES, ActorStep, Point
from ashep.extras.simulation.probabilities import Chances, Dice
from ashep.extras.simulation.script import write_script
from ashep.extras.simulation.simulator import Cast, SimulatedIssue, live, starter_agents
from tests.policies.generate import of_seed

OWN = Settings(worker=WorkerSettings(workspace="worktree"))

MOST = 150
"""Moves of a life, after which it is left off: through people, a policy may go on for ever."""


@dataclass(frozen=True)
class Subject:
    """A policy that is lived under."""

    name: str
    cast: Cast
    verdict: PolicyVerdict

    @property
    def sound(self) -> bool:
        """Whether the checker lets it run."""
        return not any(one.severity == "error" for one in self.verdict.findings)


def preset(name: str) -> Subject:
    """A shipped policy, with a work tree for each issue."""
    policies = read(Policies, shipped(name), Path(f"{name}.yaml"))
    return _subject(name, Cast(policies, name, starter_agents(name), OWN))


@cache
def made(seed: int) -> Subject:
    """A made-up one, half of them with a work tree for each issue."""
    case = of_seed(seed)
    settings = OWN if seed % 2 else Settings()
    return _subject(f"made-up policy {seed}:\n{case}", Cast(case.policies, "made", case.agents, settings))


def subjects(first: int = 0) -> Iterator[Subject]:
    """The presets, then made-up policies that the checker lets run, for ever."""
    yield from map(preset, PRESETS)
    while True:
        subject = made(first)
        first += 1
        if subject.sound:
            yield subject


def _subject(name: str, cast: Cast) -> Subject:
    verdict = analyse(cast.policies, cast.agents, cast.settings)[cast.policy]
    return Subject(name, cast, verdict)


class _Wild:
    """Any move is as likely as any other."""

    def __init__(self, seed: int) -> None:
        self._seed, self._random, self._made = seed, dict[str, random.Random](), dict[str, int]()

    def __call__(self, point: Point) -> ActorStep | None:
        chance = self._random.setdefault(point.issue, random.Random(f"{self._seed}:{point.issue}"))
        self._made[point.issue] = made = self._made.get(point.issue, 0) + 1
        return ActorStep(chance.choice(point.moves)) if made <= MOST else None


def lived(subject: Subject, seed: int, count: int) -> list[str]:
    """Live so many lives under a policy, and say what is wrong with them."""
    issues = [f"sim-{number}" for number in range(count)]
    cast = subject.cast
    tame = live(cast, issues[::2], Dice(cast.rules, Chances(), seed))
    wild = live(cast, issues[1::2], _Wild(seed)) if count > 1 else []
    return [
        f"{subject.name}\nseed {seed}, {life.issue}: {words}\n{write_script(life.moves)}"
        for life in (*tame, *wild)
        for words in wrong(subject, life)
    ]


def _is_trouble(move: str) -> bool:
    return move in (*TROUBLES, SILENCE, FALLS_SHORT, CONFLICT) or move.startswith(TOUCHES)


def wrong(subject: Subject, life: SimulatedIssue) -> Iterator[str]:
    """What should not have become of a life."""
    if life.end == "stuck" or (life.end == "waiting" and life.code != "left_off"):
        yield f"it has no next move: {life.end}, {life.code}, {life.why}"
    bounds = subject.verdict.bounds
    went_well = life.end == "closed" and not any(_is_trouble(step.move) for _, step in life.moves)
    if bounds is None:
        if went_well:
            yield "it closed, and the checker says that nothing good leads there"
        return
    if went_well and life.runs < bounds.best_runs:
        yield f"it closed after {life.runs} runs, and the checker knows no way of less than {bounds.best_runs}"
    for cycle in life.cycles:
        if cycle.runs > bounds.worst_runs:
            yield f"a cycle took {cycle.runs} runs, and the checker says {bounds.worst_runs} at worst"
        if cycle.questions > bounds.worst_questions:
            yield f"a cycle asked {cycle.questions} questions, and the checker says {bounds.worst_questions} at worst"
