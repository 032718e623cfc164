"""The gate, asked by whoever finds its port: those without a secret cost little, and keep nobody out who has one."""

import json
import socket
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from http.client import HTTPConnection
from pathlib import Path

import anyio
import pytest

from ashep.adapters.runners.claude.prompt_gate import Gate
from ashep.adapters.runners.claude.session_store import SessionOptions, SessionStore, session_id
from ashep.adapters.system import http_server
from ashep.request_guard import MOST_WAITING

pytestmark = pytest.mark.promise("X13")

MESSAGE = "msg_0123456789abcdef01234567"
BEGINNING = b"POST / HTTP/1.1\r\nhost: localhost\r\n"
SENT = {
    "nothing": b"",
    "half a head": BEGINNING + b"x-slow: ",
    "a body of a stranger": BEGINNING + b"content-length: 4000000\r\n\r\n" + b"x" * 1000,
}


class Caller:
    """A gate, with one turn that may begin, and whoever knows its secret."""

    def __init__(self, folder: Path) -> None:
        self.store, self.session = SessionStore(folder, folder / "config"), session_id("i:t-1/implement.1.1", "/w")
        self.store.make()
        self.store.open(self.session, SessionOptions(key="k", title="t", access="write", directory="/w"))
        (self.store.add(self.session, MESSAGE, 1).folder / "secret").write_text("s3cr3t")
        self.begun = list[str]()

    async def begin(self, session: str, message: str, why: str) -> bool:
        self.begun.append(message)
        return True

    def asks(self, port: int, **more: str) -> tuple[int, dict[str, object]]:
        headers = {"x-ashep-turn": f"{self.session}/{MESSAGE}/1", "x-ashep-secret": "s3cr3t", **more}
        body = json.dumps({"session_id": self.session, "prompt": "x" * 2_000_000})
        client = HTTPConnection("127.0.0.1", port, timeout=20)
        client.request("POST", "/", body, headers)
        answer = client.getresponse()
        return answer.status, json.loads(answer.read())


@pytest.fixture
def caller(tmp_path: Path) -> Caller:
    return Caller(tmp_path)


@pytest.mark.parametrize("sent", SENT)
async def test_strangers_are_few_and_keep_nobody_out(caller: Caller, sent: str) -> None:
    gate = Gate(caller.store, caller.begin)
    port = int(gate.address.rsplit(":", 1)[1].strip("/"))
    strangers = list[socket.socket]()

    def come(stack: ExitStack) -> None:
        with suppress(OSError):  # it may have been closed already
            strangers.append(stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20)))
            strangers[-1].sendall(SENT[sent])

    def is_open(stranger: socket.socket) -> bool:
        stranger.settimeout(0.01)
        try:
            while stranger.recv(1000):
                pass
        except OSError as error:
            return isinstance(error, TimeoutError)
        return False

    def attack() -> tuple[int, tuple[int, dict[str, object]]]:
        with ExitStack() as stack, ThreadPoolExecutor(60) as pool:
            wait([pool.submit(come, stack) for _ in range(300)])
            answer = caller.asks(port)
            return sum(map(is_open, strangers)), answer

    try:
        count, answer = await anyio.to_thread.run_sync(attack)
    finally:
        await gate.close()
    assert count <= MOST_WAITING + 10
    assert answer == (200, {})
    assert caller.begun == [MESSAGE]


async def test_a_head_that_drips_is_ended(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HEAD", 0.5)
    gate = Gate(caller.store, caller.begin)
    port = int(gate.address.rsplit(":", 1)[1].strip("/"))

    async def drips() -> None:
        while True:
            await stranger.send(b"x")
            await anyio.sleep(0.05)

    stranger = await anyio.connect_tcp("127.0.0.1", port)
    with anyio.fail_after(60), pytest.raises((anyio.BrokenResourceError, ConnectionError)):
        await drips()
    await gate.close()
    await stranger.aclose()
