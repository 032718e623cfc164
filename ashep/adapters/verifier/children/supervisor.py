"""Run one program within limits, keep the ends of what it prints, and leave no process of it: `python -I -S` runs this.

It adopts what a program leaves behind (Linux: a child subreaper), so that a child with a session of its own ends, too.
It ends with everything below it on SIGTERM, and when the process that started it has died.

Standard input: an order, marshalled. Standard output: a line of words, then the bytes whose numbers that line tells.
It starts for each program again: modules that take long to import (json, contextlib, typing) would be half of its time.
"""

import ctypes
import marshal
import os
import resource
import select
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Order = dict[str, Any]

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_LOOK = 0.05  # seconds between looks at how many processes there are
_END = 10.0  # seconds for killed processes to be gone; one that hangs in the kernel must not hang us
_CHUNK = 64 * 1024
_MOST_REPORTED = 4 * 1024 * 1024
_THREADS = 4096  # threads beyond those that the machine has now: a second bound where the user is not root
REPORT = 3
"""The file descriptor to which a program of ours writes what it found, where the order says so."""


class _Passing:
    """What contextlib calls suppress: these errors mean that there is nothing to do."""

    def __init__(self, *errors: type[Exception]) -> None:
        self._errors = errors

    def __enter__(self) -> None:
        """Nothing is prepared."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, self._errors)


class _Ends:
    """The beginning and the end of what a program printed."""

    def __init__(self, size: int) -> None:
        self.size, self.total, self.head, self.tail = size, 0, bytearray(), bytearray()

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = max(self.size - len(self.head), 0)
        self.head += data[:room]
        self.tail += data[room:]
        if len(self.tail) > 4 * self.size:
            del self.tail[: -self.size]

    def close(self) -> None:
        if len(self.tail) > self.size:
            del self.tail[: -self.size]


# --- processes ----------------------------------------------------------------------------------------------------


def _prctl(option: int, value: int) -> None:
    with _Passing(AttributeError, OSError):  # no Linux
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with _Passing(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with _Passing(OSError), open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                found += map(int, file.read().split())
    return found


def _descendants() -> list[int]:
    """Everything below this process, parents first."""
    found = _children(os.getpid())
    for pid in found:  # grows while it is read
        found += _children(pid)
    return found


def _sum_memory(pids: list[int]) -> int:
    """Bytes of memory that processes hold, without what they share. Address space does not count: node, Go and the JVM
    reserve far more of it than they use.
    """
    pages = 0
    for pid in pids:
        with _Passing(OSError, ValueError, IndexError), open(f"/proc/{pid}/statm", "rb") as file:
            _, resident, shared = map(int, file.read().split()[:3])
            pages += resident - shared
    return pages * os.sysconf("SC_PAGE_SIZE")


def _reap(main: int) -> int | None:
    """Take leave of what has ended; gives the exit status of the program itself once it is among them."""
    status = None
    with _Passing(ChildProcessError):
        while True:
            pid, ended = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == main:
                status = os.waitstatus_to_exitcode(ended)
    return status


def _kill_all(main: int) -> int | None:
    """Kill everything below this process; gives the program's exit status if it had not ended before.

    A group first, which the system kills in one go however fast it grows, then what left its group.
    """
    status, deadline = None, time.monotonic() + _END
    with _Passing(OSError):
        os.killpg(main, signal.SIGKILL)
    while time.monotonic() < deadline:
        found = _reap(main)
        status = status if found is None else found
        left = _descendants()
        if not left:
            break
        for pid in left:
            with _Passing(OSError):
                group = os.getpgid(pid)
                if group != os.getpgrp():
                    os.killpg(group, signal.SIGKILL)
            with _Passing(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)
    return status


# --- the program --------------------------------------------------------------------------------------------------


def _limit(kind: int, value: int) -> None:
    _, most = resource.getrlimit(kind)
    value = value if most == resource.RLIM_INFINITY else min(value, most)
    resource.setrlimit(kind, (value, value))


def _restrain(order: "Order") -> None:
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, order["file_size"])
    with _Passing(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write(str(order["oom"]))
    with _Passing(OSError, ValueError, IndexError), open("/proc/loadavg", encoding="ascii") as file:
        _limit(resource.RLIMIT_NPROC, int(file.read().split()[3].split("/")[1]) + _THREADS)


def _file(data: bytes) -> int:
    file = os.memfd_create("input")
    os.write(file, data)
    os.lseek(file, 0, os.SEEK_SET)
    return file


def _start(order: "Order", out: int, report: int | None) -> tuple[int, int]:
    """Start the program in a session of its own; gives its id and 0, or an errno where it could not be started."""
    stdin = _file(order["stdin"].encode()) if order["stdin"] else os.open(os.devnull, os.O_RDONLY)
    at, calls = order["filter"] or (0, b"")
    forbidding = _file(calls) if calls else None
    failed, failing = os.pipe()  # both close by themselves when the program starts
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            _restrain(order)
            os.dup2(stdin, 0)
            os.dup2(out, 1)
            os.dup2(out, 2)
            if report is not None:
                os.dup2(report, REPORT)
            if forbidding is not None:
                os.dup2(forbidding, at)
            os.chdir(order["cwd"])
            os.execvpe(order["argv"][0], order["argv"], order["env"])
        except OSError as error:
            os.write(failing, str(error.errno).encode())
        finally:
            os._exit(127)
    os.close(failing)
    os.close(stdin)
    said = os.read(failed, 16)
    os.close(failed)
    return pid, int(said or b"0")


def _watch(order: "Order", main: int, out: int, ends: _Ends, signals: int) -> tuple[str, int | None]:
    """Read what the program prints until it has ended or breaks a limit; gives why, and its exit status."""
    deadline = time.monotonic() + order["timeout"]
    look, isopen = time.monotonic() + _LOOK, True
    while True:
        now = time.monotonic()
        wait = max(min(deadline, look) - now, 0)
        ready, _, _ = select.select([signals, *([out] if isopen else [])], [], [], wait)
        if out in ready:
            data = os.read(out, _CHUNK)
            isopen = bool(data)
            ends.add(data)
        if signals in ready and signal.SIGTERM in os.read(signals, 512):
            return "ended", None
        if (status := _reap(main)) is not None:
            return "exited", status
        if ends.total > order["output"]:
            return "output", None
        if (now := time.monotonic()) >= deadline:
            return "timeout", None
        if now >= look:
            below = _descendants()
            if len(below) > order["processes"]:
                return "processes", None
            if order["memory"] is not None and _sum_memory(below) > order["memory"]:
                return "memory", None
            look = now + _LOOK


def _note(number: int, frame: object) -> None:
    """Do nothing: a signal with a handler wakes the watch."""


def _main() -> None:
    signals, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, _note)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    order: Order = marshal.loads(sys.stdin.buffer.read())  # from the verifier, which runs in the same Python
    if os.getppid() != order["parent"]:
        return
    report = os.memfd_create("report") if order["report"] else None
    out, printing = os.pipe()
    began, ends = time.monotonic(), _Ends(order["keep"])
    main, errno = _start(order, printing, report)
    os.close(printing)
    reason, status = ("missing", None) if errno else _watch(order, main, out, ends, signals)
    took = time.monotonic() - began
    last = _kill_all(main)
    code = last if status is None else status
    os.set_blocking(out, False)  # nothing of the program lives: what is in the pipe is all
    with _Passing(BlockingIOError):
        while ends.total <= order["output"] and (data := os.read(out, _CHUNK)):
            ends.add(data)
    ends.close()
    found = b""
    if report is not None:
        os.lseek(report, 0, os.SEEK_SET)
        found = os.read(report, _MOST_REPORTED)
    words = (reason, "-" if code is None else code, errno, took, ends.total, len(ends.head), len(ends.tail))
    line = " ".join(map(str, words)).encode()
    sys.stdout.buffer.write(line + b"\n" + ends.head + ends.tail + found)


if __name__ == "__main__":
    _main()
