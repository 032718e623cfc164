"""What the system says about processes: CPU seconds of their own, of what they waited for, and memory."""

import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Spent:
    """CPU seconds."""

    own: float = 0.0
    children: float = 0.0
    """Of programs that it started and waited for."""

    @property
    def all(self) -> float:
        return self.own + self.children

    def __sub__(self, before: "Spent") -> "Spent":
        return Spent(self.own - before.own, self.children - before.children)


def _fields(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat from the third on: the second, the name, may hold anything."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def spent(pid: int) -> Spent:
    """What a process has spent up to now; one that has ended counts as long as nobody has waited for it."""
    user, system, waited_user, waited_system = map(int, _fields(pid)[11:15])
    return Spent((user + system) / TICK, (waited_user + waited_system) / TICK)


def spent_by_tree(root: int) -> float:
    """What a process and all that descends from it have spent."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                parents[int(entry.name)] = int(_fields(int(entry.name))[1])
    total, wanted = 0.0, [root]
    while wanted:
        pid = wanted.pop()
        with suppress(OSError):
            total += spent(pid).all
        wanted += [child for child, parent in parents.items() if parent == pid]
    return total


def peak_memory(pid: int) -> int:
    """The most memory that a process has had resident, in bytes; 0 once it has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


@dataclass(slots=True)
class Watched:
    """A process that has ended."""

    code: int
    spent: Spent
    memory: int


def watch(process: "subprocess.Popen[bytes]", timeout: float) -> Watched:
    """Wait for a process, and see what it has spent before it is gone; kills its group after `timeout` seconds."""
    deadline, memory = time.monotonic() + timeout, 0
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        memory = max(memory, peak_memory(process.pid))
        if time.monotonic() > deadline:
            end(process)
            raise TimeoutError(f"{process.args!r} had not ended after {timeout:g} s")
        time.sleep(0.1)
    found = spent(process.pid)
    return Watched(process.wait(), found, memory)


def end(process: "subprocess.Popen[bytes]", patience: float = 10.0) -> None:
    """End a process that was started with a session of its own, and everything in its group."""
    with suppress(ProcessLookupError):
        process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(patience)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
