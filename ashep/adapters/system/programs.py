"""Find and run other programs: the one place that starts processes.

Every process gets a group of its own, a time limit and closed (or given) standard input, and nothing of its group
outlives the call: a stopped `bd` would block every other `bd` (facts/beads.md 7). A descendant that makes a session of
its own is out of reach.
"""

import asyncio
import os
import re
import shutil
import signal
import sys
from asyncio import StreamReader, create_subprocess_exec, subprocess
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread

from ashep.adapters.system import process_table
from ashep.core.policy.disk_limits import LOW_DISK, room
from ashep.errors import AshepError, PrintedTooMuch, ProgramMissing, ProgramTimedOut

BD_VERSION = "1.3.0"
CLAUDE_VERSION = "2.1.330"
CLAUDE_ACP_VERSION = "0.101.0"
OPENCODE_VERSION = "1.18.33"
OUTPUT_LIMIT = 64 * 1024 * 1024
"""The most that a program may print on one stream, in bytes."""
TAKEN_LIMIT = 16 * OUTPUT_LIMIT
"""The same where its output is taken while it prints, and not kept."""
LONGEST = 600.0
"""Seconds after which a program is ended that was given more time because it works (`longest` of `run`)."""

_IN_CACHE = {
    "bd": Path(f"bd-{BD_VERSION}", "bd"),
    "bwrap": Path("bubblewrap", "usr", "bin", "bwrap"),
    "claude": Path(f"claude-{CLAUDE_VERSION}", "node_modules", "@anthropic-ai", "claude-code-linux-x64", "claude"),
    "claude-agent-acp": Path(f"claude-agent-acp-{CLAUDE_ACP_VERSION}", "node_modules", ".bin", "claude-agent-acp"),
    "opencode": Path(f"opencode-{OPENCODE_VERSION}", "node_modules", ".bin", "opencode"),
}
_CHUNK = 64 * 1024
_DRAIN = 5.0  # seconds for what is still in the pipes of a program that has ended
_WATCH = 0.1  # seconds between looks whether a program with open pipes has ended
_SOON = 0.01  # seconds between looks whether a program that was asked to end has done so
TO_CLEAN_UP = 2.0
"""Seconds that git gets to take its locks away: one that is killed leaves them, and each later git stops at them."""
_VERSION = 30.0  # seconds for a program to print its version
_REAP = 10.0  # seconds for a killed process to be gone; one that hangs in the kernel must not hang us


@contextmanager
def no_thread_each() -> Generator[None]:
    """Have the system say when a program has ended; Python 3.11 keeps a thread for each that runs.

    To be entered before the event loop begins; loops of other threads start no programs meanwhile. From 3.12 on it is
    so wherever the system can.
    """
    if sys.version_info >= (3, 12):
        yield
        return
    with suppress(OSError, AttributeError):  # a system that cannot
        os.close(os.pidfd_open(os.getpid()))
        asyncio.set_child_watcher(asyncio.PidfdChildWatcher())  # pyright: ignore[reportDeprecated] - not yet there
    try:
        yield
    finally:
        asyncio.set_child_watcher(asyncio.ThreadedChildWatcher())  # pyright: ignore[reportDeprecated] - as before


@dataclass(frozen=True, slots=True)
class Finished:
    """A program that has ended by itself; a negative return code is the signal that ended it."""

    returncode: int
    stdout: bytes
    stderr: bytes


def tools_cache() -> Path:
    """Give the per-user folder that requirements/setup.py puts bd, opencode and claude into."""
    configured = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(configured) if os.path.isabs(configured) else Path.home() / ".cache") / "ashep" / "tools"


def candidates(name: str) -> list[Path]:
    """List where a program is, best first: PATH (or the path itself, where the name is one), then the tools cache.

    bd is in the environment of ashep itself, too, where the wheel ashep-bd put it there: before the cache.
    """
    on_path = shutil.which(name) or (shutil.which(name, path=os.path.dirname(sys.executable)) if name == "bd" else None)
    cached = tools_cache() / _IN_CACHE[name] if name in _IN_CACHE else None
    found = [Path(on_path)] if on_path else []
    return [*found, cached] if cached is not None and os.access(cached, os.X_OK) else found


def find(name: str) -> Path | None:
    """Find a program on PATH, then in the tools cache. Whether its version will do is the caller's question."""
    return next(iter(candidates(name)), None)


def lack_of(name: str) -> str:
    """Say that a program is not on this machine; empty: it is."""
    return "" if find(name) else f"{name} is neither on PATH nor in the tools cache {tools_cache()}"


