"""What every runner keeps, over the real `opencode acp` with a scripted model; and what only agents of that kind do."""

import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from ashep.extras.demo.scripted_model import Call
from ashep.extras.testing.runners import *  # noqa: F403 - its tests
from ashep.extras.testing.worlds import Act, begun, name, opened, prompt, settled
from ashep.ports.runner import SessionRequest
from tests.acp.worlds import OpencodeWorld

pytestmark = [pytest.mark.anyio, pytest.mark.real]


@pytest.fixture(scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[OpencodeWorld]:
    async with AsyncExitStack() as stack:
        world = OpencodeWorld(tmp_path_factory.mktemp("acp"))
        await stack.enter_async_context(world.model)
        world.configure()
        stack.push_async_callback(world.aclose)
        yield world
    shutil.rmtree(world.place.folder, ignore_errors=True)


async def test_its_turns_are_begun_once(world: OpencodeWorld) -> None:
    await world.runner.start()
    assert world.runner.guarantee == "once"


async def test_who_may_only_read_writes_nothing(world: OpencodeWorld) -> None:
    """Neither by a tool that the mode has not, nor by one that is asked about."""
    await world.runner.start()
    word, names = name(), [f"{name()}.txt" for _ in range(3)]
    touch = [Call("bash", {"command": f"touch {one}", "description": "d"}) for one in names[:2]]
    world.steps[word] = [*touch, Call("write", {"filePath": str(world.directory / names[2]), "content": "x"})]
    session = await world.runner.open_session(SessionRequest(word, "a test", "read"))
    sent = prompt(session, word, agent="build")
    await world.runner.send(sent)
    assert (await settled(world, session, sent.message_id)).error is None
    assert not {*names} & {one.name for one in world.directory.iterdir()}
    world.steps[word] = [Call("write", {"filePath": str(world.directory / names[2]), "content": "x"})]
    session = await opened(world)
    sent = prompt(session, word)
    await world.runner.send(sent)
    await settled(world, session, sent.message_id)
    assert (world.directory / names[2]).read_text() == "x"


async def test_a_providers_words_are_the_error_that_ends_a_turn(world: OpencodeWorld) -> None:
    session, _, sent = await begun(world, Act(does="fails"))
    turn = await settled(world, session, sent.message_id)
    assert (turn.error, turn.text) == ("APIError: no", "")
