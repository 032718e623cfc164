"""Folders of one test run, and the end of every process that was started in them, whatever became of its test."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

RUN = "ASHEP_TESTS_RUN"
"""The variable that names the run to its workers, and to most of what they start."""

SHM = Path("/dev/shm")

QUICK = {"GOGC": "off", "GOMAXPROCS": "1", "BUN_JSC_useFTLJIT": "0", "BUN_JSC_useConcurrentGC": "0"}
"""Variables with which bd and OpenCode do the same with less: most live a moment only, and there are thousands of them.
A call of bd costs 134 ms of processor and not 204 (the first alone: 147), the start of a server 1.41 s and not 1.55."""


def memory(run: str | None = None) -> Path:
    """Where this run's folders in memory are; on a disk where the machine has no such place."""
    root = SHM if os.access(SHM, os.W_OK) else Path(tempfile.gettempdir())
    run = run or os.environ.get(RUN)
    return root / f"ashep-tests-{run}" if run else root


def made(prefix: str = "tmp") -> Path:
    """Make a new folder, in memory where the machine has such a place."""
    above = memory()
    above.mkdir(exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=f"{prefix}-", dir=above))


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@cache
def has_bubblewrap() -> bool:
    """Whether bubblewrap is there, and may make namespaces."""
    argv = ["bwrap", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--unshare-all", "true"]
    return shutil.which("bwrap") is not None and subprocess.run(argv, capture_output=True).returncode == 0


def checked() -> str:
    """What config.yaml says so that what an issue's text names is run: nothing where there is a sandbox for it."""
    return "" if has_bubblewrap() else "verification: {sandbox: none}\n"


def called(*words: str) -> list[int]:
    """Processes with this command line, whoever started them."""
    wanted, found = "".join(f"{word}\0" for word in words).encode(), list[int]()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile
            if (process / "cmdline").read_bytes() == wanted:
                found.append(int(process.name))
    return found


def living_in(*folders: Path, run: str | None = None) -> list[int]:
    """Processes whose working directory or environment is below one of these folders, or which belong to the run."""
    words = [f"{folder}/".encode() for folder in folders]
    mark = f"\0{RUN}={run}\0".encode()
    found = list[int]()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is somebody else's
            environ = b"\0" + (process / "environ").read_bytes() + b"\0"
            cwd = os.fsencode(os.readlink(process / "cwd")) + b"/"
            if any(cwd.startswith(word) or word in environ for word in words) or (run and mark in environ):
                found.append(int(process.name))
    return found


def sweep(*folders: Path, run: str | None = None) -> dict[int, str]:
    """Kill what lives there; one look more, since what is killed may just have started something. Give who it was."""
    killed = dict[int, str]()
    for _ in range(3):
        left = [pid for pid in living_in(*folders, run=run) if pid not in (os.getpid(), os.getppid(), *killed)]
        for pid in left:
            killed[pid] = _words(pid)
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not left:
            break
    return killed


def _words(pid: int) -> str:
    """Say what a process is."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()[:300]
    except OSError:
        return "it has ended"


def end_run(run: str, *folders: Path) -> dict[int, str]:
    """End a whole run: no process of it lives, its folders in memory are gone."""
    killed = sweep(memory(run), *folders, run=run)
    shutil.rmtree(memory(run), ignore_errors=True)
    return killed
