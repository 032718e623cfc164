"""The whole daemon, in which effects of one issue raise what nobody foresaw, over memory and virtual time."""

import logging
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import get_args

import anyio
import pytest

from ashep.core.facts import commands as c
from ashep.core.facts.resources import FolderLeft
from ashep.core.facts.runs import PromptSent
from ashep.core.facts.sources import SourceCommand
from ashep.core.facts.tracker import LeaseExpired, LeaseLost, Stamp
from ashep.core.state.pending_intents import FAULT_LIMIT
from ashep.core.state.world import World as Known
from ashep.daemon.daemon import RunningDaemon
from ashep.extras.simulation.memory.runner import MemoryRunner
from ashep.extras.simulation.memory.scripted_sessions import Play
from ashep.extras.simulation.memory.workspaces import MemoryWorkspaces
from ashep.ports.runner import Turn
from ashep.ports.tracker import ClaimRequest
from tests.full import half
from tests.loop_hands import Hands, landing_world
from tests.loop_world import World, policy, said
from tests.memory import MemoryForge
from tests.test_loop_landing import alone
from tests.test_loop_pull_requests import CONFIG as PULLS
from tests.test_loop_pull_requests import IMPLEMENT
from tests.test_unforeseen import KINDS as ALL_KINDS
from tests.test_unforeseen import TWELVE, Planted

pytestmark = pytest.mark.virtual

SHARED = """\
version: 1
permissions: [{tool: bash, pattern: "*", action: allow}]
notify: {targets: [{name: pager, command: [pager]}]}
"""
BROKEN, FINE = "t-1", "t-2"
KINDS = [kind for kind in ALL_KINDS if kind not in get_args(SourceCommand)]
"""Those about issues of sources are in tests/test_loop_sources.py."""
CONFIG = "version: 1\nworker: {workspace: worktree, max_concurrent_runs: 3}\ntrees: {keep: 1m}\n"
OWN = (c.PrepareTree, c.SealTree, c.VerifyWork, c.IntegrateWork, c.MoveBase, c.RemoveTree)
NOT_OURS = (c.SendNotice, c.RemoveTree, c.ReclaimIssue)
"""What fails of no issue that we work on: nothing is parked for it."""

BOUND = 4 * FAULT_LIMIT
"""Failures of one kind in a life of some hours: of a few effects, each of which is given up."""


CASES = [
    pytest.param(kind, times, id=f"{kind.__name__}-{'once' if times == 1 else 'always'}")
    for kind, times in half(
        case for number, kind in enumerate(KINDS) for case in ((kind, 1), (kind, 99))[:: 1 if number % 2 else -1]
    )
]
"""Each kind, of one commit some once and the others always, and of another the other way round."""


def of(kind: type, folder: Path) -> World:
    """A world with two issues, in which such an effect is asked for."""
    if kind in OWN:
        world = landing_world(folder, Hands(alone), config=CONFIG)
        world.tracker.add("broken")
    elif kind is c.OpenPullRequest:
        world = World(folder, config=PULLS, policies=policy(IMPLEMENT), issues=1)
        world.workspaces = MemoryWorkspaces({"calc.py": "1"})
        world.forge, world.answer = MemoryForge(world.own_trees), Hands(alone)
    else:
        world = World(folder, config=SHARED, issues=1)
        world.outcomes = {f"{BROKEN}/implement": [{"created_issues": [{"title": "more"}]}]}
    if kind is c.AnswerRequest:
        play = Play(text=said("implement"), delay=20.0, asks="permission", tool_asked="bash", wants="ls")
        world.answer = lambda _, asked: play if f"{BROKEN}/implement" in asked.key else None
    world.tracker.add("fine")
    return world


async def happens(kind: type, world: World, running: RunningDaemon) -> None:
    """What brings about that the effect is asked for."""
    shepherd = running.shepherd
    if kind is c.ReclaimIssue:
        await shepherd.wait_while(lambda known: BROKEN not in known.flows)
        shepherd.tell(LeaseExpired(BROKEN, "ashep-dead", world.clock.now() - timedelta(hours=1)))
    if kind in (c.ReadIssue, c.StopTurn, c.ReadAuthors):
        await shepherd.wait_while(lambda _: not any(one.issue == BROKEN for one in sent(world)))
        if kind is c.ReadIssue:
            shepherd.tell(LeaseLost(BROKEN, "the tracker said so"))
        else:
            who = "ashep-agent" if kind is c.ReadAuthors else "pat"
            world.tracker.person_sets(BROKEN, who, add_labels=("ashep:excluded",))
    if kind is c.TakeOffLabels:
        await shepherd.wait_while(lambda known: BROKEN not in known.flows or known.flows[BROKEN].stage != "person")
        await anyio.sleep(60)
        world.tracker.person_sets(BROKEN, "ashep-agent", add_labels=("human:approved",))
    merged, site = set[int](), world.forge
    while site is not None:
        await anyio.sleep(30)
        for number, request in [*site.requests.items()]:
            if number in merged:
                continue
            merged.add(number)
            commit = world.own_trees.merge(site.branches[request.branch], world.own_trees.base, "Merge it")
            assert isinstance(commit, str)
            world.own_trees.advance(world.own_trees.base, commit)
            site.ends(number, "merged", "ann", commit)


