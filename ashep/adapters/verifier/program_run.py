"""Run a program of a check: supervised, within limits, what it prints capped and without secrets."""

import marshal
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from ashep.adapters.sandboxes.bubblewrap import system_calls
from ashep.adapters.system import programs
from ashep.adapters.verifier.sandbox import FILTER
from ashep.core.text import clean
from ashep.errors import AshepError
from ashep.redaction import Redaction

KEPT = 128 * 1024
"""Bytes that are kept of the beginning of what a check prints, and as many of its end."""
PRINTED = 64 * 1024 * 1024
"""Bytes that a check may print; one that prints more is ended."""
PROCESSES = 512
"""Processes that a check may have at once; one that has more is ended."""
FILE_SIZE = 4 * 1024**3
"""Bytes that a file may have which a check writes."""

OOM = 800
"""What is added to how readily the kernel kills a check when memory runs out, up to 1000: before all else here."""

CHILDREN = Path(__file__).parent / "children"
_MARGIN = 4096  # bytes beyond what is kept: a secret that the cut goes through stands there
_PATIENCE = 15.0  # seconds that the supervisor has to end everything
_WORDS = 7  # of the supervisor's line
_START = 30.0  # seconds for the supervisor itself, next to the program
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
Reason = Literal["exited", "timeout", "output", "processes", "memory", "missing", "ended"]


@dataclass(frozen=True, slots=True)
class Ran:
    """A program that has ended, or was ended."""

    reason: Reason
    """Why it ended: by itself; a limit; it could not be started."""
    code: int | None
    """Its exit code; the number of a signal below zero."""
    errno: int
    """Why it could not be started."""
    seconds: float
    output: str
    """What it printed on both streams; of much of it the beginning and the end."""
    report: bytes
    """What a program of ours found."""


async def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout: float,
    redaction: Redaction,
    stdin: str = "",
    report: bool = False,
    memory: int | None = None,
    sandboxed: bool = False,
) -> Ran:
    """Run a program; whatever ends the call, nothing of what it started lives then. Raises `AshepError`.

    `memory`: bytes that its processes may hold together. `sandboxed`: it is bubblewrap, and finds at `FILTER` what
    system calls may be made.
    """
    order = {
        "argv": list(argv), "cwd": str(cwd), "env": dict(env), "timeout": timeout, "stdin": stdin, "report": report,
        "keep": KEPT + _MARGIN, "output": PRINTED, "processes": PROCESSES, "file_size": FILE_SIZE,
        "memory": memory and int(memory), "oom": OOM,
        "parent": os.getpid(), "filter": (FILTER, system_calls()) if sandboxed else None,
    }  # fmt: skip
    done = await programs.run(
        [*python(), CHILDREN / "supervisor.py"],
        cwd=cwd,
        env={},
        timeout=timeout + _START,
        stdin=marshal.dumps(order),
        patience=_PATIENCE,
    )
    line, _, rest = done.stdout.partition(b"\n")
    words = line.decode(errors="replace").split(" ")
    if len(words) != _WORDS:
        said = clean(done.stderr.decode(errors="replace"))[-300:]
        raise AshepError(f"the supervisor of {argv[0]} ended with exit code {done.returncode}: {said}")
    reason, code, errno, seconds, *sizes = words
    total, head, tail = map(int, sizes)
    output = render_output(rest[:head], rest[head : head + tail], total, redaction)
    ended = None if code == "-" else int(code)
    return Ran(cast(Reason, reason), ended, int(errno), float(seconds), output, rest[head + tail :])


def python() -> tuple[str, ...]:
    """The interpreter, without the settings and libraries of anybody; nothing is written next to its programs."""
    return (sys.executable, "-I", "-S", "-B")


def render_output(head: bytes, tail: bytes, total: int, redaction: Redaction) -> str:
    """Make the text of what was printed: without secrets, and without what acts on a terminal.

    Secrets go first, then a margin where the middle was left out: in it stands what is left of one that was cut.
    """
    if total <= len(head) + len(tail):
        return _text(redaction.data(head + tail))
    first, last = _text(redaction.data(head)[:-_MARGIN]), _text(redaction.data(tail)[_MARGIN:])
    return f"{first}\n… {total} bytes were printed; the middle is left out …\n{last}"


def _text(data: bytes) -> str:
    text = _ESCAPES.sub("", data.decode(errors="replace").replace("\r\n", "\n"))
    return clean(text.replace("\r", "\n"))
