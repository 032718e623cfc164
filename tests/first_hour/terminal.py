"""A program at a terminal of its own, what it prints, and what a person types there."""

import os
import re
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


class Terminal:
    """A program that runs at a pty."""

    def __init__(self, argv: Sequence[str | Path], cwd: Path, env: Mapping[str, str]) -> None:
        self._ours, theirs = os.openpty()
        self.process = subprocess.Popen(
            argv, cwd=cwd, env={"TERM": "xterm", "COLUMNS": "150", **env},
            stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        self._raw, self._read = b"", 0
        self.lines = 0
        """How many a person has typed."""
        self._thread = threading.Thread(target=self._collect, daemon=True)
        self._thread.start()

    def _collect(self) -> None:
        try:
            while part := os.read(self._ours, 65536):
                self._raw += part
        except OSError:
            pass

    @property
    def text(self) -> str:
        """All that was printed, without what moves the cursor."""
        return _ESCAPES.sub("", self._raw.decode(errors="replace"))

    def says(self, words: str, seconds: float = 60.0) -> None:
        """Wait until these words stand behind those that were waited for last."""
        end = time.monotonic() + seconds
        while (place := self.text.find(words, self._read)) < 0:
            is_over = self.process.poll() is not None and not self._thread.is_alive()
            if is_over or time.monotonic() > end:
                raise AssertionError(f"{words!r} was not printed:\n{self.text[self._read :]}")
            time.sleep(0.05)
        self._read = place + len(words)

    def types(self, line: str = "") -> None:
        """Type a line."""
        self.lines += 1
        os.write(self._ours, f"{line}\n".encode())

    def ends(self, seconds: float = 60.0) -> int:
        """Wait for the program's end, and return its exit code."""
        code = self.process.wait(seconds)
        self._thread.join(5)
        os.close(self._ours)
        return code
