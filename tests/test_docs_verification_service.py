"""docs/guides/verification-service.md is a script: its commands are carried out, and its answers are what comes."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ashep.config import write_starter
from tests.conformance.trackers import Beads, BeadsWorld
from tests.places import checked, free_port
from tests.service.worlds import git
from tests.test_docs import DOCS, fences

PAGE = DOCS / "guides" / "verification-service.md"


@pytest.fixture
def project(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> BeadsWorld:
    """A project with an issue, and a branch on which its work was done."""
    world = BeadsWorld(Beads.make(tmp_path_factory.getbasetemp() / "beads"), tmp_path / "project")
    folder = world.project
    write_starter(folder / ".agent-shepherd")
    with (folder / ".agent-shepherd" / "config.yaml").open("a") as config:
        config.write(checked())
    for name, value in (("user.name", "Ann"), ("user.email", "ann@example.org")):
        git(folder, "config", name, value)
    git(folder, "checkout", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    git(folder, "checkout", "-q", "-b", "ashep/t-1")
    (folder / "greet.sh").write_text('echo "Hello, Ann"\ntest "$1" != Bob\n')
    git(folder, "add", "greet.sh")
    git(folder, "commit", "-qm", "work")
    git(folder, "checkout", "-q", "main")
    world.add("Greet", id="t-1")
    return world


@pytest.mark.promise("L21")
@pytest.mark.real
def test_the_page_can_be_followed_word_by_word(project: BeadsWorld, tmp_path: Path) -> None:
    assert shutil.which("curl"), "the page uses curl"
    page = PAGE.read_text().replace("8090", str(free_port()))
    path = f"{Path(sys.executable).parent}:{project.beads.program.parent}:{os.environ['PATH']}"
    environ = dict(project.beads.env) | {"PATH": path}
    answers: list[tuple[str, Any]] = []
    served: list[subprocess.Popen[str]] = []
    try:
        for words, text in fences(page):
            if words == 'console title="in another terminal"':
                served.append(begun(text.removeprefix("$ ").strip(), project.project, environ))
            elif words == "console":
                for line in text.splitlines():
                    printed = carried_out(line.removeprefix("$ "), project.project, environ)
                    if "curl" in line:
                        answers.append((line, json.loads(printed)))
            elif words == 'json title="the answer"':
                assert timeless(answers[-1][1]) == timeless(json.loads(text))
            else:
                assert words == 'yaml title="checks.yaml"'
                (project.project / "checks.yaml").write_text(text)
        (server,) = served
        server.send_signal(signal.SIGTERM)
        out, said = server.communicate(timeout=120)
        assert (server.returncode, said) == (0, "")
    finally:
        for server in served:
            server.kill()
    assert_what_came(answers)
    token = project.project / ".agent-shepherd" / "state" / "service.token"
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    assert token.read_text().strip() not in out
    shown = json.loads(project.bd("ann", "show", "t-1", "--json"))[0]
    assert shown["metadata"]["verification_status"] == "failing"
    assert [entry["status"] for entry in shown["metadata"]["verification_log"]] == ["passing", "failing"]
    assert "assignee" not in shown
    assert set(git(project.project, "status", "--porcelain").split("\n")) <= {"?? checks.yaml", "?? .agent-shepherd/"}


def assert_what_came(answers: list[tuple[str, Any]]) -> None:
    statuses = [answer.get("verification_status", answer.get("status")) for _, answer in answers]
    assert statuses == ["ok", "pending", *["passing"] * 6, "failing", "failing", "pending", None, 403]
    (issues,) = (answer["tickets"] for _, answer in answers if "tickets" in answer)
    assert sorted((one["title"], one["verification_status"]) for one in issues) == [
        ("Greet Bob", "pending"), ("Greet whoever is named", "failing"),
    ]  # fmt: skip
    first, later = (answer for line, answer in answers if line.endswith("/verify") and "checks" in answer)
    assert first["summary"] == {"total": 2, "passed": 2, "failed": 0, "skipped": 0}
    assert later["checks"][0]["output"] == "Hello, Ann\n"
    assert first["tree"] == later["tree"]


def timeless(answer: dict[str, Any]) -> dict[str, Any]:
    """Leave out how long checks took."""
    checks = [{**one, "duration_ms": None} for one in answer.get("checks", ())]
    return answer | ({"checks": checks} if "checks" in answer else {})


def begun(line: str, project: Path, environ: dict[str, str]) -> subprocess.Popen[str]:
    """Start a server, and wait until it says that it listens."""
    pipe = subprocess.PIPE
    server = subprocess.Popen(line.split(), cwd=project, env=environ, stdout=pipe, stderr=pipe, text=True)
    assert server.stdout is not None
    first = server.stdout.readline()
    assert re.fullmatch(r"listening on http://127\.0\.0\.1:\d+; the token is in .*/service\.token\n", first), first
    return server


def carried_out(line: str, project: Path, environ: dict[str, str]) -> str:
    done = subprocess.run(["bash", "-c", line], cwd=project, env=environ, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, (line, done.stdout, done.stderr)
    return done.stdout
