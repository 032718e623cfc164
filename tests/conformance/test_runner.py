"""What every runner keeps, over the one in memory and the real OpenCode; and what only a server of that kind does."""

import anyio
import pytest

from ashep.core.facts.runs import Model
from ashep.errors import RunnerRefused
from ashep.extras.testing.runners import *  # noqa: F403 - its tests
from ashep.extras.testing.worlds import RunnerWorld, name, opened, prompt, reached, settled
from ashep.ports.runner import Prompt
from tests.conformance.runners import MemoryWorld, NamedWorld, real_place, real_world

# The promises of docs/SPEC.md that tests of the suite prove (tests/conformance/conftest.py marks them).
PROVES: dict[str, tuple[str, ...]] = {
    "test_what_a_person_writes_while_a_turn_runs_is_an_urgent_sign": ("P10",),
    "test_a_message_that_waited_for_the_end_of_our_turn_stands_behind_its_outcome": ("P10",),
    "test_a_prompt_sent_again_starts_nothing_new": ("T1",),
    "test_a_turn_goes_from_missing_to_finished": ("T2",),
    "test_a_killed_server_leaves_a_turn_that_the_same_ids_start_once_more": ("T4",),
    "test_a_session_that_shows_nothing_is_quiet_for_as_long_as_it_was_watched": ("T11",),
    "test_a_text_that_drips_in_is_a_sign_of_life": ("T11",),
    "test_an_abort_is_seen_to_have_stopped_the_turn": ("T6",),
    "test_an_abort_right_after_the_prompt_stops_it_too": ("T6",),
    "test_what_the_server_cannot_list_is_known_from_what_it_told": ("T7",),
    "test_a_permission_is_answered_once_and_the_turn_goes_on": ("T7", "H4"),
    "test_each_turn_of_a_session_has_its_own_tokens": ("L7",),
}

__all__ = ["real_place", "real_world"]


@pytest.fixture(params=["memory", "named", pytest.param("real", marks=pytest.mark.real)])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def world(kind: str, request: pytest.FixtureRequest) -> RunnerWorld:
    if kind == "real":
        return request.getfixturevalue("real_world")
    return NamedWorld() if kind == "named" else MemoryWorld()


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
