"""Signs of life on the real server, and a stream that is cut or deaf."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import anyio
import httpx
import pytest

from ashep.adapters.runners.opencode import activity as life
from ashep.core.facts.runs import Life
from ashep.extras.demo.scripted_model import Call, ModelRequest, Reply
from ashep.extras.testing.runners import followed, looked
from ashep.extras.testing.worlds import opened, prompt, reached
from tests.conformance.runners import RealWorld, real_place, real_world

__all__ = ["real_place", "real_world"]


@contextmanager
def scripted(world: RealWorld, replies: dict[str, Reply]) -> Iterator[None]:
    """Let the model answer a prompt that holds a word, once, with this; everything else with END."""
    before = world.model.script

    def script(ask: ModelRequest) -> Reply:
        word = next((word for word in replies if word in ask.prompt and not ask.results), None)
        return Reply("END") if word is None else replies[word]

    world.model.script = script
    try:
        yield
    finally:
        world.model.script = before


async def looked_at(
    world: RealWorld, word: str, after: float, shows: Callable[[Life], bool] = lambda _: True
) -> tuple[str, Life]:
    """The signs of life of a session that was given a prompt so long ago, or soon after, once they show this."""
    session = await opened(world)
    sent = prompt(session, word)
    await world.runner.send(sent)
    await reached(world, session, sent.message_id, "running")
    await anyio.sleep(after)
    return session, await looked(world, session, shows)


@pytest.mark.real
async def test_a_subagents_signs_are_its_parents(real_world: RealWorld) -> None:
    task = {"description": "sub", "prompt": "DRIP", "subagent_type": "general"}
    replies = {"PARENT": Reply(calls=(Call("task", task),)), "DRIP": Reply("drip " * 40, drip=0.3)}
    async with followed(real_world):
        with scripted(real_world, replies):
            soon = timedelta(seconds=1)
            session, found = await looked_at(real_world, "PARENT", 5.0, lambda life: life.quiet < soon)
    assert found.quiet < soon
    assert found.tool is None  # it waits for a subagent, which shows signs of its own
    await real_world.runner.abort(session)


@pytest.mark.real
async def test_a_provider_that_says_when_to_ask_it_again(real_world: RealWorld) -> None:
    async with followed(real_world):
        with scripted(real_world, {"LIMIT": Reply("slow down", status=429, retry_after=600)}):
            session, found = await looked_at(real_world, "LIMIT", 3.0)
    assert found.retry_in is not None
    assert timedelta(seconds=570) < found.retry_in <= timedelta(seconds=602)
    await real_world.runner.abort(session)


@pytest.mark.real
async def test_what_a_tool_prints_is_a_sign(real_world: RealWorld) -> None:
    prints = {"command": "for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; sleep 0.5; done", "description": "count"}
    async with followed(real_world):
        with scripted(real_world, {"PRINTS": Reply(calls=(Call("bash", prints),))}):
            session, found = await looked_at(
                real_world, "PRINTS", 2.0, lambda life: life.tool is not None and life.quiet < timedelta(seconds=2)
            )
    assert found.tool == "bash"
    assert found.quiet < timedelta(seconds=2)
    await real_world.runner.abort(session)


# --- a stream that is cut or deaf ---------------------------------------------------------------------------------


class Server:
    """A server with one busy session, whose newest message is so many seconds old."""

    def __init__(self, age: float) -> None:
        self.age = age

    async def get(self, path: str) -> httpx.Response:
        now = datetime.now(UTC)
        then = (now - timedelta(seconds=self.age)).timestamp() * 1000
        answers: dict[str, object] = {
            "/session/status": {"ses_a": {"type": "busy"}},
            "/session/ses_a/children": [],
            f"/session/ses_a/message?limit={life.TAIL}": [
                {"info": {"id": "msg_1", "role": "assistant", "time": {"created": then}}, "parts": []}
            ],
        }
        date = now.strftime("%a, %d %b %Y %H:%M:%S GMT")
        return httpx.Response(200, json=answers[path], headers={"date": date})


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock that only grows, as its one entry says."""
    now = [1000.0]
    monkeypatch.setattr(life.anyio, "current_time", lambda: now[0])
    return now


async def quiet(server: Server, watch: life.ActivityMonitor) -> float:
    return (await life.read(server.get, watch, "ses_a")).quiet.total_seconds()


async def test_silence_counts_from_the_last_sign_of_a_stream_that_stands(seconds: list[float]) -> None:
    watch, server = life.ActivityMonitor(), Server(600)
    assert await quiet(server, watch) == 0  # no stream
    watch.stands()
    seconds[0] += 50
    watch.sign("ses_a")
    seconds[0] += 300
    assert await quiet(server, watch) == 300
    watch.cut()
    assert await quiet(server, watch) == 0
    watch.stands()
    watch.sign("ses_other")
    seconds[0] += 60
    assert await quiet(server, watch) == 60


async def test_a_stream_that_has_told_nothing_yet_proves_nothing(seconds: list[float]) -> None:
    watch, server = life.ActivityMonitor(), Server(600)
    watch.stands()
    watch.sent("ses_a", "msg_a")
    seconds[0] += 300
    assert await quiet(server, watch) == 0
    watch.sign("ses_other")
    assert await quiet(server, watch) == 300


@pytest.mark.promise("T11")
async def test_a_stream_that_tells_nothing_is_found_out(seconds: list[float]) -> None:
    """facts/opencode.md 10: `/event` that only heartbeats. A read shows what it did not tell of."""
    watch, server = life.ActivityMonitor(), Server(20)
    watch.stands()
    watch.sign("ses_a")
    seconds[0] += 300
    assert await quiet(server, watch) == 0
    assert watch.deaf
    server.age = 600
    assert await quiet(server, watch) == 0  # until another stream stands
    watch.stands()
    watch.sign("ses_a")
    seconds[0] += 300
    assert await quiet(server, watch) == 300
    assert not watch.deaf
