r"""Claude Code as a child of the wrapper, with the person's terminal: as if the wrapper were not there.

The child stays in the wrapper's process group, so that Ctrl-C, Ctrl-\, Ctrl-Z and changes of the window reach it from
the terminal itself; the wrapper lets the first two pass it by, and is suspended with it. It dies with the wrapper, by
SIGTERM from the kernel, upon which it gives the terminal back itself (facts/claude-code.md 26). What its shells leave
behind is known by a mark in the environment.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import anyio

from ashep.adapters import processes
from ashep.errors import AshepError, ProgramMissing
from ashep.foreman import keeper
from ashep.foreman.keeper import LEFT_ON, PATIENCE

VARIABLE = "ASHEP_FOREMAN"
"""The environment variable that marks what Claude Code of a worker starts; it holds the worker's folder."""

_SOON = 0.02  # seconds between looks whether a child that was told to has ended
_LOOK = 1.0  # seconds between looks at a child where no signal tells of it
_SETTLE = 0.1  # seconds for a stop of the whole group to have reached us, too
_PDEATHSIG = 1  # PR_SET_PDEATHSIG
_prctl: Callable[..., int] | None = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


class Terminal:
    """The person's terminal, as it was before."""

    def __init__(self) -> None:
        self._before = None
        self._keeper: subprocess.Popen[bytes] | None = None
        with suppress(termios.error, ValueError, OSError):  # standard input is no terminal, or closed
            self._before = termios.tcgetattr(0)

    @contextmanager
    def left_to_child(self) -> Generator[None]:
        """Let what keys send end the child alone; give the terminal back in the end. For the main thread."""
        # a handler, and not SIG_IGN, which the child would inherit
        numbers = (signal.SIGINT, signal.SIGQUIT)
        before = {number: signal.signal(number, _nothing) for number in numbers}
        self._keep()
        try:
            yield
        finally:
            self.restore()
            self.tell(0)
            for number, handler in before.items():
                signal.signal(number, handler)

    def _keep(self) -> None:
        """Start who gives it back where we are killed, and the child with us."""
        if self._before is None:
            return
        *flags, keys = self._before
        said = json.dumps([*flags, [one.decode("latin-1") if isinstance(one, bytes) else one for one in keys]])
        argv = [sys.executable, "-I", "-S", str(Path(keeper.__file__)), said, str(os.getpgrp())]
        with suppress(OSError):  # without one all else goes on
            self._keeper = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=0, process_group=0)

    def tell(self, child: int) -> None:
        """Tell the keeper which child there is; 0: none, and nothing is left to be done."""
        if self._keeper is not None and self._keeper.stdin is not None:
            with suppress(OSError):  # somebody killed it
                self._keeper.stdin.write(b"%d\n" % child)
                self._keeper.stdin.flush()

    def restore(self, *, killed: bool = False) -> None:
        """Set the terminal as it was; `killed`: its user could not take back what it had turned on."""
        if self._before is None:
            return
        with suppress(termios.error, OSError):  # it has been closed
            if os.tcgetpgrp(0) != os.getpgrp():
                return  # in the background: another one has it
            termios.tcsetattr(0, termios.TCSANOW, self._before)  # nobody may read what is still to be shown
            if killed and os.isatty(1):
                os.write(1, LEFT_ON.encode())


class Child:
    """One start of Claude Code."""

    def __init__(self, process: "subprocess.Popen[bytes]", terminal: Terminal) -> None:
        """Use `Child.start`."""
        self._process, self._terminal, self._continued = process, terminal, 0

    @classmethod
    def start(
        cls, argv: Sequence[str | Path], environ: Mapping[str, str], cwd: Path | None, terminal: Terminal
    ) -> "Child":
        """Start it in the main thread: with the thread that starts it a child dies. Raises `AshepError`."""
        parent = os.getpid()
        try:
            process = subprocess.Popen(
                [os.fspath(word) for word in argv],
                env=dict(environ),
                cwd=cwd,
                preexec_fn=lambda: _dies_with(parent),
            )
        except (FileNotFoundError, PermissionError, NotADirectoryError) as error:
            raise ProgramMissing(f"{argv[0]} cannot be started: {error.strerror}") from error
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise AshepError(f"{argv[0]} cannot be started: {error}") from error
        terminal.tell(process.pid)
        return cls(process, terminal)

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether it has."""
        return self._process.poll() is not None

    async def wait(self) -> int:
        """Wait for its end, and give its exit code as a shell does (128 + the signal that ended it).

        Where it alone is stopped we stop, too, so that the shell has its terminal; with us it goes on.
        """
        before = signal.signal(signal.SIGCONT, self._go_on)
        try:
            with anyio.open_signal_receiver(signal.SIGCHLD) as told:
                while (code := self._process.poll()) is None:
                    await self._stop_with_it()
                    with anyio.move_on_after(_LOOK):
                        await anext(told)
        finally:
            signal.signal(signal.SIGCONT, before)
        self._terminal.restore(killed=code < 0)
        return code if code >= 0 else 128 - code

    async def end(self) -> None:
        """End it: SIGTERM, then SIGKILL; it is gone when this returns, whoever is being cancelled."""
        if self.ended:
            return
        self._process.terminate()
        self._send(signal.SIGCONT)
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(PATIENCE):
                await self._gone()
            if not self.ended:
                self._process.kill()
                await self._gone()

    async def _gone(self) -> None:
        while not self.ended:
            await anyio.sleep(_SOON)

    async def _stop_with_it(self) -> None:
        continued = self._continued
        if self._stopped():
            await anyio.sleep(_SETTLE)
            # it was the whole group, as with Ctrl-Z, where we have been continued since
            if continued == self._continued and self._stopped():
                os.kill(os.getpid(), signal.SIGSTOP)

    def _stopped(self) -> bool:
        with suppress(ChildProcessError):  # it has ended meanwhile
            return os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
        return False

    def _go_on(self, _number: int, _frame: FrameType | None) -> None:
        self._continued += 1
        self._send(signal.SIGCONT)

    def _send(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            self._process.send_signal(number)


def _nothing(_number: int, _frame: FrameType | None) -> None: ...


def _dies_with(parent: int) -> None:
    """Have the kernel end this child when its parent ends, which may have come to pass already."""
    if _prctl is not None:
        _prctl(_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(128 + signal.SIGTERM)


async def end_left(folder: Path) -> bool:
    """End what an earlier child of this worker left, and say whether there was anything.

    Not where we are one of them: a shell that Claude Code began, in which a person begins another session.
    """
    if os.environ.get(VARIABLE) == str(folder):
        return False
    return await processes.end(processes.Mark(VARIABLE, str(folder)), AshepError)
