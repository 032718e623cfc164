"""The first hour at a terminal: an empty home, Claude Code, bd and git; one command, and the first issue has landed."""

import re
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from ashep.config.starter.setup_files import is_as_written
from ashep.extras.demo.scripted_model import ModelServer
from tests.fake_forge import REPOSITORY, TOKEN, FakeForge
from tests.first_hour.first_issue import (
    AGENTS,
    begin,
    land_issue_of_bd,
    list_questions,
    make_environment,
    play_issue_of_github,
    run,
    works,
)
from tests.first_hour.terminal import Terminal

pytestmark = pytest.mark.real

SETUP = (sys.executable, "-m", "ashep", "setup")
TEST = "import calc\n\n\ndef test_adds():\n    assert calc.add(1, 2) == 3\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "calc"
    project.mkdir()
    (project / "calc.py").write_text("def add(a, b):\n    return a + b\n")
    (project / "test_calc.py").write_text(TEST)
    (project / "pyproject.toml").write_text('[project]\nname = "calc"\nversion = "1"\n[tool.pytest.ini_options]\n')
    return project


@pytest.fixture
def environ(tmp_path: Path, project: Path, request: pytest.FixtureRequest) -> dict[str, str]:
    """An empty home, and a PATH on which one agent is: Claude Code, unless the test says another."""
    agent: str = getattr(request, "param", "claude")
    environ = make_environment(tmp_path, agent)
    for name in AGENTS - {agent}:
        if (other := shutil.which(name, path=environ["PATH"])) is not None:
            pytest.skip(f"{other} is on PATH")
    return environ


async def landed(project: Path, environ: dict[str, str], branch: str = "main") -> None:
    """The work is on the branch, git has nothing that it had not, nobody edited a file, and no daemon is left."""
    assert "def mul" in await run("git", "show", f"{branch}:calc.py", cwd=project, env=environ)
    assert await run("git", "status", "--porcelain", cwd=project, env=environ) == "?? .agent-shepherd/\n"
    assert await run("git", "config", "--get", "--default", "", "core.hooksPath", cwd=project, env=environ) == "\n"
    texts = [await path.read_text() async for path in anyio.Path(project, ".agent-shepherd").glob("*.yaml")]
    assert [is_as_written(text) for text in texts] == [True] * 3
    assert "is not running" in await run(sys.executable, "-m", "ashep", "stop", cwd=project, env=environ)


@pytest.mark.promise("L6")
@pytest.mark.parametrize("environ", sorted(AGENTS), indirect=True)
async def test_from_a_repository_to_a_landed_issue(project: Path, environ: dict[str, str]) -> None:
    async with ModelServer(works) as model:
        await begin(project, environ, model)
        (agent,) = (name for name in AGENTS if shutil.which(name, path=environ["PATH"]))
        terminal = await to_thread.run_sync(Terminal, SETUP, project, environ)
        reply = "later" if agent == "claude" else "y"
        await to_thread.run_sync(land_issue_of_bd, terminal, agent, reply)
        assert list_questions(terminal) == ["Which command checks work?", "What may a day cost?"]
        if reply == "later":
            await to_thread.run_sync(_approve_now, project, environ, terminal.text)
        await landed(project, environ)


def _approve_now(project: Path, environ: dict[str, str], text: str) -> None:
    (issue,) = re.findall(r"^(\S+) is not done yet", text, re.MULTILINE)
    terminal = Terminal([sys.executable, "-m", "ashep", "approve", issue, "--now"], project, environ)
    terminal.says(f"{issue}: approved as pat. It goes on now", 120)
    terminal.says(f"{issue} is done: landed on main as", 120)
    assert terminal.ends() == 0


OURS = "# see the wiki\nversion: 1\nnotify: {batch: 5m}\n"


async def test_yes_asks_nothing_and_a_second_call_changes_nothing(project: Path, environ: dict[str, str]) -> None:
    """In a linked work tree with an odd name, whose database is the main one's; a file of a person's stays as it is."""
    environ |= {"ANTHROPIC_API_KEY": "none", "DISABLE_TELEMETRY": "1"}
    tree = project.parent / '-it\'s a "tree"'
    for words in (["init", "-qb", "main"], ["add", "."], ["commit", "-qm", "first"]):
        await run("git", *words, cwd=project, env=environ)
    await run("git", "worktree", "add", "-qb", "two", str(tree), cwd=project, env=environ)
    config = anyio.Path(tree, ".agent-shepherd", "config.yaml")
    await config.parent.mkdir()
    await config.write_text(OURS)
    first = await run(*SETUP, "--yes", cwd=tree, env=environ)
    assert ".agent-shepherd/config.yaml stays as you changed it by hand" in first
    texts = {path.name: await path.read_text() async for path in config.parent.glob("*.yaml")}
    assert (len(texts), texts["config.yaml"]) == (3, OURS)
    second = await run(*SETUP, "--yes", cwd=tree, env=environ)
    assert "the files say all of that already" in second
    assert {path.name: await path.read_text() async for path in config.parent.glob("*.yaml")} == texts


