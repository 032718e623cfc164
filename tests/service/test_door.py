"""Who keeps whom out, on real sockets: nobody without a token keeps those out who have one."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import anyio
import httpx
import pytest
from anyio.abc import SocketStream

from ashep.adapters.system import http_server
from ashep.adapters.system.http_server import make_server
from ashep.api import connection_limits
from ashep.api import server as serving
from tests.service.worlds import TOKEN, World, repository

pytestmark = pytest.mark.promise("L21")

HALF = b"GET /status/t-1 HTTP/1.1\r\nHost: localhost\r\nX-Slow: "


@pytest.fixture
def world(folder: Path) -> World:
    world = World(repository(folder.parent / "project"))
    world.issue()
    return world


@asynccontextmanager
async def served(world: World) -> AsyncIterator[tuple[httpx.AsyncClient, Callable[[], Awaitable[SocketStream]]]]:
    """A service, somebody who has its token, and how strangers connect to it."""
    listener = serving.listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    server = make_server(world.app, serving.GRACE)
    known = {"Authorization": f"Bearer {TOKEN}"}
    async with AsyncExitStack() as stack:
        group = await stack.enter_async_context(anyio.create_task_group())
        group.start_soon(server.serve, [listener])
        stack.callback(setattr, server, "should_exit", True)
        client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=known, trust_env=False, timeout=60)

        async def connect() -> SocketStream:
            return await stack.enter_async_context(await anyio.connect_tcp("127.0.0.1", port))

        yield await stack.enter_async_context(client), connect


async def ended(stranger: SocketStream) -> None:
    """Read until nothing comes any more."""
    with anyio.fail_after(60), suppress(anyio.EndOfStream, anyio.BrokenResourceError):
        while True:
            await stranger.receive()


async def drip(stranger: SocketStream) -> None:
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        while True:
            await stranger.send(b"x")
            await anyio.sleep(0.05)


@pytest.mark.parametrize("count", [70, 200])
@pytest.mark.parametrize("sent", [b"", HALF])
async def test_unfinished_heads_keep_nobody_out(world: World, count: int, sent: bytes) -> None:
    async with served(world) as (client, connect):
        for _ in range(count):
            stranger = await connect()
            if sent:
                await stranger.send(sent)
        assert [(await client.get("/status/t-1")).status_code for _ in range(3)] == [200] * 3


@pytest.mark.parametrize("first", [b"", b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"])
async def test_a_head_is_waited_for_once_however_slowly_it_comes(
    world: World, monkeypatch: pytest.MonkeyPatch, first: bytes
) -> None:
    monkeypatch.setattr(http_server, "HEAD", 0.5)
    async with served(world) as (client, connect), anyio.create_task_group() as group:
        stranger = await connect()
        await stranger.send(first + HALF)
        group.start_soon(drip, stranger)
        await ended(stranger)
        group.cancel_scope.cancel()
        assert (await client.get("/status/t-1")).status_code == 200


async def test_only_work_with_the_token_counts(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "AT_ONCE", 2)
    body = b"POST /verify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n"
    known = b"Authorization: Bearer " + TOKEN.encode() + b"\r\n"
    async with served(world) as (client, connect):
        for _ in range(5):
            stranger = await connect()
            await stranger.send(body + b"\r\n{")
            assert b" 401 " in await stranger.receive()
            await ended(stranger)  # no body of theirs is waited for
        assert (await client.get("/status/t-1")).status_code == 200
        workers = [await connect() for _ in range(2)]
        for one in workers:
            await one.send(body + known + b"\r\n{")
        with anyio.fail_after(60):
            while (answer := await client.get("/status/t-1")).status_code != 503:
                await anyio.sleep(0.05)
        assert answer.headers["retry-after"]
        assert answer.headers["content-type"] == "application/problem+json"
        for one in workers:
            await one.aclose()
        with anyio.fail_after(60):
            while (await client.get("/status/t-1")).status_code != 200:
                await anyio.sleep(0.05)
