"""Odd repositories: landing, trees and checks where a repository is not as most are, over the real git."""

import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from ashep.adapters.git import GitLanding, rollback
from ashep.adapters.git.command import LANDING, Git
from ashep.adapters.git.workspaces.linked import Worktrees
from ashep.adapters.verifier.checkout import Checkout, find, make_checkout_folder
from ashep.errors import AshepError, ProgramTimedOut
from ashep.ports.landing import Advanced, Candidate, Conflict, Integrated
from tests.conformance.landings import GitLandingWorld, put, refusal

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("git_alone")]

ONE = "ashep/t-1"
ALLOWED = ("-c", "protocol.file.allow=always")


@pytest.fixture
def world(folder: Path) -> GitLandingWorld:
    return GitLandingWorld(folder.parent / "top")


async def ready(world: GitLandingWorld, landing: GitLanding | None = None) -> Integrated:
    made = await (landing or world.landing).integrate(Candidate("t-1", ONE, world.git("rev-parse", ONE), "main"))
    assert isinstance(made, Integrated), made
    return made


def failing(world: GitLandingWorld, *, now: bool = True) -> None:
    """A filter that a person's settings demand, and whose program is missing."""
    for name, value in (("smudge", "no-such-program" if now else "cat"), ("clean", "cat"), ("required", "true")):
        world.git("config", f"filter.odd.{name}", value)


# --- a move that git gives up in its midst ---


@pytest.mark.promise("Z2")
async def test_what_a_failing_filter_cut_off_is_taken_back(world: GitLandingWorld) -> None:
    world.commit({"a": "a\n", "told": "told\n", "z.dat": "z\n"})
    work: dict[str, str | None] = {
        "a": "new\n", "told": "new\n", "z.dat": "new\n", "new": "new\n", ".gitattributes": "*.dat filter=odd\n",
    }  # fmt: skip
    world.work(ONE, work)
    world.git("update-index", "--assume-unchanged", "told")
    made = await ready(world)
    before = world.state()
    failing(world)
    refusal(await world.landing.advance("main", made.base, made.commit), str(world.top), "z.dat", "odd", code="failed")
    assert world.state() == before
    assert "h told" in world.git("ls-files", "-v").splitlines(), "what git was told stays told"
    assert world.left_behind() == []
    failing(world, now=False)
    assert await world.landing.advance("main", made.base, made.commit) == Advanced(made.commit)
    assert world.state() == (made.commit, "", world.files(made.commit))


async def test_what_cannot_be_taken_back_is_named_and_tried_again(world: GitLandingWorld) -> None:
    world.commit({".gitattributes": "*.dat filter=odd\n", "a": "a\n", "z.dat": "z\n"})
    world.work(ONE, {"a": "new\n", "z.dat": "new\n"})
    made = await ready(world)
    failing(world)
    for _ in range(2):
        with pytest.raises(AshepError, match=r"(?s)cannot be put back now: git does not write z\.dat: .*odd"):
            await world.landing.advance("main", made.base, made.commit)
    failing(world, now=False)
    await world.landing.settle()
    assert world.state() == (made.base, "", world.files(made.base))
    assert world.left_behind() == []


async def test_files_that_a_sparse_checkout_leaves_out_stay_out(world: GitLandingWorld) -> None:
    world.commit({"in/a": "a\n", "in/z.dat": "z\n", "out/b": "b\n"})
    world.work(ONE, {"in/a": "new\n", "in/z.dat": "z2\n", "out/b": "new\n", ".gitattributes": "*.dat filter=odd\n"})
    world.git("sparse-checkout", "set", "in")
    made = await ready(world)
    before = world.state()
    assert "out/b" not in before[2]
    failing(world)
    refusal(await world.landing.advance("main", made.base, made.commit), "in/z.dat", code="failed")
    assert world.state() == before
    assert "S out/b" in world.git("ls-files", "-t").splitlines()
    failing(world, now=False)
    assert await world.landing.advance("main", made.base, made.commit) == Advanced(made.commit)
    assert world.status() == ""


def cut_off(world: GitLandingWorld, made: Integrated) -> None:
    """As a life leaves it that was killed while the files moved."""
    for name, commit in (("old", made.base), ("new", made.commit)):
        world.git("update-ref", f"refs/ashep/moving/main/{name}", commit)


