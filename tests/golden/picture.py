"""The World as plain JSON, so that it can be kept beside the journal that it is the fold of."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from typing import Any, cast

from pydantic import BaseModel
from rpds import HashTrieMap, HashTrieSet

from ashep.core.facts.records import format_time
from ashep.core.policy.runner_kinds import OPENCODE
from ashep.core.state.runner_state import NO_SERVER
from ashep.core.state.snapshot import ALONE, PARTS, RENAMED
from ashep.core.state.world import World

Known = dict[str, list[str]]
"""The fields of each class at the time of the picture: what is added later, with a default, is not compared."""


CLASSES = {"Takeover": "Held"}
"""The classes that an earlier release called otherwise, and how (docs/decisions/0018-parts.md)."""


def picture(world: World, known: Known | None = None) -> dict[str, Any]:
    """Give the World and the fields that it shows; `known`: only those."""
    shown: Known = {}
    return {"world": _plain(world, known, shown), "fields": shown if known is None else known}


def _plain(value: Any, known: Known | None, shown: Known) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_defaults=True)
    if is_dataclass(value) and not isinstance(value, type):
        kind = type(value).__name__
        kind = kind if known is None or kind in known else CLASSES.get(kind, kind)
        names = [field.name for field in fields(value)] if known is None else known.get(kind, [])
        shown[kind] = names = [name for name in names if kind != "World" or name != "indexes"]
        return {name: _plain(_field(value, name), known, shown) for name in names}
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, (Mapping, HashTrieMap)):
        pairs = cast("Mapping[str, Any]", value)
        return {key: _plain(pairs[key], known, shown) for key in sorted(pairs)}
    if isinstance(value, (set, frozenset, HashTrieSet)):
        return sorted(cast("set[str]", value))
    if isinstance(value, (tuple, list)):
        return [_plain(one, known, shown) for one in cast("list[Any]", value)]
    return value


def _field(value: Any, name: str) -> Any:
    if isinstance(value, World) and name in ALONE:
        return getattr(value, ALONE[name]).get(OPENCODE, NO_SERVER if name == "server" else None)
    parts = PARTS.get(type(value), {})
    part = next((part for part, kind in parts.items() if name in kind.__dataclass_fields__), None)
    return getattr(getattr(value, part) if part else value, RENAMED.get(name, name))
