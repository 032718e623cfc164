"""From a work tree of an issue, the real bd finds the project's database."""

import shutil
import subprocess
from pathlib import Path

import anyio
import pytest

from ashep.adapters.git.workspaces.clones import Clones
from ashep.adapters.git.workspaces.linked import Worktrees
from tests.conformance.trackers import Beads

pytestmark = pytest.mark.real


@pytest.mark.parametrize("where", ["below the project", "elsewhere", "a place"])
@pytest.mark.parametrize("project", [".", "sub"])
def test_bd_finds_the_database_from_a_tree(
    where: str, project: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    beads = Beads.make(tmp_path_factory.getbasetemp() / "beads")
    for name, value in {"HOME": str(beads.home), "GIT_CONFIG_NOSYSTEM": "1"}.items():
        monkeypatch.setenv(name, value)
    top = tmp_path / "top"
    folder = top / project
    shutil.copytree(beads.template, folder)
    shutil.rmtree(folder / ".git", ignore_errors=True)

    def run(*words: str, at: Path = top) -> str:
        return subprocess.run(words, cwd=at, check=True, capture_output=True, text=True, timeout=240).stdout

    run("git", "init", "-q", "-b", "main")
    (folder / "code").write_text("x\n")
    run("git", "add", project if project != "." else "code")
    run("git", "-c", "user.name=p", "-c", "user.email=p@example.invalid", "commit", "-qm", "First")
    run(str(beads.program), "create", "--id", "t-1", "Work", at=folder)
    place = folder / ".agent-shepherd/state/trees" if where == "below the project" else tmp_path / "trees"
    kind = Clones if where == "a place" else Worktrees
    prepared = anyio.run(kind(folder, place).prepare, "ashep/t-1", None, 0)
    run(str(beads.program), "comment", "t-1", "from the tree", at=Path(prepared.path))
    assert "from the tree" in run(str(beads.program), "show", "t-1", "--include-comments", "--json", at=folder)
    assert anyio.run(kind(folder, place).list)[0].dirty is False
