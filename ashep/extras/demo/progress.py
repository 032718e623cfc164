"""Progress of a demonstration: it goes on as long as anything new happens, however slow the machine is."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from ashep.adapters.runners.opencode.isolated_runner import SERVERS
from ashep.adapters.runners.opencode.server import folder_of, record_in
from ashep.adapters.system import process_table

STILL = 300.0
"""Seconds without anything new after which a demonstration has failed; one call of a program is given as long."""

_OF_ISSUE = b'"issue":"'


class DemoProgress:
    """Looks for what is new in a project: records about its issues, and requests to the model."""

    def __init__(self, project: Path, environ: Mapping[str, str], count_requests: Callable[[], int]) -> None:
        """`environ`: that of the daemon, which says where its servers are."""
        self._state = project / ".agent-shepherd" / "state"
        self._servers, self._count_requests = folder_of(self._state, environ), count_requests
        self._signs, self._looked, self._still = (0, 0), time.monotonic(), 0.0

    def is_over(self) -> bool:
        """Whether nothing new was seen for `STILL` seconds. Blocks.

        What a server may take for its start is bounded by the daemon, and does not count here. Records about servers
        alone are nothing new: one that never starts is started again for ever.
        """
        files = (self._state / "journal").glob("*.jsonl")
        signs = sum(file.read_bytes().count(_OF_ISSUE) for file in files), self._count_requests()
        now = time.monotonic()
        if signs != self._signs:
            self._signs, self._still = signs, 0.0
        elif not self._is_starting():
            self._still += now - self._looked
        self._looked = now
        return self._still >= STILL

    def _is_starting(self) -> bool:
        records = map(record_in, (self._servers, *self._servers.glob(f"{SERVERS}/*")))
        return any(
            record is not None and not record.answered and process_table.lives(record.pid, record.started)
            for record in records
        )
