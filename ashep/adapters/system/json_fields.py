"""Reads JSON of strangers: fields that may be missing, or of another type."""

from typing import Any

from ashep.core.text import clean

MOST_TEXT = 20_000
"""Characters that are kept of one remark."""


def field(entry: Any, *names: str) -> Any:
    """Give a field of a field of an object; None where there is none."""
    for name in names:
        entry = entry.get(name) if isinstance(entry, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - JSON
    return entry  # pyright: ignore[reportUnknownVariableType] - JSON


def text(entry: Any, *names: str) -> str:
    """Give a field that is a text, without what could act on a reader's screen; empty where there is none."""
    value = field(entry, *names)
    return clean(value) if isinstance(value, str) else ""


def remark(entry: Any, *names: str) -> str:
    """Give what somebody said, capped."""
    return text(entry, *names)[:MOST_TEXT]


def whole(entry: Any, *names: str) -> int:
    """Give a field that is a whole number; 0 where there is none."""
    value = field(entry, *names)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def entries(entry: Any, *names: str) -> list[Any]:
    """Give a field that is a list; empty where there is none."""
    value = field(entry, *names)
    return list(value) if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - JSON
