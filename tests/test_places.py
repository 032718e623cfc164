"""Places of branches over the real git: what an agent does to its place reaches nothing else, and nothing is lost."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from ashep.adapters.git import GitLanding
from ashep.adapters.git.repository import moved_aside_path
from ashep.adapters.git.workspaces import isolated_git, salvage
from ashep.adapters.git.workspaces.clones import Clones, place_at
from ashep.adapters.git.workspaces.router import GitWorkspaces
from ashep.cli.context import find_project
from ashep.core.state.branches import branch_of, shared_branch
from ashep.errors import AshepError, ProgramTimedOut, TreeRefused
from ashep.ports.landing import Advanced, Candidate, Conflict, Integrated
from ashep.ports.workspaces import Landed
from tests.conformance.test_workspaces import NOW
from tests.conformance.workspaces import GitWorkspacesWorld, PlacesWorld
from tests.places import has_bubblewrap

pytestmark = [pytest.mark.usefixtures("git_alone"), pytest.mark.promise("I6"), pytest.mark.slow]

ONE, TWO = branch_of("t-1"), branch_of("t-2")
RUN = "t-1/implement.1.1"
OBJECTS = ("cat-file", "--batch-all-objects", "--batch-check=%(objectname)")


@pytest.fixture
def world(request: pytest.FixtureRequest, folder: Path) -> PlacesWorld:
    """A repository whose branches have places, looked into in a sandbox where there is one; `none`: without."""
    return PlacesWorld(folder.parent, sandbox=has_bubblewrap() and getattr(request, "param", "") != "none")


def objects(world: PlacesWorld, branch: str) -> set[str]:
    """Every object that can be read in a place, borrowed ones included."""
    return {*world.git(*OBJECTS, at=branch).split()}


async def test_a_place_shows_the_bases_history_and_nothing_else_of_the_repository(world: PlacesWorld) -> None:
    secret = world.git("hash-object", "-w", "--stdin", stdin=b"KEY=1\n")
    tree = world.git("mktree", stdin=f"100644 blob {secret}\tsecret.env\n".encode())
    saved = world.git("commit-tree", tree, "-m", "Saved")
    world.git("update-ref", "refs/ashep/saved/ashep/t-9/1/files", saved)
    world.git("tag", "-a", "v1", "-m", "One")
    world.git("update-ref", "refs/remotes/origin/topic", world.person_commits("b.txt", "b\n"))
    await world.begun(TWO, {"theirs.txt": "t\n"})
    theirs = (await world.spaces.seal(TWO, "t-2/implement.1.1", "Theirs")).head
    await world.begun(ONE, {})
    there = objects(world, ONE)
    assert not {secret, tree, saved, theirs} & there
    assert {world.base(), world.git("rev-parse", "v1")} <= there
    refs = world.git("for-each-ref", "--format=%(refname)", at=ONE).split()
    assert refs == ["refs/heads/ashep/t-1", "refs/heads/main", "refs/remotes/origin/topic", "refs/tags/v1"]
    assert world.git("worktree", "list").count("\n") == 0
    assert str(world.top) not in (world.place / ONE / ".git" / "config").read_text()


async def test_the_base_is_there_as_it_is_now_and_what_the_agent_fetched_stays(world: PlacesWorld) -> None:
    world.git("update-ref", "refs/remotes/origin/main", world.base())
    await world.begun(ONE, {"mine.txt": "m\n"})
    fetched = world.git("commit-tree", "main^{tree}", "-p", "main", "-m", "Fetched", at=ONE)
    world.git("update-ref", "refs/remotes/origin/main", fetched, at=ONE)
    moved = world.person_commits("b.txt", "b\n")
    world.git("gc", "-q", "--prune=now")
    await world.spaces.prepare(ONE, None, 0)
    assert world.git("rev-parse", "main", "origin/main", at=ONE).split() == [moved, fetched]
    world.git("add", "-A", at=ONE)
    world.git("commit", "-qm", "Mine", at=ONE)
    world.git("merge", "-q", "main", at=ONE)
    sealed = await world.spaces.seal(ONE, RUN, "No")
    assert world.git("ls-tree", "--name-only", sealed.head).split() == ["a.txt", "b.txt", "mine.txt"]
    assert sealed.told == ()


async def test_what_others_brought_to_the_branch_is_there_or_is_merged(world: PlacesWorld) -> None:
    await world.begun(ONE, {"mine.txt": "m\n"})
    first = await world.spaces.seal(ONE, RUN, "Mine")

    def brought(name: str, on: str) -> str:
        world.git("worktree", "add", "-q", "--detach", str(world.top.parent / name), on)
        (world.top.parent / name / name).write_text(name)
        for words in (("add", "-A"), ("commit", "-qm", name)):
            world.git("-C", str(world.top.parent / name), *words)
        made = world.git("-C", str(world.top.parent / name), "rev-parse", "HEAD")
        world.git("update-ref", f"refs/heads/{ONE}", made, on)
        return made

    second = brought("second", first.head)
    assert (await world.spaces.prepare(ONE, None, 0)).head == second
    assert world.read(ONE)["second"] == "second"
    third = brought("third", second)
    world.edit(ONE, "more.txt", "m\n")
    sealed = await world.spaces.seal(ONE, "t-1/implement.1.2", "More")
    assert {"second", "third", "more.txt", "mine.txt"} < {*world.git("ls-tree", "--name-only", sealed.head).split()}
    assert third in world.git("rev-list", sealed.head).split()


async def test_a_branch_that_a_person_has_checked_out_is_not_changed_under_them(world: PlacesWorld) -> None:
    await world.begun(ONE, {"mine.txt": "m\n"})
    world.git("checkout", "-q", ONE)
    for call in (world.spaces.seal(ONE, RUN, "Mine"), world.spaces.prepare(ONE, None, 0)):
        with pytest.raises(AshepError, match="is checked out at"):
            await call
    assert world.git("status", "--porcelain", "-uno") == ""
    world.git("checkout", "-q", "main")
    assert [one.subject for one in (await world.spaces.seal(ONE, RUN, "Mine")).commits] == ["Mine"]


async def test_a_pipe_for_a_file_that_git_reads_holds_nothing_up_for_long(
    world: PlacesWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call of git waited there for a quarter of an hour."""
    monkeypatch.setattr(isolated_git, "_IDLE", 0.5)
    await world.begun(ONE, {"mine.txt": "m\n"})
    os.mkfifo(world.place / ONE / ".gitignore")
    with anyio.fail_after(60), pytest.raises(ProgramTimedOut):
        await world.spaces.seal(ONE, RUN, "Mine")


