"""What each script of the table begins with, behind the names of where everything is: words for what is often tried."""

import ctypes
import os
import platform
import socket
import subprocess
from typing import Any

_libc = ctypes.CDLL(None, use_errno=True)
_CALLS = {
    "ptrace": (101, 117), "unshare": (272, 97), "keyctl": (250, 219), "add_key": (248, 217), "ioctl": (16, 29),
    "io_uring_setup": (425, 425), "bpf": (321, 280), "perf_event_open": (298, 241), "mount": (165, 40),
}  # fmt: skip
"""System calls, by their numbers on x86_64 and on aarch64."""


def show(path: str) -> None:
    with open(path, errors="replace") as file:
        print(file.read(20_000))


def put(path: str, text: str, how: str = "a") -> None:
    with open(path, how) as file:
        file.write(text)


def sh(line: str, **more: str) -> None:
    """Run a line in a shell. Its output is printed."""
    print(subprocess.run(["sh", "-c", line], env={**os.environ, **more}, capture_output=True, timeout=120))


def dig(folder: str, depth: int = 1500) -> None:
    """Make folders in folders, and a file in the last."""
    for _ in range(depth // 100):
        folder += "/d" * 100
        os.makedirs(folder)
    put(folder + "/bottom", "x")


def dial(family: int, address: Any, say: bytes = b"") -> None:
    """Print what somebody answers who listens there."""
    with socket.socket(family) as wire:
        wire.settimeout(5)
        wire.connect(address)
        wire.sendall(say)
        while more := wire.recv(4096):
            print(more)


def ask(port: int, password: str, path: str = "/session") -> None:
    """Ask an agent server something."""
    from base64 import b64encode

    pair = b64encode(f"opencode:{password}".encode()).decode()
    dial(socket.AF_INET, ("127.0.0.1", port), f"GET {path} HTTP/1.0\r\nAuthorization: Basic {pair}\r\n\r\n".encode())


def call(name: str, *words: Any) -> int:
    """Make a system call; raises OSError where it is refused."""
    number = _CALLS[name][platform.machine() != "x86_64"]
    if (answer := _libc.syscall(number, *words)) < 0:
        raise OSError(ctypes.get_errno(), name)
    return answer


def reached() -> None:
    """Say that it worked, where nothing else shows it."""
    print("REACHED")
