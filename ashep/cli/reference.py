"""docs/cli.md and help.txt, made from the commands' own help: `python -m ashep.cli.reference` writes both."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from ashep.cli.commands import app
from ashep.cli.quick import HELP

_HEAD = """# The command line

This page is made from `ashep --help` (`python -m ashep.cli.reference`); edit the commands, not the page.
"""


def reference() -> str:
    """Make the page."""
    return "\n".join([_HEAD, *_sections(_root(), "ashep")])


def overview() -> str:
    """Give what `ashep --help` prints."""
    return _help(_root(), "ashep", 80)


def _root() -> Any:
    return typer.main.get_command(app)


def _help(command: Any, name: str, width: int) -> str:
    context = command.make_context(name, [], resilient_parsing=True)
    context.terminal_width = context.max_content_width = width
    return "\n".join(line.rstrip() for line in command.get_help(context).splitlines()) + "\n"


def _sections(command: Any, name: str) -> Iterator[str]:
    yield f"## {name}\n\n```text\n{_help(command, name, 100)}```\n"
    for sub in getattr(command, "commands", {}).values():
        yield from _sections(sub, f"{name} {sub.name}")


def main(arguments: list[str]) -> int:
    """Write the page."""
    Path(arguments[0] if arguments else "docs/cli.md").write_text(reference(), encoding="utf-8")
    HELP.write_text(overview(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
