"""Locks of a git that died: what has landed is done, a lock that is young or held stays, and the file is named."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from anyio import to_thread

from ashep.adapters.git.diffs import GitDiffs
from ashep.adapters.git.user_work_tree import GitTree
from ashep.adapters.git.workspaces.linked import Worktrees
from ashep.core.facts.delivery import WorkLanded
from ashep.core.facts.tracker import EffectFailed
from ashep.core.state.branches import branch_of
from ashep.daemon.effects.work import DeliveryAdapters
from ashep.errors import RepositoryLocked
from ashep.extras.simulation.memory.annotations import MemoryAnnotations, MemoryVerifier
from ashep.extras.simulation.memory.scripted_sessions import Play, Prompted
from ashep.extras.simulation.memory.workspaces import MemoryWorkspaces
from ashep.ports.landing import Advanced, Candidate, Integrated, MoveRefused
from tests.conformance.landings import GitLandingWorld, put, refusal
from tests.loop_hands import CONFIG
from tests.loop_world import Points, World, policy, said

pytestmark = [pytest.mark.real, pytest.mark.promise("Z2"), pytest.mark.usefixtures("git_alone")]

ONE, RUN = "ashep/t-1", "t-1/implement.1.1"
ENDS = ("closed", "parked", "person")


@pytest.fixture
def world(folder: Path) -> GitLandingWorld:
    """Its git says at once what it says after a second: that a lock is there, which nobody takes away meanwhile."""
    made = GitLandingWorld(folder.parent / "top")
    made.git("config", "core.packedRefsTimeout", "20")
    made.git("config", "core.filesRefLockTimeout", "20")
    return made


async def ready(world: GitLandingWorld, branch: str = ONE) -> Integrated:
    head = world.work(branch, {branch.replace("/", "-"): "new\n"})
    made = await world.landing.integrate(Candidate("t-1", branch, head, "main"))
    assert isinstance(made, Integrated), made
    return made


def left(world: GitLandingWorld, name: str, minutes: float = 0.0) -> Path:
    """A lock of git's that nobody holds, of such an age."""
    lock = world.top / ".git" / name
    put(lock, "")
    about = lock.stat()
    os.utime(lock, (about.st_atime, about.st_mtime - minutes * 60))
    return lock


@contextmanager
def at_work(*arguments: str, cwd: Path, **environ: str) -> Iterator[None]:
    """A git of somebody's that lives."""
    with subprocess.Popen(
        ["git", *arguments], cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=os.environ | environ
    ) as process:
        try:
            yield
        finally:
            process.terminate()


def told(result: Advanced | MoveRefused, lock: Path, *words: str) -> None:
    said = " ".join(result.told) if isinstance(result, Advanced) else result.why
    assert all(word in said for word in (str(lock), *words)), result


async def test_what_has_landed_is_done_although_nothing_can_be_cleaned_up(world: GitLandingWorld) -> None:
    made = await ready(world)
    lock = left(world, "packed-refs.lock")
    moved = await world.landing.advance("main", made.base, made.commit)
    assert isinstance(moved, Advanced)
    assert moved.base == made.commit
    told(moved, lock, "10 minutes")
    assert lock.exists()
    assert world.state()[:2] == (made.commit, "")
    with pytest.raises(RepositoryLocked, match=r"packed-refs\.lock"):
        await world.landing.forget(ONE)
    again = await ready(world, "ashep/t-2")
    moved = await world.landing.advance("main", again.base, again.commit)
    assert isinstance(moved, Advanced), "the next one lands, too"
    world.git("reset", "-q", "--soft", made.base)  # as a person may: it stays as they want it
    before = world.state()
    await world.landing.settle()
    assert world.state() == before
    lock.unlink()
    await world.landing.settle()
    assert world.state() == before
    assert world.left_behind() == []


@pytest.mark.parametrize("name", ["packed-refs.lock", "refs/heads/main.lock", "index.lock"])
async def test_an_old_lock_that_no_git_holds_is_taken_away_and_told(world: GitLandingWorld, name: str) -> None:
    made = await ready(world)
    lock = left(world, name, minutes=10.1)
    moved = await world.landing.advance("main", made.base, made.commit)
    assert isinstance(moved, Advanced), moved
    assert moved.base == made.commit
    if name != "index.lock":
        told(moved, lock, "taken away")
    assert not lock.exists()
    assert world.left_behind() == []


@pytest.mark.parametrize("minutes", [0.0, 9.8])
async def test_a_young_lock_stays_and_is_named(world: GitLandingWorld, minutes: float) -> None:
    made = await ready(world)
    lock = left(world, "refs/heads/main.lock", minutes)
    before = world.state()
    refused = await world.landing.advance("main", made.base, made.commit)
    assert isinstance(refused, MoveRefused)
    assert refused.code == "locked"
    told(refused, lock)
    assert lock.exists()
    assert world.state() == before
    lock.unlink()
    assert await world.landing.advance("main", made.base, made.commit) == Advanced(made.commit)


