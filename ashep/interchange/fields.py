"""Fields of a mapping in a file that is being read: each has the type that is asked for, or is refused."""

from datetime import timedelta

from ashep.config.explain import describe
from ashep.config.nodes import Node
from ashep.core.policy.language import format_duration
from ashep.interchange.notes import Reading

_LONGEST = timedelta(days=1000)
"""No time of ours is longer."""


class Fields:
    """A mapping; an absent one has no entries. What is read counts as carried over."""

    def __init__(self, reading: Reading, node: Node | None) -> None:
        if node is not None and node.value is not None and not isinstance(node.value, dict):
            raise reading.refuse(node, f"expected a mapping, found {describe(node)}")
        self.reading, self.node = reading, node
        if node is not None and node.value is None:
            reading.take(node)

    def __contains__(self, key: str) -> bool:
        found = self.at(key)
        return found is not None and found.value is not None

    def at(self, key: str) -> Node | None:
        """Give an entry."""
        return self.node.child(key) if self.node is not None else None

    def names(self) -> list[str]:
        """Give the names of all entries."""
        return list(self.node.value) if self.node is not None and isinstance(self.node.value, dict) else []

    def of(self, key: str) -> "Fields":
        """Give an entry that is a mapping itself."""
        return Fields(self.reading, self.at(key))

    def text(self, key: str) -> str | None:
        """Give a text; a number counts as one."""
        node = self._given(key)
        if node is None:
            return None
        if isinstance(node.value, dict | list | bool):
            raise self.reading.refuse(node, f"expected a text, found {describe(node)}")
        text = str(self.reading.take(node))
        return text if text.strip() else None

    def version(self) -> None:
        """Take the version of the form, and say so where it is another one."""
        if self.text("version") not in (None, "1", "1.0"):
            self.changed("version", "another version of the form; it was read as 1.0")

    def whole(self, key: str, *, least: int = 0) -> int | None:
        """Give a whole number."""
        node = self._given(key)
        if node is None:
            return None
        value = int(node.value) if isinstance(node.value, str) and node.value.isdecimal() else node.value
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise self.reading.refuse(node, f"expected a whole number of at least {least}, found {describe(node)}")
        self.reading.take(node)
        return value

    def number(self, key: str) -> float | None:
        """Give a number above zero and of at most a thousand: something is multiplied by it."""
        node = self._given(key)
        if node is None:
            return None
        if not isinstance(node.value, int | float) or isinstance(node.value, bool) or not 0 < node.value <= 1000:
            raise self.reading.refuse(node, f"expected a number above zero, at most 1000, found {describe(node)}")
        self.reading.take(node)
        return float(node.value)

    def flag(self, key: str) -> bool:
        """Give true or false; an absent one is false."""
        node = self._given(key)
        if node is None:
            return False
        if not isinstance(node.value, bool):
            raise self.reading.refuse(node, f"expected true or false, found {describe(node)}")
        self.reading.take(node)
        return node.value

    def words(self, key: str) -> list[str]:
        """Give a list of texts; one text is a list of it."""
        node = self._given(key)
        if node is None:
            return []
        items = node.value if isinstance(node.value, list) else [node]
        for item in items:
            if not isinstance(item.value, str | int | float) or isinstance(item.value, bool) or item.value == "":
                raise self.reading.refuse(item, f"expected a text that is not empty, found {describe(item)}")
        self.reading.take(node)
        return [str(item.value) for item in items]

    def items(self, key: str) -> list[Node]:
        """Give the items of a list, which are still to be read."""
        node = self._given(key)
        if node is None:
            return []
        if not isinstance(node.value, list):
            raise self.reading.refuse(node, f"expected a list, found {describe(node)}")
        if not node.value:
            self.reading.take(node)
        return node.value

    def span(self, key: str) -> timedelta | None:
        """Give a time in milliseconds."""
        number = self.whole(key)
        if number is not None and not 0 < number <= _LONGEST / timedelta(milliseconds=1):
            self.changed(key, f"no time between 0 and {format_duration(_LONGEST)}; the default holds")
            return None
        return None if number is None else timedelta(milliseconds=number)

    def lost(self, key: str, why: str) -> None:
        """Say that an entry, if it is there, has no counterpart."""
        self.reading.lost(self.at(key), why)

    def changed(self, key: str, why: str) -> None:
        """Say that an entry, if it is there, means a little else."""
        self.reading.changed(self.at(key), why)

    def _given(self, key: str) -> Node | None:
        node = self.at(key)
        if node is not None and node.value is None:
            self.reading.take(node)
            return None
        return node


def bounded(span: timedelta, factor: float) -> timedelta:
    """Multiply a time, up to the longest that there is."""
    return min(span * factor, _LONGEST)
