"""Processes that an ashep which is dead by now may have left, told from all others by their environment.

A process is ours if, and only if, its environment holds the mark; a pid alone proves nothing, because the system gives
it to somebody else. Children inherit the mark, so that what a dead server's tools started is found as well.
"""

import fcntl
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import anyio
import anyio.to_thread

from ashep.errors import AshepError


class ProcessMark(NamedTuple):
    """What tells processes from all others."""

    variable: str
    value: str
    argument: str = ""
    """Only those with this argument count: what they started themselves is left alone."""


IDLE = 0.1
"""Seconds of processor time: who used no more since the last look shows no life."""

_TERM = 3.0  # seconds between SIGTERM and SIGKILL
_KILL = 10.0  # seconds until a killed process is gone

OOM = 500
"""What is added to how readily the kernel kills a server and its tools when memory runs out: before the daemon."""

OWN_OOM = -250
"""What is added for the daemon itself."""

OPEN_FILES = 65536
"""Files that a server of ours, and each of its tools, may have open."""

children: dict[int, subprocess.Popen[bytes]] = {}
"""Servers that this process started: to be reaped, else they stay in /proc as zombies."""


def read_stat(pid: int) -> list[str]:
    """Return the fields of `/proc/<pid>/stat` from the third on, behind the name. Raises `OSError` without it."""
    text = Path(f"/proc/{pid}/stat").read_text()
    return text[text.rindex(")") + 2 :].split()


def stat(pid: int) -> tuple[str, int]:
    """A process's state and start time (`/proc/<pid>/stat`, fields 3 and 22); ("X", 0) where there is none."""
    with suppress(FileNotFoundError, ProcessLookupError):
        fields = read_stat(pid)
        return fields[0], int(fields[19])
    return "X", 0


def list_pids() -> list[int]:
    """Return every process; none without /proc."""
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()] if os.path.isdir("/proc/self") else []


def holders_of(mark: ProcessMark) -> list[tuple[int, int]]:
    """Every living process whose environment holds the mark, oldest first, with its start time; none without /proc."""
    wanted, argument = map(os.fsencode, (f"\0{mark.variable}={mark.value}\0", f"\0{mark.argument}\0"))
    found: list[tuple[int, int]] = []
    for pid in list_pids():
        with suppress(OSError):
            if wanted not in b"\0" + Path(f"/proc/{pid}/environ").read_bytes() + b"\0":
                continue
            if not mark.argument or argument in b"\0" + Path(f"/proc/{pid}/cmdline").read_bytes():
                state, started = stat(pid)
                if state not in "ZX":
                    found.append((pid, started))
    return sorted(found, key=lambda holder: (holder[1], holder[0]))


def listeners(port: int) -> set[str] | None:
    """The sockets that would take a connection to a port of 127.0.0.1, as links of `/proc/*/fd` name them.

    None: it cannot be told, without /proc.
    """
    found = [(address, link) for address, number, link in _listening() if number == port]
    if not (NETWORK / "tcp").exists():
        return None
    # who listens at the very address has the connection, and not who listens at all of them
    exact, others = ({link for address, link in found if address in names} for names in (_EXACT, _ALL))
    return exact or others


