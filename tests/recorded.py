"""A made-up world whose facts go into a real journal: state folders to look at."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from ashep.cli.commands import app
from ashep.core.facts.commands import Command
from ashep.core.facts.records import Entry
from ashep.core.facts.vocabulary import Fact
from ashep.core.reconcile.step import step
from ashep.journal.writer import Journal
from ashep.store.writer import Store
from tests.core import given
from tests.core.world_of import MadeUp


class Recorded(MadeUp):
    """A life that is written down."""

    journal: Journal

    def __init__(self, state: Path, **more: Any) -> None:
        super().__init__(**more)
        self.journal = Journal.open(state, given.T0)

    def turn(self, *facts: Fact, everything: bool = False) -> list[Entry]:
        """Hand facts to the core, and make the batch durable."""
        first = self.journal.next_seq
        self.world, entries = step(self.world, facts, self.now, first, everything=everything)
        self.journal.append_now(entries)
        self.jobs += [entry.body for entry in entries if isinstance(entry.body, Command)]
        return entries


def draw(state: Path, journal: Journal) -> None:
    """Draw the database, as a daemon would have left it."""
    Store.open(state, journal).close()


def life(
    state: Path, issues: int = 3, steps: int = 200, *, drawn: bool = True, until: str | None = None, **more: Any
) -> Recorded:
    """Live a life in this state folder and close its journal; `until` the first issue is in this stage."""
    made = Recorded(state, **more)
    made.begin()
    for number in range(1, issues + 1):
        made.open(f"t-{number}")
    for _ in range(steps):
        made.tick()
        first = made.world.flows.get("t-1")
        if until is not None and first is not None and first.stage == until and not made.jobs:
            break
    if drawn:
        draw(state, made.journal)
    made.journal.close()
    return made


def replayed(state: Path, project: Path) -> Callable[..., Any]:
    """Give `ashep replay` in a project that has a copy of the state folder, and none of the YAML files."""
    shutil.copytree(state, project / ".agent-shepherd" / "state")

    def command(*words: str) -> Any:
        return CliRunner().invoke(app, ["-C", str(project), "replay", *words])

    return command
