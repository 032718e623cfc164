"""A service that a check starts, asks and ends: a server of forty lines, which does as it is told."""

import socket
import sys
from contextlib import suppress
from typing import Any

import anyio
import anyio.abc
import pytest

from ashep.core.facts.delivery import CheckResult
from ashep.ports.verifier import VerifyRequest, verify_against_base
from tests.verifier.place import World, criteria_of

pytestmark = pytest.mark.slow

SERVER = r"""
import os, socket, sys, time
what, port = sys.argv[1], int(os.environ["PORT"])
if what == "ends":
    sys.exit("no configuration")
if what == "never":
    time.sleep(60)
one = socket.create_server(("::1" if what == "six" else "127.0.0.1", port), family=10 if what == "six" else 2)
print("listening", *sys.argv[2:], flush=True)
if what == "deaf":
    time.sleep(60)
asked = 0
while True:
    peer, _ = one.accept()
    request = b""
    while b"\r\n\r\n" not in request:
        more = peer.recv(65536)
        request += more
        if not more:
            break
    if not request:
        continue
    head, _, body = request.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    length = next((int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length")), 0)
    while len(body) < length:
        body += peer.recv(65536)
    asked += 1
    status, headers, answer = 200, b"", body
    if what == "starting" and asked < 3 or what == "broken":
        status = 503
    if lines[0].startswith("GET /head"):
        answer = head
    if what == "elsewhere":
        status, headers = 302, b"Location: http://127.0.0.1:" + sys.argv[2].encode() + b"/stolen\r\n"
    if lines[0].startswith("GET /large"):
        answer = b"x" * (2 * 1024 * 1024)
    start = b"HTTP/1.1 %d Fine\r\nContent-Length: %d\r\n%s\r\n" % (status, len(answer), headers)
    if lines[0].startswith("GET /drip"):
        for byte in b"HTTP/1.1 200 Fine\r\nSlow: " + b"x" * 6000:
            peer.send(bytes([byte]))
            time.sleep(0.01)
    peer.sendall(start + answer)
    peer.close()
"""


async def asked(
    world: World, what: str, *arguments: str, service: dict[str, Any] | None = None, **verify: Any
) -> CheckResult:
    world.repository.commit({"server.py": SERVER})
    start = [sys.executable, "-I", "-S", "server.py", what, *arguments]
    return await world.one("http_request", **{"path": "/"} | verify, service={"start": start, **(service or {})})


@pytest.mark.promise("W4")
async def test_a_service_is_started_asked_and_ended(either: World) -> None:
    found = await asked(
        either, "echo", "{port}", method="POST", path="/a?b=1", body={"name": "Ann"}, expect_body={"name": "Ann"}
    )
    assert (found.status, found.message) == ("passed", "POST /a?b=1: status 200"), either.output(found)
    said = either.output(found)
    assert said.startswith('POST /a?b=1: 200\n{"name": "Ann"}\n\nThe service printed:\nlistening ')
    port = int(said.split("listening ")[1])
    with pytest.raises(OSError, match="failed"):
        await anyio.connect_tcp("127.0.0.1", port)
    assert either.left == []


async def test_what_it_is_sent(world: World) -> None:
    found = await asked(world, "echo", path="/head", headers={"X-One": "1", "Host": "example.test"})
    lines = world.output(found).split("\n")
    assert lines[1] == "GET /head HTTP/1.1"
    assert {"X-One: 1", "Host: example.test"} <= {line.strip() for line in lines}
    assert not any(line.startswith("Content-Type") for line in lines)
    wrong = await asked(world, "echo", headers={"X": "a\r\nY: b"})
    assert (wrong.status, wrong.message[:30]) == ("failed", "GET /: ValueError: Invalid hea")


