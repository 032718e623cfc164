"""The server of the page, of programs and of verification: `ashep serve`; and `ashep ui`, by which people come in."""

import os
import webbrowser
from typing import Annotated

import anyio
import typer

from ashep.actions.answers import answering
from ashep.cli import screen
from ashep.cli.commands import app, example, project_of
from ashep.cli.place import configured
from ashep.config import settings_in

Port = Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="The port; 0: one that is free.")]
Host = Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen on: loopback.")]


@app.command(epilog=example("ashep serve", "ashep serve --port 0", "ashep serve --token-env VERIFIER_TOKEN"))
def serve(
    context: typer.Context,
    port: Port = 8090,
    host: Host = "127.0.0.1",
    token_env: Annotated[
        str | None, typer.Option("--token-env", metavar="NAME", help="Take the token from this variable.")
    ] = None,
) -> None:
    """Answer requests over HTTP, until told to stop (SIGTERM, Ctrl-C): the page, programs, and who has issues verified.

    `ashep ui` lets a person in. A program gives a token: that of the variable, else one that is written into the state
    folder, for this user alone, when there is none yet; its place is printed. It reads everything and has issues
    verified, but it answers nothing that a person is asked. GET /openapi.json describes the endpoints. Repositories are
    those that `verification.repositories` names, by default the project alone. What a verification comes to is written
    into the issue's metadata. A daemon may run beside it; it does not need one.

    Exit codes: 0 stopped, 1 the port is taken, 2 configuration or usage.
    """
    from ashep.http.serving import Wanted
    from ashep.http.serving import serve as listen

    project = project_of(context)
    folder = configured(project)
    listen(project, folder, settings_in(folder), Wanted(host, port, token_env), screen.progress)


@app.command(epilog=example("ashep ui", "ashep ui --open", "ashep ui --port 0"))
def ui(
    context: typer.Context,
    port: Port = 8090,
    host: Host = "127.0.0.1",
    shows: Annotated[bool, typer.Option("--open", help="Open it in a browser, too.")] = False,
) -> None:
    """Print a link by which you come in as yourself: to the page, or with a program of your own. It is good once.

    Where no server of this project listens, one does from now on, here, until Ctrl-C; --host and --port are for that.
    A link is good for two minutes. What you answer there stands in the tracker under your name, as with `ashep
    approve`.

    Exit codes: 0 a link was printed, 1 the port is taken, 2 configuration or usage.
    """
    from ashep.http import entrance
    from ashep.http.serving import Wanted
    from ashep.http.serving import serve as listen

    project = project_of(context)
    folder = configured(project)
    settings = settings_in(folder)
    person = anyio.run(answering, project, settings, os.environ)

    def show(link: str) -> None:
        screen.progress(link)
        if shows:
            webbrowser.open(link)

    link = entrance.ask(folder / "state", person)
    if link is not None:
        show(link)
    else:
        listen(project, folder, settings, Wanted(host, port, None), screen.note, show, person)
