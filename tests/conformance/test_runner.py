"""The contract of the port `Runner`, over every runner: a condition of the port's docstrings is a test here."""

import itertools
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta

import anyio
import pytest

from ashep.core.model import Model, Refusal
from ashep.core.requests import Asked, Request, Verdict
from ashep.errors import RunnerRefused, RunnerUnavailable
from ashep.ports import Prompt, SessionRequest, Sign
from tests.conformance.runners import (
    OTHER,
    SCRIPTED,
    Act,
    MemoryWorld,
    World,
    reached,
    real_place,
    real_world,
    settled,
)

__all__ = ["real_place", "real_world"]

_RUN = secrets.token_hex(4)
_number = itertools.count()


@pytest.fixture(params=["memory", pytest.param("real", marks=pytest.mark.real)])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def world(kind: str, request: pytest.FixtureRequest) -> World:
    if kind == "real":
        return request.getfixturevalue("real_world")
    return MemoryWorld()


def name() -> str:
    """A word that no other test uses."""
    return f"{_RUN}x{next(_number):04d}x"


async def opened(world: World, key: str | None = None) -> str:
    await world.runner.start()
    return await world.runner.open_session(SessionRequest(key=key or name(), title="a test", access="write"))


def prompt(session: str, text: str, agent: str | None = "build", model: Model | None = None) -> Prompt:
    ident = name()
    return Prompt(session, f"msg_{ident}", f"prt_{ident}", f"{text} {ident}", agent, model)


async def test_before_the_start_nothing_answers(kind: str, world: World) -> None:
    if kind == "real":
        await world.runner.aclose()
    with pytest.raises(RunnerUnavailable):
        await world.runner.busy()
    await world.runner.start()
    assert isinstance(await world.runner.busy(), frozenset)


async def test_a_turn_goes_from_missing_to_finished(world: World) -> None:
    session = await opened(world)
    sent = prompt(session, "hello")
    assert (await world.runner.turn(session, sent.message_id)).state == "missing"
    taken_by = await world.runner.send(sent)
    turn = await settled(world, session, sent.message_id)
    assert (turn.text, turn.error, turn.people, turn.refused) == ("END", None, (), None)
    assert (turn.provider, turn.model) == ("scripted", "default")
    assert turn.tokens > 0
    assert turn.cost > 0
    assert taken_by == turn.instance == (await world.runner.catalog()).instance
    assert session not in await world.runner.busy()


async def test_each_turn_of_a_session_has_its_own_tokens(world: World) -> None:
    session = await opened(world)
    first, second = prompt(session, "hello"), prompt(session, "and on")
    await world.runner.send(first)
    alone = (await settled(world, session, first.message_id)).tokens
    await world.runner.send(second)
    await settled(world, session, second.message_id)
    turns = [await world.runner.turn(session, sent.message_id, frozenset({first.message_id, second.message_id}))
             for sent in (first, second)]  # fmt: skip
    assert turns[0].tokens == alone
    assert 0 < turns[1].tokens < 1.5 * alone, "the first turn's are not counted once more"


async def test_the_prompt_names_agent_and_model(world: World) -> None:
    session = await opened(world)
    sent = prompt(session, "hello", agent="plan", model=OTHER)
    await world.runner.send(sent)
    assert (await settled(world, session, sent.message_id)).model == "other"


async def test_a_prompt_sent_again_starts_nothing_new(world: World) -> None:
    session, word = await opened(world), name()
    world.acts[word] = Act(delay=0.5)
    sent = prompt(session, word)
    await world.runner.send(sent)
    await reached(world, session, sent.message_id, "running")
    await world.runner.send(sent)
    await settled(world, session, sent.message_id)
    await world.runner.send(sent)
    await anyio.sleep(0.5)
    turn = await settled(world, session, sent.message_id)
    assert (world.seen(word), turn.people, turn.text) == (1, (), "END")


async def test_one_id_in_two_sessions_is_taken_and_never_seen(world: World) -> None:
    """facts/opencode.md 17."""
    first, second, word = await opened(world), await opened(world), name()
    sent = prompt(first, word)
    await world.runner.send(sent)
    await settled(world, first, sent.message_id)
    await world.runner.send(Prompt(second, sent.message_id, sent.part_id, sent.text, sent.agent))
    await anyio.sleep(0.5)
    assert (await world.runner.turn(second, sent.message_id)).state == "missing"
    assert world.seen(word) == 1


