"""Work trees of issues over the real git: what agents leave, what stands in the way, what a kill leaves."""

import shutil
import stat
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from ashep.adapters.git.repository import Repository
from ashep.adapters.git.workspaces import salvage
from ashep.adapters.git.workspaces.linked import Worktrees
from ashep.core.policy.settings import SetupStep
from ashep.errors import AshepError
from tests.conformance.workspaces import GitWorkspacesWorld

pytestmark = pytest.mark.slow

ONE, TWO = "ashep/t-1", "ashep/t-2"
RUN = "t-1/implement.1.1"


def again(world: GitWorkspacesWorld, **options: Any) -> Worktrees:
    """Make the adapter anew, as another life would, with these options."""
    world.spaces = Worktrees(world.top, world.place, **options)
    return world.spaces


def log(world: GitWorkspacesWorld, revision: str = ONE) -> list[str]:
    return world.git("log", "--format=%s", revision).splitlines()


# --- sealing ---


@pytest.mark.promise("I2")
async def test_a_sealed_commit_names_its_run_and_runs_no_hook(world: GitWorkspacesWorld) -> None:
    for hook in ("pre-commit", "commit-msg", "post-checkout", "post-commit", "reference-transaction"):
        file = world.top / ".git/hooks" / hook
        file.write_text(f"#!/bin/sh\ntouch {world.top}/ran\nexit 1\n")
        file.chmod(0o755)
    world.git("config", "commit.gpgSign", "true")
    world.git("config", "core.editor", "false")
    world.git("config", "commit.template", "/nonexistent")
    await world.begun(ONE, {"b.txt": "b\n"})
    await world.spaces.seal(ONE, RUN, "# A subject that begins so\n\nand a body")
    said = world.git("log", "-1", "--format=%an %ae%n%B", ONE)
    assert said == f"person person@example.invalid\n# A subject that begins so\n\nand a body\n\nAshep-Run: {RUN}"
    assert not (world.top / "ran").exists()


async def test_without_an_identity_of_the_users_it_is_ours(world: GitWorkspacesWorld) -> None:
    world.git("config", "--unset", "user.name")
    world.git("config", "--unset", "user.email")
    await world.begun(ONE, {"b.txt": "b\n"})
    await world.spaces.seal(ONE, RUN, "")
    assert world.git("log", "-1", "--format=%an <%ae> %cn %s", ONE) == (
        "Agent Shepherd <ashep@localhost> Agent Shepherd Work of an agent"
    )


async def test_what_is_of_bd_and_of_ashep_is_not_committed(world: GitWorkspacesWorld) -> None:
    await world.spaces.prepare(ONE, None, 0)
    for path in (".beads/x", ".agent-shepherd/state/y", ".agent-shepherd/runs.jsonl", ".agent-shepherd/policies.yaml"):
        world.edit(ONE, path, "1")
    await world.spaces.seal(ONE, RUN, "Work")
    assert world.git("ls-tree", "-r", "--name-only", ONE).splitlines() == [".agent-shepherd/policies.yaml", "a.txt"]
    (standing,) = await world.spaces.list()
    assert not standing.dirty


async def clash(world: GitWorkspacesWorld, command: str) -> None:
    """Let an agent bring together what does not fit."""
    await world.begun(ONE, {"a.txt": "mine\n", "c.txt": "c\n"})
    await world.spaces.seal(ONE, RUN, "Mine")
    world.person_commits("a.txt", "theirs\n")
    world.edit(ONE, "c.txt", "changed before\n")
    world.git("stash", at=ONE) if command == "rebase" else None
    world.git(command, "main", at=ONE, check=False)
    assert "<<<<" in world.read(ONE)["a.txt"]


