"""Work in trees of issues' own, made up: what is found of it, and whether it fits the base, is said by whoever acts."""

from collections.abc import Callable
from dataclasses import replace

import anyio.lowlevel

from ashep.core.facts import commands, delivery
from ashep.core.facts.vocabulary import Fact
from ashep.core.policy.flags import FLAGS
from ashep.core.policy.settings import Settings
from ashep.core.state.flow import Flow
from ashep.core.state.world import World
from ashep.daemon.effects.work import WorkCommand, WorkEffects
from ashep.extras.simulation.actor_moves import FALLS_SHORT, TOUCHES
from ashep.extras.simulation.memory.workspaces import MemoryWorkspaces
from ashep.ports.journal import Blobs
from ashep.ports.tracker import Tracker

CHECK = "simulated"
"""The one check that there is."""


class MadeUpWork(WorkEffects):
    """Answers what is asked about the work of issues: by what their last run did, and by `fits` for the base."""

    def __init__(self, tracker: Tracker, blobs: Blobs, trees: MemoryWorkspaces, fits: Callable[[str], bool]) -> None:
        super().__init__(tracker, blobs)
        self._trees, self._fits = trees, fits
        self._short = set[str]()
        self._touched: dict[str, set[str]] = {}

    def record_run(self, issue: str, branch: str | None, run: str, move: str, *, writes: bool) -> None:
        """A run did this; what writes leaves a file, whatever comes of it."""
        if move == FALLS_SHORT:
            self._short.add(issue)
        else:
            self._short.discard(issue)
        if move.startswith(TOUCHES):
            self._touched.setdefault(issue, set()).add(move.removeprefix(TOUCHES))
        if writes and branch is not None:
            self._trees.edit(branch, issue, run)

    async def touched(self, sealed: delivery.TreeSealed, flow: Flow, world: World) -> delivery.TreeSealed:
        """Say what all runs so far have touched."""
        del world
        await anyio.lowlevel.checkpoint()
        if flow.work.own is not None and sealed.head == flow.work.own.base:
            return sealed
        touched = self._touched.get(sealed.issue, set())
        return replace(sealed, flags=tuple(flag for flag in FLAGS if flag in touched))

    async def settle(self, settings: Settings) -> None:
        """Nothing is ever half done here."""

    async def execute(self, command: WorkCommand, now: Callable[[], World]) -> list[Fact]:
        """Say what comes of it."""
        await anyio.lowlevel.checkpoint()
        issue, key = command.issue, command.key
        match command:
            case commands.VerifyWork():
                short = bool(command.run) and issue in self._short
                result = delivery.CheckResult(CHECK, "failed" if short else "passed", "made up", 0)
                tree = self._trees.tree_of(command.commit)
                found = delivery.WorkVerified(
                    issue, key, command.commit, tree, changed=True, run=command.run, checks=CHECK, results=(result,),
                    isolated=None, must_change=command.change,
                )  # fmt: skip
                return [*([delivery.CriteriaAdopted(issue, "")] if command.adopt else []), found]
            case commands.IntegrateWork():
                base = self._trees.base
                if command.head == base:
                    return [delivery.WorkLanded(issue, key, command.onto, command.head, base, already=True)]
                if not self._fits(issue):
                    return [delivery.WorkConflicted(issue, key, command.head, base, ("made-up",))]
                tree = self._trees.tree_of(command.head)
                return [delivery.WorkIntegrated(issue, key, command.head, base, command.head, tree)]
            case commands.MoveBase():
                return [delivery.WorkLanded(issue, key, command.onto, command.head, command.new)]
