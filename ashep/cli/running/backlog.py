"""The question about a backlog that is there before ashep has worked on anything: asked once, at a terminal."""

import sys
from contextlib import suppress
from pathlib import Path

import anyio
import typer

from ashep.actions.replay import recorded
from ashep.actions.setup.database import list_waiting
from ashep.cli.context import configured, picture
from ashep.core.facts.resources import Backlog
from ashep.core.reconcile.backlog import MOST
from ashep.errors import AshepError

ANSWERS: dict[str, Backlog] = {"a": "all", "all": "all", "t": "first", "ten": "first", "n": "none", "none": "none"}


def choose_backlog(project: Path) -> Backlog:
    """Return how much of what is ready may be worked on; a person at a terminal is asked where nobody knows yet."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or _is_settled(configured(project) / "state"):
        return "first"
    count = 0
    with suppress(AshepError):  # the daemon says what is wrong, and waits where that helps
        count = len(anyio.run(list_waiting, project))
    if count <= MOST:
        return "first"
    prompt = f"{count} issues are ready. Work on all of them? a: all, t: the first ten, n: none"
    while (reply := typer.prompt(prompt, default="t").strip().lower()) not in ANSWERS:
        pass
    return ANSWERS[reply]


def _is_settled(state: Path) -> bool:
    """Whether anything was worked on here, or somebody has said how much may be."""
    with picture(state) as model:
        query = "SELECT 1 FROM facts WHERE type IN ('IssueTaken', 'IssueAdopted') LIMIT 1"
        if model.database is not None and model.database.execute(query).fetchone() is not None:
            return True
    return recorded(state).backlog.settled