@pytest.mark.promise("I2")
@pytest.mark.parametrize("command", ["merge", "cherry-pick", "rebase"])
async def test_what_was_left_with_conflicts_is_saved_and_ended(world: GitWorkspacesWorld, command: str) -> None:
    await clash(world, command)
    conflict = world.read(ONE)["a.txt"]
    sealed = await world.spaces.seal(ONE, "t-1/implement.1.2", "Second")
    assert len(sealed.told) == 1
    assert command in sealed.told[0]
    assert world.git("status", "--porcelain", at=ONE) == ""
    assert world.git("symbolic-ref", "HEAD", at=ONE) == f"refs/heads/{ONE}"
    assert world.read(ONE)["a.txt"] == "mine\n"
    files = next(ref for ref in sealed.saved if ref.endswith("/files"))
    assert world.git("show", f"{files}:a.txt") == conflict.strip()
    assert {ref.rsplit("/", 1)[1] for ref in sealed.saved} >= {"conflict-1", "conflict-2", "conflict-3"}
    if command == "merge":  # what had nothing to do with it stays, and is committed
        assert world.read(ONE)["c.txt"] == "changed before\n"
        assert log(world) == ["Second", "Mine", "Edit"]
    again = await world.spaces.seal(ONE, "t-1/implement.1.2", "Second")
    assert (again.head, again.told) == (sealed.head, ())


async def test_a_merge_whose_conflicts_are_solved_is_concluded(world: GitWorkspacesWorld) -> None:
    await clash(world, "merge")
    world.edit(ONE, "a.txt", "both\n")
    world.git("add", "a.txt", at=ONE)
    sealed = await world.spaces.seal(ONE, "t-1/implement.1.2", "Both")
    assert sealed.told == ()
    assert len(world.git("log", "-1", "--format=%P", ONE).split()) == 2
    assert world.git("show", f"{ONE}:a.txt") == "both"


async def test_work_on_a_detached_head_comes_to_the_branch(world: GitWorkspacesWorld) -> None:
    base = (await world.spaces.prepare(ONE, None, 0)).base
    world.git("checkout", "-q", "--detach", at=ONE)
    world.edit(ONE, "b.txt", "b\n")
    world.git("add", "-A", at=ONE)
    world.git("commit", "-qm", "Detached", at=ONE)
    world.edit(ONE, "c.txt", "c\n")
    sealed = await world.spaces.seal(ONE, RUN, "Rest")
    assert [commit.subject for commit in sealed.commits] == ["Detached", "Rest"]
    assert "no branch" in sealed.told[0]
    world.git("checkout", "-q", base, at=ONE)
    back = await world.spaces.seal(ONE, "t-1/implement.1.2", "Nothing")
    assert (back.head, len(back.told)) == (sealed.head, 1)
    assert world.read(ONE)["c.txt"] == "c\n"


@pytest.mark.promise("I2")
async def test_work_on_another_branch_comes_to_the_branch_and_that_one_stays(world: GitWorkspacesWorld) -> None:
    await world.spaces.prepare(ONE, None, 0)
    world.git("checkout", "-q", "-b", "feature", at=ONE)
    world.edit(ONE, "b.txt", "b\n")
    world.git("add", "-A", at=ONE)
    world.git("commit", "-qm", "On feature", at=ONE)
    feature = world.git("rev-parse", "feature")
    world.edit(ONE, "c.txt", "c\n")
    sealed = await world.spaces.seal(ONE, RUN, "Rest")
    assert [commit.subject for commit in sealed.commits] == ["On feature", "Rest"]
    assert world.git("rev-parse", "feature") == feature, "nobody else's branch is committed to"


@pytest.mark.promise("I2")
@pytest.mark.parametrize("fits", [True, False])
async def test_a_head_that_left_the_branch_is_merged_or_told(world: GitWorkspacesWorld, fits: bool) -> None:
    base = (await world.begun(ONE, {"b.txt": "b\n"})).base
    first = await world.spaces.seal(ONE, RUN, "First")
    world.git("checkout", "-q", base, at=ONE)
    world.edit(ONE, "c.txt" if fits else "b.txt", "other\n")
    if fits:
        sealed = await world.spaces.seal(ONE, "t-1/implement.1.2", "Second")
        assert {commit.subject for commit in sealed.commits} == {
            "First", "Second", "Merge what was worked on no branch",
        }  # fmt: skip
        assert (world.read(ONE)["b.txt"], world.read(ONE)["c.txt"]) == ("b\n", "other\n")
        return
    for _ in range(2):
        with pytest.raises(AshepError, match=f"cannot be merged with {ONE}.*git checkout {ONE}"):
            await world.spaces.seal(ONE, "t-1/implement.1.2", "Second")
    assert world.git("rev-parse", ONE) == first.head
    assert world.git("log", "-1", "--format=%s", at=ONE) == "Second"
    assert world.read(ONE)["b.txt"] == "other\n"


