"""The plain forms of the commands that only look, without typer, whose import takes longer than the look.

This knows no more than these forms. Whatever it does not understand (another command, `--help`, an option in another
spelling, a mistake) it leaves to typer, so that there is one place that explains and complains. tests/test_cli.py
compares what is taken here with what typer declares.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from ashep import __version__

HELP = Path(__file__).with_name("help.txt")
"""What `ashep --help` prints, made by `tools.commands_page`."""


class Form(NamedTuple):
    """What a command takes, by the parameters of its function in `ashep.cli.reading.look`."""

    flags: dict[str, str]
    numbers: dict[str, str]
    """Options that take a number."""
    place: str | None = None
    """The parameter of its argument."""
    needed: bool = False
    """Whether the argument must be given."""
    words: Mapping[str, str] = MappingProxyType({})
    """Options that take a text."""


FORMS = {
    "status": Form({"--all": "everything", "--json": "as_json", "--watch": "watch"}, {}),
    "runs": Form({"--json": "as_json"}, {"--limit": "limit", "-n": "limit"}, "issue"),
    "show": Form({"--json": "as_json", "--prompt": "prompt"}, {}, "run", needed=True),
    "why": Form({"--json": "as_json"}, {}, "issue", needed=True),
    "usage": Form({"--json": "as_json"}, {}, words={"--by": "by", "--since": "since"}),
    "report": Form({"--json": "as_json", "--markdown": "as_markdown"}, {}, words={"--since": "since"}),
}


def run(arguments: list[str]) -> int | None:
    """Carry out a command in its plain form and give the exit code; None: this is for typer."""
    if arguments in (["--help"], ["-h"]):
        return _print(HELP.read_text(encoding="utf-8"))
    if arguments == ["--version"]:
        return _print(f"ashep {__version__}\n")
    project, rest = _project(arguments)
    if not rest or rest[0] not in FORMS:
        return None
    values = _values(FORMS[rest[0]], rest[1:])
    if values is None:
        return None
    from ashep.cli.reading import look

    command: Callable[..., int] = getattr(look, rest[0])
    return command(project, **values)


def _print(text: str) -> int:
    from ashep.cli.screen import say

    say(text.rstrip("\n"))
    return 0


def _project(arguments: list[str]) -> tuple[Path | None, list[str]]:
    if len(arguments) > 2 and arguments[0] in ("-C", "--project"):
        return Path(arguments[1]), arguments[2:]
    return None, arguments


def _values(form: Form, words: list[str]) -> dict[str, Any] | None:
    values: dict[str, Any] = {}
    left = iter(words)
    for word in left:
        if word in form.flags:
            values[form.flags[word]] = True
        elif word in form.numbers:
            number = next(left, "")
            if not (number.isascii() and number.isdecimal()):
                return None
            values[form.numbers[word]] = int(number)
        elif word in form.words:
            text = next(left, "")
            if not text or text.startswith("-"):
                return None
            values[form.words[word]] = text
        elif word and not word.startswith("-") and form.place and form.place not in values:
            values[form.place] = word
        else:
            return None
    return None if form.needed and form.place not in values else values
