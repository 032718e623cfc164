"""Verification from the command line: `ashep verify` carries it out once."""

import tempfile
from contextlib import aclosing
from pathlib import Path
from typing import Annotated

import anyio
import typer

from ashep.actions.verify import CODES, COLUMNS, CheckReport, Outputs, read_checks, read_issue, types
from ashep.actions.verify import verify as carry_out
from ashep.adapters.git.remotes import candidate
from ashep.app import secrets_of
from ashep.cli import output
from ashep.cli.commands import Issue, Json, app, example, project_of
from ashep.cli.context import configured
from ashep.config import settings_in
from ashep.factories import READER, tracker_of, verifier_of

_COLOURS = {"passing": "green", "failing": "red", "blocked": "yellow"}


@app.command(
    epilog=example("ashep verify t-1", "ashep verify t-1 --commit HEAD --base main", "ashep verify t-1 --json")
)
def verify(
    context: typer.Context,
    issue: Issue,
    commit: Annotated[
        str | None,
        typer.Option(metavar="REV", help="What is verified; by default the issue's branch ashep/ISSUE, else HEAD."),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(metavar="REV", help="The commit before the work; by default where the issue's branch began."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run the checks in the issue's acceptance criteria, on a clean checkout of a commit.

    What the daemon knows does not count here: the checks are those that stand there now. Nothing is written to the
    issue, the work tree or the state folder. What a check says holds for the git tree that is printed. Scripts in
    .agent-shepherd are those of the base; without a base, those of the commit itself. With a base it is told as well
    which checks passed before the work, and whether anything was changed; neither makes a check fail.

    Exit codes: 0 passing, 1 failing, 69 where a check could not run or nothing was checked, 2 where the
    checks are wrong.
    """
    project = project_of(context)
    configured(project)
    outputs = Outputs()
    found = _verified(project, issue, (commit, base), outputs)
    if as_json:
        output.data(found.as_json(outputs))
    else:
        output.say_painted((f"{found.issue}:", None), (found.status, _COLOURS[found.status]), (found.counts, None))
        output.say_lines(found.about)
        output.table(COLUMNS, found.rows)
        output.say_lines(found.printed(outputs))
        if found.verification.isolated is False:
            output.note("the checks ran without a sandbox: see `ashep install`")
    raise typer.Exit(CODES[found.status])


def _verified(project: Path, issue: str, revisions: tuple[str | None, str | None], outputs: Outputs) -> CheckReport:
    settings = settings_in(configured(project))

    async def run(scratch: Path) -> CheckReport:
        async with aclosing(tracker_of(project, settings, READER)) as tracker:
            criteria = read_checks(await read_issue(tracker, issue), types(settings))
        commits = await candidate(project, issue, *revisions)
        redaction = secrets_of(settings, lambda _: None)
        verifier = verifier_of(project, settings, outputs.keep, scratch=scratch, redaction=redaction)
        return await carry_out(verifier, issue, criteria, commits)

    with tempfile.TemporaryDirectory(prefix="ashep-verify-", ignore_cleanup_errors=True) as scratch:
        return anyio.run(run, Path(scratch))