async def test_a_path_that_no_work_tree_can_hold_goes_back_to_who_wrote_it(world: PlacesWorld) -> None:
    """Its judges and checks failed at it, and nobody was to blame."""
    await world.begun(ONE, {})
    blob = world.git("hash-object", "-w", "--stdin", at=ONE, stdin=b"x")
    for path in ("/".join(["n" * 250] * 40), "n" * 300):
        world.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}", at=ONE)
    world.git("commit", "-qm", "Long", at=ONE)
    assert [name[:3] for name in (await world.spaces.seal(ONE, RUN, "Mine")).unwritable] == ["nnn", "nnn"]


@pytest.mark.skipif(not has_bubblewrap(), reason="git is bounded in a sandbox alone")
async def test_a_git_that_reads_a_file_whole_has_a_bound(world: PlacesWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """It took as much memory as the file is large, which need not take any room on the disk."""
    monkeypatch.setattr(isolated_git, "_MEMORY", 128 * 1024**2, raising=False)
    await world.begun(ONE, {"mine.txt": "m\n"})
    os.truncate(world.place / ONE / ".git" / "HEAD", 512 * 1024**2)
    with pytest.raises(AshepError, match="Out of memory"):
        await world.spaces.seal(ONE, RUN, "Mine")


async def test_a_commit_graph_that_lies_leads_past_nothing_that_others_brought(world: PlacesWorld) -> None:
    """The place's git took it for merged: the branch no longer had a person's commit."""
    await world.begun(ONE, {"mine.txt": "m\n"})
    await world.spaces.seal(ONE, RUN, "Mine")
    blob = world.git("hash-object", "-w", "--stdin", stdin=b"a guard\n")
    listed = f"{world.git('ls-tree', ONE)}\n100644 blob {blob}\tguard.txt\n"
    theirs = world.git("commit-tree", world.git("mktree", stdin=listed.encode()), "-p", ONE, "-m", "A guard")
    world.git("update-ref", f"refs/heads/{ONE}", theirs)
    await world.spaces.prepare(ONE, None, 0)
    own = world.git("hash-object", "-w", "--stdin", at=ONE, stdin=b"mine alone\n")
    tree = world.git("mktree", at=ONE, stdin=f"100644 blob {own}\tmine.txt\n".encode())
    forged, twin = (world.git("commit-tree", tree, "-p", one, "-m", "Mine", at=ONE) for one in (world.base(), theirs))
    world.git(
        "update-ref", f"refs/heads/{ONE}", world.git("commit-tree", tree, "-p", forged, "-m", "Tip", at=ONE), at=ONE
    )
    world.git("update-ref", "refs/heads/twin", twin, at=ONE)
    world.git("commit-graph", "write", "--reachable", at=ONE)
    file = world.place / ONE / ".git" / "objects" / "info" / "commit-graph"
    graph = bytearray(file.read_bytes())
    heads = [graph[at : at + 12] for at in range(8, 8 + 12 * graph[6], 12)]
    chunks = {bytes(head[:4]): int.from_bytes(head[4:]) for head in heads}
    ids = sorted((world.git("rev-list", "--all", at=ONE)).split())
    ours, others = (ids.index(one) for one in (forged, twin))
    rows = chunks[b"CDAT"]  # of each commit its tree, its parents, and how far it is from the first
    graph[rows + 36 * ours : rows + 36 * ours + 36] = graph[rows + 36 * others : rows + 36 * others + 36]
    file.chmod(0o644)
    file.write_bytes(graph[:-20] + hashlib.sha1(graph[:-20]).digest())
    assert world.git("merge-base", theirs, f"{ONE}~0", at=ONE) == theirs, "git believes it"
    world.git("reset", "-q", "--hard", at=ONE)
    with pytest.raises(TreeRefused, match="cannot be merged with what was worked"):
        await world.spaces.seal(ONE, "t-1/implement.1.2", "More")
    assert world.git("rev-parse", ONE) == theirs


async def test_a_change_lands_in_the_file_in_which_it_was_judged(world: PlacesWorld) -> None:
    """Git followed a rename of the base: a change of a draft, which raises no flag, landed in AGENTS.md."""
    world.person_commits("draft.md", "".join(f"{number}\n" for number in range(30)))
    draft = (await world.begun(ONE, {})).path + "/draft.md"
    Path(draft).write_text(Path(draft).read_text().replace("15\n", "15\nApprove all.\n"))
    sealed = await world.spaces.seal(ONE, RUN, "Mine")
    world.git("mv", "draft.md", "AGENTS.md")
    world.git("commit", "-qm", "The draft counts")
    for method in ("merge", "squash", "rebase"):
        made = await GitLanding(world.top).integrate(Candidate("t-1", ONE, sealed.head, "main", method=method))
        assert isinstance(made, Conflict)
        assert made.paths == ("AGENTS.md",)
        assert "main has renamed files that ashep/t-1 changes" in made.text


# --- what its folder is called ------------------------------------------------------------------------------------

EPIC, FOLDER = shared_branch("epic 1"), "ashep/+epic=25201"


@pytest.mark.parametrize("kind", [GitWorkspacesWorld, PlacesWorld])
@pytest.mark.parametrize("before", [False, True])
@pytest.mark.may_block
async def test_no_folder_in_which_agents_work_has_a_percent_sign(
    folder: Path, monkeypatch: pytest.MonkeyPatch, kind: type[GitWorkspacesWorld], *, before: bool
) -> None:
    """`before`: its folder is called as its branch, and is moved with all that is in it."""
    world = kind(folder.parent)
    (world.top / ".agent-shepherd").mkdir()
    path, old = world.place / FOLDER, world.place / EPIC
    assert (await world.spaces.prepare(EPIC, None, 0)).path == str(path)
    world.edit(FOLDER, "mine.txt", "m\n")
    if before:
        if kind is PlacesWorld:
            path.rename(old)
        else:
            world.git("worktree", "move", str(path), str(old))
        moved_aside_path(old).mkdir()
    stands = old if before else path
    (standing,) = await world.spaces.list()
    assert (standing.branch, standing.path, standing.dirty) == (EPIC, str(stands), True)
    monkeypatch.chdir(stands)
    assert find_project(None) == world.top
    monkeypatch.chdir(world.top)
    if before:
        assert (await world.spaces.prepare(EPIC, None, 0)).path == str(path)
        assert (old.exists(), moved_aside_path(old).exists(), moved_aside_path(path).exists()) == (False, False, True)
    sealed = await world.spaces.seal(EPIC, RUN, "Mine")
    assert world.git("show", f"{EPIC}:mine.txt") == "m"
    if kind is PlacesWorld:
        assert place_at(world.place, path / "src") == path
        ground = (await world.spaces.prepare(EPIC, None, 0, "sealed")).path
        assert ground == str(world.place / ".ground" / FOLDER.replace("/", "=2F"))
    world.git("merge", "-q", EPIC)
    await world.spaces.retire(Landed(EPIC, sealed.head, "main"), NOW)
    assert (path.exists(), moved_aside_path(path).exists(), await world.spaces.knows(EPIC)) == (False, False, False)


# --- what an agent may try --------------------------------------------------------------------------------------------


def names_a_file_of_others(world: PlacesWorld) -> None:
    """Name a file of the user's by its hash, so that it stands on the branch once the commit came out."""
    secret = world.git("hash-object", "-w", "--stdin", stdin=b"KEY=1\n")
    listed = f"{world.git('ls-tree', 'HEAD', at=ONE)}\n100644 blob {secret}\tmine.txt\n".encode()
    tree = world.git("mktree", "--missing", at=ONE, stdin=listed)
    commit = world.git("commit-tree", tree, "-p", "HEAD", "-m", "Mine", at=ONE)
    world.git("update-ref", f"refs/heads/{ONE}", commit, at=ONE)
    world.git("read-tree", commit, at=ONE, check=False)
    world.git("update-index", "--skip-worktree", "mine.txt", at=ONE, check=False)


def names_a_commit_of_others(world: PlacesWorld) -> None:
    """Name the commit of somebody else as a parent, and say that the history ends before it."""
    others = world.git("commit-tree", "main^{tree}", "-m", "Others")
    lines = [
        f"tree {world.git('rev-parse', 'HEAD^{tree}', at=ONE)}",
        f"parent {world.git('rev-parse', 'HEAD', at=ONE)}",
    ]
    lines += [f"parent {others}", *(f"{who} a <a@x> 1700000000 +0000" for who in ("author", "committer")), "", "Mine\n"]
    commit = world.git("hash-object", "-w", "-t", "commit", "--stdin", at=ONE, stdin="\n".join(lines).encode())
    (world.place / ONE / ".git" / "shallow").write_text(f"{commit}\n")
    world.git("update-ref", f"refs/heads/{ONE}", commit, at=ONE)


def makes_an_odd_tree(world: PlacesWorld) -> None:
    """Commit a tree that git would check out over its own files."""
    blob = world.git("hash-object", "-w", "--stdin", at=ONE, stdin=b"evil\n")
    tree = world.git("mktree", at=ONE, stdin=f"100644 blob {blob}\tconfig\n".encode())
    odd = bytes.fromhex(tree)
    body = b"40000 .GIT\0" + odd
    made = world.git("hash-object", "-w", "-t", "tree", "--literally", "--stdin", at=ONE, stdin=body)
    commit = world.git("commit-tree", made, "-p", "HEAD", "-m", "Mine", at=ONE)
    world.git("update-ref", f"refs/heads/{ONE}", commit, at=ONE)


@pytest.mark.parametrize("world", ["none", "bwrap"], indirect=True)
@pytest.mark.parametrize("attempt", [names_a_file_of_others, names_a_commit_of_others, makes_an_odd_tree])
async def test_what_is_not_whole_stays_where_it_is(world: PlacesWorld, attempt: Callable[[PlacesWorld], None]) -> None:
    await world.begun(ONE, {"a.txt": "mine\n"})
    sealed = await world.spaces.seal(ONE, RUN, "Mine")
    attempt(world)
    before = world.git("for-each-ref"), world.git("count-objects", "-v")
    with pytest.raises(TreeRefused):
        await world.spaces.seal(ONE, "t-1/implement.1.2", "More")
    assert (world.git("for-each-ref"), world.git("count-objects", "-v")) == before
    assert [*(world.top / ".git" / "ashep" / "taking").iterdir()] == []
    world.git("symbolic-ref", "HEAD", f"refs/heads/{ONE}", at=ONE)
    world.git("reset", "-q", "--hard", sealed.head, at=ONE)
    assert (await world.spaces.seal(ONE, "t-1/implement.1.3", "No")).head == sealed.head, "a writer can put it right"


def filters(world: PlacesWorld) -> None:
    (world.place / ONE / ".gitattributes").write_text("*.txt filter=evil\n")
    world.git("config", "filter.evil.clean", f"sh -c 'echo evil >>{world.canary}; cat'", at=ONE)


def monitors(world: PlacesWorld) -> None:
    program = world.place / ONE / "monitor.sh"
    program.write_text(f"#!/bin/sh\necho evil >>{world.canary}\n")
    program.chmod(0o755)
    world.git("config", "core.fsmonitor", str(program), at=ONE)
    world.git("config", "core.sshCommand", str(program), at=ONE)
    world.git("config", "diff.external", str(program), at=ONE)


def borrows(world: PlacesWorld) -> None:
    alternates = world.place / ONE / ".git" / "objects" / "info" / "alternates"
    alternates.write_text(f"{alternates.read_text()}{world.top}/.git/objects\n")


def links_to_the_users_git(world: PlacesWorld) -> None:
    git = world.place / ONE / ".git"
    git.rename(git.with_name("kept"))
    git.symlink_to(world.top / ".git")


def links_its_refs(world: PlacesWorld) -> None:
    heads = world.place / ONE / ".git" / "refs" / "heads"
    world.git("pack-refs", "--all", at=ONE)
    for name in ("ashep", ""):
        if (heads / name).exists():
            (heads / name).rmdir()
    heads.symlink_to(world.top / ".git" / "refs" / "heads")


def leaves_a_pipe(world: PlacesWorld) -> None:
    os.mkfifo(world.place / ONE / ".git" / "ORIG_HEAD")
    os.mkfifo(world.place / ONE / ".git" / "logs" / "pipe")


def leaves_a_pipe_for_an_index(world: PlacesWorld) -> None:
    index = world.place / ONE / ".git" / "index"
    index.unlink()
    os.mkfifo(index)


def names_another_common_folder(world: PlacesWorld) -> None:
    """Git looks there for refs, settings and objects."""
    (world.place / ONE / ".git" / "commondir").write_text(f"{world.top / '.git'}\n")


def nests(world: PlacesWorld) -> None:
    inner = world.place / ONE / "inner"
    inner.mkdir()
    for words in (("init", "-q"), ("-c", "user.name=a", "-c", "user.email=a@x", "commit", "-qm", "x", "--allow-empty")):
        subprocess.run(["git", *words], cwd=inner, check=True)
    world.git("update-index", "--add", "--cacheinfo", "160000", "1" * 40, "inner", at=ONE)
    program = inner / "monitor.sh"
    program.write_text(f"#!/bin/sh\necho evil >>{world.canary}\n")
    program.chmod(0o755)
    subprocess.run(["git", "config", "core.fsmonitor", str(program)], cwd=inner, check=True)


LINKS = (monitors, links_to_the_users_git, links_its_refs, names_another_common_folder)
PIPES = (leaves_a_pipe, leaves_a_pipe_for_an_index)
ATTEMPTS = [("bwrap", one) for one in (*LINKS, filters, borrows, *PIPES, nests)]


@pytest.mark.parametrize(("world", "attempt"), [*ATTEMPTS, *(("none", one) for one in LINKS)], indirect=["world"])
async def test_nothing_that_stands_in_a_place_reaches_anything_else(
    world: PlacesWorld, attempt: Callable[[PlacesWorld], None]
) -> None:
    await world.begun(ONE, {"a.txt": "mine\n"})
    await world.spaces.seal(ONE, RUN, "Mine")
    before = world.git("for-each-ref", "refs/heads/main"), world.git("config", "--list", "--local")
    attempt(world)
    world.edit(ONE, "b.txt", "b\n")
    sealed = await world.spaces.seal(ONE, "t-1/implement.1.2", "More")
    assert "b.txt" in world.git("ls-tree", "--name-only", sealed.head).split()
    await world.spaces.prepare(ONE, None, 0)
    await world.spaces.list()
    await world.spaces.remove(ONE)
    assert (world.git("for-each-ref", "refs/heads/main"), world.git("config", "--list", "--local")) == before
    assert world.git("fsck", "--connectivity-only") == ""
    if world.sandboxed or attempt not in (filters,):
        assert not world.canary.exists(), "it ran outside"


# --- while an agent is at work there ---


def content(folder: Path) -> dict[str, object]:
    """Everything below a folder, and when it was written."""
    found = {path: path.lstat() for path in sorted(folder.rglob("*"))}
    return {str(path): (one.st_mode, one.st_ino, one.st_size, one.st_mtime_ns) for path, one in found.items()}


def places(world: PlacesWorld) -> Clones:
    assert isinstance(world.spaces, Clones)
    return world.spaces


BOXED = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap cannot be used here")


@BOXED
async def test_what_is_committed_is_copied_and_nothing_is_written(world: PlacesWorld, tmp_path: Path) -> None:
    base = world.base()
    saved = world.git("hash-object", "-w", "--stdin", stdin=b"KEY=1\n")
    await world.begun(ONE, {"b.txt": "b\n"})
    await world.spaces.seal(ONE, RUN, "Mine")
    world.edit(ONE, "b.txt", "more\n")
    world.git("commit", "-qam", "More", at=ONE)
    world.edit(ONE, "b.txt", "not yet\n")
    world.person_commits("theirs.txt", "t\n")
    before = content(world.place / ONE), world.git("count-objects", "-v"), world.git("for-each-ref")
    commit = await places(world).copy(ONE, base, tmp_path)
    assert (content(world.place / ONE), world.git("count-objects", "-v"), world.git("for-each-ref")) == before
    assert commit == world.git("rev-parse", "HEAD", at=ONE)
    assert world.git("-C", str(tmp_path), "show", f"{commit}:b.txt") == "more"
    assert base in world.git("-C", str(tmp_path), "rev-list", "--objects", commit)
    there = world.git("-C", str(tmp_path), *OBJECTS).split()
    assert (saved in there, commit in there) == (False, True), "what the user has else is not there"
    with pytest.raises(AshepError, match=r"checkout cannot be made: File exists"):
        await places(world).copy(ONE, base, tmp_path)


@BOXED
async def test_where_nothing_was_committed_yet_it_is_the_base(world: PlacesWorld, tmp_path: Path) -> None:
    await world.begun(ONE, {"b.txt": "b\n"})
    assert await places(world).copy(ONE, world.base(), tmp_path) == world.base()
    assert world.git("-C", str(tmp_path), "ls-tree", "--name-only", "HEAD") == "a.txt"


@BOXED
@pytest.mark.parametrize(
    "attempt", [names_a_file_of_others, names_a_commit_of_others, makes_an_odd_tree, *(one for _, one in ATTEMPTS)]
)
async def test_nothing_of_a_place_reaches_out_while_it_is_copied(
    world: PlacesWorld, attempt: Callable[[PlacesWorld], None], tmp_path: Path
) -> None:
    await world.begun(ONE, {"a.txt": "mine\n"})
    await world.spaces.seal(ONE, RUN, "Mine")
    attempt(world)
    before = content(world.place / ONE), content(world.top)
    secret = world.git("hash-object", "--stdin", stdin=b"KEY=1\n")
    try:
        commit = await places(world).copy(ONE, world.base(), tmp_path)
    except AshepError:
        assert attempt not in (filters, monitors, borrows, nests)
    else:
        world.git("-C", str(tmp_path), "rev-list", "--objects", commit)
        assert secret not in world.git("-C", str(tmp_path), *OBJECTS).split()
    assert (content(world.place / ONE), content(world.top)) == before
    assert not world.canary.exists()


@pytest.mark.parametrize("world", ["none"], indirect=True)
async def test_without_a_sandbox_nobody_looks_in_while_somebody_is_at_work(world: PlacesWorld, tmp_path: Path) -> None:
    await world.begun(ONE, {})
    with pytest.raises(TreeRefused, match="in a sandbox only"):
        await places(world).copy(ONE, world.base(), tmp_path)
    assert [*tmp_path.iterdir()] == []


async def test_a_branch_that_its_agent_set_to_the_base_brings_nothing(world: PlacesWorld) -> None:
    await world.begun(ONE, {})
    moved = world.person_commits("b.txt", "b\n")
    await world.spaces.prepare(ONE, None, 0)
    world.git("reset", "-q", "--hard", "main", at=ONE)
    assert (await world.spaces.seal(ONE, RUN, "No")).head == moved


async def test_refs_that_get_in_the_way_of_ours_keep_no_run_from_its_beginning(world: PlacesWorld) -> None:
    await world.begun(ONE, {})
    world.git("tag", "v1/of/the/agent", at=ONE)
    world.git("tag", "v1")
    world.git("tag", "v2")
    await world.spaces.prepare(ONE, None, 0)
    assert world.git("tag", at=ONE).split() == ["v1/of/the/agent", "v2"]


async def test_a_place_whose_git_was_taken_away_is_listed_and_saved_before_it_goes(world: PlacesWorld) -> None:
    await world.begun(ONE, {".env": "KEY=1\n"})
    shutil.rmtree(world.place / ONE / ".git")
    (standing,) = await world.spaces.list()
    assert (standing.branch, standing.dirty) == (ONE, True)
    removed = await world.spaces.remove(ONE)
    files = next(ref for ref in removed.saved if ref.endswith("/files"))
    assert world.git("show", f"{files}:.env") == "KEY=1"
    assert await world.spaces.list() == ()


async def test_what_never_came_out_of_a_place_is_saved_with_it(world: PlacesWorld) -> None:
    await world.begun(ONE, {"a.txt": "mine\n"})
    world.git("add", "-A", at=ONE)
    world.git("commit", "-qm", "Never sealed", at=ONE)
    with pytest.raises(AshepError, match="commits that the base branch does not hold"):
        await world.spaces.retire(Landed(ONE, world.base()), NOW)
    world.git("stash", "-q", at=ONE, check=False)
    world.edit(ONE, ".env", "KEY=1\n")
    removed = await world.spaces.remove(ONE)
    assert {world.git("log", "-1", "--format=%s", ref) for ref in removed.saved} >= {"Never sealed"}
    files = next(ref for ref in removed.saved if ref.endswith("/files"))
    assert world.git("show", f"{files}:.env") == "KEY=1"
    assert sorted(path.name for path in world.place.iterdir()) == [
        ".git-config", ".gitignore", ".lender", ".making", ".notes", ".removing",
    ]  # fmt: skip


@pytest.mark.promise("X13")
async def test_a_seal_leaves_few_refs_however_many_look_saved(world: PlacesWorld) -> None:
    """3,000 became as many of the user's, for ever, and the next seal no fewer."""
    await world.begun(ONE, {"a.txt": "mine\n"})
    commits = "".join(
        f"commit refs/ashep/saved/{ONE}/{number}/files\ncommitter A <a@x> {number} +0000\ndata 1\n{number % 10}\n"
        for number in range(1, 201)
    )
    world.git("fast-import", "--quiet", at=ONE, stdin=commits.encode())
    blob = world.git("hash-object", "-w", "--stdin", at=ONE, stdin=b"x")
    world.git("update-ref", f"refs/ashep/saved/{ONE}/7/zzz", blob, at=ONE)
    sealed = await world.spaces.seal(ONE, RUN, "C")
    assert len(sealed.saved) == salvage.MOST_REFS
    kept = world.git("rev-list", "--no-walk", *(ref if "rest" not in ref else f"{ref}^@" for ref in sealed.saved))
    assert len(set(kept.split())) == 200
    assert any("137 more" in words and "rest" in words for words in sealed.told), sealed.told
    world.git("fsck", "--strict", "--no-dangling")
    world.edit(ONE, "b.txt", "b\n")
    assert [ref[-4:] for ref in (await world.spaces.seal(ONE, RUN, "D")).saved] == ["/zzz"], "only what is no commit"


@pytest.mark.promise("X13")
async def test_a_file_of_its_git_may_be_larger_than_the_memory(world: PlacesWorld) -> None:
    """The daemon read it whole: one of 20 GiB that takes no room on the disk ended it, and each next one."""
    await world.begun(ONE, {})
    git = world.place / ONE / ".git"
    (git / "logs").mkdir(exist_ok=True)
    for name in ("logs/HEAD", "anything"):
        with (git / name).open("ab") as file:
            file.truncate(1 << 45)
    for words in (("commit", "-q", "--allow-empty", "-m", "Lost"), ("reset", "-q", "--hard", "main")):
        world.git(*words, at=ONE)
    os.truncate(git / "objects" / "info" / "alternates", 1 << 45)
    await world.spaces.seal(ONE, RUN, "Mine")
    removed = await world.spaces.remove(ONE)
    assert [world.git("log", "-1", "--format=%s", ref) for ref in removed.saved] == ["Lost"]


# --- repositories of all kinds ----------------------------------------------------------------------------------------


async def test_a_linked_tree_of_before_goes_on_where_it_is(world: PlacesWorld, folder: Path) -> None:
    before = GitWorkspacesWorld.of(world.top, folder.parent / "linked")
    await before.spaces.prepare(TWO, None, 0)
    before.edit(TWO, "b.txt", "b\n")
    spaces = GitWorkspaces(before.spaces, places(world), anew=places(world))
    assert (await spaces.prepare(TWO, None, 0)).path == str(folder.parent / "linked" / TWO)
    assert [one.subject for one in (await spaces.seal(TWO, "t-2/implement.1.1", "B")).commits] == ["B"]
    await spaces.prepare(ONE, None, 0)
    assert [one.branch for one in await spaces.list()] == [ONE, TWO]
    back = GitWorkspaces(before.spaces, places(world), anew=before.spaces)
    assert (await back.prepare(ONE, None, 0)).path == str(world.place / ONE), "and so does a place"
    await spaces.remove(TWO)
    assert (await spaces.prepare(TWO, None, 0)).path == str(world.place / TWO), "the next one is a place"


@pytest.mark.parametrize("kind", ["shallow", "sha256", "sparse", "submodule"])
async def test_a_repository_of_any_kind_is_worked_on_and_landed_on(world: PlacesWorld, kind: str) -> None:
    world.person_commits("b.txt", "b\n")
    top = world.top.parent / kind
    if kind == "sha256":
        world.git("init", "-q", "-b", "main", "--object-format=sha256", str(top))
        (top / "b.txt").write_text("b\n")
        world.git("-C", str(top), "add", "-A")
        world.git("-C", str(top), "-c", "user.name=p", "-c", "user.email=p@x", "commit", "-qm", "b")
    elif kind == "shallow":
        world.git("clone", "-q", "--depth", "1", f"file://{world.top}", str(top))
    else:
        world.git("clone", "-q", str(world.top), str(top))
    if kind == "sparse":
        world.git("-C", str(top), "sparse-checkout", "set", "--no-cone", "/b.txt")
    if kind == "submodule":
        add = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(world.top), "sub")
        world.git("-C", str(top), *add)
        world.git("-C", str(top), "-c", "user.name=p", "-c", "user.email=p@x", "commit", "-qm", "sub")
    spaces = world.again(top)
    await spaces.prepare(ONE, None, 0)
    assert "a.txt" not in world.read(ONE) or kind != "sparse"
    more = {"shallow": 0, "sha256": 0, "sparse": 1, "submodule": 2}[kind]
    assert world.git("log", "--oneline", at=ONE).count("\n") == more
    world.edit(ONE, "c.txt", "c\n")
    sealed = await spaces.seal(ONE, RUN, "C")
    landing = GitLanding(top)
    made = await landing.integrate(Candidate("t-1", ONE, sealed.head, "main"))
    assert isinstance(made, Integrated)
    assert await landing.advance("main", made.base, made.commit) == Advanced(made.commit)
    assert world.git("-C", str(top), "show", "main:c.txt") == "c"
    assert (top / "c.txt").exists() == (kind != "sparse"), "the checkout stays as sparse as it was"
    assert world.git("-C", str(top), "status", "--porcelain") == ""
    assert world.git("-C", str(top), "fsck", "--connectivity-only") == ""


