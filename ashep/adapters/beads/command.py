"""One call of bd: its environment, its bound, its lock, and what its failures mean.

bd tells of a failure on either stream, as text or as JSON, and tells of success with exit 0 where there was none
(facts/beads.md 8), so that an answer counts only once it has been parsed.
"""

import os
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread
from pydantic import BaseModel, ValidationError

from ashep.adapters.beads.json_stream import Rows
from ashep.adapters.beads.schema import CallError, Version
from ashep.adapters.system import process_table, programs
from ashep.adapters.system.filesystems import identify_file
from ashep.adapters.system.tool_sources import how_to_get
from ashep.core.text import clean
from ashep.errors import (
    AshepError,
    ClaimLost,
    GuardTripped,
    ProgramMissing,
    ProgramTimedOut,
    TrackerError,
    TrackerMissing,
    TrackerRefused,
    TrackerUnavailable,
)
from ashep.ports.tracker import LONGEST_CALL
from ashep.redaction import Redaction

_OLDEST = (1, 3, 0)
_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")
_GUARD = 13  # facts/beads.md 6
_SHOWN = 300  # of a message that nobody can place
_DROPPED = ("BD_JSON_ENVELOPE", "BEADS_MAX_ROWS", "BD_DEBUG")
"""Settings of the user's shell that change what bd prints: wrapped, cut off, with other lines between."""

_MEMORY = {"GOGC": "400", "GOMEMLIMIT": "1GiB"}
"""What a call of bd may hold: it is over before it has collected much, and lets its heap grow to five times what it
uses and not to two, to a GiB at most. The user's own settings count. docs/benchmarks.md says what that saves."""

_READS = frozenset({"version", "list", "ready", "show", "history", "config", "where"})
AGAIN = 2
"""How often a read that failed is made again before that counts."""

_WRITES = frozenset({"update", "comment", "create", "dep", "heartbeat", "reclaim"})
_Hook = Callable[[], Awaitable[None]]
_T = TypeVar("_T")
_M = TypeVar("_M", bound=BaseModel)


class UnknownIssue(TrackerRefused):
    """bd knows no issue of this id."""


class AlreadyThere(TrackerRefused):
    """There is an issue of that id already."""


class NothingWritten(TrackerUnavailable):
    """bd did not work, and said so before it wrote anything."""


