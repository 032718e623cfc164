"""Entries of the journal and their JSON: one flat object with `v`, `seq`, `at`, `type` and the record's own fields."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, get_args

from pydantic import TypeAdapter

from ashep.core.commands import Command
from ashep.core.events import Fact

VERSION = 1
"""The version of the records' form; older ones are upcast when they are read."""

TYPES: dict[str, type] = {kind.__name__: kind for kind in (*get_args(Fact), *get_args(Command))}
"""Every record type by its name in the journal."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A fact or a command with its place in the journal and its time (UTC)."""

    seq: int
    at: datetime
    body: Fact | Command


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    return TypeAdapter(TYPES[name])


@cache
def _dump(name: str) -> Callable[..., dict[str, Any]]:
    return _adapter(name).dump_python


def to_json(entry: Entry) -> dict[str, Any]:
    """Give the entry as plain JSON data."""
    name = type(entry.body).__name__
    head = {"v": VERSION, "seq": entry.seq, "at": format_time(entry.at), "type": name}
    return head | _dump(name)(entry.body, mode="json", exclude_defaults=True)


def from_json(data: dict[str, Any]) -> Entry:
    """Read an entry back; raises ValueError (pydantic's included) where it is not one of ours."""
    body = dict(data)
    body.pop("v")
    seq, at, name = body.pop("seq"), body.pop("at"), body.pop("type")
    if name not in TYPES:
        raise ValueError(f"unknown record type {name!r}")
    # JSON has no tuples: outcomes, which are strict about what an agent says, must take its lists here
    return Entry(seq, parse_time(at), _adapter(name).validate_python(body, strict=False))


def format_time(at: datetime) -> str:
    """Write a time as ISO 8601 in UTC with microseconds."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def parse_time(text: str) -> datetime:
    """Read what `format_time` wrote."""
    return datetime.fromisoformat(text)