@pytest.mark.parametrize("theirs", [False, True])
async def test_a_large_file_that_was_cut_off_is_taken_back(
    world: GitLandingWorld, monkeypatch: pytest.MonkeyPatch, theirs: bool
) -> None:
    monkeypatch.setattr(rollback, "MOST_READ", 1000)
    world.work(ONE, {"large": "0123456789" * 1000})
    made = await ready(world)
    cut_off(world, made)
    written = "0123456789" * 500 + ("a person's" if theirs else "")
    put(world.top / "large", written)
    result = await world.landing.advance("main", made.base, made.commit)
    if theirs:
        refusal(result, "large")
        assert (world.top / "large").read_text() == written
    else:
        assert result == Advanced(made.commit)
    assert not list((world.top / ".git").glob(".merge_file*"))


async def test_a_cut_off_file_with_other_line_ends_is_taken_back(world: GitLandingWorld) -> None:
    world.git("config", "core.autocrlf", "true")
    world.work(ONE, {"lines": "one\ntwo\nthree\n"})
    made = await ready(world)
    cut_off(world, made)
    (world.top / "lines").write_bytes(b"one\r\ntw")
    assert await world.landing.advance("main", made.base, made.commit) == Advanced(made.commit)
    assert (world.top / "lines").read_bytes() == b"one\r\ntwo\r\nthree\r\n"


async def test_a_disk_without_room_is_seen_before_anything_moves(
    world: GitLandingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.work(ONE, {"large": "0123456789" * 1_000_000})
    made = await ready(world)
    before = world.state()
    usage = namedtuple("usage", "total used free")
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: usage(0, 0, 20 * 1024**2))
        refusal(await world.landing.advance("main", made.base, made.commit), "26 MiB are needed, 20 are free")
    assert world.state() == before
    assert await world.landing.advance("main", made.base, made.commit) == Advanced(made.commit)


async def test_what_cannot_be_written_in_gits_folder_is_an_error_of_ours(world: GitLandingWorld) -> None:
    world.commit({".gitattributes": "*.txt text\n"})
    world.work(ONE, {"a": "new\n"})
    made = await ready(world)
    before = world.state()
    (world.top / ".git/index.ashep.lock").mkdir()
    with pytest.raises(AshepError, match=r"index cannot be copied to .*index\.ashep"):
        await world.landing.advance("main", made.base, made.commit)
    assert world.state() == before
    (world.top / ".git/ashep.attributes").unlink()
    (world.top / ".git/ashep.attributes").mkdir()
    with pytest.raises(AshepError, match=r"ashep\.attributes cannot be written"):
        await ready(world)


async def test_a_filter_has_more_time_to_write_files_than_git_has_to_answer(world: GitLandingWorld) -> None:
    world.commit({"z.dat": "z\n"})
    world.work(ONE, {"z.dat": "new\n", ".gitattributes": "*.dat filter=slow\n"})
    world.git("config", "filter.slow.smudge", "sleep 4; cat")
    landing = GitLanding(world.top, timeout=3.0)
    made = await ready(world, landing)
    assert await landing.advance("main", made.base, made.commit) == Advanced(made.commit)


# --- what git writes to no work tree ---


async def test_a_name_that_git_writes_nowhere_is_told_as_what_it_is(world: GitLandingWorld) -> None:
    world.git("config", "core.protectNTFS", "false")
    world.work(ONE, {"a": "new\n", "deep/git~1": "new\n"})
    world.git("config", "--unset", "core.protectNTFS")
    made = await ready(world)
    before = world.state()
    refusal(await world.landing.advance("main", made.base, made.commit), "deep/git~1", code="names")
    assert world.state() == before
    assert world.left_behind() == []


async def test_a_name_that_would_not_land_is_told_when_it_is_sealed(world: GitLandingWorld) -> None:
    spaces = Worktrees(world.top, world.top.parent / "trees")
    made = await spaces.prepare(ONE, None, 0)
    edited(made.path, {"deep/git~1": "1\n", "fine": "1\n"})
    sealed = await spaces.seal(ONE, "t-1/implement.1.1", "Work")
    assert sealed.unwritable == ("deep/git~1",)
    assert world.files(sealed.head)["deep/git~1"] == "1\n", "nothing is lost"
    Path(made.path, "deep/git~1").rename(Path(made.path, "deep/other"))
    assert (await spaces.seal(ONE, "t-1/implement.2.1", "Work")).unwritable == ()


async def test_an_lfs_pointer_whose_program_is_not_there_is_told_as_what_it_is(world: GitLandingWorld) -> None:
    world.work(ONE, {"z.dat": "version https://git-lfs.github.com/spec/v1\n", ".gitattributes": "*.dat filter=lfs\n"})
    world.git("config", "filter.lfs.process", "no-git-lfs filter-process")
    world.git("config", "filter.lfs.required", "true")
    made = await ready(world)
    before = world.state()
    # git names the file, too, where it was still writing when the program ended, and else only the program
    refusal(await world.landing.advance("main", made.base, made.commit), "no-git-lfs", code="failed")
    assert world.state() == before
    put(world.top / "z.dat", "a person's\n")
    refusal(await world.landing.advance("main", made.base, made.commit), "z.dat", code="dirty")


