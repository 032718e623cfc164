"""Each row of the design's table of threats, tried with a request over a real socket; and what every answer carries."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import anyio
import pytest
from anyio.abc import SocketStream

from ashep.adapters.system.http_server import make_server
from ashep.api import server as serving
from ashep.api.application import MAX_BODY
from ashep.api.handlers import events
from ashep.api.routes import V1
from ashep.config import write_starter
from ashep.request_guard import HEADERS
from tests.recorded import life
from tests.service.worlds import PAGE, TOKEN, World, repository

pytestmark = [pytest.mark.promise("L21"), pytest.mark.anyio]

PROXY = "https://box.example.net"


@pytest.fixture
def world(folder: Path) -> World:
    project = repository(folder.parent / "project")
    write_starter(project / ".agent-shepherd")
    life(project / ".agent-shepherd" / "state", issues=3, until="person")
    return World(project, origins=(PROXY,))


class Told(NamedTuple):
    """An answer."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


@dataclass
class Wire:
    """A server, and the bytes that it is sent."""

    kind: str
    place: str | int
    stack: AsyncExitStack

    async def connect(self) -> SocketStream:
        if self.kind == "unix":
            return await self.stack.enter_async_context(await anyio.connect_unix(str(self.place)))
        return await self.stack.enter_async_context(await anyio.connect_tcp("127.0.0.1", int(self.place)))

    async def ask(self, head: str, *lines: str, body: bytes = b"", host: str | None = "localhost:1") -> Told:
        """Send a request as it stands, and read to the end."""
        given = [head, *([] if host is None else [f"Host: {host}"]), "Connection: close", *lines]
        given += [f"Content-Length: {len(body)}"] if body else []
        stream = await self.connect()
        said = b""
        with anyio.fail_after(60):
            await stream.send("\r\n".join([*given, "", ""]).encode("latin-1"))
            try:
                await stream.send(body)
                while True:
                    said += await stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                pass
        top, _, rest = said.partition(b"\r\n\r\n")
        status, *told = top.decode("latin-1").split("\r\n")
        pairs = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in told)]
        return Told(int(status.split()[1]), pairs, rest)


@asynccontextmanager
async def served(world: World, socket: Path | None = None) -> AsyncIterator[Wire]:
    server = make_server(world.app, serving.GRACE)
    async with AsyncExitStack() as stack:
        at = serving.listen("127.0.0.1", 0) if socket is None else serving.listening_at(socket)
        listener = stack.enter_context(at)
        group = await stack.enter_async_context(anyio.create_task_group())
        group.start_soon(server.serve, [listener])
        stack.callback(setattr, server, "should_exit", True)
        stack.callback(world.live.end)
        kind = "tcp" if socket is None else "unix"
        yield Wire(kind, listener.getsockname()[1] if socket is None else str(socket), stack)


def bearer(token: str) -> str:
    return f"Authorization: Bearer {token}"


JSON = "Content-Type: application/json"
NOW = f"GET {V1}/now HTTP/1.1"
ENTER = f"POST {V1}/enter HTTP/1.1"
ACT = f"POST {V1}/issues/t-1 HTTP/1.1"
PAUSE = f"POST {V1}/pause HTTP/1.1"
"""It needs a person, and there is no daemon: 503 says that everything else let it through."""