async def test_from_an_issue_of_github_to_a_landed_one(project: Path, environ: dict[str, str]) -> None:
    terminal = await play_issue_of_github(SETUP, project, environ)
    assert len(list_questions(terminal)) == 4
    assert TOKEN not in terminal.text
    await landed(project, environ)


# --- by a pull request --------------------------------------------------------------------------------------------

SSH = """#!/bin/sh
for command; do :; done
cd "$(dirname "$0")/../remotes" && exec sh -c "$command"
"""
"""Runs what git asks the other machine to run, in a folder of remotes of this one."""


class Pushed(dict[str, str]):
    """The commits of branches of a repository on disk, as the played GitHub asks for them."""

    def __init__(self, repository: Path) -> None:
        super().__init__()
        self.repository = repository

    def get(self, branch: str, default: str = "") -> str:  # pyright: ignore[reportIncompatibleMethodOverride] - of texts
        file = self.repository / "refs" / "heads" / branch
        return file.read_text().strip() if file.exists() else default


@pytest.fixture
def bare(tmp_path: Path, environ: dict[str, str]) -> Path:
    """Where `origin` will be: a folder that git reaches by `ssh`."""
    ssh = tmp_path / "bin" / "ssh"
    ssh.write_text(SSH)
    ssh.chmod(0o755)
    return tmp_path / "remotes" / f"{REPOSITORY}.git"


async def test_from_an_issue_of_github_to_a_merged_pull_request(
    project: Path, environ: dict[str, str], bare: Path
) -> None:
    """Two commands: what is merged while none runs is seen by the second."""
    async with ModelServer(works) as model:
        await begin(project, environ, model)
        await run("git", "clone", "-q", "--bare", ".", str(bare), cwd=project, env=environ)
        await run("git", "remote", "add", "origin", f"git@github.com:{REPOSITORY}.git", cwd=project, env=environ)
        await run("git", "fetch", "-q", "origin", cwd=project, env=environ)
        with FakeForge().listening() as forge:
            forge.heads = Pushed(bare)
            issue = forge.issues.opens("Teach calc to multiply", labels=("ashep",))
            environ |= {"GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": f"{forge.url}/github"}
            await to_thread.run_sync(_by_request, project, environ)
            (pull,) = forge.pulls
            assert "\nCloses #12\n" in pull.body
            assert issue.state == "open"
            await run("git", "update-ref", "refs/heads/main", pull.head, cwd=bare, env=environ)
            pull.state, pull.by = "merged", "olga"
            forge.issues.ends(issue, "olga")  # as GitHub does, for the words of the request
            await to_thread.run_sync(_work, project, environ, lambda: len(forge.issues.ours(issue)) > 1)
            assert [text.split("\n")[0] for text in forge.issues.ours(issue)] == [
                f"**Agent Shepherd**: done: landed on `main` as {'c' * 12}.",
                f"Done: landed on `main` as {'c' * 12}.",
            ]
        await landed(project, environ, "origin/main")


def _by_request(project: Path, environ: dict[str, str]) -> None:
    terminal = Terminal(SETUP, project, environ)
    for words in ("Where do issues come from?", "Which command checks work?", "How does work land?", "a day cost?"):
        terminal.says(words)
        terminal.says("]: ")
        terminal.types()
    terminal.says("Work on #12 now (Teach calc to multiply)?", 120)
    terminal.says("]: ")
    terminal.types()
    pull = f"https://forge.example/{REPOSITORY}/pull/7"
    terminal.says(f"calc-gh-12 waits for you: its pull request waits to be merged: {pull}", 240)
    terminal.says("`ashep work` works until Ctrl-C")
    assert terminal.ends() == 0
    assert len(list_questions(terminal)) == 4
    assert TOKEN not in terminal.text


def _work(project: Path, environ: dict[str, str], is_told: Callable[[], bool]) -> None:
    terminal = Terminal([sys.executable, "-m", "ashep", "work"], project, environ)
    terminal.says("calc-gh-12 closed by shepherd: olga merged ", 120)
    end = time.monotonic() + 60
    while not is_told() and time.monotonic() < end:
        time.sleep(0.05)
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.ends() == 0
