"""Entries of the journal and their JSON: one flat object with `v`, `seq`, `at`, `type` and the record's own fields."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, get_args

from pydantic import PlainSerializer, PlainValidator, TypeAdapter

from ashep.core.facts.commands import Command
from ashep.core.facts.vocabulary import Fact

VERSION = 1
"""The version of a record's form, where `FORMS` gives its type no other."""

TYPES: dict[str, type] = {kind.__name__: kind for kind in (*get_args(Fact), *get_args(Command))}
"""Every record type by its name in the journal."""

FORMS: dict[str, int] = {}
"""The version that records of a type are written in, once its form was changed in a way that a default cannot bridge.
Each older version needs its step in `UPCASTS`."""

UPCASTS: dict[tuple[str, int], Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""How a record of this type and version becomes one of the next version: pure, on its JSON with `type`, without `v`.
It may give another `type`, at version 1: so a type is renamed."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A fact or a command with its place in the journal and its time (UTC)."""

    seq: int
    at: datetime
    body: Fact | Command


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    return TypeAdapter(TYPES[name])


def form_of(name: str) -> int:
    """Say in which version records of this type are written."""
    return FORMS.get(name, VERSION)


def is_known(name: str, version: int) -> bool:
    """Whether a record of this type and version can be read; the empty name stands for lines that are no entries."""
    if (name, version) in UPCASTS:
        return True
    return (not name or name in TYPES) and version == form_of(name)


def to_json(entry: Entry) -> dict[str, Any]:
    """Give the entry as plain JSON data."""
    name = type(entry.body).__name__
    head = {"v": form_of(name), "seq": entry.seq, "at": format_time(entry.at), "type": name}
    return head | _adapter(name).serializer.to_python(entry.body, mode="json", exclude_defaults=True)


def to_text(entry: Entry) -> bytes:
    """Give the entry as JSON text, as the journal holds it; ValueError where there is none (a lone surrogate)."""
    name = type(entry.body).__name__
    fields = _adapter(name).serializer.to_json(entry.body, exclude_defaults=True)
    head = f'{{"v":{form_of(name)},"seq":{entry.seq},"at":"{format_time(entry.at)}","type":"{name}"'.encode()
    return head + (b"," + fields[1:] if len(fields) > len(b"{}") else b"}")


def from_json(data: dict[str, Any]) -> Entry:
    """Read an entry back; raises ValueError (pydantic's included) where it is not one of ours."""
    return Entry(data["seq"], parse_time(data["at"]), _read_body(data))


def _read_body(data: dict[str, Any]) -> Any:
    name, version = data["type"], data["v"]
    while (step := UPCASTS.get((name, version))) is not None:
        previous = name
        data = step({key: value for key, value in data.items() if key != "v"})
        name = data["type"]
        version = version + 1 if name == previous else VERSION
    if name not in TYPES:
        raise ValueError(f"unknown record type {name!r}")
    # JSON has no tuples: outcomes, which are strict about what an agent says, must take its lists here.
    # No record has a field of the names of the head: what is left over is not looked at.
    return _adapter(name).validator.validate_python(data, strict=False)


def _body_json(body: Fact | Command) -> dict[str, Any]:
    name = type(body).__name__
    fields = _adapter(name).serializer.to_python(body, mode="json", exclude_defaults=True)
    return {"v": form_of(name), "type": name} | fields


Intent = Annotated[Command, PlainValidator(_read_body), PlainSerializer(_body_json, return_type=dict[str, Any])]
"""A command as a field of another value: its JSON says of which type it is."""


def body_text(entry: Entry, leave_out: frozenset[str] = frozenset()) -> str:
    """Give the record's own fields as JSON text, without those that have their default."""
    write = _adapter(type(entry.body).__name__).serializer.to_json
    return write(entry.body, exclude_defaults=True, exclude={*leave_out} if leave_out else None).decode()


def format_time(time: datetime) -> str:
    """Write a time as ISO 8601 in UTC with microseconds."""
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def parse_time(text: str) -> datetime:
    """Read what `format_time` wrote."""
    return datetime.fromisoformat(text)
