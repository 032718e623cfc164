"""The commands that only look, in their plain forms, without typer, whose import takes longer than the look.

Whatever is no plain form (another command, `--help`, an option in another spelling, a mistake) is left to typer, so
that there is one place that explains and complains.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ashep import __version__

HELP = Path(__file__).with_name("help.txt")
"""What `ashep --help` prints, made by `tools.commands_page`."""

READERS = ("status", "runs", "show", "why", "usage", "report")
"""The commands: functions of `ashep.cli.reading.read_commands`, which declare what each takes."""


def run(arguments: list[str]) -> int | None:
    """Execute a command in its plain form and give the exit code; None: this is for typer."""
    if arguments in (["--help"], ["-h"]):
        return _print(HELP.read_text(encoding="utf-8"))
    if arguments == ["--version"]:
        return _print(f"ashep {__version__}\n")
    has_project = len(arguments) > 1 and arguments[0] in ("-C", "--project")
    project, rest = (Path(arguments[1]), arguments[2:]) if has_project else (None, arguments)
    if rest and rest[0] not in READERS:
        return None
    from ashep.cli.context import FOLDER, find_project

    if not rest and not (find_project(project) / FOLDER).is_dir():
        return None
    from ashep.cli.reading import read_commands

    if not rest:
        return read_commands.overview(project)
    command: Callable[..., int] = getattr(read_commands, rest[0])
    values = values_of(command, rest[1:])
    if values is not None and isinstance(name := values.get("issue"), str):
        from ashep.cli.issue_names import whole

        values["issue"] = whole(project, name)
    return None if values is None else command(project, **values)


def _print(text: str) -> int:
    from ashep.cli.output import say

    say(text.rstrip("\n"))
    return 0


def values_of(command: Callable[..., int], words: list[str]) -> dict[str, Any] | None:
    """Read the words behind a reader's name, as its parameters declare them; None: this is no plain form."""
    from ashep.cli.reading.options import declared

    places = declared(command)
    options = {name: place for place in places for name in place.option.names}
    argument = next((place for place in places if not place.option.names), None)
    values: dict[str, Any] = {}
    left = iter(words)
    for word in left:
        if (place := options.get(word)) is not None:
            value = True if place.kind is bool else _value(place.kind, next(left, ""))
        elif argument is not None and argument.name not in values and word and not word.startswith("-"):
            place, value = argument, word
        else:
            return None
        if value is None:
            return None
        values[place.name] = value
    lacks = argument is not None and argument.default is ... and argument.name not in values
    return None if lacks else values


def _value(kind: Any, word: str) -> int | str | None:
    if kind is int:
        return int(word) if word.isascii() and word.isdecimal() else None
    return None if not word or word.startswith("-") else word
