"""The dialog of `ashep setup` at a terminal, with programs that only stand on PATH; nothing is worked on."""

import json
import os
import signal
import subprocess
import sys
import time
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
    subprocess.run(["git", "init", "-qb", "main"], cwd=project, check=True)
    commit(project)
    return project


def commit(project: Path) -> None:
    identity = ("-c", "user.name=pat", "-c", "user.email=p@x")
    for words in (("add", "."), (*identity, "commit", "-qm", "first")):
        subprocess.run(["git", *words], cwd=project, check=True)


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
    return subprocess.run([*SETUP, *words], cwd=project, env=environ, capture_output=True, text=True, timeout=240)


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


def test_an_interrupt_in_a_trial_leaves_nothing(project: Path, environ: dict[str, str]) -> None:
    (project / "Makefile").write_text("test:\n\tsleep 4243\n")
    commit(project)
    before = sorted(os.listdir(project))
    terminal = Terminal(SETUP, project, environ)
    terminal.says("trying on the base: make test")
    while not is_running("sleep 4243"):
        time.sleep(0.05)
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.ends() == 130
    assert not is_running("sleep 4243")
    assert sorted(os.listdir(project)) == before
    assert os.listdir(Path(environ["HOME"], ".cache", "ashep", "trials")) == []


def is_running(command: str) -> bool:
    return subprocess.run(["pgrep", "-f", f"^{command}"], stdout=subprocess.DEVNULL).returncode == 0


def test_a_second_setup_waits_for_the_first_one_s_end(project: Path, environ: dict[str, str]) -> None:
    terminal = Terminal(SETUP, project, environ)
    terminal.says("1. Which command checks work?")
    second = run_setup(project, environ, "--yes")
    assert (second.returncode, second.stdout) == (2, "")
    assert "another `ashep setup` is at work in " in second.stderr
    terminal.process.send_signal(signal.SIGINT)
    terminal.ends()
    assert run_setup(project, environ, "--json").returncode == 0


def test_without_a_terminal_it_says_how_to_go_on(project: Path, environ: dict[str, str]) -> None:
    finished = run_setup(project, environ)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert (
        finished.stderr == "ashep: setup asks at a terminal, and this is none: `ashep setup --yes` takes each default\n"
    )


def test_json_shows_what_would_be_written(project: Path, environ: dict[str, str], tmp_path: Path) -> None:
    before = sorted(os.listdir(project))
    finished = run_setup(project, environ, "--json")
    assert finished.returncode == 0, finished.stderr
    report = json.loads(finished.stdout)
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
    "no repository": "is in no git repository: run `git init`",
    "a bare repository": "is in no git repository: run `git init`",
    "no commit": "has no commit yet",
    "no branch": "no branch is checked out, and work must land on one",
    "no agent": "no agent is on PATH that could work",
    "no login": "Claude Code: not logged in",
    "no bd": "bd, in which issues are kept, is not here",
}


@pytest.mark.parametrize("case", LACKS)
def test_what_is_missing_is_named_with_what_to_do(case: str, project: Path, environ: dict[str, str]) -> None:
    place = project
    match case:
        case "no repository":
            place = project.parent
        case "a bare repository" | "no commit":
            place = project.parent / case
            bare = ["--bare"] if case.startswith("a bare") else []
            subprocess.run(["git", "init", "-q", *bare, place], check=True)
        case "no branch":
            subprocess.run(["git", "checkout", "-q", "--detach"], cwd=project, check=True)
        case "no login":
            del environ["ANTHROPIC_API_KEY"]
        case _:
            Path(environ["PATH"].partition(":")[0], "claude" if case == "no agent" else "bd").unlink()
    finished = run_setup(place, environ, "--yes")
    assert (finished.returncode, finished.stdout) == (2, "")
    assert LACKS[case] in finished.stderr
    assert not (place / ".agent-shepherd").exists()
