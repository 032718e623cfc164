"""`ashep verify` and `ashep criteria` on a project with a tracker in memory, and the verifier as it is."""

import json
import subprocess
from pathlib import Path

import pytest

from ashep.config import write_starter
from tests.places import checked, has_bubblewrap
from tests.service.worlds import git, repository
from tests.test_cli import ASHEP
from tests.test_docs import firsts

pytestmark = pytest.mark.slow

TRACKER = '''
from datetime import UTC, datetime
from pathlib import Path

from ashep.extras.simulation.memory.tracker import MemoryTracker
from ashep.ports.tracker import IssueText


class Told(MemoryTracker):
    """One issue, whose acceptance criteria lie in a file."""

    def __init__(self, context):
        super().__init__(lambda: datetime(2026, 1, 1, tzinfo=UTC), context.actor)
        self.add("Work", id="t-1", text=IssueText(acceptance=Path("acceptance.md").read_text()))
'''
README = "{id: readme, type: file_exists, description: d, verify: {path: README.md}}"
MORE = "{id: more, type: file_exists, description: d, verify: {path: more.txt}}"
LOUD = "{id: loud, type: test_pass, description: d, verify: {command: [sh, loud.sh]}}"
ASKED = "{id: asked, type: manual, description: d, verify: {question: 'Is it good?'}}"
MISSING = "{id: missing, type: test_pass, description: d, verify: {command: [no-such-program-here]}}"


class Project:
    """A project whose `main` has a README, and whose issue has a branch with one file more."""

    def __init__(self, folder: Path) -> None:
        self.folder = repository(folder)
        write_starter(folder / ".agent-shepherd")
        (folder / ".agent-shepherd" / "config.yaml").write_text(
            f'version: 1\ntracker: {{type: "told:Told"}}\n{checked()}'
        )
        (folder / "told.py").write_text(TRACKER)

    def checks(self, *lines: str) -> None:
        """Say what is checked of the issue."""
        block = "\n".join(["checks:", *(f"- {line}" for line in lines)])
        (self.folder / "acceptance.md").write_text(f"It works.\n\n```yaml\n{block}\n```\n")

    def ashep(self, *words: str) -> tuple[int, str, str]:
        done = subprocess.run([ASHEP, *words], cwd=self.folder, capture_output=True, text=True, timeout=240)
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
def project(folder: Path) -> Project:
    return Project(folder.parent / "project")


@pytest.mark.promise("L20")
def test_the_exit_code_says_what_checks_come_to(project: Project) -> None:
    before = git(project.folder, "status", "--porcelain"), git(project.folder, "for-each-ref")
    tip, main = git(project.folder, "rev-parse", "ashep/t-1"), git(project.folder, "rev-parse", "main")
    project.checks(README, MORE, ASKED)
    code, out, said = project.ashep("verify", "t-1", "--json")
    assert code == 0, said
    told = json.loads(out)
    assert (told["status"], told["candidate"], told["commit"], told["base"]) == ("passing", "ashep/t-1", tip, main)
    assert told["tree"] == git(project.folder, "rev-parse", "ashep/t-1^{tree}")
    assert set(told) == firsts("Verification as JSON")
    assert told["summary"] == {"total": 3, "passed": 2, "failed": 0, "skipped": 1}
    assert told["changed"] is True
    assert [(one["check_id"], one["proves_nothing"]) for one in told["checks"]] == [
        ("readme", True), ("more", False), ("asked", False),
    ]  # fmt: skip
    code, out, _ = project.ashep("verify", "t-1", "--commit", "main")
    assert code == 1
    assert "t-1: failing (1 passed, 1 failed, 1 skipped)" in out
    assert git(project.folder, "rev-parse", "main^{tree}") in out, "what it holds for"
    project.checks(README, MISSING)
    assert project.ashep("verify", "t-1")[0] == 69
    project.checks(ASKED)
    assert project.ashep("verify", "t-1")[0] == 69
    after = git(project.folder, "status", "--porcelain").replace("?? acceptance.md\n", "")
    assert set(after.splitlines()) - set(before[0].splitlines()) <= {"?? acceptance.md", "?? __pycache__/"}
    assert git(project.folder, "for-each-ref") == before[1]
    assert not (project.folder / ".agent-shepherd" / "state").exists()


@pytest.mark.promise("L20")
def test_what_was_so_before_the_work_is_told_with_the_result(project: Project) -> None:
    project.checks(README)
    code, out, said = project.ashep("verify", "t-1")
    assert (code, said) == (0, ""), "no program ran: nothing is to be said of a sandbox"
    assert "; it passed before the work, too, and proves nothing" in out
    assert "changes nothing" not in out
    code, out, _ = project.ashep("verify", "t-1", "--commit", "main", "--base", "main")
    assert code == 0
    assert "it changes nothing: its tree is that of its base" in out
    assert json.loads(project.ashep("verify", "t-1", "--commit", "main", "--json")[1])["changed"] is None


def test_what_a_failed_check_printed_is_shown(project: Project) -> None:
    (project.folder / "loud.sh").write_text("seq 1 100\necho no good\nexit 3\n")
    git(project.folder, "add", "loud.sh")
    git(project.folder, "commit", "-qm", "loud")
    project.checks(LOUD)
    code, out, _ = project.ashep("verify", "t-1", "--commit", "HEAD")
    assert code == 1
    lines = out.splitlines()
    assert "exit code 3; expected 0" in out
    assert lines[-1] == "    no good"
    assert "    1" not in lines
    assert lines[-20:][0] == "    82"


@pytest.mark.promise("L20")
def test_what_cannot_be_verified_is_one_line(project: Project) -> None:
    project.checks("{id: a, type: file_exist}")
    code, _, said = project.ashep("verify", "t-1")
    assert (code, said.count("\n")) == (2, 1)
    assert said.startswith("ashep: acceptance criteria of t-1:5: checks[0].type: unknown type 'file_exist'")
    project.checks(README)
    for words, code, part in (
        (["t-none"], 1, "there is no issue t-none"),
        (["t-1", "--commit", "nothing"], 1, "has no commit 'nothing'"),
        (["t-1", "--base", "--all"], 1, "has no commit '--all'"),
    ):
        found, _, said = project.ashep("verify", *words)
        assert (found, said.count("\n")) == (code, 1), said
        assert part in said
    (project.folder / "acceptance.md").write_text("It works.")
    code, _, said = project.ashep("verify", "t-1")
    assert code == 1
    assert "no block of checks" in said


def test_a_type_of_the_users_is_known_once_it_is_registered(project: Project) -> None:
    project.checks("{id: a, type: coverage, description: d, verify: {least: 80}}")
    assert project.ashep("criteria", "t-1")[0] == 1
    config = project.folder / ".agent-shepherd" / "config.yaml"
    types = 'types: {coverage: {type: "coverage_check:Coverage"}}'
    text = config.read_text().removesuffix(checked())
    config.write_text(f"{text}verification: {{{types}{'' if has_bubblewrap() else ', sandbox: none'}}}\n")
    code, out, said = project.ashep("criteria", "t-1")
    assert code == 0, said
    assert "least: 80" in out
    code, _, said = project.ashep("criteria", "t-1", "--set", "acceptance.md")
    assert code == 2
    assert "a tracker of your own" in said
