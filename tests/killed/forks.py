"""Processes of ashep that begin as forks of one that has imported all of it: importing is half of a short one's time.

`python -m tests.killed.forks` takes a line of JSON after the other: the module to run as a program, its words, its
variables and the file for what it prints. It answers with two numbers, a line each: the pid at once, and in the end how
it ended. Nothing is running in it but that one child, so that a fork is as good as a new process.
"""

import gc
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from ashep import app, audit, daemon
from ashep.cli import commands
from ashep.cli import main as ashep
from tests.killed.life import main as life

PROGRAMS = {"ashep": ashep, "tests.killed.life": life}
IMPORTED = (app, audit, daemon, commands)


class Forked:
    """One process, with what is used of `subprocess.Popen`."""

    def __init__(self, forks: "Forks", pid: int) -> None:
        self.pid, self.returncode, self._forks = pid, 0, forks
        self._ended = False

    def poll(self) -> int | None:
        """How it ended, if it has."""
        if not self._ended and select.select([self._forks.answers], [], [], 0)[0]:
            self.wait()
        return self.returncode if self._ended else None

    def kill(self) -> None:
        """Kill it."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Wait until it has ended, and say how."""
        if not self._ended:
            self.returncode, self._ended = self._forks.answer(), True
        return self.returncode


class Forks:
    """One place's source of processes; one at a time."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        program = (sys.executable, "-m", "tests.killed.forks")
        pipe = subprocess.PIPE
        self._source = subprocess.Popen(program, cwd=folder, env=environ, stdin=pipe, stdout=pipe, text=True, bufsize=1)
        assert self._source.stdout is not None
        self.answers = self._source.stdout

    def start(self, program: str, words: tuple[str, ...], environ: Mapping[str, str], output: Path) -> Forked:
        """Start one of `PROGRAMS`, with these variables and no others."""
        asked = {"program": program, "words": words, "environ": dict(environ), "output": str(output)}
        assert self._source.stdin is not None
        self._source.stdin.write(json.dumps(asked) + "\n")
        return Forked(self, self.answer())

    def answer(self) -> int:
        """Wait for the next number."""
        return int(self.answers.readline())

    def close(self) -> None:
        """End the source; what it started is a session of its own."""
        self._source.communicate()


def _child(program: str, words: list[str], environ: dict[str, str], output: str) -> int:
    os.setsid()
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for mine, number in ((nothing, 0), (file, 1), (file, 2)):
        os.dup2(mine, number)
    os.closerange(3, 64)
    os.environ.clear()
    os.environ.update(environ)
    sys.argv = [program, *words]
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    return PROGRAMS[program]()


def main() -> None:
    gc.collect()
    gc.freeze()
    for line in iter(sys.stdin.readline, ""):
        pid = os.fork()
        if pid == 0:
            code = 70
            try:
                code = _child(**json.loads(line))
            finally:
                os._exit(code)
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
