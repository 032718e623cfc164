"""The process of one attempt of a prompt: started, found again, and ended. All but the ends blocks.

It leads a session of its own, reads its prompt from a file and writes into files, so that it goes on to its end while
no daemon is there (facts/claude-code.md 27). Its environment holds the attempt's name: by that it is found where the
daemon died between its start and the note of it, and so are tools that outlive it, which have sessions of their own
[26].
"""

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import IO

import anyio
import anyio.to_thread

from ashep.adapters.runners.claude.jsonl import text
from ashep.adapters.runners.claude.session_store import Attempt, Process
from ashep.adapters.runners.foreign_json import parse_object
from ashep.adapters.sandboxes import registered_processes
from ashep.adapters.sandboxes.bubblewrap import View
from ashep.adapters.sandboxes.exec import start
from ashep.adapters.sandboxes.profiles import SandboxProfile
from ashep.adapters.system import process_table
from ashep.errors import RunnerUnavailable
from ashep.journal import durable_io

TURN, SECRET = "ASHEP_TURN", "ASHEP_SECRET"
"""Variables of its environment: which attempt it is, and what opens the gate for that."""

RETRIES = "2"
"""How often it asks a provider again that refuses; what comes later is decided elsewhere [32]."""

INSIDE = "inside"
"""What an attempt is noted to be whose process is in a sandbox: the one on record is the first in there."""

_PATIENCE = 3.0  # seconds between the signals that end it
_KILLED = 10.0  # seconds until it is gone after the last
_OTHERS = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_SESSION_ID", TURN, SECRET)
"""What another session of Claude Code, or of ours, gives to what it starts."""

_OWN = {
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",  # no notes from one session to the next
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",  # one result, and no tool that outlives it [8]
    "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "1",  # `@/etc/passwd` in an issue would put that file into the prompt, unasked
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": RETRIES,
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "ENABLE_TOOL_SEARCH": "false",  # the tools are few, and none is looked for first
}


def environment(variables: Mapping[str, str], config: Path, attempt: Attempt, secret: str) -> dict[str, str]:
    """The environment of an attempt's process."""
    inherited = {name: value for name, value in variables.items() if name not in _OTHERS}
    return inherited | _OWN | {"CLAUDE_CONFIG_DIR": str(config), TURN: attempt.name, SECRET: secret}


def begin(
    argv: Sequence[str],
    environ: Mapping[str, str],
    at: Path,
    attempt: Attempt,
    profile: SandboxProfile | None,
    own: Path,
) -> Process:
    """Start an attempt's process in the folder `at`, as a profile says (None: as it is), and write down which it is.

    `own`: the folder of what belongs to its place. Raises `RunnerUnavailable`.
    """
    folder, sandbox, view = attempt.folder, None, View(at, ())
    try:
        if profile is not None:
            if (sandbox := profile.sandbox) is None:
                raise RunnerUnavailable("there is no sandbox")
            readable, writable = (*profile.view.readable, folder), (*profile.view.writable, folder / "asks")
            view = replace(profile.view, at=at, readable=readable, writable=writable)
            attempt.note(INSIDE)
            registered_processes.note(own, mark(attempt), None)
        with (
            (folder / "prompt").open("rb") as prompt,
            _private(folder / "stdout") as stdout,
            _private(folder / "stderr") as stderr,
        ):
            started, first = start(sandbox, view, argv, environ, (prompt, stdout, stderr))
        if first is not None:
            registered_processes.note(own, mark(attempt), (first, process_table.stat(first)[1]))
    except OSError as error:
        raise RunnerUnavailable(f"{argv[0]} cannot be started: {error}") from error
    pid = first or started.pid
    process_table.restrain(pid, 0)
    process = Process(pid=pid, started=process_table.stat(pid)[1])
    record(attempt, process)
    return process


def _private(file: Path) -> IO[bytes]:
    return os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), "wb")


def record(attempt: Attempt, process: Process) -> None:
    """Write down which process an attempt has."""
    durable_io.replace(attempt.folder / "process.json", process.model_dump_json().encode())


def find_process(attempt: Attempt) -> Process | None:
    """The process of an attempt: as it is written down, or, where nobody came to do that, as it is found alive."""
    process = attempt.process()
    if process is None and not attempt.has("swept"):
        holders = process_table.holders_of(mark(attempt))
        if holders and attempt.has(INSIDE):  # the first one put the sandbox up, and is not in it
            holders = [holder for holder in holders if holder[0] in process_table.below(holders[0][0])] or holders
        if holders:
            process = Process(pid=holders[0][0], started=holders[0][1])
    return process


def lives(process: Process | None) -> bool:
    """Whether a process has not ended."""
    return process is not None and process_table.lives(process.pid, process.started)


def runs(attempt: Attempt) -> bool:
    """Whether an attempt's process has not ended."""
    return lives(find_process(attempt))


async def sweep(attempt: Attempt) -> None:
    """End what an attempt's process, which has ended, left behind. Raises `RunnerUnavailable`."""
    if not await anyio.to_thread.run_sync(attempt.has, "swept"):
        await process_table.end(mark(attempt), RunnerUnavailable)
        await anyio.to_thread.run_sync(attempt.note, "swept")


async def stop(attempt: Attempt, process: Process) -> None:
    """End an attempt's process, gently first, and what it started. Raises `RunnerUnavailable`."""
    inside = await anyio.to_thread.run_sync(attempt.has, INSIDE)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        await anyio.to_thread.run_sync(_signal, process, number, inside)
        with anyio.move_on_after(_KILLED if number == signal.SIGKILL else _PATIENCE):
            while await anyio.to_thread.run_sync(lives, process):
                await anyio.sleep(0.02)
            break
    if await anyio.to_thread.run_sync(lives, process):
        raise RunnerUnavailable(f"process {process.pid} does not end")
    await sweep(attempt)


def _signal(process: Process, number: int, inside: bool) -> None:
    """Send it a signal; the first process of a sandbox takes none but the last, which ends all in there."""
    if not lives(process):
        return
    asks = number != signal.SIGKILL
    for pid in process_table.below(process.pid) if inside and asks else (process.pid,):
        with suppress(ProcessLookupError, PermissionError):
            (os.kill if asks or inside else os.killpg)(pid, number)


def mark(attempt: Attempt) -> process_table.ProcessMark:
    """What tells its processes from all others."""
    return process_table.ProcessMark(TURN, attempt.name)


_ENTRY, _ENTRIES = 64 * 1024, 1000  # bytes of an entry in the register of sessions, and entries that are read


def strangers(config: Path, sessions: Sequence[str]) -> dict[str, bool]:
    """Which of these sessions a living process of somebody else's has open, and whether that is at work [28, 29]."""
    busy = dict[str, bool]()
    with suppress(OSError):
        for file in islice((config / "sessions").glob("*.json"), _ENTRIES):
            with suppress(OSError, ValueError), durable_io.opened(file) as opened:
                entry = parse_object(opened.read(_ENTRY)) or {}
                session, began = text(entry, "sessionId"), int(entry.get("procStart") or 0)
                pid = process_table.outside(int(entry.get("pid") or 0), began) if session in sessions else 0
                if pid and not _ours(pid):
                    busy[session] = busy.get(session, False) or text(entry, "status") not in ("idle", "waiting")
    return busy


def _ours(pid: int) -> bool:
    with suppress(OSError):
        return f"\0{TURN}=".encode() in b"\0" + Path(f"/proc/{pid}/environ").read_bytes()
    return False