async def test_an_unknown_agent_leaves_no_trace(world: World) -> None:
    """facts/opencode.md 16."""
    session = await opened(world)
    sent = prompt(session, "hello", agent="nobody")
    await world.runner.send(sent)
    await anyio.sleep(0.7)
    assert (await world.runner.turn(session, sent.message_id)).state == "missing"
    assert "nobody" not in (await world.runner.catalog()).agents


async def test_an_unknown_model_is_stored_and_never_answered(world: World) -> None:
    """facts/opencode.md 16."""
    session = await opened(world)
    sent = prompt(session, "hello", model=Model("scripted", "nothing"))
    await world.runner.send(sent)
    assert (await reached(world, session, sent.message_id, "stored")).text == ""
    await anyio.sleep(0.5)
    assert (await world.runner.turn(session, sent.message_id)).state == "stored"


async def test_the_catalog_lists_what_can_be_chosen(world: World) -> None:
    await world.runner.start()
    catalog = await world.runner.catalog()
    assert {"build", "plan"} <= set(catalog.agents)
    assert {SCRIPTED, OTHER} <= set(catalog.models)
    assert catalog.default == SCRIPTED
    assert catalog.version
    assert catalog.instance


async def test_a_session_is_found_by_its_key(world: World) -> None:
    key = f"instance:{name()}/implement.1.1"
    first = await opened(world, key)
    await opened(world, key)
    assert await world.runner.find_session(key) == first
    assert await world.runner.find_session(key[:-1]) is None
    assert await world.runner.has_session(first)
    assert not await world.runner.has_session("ses_nothing")
    assert not await world.runner.has_session("nothing")


async def test_a_prompt_to_no_session_is_refused(world: World) -> None:
    await world.runner.start()
    with pytest.raises(RunnerRefused):
        await world.runner.send(prompt("ses_0000000000000000000000nope", "hello"))


async def test_an_id_that_is_none_is_refused(world: World) -> None:
    """facts/opencode.md 2."""
    session = await opened(world)
    with pytest.raises(RunnerRefused):
        await world.runner.send(Prompt(session, "message-1", "prt_1", "hello"))


async def test_the_turn_of_a_session_that_is_gone_is_missing(world: World) -> None:
    await world.runner.start()
    assert (await world.runner.turn("ses_0000000000000000000000nope", "msg_1")).state == "missing"


async def test_a_persons_message_ends_our_turn(world: World) -> None:
    """facts/opencode.md 3."""
    session = await opened(world)
    sent = prompt(session, "hello")
    world.acts[sent.message_id[4:]] = Act("OURS")
    await world.runner.send(sent)
    await settled(world, session, sent.message_id)
    person = await world.person_writes(session, "a person was here")
    await anyio.sleep(1)
    turn = await settled(world, session, sent.message_id)
    assert (turn.text, turn.people) == ("OURS", (person,))


async def test_what_was_asked_in_a_session_is_listed(world: World) -> None:
    session = await opened(world)
    assert await world.runner.asked(session) == ()
    sent = prompt(session, "hello")
    await world.runner.send(sent)
    await settled(world, session, sent.message_id)
    person = await world.person_writes(session, "a person was here")
    assert set(await world.runner.asked(session)) == {sent.message_id, person}
    assert await world.runner.asked("ses_nothing") == ()


async def test_another_prompt_of_ours_is_no_person(world: World) -> None:
    session = await opened(world)
    first, second = prompt(session, "one"), prompt(session, "two")
    world.acts["two"] = Act("SECOND")
    await world.runner.send(first)
    await settled(world, session, first.message_id)
    await world.runner.send(second)
    assert (await settled(world, session, second.message_id)).text == "SECOND"
    turn = await world.runner.turn(session, first.message_id, frozenset({second.message_id}))
    assert turn.people == ()


async def test_an_abort_is_seen_to_have_stopped_the_turn(world: World) -> None:
    session, word = await opened(world), name()
    world.acts[word] = Act(does="hangs")
    sent = prompt(session, word)
    await world.runner.send(sent)
    await reached(world, session, sent.message_id, "running")
    assert session in await world.runner.busy()
    await world.runner.abort(session)
    assert session not in await world.runner.busy()
    turn = await world.runner.turn(session, sent.message_id)
    assert turn.state == "finished"
    assert turn.error is not None
    assert turn.error.startswith("MessageAbortedError")


