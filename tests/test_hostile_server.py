"""A server of a place may be a program of whoever works there: what it answers is bounded in size and in time."""

from collections.abc import AsyncIterator

import anyio
import httpx
import httpx_sse
import pytest
from anyio.abc import SocketAttribute, SocketStream

from ashep.adapters.runners.opencode import client
from ashep.adapters.runners.opencode.client import Address, Client
from ashep.errors import RunnerUnavailable
from ashep.redaction import Redaction

OK = b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\n%s\r\n"
BIG = 4 * 1024**2


async def answers(stream: SocketStream) -> None:
    """What is asked for says what becomes of the answer."""
    async with stream:
        asked = (await stream.receive()).decode().split()[1].partition("?")[0]
        length = f"content-length: {BIG}\r\n".encode()
        try:
            match asked:
                case "/much":
                    await stream.send(OK % (b"application/json", length) + b"x" * BIG)
                case "/packed":
                    await stream.send(OK % (b"application/json", b"content-encoding: gzip\r\n") + b"x")
                case "/line":
                    await stream.send(OK % (b"text/event-stream", b"") + b"data: " + b"x" * BIG)
                    await anyio.sleep(60)
                case "/lines":
                    await stream.send(OK % (b"text/event-stream", b"") + b"data: x\n\n" * (BIG // 9))
                case "/drip":
                    await stream.send(OK % (b"application/json", length))
                    while True:
                        await stream.send(b"x")
                        await anyio.sleep(0.05)
                case _:
                    kept = b"content-length: 13\r\nx-next-cursor: c2\r\ndate: now\r\n"
                    await stream.send(OK % (b"application/json", kept) + b'"s3cr3t-word"')
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # whoever asked has had enough


@pytest.fixture
async def calls(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Client]:
    monkeypatch.setattr(client, "MOST", BIG // 2)
    monkeypatch.setattr(client, "_WHOLE", 1.0)
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, answers)
        redaction = Redaction()
        redaction.add("s3cr3t-word")
        port = listener.extra(SocketAttribute.local_port)
        made = Client(Address(url=f"http://127.0.0.1:{port}", password=None, instance="i"), "/", redaction=redaction)
        yield made
        await made.aclose()
        group.cancel_scope.cancel()


@pytest.mark.parametrize("asked", ["/much", "/packed", "/drip"])
async def test_an_answer_that_is_too_much_packed_or_never_whole_is_none(calls: Client, asked: str) -> None:
    with anyio.fail_after(5), pytest.raises(RunnerUnavailable):
        await calls.call("GET", asked)


async def test_an_event_has_a_bound_and_the_stream_of_them_none(calls: Client) -> None:
    async def heard(path: str) -> int:
        async with httpx_sse.aconnect_sse(calls.http, "GET", path) as source:
            return len([event async for event in source.aiter_sse()])

    assert await heard("/lines") == BIG // 9
    with anyio.fail_after(5), pytest.raises(httpx.ReadError):
        await heard("/line")


async def test_a_page_that_held_a_secret_still_says_where_the_next_one_begins(calls: Client) -> None:
    answer = await calls.call("GET", "/page")
    assert "s3cr3t-word" not in answer.text
    assert (answer.headers["x-next-cursor"], answer.headers["date"]) == ("c2", "now")


async def test_a_probe_has_a_bound_in_bytes_and_in_time(calls: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each was taken in whole, for as long as it came: 632 MiB in 20 s."""
    monkeypatch.setattr(client, "_HEALTH", BIG // 2)
    for asked in ("much", "packed", "drip"):
        with anyio.fail_after(5), pytest.raises(RunnerUnavailable):
            await client.probe(f"{calls.address.url}/{asked}?", None, 0.5)
