"""The first hour at a terminal: an empty home, Claude Code, bd and git; one command, and the first issue has landed."""

import re
import shutil
import sys
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from ashep.adapters.system import programs
from ashep.extras.demo.project import run_of
from ashep.extras.demo.scripted_model import (
    Call,
    ModelRequest,
    ModelServer,
    Reply,
    claude_environment,
    outcome_text,
    verdict_asked,
)
from tests.fake_forge import REPOSITORY, TOKEN, FakeForge
from tests.first_hour.terminal import Terminal

pytestmark = pytest.mark.real

TEST = "import calc\n\n\ndef test_adds():\n    assert calc.add(1, 2) == 3\n"


def works(ask: ModelRequest) -> Reply:
    """Whoever implements writes a function, and whoever judges approves."""
    if run_of(ask.prompt) is None:
        return Reply(outcome_text())
    if (verdict := verdict_asked(ask.prompt)) is not None:
        return Reply(outcome_text(verdict))
    if not ask.results:
        command = "printf 'def mul(a, b):\\n    return a * b\\n' >>calc.py"
        return Reply(calls=(Call("bash", {"command": command, "description": "write"}),))
    return Reply(outcome_text(summary="it multiplies"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "calc"
    project.mkdir()
    (project / "calc.py").write_text("def add(a, b):\n    return a + b\n")
    (project / "test_calc.py").write_text(TEST)
    (project / "pyproject.toml").write_text('[project]\nname = "calc"\nversion = "1"\n[tool.pytest.ini_options]\n')
    return project


@pytest.fixture
def environ(tmp_path: Path, project: Path) -> dict[str, str]:
    """An empty home, and a PATH on which OpenCode is not."""
    home, bin_ = tmp_path / "home", tmp_path / "bin"
    home.mkdir()
    bin_.mkdir()
    for name in ("claude", "bd", "bwrap"):
        if (program := programs.find(name)) is not None:
            (bin_ / name).symlink_to(program)
    path = f"{bin_}:{Path(sys.executable).parent}:/usr/bin:/bin"
    if (opencode := shutil.which("opencode", path=path)) is not None:
        pytest.skip(f"{opencode} is on PATH")
    env = {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8"}
    git = {
        "GIT_AUTHOR_NAME": "pat",
        "GIT_AUTHOR_EMAIL": "p@x",
        "GIT_COMMITTER_NAME": "pat",
        "GIT_COMMITTER_EMAIL": "p@x",
    }
    return env | git


async def run(*argv: str, cwd: Path, env: dict[str, str]) -> str:
    done = await anyio.run_process([*argv], cwd=cwd, env=env)
    return done.stdout.decode()


async def begin(project: Path, environ: dict[str, str], model: ModelServer) -> None:
    """A repository with a commit, and a login of Claude Code."""
    environ |= claude_environment(model.url, Path(environ["HOME"]))
    for words in (["init", "-qb", "main"], ["config", "user.name", "pat"], ["config", "user.email", "p@x"]):
        await run("git", *words, cwd=project, env=environ)
    await run("git", "add", ".", cwd=project, env=environ)
    await run("git", "commit", "-qm", "first", cwd=project, env=environ)


async def landed(project: Path, environ: dict[str, str]) -> None:
    """The work is on the branch, git has nothing that it had not, and no daemon is left."""
    assert "def mul" in await run("git", "show", "main:calc.py", cwd=project, env=environ)
    assert await run("git", "status", "--porcelain", cwd=project, env=environ) == "?? .agent-shepherd/\n"
    assert await run("git", "config", "--get", "--default", "", "core.hooksPath", cwd=project, env=environ) == "\n"
    assert "is not running" in await run(sys.executable, "-m", "ashep", "stop", cwd=project, env=environ)


@pytest.mark.promise("L6")
async def test_from_a_repository_to_a_landed_issue(project: Path, environ: dict[str, str]) -> None:
    async with ModelServer(works) as model:
        await begin(project, environ, model)
        await to_thread.run_sync(_with_bd, project, environ)
        await landed(project, environ)


def _with_bd(project: Path, environ: dict[str, str]) -> None:
    terminal = Terminal([sys.executable, "-m", "ashep", "setup"], project, environ)
    terminal.says("pytest -q: ")
    terminal.says("or another command")
    terminal.types()
    terminal.says("What may a day cost?")
    terminal.types()
    terminal.says("What should be done first?", 120)
    terminal.types("Teach [/b]calc to multiply")
    _follow(terminal)
    terminal.types("later")
    terminal.says("is not done yet: asked: Merge this?", 120)
    _end(terminal)
    assert questions(terminal) == ["Which command checks work?", "What may a day cost?"]
    (issue,) = re.findall(r"^(\S+) is not done yet", terminal.text, re.MULTILINE)
    terminal = Terminal([sys.executable, "-m", "ashep", "approve", issue, "--now"], project, environ)
    terminal.says(f"{issue}: approved as pat. It goes on now", 120)
    terminal.says(f"{issue} is done: landed on main as", 120)
    assert terminal.ends() == 0


def _follow(terminal: Terminal) -> None:
    """See the issue worked on, and look at its diff."""
    terminal.says("implement.1.1 claude-works, ", 120)
    terminal.says("Merge this?", 240)
    terminal.says("checks: passing: 1 of 1 checks passed")
    terminal.says("or say what to change")
    terminal.types("d")
    terminal.says("+def mul(a, b):")
    terminal.says("or say what to change")


def _end(terminal: Terminal) -> None:
    terminal.says("`ashep work` works until Ctrl-C")
    assert terminal.ends() == 0
    assert "Traceback" not in terminal.text
    assert "opencode" not in terminal.text.lower()


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
    setup = (sys.executable, "-m", "ashep", "setup", "--yes")
    first = await run(*setup, cwd=tree, env=environ)
    assert ".agent-shepherd/config.yaml stays as you changed it by hand" in first
    texts = {path.name: await path.read_text() async for path in config.parent.glob("*.yaml")}
    assert (len(texts), texts["config.yaml"]) == (3, OURS)
    second = await run(*setup, cwd=tree, env=environ)
    assert "the files say all of that already" in second
    assert {path.name: await path.read_text() async for path in config.parent.glob("*.yaml")} == texts


def questions(terminal: Terminal) -> list[str]:
    return re.findall(r"^\d\. (.*)$", terminal.text, re.MULTILINE)


async def test_from_an_issue_of_github_to_a_landed_one(project: Path, environ: dict[str, str]) -> None:
    async with ModelServer(works) as model:
        await begin(project, environ, model)
        await run("git", "remote", "add", "origin", f"https://github.com/{REPOSITORY}.git", cwd=project, env=environ)
        with FakeForge().listening() as forge:
            issue = forge.issues.opens("Teach calc to multiply", labels=("ashep",))
            environ |= {"GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": f"{forge.url}/github"}
            await to_thread.run_sync(_with_github, project, environ)
            assert any("landed" in text for text in forge.issues.ours(issue)), forge.issues.ours(issue)
        await landed(project, environ)


def _with_github(project: Path, environ: dict[str, str]) -> None:
    terminal = Terminal([sys.executable, "-m", "ashep", "setup"], project, environ)
    terminal.says(f"issues of {REPOSITORY} on GitHub with the label `ashep`")
    terminal.says("number [1]")
    terminal.types()
    terminal.says("or another command")
    terminal.types()
    terminal.says("How does work land?")
    terminal.says("number [2]")
    terminal.types("1")
    terminal.says("What may a day cost?")
    terminal.types()
    terminal.says("1 issue carries the label. Work on #12 now (Teach calc to multiply)?", 120)
    terminal.types("y")
    _follow(terminal)
    terminal.types("y")
    terminal.says("is done: landed on main as", 120)
    _end(terminal)
    assert len(questions(terminal)) == 4
    assert TOKEN not in terminal.text
