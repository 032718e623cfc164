"""A World as parts of JSON text, and back: so that a start need not fold years of facts again.

It knows no field by name: whatever the dataclasses of the World hold is kept, but for its indexes, which are made
again. A part of an unknown name is left out, and a field without a part has its default, so that a later version reads
what an earlier one has kept, as it does with facts.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import fields
from functools import cache
from itertools import islice
from typing import Any, Literal, NamedTuple, get_origin, get_type_hints

from pydantic import TypeAdapter
from rpds import HashTrieMap, HashTrieSet

from ashep.core.policy.runner_kinds import OPENCODE
from ashep.core.state.delivery import Work
from ashep.core.state.flow import Counters, Flow
from ashep.core.state.indexes import indexed
from ashep.core.state.run import Asks, Run, Watch
from ashep.core.state.world import NO_FLOWS, World

Part = tuple[str, bytes]
"""A field of the World, or a piece of it where it is a map or a set; its JSON holds no raw tab and no newline."""

PIECE = 50
"""Items of a map in one part: so that whoever writes parts in a thread lets others go on in between."""

RENAMED = {"held": "takeover"}
"""Fields of a flow that an earlier version kept by another name, and their present one."""

ALONE = {"runner": "seen", "server": "servers"}
"""Parts of a World that had one runner, and those that they are now of each."""

PARTS: dict[type, dict[str, type]] = {Flow: {"counters": Counters, "work": Work}, Run: {"asks": Asks, "watch": Watch}}
"""What was once in a flow or run itself, by the part that it is in now."""


def dump(world: World, items: int = PIECE) -> Iterator[Part]:
    """Give the parts of a World, with so many items of a map or a set in each."""
    for name, kind in _kinds().items():
        value = getattr(world, name)
        if kind.shape == "value":
            # with its defaults: those of a setting may be others in a later version, and it was adopted as it was then
            yield name, kind.adapter.dump_json(value)
            continue
        rest = iter(value.items() if kind.shape == "map" else value)
        while piece := list[Any](islice(rest, items)):
            whole = dict(piece) if kind.shape == "map" else set(piece)
            yield name, kind.adapter.dump_json(whole, exclude_defaults=True)


def load(parts: Iterable[Part]) -> World:
    """Put a World together again; ValueError (pydantic's included) where a part cannot be read."""
    values: dict[str, Any] = {}
    for name, data in parts:
        kind = _kinds().get(name)
        if kind is None:
            continue
        value = kind.adapter.validate_json(data, strict=False)
        if kind.shape != "value":
            whole = values.get(name, HashTrieMap() if kind.shape == "map" else HashTrieSet())
            value = whole.update(value)
        values[name] = value
    return World(**values, indexes=indexed(values.get("flows", NO_FLOWS)))


def of_now(parts: Iterable[Part]) -> Iterator[Part]:
    """Give parts that may be an earlier version's in the present form (docs/decisions/0018-parts.md)."""
    for name, data in parts:
        if name in ALONE:
            name, data = ALONE[name], b"{}" if data == b"null" else b'{"%b": %b}' % (OPENCODE.encode(), data)
        if name == "flows":
            data = json.dumps({issue: _migrate_flow(flow) for issue, flow in json.loads(data).items()}).encode()
        yield name, data


def _migrate_flow(flow: dict[str, Any]) -> dict[str, Any]:
    flow = {RENAMED.get(key, key): value for key, value in flow.items()}
    for whole, parts in ((flow, PARTS[Flow]), (flow.get("run") or {}, PARTS[Run])):
        for part, kind in parts.items():
            if within := {field.name: whole.pop(field.name) for field in fields(kind) if field.name in whole}:
                whole[part] = within
    return flow


class _Kind(NamedTuple):
    """What reads and writes a field."""

    shape: Literal["value", "map", "set"]
    adapter: TypeAdapter[Any]


@cache
def _kinds() -> dict[str, _Kind]:
    # rpds' types take no parameters when a program runs, so that others stand for them here
    hints = get_type_hints(World, localns={"HashTrieMap": dict, "HashTrieSet": set})
    shapes: dict[Any, Literal["map", "set"]] = {dict: "map", set: "set"}
    parts = {field.name: hints[field.name] for field in fields(World) if field.name != "indexes"}
    return {name: _Kind(shapes.get(get_origin(hint), "value"), TypeAdapter(hint)) for name, hint in parts.items()}