async def run(
    argv: Sequence[str | Path],
    *,
    cwd: Path | None,
    env: Mapping[str, str] | None,
    timeout: float,
    stdin: bytes | None = None,
    patience: float = 0.0,
    take: Callable[[bytes], None] | None = None,
    pass_fds: Sequence[int] = (),
    longest: float = 0.0,
) -> Finished:
    """Run a program to its end and give its exit code and output.

    `env` is the whole environment (None: ours). Whatever ends the call, the program's process group is dead then; one
    that ends what it has started itself gets SIGTERM first, and `patience` seconds for that. `take` gets what stands on
    standard output in pieces of at most 64 KiB, as they come and with others let run between; none of it is kept then.
    `pass_fds`: open files that it inherits. `longest`: a program that works at its bound is slow, and gets twice that,
    up to so many seconds.

    Raises:
        ProgramMissing: there is no such program, or it may not be started.
        ProgramTimedOut: it had not ended after `timeout` seconds, or at the bound that it had then.
        PrintedTooMuch: it printed more than OUTPUT_LIMIT bytes, or TAKEN_LIMIT where they are taken.
        AshepError: it could not be started for a reason of the system's.

    """
    name = str(argv[0])
    feed = subprocess.DEVNULL if stdin is None else subprocess.PIPE
    process = await _start(argv, cwd=cwd, env=env, stdin=feed, pass_fds=pass_fds)
    outputs = _Output(OUTPUT_LIMIT if take is None else TAKEN_LIMIT, take), _Output(OUTPUT_LIMIT)
    finished, bound = False, _Bound(timeout, longest)
    try:
        with anyio.move_on_after(max(timeout, longest)) as limit:
            await _converse(process, stdin, outputs, partial(bound.watch, process, limit))
            finished = True
    finally:
        await _end(process, patience)
    if not finished and limit.cancelled_caught:
        raise ProgramTimedOut(f"{name} had not ended after {bound.seconds:g} s; it was killed with its process group")
    for output in outputs:
        if output.size > output.limit:
            raise PrintedTooMuch(f"{name} printed more than {output.limit // 1024**2} MiB; it was killed")
    assert process.returncode is not None  # _converse waited for it
    return Finished(process.returncode, bytes(outputs[0].kept), bytes(outputs[1].kept))


async def ask_version(command: Sequence[str | Path], env: Mapping[str, str] | None = None) -> Finished:
    """Run a program that is to print its version; on a slow machine it gets longer. Raises as `run` does."""
    return await run([*command, "--version"], cwd=None, env=env, timeout=_VERSION, longest=LONGEST)


@dataclass(slots=True)
class _Bound:
    """The seconds that a program has; one that works gets twice as many, up to the longest."""

    seconds: float
    longest: float

    async def watch(self, process: subprocess.Process, limit: anyio.CancelScope) -> None:
        """End the conversation at a bound at which the program does not work."""
        began = anyio.current_time()
        while self.seconds < self.longest:
            await anyio.sleep_until(began + self.seconds / 2)  # to start takes processor time, whatever follows
            before = await anyio.to_thread.run_sync(process_table.processor_time, process.pid)
            await anyio.sleep_until(began + self.seconds)
            if not await anyio.to_thread.run_sync(process_table.is_working, process.pid, before):
                limit.cancel()
                return
            self.seconds = min(self.seconds * 2, self.longest)


class _Output:
    def __init__(self, limit: int, take: Callable[[bytes], None] | None = None) -> None:
        self.kept, self.size, self.limit, self._take = bytearray(), 0, limit, take

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        if self._take is None:
            self.kept += piece
        else:
            self._take(piece)


async def _start(
    argv: Sequence[str | Path],
    *,
    cwd: Path | None,
    env: Mapping[str, str] | None,
    stdin: int,
    pass_fds: Sequence[int],
) -> subprocess.Process:
    process = None
    try:
        with anyio.CancelScope(shield=True):  # cancelled half-way it would leave a process that nobody knows
            process = await create_subprocess_exec(
                *map(str, argv),
                cwd=cwd,
                env=env,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                pass_fds=tuple(pass_fds),
            )
    except (FileNotFoundError, PermissionError, NotADirectoryError) as error:
        if cwd is not None and not await anyio.Path(cwd).is_dir():
            raise AshepError(f"{cwd} is not a folder; {argv[0]} cannot be run in it") from error
        raise ProgramMissing(f"{argv[0]} cannot be started: {error.strerror}") from error
    except (OSError, ValueError) as error:  # too many files or arguments; a NUL in an argument
        raise AshepError(f"{argv[0]} cannot be started: {error}") from error
    assert process is not None  # the shield lets nothing but errors through
    return process