class TimedOut(TrackerUnavailable):
    """bd did not end in time."""


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
        self.around_writes: tuple[_Hook, _Hook] | None = None
        """What is called just before a write of ours begins, and just after it succeeded."""
        self._worked = False
        self._version: tuple[tuple[object, ...], str] = (), ""

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
        kept = {name: value for name, value in os.environ.items() if name not in _DROPPED}
        return _MEMORY | kept | ours

    @property
    def mark(self) -> process_table.ProcessMark:
        """What tells the calls of this actor in this project from all other processes."""
        actor = f"--actor={self.actor}"
        return process_table.ProcessMark("ASHEP_TRACKER_CALL", f"{self.actor} {self.project}", actor)

    async def argv(self, *arguments: str) -> list[str]:
        """Give the whole command line; raises TrackerMissing where there is no such program."""
        program = await anyio.to_thread.run_sync(programs.find, self._command[0])
        if program is None:
            todo = await anyio.to_thread.run_sync(how_to_get, "bd")
            raise self._absent(f"{self._command[0]} is not on PATH nor in the tools cache: {todo}")
        return [str(program), *self._command[1:], f"--actor={self.actor}", *arguments]

    def _absent(self, why: str) -> AshepError:
        """Say that there is no such program: one that was there may be in the midst of being replaced."""
        return NothingWritten(why) if self._worked else TrackerMissing(why)

    async def version(self, *, again: bool = False) -> str:
        """Give the program's version. It is asked only where another program stands there than when it was asked,
        and, with `again`, only where it was asked before (else it is empty).

        Raises as `call` does, and TrackerMissing where it is too old.
        """
        program, (asked, known) = await anyio.to_thread.run_sync(self._program), self._version
        if (program == asked) if known else again:
            return known
        version = parse(Version, await self.call("version", "--json")).version
        numbers = _VERSION.match(version)
        if numbers is None:
            raise TrackerUnavailable(f"bd says that its version is {clean(version)!r}")
        if tuple(map(int, numbers.groups())) < _OLDEST:
            raise TrackerMissing(f"bd {version} is too old: ashep needs bd {'.'.join(map(str, _OLDEST))} or later")
        self._version = program, version
        return version

    def _program(self) -> tuple[object, ...]:
        """Say by what is on the disk which program answers: another one stands there where this differs."""
        found = [programs.find(self._command[0]), *map(self.project.joinpath, self._command[1:])]
        return tuple((path, identify_file(path)) for path in found if path is not None)

    async def _persist(self, subcommand: str, call: Callable[[], Awaitable[_T]]) -> _T:
        """Make a call. A read that failed is made again at once, but for one that took long: that was dear enough."""
        began = anyio.current_time()
        for _ in range(AGAIN if subcommand in _READS else 0):
            try:
                return await call()
            except TimedOut:
                raise
            except TrackerUnavailable:
                if anyio.current_time() - began > self._timeout / 2:
                    raise
                # no two daemons that met at the store choose the same moment
                digest = sha256(f"{self.actor} {self.calls.total()}".encode()).digest()
                await anyio.sleep(0.05 + 0.2 * int.from_bytes(digest[:4]) / 2**32)
        return await call()

    async def call(self, *arguments: str, stdin: str | None = None) -> programs.Finished:
        """Run bd and give what it said if it ended with exit 0.

        Raises:
            TrackerMissing, TrackerRefused, GuardTripped, ClaimLost: it said so in as many words.
            NothingWritten: it said that it could not begin.
            TrackerUnavailable: anything else, a timeout included; a write may have landed.

        """

        async def once() -> programs.Finished:
            finished = await self.attempt(*arguments, stdin=stdin)
            if finished.returncode != 0:
                raise await self._failed(arguments[0], finished)
            return finished

        return await self._persist(arguments[0], once)

    async def rows(
        self,
        read: Callable[[bytes, tuple[str, ...]], _T],
        *arguments: str,
        null: bool = False,
        stdin: str | None = None,
    ) -> tuple[list[_T], dict[str, str]]:
        """Run bd and read the rows of the array that it prints: what `read` makes of them, and why it makes nothing of
        others, by id.

        Raises as `call` does; see `Rows`.
        """

        async def once() -> tuple[list[_T], dict[str, str]]:
            rows = Rows(read, self._redaction)
            finished = await self.attempt(*arguments, stdin=stdin, take=rows.take)
            if finished.returncode != 0:
                finished = replace(finished, stdout=self._redaction.data(bytes(rows.head)))
                raise await self._failed(arguments[0], finished)
            return rows.end(null=null), rows.unread

        return await self._persist(arguments[0], once)

    async def rows_of_one(
        self, read: Callable[[bytes, tuple[str, ...]], _T], *arguments: str, stdin: str | None = None
    ) -> list[_T]:
        """Read the rows of a call about one issue; raises TrackerRefused, too, where one of them cannot be read."""
        rows, unread = await self.rows(read, *arguments, "--json", stdin=stdin)
        for issue, why in unread.items():
            raise TrackerRefused(f"{issue} cannot be read in bd: {why}")
        return rows

    async def attempt(
        self, *arguments: str, stdin: str | None = None, take: Callable[[bytes], None] | None = None
    ) -> programs.Finished:
        """Run bd, whatever its exit code; raises as `call` does for a program that is missing or does not end."""
        if any("\0" in argument for argument in arguments):
            raise TrackerRefused(f"bd {arguments[0]}: a NUL cannot stand on a command line")
        argv = await self.argv(*arguments)
        hooks = self.around_writes if arguments[0] in _WRITES else None
        async with self.lock:
            self.calls[arguments[0]] += 1
            if hooks is not None:
                await hooks[0]()
            finished = await self._run(argv, None if stdin is None else stdin.encode(errors="replace"), take)
            if hooks is not None and finished.returncode == 0:
                await hooks[1]()
        return finished

    async def _failed(self, subcommand: str, finished: programs.Finished) -> AshepError:
        """Say what a failed call means; on a full disk bd says that in many words, or ends in a panic."""
        error = _failure(subcommand, finished)
        if type(error) is not TrackerUnavailable:
            return error
        full = await programs.full_disk(finished.stderr.decode(errors="replace"), self.project)
        return TrackerUnavailable(f"bd {subcommand}: {full}") if full else error

    async def _run(
        self, argv: list[str], stdin: bytes | None, take: Callable[[bytes], None] | None
    ) -> programs.Finished:
        bound = self._timeout
        try:
            done = await programs.run(
                argv, cwd=self.project, env=self.env, timeout=bound, stdin=stdin, take=take, longest=LONGEST_CALL
            )
        except ProgramMissing as error:
            raise self._absent(str(error)) from error
        except ProgramTimedOut as error:
            raise TimedOut(str(error)) from error
        except AshepError as error:
            raise TrackerUnavailable(str(error)) from error
        self._worked = self._worked or done.returncode == 0
        return programs.Finished(done.returncode, self._redaction.data(done.stdout), self._redaction.data(done.stderr))


def parse(model: type[_M], finished: programs.Finished) -> _M:
    """Read the object that bd printed; anything that is not what was asked for is TrackerUnavailable.

    An unknown subcommand prints its help with exit 0 (facts/beads.md 8): parsing is the check.
    """
    try:
        return model.model_validate_json(finished.stdout)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "its beginning"
        raise TrackerUnavailable(f"bd's answer is not one of bd 1.3.0: {first['msg']} at {place}") from error


def _failure(subcommand: str, finished: programs.Finished) -> AshepError:
    messages = list(_messages(finished))
    said = clean(next(iter(messages), "no reason"))[:_SHOWN]
    if finished.returncode == _GUARD:
        return GuardTripped(f"bd {subcommand}: {said}")
    for message in messages:
        if "a maintenance operation is running" in message:
            return NothingWritten(f"bd {subcommand}: {said}")
        for pattern, error in _MEANINGS:
            if pattern.match(message):
                hint = "; this project has no Beads database: run `bd init`" if error is TrackerMissing else ""
                return error(f"bd {subcommand}: {said}{hint}")
    return TrackerUnavailable(f"bd {subcommand} ended with exit code {finished.returncode}: {said}")


def _messages(finished: programs.Finished) -> Iterator[str]:
    """Give what a failed call complained of, the most precise first.

    Lines are split at newlines only: bd prints U+2028 and U+0085 as they are (facts/beads.md 8).
    """
    lines = [finished.stdout, *reversed(finished.stderr.split(b"\n"))]
    problems = list[CallError]()
    for line in lines:
        with suppress(ValidationError):
            problems.append(CallError.model_validate_json(line))
    for problem in problems:
        yield from (one.error for one in problem.failed)
    yield from (problem.error for problem in problems)
    yield from (line.decode(errors="replace") for line in finished.stderr.split(b"\n") if line.strip())