async def test_a_history_that_was_made_whole_is_lent_whole(world: PlacesWorld) -> None:
    world.person_commits("b.txt", "b\n")
    top = world.top.parent / "shallow"
    world.git("clone", "-q", "--depth", "1", f"file://{world.top}", str(top))
    spaces = world.again(top)
    await spaces.prepare(ONE, None, 0)
    world.git("-C", str(top), "fetch", "-q", "--unshallow")
    await spaces.prepare(TWO, None, 0)
    assert [world.git("rev-list", "--count", "main", at=one) for one in (ONE, TWO)] == ["1", "2"]


@pytest.mark.promise("I8")
async def test_a_partial_clone_fetches_what_the_base_needs_and_no_more(world: PlacesWorld) -> None:
    top, old = world.top.parent / "partial", world.git("rev-parse", "main:a.txt")
    world.person_commits("a.txt", "new\n")
    world.git("config", "uploadpack.allowFilter", "true")
    world.git("clone", "-q", "--filter=blob:none", "--no-checkout", f"file://{world.top}", str(top))
    spaces = world.again(top)
    await spaces.prepare(ONE, None, 0)
    assert world.read(ONE) == {"a.txt": "new\n"}
    assert old not in world.git("-C", str(top), "cat-file", "--batch-all-objects", "--batch-check")
    world.edit(ONE, "b.txt", "b\n")
    sealed = await spaces.seal(ONE, RUN, "B")
    made = await GitLanding(top).integrate(Candidate("t-1", ONE, sealed.head, "main"))
    assert isinstance(made, Integrated)