async def _converse(
    process: subprocess.Process,
    stdin: bytes | None,
    outputs: tuple[_Output, _Output],
    watch: Callable[[], Coroutine[Any, Any, None]],
) -> None:
    """Feed and read the program until it has ended and its pipes are empty."""
    assert process.stdout is not None and process.stderr is not None
    async with anyio.create_task_group() as others:
        others.start_soon(_watch, process, others.cancel_scope)
        others.start_soon(watch)
        if stdin is not None:
            others.start_soon(_feed, process, stdin)
        async with anyio.create_task_group() as readers:
            readers.start_soon(_read, process, process.stdout, outputs[0])
            readers.start_soon(_read, process, process.stderr, outputs[1])
        await process.wait()
        others.cancel_scope.cancel()


async def _watch(process: subprocess.Process, scope: anyio.CancelScope) -> None:
    """End the conversation with a program that has ended while somebody else holds its pipes open.

    Only `returncode` tells: asyncio's own wait() waits for the pipes too.
    """
    while process.returncode is None:
        await anyio.sleep(_WATCH)
    _kill_group(process)
    scope.deadline = anyio.current_time() + _DRAIN


async def _read(process: subprocess.Process, stream: StreamReader, output: _Output) -> None:
    while chunk := await stream.read(_CHUNK):
        output.add(chunk)
        if output.size > output.limit:
            _kill_group(process)
            return
        await anyio.lowlevel.checkpoint()  # a pipe that is always full would keep all others waiting


async def _feed(process: subprocess.Process, data: bytes) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError, ConnectionResetError):  # it need not read what it is given
        process.stdin.write(data)
        await process.stdin.drain()
        process.stdin.close()  # asyncio's wait_closed(), when it is cancelled, fails later in the loop, where nobody is


async def _end(process: subprocess.Process, patience: float) -> None:
    """Kill what is left of the process group and reap the program, whoever is being cancelled."""
    if patience and process.returncode is None:
        with suppress(ProcessLookupError):
            process.terminate()
        with anyio.move_on_after(patience, shield=True):
            while process.returncode is None:
                await anyio.sleep(_SOON)
    _kill_group(process)
    with anyio.move_on_after(_REAP, shield=True):
        await process.wait()
    # asyncio has no public way to close the pipes that an escaped descendant keeps open
    process._transport.close()  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue, reportUnknownMemberType]


def _kill_group(process: subprocess.Process) -> None:
    # PermissionError is how macOS says that only a zombie is left.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


_NO_SPACE = "No space left on device"
_FULL = re.compile(
    rf"{_NO_SPACE}|Out of diskspace|Disk quota exceeded|Read-only file system|unable to write file", re.I
)


def says_full(said: str) -> str:
    """Give the words in which a program says that a disk takes nothing more; empty where it says no such thing."""
    found = _FULL.search(said)
    return found[0] if found else ""


async def full_disk(said: str, at: Path) -> str:
    """Say of a program that failed, on one line, that the disk takes nothing more, and what to do; empty: it does.

    Not every program says so: whether the disk of the folder `at` is full, or must not be written to, is looked at.
    """
    return _advise(says_full(said) or await anyio.to_thread.run_sync(_state_of_disk, at, 0), at)


async def little_room(at: Path, *, was_little: bool) -> str:
    """Say on one line that a disk takes nothing more, or hardly anything, and what to do; empty: there is room.

    `was_little`: it said so at the last look, and more must be free than what it took to say so.
    """
    floor = 2 * LOW_DISK if was_little else LOW_DISK
    return _advise(await anyio.to_thread.run_sync(_state_of_disk, at, floor), at)


def _advise(full: str, at: Path) -> str:
    todo = "make room there, for bytes and for files, or let it be written to; it is tried again"
    return full and f"{full}, on the disk of {at}: {todo}"


def _state_of_disk(folder: Path, floor: int) -> str:
    try:
        found = os.statvfs(folder)
    except OSError:
        return ""
    if found.f_flag & os.ST_RDONLY:
        return "Read-only file system"
    left = room(found.f_bavail * found.f_frsize, found.f_files, found.f_favail)
    return "" if left >= max(floor, 1) else f"{_NO_SPACE} but {left // 1024} KiB" if left else _NO_SPACE
