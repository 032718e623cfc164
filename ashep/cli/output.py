"""What is printed: text for people, JSON for programs. Colours and rich tables only on a terminal."""

import json
import os
import signal
import sys
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any, Self

from ashep.core.text import aligned, clean

BROKEN_PIPE = 141
"""The exit code of a program whose reader went away, as a shell tells it (128 + SIGPIPE)."""

_COLOURS = {
    "person": "yellow", "running": "green", "time": "cyan", "parked": "red", "not_eligible": "dim", "closed": "dim",
    "succeeded": "green", "failed": "red", "timed_out": "red", "stalled": "red", "lost": "red", "aborted": "dim",
    "ok": "green", "warning": "yellow", "error": "red",
}  # fmt: skip

_CODES = {"green": "32", "yellow": "33", "red": "31", "cyan": "36", "dim": "2", "bold": "1"}


def _terminal() -> bool:
    return sys.stdout.isatty()


def colours() -> bool:
    """Say whether colours are wanted."""
    return _terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def one_line(text: str) -> str:
    """Give a foreign text as a terminal may show it, on one line."""
    return " ".join(clean(text).split())


def counted(count: int, word: str) -> str:
    """Say how many of a thing there are: `1 tree`, `2 trees`."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def say(text: str = "") -> None:
    """Print a line of text, whatever is in it."""
    sys.stdout.write(clean(text) + "\n")


def say_lines(lines: Iterable[str]) -> None:
    """Print lines of text, as they come."""
    for line in lines:
        say(line)


def note(text: str) -> None:
    """Print a line to standard error: hints, progress and errors."""
    sys.stdout.flush()
    sys.stderr.write(f"ashep: {clean(text)}\n")
    sys.stderr.flush()


def say_look(command: str = "ashep ui") -> None:
    """End what a person reads at a terminal with the command that shows more."""
    if _terminal():
        say(f"look: {command}")


def say_painted(*parts: tuple[str, str | None]) -> None:
    """Print a line of parts, each with its style, where colours are wanted."""
    codes = _CODES if colours() else {}
    texts = (f"\x1b[{codes[style]}m{clean(text)}\x1b[0m" if style in codes else clean(text) for text, style in parts)
    sys.stdout.write(" ".join(texts) + "\n")


def say_finding(severity: str, text: str) -> None:
    """Print a line about something that was found, its severity in its colour."""
    say_painted((severity, {"error": "red", "warning": "yellow"}.get(severity)), (text, None))


def data(value: Any) -> None:
    """Print JSON: laid out for eyes on a terminal, else on one line, which is many times faster."""
    sys.stdout.write(clean(json.dumps(value, indent=2 if _terminal() else None, ensure_ascii=False)) + "\n")


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: rich's on a terminal, aligned text elsewhere."""
    if not _terminal():
        sys.stdout.writelines(f"{line}\n" for line in aligned(columns, rows))
    elif rows:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        made = Table(box=None, pad_edge=False, header_style="bold")
        for place, column in enumerate(columns):
            wide = place >= len(columns) - 2
            made.add_column(column, no_wrap=not wide, overflow="fold" if wide else "ellipsis")
        for line in [[one_line(cell) for cell in row] for row in rows]:
            made.add_row(*(Text(cell, style=_COLOURS.get(cell, "")) for cell in line))
        Console(no_color=not colours(), highlight=False).print(made)


def flush() -> int:
    """Hand everything out; give the exit code for a reader that went away, else 0."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return broken_pipe()
    return 0


def broken_pipe() -> int:
    """Let nothing more be written to a reader that went away, and give the exit code."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    return BROKEN_PIPE


def progress(text: str) -> None:
    """Print a line at once; a reader that went away must not stop the work."""
    try:
        say(text)
        sys.stdout.flush()
    except BrokenPipeError:
        broken_pipe()


@contextmanager
def interrupted_by(number: signal.Signals) -> Generator[None]:
    """Let a signal raise KeyboardInterrupt, whatever handles it else."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(number, interrupt)
    try:
        yield
    finally:
        signal.signal(number, before)


SILENCE = 2.0
"""Seconds after which a person at a terminal is told how far it has got."""

SHOWN = 100
"""Differences that are printed for people; `--json` holds all."""


class ProgressLine:
    """Tells a person at a terminal how far a long command has got, on one line that is written over."""

    def __init__(self, what: str, of: str = "records") -> None:
        self._what, self._of, self._due, self._told = what, of, _seconds() + SILENCE, False

    def __call__(self, count: int) -> None:
        """Say it, if there is somebody to tell and it is time."""
        if sys.stderr.isatty() and _seconds() > self._due:
            self._due, self._told = _seconds() + 0.5, True
            sys.stderr.write(f"\rashep: {self._what} {count:,} {self._of}")
            sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._told:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _seconds() -> float:
    return time.monotonic()  # noqa: TID251 - a command for people, outside of everything that is replayed
