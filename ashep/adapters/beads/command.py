"""One call of bd: its environment, its bound, its lock, and what its failures mean.

bd tells of a failure on either stream, as text or as JSON, and tells of success with exit 0 where there was none
(facts/beads.md 8), so that an answer counts only once it has been parsed.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, TypeVar

import anyio
import anyio.to_thread
from pydantic import BaseModel, TypeAdapter, ValidationError

from ashep.adapters import processes, programs
from ashep.adapters.beads.wire import Problem
from ashep.core.text import clean
from ashep.errors import (
    AshepError,
    ClaimLost,
    GuardTripped,
    ProgramMissing,
    TrackerError,
    TrackerMissing,
    TrackerRefused,
    TrackerUnavailable,
)
from ashep.redaction import Redaction

_GUARD = 13  # facts/beads.md 6
_SHOWN = 300  # of a message that nobody can place
_DROPPED = ("BD_JSON_ENVELOPE", "BEADS_MAX_ROWS", "BD_DEBUG")
"""Settings of the user's shell that change what bd prints: wrapped, cut off, with other lines between."""

_WRITES = frozenset({"update", "comment", "create", "heartbeat", "reclaim"})

_T = TypeVar("_T")
_M = TypeVar("_M", bound=BaseModel)


class Bystander(Protocol):
    """Whoever wants to tell our writes from those of others."""

    async def before_write(self) -> None:
        """Look, just before a write of ours begins."""
        ...

    async def after_write(self) -> None:
        """Look, just after a write of ours succeeded."""
        ...


class UnknownIssue(TrackerRefused):
    """bd knows no issue of this id."""


class AlreadyThere(TrackerRefused):
    """There is an issue of that id already."""


class NothingWritten(TrackerUnavailable):
    """bd did not work, and said so before it wrote anything."""


_BEFORE = r"(?:Error: )?(?:updating issue: |resolving issue: |adding comment: |(?:resolving|heartbeat) [^:]{1,200}: )?"
_MEANINGS: tuple[tuple[re.Pattern[str], type[TrackerMissing | TrackerError]], ...] = tuple(
    (re.compile(f"{_BEFORE}(?:{pattern})"), error)
    for pattern, error in (
        ("no beads database found|no_beads_directory", TrackerMissing),
        ("issue already claimed by|issue not claimable", ClaimLost),
        ("no issues? found matching", UnknownIssue),
        ("cannot close", TrackerRefused),
        ("validation failed|prefix mismatch|title cannot be empty|comment text cannot be empty", TrackerRefused),
        ("[^ ]{1,200} already exists", AlreadyThere),
        ("invalid (?:priority|status|issue type)|.{0,100}cycle", TrackerRefused),
    )
)
"""How bd 1.3.0 begins its messages; anchored, because a message may go on with words that other people chose."""


