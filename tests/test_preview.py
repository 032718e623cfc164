"""`ashep work --dry-run` on the real bd: it says what a daemon would do, and nothing of it is written anywhere."""

import hashlib
import subprocess
from pathlib import Path

import pytest

from ashep.actions.dry_run import DryRun, preview
from ashep.config import write_starter
from ashep.daemon.daemon import WorkOptions
from tests.conformance.trackers import Beads, BeadsWorld

pytestmark = [pytest.mark.real, pytest.mark.may_block]


@pytest.fixture
def beads(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> BeadsWorld:
    """A project with a database of the real bd and the starter's files."""
    beads = Beads.make(tmp_path_factory.getbasetemp() / "beads")
    monkeypatch.setenv("HOME", str(beads.home))
    world = BeadsWorld(beads, tmp_path / "project")
    folder = world.project / ".agent-shepherd"
    write_starter(folder)
    runner = "runners: {opencode: {command: [git]}}"  # a program that is there; nobody starts it
    (folder / "config.yaml").write_text(f"version: 1\ntracker: {{command: [{beads.program}]}}\n{runner}\n")
    return world


def fingerprint(project: Path) -> dict[str, str]:
    """Every file of a project but bd's own, with its content's hash."""
    files = [path for path in project.rglob("*") if path.is_file() and ".beads" not in path.name + str(path.parent)]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files if ".git/" not in str(path)}


def git(project: Path, *words: str) -> str:
    """What git says in a project."""
    person = ("-c", "user.name=p", "-c", "user.email=p@localhost", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", *person, *words], cwd=project, capture_output=True, text=True, check=True).stdout


async def look(world: BeadsWorld, options: WorkOptions | None = None) -> DryRun:
    options = options or WorkOptions()
    folder = world.project / ".agent-shepherd"
    return await preview(world.project, folder, options.issues, options.max_issues, "ashep-test")


@pytest.mark.promise("L3")
async def test_a_dry_run_says_what_would_start_and_writes_nothing(beads: BeadsWorld) -> None:
    first = beads.add("First", priority=1)
    second = beads.add("Second", blocked_by=(first,))
    third = beads.add("Third", priority=3)
    files, issues = fingerprint(beads.project), beads.bd("person", "list", "--json")
    said = await look(beads)
    assert [(start.issue, start.agent, start.phase) for start in said.starting] == [(first, "builder", "implement")]
    assert f"Run: {first}/implement.1.1" in said.starting[0].prompt
    assert "First" in said.starting[0].prompt
    assert {issue: code for issue, code, _ in said.held} == {second: "dependencies", third: "work_tree"}
    assert fingerprint(beads.project) == files
    assert beads.bd("person", "list", "--json") == issues
    assert not (beads.project / ".agent-shepherd" / "state").exists()


async def test_a_dry_run_keeps_to_what_was_asked_for(beads: BeadsWorld) -> None:
    first, second = beads.add("First", priority=1), beads.add("Second")
    said = await look(beads, WorkOptions(issues=(second,)))
    assert [start.issue for start in said.starting] == [second]
    assert {issue: code for issue, code, _ in said.held} == {first: "not_asked"}


async def test_a_dry_run_where_issues_have_trees_of_their_own_makes_none(beads: BeadsWorld) -> None:
    config = beads.project / ".agent-shepherd" / "config.yaml"
    plain = config.read_text()
    first, second = beads.add("First", priority=1), beads.add("Second")
    assert (await look(beads)).workspace == "shared", "there is no commit"
    config.write_text(f"{plain}worker: {{workspace: worktree, max_concurrent_runs: 2}}\n")
    said = await look(beads)
    assert {code for _, code, _ in said.held} == {"no_repository"}
    config.write_text(f"{plain}worker: {{max_concurrent_runs: 2}}\n")
    git(beads.project, "commit", "-qm", "first", "--allow-empty")
    files = fingerprint(beads.project)
    said = await look(beads)
    assert said.workspace == "worktree", "nothing else was said"
    assert [start.issue for start in said.starting] == [first, second]
    assert f"on the branch `ashep/{second}`" in said.starting[1].prompt
    assert "ASHEP_SLOT=1" in said.starting[1].prompt
    assert fingerprint(beads.project) == files
    assert len(git(beads.project, "worktree", "list").splitlines()) == 1


@pytest.mark.promise("I8", "Z6")
async def test_a_dry_run_says_in_the_evening_what_would_stop_the_night(beads: BeadsWorld) -> None:
    first, config = beads.add("First"), beads.project / ".agent-shepherd/config.yaml"
    git(beads.project, "symbolic-ref", "HEAD", "refs/heads/main")
    git(beads.project, "commit", "-q", "--allow-empty", "-m", "first")
    far = beads.project.parent / "far"
    git(beads.project, "clone", "-q", "--bare", ".", str(far))
    git(beads.project, "remote", "add", "origin", str(far))
    git(beads.project, "fetch", "-q")
    git(beads.project, "branch", "--set-upstream-to=origin/main")
    newer = git(beads.project, "commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "newer").strip()
    git(beads.project, "update-ref", "refs/remotes/origin/main", newer)
    git(beads.project, "branch", "ashep")
    plain = config.read_text()
    config.write_text(f"{plain}worker: {{workspace: worktree}}\n")
    (beads.project / "opencode.json").write_text('{"permission": {"bash": {"*": "ask"}}}')
    before = {one for one in beads.project.rglob("*") if ".beads" not in str(one)}
    said = await look(beads)
    assert not said.starting
    assert [(issue, code) for issue, code, _ in said.held] == [(first, "repository")]
    assert "the branch `ashep` is in the way" in said.held[0][2]
    note, asked = said.notes
    assert "opencode.json asks a person about bash `*`" in asked
    assert 'permissions: [{"tool": "bash", "pattern": "*", "action": "allow"}]' in asked
    assert note.startswith("main is 1 commit behind origin/main (as of 2")
    assert {one for one in beads.project.rglob("*") if ".beads" not in str(one)} == before
    git(beads.project, "branch", "-m", "ashep", "other")
    assert [start.issue for start in (await look(beads)).starting] == [first]
    config.write_text(plain.replace("[git]", "[no-such-agent]"))
    said = await look(beads)
    assert [(code, "no-such-agent is neither on PATH" in why) for _, code, why in said.held] == [("runner_away", True)]
