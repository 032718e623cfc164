"""Start a service, wait until it answers, ask it once: `python -I -S` runs this below the supervisor.

Only the service that it started is asked: another one that listens on the port is found out by who holds the socket.
An order that starts none names a host, which is asked in its place.
Redirects are not followed. Standard input: an order as JSON. File descriptor 3: what was found as JSON.
"""

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:  # it takes long to import
    from typing import Any

    Order = dict[str, Any]

_REPORT = 3
_HOSTS = (("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6))
_PROBE = 5.0  # seconds that one answer to the question whether it is ready may take
_PAUSES = (0.005, 0.01, 0.02, 0.05)  # seconds between two such questions, the last one from then on
_LARGEST = 1024 * 1024
_LISTENING = "0A"  # the state of a socket in /proc/net/tcp


class _LateError(Exception):
    pass


@contextmanager
def _limit_time(seconds: float) -> Generator[None]:
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _late(number: int, frame: object) -> None:
    raise _LateError


# --- the port -----------------------------------------------------------------------------------------------------


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def _listens(port: int) -> str | None:
    for host, family in _HOSTS:
        with suppress(OSError), socket.socket(family) as one:
            one.settimeout(1)
            if one.connect_ex((host, port)) == 0:
                return host
    return None


def _is_ours(port: int) -> bool:
    """Whether a process below our supervisor holds the socket that listens on a port; True where nobody can tell."""
    wanted: set[str] = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError), open(table, encoding="ascii") as file:
            for line in file.readlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                    wanted.add(f"socket:[{fields[9]}]")
    if not wanted:
        return not os.path.exists("/proc/net/tcp")
    below = [os.getppid()]
    for pid in below:  # grows while it is read
        below += _children(pid)
        with suppress(OSError):
            for number in os.listdir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    if os.readlink(f"/proc/{pid}/fd/{number}") in wanted:
                        return True
    return False


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                found += map(int, file.read().split())
    return found


# --- the service --------------------------------------------------------------------------------------------------


def _wait(order: "Order", pid: int, port: int) -> "Order | str":
    """Ask until it answers; gives where it listens, or what is wrong."""
    pauses, ended, said = list(_PAUSES), False, "nothing listens on the port"
    try:
        with _limit_time(order["ready_within"]):
            while True:
                if not ended and os.waitpid(pid, os.WNOHANG) != (0, 0):
                    ended = True  # it may have left a server behind
                host = _listens(port)
                if host is not None:
                    if not _is_ours(port):
                        return {"problem": "foreign"}
                    said = said if said.startswith("it answers") else "it does not answer"
                    status = _status(host, port, order["ready"])
                    if status is not None and status < 500:
                        return host
                    if status is not None:
                        said = f"it answers with the status {status}"
                elif ended:
                    return {"problem": "ended"}
                time.sleep(pauses.pop(0) if len(pauses) > 1 else pauses[0])
    except _LateError:
        return {"problem": "not_ready", "said": said}


def _status(host: str, port: int, path: str) -> int | None:
    from http.client import HTTPConnection, HTTPException  # while the service gets ready

    connection = HTTPConnection(host, port, timeout=_PROBE)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()


def _ask(order: "Order", host: str, port: int) -> "Order":
    from binascii import b2a_base64
    from http.client import HTTPConnection, HTTPException, HTTPSConnection

    kind = HTTPSConnection if order.get("tls") else HTTPConnection
    connection = kind(host, port, timeout=order["within"])
    try:
        with _limit_time(order["within"]):
            try:
                connection.connect()
            except (OSError, HTTPException) as error:
                return {"problem": "away", "said": f"{type(error).__name__}: {error}"}
            body = None if order["body"] is None else order["body"].encode()
            connection.request(order["method"], order["path"], body, order["headers"])
            answer = connection.getresponse()
            data = answer.read(_LARGEST + 1)
    except (_LateError, TimeoutError):
        return {"problem": "late"}
    except (OSError, HTTPException, ValueError) as error:
        return {"problem": "broken", "said": f"{type(error).__name__}: {error}"}
    finally:
        connection.close()
    return {"status": answer.status, "large": len(data) > _LARGEST, "body": b2a_base64(data[:_LARGEST]).decode()}


def _find() -> "Order":
    order: Order = json.load(sys.stdin)
    if "start" not in order:
        return _ask(order, order["host"], order["port"])
    port: int = order["port"] or _free_port()
    if _listens(port) is not None:
        return {"problem": "taken", "port": port}
    try:
        spoken = [argument.replace("{port}", str(port)) for argument in order["start"]]
        normal = [signal.SIGPIPE, signal.SIGXFSZ, signal.SIGALRM]
        pid = os.posix_spawnp(spoken[0], spoken, os.environ | {"PORT": str(port)}, setsigdef=normal)
    except OSError as error:
        return {"problem": "missing", "said": error.strerror}
    host = _wait(order, pid, port)
    return (host if isinstance(host, dict) else _ask(order, host, port)) | {"port": port}


def _main() -> None:
    os.set_inheritable(_REPORT, False)
    signal.signal(signal.SIGALRM, _late)
    try:
        found = _find()
    except _LateError:  # it came just before the bell was taken off
        found = {"problem": "late"}
    os.write(_REPORT, json.dumps(found).encode())


if __name__ == "__main__":
    _main()