async def test_commits_that_were_rewritten_away_are_saved(world: GitWorkspacesWorld) -> None:
    base = (await world.begun(ONE, {"b.txt": "b\n"})).base
    first = await world.spaces.seal(ONE, RUN, "First")
    world.git("reset", "-q", "--hard", base, at=ONE)
    sealed = await world.spaces.seal(ONE, "t-1/implement.1.2", "Nothing")
    assert (sealed.head, len(sealed.told)) == (base, 1)
    assert [world.git("rev-parse", ref) for ref in sealed.saved] == [first.head]


async def test_what_is_staged_and_written_over_is_saved(world: GitWorkspacesWorld) -> None:
    await world.begun(ONE, {"a.txt": "staged\n"})
    world.git("add", "-A", at=ONE)
    world.edit(ONE, "a.txt", "later\n")
    sealed = await world.spaces.seal(ONE, RUN, "Work")
    index = next(ref for ref in sealed.saved if ref.endswith("/index"))
    assert world.git("show", f"{index}:a.txt") == "staged"
    assert world.git("show", f"{ONE}:a.txt") == "later"


@pytest.mark.parametrize("how", ["--assume-unchanged", "--skip-worktree"])
async def test_what_git_was_told_not_to_see_is_committed(world: GitWorkspacesWorld, how: str) -> None:
    await world.spaces.prepare(ONE, None, 0)
    world.git("update-index", how, "a.txt", at=ONE)
    world.edit(ONE, "a.txt", "hidden\n")
    await world.spaces.seal(ONE, RUN, "Work")
    assert world.git("show", f"{ONE}:a.txt") == "hidden"


async def test_a_repository_within_the_tree_is_told_and_saved_whole(world: GitWorkspacesWorld) -> None:
    await world.spaces.prepare(ONE, None, 0)
    nested = world.place / ONE / "vendor"
    nested.mkdir()
    world.git("init", "-q", str(nested))
    (nested / "x").write_text("nested\n")
    world.edit(ONE, "b.txt", "b\n")
    sealed = await world.spaces.seal(ONE, RUN, "Work")
    assert "vendor/ is a repository of its own" in sealed.told[0]
    assert world.git("ls-tree", "-r", "--name-only", ONE).split() == ["a.txt", "b.txt"]
    (ref,) = (await world.spaces.remove(ONE)).saved
    saved = world.git("ls-tree", "-r", "--name-only", ref).split()
    assert {"vendor/x", "vendor/%2Egit/HEAD", "vendor/%2Egit/config"} <= set(saved)


@pytest.mark.promise("I1")
async def test_git_is_never_sent_to_the_users_checkout(world: GitWorkspacesWorld) -> None:
    """A tree below the checkout whose `.git` is gone: git would find the checkout, and reset it."""
    world.place = world.top / ".agent-shepherd" / "state" / "trees"
    await again(world).prepare(ONE, None, 0)
    (world.place / ONE / ".git").unlink()
    (world.top / "a.txt").write_text("a person's edit\n")
    world.edit(ONE, "b.txt", "b\n")
    sealed = await world.spaces.seal(ONE, RUN, "Work")
    assert ".git of the tree was gone" in sealed.told[0]
    (world.place / ONE / ".git").unlink()
    world.edit(ONE, "c.txt", "c\n")
    await world.spaces.restore(ONE, sealed.head)
    (world.place / ONE / ".git").unlink()
    await world.spaces.remove(ONE, forget=True)
    assert (world.top / "a.txt").read_text() == "a person's edit\n"
    assert world.git("status", "--porcelain", "--untracked-files=no") == "M a.txt"
    assert world.git("log", "--format=%s", "main").split() == ["Edit"]