# --- what stands in the way ---


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
async def test_a_file_that_git_was_told_not_to_look_at_is_named(world: GitLandingWorld, flag: str) -> None:
    world.commit({"conf": "1\n"})
    world.work(ONE, {"conf": "2\n", "other": "2\n"})
    made = await ready(world)
    world.git("update-index", flag, "conf")
    put(world.top / "conf", "a person's\n")
    before = world.state()
    result = await world.landing.advance("main", made.base, made.commit)
    refusal(result, "git was told not to look at conf", "--no-skip-worktree")
    assert world.state() == before


async def test_what_ashep_and_bd_write_below_the_top_is_not_in_the_way(world: GitLandingWorld) -> None:
    world.commit({"sub/a": "a\n", "sub/.beads/issues.jsonl": "1\n", "sub/other/.beads/issues.jsonl": "1\n"})
    world.work(ONE, {"sub/a": "new\n", "sub/other/.beads/issues.jsonl": "2\n"})
    landing = GitLanding(world.top / "sub")
    made = await ready(world, landing)
    put(world.top / "sub/other/.beads/issues.jsonl", "of another project\n")
    refusal(await landing.advance("main", made.base, made.commit), "sub/other/.beads/issues.jsonl")
    world.git("checkout", "-q", ".")
    put(world.top / "sub/.beads/issues.jsonl", "2\n")
    assert await landing.advance("main", made.base, made.commit) == Advanced(made.commit)
    assert world.status() == " M sub/.beads/issues.jsonl"


def submodule(world: GitLandingWorld) -> Path:
    """A submodule `mod` on main."""
    other = GitLandingWorld(world.top.parent / "other")
    world.git(*ALLOWED, "submodule", "add", "-q", str(other.top), "mod")
    world.commit({})
    return world.top / "mod"


@pytest.mark.promise("Z2")
@pytest.mark.parametrize("becomes", ["mod", "mod/README"])
async def test_files_in_a_submodule_whose_place_is_taken_stay(world: GitLandingWorld, becomes: str) -> None:
    filled = submodule(world)
    tree = world.top.parent / "tree-ashep-t-1"
    world.git("worktree", "add", "-q", "-b", ONE, str(tree), "main")
    world.git("rm", "-q", "mod", cwd=tree)
    world.work(ONE, {becomes: "a file\n"})
    made = await ready(world)
    put(filled / "mine", "a person's\n")
    before = world.state()
    refusal(await world.landing.advance("main", made.base, made.commit), "mod")
    assert world.state() == before
    assert (filled / "mine").read_text() == "a person's\n"


# --- where the main work tree is ---


@pytest.mark.promise("Z2")
async def test_a_git_folder_that_is_elsewhere(world: GitLandingWorld) -> None:
    world.git("init", "-q", "--separate-git-dir", str(world.top.parent / "elsewhere.git"))
    world.work(ONE, {"a": "new\n", "README": "new\n"})
    made = await ready(world)
    put(world.top / "README", "a person's\n")
    refusal(await world.landing.advance("main", made.base, made.commit), "README")
    world.git("checkout", "-q", ".")
    assert await world.landing.advance("main", made.base, made.commit) == Advanced(made.commit)
    assert world.state() == (made.commit, "", world.files(made.commit))


async def test_a_main_work_tree_that_nothing_leads_to_is_not_left_behind(world: GitLandingWorld) -> None:
    away = world.top.parent / "elsewhere.git"
    world.git("init", "-q", "--separate-git-dir", str(away))
    world.work(ONE, {"a": "new\n"})
    project = world.top.parent / "project"
    world.git("worktree", "add", "-q", "-b", "other", str(project))
    made = await ready(world, GitLanding(project))
    refusal(await GitLanding(project).advance("main", made.base, made.commit), str(away), "core.worktree")
    assert (world.git("rev-parse", "main"), world.status()) == (made.base, "")
    world.git("config", "core.worktree", str(world.top))
    assert await GitLanding(project).advance("main", made.base, made.commit) == Advanced(made.commit)
    assert world.status() == ""


async def test_a_project_that_is_a_submodule(world: GitLandingWorld) -> None:
    inner = GitLandingWorld.standing(submodule(world))
    inner.work(ONE, {"a": "new\n"})
    made = await ready(inner)
    assert await inner.landing.advance("main", made.base, made.commit) == Advanced(made.commit)
    assert (inner.status(), (inner.top / "a").read_text()) == ("", "new\n")


