"""The whole daemon over a repository that breaks and is mended, and whose base others move at its remote."""

from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from ashep.core.facts.delivery import RepositorySeen, TreePrepared
from ashep.core.facts.issues import IssueParked, IssueTaken
from ashep.daemon.daemon import WorkOptions, narrator
from ashep.errors import ProgramTimedOut
from ashep.extras.simulation.memory.workspaces import MemoryWorkspaces
from tests.loop_world import World, policy
from tests.memory import MemoryCheckup, MemoryForge
from tests.test_loop import until
from tests.waiting import wait_until

pytestmark = pytest.mark.virtual

CONFIG = "version: 1\nworker: {workspace: worktree, max_concurrent_runs: 1}\nlanding: {mode: branch}\n"
PULLS = CONFIG.replace("mode: branch", "mode: pull_request, forge: {type: github, repository: acme/tools}")
IMPLEMENT: dict[str, object] = {"name": "implement", "access": "write"}


def world_of(folder: Path, config: str = CONFIG, issues: int = 3) -> tuple[World, MemoryCheckup]:
    """A world whose repository is looked at."""
    world = World(folder, config=config, policies=policy(IMPLEMENT), issues=issues)
    world.workspaces = MemoryWorkspaces({"calc.py": "1"})
    world.delay = 4.0
    world.checkup = MemoryCheckup(world.own_trees)
    return world, world.checkup


@pytest.mark.promise("I8")
async def test_a_night_on_a_broken_repository_claims_nothing_and_goes_on_once_it_is_mended(folder: Path) -> None:
    world, checkup = world_of(folder)
    checkup.fault = "the branch `ashep` is in the way"
    said = list[str]()
    assert await until(world, WorkOptions(until_idle=True), said) == 1, "it is no good end"
    assert not world.bodies(IssueTaken)
    assert [issue.status for issue in world.issues().values()] == ["open"] * 3
    assert {world.code(name) for name in world.issues()} == {"repository"}
    checkup.fault = ""
    await world.finish()
    assert [fact.fault for fact in world.bodies(RepositorySeen)].count("the branch `ashep` is in the way") == 1


@pytest.mark.promise("I8")
async def test_what_one_issue_meets_first_is_looked_into_and_holds_the_others_unclaimed(folder: Path) -> None:
    world, checkup = world_of(folder)
    world.own_trees.room, checkup.hidden = False, "no new work tree: no room"
    logged = list[str]()

    async def mended() -> None:
        await anyio.sleep(3600)
        world.own_trees.room, checkup.hidden = True, ""

    async with anyio.create_task_group() as group:
        group.start_soon(mended)
        async with world.living() as running:
            running.shepherd.show(narrator(logged.append))
            while not world.all_closed():
                await running.shepherd.changed()
    world.check_done()
    assert not world.bodies(IssueParked)
    taken = [entry for entry in world.journal() if isinstance(entry.body, IssueTaken)]
    hour = taken[0].at.timestamp() + 3500
    assert [entry.at.timestamp() < hour for entry in taken] == [True, False, False]
    assert logged.count("nothing begins until this is mended: no new work tree: no room") == 1
    assert checkup.looks[0] is False, "the first look is a cheap one"


async def test_a_git_that_is_slow_is_no_fault_and_ends_no_watch(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world, checkup = world_of(folder)
    look, tries = checkup.look, list[bool]()

    async def slow(base: str, merges: Sequence[str], *, thorough: bool = False) -> RepositorySeen:
        tries.append(thorough)
        if len(tries) < 4:
            await anyio.sleep(30)
            raise ProgramTimedOut("git did not end in 30 s")
        return await look(base, merges, thorough=thorough)

    monkeypatch.setattr(checkup, "look", slow)
    await world.finish()
    assert len(tries) >= 4
    assert {fact.fault for fact in world.bodies(RepositorySeen)} == {""}


async def test_a_git_that_never_answers_is_a_hold_that_ends_a_night_with_its_words(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, checkup = world_of(folder)

    async def never(base: str, merges: Sequence[str], *, thorough: bool = False) -> RepositorySeen:
        await anyio.sleep(30)
        raise ProgramTimedOut("git did not end in 30 s")

    monkeypatch.setattr(checkup, "look", never)
    assert await until(world, WorkOptions(until_idle=True), []) == 1
    assert not world.bodies(IssueTaken)
    assert {world.code(name) for name in world.issues()} == {"repository"}


@pytest.mark.promise("Z6")
async def test_who_depends_on_a_merged_pull_request_begins_where_that_merge_is(folder: Path) -> None:
    world, checkup = world_of(folder, PULLS, issues=1)
    world.forge = MemoryForge(world.own_trees)
    second = world.tracker.add("second", blocked_by=("t-1",))
    trees = world.own_trees

    def merged(number: int, issue: str) -> str:
        assert world.forge is not None
        head = world.forge.branches[f"ashep/{issue}"]
        commit = trees.merge(head, checkup.base, "Merge it")
        assert isinstance(commit, str)
        world.forge.ends(number, "merged", "ann", commit)
        return commit

    async def people() -> None:
        assert world.forge is not None
        await wait_until(lambda: 1 in (world.forge.requests if world.forge else ()), 600)
        checkup.error = "origin cannot be fetched: no answer"
        commit = merged(1, "t-1")
        await wait_until(lambda: second in world.world.flows and world.code(second) == "base_behind", 600)
        await anyio.sleep(120)
        assert "origin cannot be fetched: no answer" in [fact.error for fact in world.bodies(RepositorySeen)]
        checkup.base, checkup.error = commit, ""
        await wait_until(lambda: 2 in (world.forge.requests if world.forge else ()), 600)
        merged(2, second)

    await world.finish(beside=people)
    base = next(fact.base for fact in world.bodies(TreePrepared) if fact.issue == second)
    assert base == checkup.base != trees.base, "it begins at the remote's branch, and no branch here moved"
    assert [fact.merges for fact in world.bodies(RepositorySeen) if checkup.base in fact.merges]


async def test_without_a_wish_nothing_is_fetched(folder: Path) -> None:
    world, checkup = world_of(folder)
    await world.finish()
    assert checkup.fetches == 0
    wished, looked = world_of(folder / "other", CONFIG.replace("mode: branch", "mode: branch, fetch: true"))
    await wished.finish()
    assert looked.fetches == 1, "at the start, and then every ten minutes"
