"""What systemd is told of the daemon (sd_notify): that it is ready, alive, stopping. One datagram each, never awaited.

The protocol is one datagram of lines to the socket that `NOTIFY_SOCKET` names; a library would block where its queue is
full. A message that cannot be sent at once is dropped: the next one says the same.
"""

import os
import socket
from collections.abc import MutableMapping
from contextlib import suppress

SOCKET, WATCHDOG, WATCHDOG_PID = "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"


class Systemd:
    """The service manager that started this process, or nobody."""

    def __init__(self, address: str = "", watchdog: float | None = None) -> None:
        self.watchdog = watchdog
        """Seconds within which a sign of life is expected; None: nobody waits for one."""
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._wire: socket.socket | None = None
        if self._address:
            with suppress(OSError):
                self._wire = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
                self._wire.setblocking(False)

    @classmethod
    def from_environ(cls, environ: MutableMapping[str, str]) -> "Systemd":
        """Read the environment, and take out of it what is meant for this process alone: children speak for nobody."""
        address, usec, pid = (environ.pop(name, "") for name in (SOCKET, WATCHDOG, WATCHDOG_PID))
        meant = not pid or pid == str(os.getpid())
        watchdog = int(usec) / 1e6 if address and meant and usec.isdecimal() and int(usec) else None
        return cls(address, watchdog)

    @property
    def listens(self) -> bool:
        """Whether somebody wants to be told."""
        return self._wire is not None

    def tell(self, *lines: str) -> None:
        """Send lines such as `READY=1`; what cannot be sent at once is dropped."""
        if self._wire is not None:
            text = "\n".join(line.replace("\n", " ") for line in lines)
            with suppress(OSError):
                self._wire.sendto(text.encode(), self._address)

    def close(self) -> None:
        """Let go of the socket."""
        if self._wire is not None:
            self._wire.close()
            self._wire = None
