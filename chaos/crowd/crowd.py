"""One crowd of issues, lived through and judged."""

import random
import shutil
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import anyio

from ashep.core.facts.commands import IntegrateWork
from ashep.core.facts.delivery import LandingRefused, WorkConflicted, WorkLanded, WorkVerified
from ashep.core.facts.issues import PhaseEntered
from ashep.core.facts.runs import RunPlanned
from ashep.extras.simulation.memory.workspaces import MemoryLanding
from ashep.ports.landing import Advanced, MoveRefused
from tests.loop_hands import IMPLEMENT, Hands, check_landed, landing_world
from tests.loop_world import World, simulate
from tests.places import made as new_folder

T = TypeVar("T")

CONFIG = (
    "version: 1\nworker: {workspace: place, max_concurrent_runs: %d}\nagents: {sandbox: auto}\nlanding: {mode: merge}\n"
)
VISITS = 6
"""How often the phase that writes may be entered: the bound of rounds through it."""
PATIENCE = 4 * 24 * 3600.0


class Meddled(MemoryLanding):
    """A base to which a person sometimes commits in the moment before ashep moves it."""

    dice = random.Random(0)

    async def advance(self, base_branch: str, old: str, new: str) -> Advanced | MoveRefused:
        if self.dice.random() < 0.1:
            self._workspaces.commit("notes.md", f"{self.dice.random()}")
        return await super().advance(base_branch, old, new)


@dataclass(frozen=True)
class Crowd:
    """What came of it."""

    issues: int
    landed: int
    parked: Counter[str]
    """How many were given up, by code."""
    conflicts: int
    moved: int
    """How often the base had moved by the time it was to be moved."""
    dirty: int
    rounds: int
    """How often work was brought onto a base."""
    most_visits: int
    """How often the issue that was entered most was."""
    runs: int
    verified: int
    short: int
    """How often what was verified did not hold, or was nothing."""
    virtual: float
    """Seconds of virtual time."""
    real: float

    def __str__(self) -> str:
        given_up = ", ".join(f"{count} {code}" for code, count in sorted(self.parked.items())) or "none"
        return (
            f"{self.issues} issues: {self.landed} landed, {sum(self.parked.values())} parked ({given_up})\n"
            f"{self.rounds} rounds onto the base: {self.conflicts} conflicts, {self.moved} times the base had moved, "
            f"{self.dirty} times it was checked out with changes\n"
            f"{self.runs} runs, at most {self.most_visits} visits of an issue; {self.verified} verifications, "
            f"{self.short} of them fell short\n"
            f"{self.virtual / 3600:.1f} h of virtual time, {self.real:.1f} s"
        )


def crowd(issues: int, files: int, *, seed: int = 0, runs: int = 8) -> Crowd:
    """Live until every issue is closed or parked. AssertionError: one is stranded, lands twice, or is lost."""
    place, found = new_folder("ashep-crowd"), list[Crowd]()
    try:
        simulate(lambda: _live(place / ".agent-shepherd", issues, files, seed, runs, found))
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return found[0]


async def _live(folder: Path, issues: int, files: int, seed: int, runs: int, found: list[Crowd]) -> None:
    dice = random.Random(seed)
    names = [f"t-{number}" for number in range(1, issues + 1)]
    writes = {name: dice.sample(range(files), dice.choice((1, 1, 2))) for name in names}
    hands = Hands(
        lambda issue: [f"part{number}.py" for number in writes[issue]],
        bad={name: 1 for name in names if dice.random() < 0.1},
        idle={name: 1 for name in names if dice.random() < 0.05},
        delay=lambda run: random.Random(run).uniform(60, 900),
    )
    world = landing_world(folder, hands, IMPLEMENT | {"max_visits": VISITS}, config=CONFIG % runs)
    world.landing = Meddled(world.own_trees)
    world.landing.dice = random.Random(seed + 2)
    for name in names:
        world.tracker.add(f"make {name}", id=name)
    began, started = time.monotonic(), world.clock.monotonic()
    async with anyio.create_task_group() as group:
        group.start_soon(_person, world, random.Random(seed + 1))
        await world.live(lambda: _over(world, issues), patience=PATIENCE)
        group.cancel_scope.cancel()
    world.check()
    found.append(_judged(world, hands, world.clock.monotonic() - started, time.monotonic() - began))


def _over(world: World, issues: int) -> bool:
    known = world.world
    done = len(known.flows) == issues and not known.indexes.busy and not known.indexes.live
    return done and all(flow.stage in ("closed", "parked") for flow in known.flows.values())


async def _person(world: World, dice: random.Random) -> None:
    """Commit to main now and then, and sometimes leave it dirty for a while."""
    assert world.landing is not None
    while True:
        await anyio.sleep(dice.expovariate(1 / 900))
        world.own_trees.commit("notes.md", f"{world.clock.monotonic()}")
        if dice.random() < 0.3:
            world.landing.refuses = MoveRefused("dirty", "main is checked out in /p, and notes.md has changes there")
            await anyio.sleep(dice.uniform(60, 600))
            world.landing.refuses = None


def _judged(world: World, hands: Hands, virtual: float, real: float) -> Crowd:
    flows, bodies = world.world.flows, [entry.body for entry in world.journal()]
    parked = {name: flow for name, flow in flows.items() if flow.stage == "parked"}
    assert all(flow.code and flow.why for flow in parked.values())
    check_landed(world, hands, but=parked)

    def of(kind: type[T]) -> list[T]:
        return [body for body in bodies if isinstance(body, kind)]

    refused = Counter(fact.code for fact in of(LandingRefused))
    visits = Counter(fact.issue for fact in of(PhaseEntered))
    verified = of(WorkVerified)
    short = [one for one in verified if not one.changed or any(check.status == "failed" for check in one.results)]
    return Crowd(
        len(flows), len(of(WorkLanded)), Counter(flow.code for flow in parked.values()), len(of(WorkConflicted)),
        refused["moved"], refused["dirty"], len(of(IntegrateWork)), max(visits.values()), len(of(RunPlanned)),
        len(verified), len(short), virtual, real,
    )  # fmt: skip
