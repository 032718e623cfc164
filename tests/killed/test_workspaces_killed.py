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


def one_of(kills: list[Kill], number: int, count: int) -> Kill:
    return kills[(2 * number + 1) * len(kills) // (2 * count)]


@pytest.mark.parametrize("number", range(COUNT))
def test_killed_around_a_tree_its_work_is_sealed_once(place: Place, lived: list[Kill], number: int) -> None:
    around = within(lived, "trees.")
    life = once_or_twice(place, one_of(around, number, COUNT))
    print(f"killed at {' and '.join(life.killed)}, {life.seconds:.1f} s, one of {len(around)}")


@pytest.mark.promise("Z1")
@pytest.mark.parametrize("port", ["verifier.verify", "landing.integrate", "landing.advance"])
def test_killed_at_a_step_of_landing_it_lands_once(place: Place, lived: list[Kill], port: str) -> None:
    around = within(lived, port)
    life = once_or_twice(place, around[len(around) // 2])
    print(f"killed at {' and '.join(life.killed)}, {life.seconds:.1f} s, one of {len(around)}")
