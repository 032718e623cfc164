"""The five minutes: from `ashep setup` to a first issue of GitHub that has landed, bd and Claude Code being there."""

import sys
import tempfile
import time
from pathlib import Path

import anyio

from bench.figures import Figure
from tests.first_hour.first_issue import CALC, list_questions, make_environment, play_issue_of_github

_ENOUGH = 300.0
"""Seconds, on two processors that do nothing else."""


def measure() -> list[Figure]:
    """Play it once, with a person who answers at once and a model that does, too."""
    with tempfile.TemporaryDirectory(prefix="ashep-bench-") as folder:
        environ, calc = make_environment(Path(folder), "claude"), Path(folder, "calc")
        calc.mkdir()
        for name, text in CALC.items():
            (calc / name).write_text(text)
        began = time.monotonic()
        terminal = anyio.run(play_issue_of_github, (sys.executable, "-m", "ashep", "setup"), calc, environ)
        seconds, questions = time.monotonic() - began, len(list_questions(terminal))
    return [
        Figure("from `ashep setup` to landed", seconds, "s", _ENOUGH, "a person and a model that answer at once"),
        Figure("questions of `ashep setup`", questions, "", 5, f"{terminal.lines} lines typed until it has landed"),
    ]
