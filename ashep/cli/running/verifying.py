"""Verification from the command line: `ashep verify` carries it out once, `ashep serve` for others."""

import tempfile
from contextlib import aclosing
from pathlib import Path
from typing import Annotated

import anyio
import typer

from ashep.actions.verify import Outputs, Verified, of, seen, types
from ashep.actions.verify import verify as carry_out
from ashep.adapters.git.remotes import candidate
from ashep.app import secrets_of
from ashep.cli import screen
from ashep.cli.commands import Issue, Json, app, example, project_of
from ashep.cli.place import configured
from ashep.config import settings_in
from ashep.connect import READER, tracker_of, verifier_of
from ashep.core.facts.delivery import summary_of

PROVES_NOTHING = "; it passed before the work, too, and proves nothing"

_COLOURS = {"passing": "green", "failing": "red", "blocked": "yellow"}

CODES = {"passing": 0, "failing": 1, "blocked": 69}
"""Exit codes; 69 is that of an audit, too, that could not look at everything."""

SHOWN = 20
"""Lines of what a check printed that are shown to people, the last ones; `--json` holds all."""


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
    """Carry out the checks in the issue's acceptance criteria, on a clean checkout of a commit.

    What the daemon knows does not count here: the checks are those that stand there now. Nothing is written to the
    issue, the work tree or the state folder. What a check says holds for the git tree that is printed. Scripts in
    .agent-shepherd are those of the base; without a base, those of the commit itself. With a base it is told as well
    which checks passed before the work, and whether anything was changed; neither makes a check fail.

    Exit codes: 0 passing, 1 failing, 69 where a check could not be carried out or nothing was checked, 2 where the
    checks are wrong.
    """
    project = project_of(context)
    configured(project)
    outputs = Outputs()
    found = _verified(project, issue, (commit, base), outputs)
    if as_json:
        screen.data(found.as_json(outputs))
    else:
        _say(found, outputs)
    raise typer.Exit(CODES[found.status])


def _verified(project: Path, issue: str, revisions: tuple[str | None, str | None], outputs: Outputs) -> Verified:
    settings = settings_in(configured(project))

    async def run(scratch: Path) -> Verified:
        async with aclosing(tracker_of(project, settings, READER)) as tracker:
            criteria = of(await seen(tracker, issue), types(settings))
        commits = await candidate(project, issue, *revisions)
        redaction = secrets_of(settings, lambda _: None)
        verifier = verifier_of(project, settings, outputs.keep, scratch=scratch, redaction=redaction)
        return await carry_out(verifier, issue, criteria, commits)

    with tempfile.TemporaryDirectory(prefix="ashep-verify-", ignore_cleanup_errors=True) as scratch:
        return anyio.run(run, Path(scratch))


def _say(found: Verified, outputs: Outputs) -> None:
    made, base = found.verification, found.candidate.base
    summary = summary_of(made.results)
    counts = f"{summary.passed} passed, {summary.failed} failed, {summary.skipped} skipped"
    screen.say_painted((f"{found.issue}:", None), (found.status, _COLOURS[found.status]), (f"({counts})", None))
    since = f"since {base[:12]}" if base else "without a base"
    screen.say(f"{found.candidate.name}: commit {made.commit[:12]}, {since}, tree {made.tree}")
    if found.changed is False:
        screen.say("it changes nothing: its tree is that of its base")
    rows = [
        (
            one.check_id,
            one.status,
            f"{one.duration_ms} ms",
            one.message + (PROVES_NOTHING if one.proves_nothing else ""),
        )
        for one in made.results
    ]
    screen.table(("CHECK", "STATUS", "TOOK", "FOUND"), rows)
    for one in made.results:
        printed = outputs.text(one.output).rstrip("\n")
        if one.status in ("failed", "error") and printed:
            screen.say(f"{one.check_id} printed:")
            for line in printed.split("\n")[-SHOWN:]:
                screen.say(f"    {line}")
    if made.isolated is False:
        screen.note("the checks ran without a sandbox: see `ashep install`")


@app.command(epilog=example("ashep serve", "ashep serve --port 0", "ashep serve --token-env VERIFIER_TOKEN"))
def serve(
    context: typer.Context,
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="The port; 0: one that is free.")] = 8090,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen on: loopback.")] = "127.0.0.1",
    token_env: Annotated[
        str | None, typer.Option("--token-env", metavar="NAME", help="Take the token from this variable.")
    ] = None,
) -> None:
    """Answer requests to verify issues, until told to stop (SIGTERM, Ctrl-C).

    Every request gives a token: that of the variable, else one that is written into the state folder, for this user
    alone, when there is none yet; its place is printed. GET /openapi.json describes the endpoints. Repositories are
    those that `verification.repositories` names, by default the project alone. What a verification comes to is written
    into the issue's metadata. A daemon may run beside it; it does not need one.

    Exit codes: 0 stopped, 1 the port is taken, 2 configuration or usage.
    """
    from ashep.http.serving import Wanted
    from ashep.http.serving import serve as listen

    project = project_of(context)
    folder = configured(project)
    listen(project, folder, settings_in(configured(project)), Wanted(host, port, token_env), screen.progress)
