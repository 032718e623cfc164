"""One issue from its beginning to its end at a terminal: its progress, its questions, and where its work went."""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import typer
from rich.console import Console
from rich.text import Text

from ashep.actions import answers
from ashep.adapters.git.command import Git
from ashep.cli import output
from ashep.cli.context import configured, current_time, picture
from ashep.cli.reading.watch import Signs
from ashep.cli.running.work import progress
from ashep.core.state.branches import branch_of
from ashep.errors import AshepError
from ashep.store.sqlite_reader import open_read_only
from ashep.views import evidence, json_types, status
from ashep.views.usage import money

_GRACE = timedelta(minutes=5)
"""How soon a next attempt must be due to be waited for."""
_MOST_LINES = 300
_MOST_COLUMNS = 1000
"""Lines of a diff that are shown, and characters of each."""

YES, DIFF, LATER = ("y", "yes"), ("d", "diff"), ("l", "later", "")


def work_on(project: Path, issue: str) -> json_types.IssueJson | None:
    """Work on an issue and ask its questions here, until it is done, or waits for something else, or a person leaves.

    Returns its status then; None where nothing is known of it.
    """
    while True:
        standing = work_until_rest(project, issue)
        if standing is None or standing["state"] != "person" or not _ask(project, standing):
            return standing


def work_until_rest(project: Path, issue: str) -> json_types.IssueJson | None:
    """Work on this issue alone until it is done, or waits for something else; return its status as `work_on` does."""
    from ashep import app as daemon

    state = configured(project) / "state"
    with _show_progress(state, issue) as say:
        daemon.work(project, daemon.WorkOptions((issue,), until_idle=True, idle_grace=_GRACE), say)
    with picture(state) as model:
        return status.read_issue(model.database, issue)


def say_end(issue: str, standing: json_types.IssueJson | None) -> None:
    """Say what became of an issue that was worked on."""
    reason = standing["reason"] if standing is not None else "nothing was done about it"
    if standing is not None and standing["state"] == "closed":
        output.say_painted((f"{issue} is done:", "green"), (evidence.landing(standing["landing"]) or reason, None))
    elif standing is not None and standing["code"] == "pull_request":
        output.say(f"{issue} waits for you: {reason}. Once it is, `ashep work` closes the issue here")
    else:
        output.say(f"{issue} is not done yet: {reason}. `ashep why {issue}` tells its story")


# --- what is seen while it works ----------------------------------------------------------------------------------


@contextmanager
def _show_progress(state: Path, issue: str) -> Generator[Any]:
    """Show the story line by line, and below it what runs now."""
    if not output.colours():
        yield progress
        return
    console, line = Console(highlight=False), RunLine(state, issue)
    with console.status(line, refresh_per_second=2):
        try:
            yield partial(print_above, console)
        finally:
            line.signs.end()


def print_above(console: Console, text: str) -> None:
    """Print a line with the time, above the one that is written over."""
    console.print(f"{current_time().astimezone():%H:%M:%S} {output.one_line(text)}", markup=False)


class RunLine:
    """What runs now, for how long, its last sign of life and its cost: read whenever the line is drawn."""

    def __init__(self, state: Path, issue: str) -> None:
        self.signs = Signs(state)
        self._state, self._issue, self._text = state, issue, "beginning"

    def __rich__(self) -> Text:
        with suppress(AshepError, OSError, sqlite3.Error):  # it begins, or ends
            with closing(open_read_only(self._state)) as database:
                runs, standing = status.under_way(database), status.read_issue(database, self._issue)
            if standing is not None:
                sections = status.sections([standing], runs, self.signs.known, current_time())
                words = [word for section in sections for row in section.rows for word in row]
                cost = sum(run["cost"] or 0 for run in runs.values())
                words += [money(cost)]
                self._text = ", ".join(filter(None, words)) or evidence.landing(standing["landing"])
        return Text(output.one_line(self._text))


# --- its questions ------------------------------------------------------------------------------------------------


def _ask(project: Path, standing: json_types.IssueJson) -> bool:
    """Ask a person what the issue asks, and write the answer; false: not now."""
    question, issue = standing["question"], standing["issue"]
    if question is None:
        return False
    output.say()
    output.say_painted((f"{issue} asks:", "bold"), (question["text"], None))
    for number, option in enumerate(question["options"], 1):
        output.say(f"  {number}  {option}")
    if question["kind"] == "input":
        words = typer.prompt("Your answer (Enter: later)", default="", show_default=False).strip()
        write = partial(answers.say, issue=issue, text=words, at=current_time(), leads_back=True)
        if words:
            answers.write_as_person(configured(project), write)
        return bool(words)
    if proof := evidence.in_short(standing["verification"]):
        output.say(f"  checks: {proof}")
    output.say(_diff(project, issue, "--stat=100"))
    while True:
        reply = typer.prompt(
            "y: yes, d: the diff, l: later, or say what to change", default="", show_default=False
        ).strip()
        if reply.lower() in DIFF:
            output.say(_diff(project, issue, "--patch"))
            continue
        if reply.lower() in LATER:
            return False
        approved = reply.lower() in YES
        comment = None if approved else reply
        write = partial(answers.answer, issue=issue, approved=approved, comment=comment, at=current_time())
        answers.write_as_person(configured(project), write)
        return True


def _diff(project: Path, issue: str, form: str) -> str:
    """Return what the issue's branch changes; empty where it has none."""
    between = f"HEAD...{branch_of(issue)}"

    async def read() -> bytes:
        return await Git(project).raw("diff", form, between, "--")

    try:
        lines = anyio.run(read).decode(errors="replace").splitlines()
    except AshepError:
        return ""
    more = f"\n… {len(lines) - _MOST_LINES} more lines: `git diff {between}`" if len(lines) > _MOST_LINES else ""
    return "\n".join(line[:_MOST_COLUMNS] for line in lines[:_MOST_LINES]) + more
