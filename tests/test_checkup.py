"""Checkup of a repository over the real git: what would fail for every issue alike is said, with what to do."""

import os
import shutil
import subprocess
from pathlib import Path

import anyio
import pytest

from ashep.adapters.git import checkup
from ashep.adapters.git.checkup import TRIAL, GitCheckup
from ashep.adapters.git.workspaces.clones import Clones
from ashep.adapters.git.workspaces.linked import Worktrees
from ashep.core.facts.delivery import RepositorySeen
from tests.conformance.workspaces import GitWorkspacesWorld, PlacesWorld
from tests.places import has_bubblewrap

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("git_alone"), pytest.mark.promise("I8")]

NOBODY = 65534


@pytest.fixture(params=["worktree", "place"])
def world(request: pytest.FixtureRequest, folder: Path) -> GitWorkspacesWorld:
    """A repository of which issues get work trees, or places."""
    if request.param == "place":
        return PlacesWorld(folder.parent, sandbox=has_bubblewrap())
    return GitWorkspacesWorld(folder.parent)


def checkup_of(world: GitWorkspacesWorld, top: Path | None = None, *, writes: bool = True) -> GitCheckup:
    spaces = world.spaces if top is None else type(world.spaces)(top, world.place)
    assert isinstance(spaces, Worktrees)
    return GitCheckup(top or world.top, spaces, remote="origin", writes=writes)


async def fault_of(found: GitCheckup, *, thorough: bool = False) -> str:
    return (await found.look("main", thorough=thorough)).fault


def listing(*folders: Path) -> dict[str, object]:
    """Every file and folder below, but for git's objects, and what the reading of work trees may refresh."""
    found = (one for folder in folders for one in [folder, *folder.rglob("*")] if one.exists())
    kept = (
        one
        for one in found
        if "objects" not in one.parts and one.name not in ("index", ".trial", ".removing", "removing")
    )
    return {str(one): one.read_bytes() if one.is_file() else None for one in kept}


async def test_a_sound_repository_has_no_fault_and_a_trial_leaves_nothing(world: GitWorkspacesWorld) -> None:
    before = {one.relative_to(world.top) for one in world.top.rglob("*") if "objects" not in one.parts}
    assert await fault_of(checkup_of(world), thorough=True) == ""
    assert {one.relative_to(world.top) for one in world.top.rglob("*") if "objects" not in one.parts} == before
    assert not world.place.exists()
    assert world.git("worktree", "list").count("\n") == 0


async def test_names_of_branches_may_hold_what_else_ends_a_line(world: GitWorkspacesWorld) -> None:
    world.git("branch", "one\u2028other")
    assert await fault_of(checkup_of(world), thorough=True) == ""
    await world.begun("ashep/t-1", {"mine": "m\n"})
    assert [standing.branch for standing in await world.spaces.list()] == ["ashep/t-1"]


async def test_beside_other_trees_a_trial_takes_away_its_own_alone(world: GitWorkspacesWorld) -> None:
    await world.begun("ashep/t-1", {"mine": "m\n"})
    before = listing(world.top, world.place)
    assert await fault_of(checkup_of(world), thorough=True) == ""
    assert listing(world.top, world.place) == before


async def test_what_a_killed_trial_left_goes_with_the_next(world: GitWorkspacesWorld) -> None:
    await world.begun(TRIAL, {"left": "l\n"})
    assert await fault_of(checkup_of(world), thorough=True) == ""
    assert "@trial" not in world.git("for-each-ref", "--format=%(refname)")
    assert not (world.place / TRIAL).exists()


async def test_a_branch_called_ashep_is_named_before_anything_begins(world: GitWorkspacesWorld) -> None:
    world.git("branch", "ashep")
    world.git("pack-refs", "--all")
    fault = await fault_of(checkup_of(world))
    assert "the branch `ashep` is in the way" in fault
    remedy = fault.rpartition("`git ")[2].rstrip("`").split()
    world.git(*remedy)
    assert await fault_of(checkup_of(world), thorough=True) == ""


def as_nobody(found: GitCheckup) -> str:
    """Give the fault as a user sees it who has no rights but their own; root has all."""
    if os.geteuid() != 0:
        return anyio.run(fault_of, found)
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        os.environ["HOME"] = "/nonexistent"
        os.write(writing, anyio.run(fault_of, found).encode() or b"none")
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        said = answer.read().decode()
    os.waitpid(pid, 0)
    return said


