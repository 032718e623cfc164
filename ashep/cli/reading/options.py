"""How a command that only looks declares what it takes: once, for typer and for the fast path, and without typer."""

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, get_args


class Option(NamedTuple):
    """What stands next to the type of a reader's parameter."""

    help: str
    names: tuple[str, ...] = ()
    """Such as `--limit` and `-n`; none: it is the argument."""
    metavar: str | None = None
    least: int | None = None
    """The least number that it takes."""


class Declared(NamedTuple):
    """A parameter of a reader."""

    name: str
    kind: Any
    """bool, int, str or `str | None`."""
    option: Option
    default: Any
    """`...`: it must be given."""


Json = Annotated[bool, Option("Print JSON.", ("--json",))]
Issue = Annotated[str, Option("The issue's id.", metavar="ISSUE")]
Since = Annotated[
    str | None,
    Option(
        "Since when: 18:00, 12h, 2026-01-31, 2026-01-31T18:00; without a zone in this machine's.", ("--since",), "TIME"
    ),
]


def declared(reader: Callable[..., int]) -> list[Declared]:
    """Give the parameters behind the first one, which is the project's folder."""
    code, defaults = reader.__code__, dict(reader.__kwdefaults__ or {})  # to import inspect would cost every look
    defaults |= zip(reversed(code.co_varnames[: code.co_argcount]), reversed(reader.__defaults__ or ()), strict=False)
    names = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    types = ((name, *get_args(reader.__annotations__[name])) for name in names)
    return [Declared(name, kind, option, defaults.get(name, ...)) for name, kind, option in types]