class Bd:
    """The program, as one actor in one project.

    Calls follow each other: bd lets one process in at a time anyway (facts/beads.md 7), and a queue of our own is fair.
    """

    def __init__(
        self, project: Path, command: tuple[str, ...], actor: str, timeout: float, redaction: Redaction
    ) -> None:
        self.project, self.actor, self._command, self._timeout = project, actor, command, timeout
        self._redaction = redaction
        self.calls: Counter[str] = Counter()
        self.lock = anyio.Lock()
        self.bystander: Bystander | None = None

    @property
    def env(self) -> dict[str, str]:
        """The environment of every call (facts/beads.md 2)."""
        ours = {
            "BD_DISABLE_METRICS": "1",
            "BD_NON_INTERACTIVE": "1",
            "BD_NO_PAGER": "1",
            "BEADS_ACTOR": self.actor,
            self.mark.variable: self.mark.value,
        }
        return {name: value for name, value in os.environ.items() if name not in _DROPPED} | ours

    @property
    def mark(self) -> processes.Mark:
        """What tells the calls of this actor in this project from all other processes."""
        actor = f"--actor={self.actor}"
        return processes.Mark("ASHEP_TRACKER_CALL", f"{self.actor} {self.project}", actor)

    async def argv(self, *arguments: str) -> list[str]:
        """Give the whole command line; raises TrackerMissing where there is no such program."""
        program = await anyio.to_thread.run_sync(programs.find, self._command[0])
        if program is None:
            raise TrackerMissing(f"{self._command[0]} is not on PATH nor in the tools cache (`make setup`)")
        return [str(program), *self._command[1:], f"--actor={self.actor}", *arguments]

    async def call(self, *arguments: str, stdin: str | None = None) -> programs.Finished:
        """Run bd and give what it said if it ended with exit 0.

        Raises:
            TrackerMissing, TrackerRefused, GuardTripped, ClaimLost: it said so in as many words.
            NothingWritten: it said that it could not begin.
            TrackerUnavailable: anything else, a timeout included; a write may have landed.

        """
        finished = await self.attempt(*arguments, stdin=stdin)
        if finished.returncode != 0:
            raise _failure(arguments[0], finished)
        return finished

    async def attempt(self, *arguments: str, stdin: str | None = None) -> programs.Finished:
        """Run bd, whatever its exit code; raises as `call` does for a program that is missing or does not end."""
        if any("\0" in argument for argument in arguments):
            raise TrackerRefused(f"bd {arguments[0]}: a NUL cannot stand on a command line")
        argv = await self.argv(*arguments)
        told = self.bystander if arguments[0] in _WRITES else None
        async with self.lock:
            self.calls[arguments[0]] += 1
            if told is not None:
                await told.before_write()
            finished = await self._run(argv, None if stdin is None else stdin.encode(errors="replace"))
            if told is not None and finished.returncode == 0:
                await told.after_write()
        return finished

    async def _run(self, argv: list[str], stdin: bytes | None) -> programs.Finished:
        try:
            done = await programs.run(argv, cwd=self.project, env=self.env, timeout=self._timeout, stdin=stdin)
        except ProgramMissing as error:
            raise TrackerMissing(str(error)) from error
        except AshepError as error:
            raise TrackerUnavailable(str(error)) from error
        return programs.Finished(done.returncode, self._redaction.data(done.stdout), self._redaction.data(done.stderr))


def parse(model: type[_M], finished: programs.Finished) -> _M:
    """Read the object that bd printed; see `parse_with`."""
    return parse_with(TypeAdapter(model), finished)


def parse_with(adapter: TypeAdapter[_T], finished: programs.Finished) -> _T:
    """Read what bd printed; anything that is not what was asked for is TrackerUnavailable.

    An unknown subcommand prints its help with exit 0 (facts/beads.md 8): parsing is the check.
    """
    try:
        return adapter.validate_json(finished.stdout)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "its beginning"
        raise TrackerUnavailable(f"bd's answer is not one of bd 1.3.0: {first['msg']} at {place}") from error


def _failure(subcommand: str, finished: programs.Finished) -> AshepError:
    """Say what a failed call means."""
    messages = list(_messages(finished))
    said = clean(next(iter(messages), "no reason"))[:_SHOWN]
    if finished.returncode == _GUARD:
        return GuardTripped(f"bd {subcommand}: {said}")
    for message in messages:
        if "a maintenance operation is running" in message:
            return NothingWritten(f"bd {subcommand}: {said}")
        for pattern, error in _MEANINGS:
            if pattern.match(message):
                return error(f"bd {subcommand}: {said}")
    return TrackerUnavailable(f"bd {subcommand} ended with exit code {finished.returncode}: {said}")


def _messages(finished: programs.Finished) -> Iterator[str]:
    """Give what a failed call complained of, the most precise first.

    Lines are split at newlines only: bd prints U+2028 and U+0085 as they are (facts/beads.md 8).
    """
    lines = [finished.stdout, *reversed(finished.stderr.split(b"\n"))]
    problems = [problem for line in lines if (problem := _problem(line)) is not None]
    for problem in problems:
        yield from (one.error for one in problem.failed)
    yield from (problem.error for problem in problems)
    yield from (line.decode(errors="replace") for line in finished.stderr.split(b"\n") if line.strip())


def _problem(text: bytes) -> Problem | None:
    try:
        return Problem.model_validate_json(text)
    except ValidationError:
        return None