# --- attributes ---

PATTERNS = {
    "a name": ("sub", "CHANGES merge=union", "sub/CHANGES"),
    "a name, deeper": ("sub", "CHANGES merge=union", "sub/deep/er/CHANGES"),
    "a path": ("sub", "deep/CHANGES merge=union", "sub/deep/CHANGES"),
    "anchored": ("sub", "/CHANGES merge=union", "sub/CHANGES"),
    "quoted": ("sub", '"with \\"space" merge=union', 'sub/with "space'),
    "an odd folder": ("#so [od]* d!", "*.md merge=union", "#so [od]* d!/x.md"),
    "a folder like a negation": ("!so", "* merge=union", "!so/x"),
    "beyond ASCII": ("\u00e4 \\", "\u00fc merge=union", "\u00e4 \\/\u00fc"),
    "over the top's": ("sub", "# why\n*.lock -merge\n*.md merge=union", "sub/x.md"),
}


@pytest.mark.parametrize("kind", PATTERNS)
async def test_attributes_of_folders_count(world: GitLandingWorld, kind: str) -> None:
    folder, lines, path = PATTERNS[kind]
    top = "*.md -merge\n" if kind.startswith("over") else "* text\n"
    world.commit({f"{folder}/.gitattributes": lines, ".gitattributes": top, path: "1\n"})
    world.work(ONE, {path: "1\nmine\n"})
    world.commit({path: "1\ntheirs\n"})
    made = await ready(world)
    assert world.git("show", f"{made.commit}:{path}") == "1\ntheirs\nmine"


@pytest.mark.parametrize(("lines", "path"), [("/x merge=union", "sub/deep/x"), ("x merge=union", "other/x")])
async def test_attributes_of_folders_count_nowhere_else(world: GitLandingWorld, lines: str, path: str) -> None:
    world.commit({"sub/.gitattributes": lines, path: "1\n"})
    world.work(ONE, {path: "1\nmine\n"})
    world.commit({path: "1\ntheirs\n"})
    made = await world.landing.integrate(Candidate("t-1", ONE, world.git("rev-parse", ONE), "main"))
    assert isinstance(made, Conflict)
    assert made.paths == (path,)


# --- trees ---


def edited(folder: str, files: dict[str, str]) -> None:
    for path, content in files.items():
        put(Path(folder, path), content)


@pytest.mark.parametrize("how", [("in",), ("--no-cone", "/in/*"), ("--sparse-index", "in")])
async def test_work_outside_of_a_sparse_checkout_is_committed(world: GitLandingWorld, how: tuple[str, ...]) -> None:
    world.commit({"in/a": "a\n", "out/b": "b\n", "out/c": "c\n"})
    world.git("sparse-checkout", "set", *how)
    spaces = Worktrees(world.top, world.top.parent / "trees")
    made = await spaces.prepare(ONE, None, 0)
    edited(made.path, {"in/new": "1\n", "out/b": "2\n", "out/new": "1\n", "other/new": "1\n"})
    sealed = await spaces.seal(ONE, "t-1/implement.1.1", "Work")
    changed = world.git("diff", "--name-status", made.base, sealed.head).splitlines()
    assert changed == ["A\tin/new", "A\tother/new", "M\tout/b", "A\tout/new"]
    landed = await ready(world)
    assert await world.landing.advance("main", landed.base, landed.commit) == Advanced(landed.commit)
    assert world.status() == ""
    assert not (world.top / "out").exists()


async def test_a_change_of_case_alone_is_committed_and_lands(world: GitLandingWorld) -> None:
    if (world.top / "readme").exists():
        pytest.skip("this disk does not tell cases apart")
    world.commit({"Readme.md": "a\n", "Dir/f": "1\n"})
    world.git("config", "core.ignoreCase", "true")  # a repository that was copied from a system that needs it
    spaces = Worktrees(world.top, world.top.parent / "trees")
    made = await spaces.prepare(ONE, None, 0)
    for former, now in (("Readme.md", "readme.md"), ("Dir", "dir")):
        Path(made.path, former).rename(Path(made.path, now))
    sealed = await spaces.seal(ONE, "t-1/implement.1.1", "Work")
    assert world.files(sealed.head) == {"README": "begin\n", "readme.md": "a\n", "dir/f": "1\n"}
    landed = await ready(world)
    assert await world.landing.advance("main", landed.base, landed.commit) == Advanced(landed.commit)
    assert world.state() == (landed.commit, "", world.files(landed.commit))


