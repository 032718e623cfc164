"""The whole daemon where work lands by pull request, killed at its boundaries, over adapters in memory."""

from functools import partial
from pathlib import Path

import anyio
import pytest

from ashep.core.analysis.issue_status import account
from ashep.core.facts.delivery import LandingRefused, PullRequestMerged, PullRequestOpened, PullRequestReturned
from ashep.core.facts.issues import IssueClosed, PhaseEntered
from ashep.core.facts.runs import RunPlanned
from ashep.core.state.branches import branch_of
from ashep.errors import ForgeRefused, ForgeUnavailable
from ashep.extras.simulation.memory.workspaces import MemoryWorkspaces
from ashep.ports.landing import PullState
from tests.loop_world import Points, World, crash_at_each, crossed, lose_each, policy, some
from tests.memory import MemoryForge
from tests.waiting import meanwhile, wait_until

pytestmark = pytest.mark.virtual

CONFIG = """\
version: 1
worker: {workspace: worktree}
landing: {mode: pull_request, forge: {type: github, repository: acme/tools, poll_every: 30s}}
"""
IMPLEMENT: dict[str, object] = {"name": "implement", "access": "write", "verify": True, "max_visits": 4}
ISSUE = "t-1"
BRANCH = branch_of(ISSUE)


def forged(folder: Path) -> tuple[World, MemoryForge]:
    """A world with one issue that lands by pull request."""
    world = World(folder, config=CONFIG, policies=policy(IMPLEMENT), issues=1)
    world.workspaces = MemoryWorkspaces({"calc.py": "1"})
    world.forge = MemoryForge(world.own_trees)
    world.delay = 4.0
    return world, world.forge


async def people(world: World, site: MemoryForge) -> None:
    """CI fails on the first work, a person wants changes of the second, and the third is merged."""
    heads = list[str]()
    while True:
        await anyio.sleep(10)
        head = site.branches.get(BRANCH)
        if head is None or head in heads or 1 not in site.requests:
            continue
        heads.append(head)
        if len(heads) == 1:
            site.checks(1, "failing", "build")
        elif len(heads) == 2:
            site.checks(1, "passing")
            site.says(1, "changes_requested", "ann", "Say it in other words.")
        else:
            site.says(1, "approved", "ann", "")
            await anyio.sleep(60)
            merge(world, site, head)


def merge(world: World, site: MemoryForge, head: str) -> None:
    """A person merges it."""
    trees = world.own_trees
    commit = trees.merge(head, trees.base, "Merge it")
    assert isinstance(commit, str)
    trees.advance(trees.base, commit)
    site.ends(1, "merged", "ann", commit)


async def lived(world: World, site: MemoryForge, points: Points | None = None) -> None:
    """Live until the issue is closed, through a crash where there is one."""
    async with meanwhile(partial(people, world, site)):  # they know what they have seen, whoever crashes
        await world.live_on(points or Points())
    holds(world, site)


def holds(world: World, site: MemoryForge) -> None:
    """One pull request, of three pieces of work, and the base has the last."""
    world.check_done()
    trees, flow = world.own_trees, world.world.flows[ISSUE]
    assert trees is not None
    assert flow.work.own is not None
    assert len(site.requests) == 1
    assert site.branches[BRANCH] == flow.work.own.head
    assert trees.holds(trees.base, flow.work.own.head)
    assert [fact.kind for fact in world.bodies(PullRequestReturned)] == ["ci", "review"]
    assert [fact.visit for fact in world.bodies(PhaseEntered)] == [1, 2, 3]
    assert len(world.bodies(PullRequestMerged)) == 1
    assert [fact.by for fact in world.bodies(IssueClosed)] == ["shepherd"]
    told = [text for text in world.comments(ISSUE) if text.startswith("The pull request ")]
    assert [text.split(":")[0] for text in told] == ["The pull request waits to be merged"] + [
        "The pull request has new work"
    ] * 2
    assert any(text.startswith(f"Landed on `main` as {trees.base}") for text in world.comments(ISSUE))


@pytest.mark.promise("Z3")
async def test_ci_a_review_and_a_merge_come_back(folder: Path) -> None:
    world, site = forged(folder)
    await lived(world, site)
    (request,) = site.requests.values()
    assert (request.branch, request.base) == (BRANCH, "main")
    first = world.bodies(RunPlanned)[0]
    trace = next(entry.seq for entry in world.journal() if entry.body == first)
    assert f"{first.run} (trace {trace})" in request.body
    assert "**unverified**" in request.body
    prompts = [message.text for one in world.runner.sessions.values() for message in one.messages]
    assert "Checks of the forge that failed" in prompts[1]
    assert "build: it fails" in prompts[1]
    assert "Say it in other words." in prompts[2]
    assert "failed checks" not in prompts[2]


@pytest.mark.promise("Z3")
async def test_metadata_say_what_was_found_while_a_pull_request_is_open(folder: Path) -> None:
    world, points = forged(folder)[0], Points()

    def waits() -> bool:
        flow = world.world.flows.get(ISSUE)
        return flow is not None and account(world.world, ISSUE).code == "pull_request" and not flow.comments

    await world.live(waits, points)
    assert not world.bodies(IssueClosed)
    notes = world.tracker.metadata(ISSUE)
    assert notes["verification_status"] in ("unverified", "passing")
    assert notes["impact_flags"] == []
    files = notes["ticket_files"]
    assert isinstance(files, dict)
    assert files["modified"] == ["calc.py"]
    assert points.calls.count("annotate") == 1
    assert points.calls.count("update") == 0, "no posture is written for it"