def rows(pat: str, used: str) -> dict[str, tuple[int, str, tuple[str, ...], bytes, str | None]]:
    """What is asked, and the status that it must be answered with."""
    me, machine, stale = bearer(pat), bearer(TOKEN), json.dumps({"do": "approve", "asked": "2020"}).encode()

    def row(
        status: int, head: str, *lines: str, body: bytes = b"", host: str | None = "localhost:1"
    ) -> tuple[int, str, tuple[str, ...], bytes, str | None]:
        return status, head, lines, body, host

    page = "Accept: text/html"
    return {
        "a name that was bound anew": row(421, NOW, me, host="evil.example:8090"),
        "no name at all": row(400, NOW, me, host=None),
        "a name that was bound anew, for the page": row(421, "GET / HTTP/1.1", page, host="evil.example"),
        "the name of before, in an address": row(200, NOW, me, host="127.0.0.1:4711"),
        "a foreign origin": row(403, PAUSE, me, JSON, "Origin: http://evil.example", body=b"{}"),
        "a foreign origin reads": row(403, NOW, me, "Origin: http://evil.example"),
        "an origin of nobody": row(403, PAUSE, me, JSON, "Origin: null", body=b"{}"),
        "another port": row(403, PAUSE, me, JSON, "Origin: http://localhost:2", body=b"{}"),
        "another site of ours": row(403, PAUSE, me, JSON, "Sec-Fetch-Site: same-site", body=b"{}"),
        "the page's own": row(503, PAUSE, me, JSON, "Origin: http://localhost:1", body=b"{}"),
        "a form": row(415, PAUSE, me, "Content-Type: application/x-www-form-urlencoded", body=b"a=b"),
        "a form in parts": row(415, PAUSE, me, "Content-Type: multipart/form-data; boundary=x", body=b"--x--"),
        "a plain text": row(415, PAUSE, me, "Content-Type: text/plain", body=b"{}"),
        "two names": row(400, NOW, me, "Host: evil.example"),
        "two origins": row(400, NOW, me, "Origin: http://localhost:1", "Origin: http://evil.example"),
        "two tokens": row(400, NOW, me, bearer("x")),
        "two kinds of body": row(400, PAUSE, me, JSON, "Content-Type: text/plain", body=b"{}"),
        "two lengths": row(400, PAUSE, me, JSON, "Content-Length: 9", body=b"{}"),
        "a length and other pieces": row(400, PAUSE, me, JSON, "Transfer-Encoding: x", body=b"{}"),
        "a folded line": row(400, NOW, me, "X: a", "Host: evil.example", " b"),
        "no token": row(401, NOW),
        "a token in a cookie": row(401, NOW, f"Cookie: token={pat}"),
        "a token in the address": row(401, f"GET {V1}/now?token={pat} HTTP/1.1"),
        "a used code": row(403, ENTER, JSON, body=json.dumps({"code": used}).encode()),
        "a code for another": row(403, ENTER, JSON, body=json.dumps({"code": TOKEN}).encode()),
        "the machine answers": row(403, ACT, machine, JSON, body=stale),
        "the machine pauses": row(403, PAUSE, machine, JSON, body=b"{}"),
        "the machine reads": row(200, NOW, machine),
        "another question": row(409, ACT, me, JSON, body=stale),
        "a body too large": row(413, PAUSE, me, JSON, body=b" " * (MAX_BODY + 1)),
        "the proxy": row(503, PAUSE, me, JSON, f"Origin: {PROXY}", body=b"{}", host="box.example.net"),
        "the proxy as loopback": row(503, PAUSE, me, JSON, f"Origin: {PROXY}", body=b"{}"),
        "the proxy without TLS": row(403, PAUSE, me, JSON, "Origin: http://box.example.net", body=b"{}",
                                     host="box.example.net"),
        "beside the proxy": row(421, NOW, me, host="a.box.example.net"),
        "who it was asked for does not count": row(421, NOW, me, "X-Forwarded-Host: localhost", host="evil.example"),
        "TRACE": row(405, f"TRACE {V1}/now HTTP/1.1", me),
        "OPTIONS": row(405, f"OPTIONS {V1}/pause HTTP/1.1", me, "Origin: http://localhost:1",
                       "Access-Control-Request-Method: POST"),
        "OPTIONS of another page": row(403, f"OPTIONS {V1}/pause HTTP/1.1", "Origin: http://evil.example",
                                       "Access-Control-Request-Method: POST"),
        "a method of nobody": row(405, f"BREW {V1}/now HTTP/1.1", me),
        "a socket of the web": row(200, NOW, me, "Upgrade: websocket", "Sec-WebSocket-Version: 13"),
        "an unknown path": row(404, f"GET {V1}/nowhere HTTP/1.1", me),
        "an unknown path, and nobody": row(401, f"GET {V1}/nowhere HTTP/1.1"),
        "a path with a slash more": row(404, f"GET {V1}/now/ HTTP/1.1", me),
        "up, in the address": row(404, "GET /assets/../../pyproject.toml HTTP/1.1", me),
        "up, encoded": row(404, "GET /assets/%2e%2e/%2e%2e/index.html HTTP/1.1", me),
        "up, encoded whole": row(404, "GET /assets%2f..%2findex.html HTTP/1.1", me),
        "up, encoded twice": row(404, "GET /assets/%252e%252e/index.html HTTP/1.1", me),
        "an absolute file": row(404, "GET //etc/passwd HTTP/1.1", me),
        "a byte of nothing": row(404, "GET /assets/a-1.js%00.html HTTP/1.1", me),
        "another server's address": row(404, f"GET http://evil.example{V1}/now HTTP/1.1", me),
        "an id that leads elsewhere": row(404, f"GET {V1}/issues/..%2f..%2fetc HTTP/1.1", me),
        "the page": row(200, "GET / HTTP/1.1", page),
        "the page's program": row(200, "GET /assets/a-1.js HTTP/1.1"),
        "no HTTP": row(400, "\x16\x03\x01 hello"),
    }  # fmt: skip


