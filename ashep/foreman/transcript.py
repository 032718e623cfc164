"""How much of a session's transcript was said, and what its last request held: read forward, each line once. Blocks.

`user` and `assistant` records alone count: the system prompt stands in a transcript several times, and makes 150 kB of
a session with one short prompt (facts/claude-code.md 22).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ashep.adapters.claude.lines import Lines

_SAID = frozenset({"user", "assistant"})
_HELD = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class Size(NamedTuple):
    """How long a session is."""

    bytes: int = 0
    """Of the records of what was said."""
    tokens: int = 0
    """Of the last request to the model."""


class Growing:
    """A transcript that is written while it is read."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._lines: Lines | None = None
        self._size = Size()

    def size(self) -> Size:
        """Take in what was written since, and give the size; nothing where there is no such file."""
        from ashep.adapters.claude.lines import Lines, event_of, number, part  # half a second: not at the start

        self._lines = self._lines or Lines(self.file)
        for offset, line in self._lines:
            size = Size() if offset == 0 else self._size
            event = event_of(line) if b'"user"' in line or b'"assistant"' in line else None
            if event is not None and event.get("type") in _SAID and event.get("isSidechain") is not True:
                used = part(part(event, "message"), "usage")
                tokens = round(sum(number(used, name) for name in _HELD))
                size = Size(size.bytes + len(line) + 1, tokens or size.tokens)
            self._size = size
        return self._size


def size_of(path: Path) -> Size:
    """Give the size of a transcript that is read once."""
    return Growing(path).size()
