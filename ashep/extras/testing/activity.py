"""Suite of the runner about signs of life, and about a server that dies: a part of `ashep.extras.testing.runners`."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import anyio
import pytest

from ashep.core.facts.runs import Life
from ashep.errors import RunnerUnavailable
from ashep.extras.testing.worlds import (
    BOUND,
    Act,
    RunnerWorld,
    asked_of_model,
    begun,
    needs,
    opened,
    prompt,
    reached,
    settled,
)
from ashep.extras.testing.worlds import anyio_backend as anyio_backend
from ashep.ports.runner import Sign

pytestmark = pytest.mark.anyio


async def test_signs_tell_of_our_session_and_of_a_reconnect(world: RunnerWorld) -> None:
    session, signs = await opened(world), list[Sign]()
    connected, ended = anyio.Event(), anyio.Event()

    async def listen() -> None:
        async for sign in world.runner.signs():
            signs.append(sign)
            connected.set()
            if sign.session == session:
                ended.set()

    async with anyio.create_task_group() as group:
        group.start_soon(listen)
        with anyio.fail_after(BOUND):
            await connected.wait()
            assert signs[0] == Sign(None)
            await world.runner.send(prompt(session, "hello"))
            await ended.wait()
        group.cancel_scope.cancel()


async def test_what_a_person_writes_while_a_turn_runs_is_an_urgent_sign(world: RunnerWorld) -> None:
    """It tells of the message once it can be read; our own prompts, and a text that streams in, are none."""
    needs(world, "people", "hangs")
    urgent = list[str | None]()

    async def listen() -> None:
        async for sign in world.runner.signs():
            if sign.urgent:
                urgent.append(sign.session)

    async with anyio.create_task_group() as group:
        group.start_soon(listen)
        await anyio.sleep(0.2)
        session, _, sent = await begun(world, Act(does="hangs"), runs=True)
        await anyio.sleep(1.5)
        urgent.clear()
        person = await world.person_writes(session, "a person was here")
        with anyio.fail_after(BOUND):
            while session not in urgent or (await world.runner.turn(session, sent.message_id)).people != (person,):
                await anyio.sleep(0.05)
        await world.runner.abort(session)
        group.cancel_scope.cancel()


@asynccontextmanager
async def followed(world: RunnerWorld) -> AsyncGenerator[None]:
    """While somebody follows the signs of life, and a first one was heard."""
    heard = anyio.Event()

    async def listen() -> None:
        async for sign in world.runner.signs():
            if sign.session is not None:
                heard.set()

    async with anyio.create_task_group() as group:
        group.start_soon(listen)
        await anyio.sleep(0.2)
        other, _, sent = await begun(world, Act())
        await settled(world, other, sent.message_id)
        with anyio.fail_after(BOUND):
            await heard.wait()
        yield
        group.cancel_scope.cancel()


async def looked(world: RunnerWorld, session: str, shows: Callable[[Life], bool], looks: int = 8) -> Life:
    """What is told of it once that shows what is looked for, or at the last of some looks: one may come late."""
    life = await world.runner.life(session)
    while not shows(life) and (looks := looks - 1):
        await anyio.sleep(0.2)
        life = await world.runner.life(session)
    return life


async def at_work(world: RunnerWorld, act: Act, seconds: float = 2.0) -> str:
    """A session that has been busy with this for some seconds."""
    session, word, _ = await begun(world, act, runs=True)
    await asked_of_model(world, word)
    await anyio.sleep(seconds)
    return session


async def test_a_session_that_shows_nothing_is_quiet_for_as_long_as_it_was_watched(world: RunnerWorld) -> None:
    needs(world, "hangs")
    session = await at_work(world, Act(does="hangs"))
    assert (await world.runner.life(session)).quiet == timedelta()  # nobody has watched
    async with followed(world):
        session = await at_work(world, Act(does="hangs"))
        life = await world.runner.life(session)
        assert timedelta(seconds=1) < life.quiet < timedelta(seconds=12)
        assert (life.tool, life.retry_in) == (None, None)
        await anyio.sleep(1)
        assert (await world.runner.life(session)).quiet >= life.quiet + timedelta(seconds=0.9)
    again = anyio.current_time()
    async with followed(world):
        await anyio.sleep(0.5)
        watched = timedelta(seconds=anyio.current_time() - again)
        assert (await world.runner.life(session)).quiet < watched + timedelta(seconds=0.5)
    await world.runner.abort(session)


async def test_a_text_that_drips_in_is_a_sign_of_life(world: RunnerWorld) -> None:
    needs(world, "drips")
    async with followed(world):
        session = await at_work(world, Act(does="drips"), 1.5)
        soon = timedelta(seconds=1)
        assert (await looked(world, session, lambda life: life.quiet < soon)).quiet < soon
    await world.runner.abort(session)


async def test_a_tool_at_work_is_told_of(world: RunnerWorld) -> None:
    needs(world, "works")
    async with followed(world):
        session = await at_work(world, Act(does="works"), 0.2)  # of the three that it takes
        first = await looked(world, session, lambda life: life.tool is not None)
        await anyio.sleep(0.5)
        second = await world.runner.life(session)
    assert first.tool == second.tool == "bash"
    assert second.tool_for - first.tool_for >= timedelta(seconds=0.4)
    await world.runner.abort(session)


async def test_a_killed_server_leaves_a_turn_that_the_same_ids_start_once_more(world: RunnerWorld) -> None:
    """facts/opencode.md 11."""
    needs(world, "dies", "hangs")
    session, word, sent = await begun(world, Act(does="hangs"))
    old = await reached(world, session, sent.message_id, "running")
    await asked_of_model(world, word)
    await world.kill()
    if "serves" in world.can:
        with pytest.raises(RunnerUnavailable):
            await world.runner.turn(session, sent.message_id)
        await world.runner.start()
    turn = await world.runner.turn(session, sent.message_id)
    assert turn.state in {"incomplete", "stored"}
    assert turn.instance != old.instance
    assert await world.runner.has_session(session)
    world.acts[word] = Act("AFTER")
    taken_by = await world.runner.send(sent)
    assert (taken_by == turn.instance) is ("serves" in world.can), "and where it has a life of its own, a new one"
    turn = await settled(world, session, sent.message_id)
    assert (turn.text, turn.people, world.seen(word)) == ("AFTER", (), 2)
    await world.runner.send(sent)
    await anyio.sleep(0.5)
    assert world.seen(word) == 2