def refusals(world: World) -> list[LandingRefused]:
    """What was refused in this life of the daemon."""
    return [entry.body for entry in world.entries if isinstance(entry.body, LandingRefused)]


@pytest.mark.slow
async def test_one_that_nobody_looks_at_leaves_nothing_in_the_journal(folder: Path) -> None:
    world, site = forged(folder)
    async with world.living() as running:
        while not world.world.flows or account(world.world, ISSUE).code != "pull_request":
            await running.shepherd.changed()
        await anyio.sleep(3600)  # the agent server, on which nothing runs, has been ended by then
        before = len(world.entries)
        await anyio.sleep(24 * 3600)
        told = [entry.body for entry in world.entries[before:]]
    assert not told
    assert account(world.world, ISSUE).state == "person"
    assert len(site.requests) == 1
    world.check()


def pushes(world: World, site: MemoryForge) -> str:
    """A person pushes a commit of theirs to the issue's branch."""
    trees = world.own_trees
    site.branches[BRANCH] = trees.commit("notes", "a person's")
    return site.branches[BRANCH]


@pytest.mark.promise("Z3")
async def test_what_a_person_pushed_is_left_to_them_and_closes_the_issue_once_they_merge_it(folder: Path) -> None:
    world, site = forged(folder)

    async def person() -> None:
        await wait_until(lambda: BRANCH in site.branches, 3600, 5)
        theirs = pushes(world, site)
        site.checks(1, "failing", "build")
        await anyio.sleep(3600)
        assert site.branches[BRANCH] == theirs
        merge(world, site, theirs)

    await world.finish(beside=person)
    assert [fact.visit for fact in world.bodies(PhaseEntered)] == [1], "nobody worked on it again"
    assert [fact.by for fact in world.bodies(IssueClosed)] == ["shepherd"]
    assert sum("ashep touches it no more" in text for text in world.comments(ISSUE)) == 1


@pytest.mark.promise("Z3")
async def test_what_a_person_pushed_is_never_overwritten(folder: Path) -> None:
    world, site = forged(folder)
    theirs = list[str]()

    async def person() -> None:
        await wait_until(lambda: BRANCH in site.branches, 3600, 5)
        site.checks(1, "failing", "build")
        await wait_until(lambda: len(world.bodies(PhaseEntered)) == 2, 3600, 1)  # it is worked on again
        theirs.append(pushes(world, site))

    await world.live(lambda: "ashep:parked" in world.issues()[ISSUE].labels, beside=person)
    assert world.code(ISSUE) == "landing_theirs"
    assert site.branches[BRANCH] == theirs[0]
    (refused,) = world.bodies(LandingRefused)
    assert refused.code == "theirs"
    world.check()


async def test_a_forge_that_is_away_costs_no_attempt_and_is_asked_again(folder: Path) -> None:
    world, site = forged(folder)
    site.away = ForgeUnavailable("rate limit", retry_after=300)
    async with world.living() as running:
        while not refusals(world):
            await running.shepherd.changed()
        assert account(world.world, ISSUE).state == "time"
        site.away = None
        while account(world.world, ISSUE).code != "pull_request":
            await running.shepherd.changed()
        (refused,) = refusals(world)
        assert refused.wait.total_seconds() == 300
        site.away = ForgeUnavailable("down")
        await anyio.sleep(3600)
        site.away = None
        merge(world, site, site.branches[BRANCH])
        while not world.all_closed():
            await running.shepherd.changed()
    world.check_done()
    assert len(world.bodies(PullRequestOpened)) == 1


class Shy(MemoryForge):
    """A forge that refuses to show the first pull request."""

    async def state(self, number: int) -> PullState:
        if number == 1:
            raise ForgeRefused("it is nothing for you", status=403)
        return await super().state(number)


async def test_one_that_cannot_be_read_keeps_no_other_waiting(folder: Path) -> None:
    world, _ = forged(folder)
    world.forge = site = Shy(world.own_trees)
    world.tracker.add("another issue")
    goal = {"t-1", "t-2"}
    await world.live(lambda: {name for name in world.world.flows if world.code(name) == "pull_request"} == goal)
    second = next(name for name in goal if site.requests[2].branch == branch_of(name))
    site.ends(2, "merged", "ann", "f00d")
    await world.live(lambda: world.issues()[second].status == "closed")
    assert world.stands(min(goal - {second})) == "person"
    world.check()


async def life(folder: Path, points: Points) -> None:
    """A life in which a pull request is merged, whatever happens at its points."""
    world, site = forged(folder)
    await lived(world, site, points)


@pytest.mark.promise("Z3")
@pytest.mark.slow
def test_a_crash_at_each_kind_of_boundary(folder: Path) -> None:
    names = crossed(life, folder).names
    assert {"push asked", "push done", "open asked", "open done", "state asked", "state done"} <= {*names}
    crash_at_each(life, folder, some(names, 1))


@pytest.mark.slow
@pytest.mark.parametrize("which", ["before", "after"])
def test_a_lost_answer_of_each_kind_of_call(folder: Path, which: str) -> None:
    lose_each(life, folder, which)
