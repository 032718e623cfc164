"""Suite of the runner: each sentence of the contract in `ashep.ports.runner.Runner` that a test can hold it to.

`from ashep.extras.testing.runners import *` in a test file, next to a fixture `world` that gives a `RunnerWorld`, holds
a runner to it. The tests of ashep hold the one in memory and the one over the real OpenCode server to the very same.

A test writes what agents shall do as *acts*, found by a word in the prompt, and each world plays them in its own way.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from ashep.core.facts.requests import Asked, Request, Verdict
from ashep.core.facts.runs import Life, Refusal
from ashep.errors import RunnerRefused, RunnerUnavailable
from ashep.extras.testing.worlds import (
    ASKS_TO_FETCH,
    BOUND,
    FETCHED,
    Act,
    RunnerWorld,
    asked_of_model,
    begun,
    name,
    needs,
    opened,
    prompt,
    reached,
    settled,
)
from ashep.extras.testing.worlds import anyio_backend as anyio_backend
from ashep.ports.runner import MOST_TEXT, Runner, SessionRequest, Sign
from ashep.ports.user_classes import misfits

pytestmark = pytest.mark.anyio


async def test_every_method_can_be_called_as_the_port_says(world: RunnerWorld) -> None:
    assert list(misfits(type(world.runner), Runner)) == []


async def test_before_the_start_nothing_answers(world: RunnerWorld) -> None:
    await world.runner.aclose()
    with pytest.raises(RunnerUnavailable):
        await world.runner.busy(("ses_1",))
    await world.runner.start()
    assert await world.runner.busy(("ses_1",)) == frozenset()


async def test_a_turn_goes_from_missing_to_finished(world: RunnerWorld) -> None:
    session = await opened(world)
    sent = prompt(session, "hello")
    assert (await world.runner.turn(session, sent.message_id)).state == "missing"
    taken_by = await world.runner.send(sent)
    turn = await settled(world, session, sent.message_id)
    assert (turn.text, turn.error, turn.people, turn.refused) == ("END", None, (), None)
    assert (turn.provider, turn.model) == (world.models[0].provider, world.models[0].model)
    if "counts" in world.can:
        assert turn.tokens > 0
        assert turn.cost > 0
    if "times" in world.can:
        assert turn.agent_message_at is not None
        assert turn.human_message_at is None
    assert taken_by == turn.instance
    if "serves" in world.can:
        assert turn.instance == (await world.runner.catalog()).instance
    assert session not in await world.runner.busy((session,))


async def test_of_a_very_long_answer_the_end_is_given(world: RunnerWorld) -> None:
    session, _, sent = await begun(world, Act(text="```json\n" * (MOST_TEXT // 8) + "THE END"))
    turn = await settled(world, session, sent.message_id)
    assert (len(turn.text), turn.text[-8:]) == (MOST_TEXT, "\nTHE END")


async def test_each_turn_of_a_session_has_its_own_tokens(world: RunnerWorld) -> None:
    needs(world, "counts")
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


async def test_the_prompt_names_agent_and_model(world: RunnerWorld) -> None:
    session = await opened(world)
    sent = prompt(session, "hello", agent=[*world.agents][-1], model=world.models[-1])
    await world.runner.send(sent)
    assert (await settled(world, session, sent.message_id)).model == world.models[-1].model


async def test_a_prompt_sent_again_starts_nothing_new(world: RunnerWorld) -> None:
    session, word, sent = await begun(world, Act(delay=0.5), runs=True)
    await world.runner.send(sent)
    await settled(world, session, sent.message_id)
    await world.runner.send(sent)
    await anyio.sleep(0.5)
    turn = await settled(world, session, sent.message_id)
    assert (world.seen(word), turn.people, turn.text) == (1, (), "END")


async def test_the_catalog_lists_what_can_be_chosen(world: RunnerWorld) -> None:
    await world.runner.start()
    catalog = await world.runner.catalog()
    assert set(world.agents) <= set(catalog.agents)
    assert set(world.models) <= set(catalog.models)
    assert catalog.default == world.models[0]
    assert catalog.version
    assert catalog.instance


async def test_a_session_is_found_by_its_key(world: RunnerWorld) -> None:
    key = f"instance:{name()}/implement.1.1"
    first = await opened(world, key)
    await opened(world, key)
    assert await world.runner.find_session(key) == first
    assert await world.runner.find_session(key[:-1]) is None
    assert await world.runner.has_session(first)
    assert not await world.runner.has_session("ses_nothing")
    assert not await world.runner.has_session("nothing")


async def test_a_session_works_in_the_folder_that_was_named(world: RunnerWorld, tmp_path: Path) -> None:
    """What a server lists it may list by folder: a session elsewhere is found there, seen busy, and stopped."""
    needs(world, "hangs")
    await world.runner.start()
    key, word, folder = f"instance:{name()}/implement.1.1", name(), str(tmp_path)
    session = await world.runner.open_session(SessionRequest(key, key, "read", directory=folder))
    here = await opened(world)
    assert await world.runner.find_session(key, folder) == session
    assert await world.runner.find_session(key) is None
    world.acts[word] = Act(does="hangs")
    sent = prompt(session, word)
    await world.runner.send(sent)
    await reached(world, session, sent.message_id, "running")
    assert await world.runner.busy((session, here)) == {session}
    assert await world.runner.busy((here,)) == frozenset()
    await world.runner.abort(session)
    assert await world.runner.busy((session, here)) == frozenset()


async def test_a_prompt_to_no_session_is_refused(world: RunnerWorld) -> None:
    await world.runner.start()
    with pytest.raises(RunnerRefused):
        await world.runner.send(prompt("ses_0000000000000000000000nope", "hello"))


async def test_the_turn_of_a_session_that_is_gone_is_missing(world: RunnerWorld) -> None:
    await world.runner.start()
    assert (await world.runner.turn("ses_0000000000000000000000nope", "msg_1")).state == "missing"


async def test_a_persons_message_ends_our_turn(world: RunnerWorld) -> None:
    """facts/opencode.md 3."""
    needs(world, "people")
    session, _, sent = await begun(world, Act("OURS"))
    await settled(world, session, sent.message_id)
    person = await world.person_writes(session, "a person was here")
    await anyio.sleep(1)
    turn = await settled(world, session, sent.message_id)
    assert (turn.text, turn.people) == ("OURS", (person,))
    if "times" in world.can:
        assert turn.human_message_at is not None
        assert turn.agent_message_at is not None
        assert turn.agent_message_at <= turn.human_message_at


async def test_a_message_that_waited_for_the_end_of_our_turn_stands_behind_its_outcome(world: RunnerWorld) -> None:
    """Ours has ended although the session goes on: what runs in it is the person's."""
    needs(world, "people", "drips", "hangs")
    session, ours, sent = await begun(world, Act(does="drips"), runs=True)
    world.acts[theirs := name()] = Act(does="hangs")
    await asked_of_model(world, ours)
    person = await world.person_writes(session, theirs)
    turn = await settled(world, session, sent.message_id)
    assert (turn.people, turn.error) == ((person,), None)
    assert await world.runner.busy((session,)) == {session}
    assert (await world.runner.turn(session, sent.message_id)).text == turn.text
    await world.runner.abort(session)


