"""The program's outermost part: what holds for every command, and what several of them need."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ashep import __version__
from ashep.cli import screen
from ashep.cli.place import configured, find_project
from ashep.errors import UsageError

if TYPE_CHECKING:
    from ashep.core.policy.settings import Settings


def example(*lines: str) -> str:
    """Give the end of a command's help; the mark keeps its lines apart."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


app = typer.Typer(
    name="ashep",
    help="Agent Shepherd: takes ready issues from Beads and walks each through a policy with coding agents.",
    epilog="Exit codes: 0 done, 1 a check failed, 2 configuration or usage (or bd is missing), 3 another daemon holds "
    "this project, 65 the journal is damaged, 69 not everything could be checked, 74 the disk failed.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
policies = typer.Typer(help="Look at policies.", no_args_is_help=True, rich_markup_mode=None)
agents = typer.Typer(help="Look at the agent registry.", no_args_is_help=True, rich_markup_mode=None)
notify = typer.Typer(help="Tell people what is worth it.", no_args_is_help=True, rich_markup_mode=None)

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Message = Annotated[str | None, typer.Option("--message", "-m", help="A comment on the issue.", metavar="TEXT")]
Issue = Annotated[str, typer.Argument(help="The issue's id.", metavar="ISSUE")]


@app.callback()
def everywhere(
    context: typer.Context,
    project: Annotated[
        Path | None,
        typer.Option(
            "-C",
            "--project",
            metavar="DIR",
            help="The project's folder; by default the nearest one upwards with .agent-shepherd, else this one.",
        ),
    ] = None,
    version: Annotated[bool, typer.Option("--version", help="Say the version and end.", is_eager=True)] = False,
) -> None:
    """What holds for every command."""
    if version:
        screen.say(f"ashep {__version__}")
        raise typer.Exit
    context.obj = project


def project_of(context: typer.Context) -> Path:
    """Give the project's folder."""
    return find_project(context.obj)


def settings_of(project: Path) -> "Settings":
    """Read config.yaml alone: what needs no more should not stumble over the other files."""
    from ashep.config import read, settled
    from ashep.core.policy.settings import Settings

    file = configured(project) / "config.yaml"
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        text = ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: cannot be read: {error}") from error
    return settled(read(Settings, text, file) if text.strip() else Settings(), project)
