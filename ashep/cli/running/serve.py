"""The server of the page, of programs and of verification: `ashep serve`; and `ashep ui`, by which people come in."""

import io
import os
import sqlite3
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import anyio
import typer

from ashep.actions.answers import answering
from ashep.cli import output
from ashep.cli.commands import Json, app, complete_name, example, matching_ids, project_of
from ashep.cli.context import configured, current_time, picture, read_state
from ashep.config import settings_in
from ashep.core.policy.page_settings import parse_origin
from ashep.errors import AshepError, UsageError
from ashep.views import issue_story, runs
from ashep.views.times import local

Port = Annotated[
    int | None,
    typer.Option(
        min=0, max=65535, metavar="N", show_default="8090, or what it was last",
        help="The port; 0: one that is free.",
    ),
]  # fmt: skip
Host = Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen on: loopback.")]
Socket = Annotated[
    Path | None, typer.Option("--socket", metavar="PATH", help="A unix socket in place of the port, for `ssh -L`.")
]


def matching_pages(context: typer.Context, incomplete: str) -> list[str]:
    """Give the ids that a shell can complete to: those of issues, and with a slash of one's runs."""
    issue, slash, _ = incomplete.partition("/")
    if not slash:
        return matching_ids(context, incomplete)
    with suppress(AshepError, sqlite3.Error, OSError), picture(read_state(context.obj)) as model:
        return [run for run in runs.names(model.database, issue) if run.startswith(incomplete)]
    return []


@app.command(epilog=example("ashep serve", "ashep serve --port 0", "ashep serve --socket ~/ashep.sock"))
def serve(
    context: typer.Context,
    port: Port = None,
    host: Host = "127.0.0.1",
    token_env: Annotated[
        str | None, typer.Option("--token-env", metavar="NAME", help="Take the token from this variable.")
    ] = None,
    socket: Socket = None,
) -> None:
    """Answer requests over HTTP, until told to stop (SIGTERM, Ctrl-C): the page, programs, and who has issues verified.

    `ashep ui` lets a person in. A program gives a token: that of the variable, else one that is written into the state
    folder, for this user alone, when there is none yet; its place is printed. It reads everything and has issues
    verified, but it answers nothing that a person is asked. GET /openapi.json describes the endpoints. Repositories are
    those that `verification.repositories` names, by default the project alone. What a verification comes to is written
    into the issue's metadata. A daemon may run next to it; it does not need one.

    Exit codes: 0 stopped, 1 the port is taken, 2 configuration or usage.
    """
    from ashep.api.server import ListenOptions
    from ashep.api.server import serve as listen

    project = project_of(context)
    folder = configured(project)
    listen(project, folder, settings_in(folder), ListenOptions(host, port, False, token_env, socket), output.progress)


@app.command(
    epilog=example(
        "ashep ui", "ashep ui --open", "ashep ui t-1", "ashep ui t-1/implement.1.1", "ashep ui --pair",
        "ashep ui --devices", "ashep ui --revoke iPhone",
    )
)  # fmt: skip
def ui(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            help="An issue, or a run: the link leads to its page.",
            metavar="ISSUE|RUN",
            show_default=False,
            callback=complete_name,
            autocompletion=matching_pages,
        ),
    ] = "",
    port: Port = None,
    host: Host = "127.0.0.1",
    socket: Socket = None,
    shows: Annotated[bool, typer.Option("--open", help="Open it in a browser, too.")] = False,
    pairs: Annotated[
        bool, typer.Option("--pair", help="For a phone: a QR code, and it is known from then on.")
    ] = False,
    origin: Annotated[
        str | None, typer.Option("--origin", metavar="URL", help="With --pair: where it reaches the server.")
    ] = None,
    listed: Annotated[bool, typer.Option("--devices", help="List paired devices, and browsers that are in.")] = False,
    revoke: Annotated[
        str | None, typer.Option("--revoke", metavar="NAME", help="Let one of them in no more; `all`: none.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print a link by which you come in as yourself: to the page, or with a program of your own. It is good once.

    Where no server of this project listens, one does from now on, here, until Ctrl-C; --host, --port and --socket are
    for that. Where somebody else has port 8090, another project's page say, it takes a free one, says which, and keeps
    to it; not so with `ui.origins`, whose proxies know the port. A link is good for two minutes. What you answer there
    stands in the tracker under your name, as with `ashep approve`.

    With --pair the link is for a phone, by the first of `ui.origins`: proxies with TLS that you put in front. What
    comes in by it acts as you, after a restart of the server, too, until it has asked nothing for twelve hours, or is
    revoked.

    Exit codes: 0 a link was printed, 1 the port is taken, or nothing is known of the issue or run, 2 configuration or
    usage.
    """
    from ashep.actions.systemd_unit import PORT
    from ashep.api import login_links
    from ashep.api.page_port import read_port
    from ashep.api.server import ListenOptions, Person
    from ashep.api.server import serve as listen

    project = project_of(context)
    folder = configured(project)
    if listed or revoke is not None:
        _devices(login_links.devices(folder / "state", revoke, current_time), as_json=as_json)
        return
    if origin is not None and not pairs:
        raise UsageError("--origin: only a device that is paired comes by it; give --pair, too")
    settings, place = settings_in(folder), _find_page(folder / "state", name) if name else ""
    person = anyio.run(answering, project, settings, os.environ)

    leads = {"place": place} if place else {}  # a server of before knows of none

    def show(link: str) -> None:
        if pairs:
            import segno  # for this alone

            drawn = io.StringIO()
            segno.make(link, micro=False).terminal(drawn, compact=True)
            output.progress(drawn.getvalue().rstrip("\n"))
        output.progress(link)
        if shows:
            webbrowser.open(link)

    asked = login_links.ask(folder / "state", {"person": person, "pair": pairs, "origin": origin} | leads)
    if asked is not None:
        show(str(asked["link"]))
        return
    try:
        origins = () if origin is None else (parse_origin(origin),)
    except ValueError as error:
        raise UsageError(f"--origin {origin}: {error}") from error
    if pairs and not (settings.ui.origins or origins):
        raise UsageError(login_links.no_origin(port or read_port(folder / "state") or PORT))
    wanted = ListenOptions(host, port, not (settings.ui.origins or origins), None, socket, origins)
    listen(project, folder, settings, wanted, output.note, Person(person, show, pairs, origin, place))


def _find_page(state: Path, name: str) -> str:
    """Find the page of an issue or a run, by the whole id. Raises `AshepError`."""
    with picture(state) as model:
        issue, _, run = name.partition("/")
        if not runs.knows(model.database, issue):
            raise AshepError(issue_story.explain_unknown(model.database, issue))
        if run and runs.session_of(model.database, name) is None:
            raise AshepError(f"there is no run {name}: `ashep runs {issue}` lists its runs")
    return f"/runs/{name}" if run else f"/issues/{name}"


def _devices(told: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        output.data(told)
        return
    for name in told["revoked"]:
        output.say(f"{name} is let in no more")
    rows = [[one["name"], one["person"], local(one["paired"]), local(one["seen"])] for one in told["devices"]]
    output.table(("device", "as", "paired", "last seen"), rows)
    if not rows:
        output.say("no device is paired")
    browsers = [[row["name"], row["person"], local(row["paired"]), local(row["seen"])] for row in told["browsers"]]
    output.table(("browser", "as", "came in", "last seen"), browsers)
