"""The port of a project's server: the same each time where that can be, so that addresses and sessions stay good."""

import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ashep.actions.systemd_unit import PORT
from ashep.api.paired_devices import read_private
from ashep.errors import AshepError
from ashep.journal.durable_io import replace

FILE = "page.port"

NEXT = 9
"""Ports after 8090 that are tried before any that is free."""


class PortTaken(AshepError):
    """Somebody else listens there."""


def read_port(state: Path) -> int | None:
    """Give the port that the project's server took last by itself; None: it took none. Blocks."""
    try:
        text = (read_private(state / FILE, 10) or "").strip()
    except (AshepError, OSError):
        return None
    return int(text) if text.isascii() and text.isdecimal() and 1024 <= int(text) <= 65535 else None


def listen_somewhere(
    state: Path, listen: Callable[[int], socket.socket], say: Callable[[str], None], *, moves: bool
) -> socket.socket:
    """Listen where the project's server did last, else at 8090; where that is taken at a free port, if it `moves`.

    Blocks; raises `AshepError`.
    """
    last = read_port(state)
    first = last or PORT
    try:
        listener = listen(first)
    except PortTaken:
        if not moves:
            raise
        listener = _listen_elsewhere(listen, first)
        port = listener.getsockname()[1]
        say(f"port {first} is taken, perhaps by another project's page; this project's is at port {port} from now on")
    if (port := listener.getsockname()[1]) != last:
        try:
            replace(state / FILE, f"{port}\n".encode())
        except OSError as error:
            say(f"warning: {state / FILE} cannot be written: {error.strerror}")
    return listener


def _listen_elsewhere(listen: Callable[[int], socket.socket], first: int) -> socket.socket:
    for port in range(PORT, PORT + NEXT + 1):
        if port == first:
            continue
        with suppress(PortTaken):
            return listen(port)
    return listen(0)
