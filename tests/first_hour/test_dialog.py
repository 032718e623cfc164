"""The dialog of `ashep setup` at a terminal, with programs that only stand on PATH; nothing is worked on."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ashep.config import load
from tests.first_hour.terminal import Terminal

SETUP = [sys.executable, "-m", "ashep", "setup"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with a commit."""
    project = tmp_path / "shop"
    project.mkdir()
    (project / "a.txt").write_text("a\n")
    identity = ("-c", "user.name=pat", "-c", "user.email=p@x")
    for words in (("init", "-qb", "main"), ("add", "."), (*identity, "commit", "-qm", "first")):
        subprocess.run(["git", *words], cwd=project, check=True)
    return project


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An empty home with Claude Code, which has a key, and bd."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "home").mkdir()
    for name in ("claude", "bd"):
        (tmp_path / "bin" / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / "bin" / name).chmod(0o755)
    path = f"{tmp_path / 'bin'}:/usr/bin:/bin"
    return {"PATH": path, "HOME": str(tmp_path / "home"), "LANG": "C.UTF-8", "ANTHROPIC_API_KEY": "none"}


def run_setup(project: Path, environ: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*SETUP, *words], cwd=project, env=environ, capture_output=True, text=True, timeout=60)


def test_a_wrong_answer_is_asked_again_and_nothing_is_written_before_the_last(
    project: Path, environ: dict[str, str]
) -> None:
    before = sorted(os.listdir(project))
    terminal = Terminal(SETUP, project, environ)
    terminal.says("agent    Claude Code: ")
    terminal.says("1. Which command checks work?")
    terminal.types("make && true")
    terminal.says("a command without `&&`")
    terminal.types("false")
    terminal.says("`false` does not pass on the base (exit code 1; expected 0): it would say nothing about work")
    terminal.types("true")
    terminal.says("2. What may a day cost?")
    terminal.types("much")
    terminal.says("much: ")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.ends() != 0
    assert sorted(os.listdir(project)) == before


def test_without_a_terminal_it_says_how_to_go_on(project: Path, environ: dict[str, str]) -> None:
    done = run_setup(project, environ)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "ashep: setup asks at a terminal, and this is none: `ashep setup --yes` takes each default\n"


def test_json_shows_what_would_be_written(project: Path, environ: dict[str, str], tmp_path: Path) -> None:
    before = sorted(os.listdir(project))
    done = run_setup(project, environ, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["answers"] == {
        "source": "bd", "agents": "claude/claude", "check": "none", "landing": "merge", "budget": "20"
    }  # fmt: skip
    assert (report["facts"]["branch"], report["written"], report["kept"]) == ("main", False, [])
    assert sorted(os.listdir(project)) == before
    folder = tmp_path / ".agent-shepherd"
    folder.mkdir()
    for name, text in report["files"].items():
        (folder / name).write_text(text)
    assert [agent.id for agent in load(folder).agents.agents] == ["claude-works", "claude-judges"]


LACKS = {
    "no repository": ("is in no git repository: run `git init`", lambda project, environ: project.parent),
    "no agent": ("no agent is on PATH that could work", lambda project, environ: project),
    "no login": ("Claude Code is not logged in", lambda project, environ: project),
}


@pytest.mark.parametrize("case", LACKS)
def test_what_is_missing_is_said_with_what_to_do(case: str, project: Path, environ: dict[str, str]) -> None:
    words, place = LACKS[case]
    if case == "no agent":
        environ |= {"PATH": environ["PATH"].partition(":")[2]}
    if case == "no login":
        del environ["ANTHROPIC_API_KEY"]
    done = run_setup(place(project, environ), environ, "--yes")
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