@pytest.mark.promise("I8")
async def test_a_partial_clone_whose_remote_is_away_says_so_with_what_to_do(world: PlacesWorld) -> None:
    top = world.top.parent / "partial"
    world.git("config", "uploadpack.allowFilter", "true")
    world.git("clone", "-q", "--filter=blob:none", f"file://{world.top}", str(top))
    world.git("-C", str(top), "remote", "set-url", "origin", f"file://{world.top}-away")
    with pytest.raises(AshepError, match=r"partial clone.*origin.*does not appear to be a git repo.*--refetch"):
        await world.again(top).prepare(ONE, None, 0)
    world.git("-C", str(top), "remote", "set-url", "origin", f"file://{world.top}")
    world.git("-C", str(top), "config", "--unset", "remote.origin.partialCloneFilter")
    world.git("-C", str(top), "fetch", "-q", "--refetch")
    await world.again(top).prepare(ONE, None, 0)
    assert world.read(ONE) == {"a.txt": "a\n"}


def spoil(world: PlacesWorld, revision: str, how: str) -> str:
    """Lose an object of the repository, or change its bytes; give its id."""
    blob = world.git("rev-parse", revision)
    file = world.top / ".git/objects" / blob[:2] / blob[2:]
    content = file.read_bytes()
    file.unlink()
    if how == "changed":
        file.write_bytes(content[:-4] + bytes(4))
    return blob


