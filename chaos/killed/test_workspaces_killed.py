"""Lives in work trees of issues' own, killed around what is done there, and while their work is verified and lands.

All boundaries: `python -m chaos.killed --worktree`.
"""

from collections.abc import Iterator
from functools import partial

import pytest
from anyio.from_thread import start_blocking_portal

from ashep.extras.demo.scripted_model import ModelServer
from chaos.killed.place import Place, places
from chaos.killed.scenario import play

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(ModelServer(partial(play, commits=False))) as model,
        places(model, ["kw"], workspace="worktree") as (made,),
    ):
        yield made


def test_killed_around_a_tree_its_work_is_sealed_once(place: Place) -> None:
    """In the midst of it: git goes on with its commit, whose words it must have by then."""
    life = place.live("started git commit#1")
    assert len(life.killed) == 1
    print(f"killed at {' and '.join(life.killed)}, {life.seconds:.1f} s")


@pytest.mark.promise("Z1")
def test_killed_at_a_step_of_landing_it_lands_once(place: Place) -> None:
    """Where the base moves; every step of that, on git alone: tests/test_landing_killed.py."""
    life = place.live("landing.advance asked#1+9")
    assert len(life.killed) == 1
    print(f"killed at {' and '.join(life.killed)}, {life.seconds:.1f} s")
