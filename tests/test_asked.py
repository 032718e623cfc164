"""What agents in places ask is answered: about their own issue, a few times, and whatever goes wrong."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from ashep.actions import verify_requests
from ashep.actions.verify_requests import VerifyResponder, under_way
from ashep.adapters.git.workspaces.clones import Clones
from ashep.adapters.runners.opencode.isolated_runner import folder_for
from ashep.adapters.sandboxes.request_files import ANSWERS, ASKS
from ashep.core.facts.tracker import Issue
from ashep.core.policy.checks import Criteria as Checks
from ashep.core.policy.checks import canonical
from ashep.core.policy.settings import Settings
from ashep.core.state.branches import branch_of
from ashep.core.state.delivery import Criteria, OwnTree, Work
from ashep.core.state.flow import Flow
from ashep.core.state.run import Run
from ashep.core.state.world import World, put
from ashep.daemon.effects.executor import Effects
from ashep.daemon.effects.trees import TreeEffects
from ashep.daemon.leases import Leases
from ashep.daemon.shepherd import Shepherd
from ashep.extras.simulation.memory.runner import MemoryRunner, Play
from ashep.extras.simulation.memory.tracker import MemoryTracker
from ashep.extras.simulation.memory.work_tree import MemoryTree
from ashep.journal.writer import Journal
from ashep.redaction import Redaction
from tests.conformance.workspaces import PlacesWorld
from tests.memory import ManualClock
from tests.places import has_bubblewrap

pytestmark = [
    pytest.mark.usefixtures("git_alone"), pytest.mark.slow, pytest.mark.may_block,
    pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap cannot be used here"),
]  # fmt: skip

ONE, SECRET = branch_of("t-1"), "a-secret-of-this-machine"
RUN = "t-1/implement.1.1"
SETTINGS = Settings.model_validate({"worker": {"workspace": "place"}, "agents": {"sandbox": "bwrap"}})
SLOW = ["sh", "-c", f"echo {SECRET}; sleep 1; exit 3"]


class Project(PlacesWorld):
    """A project in which t-1 is being worked on, and the shepherd that knows it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.place = self.top / ".agent-shepherd" / "places"
        self.spaces = Clones(self.top, self.place)
        self.state = self.top / ".agent-shepherd" / "state"
        self.server = folder_for(self.state, self.place / ONE)
        for made in (self.server / ASKS, self.answers, self.state):
            made.mkdir(parents=True)

    @property
    def answers(self) -> Path:
        return self.server / "stubs" / ANSWERS

    @asynccontextmanager
    async def shepherd(self, *checks: dict[str, object]) -> AsyncIterator[Shepherd]:
        clock = ManualClock()
        tracker = MemoryTracker(clock.now)
        journal = await to_thread.run_sync(Journal.open, self.state, clock.now())
        runner, leases = MemoryRunner(clock, lambda _: Play()), Leases(tracker, clock)
        trees = TreeEffects(MemoryTree())
        effects = Effects(tracker=tracker, runner=runner, trees=trees, blobs=journal.blobs, leases=leases)
        shepherd = Shepherd(journal, effects, clock)
        made = [{"description": "d", "id": f"c{number}", **check} for number, check in enumerate(checks)]
        criteria = Checks.model_validate_json(json.dumps({"checks": made}))
        blob = await journal.blobs.keep(canonical(criteria)) if checks else ""
        work = Work(own=OwnTree(ONE, 0, path=str(self.place / ONE), base=self.base()), criteria=Criteria("h", blob))
        flow = Flow(Issue("t-1", "make it", "in_progress", "task", 2, clock.now()), "work", work=work, run=running())
        shepherd.world = put(replace(World(), settings=SETTINGS), "t-1", flow)
        yield shepherd
        await to_thread.run_sync(journal.close)

    def ask(self, *numbers: int) -> None:
        for number in numbers:
            (self.server / ASKS / f"{number:016x}").touch()

    async def answered(self, number: int, bound: float = 20) -> tuple[int, str]:
        file = self.answers / f"{number:016x}"
        with anyio.fail_after(bound):
            while not file.exists():
                await anyio.sleep(0.02)
        code, _, text = file.read_text().partition("\n")
        return int(code), text


def running(**changes: object) -> Run:
    run = Run(
        RUN, "implement", 1, 1, "builder", "opencode", None, None, "write", timedelta(hours=1), 1, World().now,
        branch=ONE, state="running", session="s",
    )  # fmt: skip
    return replace(run, **changes)  # pyright: ignore[reportArgumentType] - as given