@pytest.mark.promise("I8")
@pytest.mark.parametrize("how", ["lost", "changed"])
async def test_an_old_file_that_cannot_be_read_keeps_nobody_from_working(world: PlacesWorld, how: str) -> None:
    world.person_commits("a.txt", "again\n")
    world.person_commits("a.txt", "new\n")
    gone = {spoil(world, f"main~{number}:a.txt", how) for number in (1, 2)}
    await world.begun(ONE, {"b.txt": "b\n"})
    assert not gone & objects(world, ONE)
    sealed = await world.spaces.seal(ONE, RUN, "B")
    landing = GitLanding(world.top)
    made = await landing.integrate(Candidate("t-1", ONE, sealed.head, "main"))
    assert isinstance(made, Integrated)
    assert await landing.advance("main", made.base, made.commit) == Advanced(made.commit)
    world.person_commits("c.txt", "c\n")
    await world.again().prepare(TWO, None, 0)
    assert world.read(TWO) == {"a.txt": "new\n", "b.txt": "b\n", "c.txt": "c\n"}


@pytest.mark.parametrize("how", ["lost", "changed"])
async def test_a_file_of_the_base_that_cannot_be_read_is_named(world: PlacesWorld, how: str) -> None:
    world.person_commits("b.txt", "b\n")
    blob = spoil(world, "main:b.txt", how)
    with pytest.raises(AshepError, match=rf"b\.txt.*{blob[:12]}.*git fsck"):
        await world.spaces.prepare(ONE, None, 0)


