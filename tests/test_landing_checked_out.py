"""Landing where a person has the base checked out: their files follow, and nothing of theirs is ever overwritten."""

import itertools
import os
import time
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest

from ashep.adapters.git.index_lock import LINE
from ashep.errors import AshepError
from ashep.ports.landing import Advanced, Candidate, Integrated, MoveRefused
from tests.conformance.landings import GitLandingWorld, put, refusal

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("git_alone")]

BEGIN: dict[str, str | None] = {
    "same": "same\n", "edited": "old text\n" * 50, "deleted": "deleted\n", "file-to-folder": "a file\n",
    "folder-to-file/a": "a\n", "odd \u00e4\nname": "1\n",
}  # fmt: skip
WORK: dict[str, str | None] = {
    "edited": "new text\n" * 50, "deleted": None, "added/deep/file": "added text\n" * 50, "odd \u00e4\nname": "2\n",
}  # fmt: skip


@pytest.fixture
def world(folder: Path) -> GitLandingWorld:
    world = GitLandingWorld(folder.parent / "top")
    world.commit(BEGIN)
    return world


async def ready(world: GitLandingWorld) -> Integrated:
    """Work that changes files of each kind, integrated."""
    tree = world.top.parent / "tree-ashep-t-1"
    world.git("worktree", "add", "-q", "-b", "ashep/t-1", str(tree), "main")
    (tree / "file-to-folder").unlink()
    (tree / "folder-to-file/a").unlink()
    (tree / "folder-to-file").rmdir()
    more = {"file-to-folder/inside": "inside\n", "folder-to-file": "a file now\n"}
    head = world.work("ashep/t-1", WORK | more)
    made = await world.landing.integrate(Candidate("t-1", "ashep/t-1", head, "main"))
    assert isinstance(made, Integrated)
    return made


async def test_a_clean_tree_follows(world: GitLandingWorld) -> None:
    made = await ready(world)
    assert await world.landing.advance("main", made.base, made.commit) == Advanced(made.commit)
    head, status, files = world.state()
    assert (head, status, files) == (made.commit, "", world.files(made.commit))
    assert not (world.top / "folder-to-file").is_dir()
    assert world.left_behind() == []
    assert f"ashep: landed {made.commit[:12]}" in world.git("reflog", "main")


async def test_the_tree_may_be_anywhere_and_the_project_elsewhere(world: GitLandingWorld) -> None:
    world.git("checkout", "-q", "--detach")
    made = await ready(world)
    elsewhere = world.top.parent / "elsewhere tree"
    world.git("worktree", "add", "-q", str(elsewhere), "main")
    assert await world.landing.advance("main", made.base, made.commit) == Advanced(made.commit)
    assert world.status(elsewhere) == ""
    assert world.git("rev-parse", "HEAD", cwd=elsewhere) == made.commit
    assert world.git("rev-parse", "HEAD") == made.base, "what is detached stays where it is"
    assert world.status() == ""


EDITS = {
    "edited": lambda w: put(w.top / "edited", "a person's\n"),
    "edited what is to be deleted": lambda w: put(w.top / "deleted", "a person's\n"),
    "deleted": lambda w: put(w.top / "edited", None),
    "staged": lambda w: (put(w.top / "edited", "a person's\n"), w.git("add", "edited")),
    "staged, and the file as it was": lambda w: (
        put(w.top / "edited", "a person's\n"),
        w.git("add", "edited"),
        put(w.top / "edited", BEGIN["edited"]),
    ),
    "staged new": lambda w: (put(w.top / "added/deep/file", "a person's\n"), w.git("add", "added")),
    "staged new above": lambda w: (put(w.top / "added", "a person's\n"), w.git("add", "added")),
    "staged new in a folder that becomes a file": lambda w: (
        put(w.top / "folder-to-file/mine", "a person's\n"),
        w.git("add", "folder-to-file"),
    ),
    "removed from the index": lambda w: w.git("rm", "-q", "--cached", "edited"),
    "mode": lambda w: (w.top / "edited").chmod(0o755),
    "untracked in the way": lambda w: put(w.top / "added/deep/file", "a person's\n"),
    "untracked folder in the way": lambda w: put(w.top / "added/deep/file/below", "a person's\n"),
    "untracked file above": lambda w: put(w.top / "added", "a person's\n"),
    "link above": lambda w: (w.top / "added").symlink_to("/nowhere"),
    "ignored in the way": lambda w: (
        put(w.top / ".git/info/exclude", "added/\n"),
        put(w.top / "added/deep/file", "a person's\n"),
    ),
    "untracked in a folder that becomes a file": lambda w: put(w.top / "folder-to-file/mine", "a person's\n"),
    "merging": lambda w: put(w.top / ".git/MERGE_HEAD", w.git("rev-parse", "HEAD") + "\n"),
    "another git": lambda w: put(w.top / ".git/index.lock", ""),
}