async def test_a_tree_that_git_names_relatively_is_found(world: GitLandingWorld) -> None:
    spaces = Worktrees(world.top, world.top.parent / "trees")
    made = await spaces.prepare(ONE, None, 0)
    (link,) = (world.top / ".git/worktrees").glob("*/gitdir")
    link.write_text(f"{'../' * 4}trees/{ONE}/.git\n")  # as `worktree.useRelativePaths` has it, since git 2.48
    assert await spaces.prepare(ONE, None, 0) == made
    assert [standing.branch for standing in await spaces.list()] == [ONE]


async def test_a_folder_with_a_line_break_is_refused_in_words(folder: Path) -> None:
    world = GitLandingWorld(folder.parent / "line\nbreak")
    with pytest.raises(AshepError, match=r"'.*line\\nbreak'.* line break in its name"):
        await Worktrees(world.top, world.top.parent / "trees").prepare(ONE, None, 0)
    assert world.git("for-each-ref", "refs/ashep") == ""


async def test_what_the_disk_does_not_take_of_a_tree_is_an_error_of_ours(world: GitLandingWorld) -> None:
    spaces = Worktrees(world.top, world.top.parent / "trees")
    await spaces.prepare(ONE, None, 0)
    (notes,) = (world.top / ".git/worktrees").glob("*/ashep")
    shutil.rmtree(notes)
    notes.write_text("in the way\n")
    with pytest.raises(AshepError, match=f"the work tree of {ONE}: .*ashep"):
        await spaces.prepare(ONE, None, 0)


# --- checks ---


async def checked_out(world: GitLandingWorld, commit: str, scratch: Path) -> list[str]:
    """Check a commit out as for a check, and read the log there."""
    commits = await find(world.top, commit, None)
    async with make_checkout_folder(scratch) as place:
        checkout = Checkout(place, commits)
        await checkout.fill()
        await checkout.open_to_programs()
        return world.git("log", "--format=%s", cwd=checkout.tree).splitlines()


def clone(world: GitLandingWorld, *how: str) -> GitLandingWorld:
    for name in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"):
        world.git("config", name, "true")
    top = world.top.parent / "clone"
    world.git("clone", "-q", *how, f"file://{world.top}", str(top))
    return GitLandingWorld.standing(top)


async def test_a_check_can_read_the_log_of_a_shallow_clone(world: GitLandingWorld) -> None:
    world.commit({"a": "1\n"})
    world.commit({"a": "2\n"})
    shallow = clone(world, "--depth", "2")
    shallow.work(ONE, {"a": "3\n"})
    said = await checked_out(shallow, ONE, world.top.parent / "scratch")
    assert said == [f"Work on {ONE}", "A person's commit", "A person's commit"]


async def test_a_commit_that_a_partial_clone_does_not_have_whole_is_told(world: GitLandingWorld) -> None:
    world.commit({"in/a": "1\n", "out/b": "1\n"})
    partial = clone(world, "--filter=blob:none", "--sparse")
    scratch = world.top.parent / "scratch"
    with pytest.raises(AshepError, match=r"out/b .*partial clone: `git config --unset .*` and `git fetch --refetch`"):
        await checked_out(partial, "main", scratch)
    partial.git("config", "--unset", "remote.origin.partialCloneFilter")
    partial.git("fetch", "-q", "--refetch")
    assert len(await checked_out(partial, "main", scratch)) == 2


async def test_a_checkout_that_the_disk_does_not_take_is_an_error_of_ours(world: GitLandingWorld) -> None:
    commits = await find(world.top, "main", None)
    with pytest.raises(AshepError, match="the checkout cannot be made: No such file"):
        await Checkout(world.top.parent / "gone", commits).fill()


async def test_a_git_that_takes_too_long_leaves_no_lock_behind(world: GitLandingWorld, tmp_path: Path) -> None:
    """One that is killed leaves its locks, and each later git stops at them until a person takes them away."""
    hook = tmp_path / "reference-transaction"
    hook.write_text("#!/bin/sh\n[ $1 = prepared ] && touch $0.begun && sleep 60\n")
    hook.chmod(0o755)
    git = Git(world.top, LANDING, 1.0)
    head = world.git("rev-parse", "HEAD")
    with pytest.raises(ProgramTimedOut):
        await git.bare("-c", f"core.hooksPath={tmp_path}", "update-ref", "refs/ashep/x", head)
    assert hook.with_name(f"{hook.name}.begun").exists()
    assert [*(world.top / ".git").rglob("*.lock")] == []
    await git.bare("update-ref", "refs/ashep/x", head)
