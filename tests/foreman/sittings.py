"""`ashep foreman` at a terminal, over the real `claude` with a scripted model, or over one that is played."""

import fcntl
import json
import os
import pty
import re
import signal
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from itertools import count
from pathlib import Path

import anyio

from ashep.adapters.system import process_table
from ashep.extras.demo.scripted_model import Call, ModelServer, claude_environment
from ashep.extras.foreman.claude_process import VARIABLE
from tests.conformance.claudes import claude

ROOT = Path(__file__).resolve().parents[2]
SHELL = ("bash", "--norc", "--noprofile", "-i")
LONGEST = 60.0  # seconds in which anything that is waited for comes, on a machine with much else to do


def unit(number: int, *, background: bool = False) -> Call:
    asked = {"description": "a unit", "prompt": f"unit {number}", "subagent_type": "foreman:mini-goal-worker"}
    return Call("Agent", asked | {"run_in_background": background})


class Day:
    """A person's folder and home, and the model that answers; without one `claude` is what `plays` made it."""

    def __init__(self, folder: Path, model: ModelServer | None = None, settings: str = "") -> None:
        self.home, self.work, self._bin = folder / "home", folder / "work", folder / "bin"
        self.state = self.home / ".local/state/ashep/foreman" / self.work.name
        for made in (self.home / ".claude", self.home / ".config/ashep", self.work, self._bin):
            made.mkdir(parents=True)
        own = claude_environment(model.url if model else "", self.home)
        known = {
            "hasCompletedOnboarding": True, "projects": {str(self.work): {"hasTrustDialogAccepted": True}},
            "customApiKeyResponses": {"approved": [own["ANTHROPIC_API_KEY"]], "rejected": []},
        }  # fmt: skip
        allowed = {"permissions": {"allow": ["Bash", "Agent", "Task"]}}
        (self.home / ".claude/.claude.json").write_text(json.dumps(known))
        (self.home / ".claude/settings.json").write_text(json.dumps(allowed))
        (self.home / ".config/ashep/foreman.yaml").write_text(settings)
        others = ("ANTHROPIC", "CLAUDE", "XDG_", "ASHEP", "SEARCH_", "CF_", "WORKER_", "TMUX")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(others)}
        path = f"{Path(claude()).parent if model else self._bin}:{kept.get('PATH', '')}"
        own |= {"PATH": path, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "PS1": "$ "}
        self.environ, self._mode = kept | own, ("--permission-mode", "default") if model else ()

    def plays(self, script: str, shell: str = "/bin/sh") -> "Day":
        (self._bin / "claude").write_text(f"#!{shell}\n{script}\n")
        (self._bin / "claude").chmod(0o755)
        return self

    def history(self) -> list[dict[str, str]]:
        file = self.state / "history.jsonl"
        lines = file.read_text().splitlines(keepends=True) if file.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def has(self, kind: str, text: str) -> bool:
        return any(one["kind"] == kind and text in one["text"] for one in self.history())

    def marked(self) -> list[tuple[int, int]]:
        """What Claude Code and its shells are, of this worker."""
        return process_table.holders_of(process_table.ProcessMark(VARIABLE, str(self.state)))

    def sits(self, *words: str, argv: Sequence[str] | None = None, **more: str) -> "Sitting":
        """Begin; `argv`: another program; `more`: of its environment."""
        own = (sys.executable, "-m", "ashep", "foreman", *self._mode, *words)
        return Sitting(argv or own, {**self.environ, **more}, self.work)


class Sitting(AbstractContextManager["Sitting"]):
    """A program that a shell started, as a person's is: the terminal outlives it."""

    def __init__(self, argv: Sequence[str], environ: Mapping[str, str], folder: Path) -> None:
        self._ours, self._theirs = pty.openpty()
        self.resize(40, 120)
        self._before = termios.tcgetattr(self._theirs)
        script = 'trap : INT QUIT; "$@"; echo "ended=$?."; exec sleep 1000'
        self._shell = subprocess.Popen(
            ["env", "--default-signal=HUP", "sh", "-c", script, "sh", *argv],  # the tests may be run by nohup
            cwd=folder, env=environ, stdin=self._theirs, stdout=self._theirs, stderr=self._theirs,
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        self._said = bytearray()
        # a file of its own: what is read when the other one is closed would be the next sitting's
        threading.Thread(target=self._read, args=(os.dup(self._ours),), daemon=True).start()

    def _read(self, ours: int) -> None:
        with suppress(OSError), open(ours, "rb", buffering=0) as shown:
            while piece := shown.read(65536):
                self._said += piece

    def close(self, *_: object) -> None:
        self.kill(self.pid, *process_table.below(self.pid or 0))
        self._shell.kill()
        self._shell.wait()
        os.close(self._theirs)
        os.close(self._ours)

    __exit__ = close

    @property
    def said(self) -> str:
        return self._said.decode(errors="replace")

    def code(self) -> int | None:
        found = re.search(r"ended=(\d+)\.\r?\n", self.said)
        return int(found[1]) if found else None

    def usable(self) -> bool:
        return termios.tcgetattr(self._theirs) == self._before

    @property
    def pid(self) -> int | None:
        return next(iter(process_table.below(self._shell.pid)), None) if self.code() is None else None

    def child(self) -> int | None:
        """Claude Code, once it is there: what else the wrapper has forked is Python."""
        for one in process_table.below(self.pid or 0):
            with suppress(OSError):
                if "python" not in Path(f"/proc/{one}/comm").read_text():
                    return one
        return None

    def types(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def resize(self, rows: int, columns: int) -> None:
        termios.tcsetwinsize(self._ours, (rows, columns))

    def kill(self, *pids: int | None, number: signal.Signals = signal.SIGKILL) -> None:
        for pid in filter(None, pids):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    async def until(self, fact: Callable[[], object], keys: str = "") -> None:
        """Wait for it; these keys are typed every second meanwhile."""
        with anyio.move_on_after(LONGEST):
            for number in count():
                if fact():
                    return
                if number % 20 == 0:
                    self.types(keys)
                await anyio.sleep(0.05)
        raise AssertionError(self.said[-2000:])

    async def says(self, words: str, after: int = 0) -> int:
        await self.until(lambda: words in self.said[after:])
        return self.said.index(words, after) + len(words)

    async def tells(self, words: str) -> None:
        """Type words into the line of Claude Code, and once they stand there send them."""
        self.types("\x15")
        before = len(self.said)
        self.types(words)
        await self.says(words.split()[-1], before)
        self.types("\r")

    async def ended(self, keys: str = "") -> int:
        await self.until(lambda: self.code() is not None, keys)
        return self.code() or 0
