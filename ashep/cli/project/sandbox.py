"""The command that runs a program where agents run: sandbox."""

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import anyio
import typer
from typer.core import TyperCommand

from ashep.adapters.git.workspaces.clones import place_at
from ashep.adapters.git.workspaces.linked import path_of
from ashep.cli.commands import app, complete_name, example, project_of
from ashep.cli.context import configured
from ashep.config import settings_in
from ashep.core.policy.settings import Settings
from ashep.core.state.branches import PREFIX, branch_of
from ashep.errors import AshepError, RunnerError, UsageError
from ashep.factories import inside_of, places_of, sandboxed

_BEHIND = "ashep.behind"


class _Command(TyperCommand):
    """Leaves what stands behind `--` as it is."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[_BEHIND] = args[at + 1 :]
        return super().parse_args(ctx, args[:at])

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- CMD...]"]


@app.command(
    cls=_Command,
    epilog=example("ashep sandbox", "ashep sandbox -- npm --version", "ashep sandbox t-1 -- sh -c 'ls ~ && make test'"),
)
def sandbox(
    context: typer.Context,
    issue: Annotated[
        str | None,
        typer.Argument(
            metavar="ISSUE", callback=complete_name, help="Work in its place, which must stand; a branch will do, too."
        ),
    ] = None,
) -> None:
    """Run a command as an agent of this project would have it, with what it sees and reaches; by default your shell.

    In the place of an issue it is where the agents are: what it changes there, and in their home, they find changed.
    Without ISSUE it has an empty folder and an empty home, which go when it ends; no checkout is made for it.

    Exit codes: the command's; 2 where agents run in no sandbox here.
    """
    project = project_of(context)
    settings = settings_in(configured(project))
    argv = context.meta[_BEHIND] or [os.environ.get("SHELL") or "/bin/sh"]
    if not sandboxed(settings):
        raise UsageError(
            "agents of this project run as you, in no sandbox: in config.yaml set `agents: {sandbox: auto}` and "
            "`worker: {workspace: place}`"
        )
    with ExitStack() as stack:
        if issue is not None:
            place, folder = _place(project, settings, issue), None
        else:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ashep-try-"))).resolve()
            place, folder = scratch / "empty", scratch / "server"
            place.mkdir()
        try:
            inside = anyio.run(inside_of, project, settings, place, folder)
        except RunnerError as error:
            raise UsageError(str(error)) from error
        if inside is None:
            raise UsageError("agents run as you here, for bubblewrap cannot be used: `ashep install` says why")
        if issue is not None:
            top = next((above for above in (project, *project.parents) if (above / ".git").exists()), project)
            place /= project.relative_to(top)
        code = inside.foreground(argv, place)
    raise typer.Exit(code)


def _place(project: Path, settings: Settings, issue: str) -> Path:
    places = places_of(project, settings)
    place = path_of(places, issue if issue.startswith(PREFIX) else branch_of(issue))
    if not place.is_dir() or place_at(places, place) != place.resolve():
        raise AshepError(f"{issue} has no place that stands; `ashep trees open {issue}` makes that of a branch again")
    return place.resolve()