async def test_what_was_asked_in_a_session_is_listed(world: RunnerWorld) -> None:
    needs(world, "people")
    session = await opened(world)
    assert await world.runner.asked(session) == ()
    sent = prompt(session, "hello")
    await world.runner.send(sent)
    await settled(world, session, sent.message_id)
    person = await world.person_writes(session, "a person was here")
    assert set(await world.runner.asked(session)) == {sent.message_id, person}
    assert await world.runner.asked("ses_nothing") == ()


async def test_another_prompt_of_ours_is_no_person(world: RunnerWorld) -> None:
    session = await opened(world)
    first, second = prompt(session, "one"), prompt(session, "two")
    world.acts["two"] = Act("SECOND")
    await world.runner.send(first)
    await settled(world, session, first.message_id)
    await world.runner.send(second)
    assert (await settled(world, session, second.message_id)).text == "SECOND"
    turn = await world.runner.turn(session, first.message_id, frozenset({second.message_id}))
    assert turn.people == ()


async def test_an_abort_is_seen_to_have_stopped_the_turn(world: RunnerWorld) -> None:
    needs(world, "hangs")
    session, _, sent = await begun(world, Act(does="hangs"), runs=True)
    assert session in await world.runner.busy((session,))
    await world.runner.abort(session)
    assert session not in await world.runner.busy((session,))
    turn = await world.runner.turn(session, sent.message_id)
    assert turn.state == "finished"
    assert turn.error is not None
    assert turn.error.startswith("MessageAbortedError")


async def test_an_abort_right_after_the_prompt_stops_it_too(world: RunnerWorld) -> None:
    """facts/opencode.md 26: a young turn is not busy yet."""
    needs(world, "hangs")
    session, _, sent = await begun(world, Act(does="hangs"))
    await world.runner.abort(session)
    await anyio.sleep(1)
    assert session not in await world.runner.busy((session,))
    assert (await world.runner.turn(session, sent.message_id)).state != "running"


async def test_nothing_to_abort_is_fine(world: RunnerWorld) -> None:
    session = await opened(world)
    await world.runner.abort(session)
    await world.runner.abort("ses_0000000000000000000000nope")


async def test_a_providers_error_ends_the_turn(world: RunnerWorld) -> None:
    needs(world, "fails")
    session, word, sent = await begun(world, Act(does="fails"))
    turn = await settled(world, session, sent.message_id)
    assert turn.error is not None
    assert turn.error.startswith("APIError: ")
    assert turn.refused == Refusal("unauthorized", "no")
    assert (turn.text, world.seen(word)) == ("", 1)


async def test_an_answer_that_a_limit_cuts_off_is_no_error(world: RunnerWorld) -> None:
    needs(world, "cut")
    session, _, sent = await begun(world, Act(does="cut"))
    turn = await settled(world, session, sent.message_id)
    assert (turn.cut, turn.error, turn.refused) == (True, None, None)


