"""`ashep foreman` over the real `claude` at a terminal of its own, with a scripted model."""

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import anyio

from ashep.adapters import processes
from ashep.demo.model import ModelServer, claude_environment
from ashep.foreman.child import VARIABLE
from tests.conformance.claudes import claude

ROOT = Path(__file__).resolve().parents[2]
KEY = "none-of-yours-20-characters"
LONGEST = 60.0
"""Seconds in which anything that is waited for comes, on a machine with much else to do."""


class Day:
    """A person's folder and home, and the model that answers."""

    def __init__(self, folder: Path, model: ModelServer, settings: str = "") -> None:
        self.model, self.home, self.work = model, folder / "home", folder / "work"
        self.work.mkdir(parents=True)
        config = self.home / ".claude"
        config.mkdir(parents=True)
        trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        known = {
            "hasCompletedOnboarding": True, "projects": {str(self.work): trusted}, "theme": "dark",
            "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
        }  # fmt: skip
        (config / ".claude.json").write_text(json.dumps(known))
        (config / "settings.json").write_text(json.dumps({"permissions": {"allow": ["Bash", "Agent", "Task"]}}))
        if settings:
            (self.home / ".config/ashep").mkdir(parents=True)
            (self.home / ".config/ashep/foreman.yaml").write_text(settings)
        self.state = self.home / ".local/state/ashep/foreman" / self.work.name

    @property
    def environ(self) -> dict[str, str]:
        others = ("ANTHROPIC", "CLAUDE", "XDG_", "ASHEP", "SEARCH_", "CF_", "WORKER_", "TMUX")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(others)}
        own = claude_environment(self.model.url, self.home) | {"ANTHROPIC_API_KEY": KEY, "TERM": "xterm-256color"}
        path = f"{Path(claude()).parent}:{kept.get('PATH', '')}"
        return kept | own | {"PATH": path, "PYTHONPATH": str(ROOT)}

    def history(self) -> list[dict[str, str]]:
        """The lines that are whole."""
        file = self.state / "history.jsonl"
        lines = file.read_text().splitlines(keepends=True) if file.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def marked(self) -> list[tuple[int, int]]:
        """What Claude Code and its shells are, of this worker."""
        return processes.holders_of(processes.Mark(VARIABLE, str(self.state)))

    def sits(self, *words: str, argv: Sequence[str] | None = None) -> "Sitting":
        """Begin; `argv`: another program."""
        return Sitting(self, argv or (sys.executable, "-m", "ashep", "foreman", "--permission-mode", "default", *words))


class Sitting:
    """A start of `ashep foreman` by a shell, as a person's is: the terminal outlives it."""

    def __init__(self, day: Day, argv: Sequence[str]) -> None:
        self.day, self._code = day, day.home / f"code-{len(list(day.home.glob('code-*')))}"
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self._theirs = theirs
        self.before = termios.tcgetattr(theirs)
        self._code.write_text("")
        self._shell = subprocess.Popen(
            ["sh", "-c", '"$@"; echo $? > "$CODE"; exec sleep 1000', "sh", *argv], cwd=day.work,
            env=day.environ | {"CODE": str(self._code)}, stdin=theirs, stdout=theirs, stderr=theirs,
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        self._said = bytearray()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with suppress(OSError):
            while piece := os.read(self._ours, 65536):
                self._said += piece

    @property
    def said(self) -> str:
        return self._said.decode(errors="replace")

    @property
    def code(self) -> int | None:
        """The wrapper's exit code, once it has ended."""
        said = self._code.read_text()
        return int(said) if said.endswith("\n") else None

    @property
    def pid(self) -> int | None:
        """The wrapper, while it is there."""
        return next(iter(below(self._shell.pid)), None) if self.code is None else None

    @property
    def child(self) -> int | None:
        """Claude Code, once it is there; the keeper, and a child before its exec, are Python."""
        found = below(self.pid) if self.pid is not None else []
        return next((one for one in found if "python" not in called(one)), None)

    def types(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def kill(self, *pids: int | None) -> None:
        for pid in pids:
            if pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    async def ended(self) -> int:
        """Its exit code, once it has ended."""
        with anyio.fail_after(LONGEST):
            while (code := self.code) is None:
                await anyio.sleep(0.05)
        return code

    async def is_usable(self) -> bool:
        """Whether its terminal comes to be as it was."""
        with anyio.move_on_after(LONGEST):
            while termios.tcgetattr(self._theirs) != self.before:
                await anyio.sleep(0.05)
            return True
        return False

    def close(self) -> None:
        """End what is at the terminal, and close it."""
        if (wrapper := self.pid) is not None:
            self.kill(wrapper, *below(wrapper))
        self._shell.kill()
        self._shell.wait()
        os.close(self._theirs)
        os.close(self._ours)


def below(pid: int) -> list[int]:
    """The children of a process."""
    with suppress(OSError):
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def called(pid: int) -> str:
    """The name of a process."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text()
    return "python"
