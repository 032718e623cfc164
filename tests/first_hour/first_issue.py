"""The first issue at a terminal: what a person types from `ashep setup` until it has landed, and the model's part."""

import re

from ashep.extras.demo.project import run_of
from ashep.extras.demo.scripted_model import Call, ModelRequest, Reply, outcome_text, verdict_asked
from tests.fake_forge import REPOSITORY
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


def land_issue_of_bd(terminal: Terminal, agent: str = "claude") -> None:
    """Take each default, name an issue, and see it land."""
    terminal.says(" on the base, passes")
    terminal.says("or another command")
    terminal.types()
    terminal.says("What may a day cost?")
    terminal.types()
    terminal.says("What should be done first?", 120)
    terminal.types("Teach [/b]calc to multiply")
    follow(terminal, agent)


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


def follow(terminal: Terminal, agent: str) -> None:
    """See the issue worked on, look at its diff, and have it merged."""
    terminal.says(f"implement.1.1 {agent}-works, ", 120)
    terminal.says("Merge this?", 240)
    terminal.says("checks: passing: 1 of 1 checks passed")
    terminal.says("or say what to change")
    terminal.types("d")
    terminal.says("+def mul(a, b):")
    terminal.says("or say what to change")
    terminal.types("y")
    terminal.says("is done: landed on main as", 120)
    terminal.says("`ashep work` works until Ctrl-C")
    assert terminal.ends() == 0
    assert "Traceback" not in terminal.text
    assert not any(name in terminal.text.lower() for name in AGENTS - {agent})


def list_questions(terminal: Terminal) -> list[str]:
    """List the questions of `ashep setup` that were asked there."""
    return re.findall(r"^\d\. (.*)$", terminal.text, re.MULTILINE)