async def test_while_the_provider_lets_it_wait_the_turn_runs_and_says_why(world: RunnerWorld) -> None:
    """facts/opencode.md 5, 20."""
    needs(world, "waits")
    session, word, sent = await begun(world, Act(does="waits"))
    with anyio.fail_after(10):
        while not (turn := await world.runner.turn(session, sent.message_id)).refused:
            assert turn.state != "finished"
            await anyio.sleep(0.03)
    assert turn.state == "running"
    assert (turn.refused.kind, turn.refused.attempt) == ("limited", 1)
    if "words" in world.can:
        assert turn.refused.why == "slow down"
    assert turn.refused.again_in is not None
    assert turn.refused.again_in <= timedelta(seconds=4)  # the server tells its time in whole seconds
    ended = await settled(world, session, sent.message_id)
    assert (ended.text, ended.refused) == ("END", None)
    assert world.seen(word) == 1


async def asked(world: RunnerWorld, session: str, other_than: str = "") -> Request:
    """What a session asks, once it does."""
    with anyio.fail_after(20):
        while True:
            listed = await world.runner.requests((session,))
            found = [one for one in listed if one.session == session and one.id not in ("", other_than)]
            if found:
                return found[0]
            await anyio.sleep(0.05)


@pytest.mark.parametrize("verdict", ["allow", "deny"])
async def test_a_permission_is_answered_once_and_the_turn_goes_on(world: RunnerWorld, verdict: Verdict) -> None:
    """facts/opencode.md 6, 7: a denial with a message lets the model go on."""
    needs(world, "asks")
    session, _, sent = await begun(world, Act(does="asks"))
    request = await asked(world, session)
    assert (request.kind, request.tool, request.session) == ("permission", "read", session)
    assert "secret.env" in request.patterns[0]
    assert (await world.runner.turn(session, sent.message_id)).state == "running"
    assert await world.runner.reply(session, request.id, "permission", verdict, (), "go on without it")
    assert not await world.runner.reply(session, request.id, "permission", verdict, (), "go on without it")
    assert (await settled(world, session, sent.message_id)).text == "END"
    assert request.id not in {request.id for request in await world.runner.requests((session,))}


@pytest.mark.parametrize("verdict", ["allow", "deny"])
async def test_what_the_server_cannot_list_is_known_from_what_it_told(world: RunnerWorld, verdict: Verdict) -> None:
    """One odd request, and the list of its folder is refused; others in it are judged as ever."""
    needs(world, "fetches", "asks")
    async with followed(world):
        words = [name(), name()]
        world.acts |= {words[0]: Act(does="fetches"), words[1]: Act(does="asks")}
        sessions = [await opened(world, None, ASKS_TO_FETCH) for _ in words]
        sent = [prompt(session, word) for session, word in zip(sessions, words, strict=True)]
        for one in sent:
            await world.runner.send(one)
        odd, even = [await asked(world, session) for session in sessions]
        odd = await asked(world, sessions[0])
        assert (odd.kind, odd.tool, odd.patterns, odd.detail) == ("permission", "webfetch", (FETCHED,), FETCHED)
        assert (even.tool, "secret.env" in even.patterns[0]) == ("read", True)
        assert bool(odd.unlisted) is ("unlists" in world.can)
        assert await world.runner.reply(sessions[0], odd.id, "permission", verdict, (), "go on without it")
        assert not await world.runner.reply(sessions[0], odd.id, "permission", verdict, (), "go on without it")
        await settled(world, sessions[0], sent[0].message_id)
        (even,) = [one for one in await world.runner.requests(sessions) if one.session == sessions[1]]
        assert not even.unlisted, "and then everything is listed again"
        assert await world.runner.reply(sessions[1], even.id, "permission", "deny", (), "go on without it")
        await settled(world, sessions[1], sent[1].message_id)
        assert await world.runner.requests(sessions) == ()


async def test_a_question_is_answered_with_any_text_and_the_turn_goes_on(world: RunnerWorld) -> None:
    needs(world, "questions")
    session, _, sent = await begun(world, Act(does="questions"))
    request = await asked(world, session)
    assert (request.kind, request.asks) == ("question", (Asked("Which one?", ("first", "second")),))
    assert await world.runner.reply(session, request.id, "question", "answer", (("neither",),), "")
    second = await asked(world, session, request.id)
    assert await world.runner.reply(session, second.id, "question", "answer", (("first",),), "")
    assert not await world.runner.reply(session, second.id, "question", "answer", (("first",),), "")
    assert (await settled(world, session, sent.message_id)).text == "END"


async def test_the_transcript_is_the_tail_of_the_text(world: RunnerWorld) -> None:
    session, word, sent = await begun(world, Act())
    await settled(world, session, sent.message_id)
    text = await world.runner.transcript(session, 10_000)
    assert text.index(word) < text.index("END")
    assert await world.runner.transcript(session, 4) == text[-4:]
    assert await world.runner.transcript(session, 0) == ""


# --- signs of life, and a server that dies ---


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