def sent(world: World) -> Iterator[PromptSent]:
    return (entry.body for entry in world.entries if isinstance(entry.body, PromptSent))


@pytest.mark.promise("E5")
@pytest.mark.parametrize(("kind", "times"), CASES)
async def test_a_fault_in_one_issue_parks_it_and_the_others_close(
    kind: type, times: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = of(kind, folder)
    number = KINDS.index(kind)
    planted = Planted(kind, ("before", "after")[number % 2], TWELVE[number % 12], times)
    planted.issue = BROKEN
    planted.put(monkeypatch)
    if kind in (c.StopOrphan, c.ReclaimIssue):
        who = "ashep-dead" if kind is c.ReclaimIssue else world.tracker.actor
        stamp = Stamp("another", 5, f"{BROKEN}/implement.1.1", 1, 1, actor=who)
        await world.tracker.as_actor(who).claim(ClaimRequest(BROKEN, stamp, ("phase:implement",)))
    async with world.living() as running, anyio.create_task_group() as group:
        group.start_soon(happens, kind, world, running)
        group.start_soon(world.person, "human:approved", 600)
        wait = running.shepherd.wait_while
        with anyio.fail_after(4 * 3600):
            await wait(lambda _: planted.raised == 0)
            await wait(lambda known: known.flows[FINE].stage != "closed")
        await anyio.sleep(3600)
        if kind in NOT_OURS:
            assert world.stands(BROKEN) != "running"
        elif kind is c.StopTurn or (kind is c.ReadAuthors and times > 1):  # somebody wants it to stop
            assert world.code(BROKEN) == "excluded"
        else:
            assert (world.stands(BROKEN), world.code(BROKEN)) == ("parked", "unforeseen")
        assert planted.raised <= {1: 1}.get(times, BOUND)
        assert all("nobody foresaw how:\nTrace" in said.replace("  + Exception Group ", "") for said in world.said)
        if times == 1 and kind not in (*NOT_OURS, c.StopTurn):
            assert "nobody foresaw why" in "".join(world.comments(BROKEN))
            world.tracker.person_sets(BROKEN, "pat", remove_labels=("ashep:parked",))  # as `ashep retry` does
            with anyio.fail_after(4 * 3600):
                await wait(lambda known: known.flows[BROKEN].stage != "closed")
        group.cancel_scope.cancel()
    if times == 1:
        async with world.living() as running:  # nor does the next start
            await anyio.sleep(60)


def _is_not(issue: str, stage: str, known: Known) -> bool:
    return issue not in known.flows or known.flows[issue].stage != stage


class Hostile(MemoryRunner):
    """A server whose answers about one issue's sessions are nothing that anybody foresaw."""

    async def turn(self, session: str, message_id: str, ours: frozenset[str] = frozenset()) -> Turn:
        """Read a turn."""
        turn = await super().turn(session, message_id, ours)
        if f":{BROKEN}/" in self.sessions[session].request.key:
            raise OverflowError("cannot convert float infinity to integer")
        return turn


@pytest.mark.promise("E5")
async def test_a_session_that_cannot_be_read_keeps_no_other_waiting(folder: Path) -> None:
    """It ended the daemon, and each next one that read it."""
    world = World(folder, config=SHARED, issues=1)
    world.tracker.add("fine")
    world.runner = Hostile(world.clock, world.play)
    async with world.living() as running, anyio.create_task_group() as group:
        group.start_soon(world.person, "human:approved", 600)
        with anyio.fail_after(12 * 3600):
            for issue, stage in ((BROKEN, "parked"), (FINE, "closed")):
                await running.shepherd.wait_while(partial(_is_not, issue, stage))
        group.cancel_scope.cancel()
    told = [words for words in world.said if "cannot be read, and nobody foresaw how" in words]
    assert len(told) == 1, "once"
    assert "OverflowError" in told[0]


async def test_people_are_told_once_of_a_folder_that_cannot_be_deleted(folder: Path) -> None:
    world = World(folder, config=SHARED)
    why = "/places/x cannot be deleted (rm: it resists). It is left in /places/.ashep-undeletable/1: delete it by hand"
    async with world.living() as running:
        logging.getLogger("ashep.folders").warning("%s", why)
        with anyio.fail_after(600):
            await running.shepherd.wait_while(lambda _: not world.notifier.told)
    async with world.living():
        await anyio.sleep(3600)
    assert world.bodies(FolderLeft) == [FolderLeft(why)]
    told = [notice for _, message in world.notifier.told for notice in message.notices]
    assert [notice.text for notice in told if notice.event == "finding"] == [why]
