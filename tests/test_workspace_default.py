"""Where issues are worked on where nobody said so: in trees of their own, wherever there can be any."""

import json
import subprocess
from pathlib import Path

import pytest

from ashep.config import load, read, write_starter
from ashep.config.files import has_commit
from ashep.core.facts.records import Entry
from ashep.core.facts.resources import Adopted
from ashep.core.policy.settings import Settings
from ashep.core.reconcile.evolve import evolve
from ashep.core.reconcile.step import RULES
from ashep.core.state.world import World
from tests.core.given import T0

PERSON = ("-c", "user.name=p", "-c", "user.email=p@localhost", "-c", "commit.gpgsign=false")


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *PERSON, *words], cwd=folder, capture_output=True, check=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a commit."""
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main", ".")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def in_force(project: Path, text: str) -> tuple[str, str, bool]:
    """Where issues are worked on, in which sandbox, and whether that keeps who makes from who judges."""
    folder = project / ".agent-shepherd"
    write_starter(folder, force=True)
    (folder / "config.yaml").write_text(f"version: 1\n{text}\n")
    settings = load(folder).settings
    return settings.worker.workspace, settings.agents.sandbox, settings.isolated


PLACE, TREE, SHARED = ("place", "auto", True), ("worktree", "none", False), ("shared", "none", False)


@pytest.mark.promise("I5")
@pytest.mark.parametrize(("text", "expected"), [
    ("", PLACE),
    ("worker: {max_concurrent_runs: 2}", PLACE),
    ("runners: {claude: {max_runs: 2}}", PLACE),
    ("agents: {paths: {read: [/srv]}}", PLACE),
    ("worker: {workspace: place}", PLACE),
    ("agents: {sandbox: bwrap}", ("place", "bwrap", True)),
    ("agents: {sandbox: none}", TREE),
    ("agents: {sandbox: none}\nworker: {workspace: place}", ("place", "none", False)),
    ("runners: {opencode: {url: 'http://x'}}", TREE),
    ("runners: {opencode: {isolation: shared}}", TREE),
    ("runners: {mine: {type: 'os:PathLike'}}", TREE),
    ("runners: {mine: {type: 'os:PathLike'}}\nworker: {workspace: place}", ("place", "none", False)),
    ("worker: {workspace: worktree}", TREE),
    ("worker: {workspace: worktree, lock_work_tree: true}", TREE),
    ("worker: {lock_work_tree: true}", SHARED),
    ("worker: {lock_work_tree: false}", SHARED),
    ("worker: {workspace: shared}", SHARED),
])  # fmt: skip
def test_in_a_repository_with_a_commit_agents_have_a_sandbox_unless_something_else_is_said(
    repository: Path, text: str, expected: tuple[str, str, bool]
) -> None:
    assert in_force(repository, text) == expected


@pytest.mark.parametrize(("text", "expected"), [
    ("", SHARED), ("worker: {workspace: worktree}", TREE), ("worker: {workspace: place}", PLACE),
])  # fmt: skip
def test_elsewhere_they_share_one_unless_that_is_a_must(
    tmp_path: Path, text: str, expected: tuple[str, str, bool]
) -> None:
    assert in_force(tmp_path, text) == expected


def test_the_starters_files_leave_it_open(repository: Path) -> None:
    write_starter(repository / ".agent-shepherd")
    assert load(repository / ".agent-shepherd").settings.agents.sandbox == "auto"


def test_read_twice_it_is_the_same(repository: Path) -> None:
    in_force(repository, "")
    folder = repository / ".agent-shepherd"
    assert load(folder).settings == load(folder).settings
    content = load(folder).settings.model_dump_json()
    adopted = evolve(World(), Entry(1, T0, Adopted("settings", content, "", RULES)))
    assert adopted.settings == load(folder).settings, "a reload finds nothing to adopt"


def test_a_journals_settings_without_the_key_mean_the_shared_tree() -> None:
    content = json.loads(Settings().model_dump_json())
    del content["worker"]["workspace"], content["agents"]["sandbox"]
    world = evolve(World(), Entry(1, T0, Adopted("settings", json.dumps(content), "", RULES)))
    assert (world.settings.worker.workspace, world.settings.agents.sandbox) == ("shared", "none")
    assert read(Settings, "version: 1\n", Path("config.yaml")).worker.workspace == "shared", "a text has no project"


# --- the look at the repository -----------------------------------------------------------------------------------


def test_a_commit_is_found_as_git_finds_it(repository: Path, tmp_path: Path) -> None:
    assert has_commit(repository)
    (repository / "below" / "it").mkdir(parents=True)
    assert has_commit(repository / "below" / "it")
    git(repository, "pack-refs", "--all")
    assert not (repository / ".git" / "refs" / "heads" / "main").exists()
    assert has_commit(repository), "its ref is packed"
    git(repository, "worktree", "add", "-q", "-b", "other", str(tmp_path / "linked"))
    assert has_commit(tmp_path / "linked"), "a linked work tree"
    git(repository, "checkout", "-q", "--detach")
    assert has_commit(repository), "HEAD is a commit itself"
    git(repository, "checkout", "-q", "--orphan", "new")
    assert not has_commit(repository), "its branch has no commit yet"


def test_a_submodule_has_a_commit_of_its_own(repository: Path, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    git(tmp_path, "clone", "-q", str(repository), "inner")
    git(repository, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "part")
    assert (repository / "part" / ".git").is_file()
    assert has_commit(repository / "part")


def test_no_commit_is_found_where_there_is_none(tmp_path: Path) -> None:
    assert not has_commit(tmp_path)
    assert not has_commit(tmp_path / "missing")
    git(tmp_path, "init", "-q", ".")
    assert not has_commit(tmp_path)
    for damaged in ("gitdir: /nowhere\n", "nonsense\0"):
        folder = tmp_path / f"damaged{len(damaged)}"
        folder.mkdir()
        (folder / ".git").write_text(damaged)
        assert not has_commit(folder)


def test_of_refs_in_gits_binary_table_only_the_objects_are_seen(repository: Path) -> None:
    """As `git init --ref-format=reftable` lays it out, which not every git can."""
    folder = repository / ".git"
    (folder / "reftable").mkdir()
    (folder / "HEAD").write_text("ref: refs/heads/.invalid\n")
    assert has_commit(repository)
    git(repository.parent, "init", "-q", "empty")
    empty = repository.parent / "empty"
    (empty / ".git" / "reftable").mkdir()
    (empty / ".git" / "HEAD").write_text("ref: refs/heads/.invalid\n")
    assert not has_commit(empty)
    pack = empty / ".git" / "objects" / "pack" / "pack-1.pack"
    pack.touch()
    assert has_commit(empty)