@pytest.mark.may_block
@pytest.mark.parametrize("where", ["refs", "refs/heads", "objects", "objects/ab", "logs/refs/heads/main", "place"])
def test_folders_without_rights_are_named(world: GitWorkspacesWorld, where: str) -> None:
    git = world.top / ".git"
    (git / "objects/ab").mkdir(exist_ok=True)
    world.place.mkdir(exist_ok=True)
    if os.geteuid() == 0:
        for one in (world.top.parent, *world.top.parent.rglob("*")):
            os.chown(one, NOBODY, NOBODY)
    closed = world.place if where == "place" else git / where
    if os.geteuid() == 0:
        os.chown(closed, 0, 0)  # what `sudo git commit` leaves
    closed.chmod(0o444 if closed.is_file() else 0o555)
    try:
        fault = as_nobody(checkup_of(world))
        assert fault.startswith(f"{closed} cannot be written to by the user who runs ashep (uid ")
        assert "chown -R" in fault
    finally:
        closed.chmod(0o755)
        if os.geteuid() == 0:
            os.chown(closed, NOBODY, NOBODY)
    assert as_nobody(checkup_of(world)) == "none"


@pytest.mark.parametrize("how", ["lost", "changed"])
async def test_a_file_of_the_base_that_cannot_be_read_is_named_at_once(world: GitWorkspacesWorld, how: str) -> None:
    world.person_commits("b.txt", "b\n" * 99)
    blob = world.git("rev-parse", "main:b.txt")
    file = world.top / ".git/objects" / blob[:2] / blob[2:]
    content = file.read_bytes()
    file.unlink()
    if how == "changed":
        file.write_bytes(content[:-4] + bytes(4))
    assert "git cannot read b.txt of the commit" in await fault_of(checkup_of(world))
    file.unlink(missing_ok=True)
    file.write_bytes(content)
    assert await fault_of(checkup_of(world)) == ""


async def test_an_old_file_that_cannot_be_read_is_no_fault(world: GitWorkspacesWorld) -> None:
    blob = world.git("rev-parse", "main:a.txt")
    world.person_commits("a.txt", "new\n")
    (world.top / ".git/objects" / blob[:2] / blob[2:]).unlink()
    assert await fault_of(checkup_of(world), thorough=True) == ""


async def test_names_that_differ_by_case_alone_matter_where_the_disk_does_not_tell_them_apart(
    world: GitWorkspacesWorld,
) -> None:
    world.person_commits("README", "1\n")
    world.person_commits("Readme", "2\n")
    assert await fault_of(checkup_of(world), thorough=True) == "", "here it does"
    world.git("config", "core.ignoreCase", "true")  # as a copied repository says
    assert await fault_of(checkup_of(world), thorough=True) == ""
    # a disk as a Mac has it: the same folder by another name
    (world.top / ".GIT").symlink_to(".git")
    fault = await fault_of(checkup_of(world))
    assert fault == "README and Readme differ by case alone, which this disk does not tell apart. Rename one of them"


async def test_what_only_a_trial_finds_is_found_by_one(world: GitWorkspacesWorld) -> None:
    world.person_commits(".gitattributes", "*.dat filter=odd\n")
    world.person_commits("z.dat", "z\n")
    world.git("config", "filter.odd.smudge", "no-such-program")
    world.git("config", "filter.odd.required", "true")
    looked = checkup_of(world)
    assert await fault_of(looked) == ""
    assert "odd" in await fault_of(looked, thorough=True)
    world.git("config", "filter.odd.smudge", "cat")
    assert await fault_of(looked, thorough=True) == ""


async def test_a_disk_without_room_is_a_fault_of_all(folder: Path) -> None:
    world = GitWorkspacesWorld(folder.parent, disk_floor=1024**6)
    assert "no new work tree" in await fault_of(checkup_of(world), thorough=True)


@pytest.mark.parametrize("kind", ["reached", "away"])
async def test_a_partial_clone_is_looked_at_without_writing(world: GitWorkspacesWorld, kind: str) -> None:
    top = world.top.parent / "partial"
    world.git("config", "uploadpack.allowFilter", "true")
    world.git("clone", "-q", "--filter=blob:none", "--no-checkout", f"file://{world.top}", str(top))
    if kind == "away":
        world.git("-C", str(top), "remote", "set-url", "origin", f"file://{world.top}-away")
    before = listing(top, world.place)
    fault = await fault_of(checkup_of(world, top, writes=False))
    assert listing(top, world.place) == before
    assert (isinstance(world.spaces, Clones) and kind == "away") == ("this is a partial clone" in fault)
    written = await fault_of(checkup_of(world, top))
    assert (kind == "away") == ("this is a partial clone" in written)


