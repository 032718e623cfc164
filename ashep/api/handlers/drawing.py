"""Drawing of a picture that is behind, once for all who ask: programs wait, and the page learns how far it is."""

from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock

from ashep.errors import AshepError
from ashep.store.read_model import open_read_model
from ashep.store.sqlite_reader import NAME

PATIENCE = 2.0
"""Seconds for which the page waits; a picture that needs no longer is drawn while nobody notices."""

PREFERENCE = "wait=2"
"""What the page says in `Prefer` (RFC 7240). Programs do not, and get their answer once the picture is there."""

_prefers_progress = ContextVar("prefers_progress", default=False)


class NotReady(AshepError):
    """The picture is still being drawn."""

    def __init__(self, progress: float, *, is_first: bool) -> None:
        cause = "for the first time" if is_first else "again"
        super().__init__(f"Reading the journal {cause}: {progress:.0%}".replace("%", " %"))
        self.progress = progress


class _Ended(AshepError):
    """Nobody wants the picture any more."""


@contextmanager
def prefer_progress(*, enabled: bool = True) -> Generator[None]:
    """Let what is read in this context not wait for a picture that takes long."""
    token = _prefers_progress.set(enabled)
    try:
        yield
    finally:
        _prefers_progress.reset(token)


@dataclass
class PictureDrawer:
    """Draws the picture of one project where no daemon does."""

    state: Path
    say: Callable[[str], None]
    _worker: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "draw"))
    _drawing: Future[None] | None = None
    _lock: Lock = field(default_factory=Lock)
    _ends: Event = field(default_factory=Event)
    _progress: float = 0.0
    _is_first: bool = False
    _is_slow: bool = False

    def draw(self) -> None:
        """Wait until it is drawn. Raises what drawing raises, and `NotReady` where that takes long and the caller
        prefers progress. Blocks.
        """
        with self._lock:
            if self._drawing is None or self._drawing.done():
                self._progress, self._is_slow = 0.0, False
                self._is_first = not (self.state / NAME).exists()
                self._drawing = self._worker.submit(self._open)
            drawing = self._drawing
        if not _prefers_progress.get():
            return drawing.result()
        try:
            return drawing.result(0.0 if self._is_slow else PATIENCE)
        except TimeoutError as error:
            self._is_slow = True
            raise NotReady(self._progress, is_first=self._is_first) from error

    def end(self) -> None:
        """Give up what is being drawn."""
        self._ends.set()

    def _open(self) -> None:
        def advance(reached: int, end: int) -> None:
            if self._ends.is_set():
                raise _Ended("the server ends")
            self._progress = min(reached / max(end, 1), 0.99)  # what follows the last record takes a moment, too

        with open_read_model(self.state, self.say, 0.0, advance):
            pass