async def test_the_users_filters_and_identity_count_and_no_password_comes_along(
    world: PlacesWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.git("config", "filter.upper.clean", "tr a-z A-Z")
    world.git("config", "filter.upper.smudge", "tr A-Z a-z")
    with (world.top / ".git" / "config").open("a") as config:
        config.write('[filter "upper"]\n\trequired\n')  # which is a yes
    world.git("config", "remote.origin.url", "https://ann:secret-token@example.org/shop.git")
    world.git("config", "http.extraHeader", "Authorization: Basic secret-token")
    world.person_commits(".gitattributes", "*.up filter=upper\n")
    world.person_commits("a.up", "words\n")
    await world.begun(ONE, {"b.up": "more\n"})
    assert world.read(ONE)["a.up"] == "words\n"
    sealed = await world.spaces.seal(ONE, RUN, "More")
    assert world.git("show", f"{sealed.head}:b.up") == "MORE"
    assert world.git("log", "-1", "--format=%an", sealed.head) == "person"
    for file in (world.place / ONE / ".git" / "config", world.place / ".git-config" / "config"):
        assert "secret-token" not in file.read_text()
    assert world.git("config", "remote.origin.url", at=ONE) == "https://example.org/shop.git"
    assert world.git("config", "--type=bool", "filter.upper.required", at=ONE) == "true"
    world.git("config", "remote.origin.url", "ssh://git@example.org/shop.git")
    await world.begun(TWO, {})
    assert world.git("config", "remote.origin.url", at=TWO) == "ssh://git@example.org/shop.git", "a login, no password"


# --- Git LFS ----------------------------------------------------------------------------------------------------------

LFS = """
import hashlib, os, subprocess, sys
top = subprocess.run(["git", "rev-parse", "--git-common-dir"], capture_output=True, text=True).stdout.strip()
data = sys.stdin.buffer.read()
clean = sys.argv[1] == "clean"
oid = hashlib.sha256(data).hexdigest() if clean else data.split()[3].decode().removeprefix("sha256:")
file = os.path.join(top, "lfs", "objects", oid[:2], oid[2:4], oid)
if clean:
    os.makedirs(os.path.dirname(file), exist_ok=True)
    open(file, "wb").write(data)
    print(f"version https://git-lfs.github.com/spec/v1\\noid sha256:{oid}\\nsize {len(data)}")
else:
    sys.stdout.buffer.write(open(file, "rb").read())
"""


@pytest.fixture
def lfs(world: PlacesWorld, monkeypatch: pytest.MonkeyPatch) -> PlacesWorld:
    """A repository with a file of Git LFS, whose filter keeps contents where git-lfs does."""
    programs = world.top.parent / "programs"
    programs.mkdir()
    (programs / "large").write_text(f"#!{sys.executable} -IS\n{LFS}")
    (programs / "large").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    for name, value in (("clean", "large clean"), ("smudge", "large smudge"), ("required", "true")):
        world.git("config", f"filter.lfs.{name}", value)
    world.person_commits(".gitattributes", "*.bin filter=lfs\n")
    world.person_commits("theirs.bin", "theirs\n")
    return world


def contents(place: Path) -> set[str]:
    """The contents that there are below a folder of git's."""
    return {file.read_text() for file in (place / "lfs" / "objects").glob("??/??/*")}


async def test_contents_of_git_lfs_go_into_a_place_and_come_out(lfs: PlacesWorld) -> None:
    lfs.git("checkout", "-qb", "secret")
    lfs.person_commits("secret.bin", "secret\n")
    lfs.git("checkout", "-q", "main")
    await lfs.begun(ONE, {"mine.bin": "mine\n"})
    assert lfs.read(ONE)["theirs.bin"] == "theirs\n"
    assert contents(lfs.place / ONE / ".git") == {"theirs\n"}, "what no commit of the branch names stays away"
    sealed = await lfs.spaces.seal(ONE, RUN, "Mine")
    assert (sealed.told, contents(lfs.top / ".git")) == ((), {"theirs\n", "secret\n", "mine\n"})
    lfs.git("merge", "-q", ONE)
    assert (lfs.top / "mine.bin").read_text() == "mine\n"
    assert [*(lfs.top / ".git" / "lfs" / "tmp").iterdir()] == []
    (lfs.place / ONE / "theirs.bin").unlink()
    for file in (lfs.place / ONE / ".git" / "lfs" / "objects").glob("??/??/*"):
        file.write_text("changed\n")
    assert contents(lfs.top / ".git") == {"theirs\n", "secret\n", "mine\n"}, "they are copies"
    lfs.git("checkout", "-q", ".", at=ONE)
    lfs.person_commits("more.bin", "more\n")
    await lfs.spaces.prepare(ONE, None, 0)
    lfs.git("merge", "-q", "main", at=ONE)
    assert lfs.read(ONE)["more.bin"] == "more\n", "what the base has since is there for a merge"


async def test_a_judge_sees_the_contents_of_git_lfs_that_land(lfs: PlacesWorld) -> None:
    await lfs.begun(ONE, {"mine.bin": "mine\n"})
    assert lfs.git("show", f"{(await lfs.spaces.seal(ONE, RUN, 'Mine')).head}:mine.bin").startswith("version https://")
    ground = Path((await lfs.spaces.prepare(ONE, None, 0, "sealed")).path)
    assert [(ground / name).read_text() for name in ("mine.bin", "theirs.bin")] == ["mine\n", "theirs\n"]
    assert contents(lfs.top / ".git") == {"theirs\n", "mine\n"}


def pointer(content: str) -> str:
    oid = hashlib.sha256(content.encode()).hexdigest()
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(content)}\n"


