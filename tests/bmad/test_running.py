"""`ashep story sync` and `ashep story run` on the real bd and git, with agents that live in the daemon."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

from ashep.adapters.system import programs
from ashep.cli import main
from ashep.config import write_starter
from tests import databases
from tests.test_cli import Done

pytestmark = [pytest.mark.real, pytest.mark.slow]

AGENTS = "version: 1\nagents:\n" + "".join(
    f"- {{id: {able}-er, capabilities: [{able}], read_write: {access}, runner: {{type: mine}}}}\n"
    for able, access in (("implement", "write"), ("review", "write"), ("arbitrate", "read"))
)
CONFIG = (
    'version: 1\nworker: {workspace: worktree}\nmonitor: {check_every: 100ms}\nrunners: {mine: {type: "own:Agents"}}\n'
)
OWN = """\
import json
from pathlib import Path

from ashep.extras.simulation.memory.runner import MemoryRunner, Play


class Agents(MemoryRunner):
    def __init__(self, context):
        super().__init__(context.clock, self.answer)
        self.opened = {}

    async def open_session(self, request):
        session = await super().open_session(request)
        self.opened[session] = request
        return session

    def answer(self, asked):
        request = self.opened[asked.session]
        phase = request.key.split("/")[1].split(".")[0]
        outcome = {"result": "success", "summary": phase}
        if phase == "developer":
            Path(request.directory, "done.txt").write_text("done")
        else:
            outcome["verdict"] = "approve" if phase == "reviewer" else "pass"
        return Play(f"```json\\n{json.dumps(outcome)}\\n```", delay=0.1)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a project with a database of bd, and two stories of which git has the first."""
    home, folder = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")))
    monkeypatch.setenv("HOME", str(home))
    (home / ".gitconfig").write_text("[user]\nname = Pat\nemail = pat@example.org\n")
    databases.copied("s", folder)
    settings = folder / ".agent-shepherd"
    write_starter(settings, "bmad-story")
    (settings / "agents.yaml").write_text(AGENTS)
    (settings / "config.yaml").write_text(CONFIG)
    (folder / "own.py").write_text(OWN)
    written(folder, "1-1-login")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


def written(project: Path, key: str, status: str = "ready-for-dev") -> Path:
    file = project / "docs" / "stories" / f"{key}.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"# {key}\n\nStatus: {status}\n\n## Acceptance Criteria\n\n1. It works\n\n## Tasks\n\n- [ ] do\n")
    return file


def git(project: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=project, check=True, capture_output=True)


def story(project: Path, *words: str) -> Done:
    with redirect_stdout(TextIOWrapper(BytesIO())) as out:
        code = main(["-C", str(project), "story", *words])
        out.flush()
        return Done(code, out.buffer.getvalue().decode(), "")  # pyright: ignore[reportAttributeAccessIssue] - as made


def issues(project: Path) -> dict[str, Mapping[str, Any]]:
    argv = [str(programs.find("bd")), "list", "--all", "--limit=0", "--json"]
    found = json.loads(subprocess.run(argv, cwd=project, check=True, capture_output=True, text=True).stdout)
    return {one["title"]: one for one in found}


def test_stories_are_worked_on_until_they_end_and_a_second_process_looks_on(project: Path) -> None:
    written(project, "1-2-roles")
    argv = [sys.executable, "-m", "ashep", "-C", str(project), "story", "run"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*argv, "1.1", "--json"], **pipes) as one, subprocess.Popen([*argv, "--all"], **pipes) as two:
        (told, said), (out, _) = one.communicate(timeout=180), two.communicate(timeout=180)
    assert (one.returncode, [(row["id"], row["state"], row["why"]) for row in json.loads(told)]) == (
        0, [("1-1", "closed", None)],
    )  # fmt: skip
    assert two.returncode == 1, "what git has not got is refused"
    assert "error docs/stories/1-2-roles.md: git has not got it" in out
    assert "\n1-1: closed\n1-2: refused: git has not got it" in out
    worked = [text for text in (said, out) if "1-1/arbiter.1.1 succeeded" in text]
    assert len(worked) == 1, f"one of them works, and shows each turn by the story's name: {said} {out}"
    assert "1-1 closed by shepherd" in worked[0]
    found = issues(project)
    assert {(one["issue_type"], one["status"]) for one in found.values()} == {("task", "closed"), ("epic", "open")}
    listed = json.loads(story(project, "list", "--json").out)
    assert [one["issue"] for one in listed] == [found["1-1: 1-1-login"]["id"], None]
    file = project / "docs" / "stories" / "1-1-login.md"
    assert "\nStatus: done\n" in file.read_text(), "what was landed is in the checkout"
    assert story(project, "check", "--tracker").code == 0
    written(project, "1-1-login")
    wrong = story(project, "check", "--tracker")
    assert wrong.code == 1
    assert f"it says ready-for-dev, and {listed[0]['issue']} is closed" in wrong.out


def test_what_sync_writes_stands_there_once_and_follows_the_files(project: Path) -> None:
    done = story(project, "sync")
    assert done.out.splitlines()[-1] == "1 story has an issue"
    before = issues(project)
    assert before["1-1: 1-1-login"]["acceptance_criteria"] == "- It works"
    assert {edge["type"] for edge in before["1-1: 1-1-login"]["dependencies"]} == {"parent-child"}
    written(project, "1-1-login", "review")
    git(project, "mv", "docs/stories/1-1-login.md", "docs/stories/1-1-sign-in.md")
    written(project, "1-1-sign-in", "review")
    git(project, "commit", "-qam", "renamed")
    assert "told" in story(project, "sync", "--dry-run", "--json").json
    assert issues(project) == before
    story(project, "sync")
    after = issues(project)["1-1: 1-1-sign-in"]
    assert after["id"] == before["1-1: 1-1-login"]["id"]
    assert after["labels"] == ["phase:reviewer", "policy:bmad-story", "story:docs/stories/1-1-sign-in.md"]
    again = story(project, "sync", "--json").json
    assert (again["created"], again["changed"]) == ([], [])
