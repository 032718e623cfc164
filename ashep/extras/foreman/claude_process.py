r"""Claude Code as a child of the wrapper, with the person's terminal: as if the wrapper were not there.

The child stays in our process group: Ctrl-C, Ctrl-\, Ctrl-Z and changes of the window reach it from the terminal. It
dies with us, by SIGTERM from the kernel, upon which it gives the terminal back itself (facts/claude-code.md 26).
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import anyio

from ashep.adapters.system import process_table
from ashep.errors import AshepError

VARIABLE = "ASHEP_FOREMAN"
"""The environment variable that marks what Claude Code of a worker starts; it holds the worker's folder."""

LEFT_ON = b"\x1b[?25h\x1b[?1006;1003;1002;1000;1004l\x1b[<u\x1b[?1049l\x1b[>4m\x1b[?2031;2004l"
"""What Claude Code itself takes back as it leaves the terminal, seen at Ctrl-Z: cursor, mouse, focus, keys, screen."""

_PATIENCE = 5.0  # seconds that a child has to end in after SIGTERM; it takes 0.1 as a rule
_prctl: Callable[..., int] | None = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


class Terminal:
    """The person's terminal, as it was before. To be made before there are threads, locks and sockets: it forks."""

    def __init__(self) -> None:
        self._before, self._group, self._keeper = None, os.getpgrp(), -1
        with suppress(termios.error, ValueError, OSError):  # standard input is no terminal, or closed
            self._before = termios.tcgetattr(0)
        if self._before is not None and sys.platform == "linux":
            told, self._keeper = os.pipe()
            if os.fork() == 0:
                try:
                    os.close(self._keeper)
                    self._outlive_wrapper(told)
                finally:
                    os._exit(0)
            os.close(told)

    @contextmanager
    def left_to_child(self) -> Generator[None]:
        """Let what keys send end the child alone; give the terminal back in the end. For the main thread."""
        for number in (signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, lambda _number, _frame: None)  # the child would inherit SIG_IGN
        try:
            yield
        finally:
            self.restore()
            self.tell(0)

    def restore(self, *, killed: bool = False) -> None:
        """Set it as it was, unless a shell has it again; `killed`: its user could not take back what was turned on."""
        with suppress(termios.error, OSError):  # it has been closed
            if self._before is not None and os.tcgetpgrp(0) == self._group:
                termios.tcsetattr(0, termios.TCSANOW, self._before)  # nobody may read what is still to be shown
                os.write(0, LEFT_ON if killed else b"")

    def tell(self, child: int) -> None:
        """Tell who outlives us which child there is now; 0: none, and nothing is left to be done."""
        with suppress(OSError):  # there is nobody
            os.write(self._keeper, b"%d\n" % child)

    def _outlive_wrapper(self, told: int) -> None:
        """Give the terminal back where the wrapper and Claude Code are killed at once."""
        os.setpgid(0, 0)
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        child = None
        while lines := os.read(told, 1000):
            pid, child = int(lines.split()[-1]), None
            with suppress(OSError):  # it has ended
                child = os.pidfd_open(pid) if pid else None
        if child is not None:
            if not select.select([child], [], [], _PATIENCE)[0]:  # the kernel told it to end as the wrapper did
                signal.pidfd_send_signal(child, signal.SIGKILL)
                select.select([child], [], [], _PATIENCE)
            self.restore()
            os.write(0, LEFT_ON)


class Child:
    """One start of Claude Code."""

    def __init__(self, argv: Sequence[str | Path], environ: Mapping[str, str], cwd: Path, terminal: Terminal) -> None:
        """Start it in the main thread: with the thread that starts it a child dies. Raises `AshepError`."""
        try:
            self._process = subprocess.Popen(argv, env=environ, cwd=cwd, preexec_fn=partial(_die_with, os.getpid()))
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise AshepError(f"{argv[0]} cannot be started: {error}") from error
        terminal.tell(self._process.pid)
        self._terminal, self._continued = terminal, 0
        signal.signal(signal.SIGCONT, self._go_on)

    async def wait(self) -> int:
        """Wait for its end, and give its exit code as a shell does. Where it alone is stopped we stop, too."""
        with anyio.open_signal_receiver(signal.SIGCHLD) as signals:
            while (code := self._process.poll()) is None:
                continued = self._continued
                if self._is_stopped():
                    await anyio.sleep(0.1)  # for a stop of the whole group to have reached us
                    # else it was the whole group, as with Ctrl-Z: we were stopped, too, and continued
                    if continued == self._continued and self._is_stopped():
                        os.kill(os.getpid(), signal.SIGSTOP)
                with anyio.move_on_after(1):  # where no signal tells of it
                    await anext(signals)
        self._terminal.restore(killed=code < 0)
        return code if code >= 0 else 128 - code

    async def end(self) -> None:
        """End it: SIGTERM, then SIGKILL; it is gone when this returns, whoever is being cancelled."""
        with anyio.CancelScope(shield=True):
            for number in (signal.SIGTERM, signal.SIGKILL):
                self._process.send_signal(number)
                self._process.send_signal(signal.SIGCONT)
                with anyio.move_on_after(_PATIENCE):
                    while self._process.poll() is None:
                        await anyio.sleep(0.02)  # it takes 0.1 s as a rule

    def _is_stopped(self) -> bool:
        with suppress(ChildProcessError):  # it has ended meanwhile
            return os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
        return False

    def _go_on(self, *_: object) -> None:
        self._continued += 1
        self._process.send_signal(signal.SIGCONT)


def _die_with(parent: int) -> None:
    """Have the kernel end this child when its parent ends, which may have come to pass already."""
    if _prctl is not None:
        _prctl(1, signal.SIGTERM, 0, 0, 0)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(128 + signal.SIGTERM)


async def end_left(folder: Path) -> None:
    """End what an earlier child of this worker left; not where we are of it ourselves: in a shell that Claude began."""
    if os.environ.get(VARIABLE) != str(folder):
        await process_table.end(process_table.ProcessMark(VARIABLE, str(folder)), AshepError)
