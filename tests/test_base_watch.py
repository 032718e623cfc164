"""The whole daemon where checks of policies fail on the base, over adapters in memory: no attempt is burnt for that."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from ashep.core.facts.delivery import BaseChecked, Verification, WorkVerified
from ashep.core.facts.issues import IssueHeld, IssueTaken, PersonAsked, RetryScheduled
from ashep.core.facts.runs import PromptSent
from ashep.daemon.base_checker import AGAIN
from ashep.errors import AshepError
from ashep.extras.simulation.memory.annotations import MemoryVerifier
from ashep.extras.simulation.memory.scripted_sessions import Play, Prompted
from ashep.extras.simulation.memory.workspaces import MemoryWorkspaces
from ashep.ports.verifier import VerifyRequest
from tests.loop_hands import CONFIG, Hands
from tests.loop_world import World, policy

pytestmark = [pytest.mark.virtual, pytest.mark.promise("Z7")]

SUITE: dict[str, Any] = {"id": "suite", "type": "test_pass", "description": "", "verify": {"command": ["make", "test"]}}
PHASE: dict[str, Any] = {"name": "implement", "access": "write", "verify": True, "checks": [SUITE]}


class Suite(MemoryVerifier):
    """Runs the project's one program, which fails while the machine lacks something."""

    lacks, takes, broken = True, 0.0, False

    def __init__(self, trees: MemoryWorkspaces) -> None:
        super().__init__(trees)
        self.of_base: list[str] = []
        self.known: list[Verification | None] = []

    async def verify(self, request: VerifyRequest) -> Verification:
        if request.of_base:
            self.of_base.append(request.commit)
            self.known.append(request.known)
        await anyio.sleep(self.takes)
        if self.broken:
            raise AshepError("no room for a checkout")
        found = await super().verify(request)
        said: dict[str, Any] = {"status": "failed", "cause": "network"} if self.lacks else {"status": "passed"}
        return replace(found, results=tuple(replace(result, **said) for result in found.results))


def site(folder: Path, word: str = "ask") -> tuple[World, Suite]:
    """Two issues whose policy says this word."""
    world = World(folder, config=CONFIG, policies=policy(PHASE, on_base_failure=word), issues=2)
    world.workspaces = MemoryWorkspaces({"sound.txt": "yes"})
    world.answer, world.bases = Hands(lambda issue: (f"{issue}.py",)), True
    world.verifier = suite = Suite(world.workspaces)
    return world, suite


def bodies(world: World, kind: type) -> list[Any]:
    return [entry.body for entry in world.entries if isinstance(entry.body, kind)]


async def test_the_base_is_checked_once_while_agents_work_and_nobody_waits_for_it(folder: Path) -> None:
    world, suite = site(folder)
    suite.takes = 60.0
    await world.live(lambda: len(bodies(world, BaseChecked)) == 1)
    assert len(bodies(world, PromptSent)) == 2, "before it was known"
    assert len(suite.of_base) == 1, "for both issues"
    (found,) = bodies(world, BaseChecked)
    assert (found.policy, found.branch, found.commit) == ("standard", "main", world.own_trees.base)
    results = found.found.results
    assert [(result.check_id, result.cause, result.on_base) for result in results] == [("suite", "network", True)]


async def test_the_first_prompt_waits_a_while_for_what_fails_on_the_base(folder: Path) -> None:
    world, suite = site(folder)
    suite.takes, hands, texts = 5.0, Hands(lambda issue: (f"{issue}.py",)), list[str]()

    def play(world: World, asked: Prompted) -> Play:
        texts.append(asked.text)
        return hands(world, asked)

    world.answer = play
    await world.live(lambda: len(texts) == 2)
    assert all("(it fails on the base, too (likely cause: no network in checks)" in text for text in texts)


async def test_a_check_that_cannot_pass_here_asks_after_the_first_attempt(folder: Path) -> None:
    world, _ = site(folder)
    await world.live(lambda: len(bodies(world, PersonAsked)) == 2)
    assert not bodies(world, RetryScheduled)
    assert all("no network in checks" in asked.question for asked in bodies(world, PersonAsked))
    await world.finish(person=True)


async def test_a_check_that_is_ignored_keeps_nothing_from_landing(folder: Path) -> None:
    world, _ = site(folder, "ignore")
    await world.finish()
    assert not bodies(world, PersonAsked)
    assert all(found.ignore for found in bodies(world, WorkVerified))


async def test_a_hold_ends_once_the_machine_is_in_order(folder: Path) -> None:
    world, suite = site(folder, "hold")

    async def mended() -> None:
        while not any(held.code == "base_fails" for held in bodies(world, IssueHeld)):
            await anyio.sleep(1)
        assert not bodies(world, IssueTaken)
        suite.lacks = False

    began = anyio.current_time()
    await world.finish(beside=mended)
    assert AGAIN < anyio.current_time() - began < AGAIN + 600
    codes = [held.code for held in bodies(world, IssueHeld) if held.issue == "t-1"]
    assert codes[:2] == ["base_unchecked", "base_fails"]
    assert not bodies(world, PersonAsked)


async def test_a_hold_ends_once_the_base_is_another(folder: Path) -> None:
    world, suite = site(folder, "hold")

    async def mended() -> None:
        while not any(held.code == "base_fails" for held in bodies(world, IssueHeld)):
            await anyio.sleep(1)
        suite.lacks = False
        world.own_trees.commit("mended", "by a person")
        world.tree.write("calc.py", "mended")
        world.tree.commit("mended")

    began = anyio.current_time()
    await world.finish(beside=mended)
    assert anyio.current_time() - began < AGAIN


@pytest.mark.parametrize(("word", "taken"), [("hold", 0), ("ask", 2)])
async def test_a_base_that_cannot_be_checked_out_has_not_passed(folder: Path, word: str, taken: int) -> None:
    world, suite = site(folder, word)
    suite.broken = True
    await world.live(lambda: bool(bodies(world, BaseChecked)) and len(bodies(world, IssueTaken)) == taken)
    assert [checked.error for checked in bodies(world, BaseChecked)] == ["no room for a checkout"]


async def test_what_keeps_the_checks_from_being_run_ends_no_hold(folder: Path) -> None:
    world, suite = site(folder, "hold")
    await world.live(lambda: len(bodies(world, BaseChecked)) == 1)
    suite.broken = True
    suite.of_base.clear()
    await world.live(lambda: bool(suite.of_base))
    assert world.world.flows["t-1"].code == "base_fails"
    assert not bodies(world, IssueTaken)


async def test_a_restart_knows_a_base_that_holds(folder: Path) -> None:
    world, suite = site(folder)
    suite.lacks = False
    await world.live(lambda: len(bodies(world, BaseChecked)) == 1)
    suite.known.clear()
    await world.live(lambda: bool(suite.known))
    assert suite.known[0] is not None
    assert suite.known[0].commit == bodies(world, BaseChecked)[0].commit


async def test_a_restart_remembers_what_held_and_looks_again_at_what_failed(folder: Path) -> None:
    world, suite = site(folder)
    await world.live(lambda: len(bodies(world, BaseChecked)) == 1)
    world.entries.clear()
    suite.lacks = False
    await world.live(lambda: len(bodies(world, BaseChecked)) == 1)
    assert not any(result.fails for result in bodies(world, BaseChecked)[0].found.results)