@pytest.fixture
async def project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("HOME", str(folder.parent / "home"))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    made = Project(folder.parent)
    await made.begun(ONE, {"b.txt": "b\n"})
    return made


@asynccontextmanager
async def serving(project: Project, shepherd: Shepherd) -> AsyncIterator[None]:
    async with anyio.create_task_group() as group:
        group.start_soon(VerifyResponder(project.top, shepherd, Redaction((SECRET,))).run)
        yield
        group.cancel_scope.cancel()


def exists(path: str) -> dict[str, object]:
    return {"type": "file_exists", "verify": {"path": path}}


@pytest.mark.promise("L22")
async def test_what_is_committed_now_is_verified_and_nothing_stays(project: Project) -> None:
    async with project.shepherd(exists("b.txt"), exists("a.txt")) as shepherd, serving(project, shepherd):
        before = project.git("count-objects", "-v"), project.git("for-each-ref"), shepherd.world.seq
        project.ask(1)
        code, text = await project.answered(1)
        assert (code, text.splitlines()[0]) == (1, "t-1: failing (1 passed, 1 failed, 0 skipped)")
        project.git("add", "b.txt", at=ONE)
        project.git("commit", "-qm", "Mine", at=ONE)
        project.ask(2)
        code, text = await project.answered(2)
        commit = project.git("rev-parse", "HEAD", at=ONE)[:12]
        assert (code, text.splitlines()[0]) == (0, "t-1: passing (2 passed, 0 failed, 0 skipped)")
        assert text.splitlines()[1].startswith(f"HEAD: commit {commit}, since {project.base()[:12]}, tree ")
        assert "c1     passed" in text
        assert text.count("it passed before the work, too, and proves nothing") == 1
        assert not [*(project.state / "checks").iterdir()]
        assert (project.git("count-objects", "-v"), project.git("for-each-ref"), shepherd.world.seq) == before


@pytest.mark.promise("L22")
async def test_one_is_carried_out_one_waits_and_so_many_in_all(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify_requests, "MOST", 4)
    slow = {"type": "test_pass", "verify": {"command": SLOW}}
    async with project.shepherd(slow) as shepherd, serving(project, shepherd):
        project.ask(1)
        while os.listdir(project.server / ASKS):
            await anyio.sleep(0.02)
        project.ask(2)
        while os.listdir(project.server / ASKS):
            await anyio.sleep(0.02)
        project.ask(3)
        assert await project.answered(3, 2) == (
            69,
            "the checks are carried out already, and once more after that\n",
        )
        code, text = await project.answered(1)
        assert (code, SECRET in text, "c0 printed:" in text) == (1, False, True)
        assert await project.answered(2) == (1, text)
        project.ask(4)
        assert (await project.answered(4))[0] == 1
        project.ask(5)
        code, text = await project.answered(5)
        assert (code, text) == (69, "this run has asked 4 times: what it finishes is checked\n")


@pytest.mark.promise("L22")
async def test_whatever_goes_wrong_is_an_answer_and_the_next_one_is_right(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with project.shepherd(exists("a.txt")) as shepherd, serving(project, shepherd):
        git = project.place / ONE / ".git"
        git.rename(git.with_name("kept"))
        project.ask(1)
        code, text = await project.answered(1)
        assert (code, "git" in text) == (1, True)
        git.with_name("kept").rename(git)
        with monkeypatch.context() as patch:
            patch.setattr("ashep.actions.verify_requests.to_check", lambda *_: 1 / 0)
            project.ask(2)
            code, text = await project.answered(2)
            assert (code, "ZeroDivisionError" in text) == (1, True)
        (project.answers / f"{9:016x}").mkdir()
        project.ask(9)
        while os.listdir(project.server / ASKS):
            await anyio.sleep(0.02)
        project.ask(3)
        assert (await project.answered(3))[0] == 0
    async with project.shepherd() as shepherd, serving(project, shepherd):
        project.ask(4)
        assert await project.answered(4) == (1, "neither t-1 nor its phase implement has checks\n")


async def test_who_is_answered_is_who_works_alone_in_a_place_now(project: Project) -> None:
    async with project.shepherd() as shepherd:
        world = shepherd.world
        assert under_way(world) == {RUN: ("t-1", str(project.place / ONE))}
        for other in ({"state": "succeeded"}, {"access": "read"}, {"session": None}, {"branch": None}):
            flow = replace(world.flows["t-1"], run=running(**other))
            assert under_way(put(world, "t-1", flow)) == {}
        assert under_way(replace(world, settings=Settings())) == {}
        (project.server / ASKS).rmdir()
        async with serving(project, shepherd):  # there is no sandbox, and nobody is served
            await anyio.sleep(0.3)
