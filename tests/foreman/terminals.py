"""A terminal that a test types into, with a program in its foreground."""

import os
import select
import signal
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

BOUND = 60.0  # seconds


class Typed:
    """A program that has a terminal of its own, as its session's leader."""

    def __init__(
        self, argv: Sequence[str], environ: Mapping[str, str], folder: Path, size: tuple[int, int] = (24, 80)
    ) -> None:
        self._ours, theirs = os.openpty()
        termios.tcsetwinsize(self._ours, size)
        self.before = termios.tcgetattr(self._ours)
        self.process = subprocess.Popen(
            argv, env=dict(environ), cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            preexec_fn=_at_a_terminal,
        )  # fmt: skip
        self._theirs = theirs  # open, so that the terminal lives on to be looked at
        self.said = b""

    def __enter__(self) -> "Typed":
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        os.close(self._ours)
        os.close(self._theirs)

    def types(self, keys: str) -> None:
        """Type it."""
        os.write(self._ours, keys.encode())

    def resize(self, rows: int, columns: int) -> None:
        """Change the window."""
        termios.tcsetwinsize(self._ours, (rows, columns))

    def until(self, words: str, after: int = 0) -> int:
        """Read until it says this; give where that ends."""
        end = time.monotonic() + BOUND
        while (at := self.said.find(words.encode(), after)) < 0:
            self._read()
            assert time.monotonic() < end, f"{words!r} was not said, but {self.said[-2000:]!r}"
        return at + len(words)

    def ends(self) -> int:
        """Wait for the program's end, and give its code; what it says is read meanwhile."""
        end = time.monotonic() + BOUND
        while (code := self.process.poll()) is None:
            self._read()
            assert time.monotonic() < end, f"it does not end; it said {self.said[-2000:]!r}"
        while self._read(0):
            pass
        return code

    def sends_until(self, key: str, fact: Callable[[], object]) -> None:
        """Type a key again and again until something has come of it."""
        end = time.monotonic() + BOUND
        while not fact():
            self.types(key)
            again = time.monotonic() + 1
            while not fact() and time.monotonic() < again:
                self._read()
            assert time.monotonic() < end, f"nothing comes of {key!r}; it said {self.said[-2000:]!r}"

    def reads_until(self, fact: Callable[[], object]) -> None:
        """Wait for something outside; a program whose words nobody reads may wait for that."""
        end = time.monotonic() + BOUND
        while not fact():
            self._read()
            assert time.monotonic() < end, f"it does not come true; it said {self.said[-2000:]!r}"

    @property
    def cooked(self) -> bool:
        """Whether Ctrl-C is a signal: the shell's way, or that of whoever gave the terminal back."""
        return bool(termios.tcgetattr(self._ours)[3] & (termios.ISIG | termios.ECHO))

    @property
    def attributes(self) -> list[object]:
        """How the terminal is set."""
        return termios.tcgetattr(self._ours)

    def _read(self, bound: float = 0.1) -> bool:
        if not select.select([self._ours], [], [], bound)[0]:
            return False
        self.said += os.read(self._ours, 65536)
        return True


def comes_true(fact: Callable[[], object]) -> None:
    """Wait for something outside."""
    end = time.monotonic() + BOUND
    while not fact():
        assert time.monotonic() < end, "it does not come true"
        time.sleep(0.02)


def _at_a_terminal() -> None:
    os.close(os.open(os.ttyname(0), os.O_RDWR))  # who leads a session has for its terminal what it opens first
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may be run by nohup
