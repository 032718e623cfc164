"""`ashep serve`: the verifier as a service."""

from typing import Annotated

import typer

from ashep.cli import screen
from ashep.cli.place import configured
from ashep.cli.root import app, example, project_of, settings_of


@app.command(
    short_help="Verify issues for others, over HTTP.",
    epilog=example(
        "ashep serve",
        "ashep serve --port 0",
        "ashep serve --token-env VERIFIER_TOKEN",
    ),
)
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
    listen(project, folder, settings_of(project), Wanted(host, port, token_env), screen.progress)
