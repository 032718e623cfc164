"""Databases to test trackers on: one in memory, one of the real bd; in both, people can write too."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from ashep.adapters.beads import BeadsTracker
from ashep.adapters.system import programs
from ashep.extras.simulation.memory.tracker import MemoryTracker
from ashep.extras.testing.worlds import ACTOR
from ashep.ports.tracker import IssueText, Tracker
from tests import databases, places

"""A bd that lives for a moment need not collect its memory: a third less time on the processor."""


EVERYTHING = frozenset({"blocks", "parents", "words", "leases", "hints"})


class MemoryWorld:
    """A database in memory, whose clock ticks a second with every look at it."""

    can, tick, settle = EVERYTHING, 0.0, 0.05

    def __init__(self) -> None:
        self._seconds = 0
        self.tracker = MemoryTracker(self._now, ACTOR)
        self.add, self.person_sets = self.tracker.add, self.tracker.person_sets
        self.person_comments = self.tracker.person_comments

    def _now(self) -> datetime:
        self._seconds += 1
        return datetime.fromtimestamp(1_700_000_000 + self._seconds, UTC)

    def another(self, actor: str) -> Tracker:
        return self.tracker.as_actor(actor)


@dataclass(frozen=True)
class Beads:
    """The real bd, and a database that is copied for each test."""

    program: Path
    template: Path
    home: Path

    @staticmethod
    @cache
    def make(folder: Path) -> "Beads":
        """Make the template, once for all suites of a test session."""
        program = programs.find("bd")
        assert program is not None, "no bd on PATH nor in the tools cache: `make setup`"
        beads = Beads(program.absolute(), folder / "template", folder / "home")
        beads.home.mkdir(parents=True, exist_ok=True)
        databases.copied("t", beads.template)
        return beads

    def copy(self, folder: Path) -> Path:
        shutil.copytree(self.template, folder, symlinks=True)
        return folder

    @property
    def env(self) -> dict[str, str]:
        """The environment of somebody else's bd."""
        private = {"HOME": str(self.home), "PATH": os.environ["PATH"]}
        return private | {"BD_DISABLE_METRICS": "1", "BD_NON_INTERACTIVE": "1"} | places.QUICK

    def bd(self, project: Path, actor: str, *arguments: str, stdin: str = "") -> str:
        """Run bd as somebody else."""
        done = subprocess.run(
            [self.program, f"--actor={actor}", *arguments], cwd=project, env=self.env, input=stdin.encode(),
            capture_output=True, timeout=240,
        )  # fmt: skip
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout.decode()


class BeadsWorld:
    """A database of the real bd, in a folder of its own; it counts whole seconds."""

    can, tick, settle = EVERYTHING, 1.1, 1.5

    def __init__(self, beads: Beads, project: Path) -> None:
        self.beads, self.project = beads, beads.copy(project)
        self.tracker = self.another(ACTOR)

    def another(self, actor: str, timeout: float = 60) -> BeadsTracker:
        return BeadsTracker(self.project, (str(self.beads.program),), actor, timeout)

    def bd(self, actor: str, *arguments: str, stdin: str = "") -> str:
        return self.beads.bd(self.project, actor, *arguments, stdin=stdin)

    def starts(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a bd of somebody else."""
        argv = [self.beads.program, *arguments]
        return subprocess.Popen(argv, cwd=self.project, env=self.beads.env, stdout=subprocess.DEVNULL)

    def add(
        self, title: str, *, id: str | None = None, type: str = "task", priority: int = 2, labels: tuple[str, ...] = (),
        status: str = "open", text: IssueText | None = None, blocked_by: tuple[str, ...] = (),
        parent: str | None = None, actor: str = "person",
    ) -> str:  # fmt: skip
        words = text or IssueText()
        texts = {"design": words.design, "acceptance": words.acceptance, "notes": words.notes}
        flags = [
            f"--title={title}",
            f"--type={type}",
            f"--priority={priority}",
            f"--status={status}",
            *([f"--id={id}"] if id else []),
            *([f"--labels={','.join(labels)}"] if labels else []),
            *([f"--parent={parent}", "--no-inherit-labels"] if parent else []),
            *(f"--deps=blocked-by:{one}" for one in blocked_by),
            *(f"--{name}={value}" for name, value in texts.items() if value),
            *(["--stdin"] if words.description else []),
        ]
        return self.bd(actor, "create", *flags, "--silent", stdin=words.description).strip()

    def person_sets(
        self, issue: str, actor: str, *, status: str | None = None, assignee: str | None = None,
        add_labels: tuple[str, ...] = (), remove_labels: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        flags = [
            *([] if status is None else [f"--status={status}"]),
            *([] if assignee is None else [f"--assignee={assignee}"]),
            *(f"--add-label={label}" for label in add_labels),
            *(f"--remove-label={label}" for label in remove_labels),
        ]
        self.bd(actor, "update", issue, *flags, "--force")

    def person_comments(self, issue: str, actor: str, text: str) -> None:
        self.bd(actor, "comment", issue, "--stdin", stdin=text)