def _listening() -> Iterator[tuple[str, int, str]]:
    """Give the addresses and ports at which this machine listens, with the sockets as `/proc/*/fd` names them."""
    for table in ("tcp", "tcp6"):
        with suppress(FileNotFoundError):
            for line in (NETWORK / table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENS:
                    address, _, port = fields[1].partition(":")
                    yield address, int(port, 16), f"socket:[{fields[9]}]"


def list_open_files(pid: int) -> Iterator[str]:
    """Yield what a process has open, as `/proc/*/fd` names it; nothing of another user's, or of one that has ended."""
    with suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                yield os.readlink(f"/proc/{pid}/fd/{name}")


def _hexadecimal(family: socket.AddressFamily, address: str) -> str:
    packed = socket.inet_pton(family, address)
    words = (int.from_bytes(packed[at : at + 4], sys.byteorder) for at in range(0, len(packed), 4))
    return "".join(f"{word:08X}" for word in words)


NETWORK = Path("/proc/net")
_LISTENS = "0A"  # TCP_LISTEN
_EXACT = (_hexadecimal(socket.AF_INET, "127.0.0.1"), _hexadecimal(socket.AF_INET6, "::ffff:127.0.0.1"))
_ALL = (_hexadecimal(socket.AF_INET, "0.0.0.0"), _hexadecimal(socket.AF_INET6, "::"))


def services() -> list[tuple[int, str]] | None:
    """The ports that this machine listens at, with the program that does where it is the user's; None without /proc."""
    if not (NETWORK / "tcp").exists():
        return None
    found = {link: port for _, port, link in _listening()}
    names = dict.fromkeys(found.values(), "")
    for pid in list_pids():
        for link in found.keys() & list_open_files(pid):
            with suppress(OSError):  # it has ended
                names[found[link]] = Path(f"/proc/{pid}/comm").read_text().strip()
    return sorted(names.items())


def abstract_sockets() -> int:
    """How many abstract sockets are bound on this machine: files do not guard them. 0 without /proc."""
    with suppress(OSError):
        lines = (NETWORK / "unix").read_text(errors="replace").splitlines()
        return len({name for line in lines if (name := line.split(maxsplit=7)[-1]).startswith("@")})
    return 0


def have(pids: Iterable[int], sockets: set[str]) -> bool:
    """Whether these processes have all of the sockets open."""
    return sockets.issubset(link for pid in pids for link in list_open_files(pid))


def inside(folder: Path) -> tuple[int, str] | None:
    """Give a living process that works in a folder or below it, and its name; None: none does, or without /proc."""
    wanted = os.path.realpath(folder)
    for pid in list_pids():
        with suppress(OSError):  # another user's, or gone
            if pid != os.getpid() and f"{os.readlink(f'/proc/{pid}/cwd')}/".startswith(f"{wanted}/"):
                return pid, Path(f"/proc/{pid}/comm").read_text().strip()
    return None


def raise_open_files() -> None:
    """Raise how many files this process may have open to what it may raise it to: each call of a program takes some."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def adjust(pid: int, score: int) -> None:
    """Say how readily the kernel kills a process, and what it starts from now on, from -1000 to 1000.

    To make it less likely takes a right that few users have; without it nothing changes.
    """
    with suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text(str(score))


def restrain(pid: int, nice: int) -> None:
    """Set the limits of a process that leads its group: open files, no core dumps, its priority, and that the kernel
    kills it before us.

    Address space is not limited: JavaScript engines reserve far more of it than they use.
    """
    adjust(pid, OOM)
    with suppress(OSError, ValueError):  # it may have ended already
        _, most = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        files = OPEN_FILES if most == resource.RLIM_INFINITY else min(most, OPEN_FILES)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (files, files))
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
        if nice:
            os.setpriority(os.PRIO_PGRP, pid, os.getpriority(os.PRIO_PROCESS, 0) + nice)


def memory_of(group: int) -> int:
    """Bytes of memory that the processes of a group hold, each counted with what it shares; 0 where there is none."""
    total = 0
    for pid in list_pids():
        with suppress(OSError, ValueError, IndexError):
            fields = read_stat(pid)
            if int(fields[2]) == group:
                total += int(fields[21])
    return total * os.sysconf("SC_PAGE_SIZE")


def processor_time(leader: int, *, itself: bool = True) -> float:
    """Returns the seconds of processor time of the descendants of a process, and of `itself`; ended ones count, too."""
    ticks, pids = 0, [leader] if itself else below(leader)
    for pid in pids:
        pids += below(pid)
        with suppress(OSError, ValueError, IndexError):
            ticks += sum(map(int, read_stat(pid)[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def is_working(leader: int, before: float) -> bool:
    """Whether a process or a descendant has used processor time since it was `before`, or waits for a processor or a
    disk: what is merely slow does. False without /proc.
    """
    return processor_time(leader) > before + IDLE or any(stat(pid)[0] in "RD" for pid in (leader, *below(leader)))


def age(pid: int) -> float:
    """Returns for how many seconds a process has lived; 0 where there is none."""
    state, started = stat(pid)
    if state == "X":
        return 0.0
    up = float(Path("/proc/uptime").read_text().split()[0])
    return max(up - started / os.sysconf("SC_CLK_TCK"), 0.0)


def lives(pid: int | None, started: int | None) -> bool:
    """Whether the process that began then has not ended with all its threads; one of ours that has is reaped."""
    for known, process in list(children.items()):
        if process.poll() is not None:
            children.pop(known, None)  # several threads look at once
    state, began = stat(pid or 0)
    if began != started or state == "X":
        return False
    if state == "Z":  # a zombie whose parent is somebody else; its other threads may still hold files
        with suppress(OSError):
            return pid in children or len(os.listdir(f"/proc/{pid}/task")) > 1
        return False
    return True


def locked(file: int) -> bool:
    """Whether an open file is locked for this process now: the kernel lets it go when its holder dies."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def below(pid: int) -> list[int]:
    """The processes that one started itself, in whichever thread."""
    pids = list[int]()
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            pids += map(int, file.read_text().split())
    return pids


def outside(pid: int, started: int) -> int:
    """The id that a living process has here which began then and calls itself so, be it in a sandbox; 0: none does."""
    if lives(pid, started):
        return pid
    for one in list_pids():
        with suppress(OSError):
            # one that has ended keeps its id until somebody asks how
            if stat(one)[1] == started and lives(one, started):
                line = next(line for line in Path(f"/proc/{one}/status").read_text().splitlines() if "NSpid" in line)
                if int(line.split()[-1]) == pid:
                    return one
    return 0


async def end(mark: ProcessMark, stuck: type[AshepError]) -> bool:
    """End every process that holds the mark, gently first, and return once none lives; whether there was one.

    Raises `stuck` where one does not even end by SIGKILL: no other server may start then.
    """
    known = set(await anyio.to_thread.run_sync(holders_of, mark))
    if not known:
        return False
    await anyio.to_thread.run_sync(_signal, known, signal.SIGTERM)
    left = await _await_end(mark, known, _TERM)
    deadline = anyio.current_time() + _KILL
    while left:
        if anyio.current_time() > deadline:
            raise stuck(f"process {min(left)[0]}, left by an earlier ashep, does not end")
        await anyio.to_thread.run_sync(_signal, left, signal.SIGKILL)
        known |= left
        left = await _await_end(mark, known, 0.5)
    return True


async def kill(pid: int, started: int, stuck: type[AshepError]) -> bool:
    """Kill a process, be it not another one by now, and see it gone; whether it lived. Raises `stuck`."""
    if not await anyio.to_thread.run_sync(lives, pid, started):
        return False
    deadline = anyio.current_time() + _KILL
    while await anyio.to_thread.run_sync(lives, pid, started):
        if anyio.current_time() > deadline:
            raise stuck(f"process {pid}, left by an earlier ashep, does not end")
        await anyio.to_thread.run_sync(_signal, {(pid, started)}, signal.SIGKILL)
        await anyio.sleep(0.02)
    return True


def _signal(holders: set[tuple[int, int]], number: int) -> None:
    for pid, started in holders:
        if stat(pid)[1] == started:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, number) if os.getpgid(pid) == pid else os.kill(pid, number)


async def _await_end(mark: ProcessMark, known: set[tuple[int, int]], bound: float) -> set[tuple[int, int]]:
    """Who still lives of the known processes and of those that hold the mark: none at once, or these after the bound.

    A process that is about to end has lost its environment already, while it still holds its files.
    """
    deadline = anyio.current_time() + bound
    while True:
        left = await anyio.to_thread.run_sync(lambda: {one for one in known if lives(*one)} | {*holders_of(mark)})
        if not left or anyio.current_time() > deadline:
            return left
        await anyio.sleep(0.05)
