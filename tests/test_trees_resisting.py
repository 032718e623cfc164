"""Trees that cannot be sealed as they are: what git takes is on the branch, the rest is kept beside it and told."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conformance.workspaces import GitWorkspacesWorld

pytestmark = pytest.mark.slow

ONE = "ashep/t-1"
RUN = "t-1/implement.1.1"


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> Iterator[GitWorkspacesWorld]:
    """Give a repository of somebody who is not root: to root every file can be read."""
    top = Path(tempfile.mkdtemp(prefix="ashep-nobody-"))
    monkeypatch.setenv("HOME", str(top))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    root = os.geteuid() == 0
    try:
        if root:
            os.chown(top, 65534, 65534)
            os.seteuid(65534)
        yield GitWorkspacesWorld(top)
    finally:
        if root:
            os.seteuid(0)
        subprocess.run(["chmod", "-R", "u+rwX", str(top)], check=False)
        shutil.rmtree(top)


def files(world: GitWorkspacesWorld, revision: str = ONE) -> list[str]:
    return world.git("ls-tree", "-r", "--name-only", revision).splitlines()


# --- the tree is gone ---


def removed(world: GitWorkspacesWorld) -> None:
    shutil.rmtree(world.place / ONE)


def removed_by_git(world: GitWorkspacesWorld) -> None:
    world.git("worktree", "remove", "--force", str(world.place / ONE))


def replaced_by_a_link(world: GitWorkspacesWorld) -> None:
    shutil.rmtree(world.place / ONE)
    (world.place / ONE).symlink_to(world.top)


def replaced_by_a_file(world: GitWorkspacesWorld) -> None:
    shutil.rmtree(world.place / ONE)
    (world.place / ONE).write_text("not a tree\n")


@pytest.mark.promise("I2")
@pytest.mark.parametrize("end", [removed, removed_by_git, replaced_by_a_link, replaced_by_a_file])
async def test_a_tree_that_its_agent_removed_is_told_and_made_again_from_its_branch(
    world: GitWorkspacesWorld, end: Callable[[GitWorkspacesWorld], None]
) -> None:
    await world.begun(ONE, {"b.txt": "b\n"})
    first = await world.spaces.seal(ONE, RUN, "Work")
    (world.top / "a.txt").write_text("a person's edit\n")
    world.edit(ONE, "c.txt", "staged\n")
    world.git("add", "-A", at=ONE)
    end(world)
    sealed = await world.spaces.seal(ONE, "t-1/implement.1.2", "Work")
    assert (sealed.head, sealed.commits) == (first.head, first.commits)
    assert "is gone" in sealed.lacking[0]
    if end is not removed_by_git:
        index = next(ref for ref in sealed.saved if ref.endswith("/index"))
        assert world.git("show", f"{index}:c.txt") == "staged"
    again = await world.spaces.seal(ONE, "t-1/implement.1.2", "Work")
    assert again.head == first.head
    await world.spaces.prepare(ONE, None, 0)
    assert world.read(ONE) == {"a.txt": "a\n", "b.txt": "b\n"}
    assert (world.top / "a.txt").read_text() == "a person's edit\n"
    assert world.git("log", "--format=%s", "main").split() == ["Edit"]


async def test_a_folder_that_git_does_not_know_any_more_is_kept_beside(world: GitWorkspacesWorld) -> None:
    await world.begun(ONE, {"b.txt": "b\n"})
    shutil.rmtree(world.top / ".git/worktrees/t-1")
    sealed = await world.spaces.seal(ONE, RUN, "Work")
    assert sealed.commits == ()
    (kept,) = (world.place / "ashep/.t-1.left").iterdir()
    assert (kept / "b.txt").read_text() == "b\n"
    assert str(kept) in sealed.lacking[0]
    await world.spaces.prepare(ONE, None, 0)
    assert world.read(ONE) == {"a.txt": "a\n"}


# --- a repository of its own ---


def initialized(world: GitWorkspacesWorld) -> None:
    (world.place / ONE / ".git").unlink()
    world.git("init", "-q", at=ONE)


def with_commits(world: GitWorkspacesWorld) -> None:
    initialized(world)
    world.git("add", "-A", at=ONE)
    world.git("-c", "user.name=x", "-c", "user.email=x@example.invalid", "commit", "-qm", "Theirs", at=ONE)


def cloned(world: GitWorkspacesWorld) -> None:
    content = world.read(ONE)
    shutil.rmtree(world.place / ONE)
    world.git("clone", "-q", str(world.top), str(world.place / ONE))
    for path, text in content.items():
        world.edit(ONE, path, text)


@pytest.mark.promise("I2")
@pytest.mark.parametrize("make", [initialized, with_commits, cloned])
async def test_a_repository_made_in_its_root_is_kept_beside_and_what_was_worked_is_on_the_branch(
    world: GitWorkspacesWorld, make: Callable[[GitWorkspacesWorld], None]
) -> None:
    await world.begun(ONE, {"b.txt": "b\n"})
    make(world)
    sealed = await world.spaces.seal(ONE, RUN, "Work")
    assert [commit.subject for commit in sealed.commits] == ["Work"]
    assert files(world) == ["a.txt", "b.txt"]
    (kept,) = (world.place / "ashep/.t-1.left").iterdir()
    assert (kept / "HEAD").exists()
    assert any(str(kept) in words for words in sealed.told)
    assert world.git("rev-parse", "--abbrev-ref", "HEAD", at=ONE) == ONE
    make(world)  # and once more, which a next run finds
    await world.spaces.prepare(ONE, None, 0)
    assert world.git("rev-parse", "--abbrev-ref", "HEAD", at=ONE) == ONE
    assert len([*(world.place / "ashep/.t-1.left").iterdir()]) == 2


# --- files that git refuses ---


async def lacks(world: GitWorkspacesWorld, path: str, copy: str | None, *more: str) -> None:
    """Only this file is not on the branch; a copy is beside it."""
    world.edit(ONE, "b.txt", "b\n")
    world.edit(ONE, "sub/c.txt", "c\n")
    sealed = await world.spaces.seal(ONE, RUN, "Work")
    assert files(world) == sorted(["a.txt", "b.txt", "sub/c.txt", *more])
    assert path in " ".join(sealed.lacking)
    (ref,) = sealed.saved or ("",)
    assert bool(ref) == (copy is not None)
    if ref:
        assert files(world, ref) == [copy]
        assert ref in " ".join(sealed.lacking)


async def test_a_name_that_git_refuses_is_beside_the_branch(world: GitWorkspacesWorld) -> None:
    await world.begun(ONE, {"sub/.GIT/config": "x\n"})
    await lacks(world, "sub/.GIT/config", "sub/%2EGIT/config")


@pytest.mark.promise("I2")
async def test_a_file_that_its_filter_refuses_is_beside_the_branch(world: GitWorkspacesWorld) -> None:
    world.git("config", "filter.lfs.clean", "git-lfs-is-not-here clean")
    world.git("config", "filter.lfs.required", "true")
    await world.begun(ONE, {".gitattributes": "*.bin filter=lfs\n"})
    for number in range(20):
        world.edit(ONE, f"n/{number:02}", "n\n")
    world.edit(ONE, "n/big.bin", "big\n")
    more = [".gitattributes", *(f"n/{number:02}" for number in range(20))]
    await lacks(world, "n/big.bin", "n/big.bin", *more)


async def test_what_is_no_file_is_told(world: GitWorkspacesWorld) -> None:
    await world.spaces.prepare(ONE, None, 0)
    (world.place / ONE / "a.txt").unlink()
    os.mkfifo(world.place / ONE / "a.txt")
    await lacks(world, "a.txt", None)


async def test_a_repository_without_a_commit_within_the_tree_keeps_nothing_from_the_branch(
    world: GitWorkspacesWorld,
) -> None:
    await world.spaces.prepare(ONE, None, 0)
    world.git("init", "-q", str(world.place / ONE / "empty"))
    world.git("init", "-q", str(world.place / ONE / "vendor"))
    world.edit(ONE, "vendor/x", "x\n")
    world.edit(ONE, "b.txt", "b\n")
    await world.spaces.seal(ONE, RUN, "Work")
    assert files(world) == ["a.txt", "b.txt"]


async def test_more_than_may_be_copied_stays_where_it_is(
    world: GitWorkspacesWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ashep.adapters.git.workspaces.salvage.MOST_IGNORED", 1000)
    await world.begun(ONE, {"sub/.GIT/large": "x" * 1001})
    await lacks(world, "sub/.GIT/large", None)
    assert (world.place / ONE / "sub/.GIT/large").exists()


@pytest.mark.slow
async def test_ten_thousand_files_that_git_refuses_are_few_calls_and_a_short_message(
    world: GitWorkspacesWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.git("config", "filter.lfs.clean", "false")
    world.git("config", "filter.lfs.required", "true")
    await world.begun(ONE, {".gitattributes": "*.bin filter=lfs\n"})
    for number in range(2000):
        world.edit(ONE, f"n/{number}.bin", "n\n")
    sealed = await world.spaces.seal(ONE, RUN, "Work")
    assert sum(map(len, sealed.lacking)) < 2000
    (ref,) = sealed.saved
    assert len(files(world, ref)) + len(files(world)) >= 2001


async def test_rights_that_were_taken_away_are_given_back(nobody: GitWorkspacesWorld) -> None:
    world = nobody
    await world.begun(ONE, {"shut/b.txt": "b\n", "c.txt": "c\n", "d.txt": "d\n"})
    (world.place / ONE / "c.txt").chmod(0)
    (world.place / ONE / "shut").chmod(0)
    sealed = await world.spaces.seal(ONE, RUN, "Work")
    assert files(world) == ["a.txt", "c.txt", "d.txt", "shut/b.txt"]
    assert "c.txt" in " ".join(sealed.told)


async def test_an_index_that_cannot_be_read_is_made_anew(world: GitWorkspacesWorld) -> None:
    await world.begun(ONE, {"b.txt": "b\n"})
    (world.top / ".git/worktrees/t-1/index").write_bytes(b"DIRC, and nothing that git can read")
    sealed = await world.spaces.seal(ONE, RUN, "Work")
    assert files(world) == ["a.txt", "b.txt"]
    assert "index" in " ".join(sealed.told)