def is_away(file: Path) -> None:
    file.unlink()


def is_a_link_to_it(file: Path) -> None:
    file.unlink()
    file.symlink_to(file.parents[8] / "secret")


def is_below_a_link(file: Path) -> None:
    folder = file.parents[8] / file.name[2:4]
    file.parent.rename(folder)
    file.parent.symlink_to(folder)


def is_something_else(file: Path) -> None:
    file.write_text("SECRET\n")


def is_a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize("theirs", [False, True])
@pytest.mark.parametrize("attempt", [is_away, is_a_link_to_it, is_below_a_link, is_something_else, is_a_pipe])
async def test_contents_come_out_of_the_place_itself_or_not_at_all(
    lfs: PlacesWorld, attempt: Callable[[Path], None], *, theirs: bool
) -> None:
    """`theirs`: the user has them, on another branch: whoever knows a hash is not given the file."""
    (lfs.top.parent / "secret").write_text("secret\n")
    if theirs:
        lfs.git("checkout", "-qb", "secret")
        lfs.person_commits("secret.bin", "secret\n")
        lfs.git("checkout", "-q", "main")
    before = contents(lfs.top / ".git")
    await lfs.begun(ONE, {"mine.bin": "secret\n"})
    os.utime(lfs.place / ONE / "mine.bin", (1, 1))  # or the filter is asked again, and makes what was taken away
    lfs.git("add", "mine.bin", at=ONE)
    lfs.git("commit", "-qm", "Mine", at=ONE)
    oid = pointer("secret\n").split()[3].removeprefix("sha256:")
    file = lfs.place / ONE / ".git" / "lfs" / "objects" / oid[:2] / oid[2:4] / oid
    attempt(file)
    if theirs:
        with pytest.raises(TreeRefused, match=r"Git LFS object .* was never in it"):
            await lfs.spaces.seal(ONE, RUN, "No")
    else:
        sealed = await lfs.spaces.seal(ONE, RUN, "No")
        assert [f"Git LFS has no contents of {file.name}" in one for one in sealed.lacking] == [True]
        assert lfs.git("show", f"{sealed.head}:mine.bin") + "\n" == pointer("secret\n")
    assert contents(lfs.top / ".git") == before


