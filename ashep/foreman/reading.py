"""What `ashep foreman` tells and does without a session: its place, its settings, and all that its own options ask."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import JsonValue

from ashep.actions.security import Line
from ashep.foreman.entries import Entry
from ashep.foreman.settings import ForemanSettings
from ashep.redaction import Redaction


@dataclass(frozen=True, slots=True)
class Place:
    """A worker: where its history is, and what was set."""

    worker: str
    folder: Path
    """Of the history; it may not be there yet."""
    settings: ForemanSettings
    settings_path: Path
    """It may not be there."""
    environ: Mapping[str, str]
    home: Path
    template: str
    """The rules, tried."""


def worker_name(given: str | None, environ: Mapping[str, str], directory: Path) -> str:
    """Give the worker's name: what was given, else WORKER_NAME, else the name of the folder; raises `UsageError`."""
    raise NotImplementedError


def load_settings(environ: Mapping[str, str], home: Path) -> ForemanSettings:
    """Read the user's settings; the defaults where there is no such file. Raises `ConfigErrors` with file, line, key.

    A template of the user's own is named by its whole path then.
    """
    raise NotImplementedError


def place_of(worker: str, environ: Mapping[str, str], home: Path) -> Place:
    """Find a worker's place; its name is valid (`worker_name`). Raises `ConfigError` for settings and template."""
    raise NotImplementedError


def printed_prompt(place: Place) -> str:
    """Give what a session that begins now would be told (`--print-prompt`)."""
    raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Told:
    """What `--history` shows."""

    entries: tuple[Entry, ...]
    warnings: tuple[str, ...]
    """Lines that cannot be read: for standard error."""

    def lines(self) -> list[str]:
        """Give it for people."""
        raise NotImplementedError

    def data(self) -> list[JsonValue]:
        """Give it for programs (`--json`)."""
        raise NotImplementedError


def history(place: Place, word: str | None = None) -> Told:
    """Give all that is kept, old first; with a word what holds it, in whatever case (`--history --search WORD`)."""
    raise NotImplementedError


def clear(place: Place, now: datetime) -> str:
    """Let no session be told any more of what was said (`--clear`); give the line that says so.

    Raises `WorkerBusy` where a wrapper runs, in whose session `/clear-worker-history` does the same.
    """
    raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Taken:
    """What was taken over of the older foreman."""

    found: int
    new: int
    unread: tuple[str, ...]
    """What could not be read, each with its file and line."""


def take_over(place: Place, redaction: Redaction) -> Taken:
    """Take over the history of the older foreman, `~/.claude/mini-goal-workers/NAME/` (`--take-over`).

    A second time nothing is new. Raises `UsageError` where there is none, `WorkerBusy` where a wrapper runs.
    """
    raise NotImplementedError


async def doctor(worker: str, environ: Mapping[str, str], home: Path) -> Sequence[Line]:
    """Say of everything that is needed whether it is there, and what to do (`--doctor`).

    As `ashep install` says it: with a line of level `error` the exit code is 1.
    """
    raise NotImplementedError