# --- the base and the branch of a remote that it follows ------------------------------------------------------------


@pytest.fixture
def clone(folder: Path) -> GitWorkspacesWorld:
    """A clone whose `main` follows `origin/main`; its origin is the folder `hub` next to it."""
    hub = GitWorkspacesWorld(folder.parent / "far")
    world = GitWorkspacesWorld.of(folder.parent / "near" / "top", folder.parent / "near" / "trees")
    world.top.parent.mkdir()
    subprocess.run(["git", "clone", "-q", str(hub.top), str(world.top)], check=True)
    world.git("config", "user.name", "p")
    world.git("config", "user.email", "p@x")
    return world


def hub_of(world: GitWorkspacesWorld) -> GitWorkspacesWorld:
    far = world.top.parent.parent / "far"
    return GitWorkspacesWorld.of(far / "top", far / "trees")


@pytest.mark.promise("Z6")
async def test_how_far_a_base_is_behind_is_counted_as_it_was_fetched_last(clone: GitWorkspacesWorld) -> None:
    looked = checkup_of(clone)
    hub_of(clone).person_commits("b.txt", "b\n")
    hub_of(clone).person_commits("c.txt", "c\n")
    clone.person_commits("mine.txt", "m\n")
    assert await looked.look("main") == RepositorySeen(), "as far as it was fetched"
    mine = clone.base()
    assert await looked.fetch("main") == hub_of(clone).base()
    words = "main is 2 commits behind origin/main, and 1 ahead of it (as of 20"
    assert (await looked.look("main")).behind.startswith(words)
    assert clone.base() == mine, "no branch of the user's moves"
    assert await looked.look("none") == RepositorySeen()
    hub_of(clone).git("branch", "develop")
    assert await looked.fetch("develop") == hub_of(clone).base(), "a base that is only there"
    assert await looked.look("develop") == RepositorySeen()
    assert await looked.fetch("") is None


@pytest.mark.promise("Z6")
async def test_no_branch_of_the_users_is_moved_by_a_fetch_whatever_is_set(clone: GitWorkspacesWorld) -> None:
    clone.git("config", "remote.origin.fetch", "+refs/heads/*:refs/heads/*")  # a mirror's
    clone.git("config", "branch.main.merge", "refs/heads/main")
    clone.git("config", "fetch.prune", "true")
    clone.git("branch", "topic")
    clone.git("switch", "-q", "-c", "other")
    hub_of(clone).person_commits("b.txt", "b\n")
    before = clone.git("for-each-ref", "refs/heads")
    looked = checkup_of(clone)
    await looked.fetch("main")
    await looked.fetch("topic")
    assert clone.git("for-each-ref", "refs/heads") == before
    assert not (clone.top / ".git/FETCH_HEAD").exists()


@pytest.mark.promise("Z6")
async def test_a_fetch_that_fails_or_hangs_is_ended_and_told_and_work_goes_on_from_what_is_known(
    clone: GitWorkspacesWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, known = checkup_of(clone), hub_of(clone).base()
    clone.git("remote", "set-url", "origin", "ext::sh -c sleep% 600")
    clone.git("config", "protocol.ext.allow", "always")
    monkeypatch.setattr(checkup, "FETCH", 1.0)
    with anyio.fail_after(60):
        assert await looked.fetch("main") == known
    assert "origin cannot be fetched: it did not answer in 1 s" in (await looked.look("main")).error
    shutil.move(hub_of(clone).top, clone.top.parent / "gone")
    clone.git("remote", "set-url", "origin", str(hub_of(clone).top))
    assert await looked.fetch("main") == known
    assert "does not appear to be a git repository" in (await looked.look("main")).error
    shutil.move(clone.top.parent / "gone", hub_of(clone).top)
    await looked.fetch("main")
    assert (await looked.look("main")).error == ""


@pytest.mark.promise("Z6")
async def test_whether_what_was_fetched_holds_a_merge(clone: GitWorkspacesWorld) -> None:
    looked, merge = checkup_of(clone), hub_of(clone).person_commits("b.txt", "b\n")
    assert (await looked.look("main", (merge,))).merges == ()
    await looked.fetch("main")
    assert (await looked.look("main", (merge, "0" * 40))).merges == (merge,)