@pytest.mark.promise("Z2")
@pytest.mark.parametrize("edit", EDITS)
async def test_what_a_person_has_there_waits_and_stays(world: GitLandingWorld, edit: str) -> None:
    made = await ready(world)
    EDITS[edit](world)
    before = world.state()
    refusal(await world.landing.advance("main", made.base, made.commit), str(world.top))
    assert world.state() == before
    assert (world.left_behind() == []) or edit == "another git"
    assert not await world.landing.landed(world.git("rev-parse", "ashep/t-1"), "main")


BESIDE = {
    "edited": lambda w: put(w.top / "same", "a person's\n"),
    "deleted": lambda w: put(w.top / "same", None),
    "staged": lambda w: (put(w.top / "same", "a person's\n"), w.git("add", "same")),
    "staged, and edited since": lambda w: (
        put(w.top / "same", "a person's\n"),
        w.git("add", "same"),
        put(w.top / "same", "later\n"),
    ),
    "staged new": lambda w: (put(w.top / "added/beside", "a person's\n"), w.git("add", "added")),
    "removed from the index": lambda w: w.git("rm", "-q", "--cached", "same"),
    "mode": lambda w: (w.top / "same").chmod(0o755),
}


@pytest.mark.promise("Z2")
@pytest.mark.parametrize("edit", BESIDE)
async def test_what_a_person_has_in_other_files_stays_and_keeps_nobody_waiting(
    world: GitLandingWorld, edit: str
) -> None:
    made = await ready(world)
    BESIDE[edit](world)
    status, staged, (_, _, files) = world.status(), world.git("diff", "--cached"), world.state()
    mine = {path: content for path, content in files.items() if path in ("same", "added/beside")}
    assert await world.landing.advance("main", made.base, made.commit) == Advanced(made.commit)
    assert (world.status(), world.git("diff", "--cached")) == (status, staged), "it shows as before"
    head, _, after = world.state()
    assert head == made.commit
    landed = {path: content for path, content in world.files(made.commit).items() if path != "same"}
    assert after == landed | mine
    assert world.left_behind() == []


async def test_files_in_the_way_are_named(world: GitLandingWorld) -> None:
    made = await ready(world)
    put(world.top / "added/deep/file", "mine\n")
    refusal(await world.landing.advance("main", made.base, made.commit), "added/deep/file", "does not know")
    put(world.top / "added/deep/file", None)
    put(world.top / "edited", "mine\n")
    refusal(await world.landing.advance("main", made.base, made.commit), "edited", "uncommitted")


async def test_what_is_not_in_the_way_stays(world: GitLandingWorld) -> None:
    made = await ready(world)
    put(world.top / "notes", "untracked\n")
    put(world.top / "added/deep/beside", "untracked\n")
    assert await world.landing.advance("main", made.base, made.commit) == Advanced(made.commit)
    assert (world.top / "notes").read_text() == (world.top / "added/deep/beside").read_text() == "untracked\n"


