"""What every runner keeps, over the one in memory and the real OpenCode; and what only a server of that kind does."""

import anyio
import pytest

from ashep.core.facts.runs import Model
from ashep.errors import RunnerRefused
from ashep.ports.runner import Prompt
from ashep.testing.runners import *  # noqa: F403 - its tests
from ashep.testing.worlds import RunnerWorld, name, opened, prompt, reached, settled
from tests.conformance.runners import MemoryWorld, real_place, real_world

__all__ = ["real_place", "real_world"]


@pytest.fixture(params=["memory", pytest.param("real", marks=pytest.mark.real)])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def world(kind: str, request: pytest.FixtureRequest) -> RunnerWorld:
    if kind == "real":
        return request.getfixturevalue("real_world")
    return MemoryWorld()


async def test_one_id_in_two_sessions_is_taken_and_never_seen(world: RunnerWorld) -> None:
    """facts/opencode.md 17."""
    first, second, word = await opened(world), await opened(world), name()
    sent = prompt(first, word)
    await world.runner.send(sent)
    await settled(world, first, sent.message_id)
    await world.runner.send(Prompt(second, sent.message_id, sent.part_id, sent.text, sent.agent))
    await anyio.sleep(0.5)
    assert (await world.runner.turn(second, sent.message_id)).state == "missing"
    assert world.seen(word) == 1


async def test_an_unknown_agent_leaves_no_trace(world: RunnerWorld) -> None:
    """facts/opencode.md 16."""
    session = await opened(world)
    sent = prompt(session, "hello", agent="nobody")
    await world.runner.send(sent)
    await anyio.sleep(0.7)
    assert (await world.runner.turn(session, sent.message_id)).state == "missing"
    assert "nobody" not in (await world.runner.catalog()).agents


async def test_an_unknown_model_is_stored_and_never_answered(world: RunnerWorld) -> None:
    """facts/opencode.md 16."""
    session = await opened(world)
    sent = prompt(session, "hello", model=Model("scripted", "nothing"))
    await world.runner.send(sent)
    assert (await reached(world, session, sent.message_id, "stored")).text == ""
    await anyio.sleep(0.5)
    assert (await world.runner.turn(session, sent.message_id)).state == "stored"


async def test_an_id_that_is_none_is_refused(world: RunnerWorld) -> None:
    """facts/opencode.md 2."""
    session = await opened(world)
    with pytest.raises(RunnerRefused):
        await world.runner.send(Prompt(session, "message-1", "prt_1", "hello"))
