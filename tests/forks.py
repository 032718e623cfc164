"""Processes of ashep that begin as forks of one that has imported all of it: importing is half of a short one's time.

`python -m tests.forks` takes a line of JSON after the other: the module to run as a program, its words, its variables,
where it is to run, and the files for what it prints. It answers with two lines, which begin with the request's number:
the pid at once, and in the end how it ended. Nothing is running in it but that one child: a fork is as good as a new
process.
"""

import atexit
import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from tests import places

ROOT = Path(__file__).parent.parent


class Forked:
    """One process, with what is used of `subprocess.Popen`."""

    def __init__(self, forks: "Forks", number: int, pid: int) -> None:
        self.pid, self.returncode, self._forks, self._number = pid, 0, forks, number
        self._ended = False

    def poll(self) -> int | None:
        """How it ended, if it has."""
        if not self._ended and (code := self._forks.told((self._number, "ended"), 0)) is not None:
            self.returncode, self._ended = code, True
        return self.returncode if self._ended else None

    def kill(self) -> None:
        """Kill it."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def wait(self, bound: float = 60.0) -> int:
        """Wait until it has ended, and say how; kill it after so many seconds."""
        end = time.monotonic() + bound
        while self.poll() is None:
            if time.monotonic() > end:
                self.kill()
                raise AssertionError(f"process {self.pid} had not ended after {bound:.0f} s")
            self._forks.told((self._number, "ended"), 0.5)
        return self.returncode


class Forks:
    """One place's source of processes; one at a time.

    What it tells is numbered: a test that was interrupted while it waited leaves an answer which nobody asks for.
    """

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        program = (sys.executable, "-m", "tests.forks")
        pipe = subprocess.PIPE
        self._source = subprocess.Popen(program, cwd=folder, env=environ, stdin=pipe, stdout=pipe, bufsize=0)
        self._number, self._rest = 0, b""
        self._told: dict[tuple[int, str], int] = {}

    def start(
        self,
        program: str,
        words: tuple[str, ...],
        environ: Mapping[str, str],
        output: Path,
        errors: Path | None = None,
        folder: Path | None = None,
    ) -> Forked:
        """Start `ashep` or `chaos.killed.life` with these variables and no others; the one before is ended."""
        before = self._told.get((self._number, "began"))
        if before is not None and (self._number, "ended") not in self._told:
            Forked(self, self._number, before).kill()
        self._number += 1
        asked: dict[str, object] = {"program": program, "words": words, "environ": dict(environ)}
        asked |= {"output": str(output), "errors": str(errors or ""), "folder": str(folder or ".")}
        assert self._source.stdin is not None
        self._source.stdin.write(json.dumps(asked).encode() + b"\n")
        pid = self.told((self._number, "began"), 60)
        assert pid is not None, "the source of processes does not answer"
        return Forked(self, self._number, pid)

    def told(self, what: tuple[int, str], bound: float) -> int | None:
        """What was told of that, within so many seconds; None where it was not."""
        assert self._source.stdout is not None
        end = time.monotonic() + bound
        while what not in self._told:
            if not select.select([self._source.stdout], [], [], max(0.0, end - time.monotonic()))[0]:
                return None
            read = os.read(self._source.stdout.fileno(), 4096)
            assert read, "the source of processes has ended"
            *lines, self._rest = (self._rest + read).split(b"\n")
            for line in lines:
                number, kind, value = line.decode().split()
                self._told[int(number), kind] = int(value)
        return self._told[what]

    def run(
        self, words: tuple[str, ...], environ: Mapping[str, str], folder: Path, bound: float = 120.0
    ) -> tuple[int, str, str]:
        """Carry out a command of ashep; give its exit code, and what it printed as output and as errors."""
        with tempfile.TemporaryDirectory() as beside:
            out, err = Path(beside, "out"), Path(beside, "err")
            code = self.start("ashep", words, environ, out, err, folder).wait(bound)
            return code, out.read_bytes().decode(), err.read_bytes().decode()

    def close(self) -> None:
        """End the source; what it started is a session of its own."""
        assert self._source.stdin is not None
        assert self._source.stdout is not None
        self._source.stdin.close()
        try:
            self._source.wait(10)
        except subprocess.TimeoutExpired:
            self._source.kill()
            self._source.wait()
        self._source.stdout.close()


def shared() -> Forks:
    """The source of all that this thread starts one after the other; it ends with the process."""
    return _of(threading.get_ident())


@cache
def _of(_: int) -> Forks:
    source = Forks(ROOT, {name: value for name, value in os.environ.items() if name != places.RUN})
    atexit.register(source.close)
    return source


def _child(
    programs: Mapping[str, Callable[[], int]],
    program: str,
    words: list[str],
    environ: dict[str, str],
    output: str,
    errors: str,
    folder: str,
) -> int:
    os.setsid()
    os.chdir(folder)
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    other = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) if errors else file
    nothing = os.open(os.devnull, os.O_RDONLY)
    for mine, number in ((nothing, 0), (file, 1), (other, 2)):
        os.dup2(mine, number)
    os.closerange(3, 64)
    os.environ.clear()
    os.environ.update(environ)
    time.tzset()
    sys.path[1:1] = [one for one in environ.get("PYTHONPATH", "").split(os.pathsep) if one and one not in sys.path]
    sys.argv = [program, *words]
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    return programs[program]()


def main() -> None:
    from ashep.cli import commands
    from ashep.cli import main as ashep
    from chaos.killed.life import main as life

    programs = {"ashep": ashep, "chaos.killed.life": life}
    commands.whole()
    for name in ("ashep.app", "ashep.actions.audit", "ashep.daemon.daemon"):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    for number, line in enumerate(iter(sys.stdin.readline, ""), 1):
        pid = os.fork()
        if pid == 0:
            code = 70
            try:
                code = _child(programs, **json.loads(line))
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        print(number, "began", pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(number, "ended", os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
