"""docs/cli.md and help.txt, made from the commands' own help: `python -m tools.commands_page` writes both."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ashep.cli.commands import whole
from ashep.cli.fast_path import HELP

_HEAD = """# The command line

This page is made from `ashep --help` (`python -m tools.commands_page`); edit the commands, not the page.
"""


def reference() -> str:
    """Make the page."""
    return "\n".join([_HEAD, *_sections(_context(whole(), "ashep", 100))])


def overview() -> str:
    """Give what `ashep --help` prints."""
    return _help(_context(whole(), "ashep", 80))


def _context(command: Any, name: str, width: int, parent: Any = None) -> Any:
    context = command.make_context(name, [], parent=parent, resilient_parsing=True)
    context.terminal_width = context.max_content_width = width
    return context


def _help(context: Any) -> str:
    return "\n".join(line.rstrip() for line in context.get_help().splitlines()) + "\n"


def _sections(context: Any) -> Iterator[str]:
    yield f"## {context.command_path}\n\n```text\n{_help(context)}```\n"
    for name, command in getattr(context.command, "commands", {}).items():
        yield from _sections(_context(command, name, 100, context))


def main(arguments: list[str]) -> int:
    """Write the page."""
    Path(arguments[0] if arguments else "docs/cli.md").write_text(reference(), encoding="utf-8")
    HELP.write_text(overview(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
