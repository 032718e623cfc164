"""Hand-over: what was planned by day becomes issues for the night. No model reads the plan, and the same plan gives the
same issues: ids are made of it, so that whoever is killed in the midst of it says it again, and nothing doubles.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ashep.foreman.entries import Entry
from ashep.redaction import Redaction


@dataclass(frozen=True, slots=True)
class Proposed:
    """An issue that a step of the plan would become."""

    id: str
    """What its id ends with, behind the database's prefix."""
    title: str
    description: str
    acceptance: str
    after: tuple[int, ...]
    """The places in the plan, from 0, of the steps that it waits for."""


@dataclass(frozen=True, slots=True)
class Handed:
    """What came of it."""

    ids: tuple[str, ...]
    """Of all steps, in the plan's order."""
    new: tuple[str, ...]
    """Those that were created now."""
    untaken: tuple[str, ...]
    """Sentences that say which of them `ashep work` would not take, and why."""


def plan_of(entries: Iterable[Entry]) -> str | None:
    """Give the last plan that was accepted; None: there is none."""
    raise NotImplementedError


def proposed(plan: str) -> tuple[Proposed, ...]:
    """Read a plan. Raises `UsageError` where it is empty or has too many steps."""
    raise NotImplementedError


def shown(steps: Sequence[Proposed], ids: Sequence[str] = ()) -> str:
    """Give the issues as a table for people."""
    raise NotImplementedError


async def hand_over(project: Path, steps: Sequence[Proposed], environ: Mapping[str, str]) -> Handed:
    """Create what is not there yet, as this person.

    Raises `UsageError` where there is no database or this is no person, and what the tracker raises.
    """
    raise NotImplementedError


async def command(project: Path, plan: str | None, arguments: str, environ: Mapping[str, str]) -> str:
    """Answer `/hand-over [yes]` in a session: what would be created, or what was. Raises no error of ours.

    `plan`: `plan_of` the history; `project`: `project_of` the session's folder; `arguments`: what the person typed
    behind the command.
    """
    raise NotImplementedError


async def at_the_terminal(
    project: Path,
    plan: str | None,
    environ: Mapping[str, str],
    *,
    yes: bool,
    say: Callable[[str], None],
    confirm: Callable[[str], bool] | None,
) -> int:
    """Do what `ashep foreman --hand-over` does, and give its exit code. Raises errors of ours.

    `confirm`: asks the person, None: there is no terminal.
    """
    raise NotImplementedError


def read_plan(file: Path, redaction: Redaction) -> str:
    """Read a plan from a file, `-` is the standard input (`--file`). Raises `UsageError`."""
    raise NotImplementedError


def project_of(folder: Path) -> Path:
    """Give the project that a session in this folder is about: the nearest upwards with `.agent-shepherd`, else with a
    database of Beads, else the folder.
    """
    raise NotImplementedError