@pytest.mark.slow
async def test_a_lock_that_a_killed_git_left_is_taken_away(world: GitWorkspacesWorld) -> None:
    await world.spaces.prepare(ONE, None, 0)
    lock = world.top / ".git/worktrees/t-1/index.lock"
    lock.touch()
    await world.spaces.prepare(ONE, None, 0)
    assert lock.exists(), "somebody may work there now"
    world.edit(ONE, "b.txt", "b\n")
    sealed = await world.spaces.seal(ONE, RUN, "Work")
    assert "index.lock" in sealed.told[0]
    assert [commit.subject for commit in sealed.commits] == ["Work"]


# --- preparing ---


async def test_a_branch_that_a_person_looks_at_is_told(world: GitWorkspacesWorld) -> None:
    await world.spaces.prepare(ONE, None, 0)
    await world.spaces.remove(ONE)
    world.git("checkout", "-q", ONE)
    with pytest.raises(AshepError, match=f"{ONE} is checked out at .*top"):
        await world.spaces.prepare(ONE, None, 0)
    world.git("checkout", "-q", "main")
    await world.spaces.prepare(ONE, None, 0)


async def test_a_branch_that_is_checked_out_elsewhere_is_not_forgotten(world: GitWorkspacesWorld) -> None:
    await world.spaces.prepare(ONE, None, 0)
    await world.spaces.remove(ONE)
    world.git("checkout", "-q", ONE)
    with pytest.raises(AshepError, match=r"checked out at .*top"):
        await world.spaces.remove(ONE, forget=True)
    world.git("checkout", "-q", "main")
    world.git("worktree", "add", "-q", str(world.place / "mine"), ONE)
    with pytest.raises(AshepError, match=r"checked out at .*mine"):
        await world.spaces.remove(ONE, forget=True)
    assert world.git("rev-parse", ONE) == world.base()


async def test_what_is_in_the_way_stays(world: GitWorkspacesWorld) -> None:
    (world.place / ONE).mkdir(parents=True)
    (world.place / ONE / "file").write_text("somebody's")
    with pytest.raises(AshepError, match="in the way"):
        await world.spaces.prepare(ONE, None, 0)
    assert (world.place / ONE / "file").read_text() == "somebody's"


@pytest.mark.promise("I4")
async def test_a_full_disk_stops_new_trees_and_no_others(world: GitWorkspacesWorld) -> None:
    await world.spaces.prepare(ONE, None, 0)
    full = again(world, disk_floor=1 << 60)
    with pytest.raises(AshepError, match="disk_floor"):
        await full.prepare(TWO, None, 0)
    assert TWO not in world.git("branch", "--format=%(refname:short)").split()
    await full.prepare(ONE, None, 0)


async def test_there_must_be_a_repository_and_a_commit(tmp_path: Path, world: GitWorkspacesWorld) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    with pytest.raises(AshepError, match="in no git repository"):
        await Worktrees(bare, tmp_path / "trees").prepare(ONE, None, 0)
    world.git("init", "-q", str(bare))
    with pytest.raises(AshepError, match="no commit yet"):
        await Worktrees(bare, tmp_path / "trees").prepare(ONE, None, 0)


async def test_trees_are_nobody_elses(world: GitWorkspacesWorld) -> None:
    await world.spaces.prepare(ONE, None, 0)
    assert stat.S_IMODE(world.place.stat().st_mode) == 0o700


async def test_what_a_killed_git_began_is_made_anew(world: GitWorkspacesWorld) -> None:
    await world.spaces.prepare(ONE, None, 0)
    admin = world.top / ".git/worktrees/t-1"
    (admin / "locked").write_text("initializing\n")
    (world.place / ONE / "a.txt").unlink()
    shutil.rmtree(admin / "ashep")
    prepared = await again(world).prepare(ONE, None, 0)
    assert world.read(ONE) == {"a.txt": "a\n"}
    assert prepared.head == world.base()
    assert not (admin / "locked").exists()


@pytest.mark.parametrize("gone", [ONE, ""], ids=["its own", "that of all trees"])
async def test_a_tree_whose_folder_is_gone_is_made_anew_and_what_was_staged_is_saved(
    world: GitWorkspacesWorld, gone: str
) -> None:
    await world.begun(ONE, {"b.txt": "staged\n"})
    world.git("add", "-A", at=ONE)
    shutil.rmtree(world.place / gone)
    await world.spaces.prepare(ONE, None, 0)
    assert world.read(ONE) == {"a.txt": "a\n"}
    assert world.git("show", f"refs/ashep/saved/{ONE}/1/index:b.txt") == "staged"