ANSWERS = [
    ("plain text", "in te", "passed", "POST /: status 200"),
    ("plain text", "is not", "failed", 'POST /: status 200, but the answer does not hold "is not"'),
    ("plain text", {"a": 1}, "failed", "POST /: status 200, but the answer is no JSON"),
    ({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 1}}, "passed", "POST /: status 200"),
    ({"a": {"b": 1}}, {"a": {"c": 1}}, "failed", "POST /: status 200, but a.c is missing"),
    ({"a": {"b": 1}}, {"a": {"b": 2}}, "failed", "POST /: status 200, but a.b is 1; expected 2"),
    ({"a": True}, {"a": 1}, "failed", "POST /: status 200, but a is true; expected 1"),
    ({"a": [1, {"b": 2, "c": 3}]}, {"a": [1, {"b": 2}]}, "failed",
     'POST /: status 200, but a is [1, {"b": 2, "c": 3}]; expected [1, {"b": 2}]'),
    ({"a": 1}, {"a": {"b": 1}}, "failed", "POST /: status 200, but a is 1; expected an object"),
    ([1, 2.0], [1.0, 2], "passed", "POST /: status 200"),
    ([1, 2], [1], "failed", "POST /: status 200, but the answer is [1, 2]; expected [1]"),
    ({"a": None}, {"a": None}, "passed", "POST /: status 200"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "expected", "status", "message"), ANSWERS)
async def test_answers_are_compared(world: World, body: Any, expected: Any, status: str, message: str) -> None:
    found = await asked(world, "echo", method="POST", body=body, expect_body=expected)
    assert (found.status, found.message) == (status, message)


@pytest.mark.parametrize(("what", "verify", "status", "message"), [
    ("ends", {}, "failed", "the service ended before it answered"),
    ("never", {"service": {"timeout": "300ms"}}, "failed",
     "the service was not ready after 300ms: nothing listens on the port"),
    ("deaf", {"service": {"timeout": "300ms"}}, "failed", "the service was not ready after 300ms: it does not answer"),
    ("broken", {"service": {"timeout": "300ms"}}, "failed",
     "the service was not ready after 300ms: it answers with the status 503"),
    ("starting", {}, "passed", "GET /: status 200"),
    ("six", {}, "passed", "GET /: status 200"),
    ("echo", {"expect_status": 201}, "failed", "GET /: status 200; expected 201"),
    ("echo", {"path": "/drip", "timeout": "300ms"}, "failed", "GET /drip: no answer in 300ms"),
    ("echo", {"path": "/large"}, "passed", "GET /large: status 200"),
    ("echo", {"path": "/large", "expect_body": "y"}, "error",
     "GET /large: the answer is larger than 1 MiB: it is not looked at"),
])  # fmt: skip
async def test_services_that_do_not_do_their_part(
    world: World, what: str, verify: dict[str, Any], status: str, message: str
) -> None:
    found = await asked(world, what, **verify)
    assert (found.status, found.message) == (status, message), world.output(found)
    assert world.left == []
    if what == "ends":
        assert world.output(found) == "no configuration\n"


async def test_a_service_that_cannot_be_started(world: World) -> None:
    missing = await world.one("http_request", path="/", service={"start": ["there-is-no-such-program"]})
    assert (missing.status, missing.message[:44]) == ("error", "there is no program there-is-no-such-program")
    own = await world.one("http_request", path="/", service={"start": ["./serve"]})
    assert (own.status, own.message) == ("failed", "./serve cannot be started: No such file or directory")


class Stranger:
    """Another program that listens, and notes what it is sent."""

    def __init__(self) -> None:
        self.reached: list[bytes] = []

    async def serve(self, port: int, *, task_status: anyio.abc.TaskStatus[int] = anyio.TASK_STATUS_IGNORED) -> None:
        async with await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=port) as listener:
            task_status.started(listener.extra(anyio.abc.SocketAttribute.local_port))
            await listener.serve(self._note)

    async def _note(self, stream: anyio.abc.SocketStream) -> None:
        async with stream:
            with suppress(anyio.EndOfStream):
                self.reached.append(await stream.receive())


