"""JSON that agents' programs write, read as what it should be: whatever else stands there is empty, or nothing."""

from contextlib import suppress
from typing import Any, cast

from ashep.core.text import read_json

JsonObject = dict[str, Any]


def parse_object(text: bytes) -> JsonObject | None:
    """Read somebody else's JSON; None: it is no object."""
    with suppress(ValueError, RecursionError):
        parsed = read_json(text)
        return cast("JsonObject", parsed) if isinstance(parsed, dict) else None
    return None


def as_object(value: object) -> JsonObject:
    """Return the object that a value should be; an empty one where it is none."""
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """The same of a list."""
    return cast("list[Any]", value) if isinstance(value, list) else []