async def test_every_row_of_the_table_of_threats(world: World) -> None:
    pat, _ = world.sessions.enter(world.sessions.code("Pat"))
    used = world.sessions.code("Pat")
    world.sessions.enter(used)
    async with served(world) as wire:
        asked = rows(pat, used)
        told = {
            name: await wire.ask(head, *more, body=body, host=host)
            for name, (_, head, more, body, host) in asked.items()
        }
    assert {name: one.status for name, one in told.items()} == {name: one[0] for name, one in asked.items()}
    for name, one in told.items():
        kept = dict(one.headers)
        assert len([1 for found, _ in one.headers if found == "content-security-policy"]) == 1, name
        assert all(kept.get(header.decode()) == value.decode() for header, value in HEADERS), name
        assert "cache-control" in kept, name
        assert not [found for found in kept if found.startswith(("set-cookie", "access-control-"))], name
        assert pat.encode() not in one.body, name
    assert told["the page"].body == PAGE["index.html"], "and whatever else was asked for, no file of the machine"
    assert not [said for said in world.said if pat in said or used in said]


async def test_of_two_who_use_one_code_at_once_one_comes_in(world: World) -> None:
    body = json.dumps({"code": world.sessions.code("Pat")}).encode()
    found = list[int]()
    async with served(world) as wire, anyio.create_task_group() as group:

        async def enter() -> None:
            found.append((await wire.ask(ENTER, JSON, body=body)).status)

        for _ in range(8):
            group.start_soon(enter)
    assert sorted(found) == [200, *[403] * 7]


async def test_who_only_connects_keeps_nobody_out_and_streams_are_counted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections that say nothing, and streams of somebody with a token, who opens too many."""
    monkeypatch.setattr(events, "LOOK", 0.05)
    pat, _ = world.sessions.enter(world.sessions.code("Pat"))
    head = f"GET {V1}/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{bearer(pat)}\r\n\r\n".encode()
    async with served(world) as wire:
        for n in range(70):
            stranger = await wire.connect()
            if n % 2:
                await stranger.send(b"GET / HT")
        streams, said = [await wire.connect() for _ in range(2 * events.MOST)], dict[int, bytes]()

        async def begin(n: int) -> None:
            await streams[n].send(head)
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                while b"event: changed" not in said.get(n, b""):
                    said[n] = said.get(n, b"") + await streams[n].receive()

        async with anyio.create_task_group() as group:
            for n in range(len(streams)):  # at once
                group.start_soon(begin, n)
        assert sum(b"event: changed" in one for one in said.values()) == events.MOST
        assert (await wire.ask(f"GET {V1}/events HTTP/1.1", bearer(pat))).status == 503
        assert (await wire.ask(NOW, bearer(pat))).status == 200
        world.sessions.leave(bearer(pat).removeprefix("Authorization: "))
        with anyio.fail_after(events.BEAT):
            for one in streams:  # whose session has ended, they end with it
                with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                    while True:
                        await one.receive()


@pytest.mark.may_block  # as the server makes its socket before it begins
async def test_the_guard_stands_before_a_unix_socket_too(world: World, tmp_path: Path) -> None:
    pat, _ = world.sessions.enter(world.sessions.code("Pat"))
    async with served(world, tmp_path / "s") as wire:
        assert (await wire.ask(NOW, bearer(pat), host="localhost:4711")).status == 200
        assert (await wire.ask(NOW, host="localhost:4711")).status == 401
        assert (await wire.ask(NOW, bearer(pat), host="evil.example")).status == 421
        assert (await wire.ask(PAUSE, bearer(pat), JSON, "Origin: http://evil.example", body=b"{}")).status == 403
    assert not (tmp_path / "s").exists()