@pytest.mark.promise("W4")
async def test_only_the_service_that_was_started_is_asked(world: World) -> None:
    stranger, found = Stranger(), list[tuple[str, str]]()
    async with anyio.create_task_group() as group:
        port = await group.start(stranger.serve, 0)
        for one in (
            await asked(world, "never", service={"port": port}),
            await asked(world, "elsewhere", str(port), expect_status=302),
        ):
            found.append((one.status, one.message))
        taken = f"something listens on port {port} already; the service was not started"
        assert found == [("error", taken), ("passed", "GET /: status 302")]
        group.cancel_scope.cancel()
    assert stranger.reached == []


class Answering:
    """A service that runs by itself, and notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def serve(self, *, task_status: anyio.abc.TaskStatus[str] = anyio.TASK_STATUS_IGNORED) -> None:
        async with await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0) as listener:
            task_status.started(f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}/api/")
            await listener.serve(self._answer)

    async def _answer(self, stream: anyio.abc.SocketStream) -> None:
        async with stream:
            self.asked.append((await stream.receive()).decode().split("\r\n")[0])
            await stream.send(
                b'HTTP/1.1 201 Created\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 8\r\n\r\n{"a": 1}'
            )


@pytest.mark.promise("W4")
async def test_without_a_service_what_the_settings_name_is_asked_and_anew_each_time(either: World) -> None:
    """Out of the sandbox, where programs reach nothing; and what it answers is no evidence of a tree."""
    answering, against = Answering(), CheckResult("", "error", "", 0)
    async with anyio.create_task_group() as group:
        address = await group.start(answering.serve)
        either.set(service_url=address)
        for body, status in (({"a": 1}, "passed"), ({"a": 2}, "failed"), ({"a": 1}, "passed")):
            found = await either.one("http_request", path="/x?y=1", method="POST", expect_status=201, expect_body=body)
            assert found.status == status, found.message
            assert found.message.endswith(f" (at {address}, which is not of this commit)")
        criteria = criteria_of({"type": "http_request", "verify": {"path": "/x", "expect_status": 201}})
        request = VerifyRequest(either.repository.folder, "HEAD", "HEAD", criteria)
        (against,) = (await verify_against_base(either.verifier, request)).results
        group.cancel_scope.cancel()
    assert answering.asked == ["POST /api/x?y=1 HTTP/1.1"] * 3 + ["GET /api/x HTTP/1.1"]
    assert (against.status, against.proves_nothing) == ("passed", False), "before any work it was not asked"
    gone = await either.one("http_request", path="/x")
    assert (gone.status, gone.message[:30]) == ("error", "GET /x: ConnectionRefusedError")


@pytest.mark.promise("W4")
async def test_without_a_service_and_without_the_setting_nothing_is_asked(world: World) -> None:
    found = await world.one("http_request", path="/")
    assert found.status == "error"
    assert "`verification.service_url` in config.yaml names none" in found.message


@pytest.mark.promise("W4")
async def test_another_program_that_takes_the_port_meanwhile_is_not_asked(world: World) -> None:
    """The port is free when the check begins, and somebody else's when its service is to be asked."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    stranger, found = Stranger(), list[CheckResult]()
    begun = anyio.Path(world.repository.folder.parent, "begun")

    async def check() -> None:
        start = ["sh", "-c", f"touch {begun}; exec sleep 60"]
        found.append(await world.one("http_request", path="/", service={"start": start, "port": port}))
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(check)
        while not await begun.exists():
            await anyio.sleep(0.005)
        await group.start(stranger.serve, port)
    assert (found[0].status, found[0].message) == ("error", f"another program listens on port {port}; it was not asked")
    assert stranger.reached == []


async def test_in_a_sandbox_a_port_that_is_taken_outside_is_free(sandbox: World) -> None:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    found = await asked(sandbox, "echo", service={"port": port})
    await listener.aclose()
    assert found.status == "passed", sandbox.output(found)