async def test_a_project_in_a_folder_of_its_repository(world: GitWorkspacesWorld) -> None:
    (world.top / "sub").mkdir()
    world.person_commits("sub/x", "x\n")
    world.spaces = Worktrees(world.top / "sub", world.place)
    prepared = await world.spaces.prepare(ONE, None, 0)
    assert prepared.path == str(world.place / ONE / "sub")
    world.edit(ONE, "sub/.beads/x", "1")
    world.edit(ONE, "outside", "1")
    await world.spaces.seal(ONE, RUN, "Work")
    assert world.git("show", "--name-only", "--format=", ONE).split() == ["outside"]


# --- set-up ---


def step(**keys: Any) -> SetupStep:
    return SetupStep.model_validate(keys)


SETUP = (
    step(files=(".env", "conf/**/*.local", "tracked.txt", ".beads/*")),
    step(run=("sh", "-c", 'echo "$ASHEP_SLOT $ASHEP_MAIN" >> .ignored-count')),
)


@pytest.mark.promise("I1")
async def test_a_tree_is_set_up_once(world: GitWorkspacesWorld) -> None:
    (world.top / "tracked.txt").write_text("tracked\n")
    world.person_commits(".gitignore", ".env\n*.local\n.ignored-*\n.beads/\n")
    (world.top / "tracked.txt").write_text("edited, not committed\n")
    for path, content in ((".env", "SECRET=1\n"), ("conf/deep/b.local", "b\n"), (".beads/db", "db\n")):
        (world.top / path).parent.mkdir(parents=True, exist_ok=True)
        (world.top / path).write_text(content)
    spaces = again(world, setup=SETUP)
    await spaces.prepare(ONE, None, 2)
    files = world.read(ONE)
    assert (files[".env"], files["conf/deep/b.local"]) == ("SECRET=1\n", "b\n")
    assert files["tracked.txt"] == "tracked\n"
    assert ".beads/db" not in files
    assert files[".ignored-count"] == f"2 {world.top}\n"
    await again(world, setup=SETUP).prepare(ONE, None, 1)
    assert world.read(ONE)[".ignored-count"] == f"2 {world.top}\n"
    removed = await spaces.remove(ONE)
    assert removed.saved == (), "what the set-up made can be made again, and a secret has no place in the repository"
    await spaces.prepare(ONE, None, 1)
    world.edit(ONE, ".env", "SECRET=changed\n")
    (ref,) = (await spaces.remove(ONE)).saved
    assert world.git("show", f"{ref}:.env") == "SECRET=changed"
    assert ".ignored-count" not in world.git("ls-tree", "-r", "--name-only", ref).split()


async def test_what_git_does_not_ignore_is_not_copied(world: GitWorkspacesWorld) -> None:
    (world.top / "notes.txt").write_text("a person's\n")
    with pytest.raises(AshepError, match=r"git does not ignore notes.txt .*put it into .gitignore"):
        await again(world, setup=(step(files=("*.txt",)),)).prepare(ONE, None, 0)
    assert "notes.txt" not in world.read(ONE)


async def test_a_set_up_that_failed_is_told_and_begun_anew(world: GitWorkspacesWorld) -> None:
    failing = step(run=("sh", "-c", "echo first; echo 'no such package' >&2; exit 3"))
    with pytest.raises(AshepError, match=r"step 2 of worker.setup.*exit code 3.*no such package"):
        await again(world, setup=(SETUP[1], failing)).prepare(ONE, None, 0)
    slow = step(run=("sleep", "30"), timeout="200ms")
    with pytest.raises(AshepError, match=r"sleep had not ended after 0.2 s"):
        await again(world, setup=(slow,)).prepare(ONE, None, 0)
    await again(world, setup=(SETUP[1],)).prepare(ONE, None, 0)
    assert len(world.read(ONE)[".ignored-count"].splitlines()) == 2, "the first step of both lives"