async def test_an_abort_right_after_the_prompt_stops_it_too(world: World) -> None:
    """facts/opencode.md 26: a young turn is not busy yet."""
    session, word = await opened(world), name()
    world.acts[word] = Act(does="hangs")
    sent = prompt(session, word)
    await world.runner.send(sent)
    await world.runner.abort(session)
    await anyio.sleep(1)
    assert session not in await world.runner.busy()
    assert (await world.runner.turn(session, sent.message_id)).state != "running"


async def test_nothing_to_abort_is_fine(world: World) -> None:
    session = await opened(world)
    await world.runner.abort(session)
    await world.runner.abort("ses_0000000000000000000000nope")


async def test_a_providers_error_ends_the_turn(world: World) -> None:
    session, word = await opened(world), name()
    world.acts[word] = Act(does="fails")
    sent = prompt(session, word)
    await world.runner.send(sent)
    turn = await settled(world, session, sent.message_id)
    assert turn.error is not None
    assert turn.error.startswith("APIError: ")
    assert turn.refused == Refusal("unauthorized", "no")
    assert (turn.text, world.seen(word)) == ("", 1)


async def test_while_the_provider_lets_it_wait_the_turn_runs_and_says_why(world: World) -> None:
    """facts/opencode.md 5, 20."""
    session, word = await opened(world), name()
    world.acts[word] = Act(does="waits")
    sent = prompt(session, word)
    await world.runner.send(sent)
    with anyio.fail_after(10):
        while not (turn := await world.runner.turn(session, sent.message_id)).refused:
            assert turn.state != "finished"
            await anyio.sleep(0.03)
    assert turn.state == "running"
    assert (turn.refused.kind, turn.refused.why, turn.refused.attempt) == ("limited", "slow down", 1)
    assert turn.refused.again_in is not None
    assert turn.refused.again_in <= timedelta(seconds=4)  # the server tells its time in whole seconds
    ended = await settled(world, session, sent.message_id)
    assert (ended.text, ended.refused) == ("END", None)
    assert world.seen(word) == 1


async def asked(world: World, session: str, other_than: str = "") -> Request:
    """What a session asks, once it does."""
    with anyio.fail_after(20):
        while True:
            found = [one for one in await world.runner.requests() if one.session == session and one.id != other_than]
            if found:
                return found[0]
            await anyio.sleep(0.05)


@pytest.mark.parametrize("verdict", ["allow", "deny"])
async def test_a_permission_is_answered_once_and_the_turn_goes_on(world: World, verdict: Verdict) -> None:
    """facts/opencode.md 6, 7: a denial with a message lets the model go on."""
    session, word = await opened(world), name()
    world.acts[word] = Act(does="asks")
    sent = prompt(session, word)
    await world.runner.send(sent)
    request = await asked(world, session)
    assert (request.kind, request.tool, request.session) == ("permission", "read", session)
    assert "secret.env" in request.patterns[0]
    assert (await world.runner.turn(session, sent.message_id)).state == "running"
    assert await world.runner.reply(request.id, "permission", verdict, (), "go on without it")
    assert not await world.runner.reply(request.id, "permission", verdict, (), "go on without it")
    assert (await settled(world, session, sent.message_id)).text == "END"
    assert request.id not in {one.id for one in await world.runner.requests()}


async def test_a_question_is_answered_with_any_text_and_the_turn_goes_on(world: World) -> None:
    session, word = await opened(world), name()
    world.acts[word] = Act(does="questions")
    sent = prompt(session, word)
    await world.runner.send(sent)
    request = await asked(world, session)
    assert (request.kind, request.asks) == ("question", (Asked("Which one?", ("first", "second")),))
    assert await world.runner.reply(request.id, "question", "answer", (("neither",),), "")
    second = await asked(world, session, request.id)
    assert await world.runner.reply(second.id, "question", "answer", (("first",),), "")
    assert not await world.runner.reply(second.id, "question", "answer", (("first",),), "")
    assert (await settled(world, session, sent.message_id)).text == "END"


