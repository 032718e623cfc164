"""Lives in work trees of issues' own, killed around what is done to those. All: `python -m tests.killed --worktree`."""

from collections.abc import Iterator
from functools import partial

import pytest
from anyio.from_thread import start_blocking_portal

from ashep.demo.model import ModelServer
from tests.killed.place import Place, places
from tests.killed.scenario import play
from tests.killed.sweep import Kill, boundaries_at_once, once_or_twice

pytestmark = pytest.mark.real

COUNT = 5


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(ModelServer(partial(play, commits=False))) as model,
        places(model, ["kw"], workspace="worktree") as (made,),
    ):
        yield made


@pytest.fixture(scope="module")
def around(place: Place) -> list[Kill]:
    """The boundaries that lie in the preparing and sealing of trees."""
    found, inside = list[Kill](), False
    for kill in boundaries_at_once(place):
        if kill.at.startswith("trees."):
            inside = " asked#" in kill.at
        if inside or kill.at.startswith("trees."):
            found.append(kill)
    return found


@pytest.mark.parametrize("number", range(COUNT))
def test_killed_around_a_tree_its_work_is_sealed_once(place: Place, around: list[Kill], number: int) -> None:
    kill = around[(2 * number + 1) * len(around) // (2 * COUNT)]
    life = once_or_twice(place, kill)
    print(f"killed at {' and '.join(life.killed)}, {life.seconds:.1f} s, one of {len(around)}")
