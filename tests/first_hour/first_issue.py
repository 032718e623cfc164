"""The first issue at a terminal: what a person types from `ashep setup` until it has landed, and the model's part."""

import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio
from anyio import to_thread

from ashep.adapters.system import programs
from ashep.extras.demo.project import run_of
from ashep.extras.demo.scripted_model import (
    MODELS_FILE,
    Call,
    ModelRequest,
    ModelServer,
    Reply,
    claude_environment,
    opencode_config,
    outcome_text,
    settle,
    verdict_asked,
)
from tests.fake_forge import REPOSITORY, TOKEN, FakeForge
from tests.first_hour.terminal import Terminal

AGENTS = {"claude", "opencode"}


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


# --- the machine --------------------------------------------------------------------------------------------------

CALC = {
    "calc.py": "def add(a, b):\n    return a + b\n",
    "test_calc.py": (
        "import unittest\n\nimport calc\n\n\nclass Adds(unittest.TestCase):\n"
        "    def test_adds(self):\n        self.assertEqual(calc.add(1, 2), 3)\n"
    ),
}
"""A project that needs nothing but Python."""


def make_environment(folder: Path, agent: str) -> dict[str, str]:
    """Make an empty home, and a PATH on which this agent is, bd, and this ashep."""
    home, bin_ = folder / "home", folder / "bin"
    home.mkdir()
    bin_.mkdir()
    for name in (agent, "bd", "bwrap"):
        if (program := programs.find(name)) is not None:
            (bin_ / name).symlink_to(program)
    path = f"{bin_}:{Path(sys.executable).parent}:/usr/bin:/bin"
    env = {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8"}
    git = {
        "GIT_AUTHOR_NAME": "pat",
        "GIT_AUTHOR_EMAIL": "p@x",
        "GIT_COMMITTER_NAME": "pat",
        "GIT_COMMITTER_EMAIL": "p@x",
    }
    return env | git


async def run(*argv: str, cwd: Path, env: dict[str, str]) -> str:
    """Run a program, and return what it printed."""
    done = await anyio.run_process([*argv], cwd=cwd, env=env)
    return done.stdout.decode()


async def begin(project: Path, environ: dict[str, str], model: ModelServer) -> None:
    """Make a repository with a commit, and a login with which the agent asks the model."""
    home = Path(environ["HOME"])
    if shutil.which("claude", path=environ["PATH"]):
        environ |= claude_environment(model.url, home)
    else:
        await to_thread.run_sync(settle, home / ".config" / "opencode", opencode_config(model.url))
        environ |= {"OPENCODE_MODELS_PATH": str(home / ".config" / "opencode" / MODELS_FILE)}
    for words in (["init", "-qb", "main"], ["config", "user.name", "pat"], ["config", "user.email", "p@x"]):
        await run("git", *words, cwd=project, env=environ)
    await run("git", "add", ".", cwd=project, env=environ)
    await run("git", "commit", "-qm", "first", cwd=project, env=environ)


# --- the person ---------------------------------------------------------------------------------------------------


async def play_issue_of_github(argv: Sequence[str], project: Path, environ: dict[str, str]) -> Terminal:
    """Have an issue land that carries the label at a played GitHub; `argv` is `ashep setup`."""
    async with ModelServer(works) as model:
        await begin(project, environ, model)
        await run("git", "remote", "add", "origin", f"https://github.com/{REPOSITORY}.git", cwd=project, env=environ)
        with FakeForge().listening() as forge:
            issue = forge.issues.opens("Teach calc to multiply", labels=("ashep",))
            environ |= {"GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": f"{forge.url}/github"}
            terminal = await to_thread.run_sync(Terminal, argv, project, environ)
            await to_thread.run_sync(land_issue_of_github, terminal)
            assert any("landed" in text for text in forge.issues.ours(issue)), forge.issues.ours(issue)
    return terminal


def land_issue_of_bd(terminal: Terminal, agent: str = "claude", reply: str = "y") -> None:
    """Take each default, name an issue, and see it land, or wait where the reply is "later"."""
    terminal.says(" on the base, passes")
    terminal.says("or another command")
    terminal.types()
    terminal.says("What may a day cost?")
    terminal.types()
    terminal.says("What should be done first?", 120)
    terminal.types("Teach [/b]calc to multiply")
    follow(terminal, agent, reply)


def land_issue_of_github(terminal: Terminal) -> None:
    """Have work merged here, and see the issue land that carries the label."""
    terminal.says(f"issues of {REPOSITORY} on GitHub with the label `ashep`")
    terminal.says("number [1]")
    terminal.types()
    terminal.says(" on the base, passes")
    terminal.says("or another command")
    terminal.types()
    terminal.says("How does work land?")
    terminal.says("number [2]")
    terminal.types("1")
    terminal.says("What may a day cost?")
    terminal.types()
    terminal.says("1 issue carries the label. Work on #12 now (Teach calc to multiply)?", 120)
    terminal.types("y")
    follow(terminal, "claude")


def follow(terminal: Terminal, agent: str, reply: str = "y") -> None:
    """See the issue worked on, look at its diff, and answer."""
    terminal.says(f"implement.1.1 {agent}-works, ", 120)
    terminal.says("Merge this?", 240)
    terminal.says("checks: passing: 1 of 1 checks passed")
    terminal.says("or say what to change")
    terminal.types("d")
    terminal.says("+def mul(a, b):")
    terminal.says("or say what to change")
    terminal.types(reply)
    terminal.says("is not done yet: asked: Merge this?" if reply == "later" else "is done: landed on main as", 120)
    terminal.says("`ashep work` works until Ctrl-C")
    assert terminal.ends() == 0
    assert "Traceback" not in terminal.text
    assert not any(name in terminal.text.lower() for name in AGENTS - {agent})


def list_questions(terminal: Terminal) -> list[str]:
    """List the questions of `ashep setup` that were asked there."""
    return re.findall(r"^\d\. (.*)$", terminal.text, re.MULTILINE)
