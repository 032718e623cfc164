"""A daemon as readers see one, which does nothing but write: for what a change costs those who look."""

from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from ashep.core.facts.tracker import Issue, IssueSeen
from ashep.journal.lock import Lock
from ashep.store.writer import Store
from bench.history import History


class Writer:
    """The holder of a state folder. A context manager."""

    def __init__(self, state: Path) -> None:
        """Take the folder, and know what its journal holds."""
        self._lock = Lock.acquire(state, datetime.now(UTC))
        self._history = History(state)
        self._store = Store.open(state, self._history.journal, self._history.world)
        self.changes = 0

    def change(self) -> None:
        """See an issue more that is not ready, and draw that."""
        self.changes += 1
        issue = Issue(f"o-{self.changes:05}", f"Wait for {self.changes}", "open", "task", 2, self._history.at)
        self._history.tell(IssueSeen(issue.id, issue, self._history.world.seq))
        journal = self._history.journal
        self._store.catch_up(journal, journal.position, self._history.world)

    def __enter__(self) -> "Writer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._store.close()
        self._history.close()
        self._lock.release()