async def test_the_transcript_is_the_tail_of_the_text(world: World) -> None:
    session = await opened(world)
    sent = prompt(session, "hello there")
    await world.runner.send(sent)
    await settled(world, session, sent.message_id)
    text = await world.runner.transcript(session, 10_000)
    assert text.index("hello there") < text.index("END")
    assert await world.runner.transcript(session, 4) == text[-4:]
    assert await world.runner.transcript(session, 0) == ""


async def test_signs_tell_of_our_session_and_of_a_reconnect(world: World) -> None:
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
        with anyio.fail_after(10):
            await connected.wait()
            assert signs[0] == Sign(None)
            await world.runner.send(prompt(session, "hello"))
            await ended.wait()
        group.cancel_scope.cancel()


@asynccontextmanager
async def followed(world: World) -> AsyncGenerator[None]:
    """While somebody follows the signs of life, and a first one was heard."""
    heard = anyio.Event()

    async def listen() -> None:
        async for sign in world.runner.signs():
            if sign.session is not None:
                heard.set()

    async with anyio.create_task_group() as group:
        group.start_soon(listen)
        await anyio.sleep(0.2)
        other = await opened(world)
        sent = prompt(other, "hello")
        await world.runner.send(sent)
        await settled(world, other, sent.message_id)
        with anyio.fail_after(10):
            await heard.wait()
        yield
        group.cancel_scope.cancel()


async def at_work(world: World, act: Act) -> str:
    """A session that has been busy with this for two seconds."""
    session, word = await opened(world), name()
    world.acts[word] = act
    sent = prompt(session, word)
    await world.runner.send(sent)
    await reached(world, session, sent.message_id, "running")
    with anyio.fail_after(10):
        while not world.seen(word):
            await anyio.sleep(0.02)
    await anyio.sleep(2)
    return session


async def test_a_session_that_shows_nothing_is_quiet_for_as_long_as_it_was_watched(world: World) -> None:
    session = await at_work(world, Act(does="hangs"))
    assert (await world.runner.life(session)).quiet == timedelta()  # nobody has watched
    async with followed(world):
        session = await at_work(world, Act(does="hangs"))
        life = await world.runner.life(session)
        assert timedelta(seconds=1) < life.quiet < timedelta(seconds=12)
        assert (life.tool, life.retry_in) == (None, None)
        await anyio.sleep(1)
        assert (await world.runner.life(session)).quiet >= life.quiet + timedelta(seconds=0.9)
    async with followed(world):
        await anyio.sleep(0.5)
        assert (await world.runner.life(session)).quiet < life.quiet
    await world.runner.abort(session)


async def test_a_text_that_drips_in_is_a_sign_of_life(world: World) -> None:
    async with followed(world):
        session = await at_work(world, Act(does="drips"))
        assert (await world.runner.life(session)).quiet < timedelta(seconds=1)
    await world.runner.abort(session)


async def test_a_tool_at_work_is_told_of(world: World) -> None:
    async with followed(world):
        session = await at_work(world, Act(does="works"))
        first = await world.runner.life(session)
        await anyio.sleep(0.5)
        second = await world.runner.life(session)
    assert first.tool == second.tool == "bash"
    assert second.tool_for - first.tool_for >= timedelta(seconds=0.4)
    await world.runner.abort(session)


async def test_a_killed_server_leaves_a_turn_that_the_same_ids_start_once_more(world: World) -> None:
    """facts/opencode.md 11."""
    session, word = await opened(world), name()
    world.acts[word] = Act(does="hangs")
    sent = prompt(session, word)
    await world.runner.send(sent)
    old = await reached(world, session, sent.message_id, "running")
    with anyio.fail_after(10):
        while not world.seen(word):
            await anyio.sleep(0.02)
    await world.kill()
    with pytest.raises(RunnerUnavailable):
        await world.runner.turn(session, sent.message_id)
    await world.runner.start()
    turn = await world.runner.turn(session, sent.message_id)
    assert turn.state in {"incomplete", "stored"}
    assert turn.instance != old.instance
    assert await world.runner.has_session(session)
    world.acts[word] = Act("AFTER")
    assert await world.runner.send(sent) == turn.instance
    turn = await settled(world, session, sent.message_id)
    assert (turn.text, turn.people, world.seen(word)) == ("AFTER", (), 2)
    await world.runner.send(sent)
    await anyio.sleep(0.5)
    assert world.seen(word) == 2
