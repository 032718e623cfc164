"""`ashep trees`: what stands, where, what it costs, and what goes."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import pytest

from ashep.adapters.git.workspaces.linked import Worktrees
from ashep.adapters.system import control_socket
from ashep.cli import main
from ashep.config.starter import write_starter
from ashep.core.facts.delivery import WorkLanded
from ashep.core.facts.issues import CycleBegan, IssueTaken
from ashep.core.facts.records import Entry
from ashep.core.facts.tracker import IssueSeen
from ashep.core.facts.vocabulary import Fact
from ashep.journal.lock import Lock
from ashep.journal.reader import journal_files
from ashep.journal.writer import Journal, Sizes
from tests.conformance.workspaces import GitWorkspacesWorld
from tests.core.given import issue as an_issue
from tests.golden.story import T0
from tests.recorded import Recorded, draw

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def world(folder: Path, git_alone: None) -> GitWorkspacesWorld:
    """Give a project that is set up, with a commit."""
    made = GitWorkspacesWorld(folder.parent / "all")
    write_starter(made.top / ".agent-shepherd")
    (made.top / ".agent-shepherd/config.yaml").write_text("version: 1\nworker: {workspace: worktree}\n")
    made.person_commits("c.txt", "c\n")
    made.place = made.top / ".agent-shepherd" / "state" / "trees"
    made.spaces = Worktrees(made.top, made.place)
    return made


@pytest.fixture
def ashep(world: GitWorkspacesWorld, capsys: pytest.CaptureFixture[str]) -> Call:
    """Run `ashep trees …` in the project; gives exit code and what was printed."""

    def call(*words: str) -> tuple[int, str, str]:
        code = main(["-C", str(world.top), "trees", *words])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


def prepare(world: GitWorkspacesWorld, *issues: str) -> None:
    for issue in issues:
        anyio.run(world.spaces.prepare, f"ashep/{issue}", None, 0)


def test_without_trees_there_is_nothing_to_list(ashep: Call) -> None:
    code, out, err = ashep()
    assert (code, out) == (0, "")
    assert "no work trees" in err
    assert json.loads(ashep("list", "--json")[1]) == {"trees": [], "bytes": 0}


def test_trees_are_listed_with_what_they_cost(world: GitWorkspacesWorld, ashep: Call) -> None:
    prepare(world, "t-1", "t-2")
    world.edit("ashep/t-2", "big", "x" * 3_000_000)
    code, out, _ = ashep("list")
    assert code == 0
    one, two = (line.split() for line in out.splitlines()[1:3])
    assert (one[0], one[-1], "merged" in one) == ("ashep/t-1", str(world.place / "ashep/t-1"), True)
    assert two[0] == "ashep/t-2"
    assert any("uncommitted" in word for word in two)
    assert 2.8 < float(two[1]) < 3.5
    told = json.loads(ashep("--json")[1])
    assert [tree["issue"] for tree in told["trees"]] == ["t-1", "t-2"]
    assert told["bytes"] == sum(tree["bytes"] for tree in told["trees"])


def test_open_prints_a_path_and_makes_a_tree_that_was_taken_away(world: GitWorkspacesWorld, ashep: Call) -> None:
    code, _, err = ashep("open", "t-1")
    assert code == 1
    assert "no branch ashep/t-1" in err
    prepare(world, "t-1")
    path = str(world.place / "ashep/t-1")
    assert ashep("open", "t-1")[:2] == (0, f"{path}\n")
    assert ashep("remove", "t-1")[0] == 0
    assert not Path(path).exists()
    assert ashep("open", "ashep/t-1")[:2] == (0, f"{path}\n")
    assert Path(path, "c.txt").read_text() == "c\n"


def test_remove_says_what_it_would_do_and_what_it_saved(world: GitWorkspacesWorld, ashep: Call) -> None:
    prepare(world, "t-1")
    world.edit("ashep/t-1", "new.txt", "bytes that are nowhere else\n")
    code, out, _ = ashep("remove", "t-1", "--dry-run")
    assert code == 0
    assert "would be removed" in out
    assert "refs/ashep/saved/ashep/t-1" in out
    assert world.git("for-each-ref", "refs/ashep/saved") == ""
    told = json.loads(ashep("remove", "t-1", "--json")[1])
    assert told["saved"] == ["refs/ashep/saved/ashep/t-1/1/files"]
    assert world.git("show", f"{told['saved'][0]}:new.txt") == "bytes that are nowhere else"
    code, _, err = ashep("remove", "t-1")
    assert code == 1
    assert "no work tree" in err


def test_ignored_files_beyond_the_limit_are_a_persons_decision(
    world: GitWorkspacesWorld, ashep: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ashep.adapters.git.workspaces.salvage.MOST_IGNORED", 1000)
    prepare(world, "t-1")
    world.edit("ashep/t-1", ".gitignore", "built/\n")
    world.edit("ashep/t-1", "built/a", "x" * 2000)
    code, _, err = ashep("remove", "t-1")
    assert code == 1
    assert "built" in err
    assert "--drop-ignored" in err
    assert world.read("ashep/t-1")["built/a"] == "x" * 2000
    assert ashep("remove", "t-1", "--drop-ignored")[0] == 0


@pytest.fixture
def daemon(world: GitWorkspacesWorld) -> Iterator[list[str]]:
    """Hold the project as a daemon does, and answer which runs are under way: those in the list."""
    state, runs = world.top / ".agent-shepherd" / "state", list[str]()

    async def answer(_: bytes) -> dict[str, Any]:
        return {"runs": runs, "pauses": [], "paused": False}

    listens = threading.Event()
    with Lock.acquire(state, datetime.now(UTC)), anyio.from_thread.start_blocking_portal() as portal:
        serving = portal.start_task_soon(partial(control_socket.serve, state, {}, answer, print))
        while not (state / control_socket.LINK).is_symlink():
            listens.wait(0.01)
        yield runs
        serving.cancel()


@pytest.mark.promise("I4")
def test_a_tree_in_which_a_run_is_under_way_stays(world: GitWorkspacesWorld, ashep: Call, daemon: list[str]) -> None:
    prepare(world, "t-1", "t-11")
    daemon.append("t-1/implement.1.1")
    for words in (["remove", "t-1"], ["remove", "t-1", "--dry-run"]):
        code, _, err = ashep(*words)
        assert code == 1
        assert "t-1/implement.1.1 is under way" in err
    assert (world.place / "ashep/t-1").is_dir()
    assert ashep("remove", "t-11")[0] == 0, "another issue's tree"
    daemon.clear()
    assert ashep("remove", "t-1")[0] == 0


def closed_by_a_person(state: Path, *issues: str, facts: Sequence[Fact] = ()) -> None:
    made = Recorded(state)
    made.begin()
    for issue in issues:
        made.open(issue)
    made.live(3)
    made.turn(*facts)
    for issue in issues:
        made.change(issue, "ann", status="closed")
    made.live(10)
    draw(state, made.journal)
    made.journal.close()


@pytest.mark.promise("I4")
@pytest.mark.slow
def test_gc_takes_what_is_closed_and_merged(world: GitWorkspacesWorld, ashep: Call) -> None:
    state = world.top / ".agent-shepherd" / "state"
    closed_by_a_person(state, "t-1", "t-2")
    prepare(world, "t-1", "t-2", "t-99")
    told = json.loads(ashep("list", "--json")[1])
    closed = [tree["issue"] for tree in told["trees"] if tree["state"] == "closed"]
    assert closed == ["t-1", "t-2"]
    world.edit("ashep/t-2", "more.txt", "not merged\n")
    anyio.run(world.spaces.seal, "ashep/t-2", "t-2/implement.1.1", "More")
    world.edit("ashep/t-1", "loose.txt", "not committed\n")
    code, out, _ = ashep("gc", "--dry-run")
    assert code == 0
    assert "would go: ashep/t-1" in out
    assert "kept: ashep/t-2: its branch has commits that the base branch does not hold" in out
    assert "kept: ashep/t-99: no issue of that name is known here" in out
    assert sorted(path.name for path in (world.place / "ashep").iterdir()) == ["t-1", "t-2", "t-99"]
    told = json.loads(ashep("gc", "--json")[1])
    assert [one["branch"] for one in told["removed"]] == ["ashep/t-1"]
    assert [one["branch"] for one in told["kept"]] == ["ashep/t-2", "ashep/t-99"]
    assert world.git("show", f"{told['removed'][0]['saved'][0]}:loose.txt") == "not committed"
    assert "ashep/t-1" not in world.git("branch", "--format=%(refname:short)").split()
    assert sorted(path.name for path in (world.place / "ashep").iterdir()) == ["t-2", "t-99"]


def worked(world: GitWorkspacesWorld, issue: str, *contents: str) -> str:
    """Let an agent commit to a file of the issue's own, and give the branch's commit."""
    branch = f"ashep/{issue}"
    head = anyio.run(world.spaces.prepare, branch, None, 0).head
    for number, content in enumerate(contents, start=1):
        world.edit(branch, f"{issue}.txt", content)
        head = anyio.run(world.spaces.seal, branch, f"{issue}/implement.1.{number}", f"Part {number}").head
    return head


def squash(world: GitWorkspacesWorld, branch: str) -> None:
    world.git("merge", "--squash", "-q", branch)
    world.git("commit", "-qm", f"{branch} (#7)")


def rebase(world: GitWorkspacesWorld, branch: str) -> None:
    world.git("cherry-pick", f"main..{branch}")


def squash_at_a_forge(world: GitWorkspacesWorld, branch: str) -> None:
    forge, other = world.top.parent / f"{branch}.git", world.top.parent / branch
    world.git("clone", "-q", "--bare", str(world.top), str(forge))
    world.git("clone", "-q", str(forge), str(other))
    at = ("-C", str(other), "-c", "user.name=forge", "-c", "user.email=forge@example.invalid")
    world.git(*at, "merge", "--squash", "-q", f"origin/{branch}")
    world.git(*at, "commit", "-qm", "All of it (#7)")
    world.git(*at, "push", "-q", "origin", "main")
    world.git("pull", "-q", "--ff-only", str(forge), "main")


@pytest.mark.promise("I4")
@pytest.mark.parametrize("land", [squash, rebase, squash_at_a_forge])
@pytest.mark.slow
def test_gc_takes_what_landed_squashed_or_rebased(
    world: GitWorkspacesWorld, ashep: Call, land: Callable[[GitWorkspacesWorld, str], None]
) -> None:
    issues = ("t-1", "t-2", "t-3", "t-4")
    closed_by_a_person(world.top / ".agent-shepherd" / "state", *issues)
    heads = {issue: worked(world, issue, "one\n", "one\ntwo\n") for issue in issues}
    world.person_commits("c.txt", "the base moved on\n")
    for issue in issues[:3]:
        land(world, f"ashep/{issue}")
    world.person_commits("c.txt", "and on\n")
    worked(world, "t-2", "one\ntwo\nthree, after it landed\n")
    world.edit("ashep/t-3", "loose.txt", "not committed\n")
    code, out, _ = ashep("gc", "--dry-run")
    assert code == 0
    assert "would go: ashep/t-1" in out
    listed = {tree["issue"]: (tree["merged"], tree["landed"]) for tree in json.loads(ashep("--json")[1])["trees"]}
    assert listed == {"t-1": (False, True), "t-2": (False, False), "t-3": (False, True), "t-4": (False, False)}
    told = json.loads(ashep("gc", "--json")[1])
    assert [one["branch"] for one in told["removed"]] == ["ashep/t-1"]
    assert {one["branch"]: one["why"] for one in told["kept"]} == {
        "ashep/t-2": "its branch has commits that the base branch does not hold",
        "ashep/t-3": "it landed, but something in its tree is not committed",
        "ashep/t-4": "its branch has commits that the base branch does not hold",
    }
    assert world.git("rev-parse", *told["removed"][0]["saved"]) == heads["t-1"], "its own commits are not gone"
    assert "ashep/t-1" not in world.git("branch", "--format=%(refname:short)").split()
    assert sorted(path.name for path in (world.place / "ashep").iterdir()) == ["t-2", "t-3", "t-4"]


@pytest.mark.promise("I4")
@pytest.mark.slow
def test_gc_takes_what_was_seen_to_land_whatever_became_of_it_on_the_base(
    world: GitWorkspacesWorld, ashep: Call
) -> None:
    issues, facts = ("t-1", "t-2", "t-3", "t-4"), list[Fact]()
    heads = {issue: worked(world, issue, "one\n") for issue in issues}
    for issue in issues:
        squash(world, f"ashep/{issue}")
        if issue != "t-2":
            facts.append(WorkLanded(issue, "land.1", "main", heads[issue], world.base()))
        if issue == "t-4":
            world.git("reset", "-q", "--hard", "HEAD~1")
    closed_by_a_person(world.top / ".agent-shepherd" / "state", *issues, facts=facts)
    for issue in issues[:3]:
        world.git("rm", "-q", f"{issue}.txt")
        world.git("commit", "-qm", f"{issue} is not wanted any more")
    worked(world, "t-3", "two\n")
    told = json.loads(ashep("gc", "--json")[1])
    assert [one["branch"] for one in told["removed"]] == ["ashep/t-1"]
    assert [one["branch"] for one in told["kept"]] == ["ashep/t-2", "ashep/t-3", "ashep/t-4"], (
        "nobody saw it land; a commit has come since; the base was set back"
    )


def test_a_command_that_is_called_in_a_tree_is_meant_for_the_project(
    world: GitWorkspacesWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare(world, "t-1")
    assert (world.place / "ashep/t-1/.agent-shepherd/policies.yaml").exists(), "it looks like a project of its own"
    for folder in (world.place / "ashep/t-1", world.place / "ashep/t-1/.agent-shepherd"):
        monkeypatch.chdir(folder)
        assert main(["trees", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["trees"][0]["issue"] == "t-1"


@pytest.mark.parametrize(("line", "said"), [
    ("worker: {setup: [{}]}", "either `files` or `run`"),
    ("worker: {setup: [{files: [a], run: [b]}]}", "either `files` or `run`"),
    ("worker: {setup: [{files: [../a]}]}", "a pattern below the project's folder"),
    ("worker: {setup: [{files: [/etc/passwd]}]}", "a pattern below the project's folder"),
    ("worker: {disk_floor: 7}", "a size such as"),
])  # fmt: skip
def test_a_bad_setting_is_told(world: GitWorkspacesWorld, ashep: Call, line: str, said: str) -> None:
    (world.top / ".agent-shepherd/config.yaml").write_text(f"version: 1\n{line}\n")
    code, _, err = ashep()
    assert code == 2
    assert said in err
    assert "config.yaml:2" in err


@pytest.mark.promise("J11")
def test_gc_says_which_files_of_the_journal_go_by_themselves_and_why_the_next_one_stays(
    world: GitWorkspacesWorld, ashep: Call
) -> None:
    place = world.top / ".agent-shepherd"
    assert "journal" not in ashep("gc", "--dry-run")[1]
    assert json.loads(ashep("gc", "--dry-run", "--json")[1])["journal"] is None
    (place / "config.yaml").write_text("version: 1\njournal: {keep: 1d}\n")
    journal = Journal.open(place / "state", T0, Sizes(file=600))
    for number in range(9):  # nothing was begun
        journal.append_now([Entry(journal.next_seq, T0, IssueSeen(f"t-{number}", an_issue(f"t-{number}"), 1))])
    began = journal.position.file
    journal.append_now([Entry(journal.next_seq, T0, IssueSeen("s-1", an_issue("s-1"), 1))])
    journal.append_now([Entry(journal.next_seq, T0, IssueTaken("s-1", "standard", "it is ready"))])
    journal.append_now([Entry(journal.next_seq, T0, CycleBegan("s-1", 1, "it was taken"))])
    for number in range(4):
        journal.append_now([Entry(journal.next_seq, T0, IssueSeen(f"u-{number}", an_issue(f"u-{number}"), 1))])
    journal.close()
    code, out, _ = ashep("gc", "--dry-run")
    assert code == 0
    files = [path.name for path in journal_files(place / "state" / "journal") if path.name < began]
    assert f"by itself: the journal's {files[0]} to {files[-1]}, 0.0 MiB, with the texts" in out
    assert f"kept: the journal from {began}: it has records of s-1, which was begun, and is not done" in out
    told = json.loads(ashep("gc", "--dry-run", "--json")[1])["journal"]
    assert told["files"] == files
    assert [path.name for path in journal_files(place / "state" / "journal")][: len(files)] == files, "nothing went"
