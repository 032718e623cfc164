"""Lives in work trees of issues' own, killed around what is done there, and while their work is verified and lands.

All boundaries: `python -m tests.killed --worktree`.
"""

from collections.abc import Iterator
from functools import partial

import pytest
from anyio.from_thread import start_blocking_portal

from ashep.demo.model import ModelServer
from tests.killed.place import Place, places
from tests.killed.scenario import play
from tests.killed.sweep import Kill, boundaries_at_once, once_or_twice

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(ModelServer(partial(play, commits=False))) as model,
        places(model, ["kw"], workspace="worktree") as (made,),
    ):
        yield made


@pytest.fixture(scope="module")
def lived(place: Place) -> list[Kill]:
    return boundaries_at_once(place)


def within(lived: list[Kill], *ports: str) -> list[Kill]:
    """The boundaries that lie in calls of these adapters, and at their ends."""
    found, inside = list[Kill](), False
    for kill in lived:
        ends = kill.at.startswith(ports)
        if ends:
            inside = " asked#" in kill.at
        if inside or ends:
            found.append(kill)
    return found


def test_killed_around_a_tree_its_work_is_sealed_once(place: Place, lived: list[Kill]) -> None:
    around = within(lived, "trees.seal")
    life = once_or_twice(place, around[len(around) // 2])
    print(f"killed at {' and '.join(life.killed)}, {life.seconds:.1f} s, one of {len(around)}")


@pytest.mark.promise("Z1")
def test_killed_at_a_step_of_landing_it_lands_once(place: Place, lived: list[Kill]) -> None:
    """Where the base moves; every step of that, on git alone: tests/test_landing_killed.py."""
    around = within(lived, "landing.advance")
    life = once_or_twice(place, around[len(around) // 2])
    print(f"killed at {' and '.join(life.killed)}, {life.seconds:.1f} s, one of {len(around)}")
