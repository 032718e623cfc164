"""A World that was kept and read back is the same World, and goes on in the same way."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rpds import HashTrieMap, HashTrieSet

from ashep.core.facts.commands import Command
from ashep.core.facts.records import from_json, to_json
from ashep.core.facts.resources import DaemonStarted
from ashep.core.reconcile.evolve import evolve
from ashep.core.reconcile.step import step
from ashep.core.state import snapshot
from ashep.core.state.flow import Flow
from ashep.core.state.run import Run
from ashep.core.state.snapshot import PARTS, Part, dump, load, of_now
from ashep.core.state.world import World
from tests.core.lives import live
from tests.core.test_laws import FEW, SEEDS
from tests.golden.story import story


def flat(part: Part) -> Part:
    """As it was kept when what is in the parts of a flow and its run was in them themselves."""
    flows = json.loads(part[1]) if part[0] == "flows" else {}
    for flow in flows.values():
        for kind, whole in ((Flow, flow), (Run, flow.get("run") or {})):
            for name in PARTS[kind]:
                whole |= whole.pop(name, {})
    return (part[0], json.dumps(flows).encode()) if flows else part


@pytest.mark.slow
@pytest.mark.promise("J10")
@FEW
@given(SEEDS)
def test_a_world_comes_back_and_goes_on_as_it_would_have(seed: int) -> None:
    """At some place of a life: as it is kept there, and as it is folded from the journal's text up to there."""
    entries = live(seed).entries
    place = seed % len(entries)
    world = World()
    for entry in entries[:place]:
        world = evolve(world, from_json(to_json(entry)))
    again = load(dump(world))
    assert again == world == load(of_now(map(flat, dump(world))))
    for entry in entries[place:]:
        world, again = evolve(world, entry), evolve(again, entry)
    assert again == world
    last = entries[-1]
    facts = [DaemonStarted(1, "0")]
    after = [step(one, facts, last.at, last.seq + 2, everything=True)[1] for one in (world, load(dump(again)))]
    assert after[0] == after[1]


@settings(max_examples=30)
@given(st.timedeltas(timedelta(-9), timedelta(9)), st.frozensets(st.text()), st.text())
def test_values_that_lives_seldom_have_come_back(gap: timedelta, shown: frozenset[str], text: str) -> None:
    flow = next(iter(live(1, 40).world.flows.values()))
    made = replace(
        flow,
        counters=replace(flow.counters, thought=gap),
        shown=frozenset(one.encode(errors="replace").decode() for one in shown),
        why=text,
    )
    world = World(flows=HashTrieMap({"t-0": made}))
    assert load(dump(world)).flows["t-0"] == made


def test_every_kind_of_open_intent_comes_back() -> None:
    found = {type(one.body): one.body for batch in story() for one in batch if isinstance(one.body, Command)}
    assert {*found} == {*get_args(Command)}
    flow = next(iter(live(1, 40).world.flows.values()))
    world = World(flows=HashTrieMap({"t-0": replace(flow, open=tuple(found.values()))}))
    assert load(dump(world)).flows["t-0"].open == tuple(found.values())


def test_parts_that_are_unknown_or_missing_are_no_error() -> None:
    world = live(3).world
    parts = [("surprise", b"7"), *(part for part in dump(world) if part[0] != "hint_seq")]
    assert load(parts) == replace(world, hint_seq=0)
    flows = [json.loads(data) for name, data in dump(world) if name == "flows"]
    later = json.dumps({issue: flow | {"surprise": 1} for piece in flows for issue, flow in piece.items()}).encode()
    assert load([("flows", later)]).flows == world.flows


@pytest.mark.slow
def test_a_part_is_small_and_one_line() -> None:
    world = World(flows=HashTrieMap({f"t-{n}\n\t": next(iter(live(1, 40).world.flows.values())) for n in range(120)}))
    parts = [data for name, data in dump(world) if name == "flows"]
    assert [len(json.loads(data)) for data in parts] == [snapshot.PIECE, snapshot.PIECE, 20]
    assert not any(b"\n" in data or b"\t" in data for data in parts)
    assert load(dump(world)).flows == world.flows


def test_no_field_holds_commands_that_do_not_say_their_type() -> None:
    """A union of plain dataclasses would be read back as whichever fits."""
    for kind in (World, Flow):
        hints = get_type_hints(kind, localns={"HashTrieMap": dict, "HashTrieSet": set}, include_extras=True)
        for hint in hints.values():
            assert not any(one.__name__ in str(hint) for one in get_args(Command)) or "PlainSerializer" in str(hint)


def test_sets_of_the_world_come_back() -> None:
    """Which lives fill seldom, or never."""
    kinds = snapshot._kinds()
    sets = [name for name, kind in kinds.items() if kind.shape == "set"]
    made: dict[str, Any] = {name: HashTrieSet([f"t-{number}" for number in range(120)]) for name in sets}
    world = World(**made)
    assert load(dump(world)) == world
