"""Trees of closed issues that go by themselves, over the real git: what keeps them, and that a kill changes nothing."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from ashep.adapters.git.workspaces import remove
from ashep.adapters.system import filesystems, process_table
from ashep.core.state.branches import BASES
from ashep.errors import AshepError
from ashep.ports.workspaces import Landed, Removed
from tests.conformance.workspaces import GitWorkspacesWorld

pytestmark = [pytest.mark.promise("Z5"), pytest.mark.slow]

ONE, RUN, NOW = "ashep/t-1", "t-1/implement.1.1", timedelta()


async def landed(world: GitWorkspacesWorld) -> Landed:
    """Work on an issue, squash it onto main, as a landing does, and let main go on."""
    await world.begun(ONE, {"b.txt": "b\n", ".gitignore": "built/\n", "built/b.o": "made of b\n"})
    head = (await world.spaces.seal(ONE, RUN, "Write b")).head
    world.git("merge", "--squash", "-q", ONE)
    world.git("commit", "-q", "-m", "b")
    commit = world.base()
    world.person_commits("b.txt", "b, and more\n")
    return Landed(ONE, head, "main", commit)


async def kept(world: GitWorkspacesWorld, of: Landed, why: str, quiet: timedelta = NOW) -> None:
    """It is kept, and nothing at all has changed."""
    before = world.git("for-each-ref"), sorted(world.place.rglob("*"))
    with pytest.raises(AshepError, match=why):
        await world.spaces.retire(of, quiet)
    assert (world.git("for-each-ref"), sorted(world.place.rglob("*"))) == before


def refs(world: GitWorkspacesWorld) -> set[str]:
    return set(world.git("for-each-ref", "--format=%(refname)").splitlines())


async def test_what_landed_leaves_nothing(world: GitWorkspacesWorld) -> None:
    of = await landed(world)
    gone = await world.spaces.retire(of, NOW)
    assert gone.saved == ()
    assert gone.freed > 0
    assert refs(world) == {"refs/heads/main"}
    assert [one.name for one in world.place.rglob("*")] == [remove.TRASH]
    assert len(world.git("worktree", "list").splitlines()) == 1


async def test_whatever_somebody_did_there_keeps_it(world: GitWorkspacesWorld) -> None:
    of, tree = await landed(world), world.place / ONE
    (tree / "notes.txt").write_text("a person's\n")
    await kept(world, of, r"not committed: notes\.txt")
    world.git("add", "notes.txt", at=ONE)
    await kept(world, of, "not committed")
    world.git("-c", "user.name=p", "-c", "user.email=p@example.invalid", "commit", "-q", "-m", "mine", at=ONE)
    await kept(world, of, "commits that the base branch does not hold")
    world.git("reset", "-q", "--hard", of.head, at=ONE)
    world.git("checkout", "-q", "--detach", at=ONE)
    await kept(world, of, "HEAD is on no branch")
    world.git("checkout", "-q", ONE, at=ONE)
    await kept(world, of, "changed lately", quiet=timedelta(hours=1))
    world.git("update-ref", "refs/heads/main", f"{of.commit}^")
    await kept(world, of, "commits that the base branch does not hold")


async def test_a_commit_that_a_person_took_off_again_is_saved(world: GitWorkspacesWorld) -> None:
    of = await landed(world)
    (world.place / ONE / "notes.txt").write_text("a person's\n")
    world.git("add", "notes.txt", at=ONE)
    world.git("commit", "-q", "-m", "mine", at=ONE)
    mine = world.git("rev-parse", "HEAD", at=ONE)
    world.git("reset", "-q", "--hard", of.head, at=ONE)
    gone = await world.spaces.retire(of, NOW)
    assert [world.git("rev-parse", ref) for ref in gone.saved] == [mine]
    assert refs(world) == {*gone.saved, "refs/heads/main"}


async def test_an_ignored_file_that_came_after_the_last_run_is_saved(world: GitWorkspacesWorld) -> None:
    of = await landed(world)
    (world.place / ONE / "built/mine.txt").write_text("a person's\n")
    (ref,) = (await world.spaces.retire(of, NOW)).saved
    assert world.git("show", f"{ref}:built/mine.txt") == "a person's"
    assert "built/b.o" not in world.git("ls-tree", "-r", "--name-only", ref), "that its run had built"


async def test_a_branch_that_a_person_has_elsewhere_or_renamed_stays(world: GitWorkspacesWorld) -> None:
    of = await landed(world)
    await world.spaces.remove(ONE)
    world.git("worktree", "add", "-q", str(world.top.parent / "mine"), ONE)
    await kept(world, of, "checked out at .*mine")
    world.git("worktree", "remove", str(world.top.parent / "mine"))
    await world.spaces.prepare(ONE, None, 0)
    world.git("branch", "-m", ONE, "mine")
    await kept(world, of, "HEAD is on refs/heads/mine")
    await world.spaces.remove(ONE)
    await world.spaces.retire(of, NOW)
    assert world.git("rev-parse", "mine") == of.head


@pytest.fixture
def sit() -> Iterator[Callable[[Path], int]]:
    """Give what lets a process work in a folder, and says its number."""
    shells: list[subprocess.Popen[bytes]] = []

    def begin(folder: Path) -> int:
        words = [sys.executable, "-c", "print(flush=True); input()"]
        shell = subprocess.Popen(words, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        shells.append(shell)
        assert shell.stdout is not None
        shell.stdout.readline()
        return shell.pid

    yield begin
    for shell in shells:
        shell.kill()
        shell.communicate()


@pytest.mark.may_block
async def test_a_tree_that_a_process_works_in_stays(world: GitWorkspacesWorld, sit: Callable[[Path], int]) -> None:
    of = await landed(world)
    pid = sit(world.place / ONE / "built")
    await kept(world, of, f"process {pid}")
    os.kill(pid, signal.SIGKILL)
    with anyio.fail_after(60):
        while process_table.stat(pid)[0] not in "ZX":
            await anyio.sleep(0.01)
    await world.spaces.retire(of, NOW)


async def test_a_tree_in_which_something_is_mounted_stays(
    world: GitWorkspacesWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = await landed(world)
    table = tmp_path / "mountinfo"
    place = str((world.place / ONE / "built").resolve()).replace(" ", "\\040")
    table.write_text(f"1 0 0:1 / / rw - ext4 /dev/a rw\n36 1 0:2 / {place} rw - tmpfs none rw\n")
    monkeypatch.setattr(filesystems.find_mount, "__defaults__", (table,))
    await kept(world, of, "mounted in it")


async def test_what_lay_beside_the_tree_is_saved_and_goes_with_it(world: GitWorkspacesWorld) -> None:
    of = await landed(world)
    beside = world.place / "ashep/.t-1.left"
    (beside / "1-git").mkdir(parents=True)
    (beside / "1-git/config").write_text("[core]\n")
    (ref,) = (await world.spaces.retire(of, NOW)).saved
    assert world.git("show", f"{ref}:1-git/config") == "[core]"
    assert not beside.exists()


@pytest.mark.parametrize("moment", ["take_away", "update_refs"])
async def test_a_kill_in_the_midst_changes_nothing(
    world: GitWorkspacesWorld, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    of = await landed(world)

    async def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(remove if moment == "take_away" else remove.Repository, moment, dies)
        with pytest.raises(KeyboardInterrupt):
            await world.spaces.retire(of, NOW)
    assert f"refs/heads/{ONE}" in refs(world)
    await world.spaces.retire(of, NOW)
    assert refs(world) == {"refs/heads/main"}
    assert await world.spaces.retire(of, NOW) == Removed()


@pytest.mark.may_block
async def test_a_commit_in_the_last_moment_keeps_the_branch(
    world: GitWorkspacesWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    of, really = await landed(world), remove.take_away

    async def meanwhile(repository: remove.Repository, root: Path, place: remove.WorkspacePaths) -> None:
        await really(repository, root, place)
        mine = world.git("commit-tree", f"{of.head}^{{tree}}", "-p", of.head, "-m", "mine")
        world.git("update-ref", f"refs/heads/{ONE}", mine)

    monkeypatch.setattr(remove, "take_away", meanwhile)
    with pytest.raises(AshepError):
        await world.spaces.retire(of, NOW)
    assert world.git("log", "-1", "--format=%s", ONE) == "mine"
    assert f"{BASES}{ONE}" in refs(world), "all or none"
