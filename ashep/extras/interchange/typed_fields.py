"""Fields of a mapping in a file that is being read: each has the type that is asked for, or is refused."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from ashep.config.error_messages import describe
from ashep.config.findings import ConfigErrors
from ashep.config.yaml_tree import Node
from ashep.core.policy.base_types import format_duration
from ashep.extras.interchange.import_report import ImportReading

_LONGEST = timedelta(days=1000)
"""No time of ours is longer."""
_WHOLE = re.compile(r"\d{1,18}")


class Fields:
    """A mapping; an absent one has no entries. What is read counts as carried over."""

    def __init__(self, reading: ImportReading, node: Node) -> None:
        self.reading, self.node = reading, node
        if not isinstance(node.value, dict) and reading.take(node) is not None:
            raise self._unexpected(node, "a mapping")

    def __contains__(self, key: str) -> bool:
        return self.node.locate([key]).value is not None

    def entry(self, key: str) -> Node | None:
        """Give an entry."""
        return self.node.child(key)

    def section(self, key: str) -> "Fields":
        """Give an entry that is a mapping itself."""
        return Fields(self.reading, self.node.locate([key]))

    def text(self, key: str) -> str | None:
        """Give a text; a number counts as one."""
        text = self._read(key, "a text", lambda value: not isinstance(value, dict | list | bool))
        return None if text is None or not str(text).strip() else str(text)

    def version(self) -> None:
        """Take the version of the form, and say so where it is another one."""
        if self.text("version") not in (None, "1", "1.0"):
            self.note_changed("version", "another version of the form; it was read as 1.0")

    def whole(self, key: str, *, least: int = 0) -> int | None:
        """Give a whole number."""
        number = self._read(
            key, f"a whole number of at least {least}",
            lambda value: _WHOLE.fullmatch(str(value)) is not None and int(value) >= least,
        )  # fmt: skip
        return None if number is None else int(number)

    def number(self, key: str) -> float | None:
        """Give a number above zero and of at most a thousand: something is multiplied by it."""
        expected = "a number above zero, at most 1000"
        return self._read(key, expected, lambda value: type(value) in (int, float) and 0 < value <= 1000)

    def flag(self, key: str) -> bool:
        """Give true or false; an absent one is false."""
        return bool(self._read(key, "true or false", lambda value: isinstance(value, bool)))

    def words(self, key: str) -> list[str]:
        """Give a list of texts; one text is a list of it."""
        node = self.entry(key)
        if node is None or self.reading.take(node) is None:
            return []
        items = node.items if isinstance(node.value, list) else [node]
        for item in items:
            if type(item.value) not in (str, int, float) or item.value == "":
                raise self._unexpected(item, "a text that is not empty")
        return [str(item.value) for item in items]

    def items(self, key: str) -> list[Node]:
        """Give the items of a list, which are still to be read."""
        node = self.entry(key)
        if node and node.items:
            return node.items
        self._read(key, "a list", lambda value: isinstance(value, list))
        return []

    def span(self, key: str) -> timedelta | None:
        """Give a time in milliseconds."""
        number = self.whole(key)
        if number is not None and not 0 < number <= _LONGEST / timedelta(milliseconds=1):
            self.note_changed(key, f"no time between 0 and {format_duration(_LONGEST)}; the default holds")
            return None
        return None if number is None else timedelta(milliseconds=number)

    def note_lost(self, why: str, *keys: str) -> None:
        """Say that entries, if they are there, have no counterpart."""
        for key in keys:
            self.reading.note("lost", self.entry(key), why)

    def note_others_lost(self, why: str) -> None:
        """Say that all entries that nobody read have no counterpart."""
        self.note_lost(why, *(key for key, node in self.node.entries.items() if id(node) not in self.reading.carried))

    def note_changed(self, key: str, why: str) -> None:
        """Say that an entry, if it is there, means a little else."""
        self.reading.note("changed", self.entry(key), why)

    def refuse(self, message: str, *keys: str) -> ConfigErrors:
        """Give the error about the first of these entries that is there, else about the mapping."""
        present = [node for key in keys if (node := self.entry(key))]
        return self.reading.refuse(next(iter(present), self.node), message)

    def _read(self, key: str, expected: str, accepts: Callable[[Any], bool]) -> Any:
        node = self.entry(key)
        if node is None or self.reading.take(node) is None:
            return None
        if not accepts(node.value):
            raise self._unexpected(node, expected)
        return node.value

    def _unexpected(self, node: Node, expected: str) -> ConfigErrors:
        return self.reading.refuse(node, f"expected {expected}, found {describe(node)}")


def bounded(span: timedelta, factor: float) -> timedelta:
    """Multiply a time, up to the longest that there is."""
    return min(span * factor, _LONGEST)