@pytest.mark.parametrize("where", ["checkout", "tree", "git folder", "by its arguments", "by its environment"])
async def test_an_old_lock_stays_while_a_git_runs_there(world: GitLandingWorld, where: str) -> None:
    made = await ready(world)
    elsewhere, own = world.top.parent, world.top / ".git"
    calls = {
        "checkout": (("cat-file", "--batch"), world.top, {}),
        "tree": (("cat-file", "--batch"), elsewhere / "tree-ashep-t-1", {}),
        "git folder": (("cat-file", "--batch"), own / "objects", {"GIT_DIR": ".."}),
        "by its arguments": ((f"--git-dir={own}", "cat-file", "--batch"), elsewhere, {}),
        "by its environment": (("cat-file", "--batch"), elsewhere, {"GIT_DIR": "top/.git"}),
    }
    arguments, cwd, environ = calls[where]
    lock = left(world, "refs/heads/main.lock", minutes=60)
    with at_work(*arguments, cwd=cwd, **environ):
        refusal(await world.landing.advance("main", made.base, made.commit), code="locked")
        assert lock.exists()
    with at_work("cat-file", "--batch", cwd=elsewhere, GIT_DIR=str(_other(world))):  # it is at work elsewhere
        moved = await world.landing.advance("main", made.base, made.commit)
    assert isinstance(moved, Advanced)
    assert not lock.exists()


def _other(world: GitLandingWorld) -> Path:
    return GitLandingWorld(world.top.parent / "topmost").top / ".git"


async def test_a_lock_of_its_branch_keeps_a_tree_from_being_sealed_and_is_named(world: GitLandingWorld) -> None:
    spaces = Worktrees(world.top, world.top.parent / "trees")
    made = await spaces.prepare(ONE, None, 0)
    put(Path(made.path, "a"), "1\n")
    lock = left(world, f"refs/heads/{ONE}.lock")
    with pytest.raises(RepositoryLocked, match=r"t-1\.lock is there") as caught:
        await spaces.seal(ONE, RUN, "Work")
    assert caught.value.lock == str(lock)
    left(world, f"refs/heads/{ONE}.lock", minutes=11)
    sealed = await spaces.seal(ONE, RUN, "Work")
    assert world.files(sealed.head)["a"] == "1\n"
    assert any(str(lock) in one for one in sealed.told)
    assert not lock.exists()


async def test_a_lock_in_the_tree_stays_while_a_git_runs_there(world: GitLandingWorld) -> None:
    spaces = Worktrees(world.top, world.top.parent / "trees")
    made = await spaces.prepare(ONE, None, 0)
    put(Path(made.path, "a"), "1\n")
    (admin,) = (world.top / ".git/worktrees").iterdir()
    put(admin / "index.lock", "")
    with at_work("cat-file", "--batch", cwd=Path(made.path)), pytest.raises(RepositoryLocked, match=r"index\.lock"):
        await spaces.seal(ONE, RUN, "Work")
    assert world.files((await spaces.seal(ONE, RUN, "Work")).head)["a"] == "1\n"


# --- through the daemon ---


class Threaded:
    """An adapter whose calls are made on a loop of their own, in a thread: virtual time stands still meanwhile."""

    def __init__(self, target: object) -> None:
        self._target = target

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._target, name)

        async def call(*arguments: object, **named: object) -> object:
            return await to_thread.run_sync(partial(anyio.run, partial(method, *arguments, **named)))

        return call


class OnGit(World):
    """A world whose issues are worked on in a repository of the real git, and land in it."""

    def __init__(self, folder: Path, on: GitLandingWorld) -> None:
        super().__init__(folder, config=CONFIG, policies=policy({"name": "implement", "access": "write"}))
        self.on, self.trees = on, on.top.parent / "trees"
        self.tree = cast("Any", Threaded(GitTree(on.top)))
        self.workspaces = cast("Any", Threaded(Worktrees(on.top, self.trees)))
        self.landing = cast("Any", Threaded(on.landing))

    def _means(self, points: Points) -> Callable[..., DeliveryAdapters]:
        unasked, annotations = MemoryVerifier(MemoryWorkspaces({})), MemoryAnnotations(self.tracker)
        diffs = cast("Any", Threaded(GitDiffs(self.on.top)))
        return lambda *_: DeliveryAdapters(self.on.top, unasked, diffs, cast("Any", self.landing), annotations)

    def play(self, asked: Prompted) -> Play:
        """Write a file of the issue's own; the first agent's git is killed while it deletes a ref."""
        issue = asked.key.split(":", 1)[1].split("/")[0]
        put(self.trees / branch_of(issue) / f"{issue}.txt", f"{issue}\n")
        if issue == "t-1":
            left(self.on, "packed-refs.lock")
        return Play(said("implement"), delay=4.0)


@pytest.mark.virtual
async def test_a_lock_that_one_agent_left_parks_nobody(
    folder: Path, world: GitLandingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ashep.extras.simulation.virtual_time.THREAD", 120.0)  # of a machine with other things to do
    night = OnGit(folder, world)
    issues = [night.tracker.add(f"issue {number}") for number in range(4)]
    await night.live(lambda: all(one in night.world.flows and night.stands(one) in ENDS for one in issues))
    assert {one: night.stands(one) for one in issues} == dict.fromkeys(issues, "closed"), night.state()
    assert {fact.issue for fact in night.bodies(WorkLanded)} == {*issues}
    assert not night.bodies(EffectFailed)
    held = world.files("main")
    assert {one: held.get(f"{one}.txt") for one in issues} == {one: f"{one}\n" for one in issues}
    lock = world.top / ".git" / "packed-refs.lock"
    assert lock.exists(), "it is young: whose it is has not been found out"
    assert all(any(str(lock) in text for text in night.comments(one)) for one in issues)
