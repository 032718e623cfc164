"""Commands that only look, as typer knows them. `quick` takes their plain forms before."""

from typing import Annotated

import typer

from ashep.cli.reading import look
from ashep.cli.root import Issue, Json, app, example

SINCE = "Since when: 18:00, 12h, 2026-01-31, 2026-01-31T18:00; without a zone in this machine's."


@app.command(
    short_help="Say where every issue stands, and why.",
    epilog=example("ashep status", "ashep status --all", "ashep status --watch", "ashep status --json"),
)
def status(
    context: typer.Context,
    everything: Annotated[bool, typer.Option("--all", help="Closed issues, too.")] = False,
    as_json: Json = False,
    watch: Annotated[bool, typer.Option("--watch", help="On a screen that goes on until Ctrl-C.")] = False,
) -> None:
    """Say where every issue stands and why; those that wait for a person come first.

    With --watch on a live screen: what waits for you, what runs, for how long, and when it last showed a sign of life.
    """
    raise typer.Exit(look.status(context.obj, everything=everything, as_json=as_json, watch=watch))


@app.command(short_help="List runs.", epilog=example("ashep runs", "ashep runs t-1", "ashep runs --limit 0 --json"))
def runs(
    context: typer.Context,
    issue: Annotated[str | None, typer.Argument(metavar="ISSUE", help="Only this issue's.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, metavar="N", help="The newest so many; 0: all.")] = 50,
    as_json: Json = False,
) -> None:
    """List runs, the newest first."""
    raise typer.Exit(look.runs(context.obj, issue=issue, limit=limit, as_json=as_json))


@app.command(
    short_help="Show everything about a run.",
    epilog=example("ashep show t-1/implement.1.1", "ashep show t-1/implement.1.1 --prompt"),
)
def show(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run's id: <issue>/<phase>.<visit>.<attempt>.")],
    prompt: Annotated[bool, typer.Option("--prompt", help="The text of its prompts, too.")] = False,
    as_json: Json = False,
) -> None:
    """Show everything that is known of a run."""
    raise typer.Exit(look.show(context.obj, run=run, prompt=prompt, as_json=as_json))


@app.command(short_help="Tell the story of an issue.", epilog=example("ashep why t-1", "ashep why t-1 --json"))
def why(context: typer.Context, issue: Issue, as_json: Json = False) -> None:
    """Tell the story of an issue: what happened, why, and what it is waiting for now."""
    raise typer.Exit(look.why(context.obj, issue=issue, as_json=as_json))


@app.command(
    short_help="Say what runs used: tokens, cost, runs.",
    epilog=example("ashep usage", "ashep usage --by day", "ashep usage --by issue --since 18:00 --json"),
)
def usage(
    context: typer.Context,
    by: Annotated[
        str, typer.Option("--by", metavar="WHAT", help="provider, issue, phase, agent or day (UTC).")
    ] = "provider",
    since: Annotated[str | None, typer.Option("--since", metavar="TIME", help=SINCE)] = None,
    as_json: Json = False,
) -> None:
    """Say what runs used, with a total: tokens, cost in the provider's currency, and how many runs it were.

    A run counts when it ended; one that is under way counts with what was seen of it. Sessions that are used again are
    counted once.
    """
    raise typer.Exit(look.usage(context.obj, by=by, since=since, as_json=as_json))


@app.command(
    short_help="The morning report: what became of the night.",
    epilog=example("ashep report", "ashep report --since 18:00", "ashep report --markdown > report.md"),
)
def report(
    context: typer.Context,
    since: Annotated[str | None, typer.Option("--since", metavar="TIME", help=SINCE)] = None,
    as_json: Json = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
) -> None:
    """Tell what became of the night: what was closed, what waits for you, parked or goes on, cost, limits, servers.

    Every line names the records of the journal that it rests on. By default it begins where the last daemon did, or at
    18:00 of yesterday where that is longer ago than a day.
    """
    raise typer.Exit(look.report(context.obj, since=since, as_json=as_json, as_markdown=as_markdown))
