"""What every work tree keeps: the contract of `ashep.ports.workspaces.WorkTree`, over memory and the real git."""

from pathlib import Path

import pytest

from ashep.core.facts.delivery import Tree
from ashep.errors import AshepError
from ashep.ports.workspaces import Changes, Commit
from tests.conformance.trees import GitTreeWorld, MemoryTreeWorld, TreeWorld

pytestmark = pytest.mark.usefixtures("git_alone")

KINDS = ["memory", pytest.param("git", marks=pytest.mark.real)]


@pytest.fixture(params=KINDS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> TreeWorld:
    """A repository of each kind, without a commit."""
    return MemoryTreeWorld() if request.param == "memory" else GitTreeWorld(tmp_path / "top")


@pytest.mark.parametrize("kind", KINDS)
async def test_outside_a_repository_there_is_no_tree(kind: str, tmp_path: Path) -> None:
    outside = MemoryTreeWorld(present=False) if kind == "memory" else GitTreeWorld(tmp_path / "top", present=False)
    assert await outside.tree.read() == Tree(present=False)
    assert await outside.tree.changes(None, "t-1", (), ("a",)) == Changes()
    assert await outside.tree.between("a" * 40, "b" * 40) == ()


async def test_a_repository_without_a_commit_has_no_head(world: TreeWorld) -> None:
    world.write("a.txt", "a")
    tree = await world.tree.read()
    assert (tree.present, tree.head, tree.dirty, tree.untracked) == (True, None, (), ("a.txt",))


@pytest.mark.promise("D6")
async def test_dirty_are_tracked_files_that_differ_from_head(world: TreeWorld) -> None:
    for name in ("same", "edited", "deleted", "odd \u00e4\nname"):
        world.write(name, name)
    head = world.commit("First")
    read = await world.tree.read()
    assert read == Tree(present=True, head=head, branch=read.branch)
    assert read.branch in ("main", "master")
    world.write("edited", "other")
    world.delete("deleted")
    world.write("odd \u00e4\nname", "other")
    world.write("staged", "new")
    world.stage("staged")
    world.write("untracked", "new")
    tree = await world.tree.read()
    dirty = dict(tree.dirty)
    assert list(dirty) == ["deleted", "edited", "odd \u00e4\nname", "staged"]
    assert dirty["deleted"] == "deleted"
    assert (tree.head, tree.untracked) == (head, ("untracked",))
    world.write("edited", "again")
    again = dict((await world.tree.read()).dirty)
    assert {name for name in dirty if again[name] != dirty[name]} == {"edited"}
    world.write("edited", "other")
    assert dict((await world.tree.read()).dirty) == dirty


async def test_between_lists_commits_oldest_first(world: TreeWorld) -> None:
    shas: list[str] = []
    for number in range(3):
        world.write("a", str(number))
        shas.append(world.commit(f"Commit {number}"))
    assert await world.tree.between(shas[0], shas[2]) == tuple(shas[1:])
    assert await world.tree.between(shas[1], shas[1]) == ()
    for before, after in ((None, shas[1]), (shas[1], None), (None, None), ("f" * 40, shas[1]), ("--all", shas[1])):
        assert await world.tree.between(before, after) == ()


async def test_changes_are_the_commits_that_name_the_issue(world: TreeWorld) -> None:
    world.write("a", "0")
    old = world.commit("Old", run="t-1/implement.1.1")
    for number, run in enumerate(("t-1/implement.1.1", "t-11/implement.1.1", None, "t-1/implement.2.1")):
        world.write(f"file{number}", "new")
        world.commit(f"Commit {number}", run=run)
    world.write("loose", "new")
    loose = world.commit("Commit without a trailer")
    world.write("a", "left")
    world.write("file1", "another issue's")
    changes = await world.tree.changes(old, "t-1", (loose, "e" * 40, "--all"), ("a", "gone"))
    assert {commit.subject for commit in changes.commits} == {"Commit 0", "Commit 3", "Commit without a trailer"}
    assert Commit(loose, "Commit without a trailer") in changes.commits
    assert all(name in changes.stat for name in ("file0", "file3", "loose"))
    assert not any(name in changes.stat for name in ("file1", "file2"))
    assert changes.left_over == ("a",)
    assert all(f"+++ {place}{name}" in changes.diff for name in ("file0", "loose", "a") for place in _places(changes))
    assert "file1" not in changes.diff, "what is another issue's is not shown"
    assert await world.tree.changes(None, "t-1", (), ()) == Changes()
    assert (await world.tree.changes("f" * 40, "t-1", (), ())).commits == ()


def _places(changes: Changes) -> tuple[str, ...]:
    """Before a path in a patch: git's `b/`, or nothing in memory's."""
    return ("b/",) if "diff --git" in changes.diff else ("",)


# --- the real git only ---


@pytest.mark.promise("D6")
@pytest.mark.real
async def test_files_of_bd_and_of_our_state_are_not_dirty(tmp_path: Path) -> None:
    world = GitTreeWorld(tmp_path / "top", "project")
    ours = ("project/.beads/x", "project/.agent-shepherd/state/y", "project/.agent-shepherd/runs.jsonl")
    theirs = ("project/.agent-shepherd/policies.yaml", "beside")
    for path in (*ours, *theirs):
        world.write(path, "1")
    world.commit("First")
    for path in (*ours, *theirs):
        world.write(path, "2")
    world.write("project/.beads/new", "1")
    tree = await world.tree.read()
    assert ([path for path, _ in tree.dirty], tree.untracked) == (sorted(theirs), ())


@pytest.mark.real
async def test_renames_links_and_strange_names(tmp_path: Path) -> None:
    world = GitTreeWorld(tmp_path / "top")
    world.write("from", "a long enough text\n" * 9)
    (world.top / "link").symlink_to("from")
    world.commit("First")
    world.git("mv", "from", "to")
    (world.top / "link").unlink()
    (world.top / "link").symlink_to("nowhere")
    (world.top / b"not-utf8-\xff".decode(errors="surrogateescape")).write_text("x")
    tree = await world.tree.read()
    dirty = dict(tree.dirty)
    assert (list(dirty), dirty["from"]) == (["from", "link", "to"], "deleted")
    assert tree.untracked == ("not-utf8-\ufffd",)


@pytest.mark.promise("X8")
@pytest.mark.real
async def test_reading_writes_nothing_and_obeys_no_one_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = GitTreeWorld(tmp_path / "top")
    world.write("a", "1")
    head = world.commit("First")
    world.git("config", "core.fsmonitor", "touch ran; false")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    (world.top / "a").touch()  # git would refresh its index
    index = (world.top / ".git/index").read_bytes()
    assert (await world.tree.read()).head == head
    assert (world.top / ".git/index").read_bytes() == index
    assert not (world.top / "ran").exists()
    assert not (world.top / ".git/index.lock").exists()


@pytest.mark.real
async def test_a_repository_that_git_refuses_is_an_error_and_not_absent(tmp_path: Path) -> None:
    world = GitTreeWorld(tmp_path / "top")
    world.git("config", "core.repositoryformatversion", "99")
    with pytest.raises(AshepError, match="99"):
        await world.tree.read()
