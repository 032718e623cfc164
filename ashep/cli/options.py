"""What several commands take, and how they find their project."""

from pathlib import Path
from typing import Annotated

import typer

from ashep.cli.place import find_project


def example(*lines: str) -> str:
    """Give the end of a command's help; the mark keeps its lines apart."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Message = Annotated[str | None, typer.Option("--message", "-m", help="A comment on the issue.", metavar="TEXT")]
Issue = Annotated[str, typer.Argument(help="The issue's id.", metavar="ISSUE")]


def project_of(context: typer.Context) -> Path:
    """Give the project's folder."""
    return find_project(context.obj)