# --- who else ---


@pytest.mark.promise("I1")
@pytest.mark.slow
async def test_a_call_that_ended_in_the_midst_is_completed_by_the_next(world: GitWorkspacesWorld) -> None:
    for number, after in enumerate((0.0, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12)):
        branch = f"ashep/x-{number}"
        with anyio.move_on_after(after):
            await again(world, setup=(SETUP[1],)).prepare(branch, None, 0)
        await again(world, setup=(SETUP[1],)).prepare(branch, None, 0)
        world.edit(branch, "b.txt", f"{branch}\n")
        with anyio.move_on_after(after):
            await again(world).seal(branch, RUN, "Work")
        sealed = await again(world).seal(branch, RUN, "Work")
        assert [commit.subject for commit in sealed.commits] == ["Work"]
        world.edit(branch, "c.txt", f"{branch} loose\n")
        with anyio.move_on_after(after):
            await again(world).remove(branch)
        await again(world).remove(branch)
        assert not (world.place / branch).exists()
        assert world.git("show", f"refs/ashep/saved/{branch}/1/files:c.txt") == f"{branch} loose"
        await again(world).prepare(branch, None, 0)
        assert set(world.read(branch)) >= {"a.txt", "b.txt"}


@pytest.mark.slow
async def test_two_lives_that_prepare_at_once_make_one_tree(world: GitWorkspacesWorld) -> None:
    lives = [Worktrees(world.top, world.place, setup=(SETUP[1],)) for _ in range(4)]
    async with anyio.create_task_group() as group:
        for number, life in enumerate(lives):
            group.start_soon(life.prepare, ONE, None, number)
            group.start_soon(life.prepare, f"ashep/t-{number + 2}", None, number)
    assert len(world.read(ONE)[".ignored-count"].splitlines()) == 1
    assert len(await lives[0].list()) == 5


async def test_whoever_waits_too_long_for_a_branch_is_told(
    world: GitWorkspacesWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world.spaces, "_patience", 0.1)
    async with Repository(world.top).hold(ONE):
        with pytest.raises(AshepError, match="another ashep is busy"):
            await world.spaces.prepare(ONE, None, 0)
        await world.spaces.prepare(TWO, None, 0)


@pytest.mark.promise("I3")
@pytest.mark.parametrize("end", ["remove", "restore"])
async def test_what_cannot_be_read_is_not_deleted(world: GitWorkspacesWorld, end: str) -> None:
    base = (await world.begun(ONE, {"b.txt": "b\n"})).base
    (world.top / ".git/worktrees/t-1/index").write_bytes(b"DIRC, and nothing that git can read")
    with pytest.raises(AshepError, match="index"):
        await (world.spaces.remove(ONE) if end == "remove" else world.spaces.restore(ONE, base))
    assert (world.place / ONE / "b.txt").exists()


async def test_a_submodule_with_content_stops_the_removal(world: GitWorkspacesWorld, folder: Path) -> None:
    other = GitWorkspacesWorld(folder.parent / "other")
    world.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other.top), "module")
    world.git("commit", "-qm", "Module")
    await world.spaces.prepare(ONE, None, 0)
    world.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init", at=ONE)
    with pytest.raises(AshepError, match="submodule with content"):
        await world.spaces.remove(ONE)
    assert (world.place / ONE / "module/a.txt").exists()


@pytest.mark.promise("I3")
@pytest.mark.may_block
async def test_writing_while_it_is_saved_stops_the_removal(
    world: GitWorkspacesWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.spaces.prepare(ONE, None, 0)
    count = iter(range(100))
    kept = salvage._save_commits

    async def meanwhile(*words: Any) -> None:
        world.edit(ONE, "busy.txt", str(next(count)))
        await kept(*words)

    monkeypatch.setattr(salvage, "_save_commits", meanwhile)
    with pytest.raises(AshepError, match="all the time"):
        await world.spaces.remove(ONE)
    assert world.read(ONE)["busy.txt"] == "2"


def test_the_time_of_a_step_is_bound() -> None:
    assert step(run=("true",)).timeout == timedelta(minutes=10)