@pytest.mark.promise("Z2")
async def test_an_edit_that_neither_time_nor_size_shows_waits_and_stays(world: GitLandingWorld) -> None:
    """Git finds it only because the file is not older than the index: so our copy of the index has to be as old."""
    index, file, seconds = world.top / ".git/index", world.top / "deleted", {0.0, 1.0}
    while len(seconds) > 1:  # git stamped and the person wrote in one second
        world.commit({"deleted": f"{time.time_ns()}\n"})
        put(file, f"{time.time_ns()}\n")
        seconds = {path.stat().st_mtime // 1 for path in (index, file)}
    made = await ready(world)
    await anyio.sleep_until(anyio.current_time() + max(0.0, seconds.pop() + 1.1 - time.time()))
    before = file.read_text()
    refusal(await world.landing.advance("main", made.base, made.commit), "deleted", "uncommitted")
    assert file.read_text() == before


async def test_files_of_bd_and_of_our_own_are_no_reason_to_wait(world: GitLandingWorld) -> None:
    own = {".beads/issues.jsonl": "1\n", ".agent-shepherd/runs.jsonl": "1\n"}
    world.commit(dict(own))
    made = await ready(world)
    for path in own:
        put(world.top / path, "2\n")
    assert await world.landing.advance("main", made.base, made.commit) == Advanced(made.commit)
    assert all((world.top / path).read_text() == "2\n" for path in own)
    head = world.work("ashep/t-1", {".beads/issues.jsonl": "3\n"})
    made = await world.landing.integrate(Candidate("t-1", "ashep/t-1", head, "main"))
    assert isinstance(made, Integrated)
    refusal(await world.landing.advance("main", made.base, made.commit), ".beads/issues.jsonl")


async def test_a_base_that_is_being_rebased_waits(world: GitLandingWorld) -> None:
    made = await ready(world)
    other = world.top.parent / "other"
    world.git("checkout", "-q", "--detach")
    world.git("worktree", "add", "-q", str(other), "main")
    world.git("checkout", "-q", "--detach", cwd=other)
    put(world.top / ".git/worktrees/other/rebase-merge/head-name", "refs/heads/main\n")
    refusal(await world.landing.advance("main", made.base, made.commit), "rebased")


async def test_a_tree_that_was_deleted_does_not_count_and_a_locked_one_does(world: GitLandingWorld) -> None:
    world.git("checkout", "-q", "--detach")
    made = await ready(world)
    away = world.top.parent / "away"
    world.git("worktree", "add", "-q", "--lock", str(away), "main")
    away.rename(world.top.parent / "moved away")
    refusal(await world.landing.advance("main", made.base, made.commit), "locked")
    world.git("worktree", "unlock", str(away))
    assert await world.landing.advance("main", made.base, made.commit) == Advanced(made.commit)


async def test_a_base_that_is_checked_out_twice_is_told_as_what_it_is(world: GitLandingWorld) -> None:
    made = await ready(world)
    world.git("worktree", "add", "-q", "--force", str(world.top.parent / "other"), "main")
    before = world.state()
    refused = await world.landing.advance("main", made.base, made.commit)
    refusal(refused, "2 work trees", str(world.top), "other", "switch", code="failed")
    assert world.state() == before


async def test_what_is_in_the_way_is_so_wherever_the_base_is_by_now(world: GitLandingWorld) -> None:
    """Else whoever waits is brought onto the base, and verified, each time that others land."""
    made = await ready(world)
    put(world.top / "edited", "a person's\n")
    refusal(await world.landing.advance("main", made.base, made.commit), "edited")
    head = world.work("ashep/t-2", {"else": "1\n"})
    other = await world.landing.integrate(Candidate("t-2", "ashep/t-2", head, "main"))
    assert isinstance(other, Integrated)
    assert await world.landing.advance("main", other.base, other.commit) == Advanced(other.commit)
    refusal(await world.landing.advance("main", made.base, made.commit), "edited")
    world.git("checkout", "-q", "edited")
    moved = await world.landing.advance("main", made.base, made.commit)
    assert isinstance(moved, MoveRefused)
    assert moved.code == "moved"


async def test_a_protected_branch_is_moved_by_people_only(folder: Path) -> None:
    world = GitLandingWorld(folder.parent / "top", protected=("ma*",))
    world.commit(BEGIN)
    made = await ready(world)
    refusal(await world.landing.advance("main", made.base, made.commit), code="protected")


async def test_hooks_do_not_run(world: GitLandingWorld) -> None:
    made = await ready(world)
    for name in ("reference-transaction", "post-merge", "post-checkout", "post-index-change"):
        put(world.top / ".git/hooks" / name, f"#!/bin/sh\ntouch {world.top.parent}/ran\nexit 1\n")
        (world.top / ".git/hooks" / name).chmod(0o755)
    assert await world.landing.advance("main", made.base, made.commit) == Advanced(made.commit)
    assert not (world.top.parent / "ran").exists()


async def test_nobody_else_steers_git(world: GitLandingWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.setenv(name, str(world.top.parent / "wrong"))
    monkeypatch.setenv("GIT_COMMITTER_DATE", "yesterday")
    with monkeypatch.context() as without:
        for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMITTER_DATE"):
            without.delenv(name)
        head = world.work("ashep/t-1", WORK)
        base = world.git("rev-parse", "main")
        lie = world.git("commit-tree", "-m", "lie", f"{head}^{{tree}}")
        world.git("replace", base, lie)
    made = await world.landing.integrate(Candidate("t-1", "ashep/t-1", head, "main"))
    assert isinstance(made, Integrated)
    assert await world.landing.advance("main", base, made.commit) == Advanced(made.commit)


async def test_ways_of_merging_are_those_of_the_base(world: GitLandingWorld) -> None:
    world.commit({".gitattributes": "log merge=union\n", "log": "1\n"})
    head = world.work("ashep/t-1", {"log": "1\n2\n", ".gitattributes": None})
    world.commit({"log": "1\n3\n"})
    world.git("checkout", "-q", "--detach", "ashep/t-1")
    made = await world.landing.integrate(Candidate("t-1", "ashep/t-1", head, "main"))
    assert isinstance(made, Integrated)
    assert sorted(world.files(made.commit)["log"].split()) == ["1", "2", "3"]


async def test_a_commit_names_its_issue_and_claims_are_tried(world: GitLandingWorld) -> None:
    head = world.work("ashep/t-1", {"a": "1\n"})
    forged = world.work("ashep/t-2", {"b": f"Ashep-Head: {head}\n"})
    world.git("commit", "-q", "--amend", "-m", f"Forged\n\nAshep-Head: {head}", cwd=world.top.parent / "tree-ashep-t-2")
    forged = world.git("rev-parse", "ashep/t-2")
    made = await world.landing.integrate(Candidate("t-2", "ashep/t-2", forged, "main", "T\n\nAshep-Run: r"))
    assert isinstance(made, Integrated)
    assert await world.landing.advance("main", made.base, made.commit) == Advanced(made.commit)
    assert not await world.landing.landed(head, "main"), "who says that it holds it need not"
    printed = world.git("log", "-1", "--format=%(trailers:only)|%an|%cn <%ce>", "main")
    assert printed.split("|") == [
        f"Ashep-Run: r\nAshep-Issue: t-2\nAshep-Head: {forged}\n",
        "Agent Shepherd",
        "Agent Shepherd <agent-shepherd@localhost>",
    ]
    squashed = await world.landing.integrate(Candidate("t-1", "ashep/t-1", head, "main", method="squash"))
    assert isinstance(squashed, Integrated)
    assert world.git("log", "-1", "--format=%an %P", squashed.commit) == f"person {made.commit}"


async def test_rebased_commits_keep_author_and_message(world: GitLandingWorld) -> None:
    heads = [world.work("ashep/t-1", {"a": f"{number}\n"}) for number in range(3)]
    world.commit({"b": "1\n"})
    made = await world.landing.integrate(Candidate("t-1", "ashep/t-1", heads[-1], "main", method="rebase"))
    assert isinstance(made, Integrated)
    printed = world.git(
        "log", "--format=%an|%s|%(trailers:key=Ashep-Issue,valueonly,separator=)", f"main..{made.commit}"
    )
    assert printed.split("\n") == ["person|Work on ashep/t-1|t-1", *["person|Work on ashep/t-1|"] * 2]
    assert world.git("rev-parse", f"{made.commit}~3") == made.base


async def test_branches_without_a_common_history_and_what_else_conflicts(world: GitLandingWorld) -> None:
    world.commit({"binary": "\0old\n"})
    alone = world.git("commit-tree", "-m", "alone", "main^{tree}")
    found = await world.landing.integrate(Candidate("t-1", "ashep/t-1", alone, "main"))
    assert (getattr(found, "paths", None), "no common history" in getattr(found, "text", "")) == ((), True)
    tree = world.top.parent / "tree-ashep-t-1"
    head = world.work("ashep/t-1", {"binary": "\0mine\n", "edited": None, "same": "x" * 99_999})
    world.commit({"binary": "\0theirs\n", "edited": "theirs\n", "same": "\n".join("y" * 9 for _ in range(9999))})
    found = await world.landing.integrate(Candidate("t-1", "ashep/t-1", head, "main"))
    text = getattr(found, "text", "")
    assert getattr(found, "paths", None) == ("binary", "edited", "same")
    assert ("modify/delete" in text, "<<<<<<< main" in text, len(text) < 17_000) == (True, True, True)
    assert tree.exists()


# --- what a landing that was cut off leaves ---

STATES = ("old", "new", "missing", "partial")


def cut_off(world: GitLandingWorld, made: Integrated, *, index: str, states: Mapping[str, str]) -> None:
    """Make what a life leaves that is killed while it moves files."""
    for name, commit in (("old", made.base), ("new", made.commit)):
        world.git("update-ref", f"refs/ashep/moving/main/{name}", commit)
    if index == "new":
        world.git("read-tree", made.commit)
    put(world.top / ".git/index.lock", LINE.decode())
    before, after = world.files(made.base), world.files(made.commit)
    for path, state in states.items():
        content = {"old": before.get(path), "new": after.get(path), "missing": None}.get(state)
        if state == "partial" and (whole := after.get(path)) is not None:
            content = whole[: len(whole) // 2]
        place = world.top / path
        if place.is_file():
            place.unlink()
        if content is not None and not any(above.is_file() for above in place.parents):
            if place.is_dir():
                place.rmdir()
            put(place, content)


TOUCHED = ["edited", "deleted", "added/deep/file", "odd \u00e4\nname"]
MIXES = [dict(zip(TOUCHED, states, strict=True)) for states in list(itertools.product(STATES, repeat=4))[::43]]


@pytest.mark.parametrize("index", ["old", "new"])
@pytest.mark.slow
async def test_files_between_old_and_new_go_on_to_new(folder: Path, index: str) -> None:
    for number, mix in enumerate(MIXES):
        place = folder.parent / str(number)
        place.mkdir(parents=True)
        world = GitLandingWorld(place / "top")
        world.commit(BEGIN)
        made = await ready(world)
        cut_off(world, made, index=index, states=mix)
        if number % 2:
            await world.landing.settle()
            assert world.state() == (made.base, "", world.files(made.base)), mix
            assert world.left_behind() == []
        assert await world.landing.advance("main", made.base, made.commit) == Advanced(made.commit), mix
        assert world.state() == (made.commit, "", world.files(made.commit)), mix
        assert world.left_behind() == []


@pytest.mark.promise("Z2")
@pytest.mark.parametrize("index", ["old", "new"])
async def test_what_a_person_wrote_into_a_cut_off_landing_stays(world: GitLandingWorld, index: str) -> None:
    made = await ready(world)
    cut_off(world, made, index=index, states=dict(zip(TOUCHED, ("new", "new", "partial", "missing"), strict=True)))
    put(world.top / "edited", "a person's\n")
    put(world.top / "same", "a person's too\n")
    put(world.top / "added/deep/beside", "and that\n")
    refusal(await world.landing.advance("main", made.base, made.commit), "edited")
    mine = {"edited": "a person's\n", "same": "a person's too\n", "added/deep/beside": "and that\n"}
    assert world.state()[2] == world.files(made.base) | mine
    assert world.git("diff", "--name-only").split() == ["edited", "same"]
    assert world.git("diff", "--cached", "--name-only") == ""
    assert world.left_behind() == []


async def test_where_the_person_went_on_a_cut_off_landing_is_forgotten(world: GitLandingWorld) -> None:
    made = await ready(world)
    cut_off(world, made, index="new", states=dict.fromkeys(TOUCHED, "new"))
    os.unlink(world.top / ".git/index.lock")
    later = world.commit({"mine": "1\n"})
    refusal(await world.landing.advance("main", made.base, made.commit), code="moved")
    assert world.state()[:2] == (later, "")
    assert world.left_behind() == []


async def test_a_lock_of_another_git_is_never_taken_away(world: GitLandingWorld) -> None:
    made = await ready(world)
    cut_off(world, made, index="old", states={"edited": "new"})
    put(world.top / ".git/index.lock", "")
    await world.landing.settle()
    refusal(await world.landing.advance("main", made.base, made.commit), "index.lock")
    assert (world.top / ".git/index.lock").read_text() == ""
    assert (world.top / "edited").read_text() == WORK["edited"]
    (world.top / ".git/index.lock").unlink()
    assert await world.landing.advance("main", made.base, made.commit) == Advanced(made.commit)


def smudged(world: GitLandingWorld, command: str) -> None:
    """Let git run a program for the file `edited` whenever it writes it."""
    world.commit({".gitattributes": "edited filter=slow\n"})
    world.git("config", "filter.slow.smudge", command)


async def test_a_git_that_dies_half_way_is_undone_at_once(world: GitLandingWorld) -> None:
    flag = world.top.parent / "flag"
    smudged(world, f"if [ -e {flag} ]; then cat; else touch {flag}; kill -9 $PPID; fi")
    flag.touch()
    made = await ready(world)
    flag.unlink()
    before = world.state()
    with pytest.raises(AshepError, match="read-tree"):
        await world.landing.advance("main", made.base, made.commit)
    assert world.state() == before
    assert await world.landing.advance("main", made.base, made.commit) == Advanced(made.commit)
    assert world.state() == (made.commit, "", world.files(made.commit))
    assert world.left_behind() == []


async def test_a_stop_in_order_lets_a_move_end(world: GitLandingWorld) -> None:
    flag = world.top.parent / "flag"
    smudged(world, f"touch {flag}; sleep 0.1; cat")
    made = await ready(world)
    flag.unlink()
    async with anyio.create_task_group() as group:
        group.start_soon(world.landing.advance, "main", made.base, made.commit)
        with anyio.fail_after(60):
            while not flag.exists():
                await anyio.sleep(0.01)
        group.cancel_scope.cancel()
    assert world.state() == (made.commit, "", world.files(made.commit))
    assert world.left_behind() == []


async def test_ids_must_be_whole(world: GitLandingWorld) -> None:
    with pytest.raises(AshepError, match="full ids"):
        await world.landing.advance("main", "HEAD", "ashep/t-1")


async def test_a_file_that_was_only_touched_is_not_in_the_way(world: GitLandingWorld) -> None:
    made = await ready(world)
    os.utime(world.top / "edited", (1, 1))
    assert await world.landing.advance("main", made.base, made.commit) == Advanced(made.commit)
    assert world.status() == ""
