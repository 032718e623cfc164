"""Files of JSON lines that somebody else writes while we read: forward, each line once, in bounded memory. Blocks.

A line that is not whole yet is read when it is; one that is no JSON object, or longer than `LONGEST`, is passed over.
"""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from ashep.adapters.runners.foreign_json import JsonObject, as_list, as_object
from ashep.journal import durable_io
from ashep.ports.runner import bound_amount

LONGEST = 32 * 1024 * 1024
"""Bytes of one line: more than the longest answer of a tool."""

MOST = 1024**3
"""Bytes of a file that are read: agents can write there, too, and a hole costs them nothing."""

_CHUNK = 256 * 1024

_USED = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")

Event = JsonObject


class Lines:
    """A file and how far it was read."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.offset = 0
        """Where the next line begins."""
        self._rest = b""
        self._skips = False

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """The whole lines that came since, each with where it begins; none where there is no such file."""
        try:
            with durable_io.opened(self.file) as file:
                if file.seek(0, 2) < self.offset + len(self._rest):  # it is another one now
                    self.offset, self._rest, self._skips = 0, b"", False
                file.seek(self.offset + len(self._rest))
                while self.offset + len(self._rest) < MOST and (chunk := file.read(_CHUNK)):
                    yield from self._take(chunk)
        except OSError:
            return

    def _take(self, chunk: bytes) -> Iterator[tuple[int, bytes]]:
        if self._skips and b"\n" not in chunk:
            self.offset += len(chunk)
            return
        *whole, rest = (self._rest + chunk).split(b"\n") if b"\n" in chunk else (self._rest + chunk,)
        self._rest = rest
        for line in whole:
            begins, skipped = self.offset, self._skips
            self.offset += len(line) + 1
            self._skips = False
            if not skipped:
                yield begins, line
        if len(self._rest) > LONGEST:
            self.offset += len(self._rest)
            self._rest, self._skips = b"", True


def part(event: Event, name: str) -> Event:
    """The object that an object holds under a name; an empty one where there is none."""
    return as_object(event.get(name))


def parts(event: Event, name: str) -> list[Event]:
    """The objects in the list that an object holds under a name."""
    return [entry for entry in as_list(event.get(name)) if isinstance(entry, dict)]


def strings(event: Event, name: str) -> list[str]:
    """The texts in the list that an object holds under a name."""
    return [entry for entry in as_list(event.get(name)) if isinstance(entry, str)]


def text(event: Event, name: str) -> str:
    """The text that an object holds under a name."""
    found = event.get(name)
    return found if isinstance(found, str) else ""


def time_of(event: Event) -> datetime | None:
    """The time at which an event was written; None: it does not tell."""
    with suppress(ValueError, OverflowError):
        at = datetime.fromisoformat(text(event, "timestamp"))
        return at.astimezone(UTC) if at.tzinfo is not None else None
    return None


def number(event: Event, name: str) -> float:
    """The number that an object holds under a name."""
    return bound_amount(event.get(name))


def count_tokens(event: Event) -> int:
    """The tokens that an event sums up for its session, of all models."""
    used = part(event, "modelUsage")
    return round(sum(number(part(used, model), name) for model in used for name in _USED))
