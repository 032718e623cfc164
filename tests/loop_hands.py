"""Agents that work in the trees of their issues: each adds a line of its own to a file, and takes in what others wrote.

A line that is missing on the base in the end is work that was lost; a file that two issues write is a conflict.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ashep.core.facts.delivery import WorkLanded, WorkVerified, status_of
from ashep.core.facts.issues import IssueFinished
from ashep.core.state.branches import branch_of
from ashep.extras.simulation.memory.scripted_sessions import Play, Prompted
from ashep.extras.simulation.memory.workspaces import MemoryWorkspaces
from ashep.ports.landing import HEAD
from tests.loop_world import World, policy, said

CONFIG = "version: 1\nworker: {workspace: worktree, max_concurrent_runs: 3}\nlanding: {mode: merge}\n"

SOUND = {"id": "sound", "type": "file_exists", "description": "It is sound.", "verify": {"path": "sound.txt"}}
"""The project's check: an agent that takes the file away has done bad work."""

IMPLEMENT: dict[str, object] = {
    "name": "implement", "access": "write", "verify": True, "checks": [SOUND], "max_visits": 12,
    "retry": {"max_attempts": 4},
}  # fmt: skip


@dataclass
class Hands:
    """Plays the agents. `files`: which files an issue writes; what else it does by the so-and-so-many-th run of it."""

    files: Callable[[str], Iterable[str]]
    bad: dict[str, int] = field(default_factory=dict[str, int])
    """How many runs of an issue leave the project's check broken."""
    idle: dict[str, int] = field(default_factory=dict[str, int])
    """How many runs of an issue say success and change nothing."""
    delay: Callable[[str], float] = lambda _: 4.0
    runs: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    taken_in: int = 0
    """How often somebody resolved a conflict."""

    def __call__(self, world: World, asked: Prompted) -> Play:
        """Do what a prompt asks for, and say so."""
        run = asked.key.split(":", 1)[1]
        issue, phase = run.split("/")[0], run.split("/")[1].split(".")[0]
        if phase == "implement":
            mine = self.runs.setdefault(issue, [])
            if run not in mine:
                mine.append(run)
            if len(mine) > self.idle.get(issue, 0):
                self._work(world, world.own_trees, issue, bad=len(mine) <= self.bad.get(issue, 0))
        return Play(said(phase), delay=self.delay(run))

    def _work(self, world: World, trees: MemoryWorkspaces, issue: str, *, bad: bool) -> None:
        branch, flaw = branch_of(issue), world.world.flows[issue].work.flaw
        theirs = trees.files(trees.base)
        if takes_in := flaw is not None and bool(flaw.onto):
            self.taken_in += 1
            trees.take_in(branch)
        for name in self.files(issue):
            lines = {*trees.read(branch).get(name, "").splitlines(), issue}
            lines |= {*theirs.get(name, "").splitlines()} if takes_in else set()
            trees.edit(branch, name, "\n".join(sorted(lines)))
        trees.edit(branch, "sound.txt", None if bad else "yes")


def landing_world(folder: Path, hands: Hands, *phases: dict[str, Any], config: str = CONFIG) -> World:
    """A world in which issues have trees of their own, whose work is verified and lands on main."""
    world = World(folder, config=config, policies=policy(*(phases or (IMPLEMENT,))))
    world.workspaces = MemoryWorkspaces({"sound.txt": "yes"})
    world.answer = hands
    return world


def check_landed(world: World, hands: Hands, but: Collection[str] = ()) -> None:
    """Every issue's work is on the base, once, as what was verified; nothing is left of the queue. `but`: issues whose
    work never came there.
    """
    trees = world.own_trees
    held = trees.files(trees.base)
    assert held["sound.txt"] == "yes"
    for issue in world.issues():
        for name in hands.files(issue):
            there = issue in held.get(name, "").splitlines()
            assert there != (issue in but), f"{issue} and {name}: {held.get(name)!r}"
    bodies = [entry.body for entry in world.journal()]
    landings = [fact for fact in bodies if isinstance(fact, WorkLanded)]
    evidence = {fact.issue: fact for fact in bodies if isinstance(fact, WorkVerified) and not fact.run}
    landed = {fact.issue: fact for fact in landings}
    assert landed.keys() == world.issues().keys() - {*but}
    assert len(landings) == len(landed), "something landed twice"
    subjects = [commit.subject for commit in trees.history()]
    for issue, fact in landed.items():
        assert trees.holds(trees.base, fact.commit)
        claims = [subject for subject in subjects if subject.endswith(f"[{HEAD}: {fact.head}]")]
        assert len(claims) == 1, f"{issue} is {len(claims)} times on the base"
        verified = evidence[issue]
        assert verified.tree == trees.tree_of(fact.commit), f"{issue} landed as something else than was verified"
        assert status_of(verified.results) == "passing"
    once = [subject for subject in subjects if f"[{HEAD}: " in subject]
    assert len(once) == len(landed), "the base holds work that landed, and was given up"
    assert all(fact.onto == "main" for fact in bodies if isinstance(fact, IssueFinished))
    assert not list(world.world.indexes.landings)
