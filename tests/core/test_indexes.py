"""What is kept beside the flows so that nobody looks at all of them says what the flows do, and no more."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ashep.core.facts.resources import TimerDue
from ashep.core.reconcile.outstanding import outstanding
from ashep.core.resources import notices as telling
from ashep.core.resources.due_times import due_timers, next_due
from ashep.core.state import immutable as values
from ashep.core.state import pauses, providers, runner_state, sorted_set
from ashep.core.state.indexes import indexed
from ashep.core.state.notices import NOTHING_TOLD
from ashep.core.state.runner_state import NO_SERVERS
from ashep.core.state.sorted_set import Ordered
from ashep.core.state.spending import TIMER, Spending, next_budget
from ashep.core.state.timers import flow_dues
from tests.core.lives import live
from tests.core.test_laws import FEW, SEEDS

SMALL = st.lists(st.tuples(st.booleans(), st.integers(0, 40)), max_size=120)


@FEW
@given(SEEDS)
def test_indexes_say_what_the_flows_say(seed: int) -> None:
    world = live(seed).world
    assert indexed(world.flows) == world.indexes
    flows = world.flows.values()
    assert {flow.issue.id for flow in flows if flow.stage != "closed"} == {*world.indexes.unclosed}
    assert {flow.issue.id for flow in flows if flow.busy} == {*world.indexes.busy}
    for issue in {*world.flows} - {*world.indexes.unclosed, *world.indexes.busy}:
        assert not outstanding(world, issue), "a start does not look at what is closed and has come to rest"
    assert {flow.issue.id for flow in flows if flow.run and not flow.run.settled} == {*world.indexes.live}
    dues = {flow.issue.id: min(due for _, due in flow_dues(flow)) for flow in flows if flow_dues(flow)}
    assert dues == dict(world.indexes.dues.items())
    shared = [*pauses.dues(world.pauses), *providers.dues(world.outages), *runner_state.dues(world.servers)]
    ends = [due for _, due in (*shared, *telling.dues(world))]
    budget = next_budget(world.spending)
    others = [*(due for _, due in runner_state.dues(world.servers)), *(due for _, due in telling.dues(world))]
    assert next_due(world) == min([*dues.values(), *ends, *others, *([budget] if budget else [])], default=None)
    assert not budget or TimerDue(f"{TIMER}:", budget) in list(due_timers(world, budget))
    bare = replace(world, pauses=(), spending=Spending(), outages=(), servers=NO_SERVERS, notices=NOTHING_TOLD)
    for due in dues.values():
        passed = {(timer.key.partition(":")[2], timer.due) for timer in due_timers(bare, due)}
        assert passed == {(flow.issue.id, at) for flow in flows for _, at in flow_dues(flow) if at <= due}
    for blocker, waiting in world.indexes.dependents.items():
        assert {*waiting} == {flow.issue.id for flow in flows if blocker in flow.issue.blocked_by}
    assert {one for flow in flows for one in flow.issue.blocked_by} == {*world.indexes.dependents}


@given(SMALL)
def test_an_ordered_set_is_a_sorted_set(acts: list[tuple[bool, int]]) -> None:
    most, sorted_set.MOST = sorted_set.MOST, 4
    try:
        made, model = Ordered[tuple[int]](), set[tuple[int]]()
        for adds, number in acts:
            before = list(made)
            if adds and (number,) not in model:
                changed = made.insert((number,))
                model.add((number,))
            elif not adds and (number,) in model:
                changed = made.remove((number,))
                model.remove((number,))
            elif not adds:
                with pytest.raises(KeyError):
                    made.remove((number,))
                continue
            else:
                continue
            assert list(made) == before, "it is a value"
            made = changed
            assert list(made) == sorted(model)
            assert len(made) == len(model)
        again = Ordered[tuple[int]]()
        for item in sorted(model, reverse=True):
            again = again.insert(item)
        assert (again, hash(again)) == (made, hash(made))
    finally:
        sorted_set.MOST = most


@dataclass(frozen=True)
class Point:
    x: int
    y: int = 0


def test_a_changed_copy_is_what_dataclasses_make() -> None:
    point = Point(1, 2)
    assert values.replace(point, y=3) == replace(point, y=3) == Point(1, 3)
    assert point == Point(1, 2)
    with pytest.raises(TypeError, match="Point has no field z"):
        values.replace(point, z=1)
    with pytest.raises(AttributeError):
        values.replace(point, y=3).x = 5  # type: ignore[misc]
