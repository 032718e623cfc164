"""Gives the terminal back where the wrapper and Claude Code are killed at once: a program of its own, which outlives
both. `python -I -S keeper.py ATTRIBUTES GROUP`, with the wrapper's pipe as standard input, and as standard output the
terminal.

Each line of the pipe is the child that there is now, 0 for none; the pipe's end is the wrapper's.
"""

import json
import os
import select
import signal
import sys
import termios
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:  # it takes long to import
    from typing import Any

LEFT_ON = "".join(
    f"\x1b[{code}"
    for code in ("?25h", "?1006l", "?1003l", "?1002l", "?1000l", "?1004l", "<u", "?1049l", ">4m", "?2031l", "?2004l")
)
"""What Claude Code itself writes as it gives the terminal back, seen at Ctrl-Z: cursor, mouse, focus, keys, screen."""

PATIENCE = 5.0
"""Seconds that a child has to end in after SIGTERM; it takes 0.1 as a rule."""


def main() -> None:
    """Wait for the wrapper's end, and then for the child's."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP, signal.SIGTTOU):
        signal.signal(number, signal.SIG_IGN)
    child: int | None = None
    for line in iter(sys.stdin.buffer.readline, b""):
        if child is not None:
            os.close(child)
        child = opened(int(line))
    if child is None:
        return
    if not select.select([child], [], [], PATIENCE)[0]:  # the kernel told it to end as the wrapper did
        signal.pidfd_send_signal(child, signal.SIGKILL)
        select.select([child], [], [], PATIENCE)
    give_back(json.loads(sys.argv[1]), int(sys.argv[2]))


def opened(pid: int) -> int | None:
    """Give a file that can be read once a process has ended; None: there is no process."""
    with suppress(OSError, AttributeError):  # it has ended; another system than Linux
        return os.pidfd_open(pid) if pid else None
    return None


def give_back(attributes: "list[Any]", group: int) -> None:
    """Set the terminal as it was. A shell that has it again has done so itself, and has others for its line."""
    with suppress(OSError, termios.error):  # it has been closed
        os.write(1, LEFT_ON.encode())
        if os.tcgetpgrp(1) == group:
            keys = [one.encode("latin-1") if isinstance(one, str) else one for one in attributes[6]]
            termios.tcsetattr(1, termios.TCSADRAIN, [*attributes[:6], keys])


if __name__ == "__main__":
    main()