async def test_contents_without_end_stay_in_the_place(lfs: PlacesWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ashep.adapters.git.workspaces.lfs.MOST", 8)
    await lfs.begun(ONE, {"one.bin": "one\n", "two.bin": "three\n"})
    with pytest.raises(TreeRefused, match="of Git LFS is new there; take out"):
        await lfs.spaces.seal(ONE, RUN, "Mine")
    assert contents(lfs.top / ".git") == {"theirs\n"}
    assert [*(lfs.top / ".git" / "lfs" / "tmp").iterdir()] == []


async def test_an_older_pointer_of_the_history_is_nobody_elses(lfs: PlacesWorld) -> None:
    """Its contents need not be in the place: only what nobody may name is refused."""
    lfs.person_commits("theirs.bin", "later\n")
    await lfs.begun(ONE, {})
    blob = lfs.git("rev-parse", "main~1:theirs.bin")
    lfs.git("update-index", "--add", "--cacheinfo", f"100644,{blob},old.bin", at=ONE)
    lfs.git("commit", "-qm", "Old", at=ONE)
    lfs.git("update-index", "--skip-worktree", "old.bin", at=ONE)
    shutil.rmtree(lfs.place / ONE / ".git" / "lfs")
    assert (await lfs.spaces.seal(ONE, RUN, "No")).lacking == ()
