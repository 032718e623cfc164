"""Whoever takes the managed server's port before it does gets no password: real listeners, a server of a few lines."""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from ashep.adapters.runners.opencode.server import ManagedServer
from ashep.adapters.system import process_table
from ashep.errors import RunnerUnavailable, ServerNotStarted

pytestmark = pytest.mark.may_block

SERVER = """#!{python} -I
import base64, http.server, os, pathlib, sys, time
folder, port = pathlib.Path({folder!r}), int(sys.argv[sys.argv.index("--port") + 1])
(folder / f"port-{{port}}").touch()
while not (folder / f"go-{{port}}").exists():
    time.sleep(0.01)
wanted = "Basic " + base64.b64encode(b"opencode:" + os.environb[b"OPENCODE_SERVER_PASSWORD"]).decode()
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.headers.get("Authorization") == wanted else 401)
        self.end_headers()
        self.wfile.write(b'{{"healthy": true, "version": "1.18.33"}}')
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer.allow_reuse_address = False
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
print(f"opencode server listening on http://127.0.0.1:{{port}}", flush=True)
server.serve_forever()
"""


class Place:
    """A server that waits until somebody else had the time to take its port, and what that one was told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        program = folder / "opencode"
        program.write_text(SERVER.format(python=sys.executable, folder=str(folder)))
        program.chmod(0o755)
        self.environ = {"HOME": str(folder / "home"), "PATH": os.environ["PATH"]}
        self.server = ManagedServer(
            command=(str(program),), directory=folder, state=folder / "state", environ=self.environ
        )
        self.heard: list[bytes] = []

    @property
    def ports(self) -> list[int]:
        """Those that the server was to listen at, in order."""
        made = sorted(self.folder.glob("port-*"), key=lambda file: file.stat().st_mtime_ns)
        return [int(file.name.partition("-")[2]) for file in made]

    @contextmanager
    def thief(self, steals: Callable[[int], list[str]]) -> Iterator[None]:
        """Listen, before the server may, at what `steals` names of the address of its first, second, … port."""
        done = threading.Event()

        def steal() -> None:
            seen = set[int]()
            with ExitStack() as stack:
                while not done.wait(0.005):
                    for port in set(self.ports) - seen:
                        for address in steals(len(seen)):
                            family = socket.AF_INET6 if ":" in address else socket.AF_INET
                            both = address == "::"
                            listener = socket.create_server((address, port), family=family, dualstack_ipv6=both)
                            stack.enter_context(listener)
                            threading.Thread(target=self._listen, args=(listener,), daemon=True).start()
                        seen.add(port)
                        (self.folder / f"go-{port}").touch()

        thread = threading.Thread(target=steal)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _listen(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    self.heard.append(connection.recv(65536))
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 36\r\n\r\n")
                    connection.sendall(b'{"healthy":true,"version":"1.18.33"}')


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    place = Place(tmp_path)
    yield place
    await place.server.stop()


@pytest.mark.promise("X5")
@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::"])
async def test_who_takes_the_port_first_gets_no_password_and_the_server_another_port(
    place: Place, address: str
) -> None:
    with place.thief(lambda number: [address] if number == 0 else []):
        reached = await place.server.reach()
    first, second = place.ports
    assert (reached.url, first != second) == (f"http://127.0.0.1:{second}", True)
    assert place.heard == []


@pytest.mark.promise("X5")
async def test_a_port_that_is_taken_between_two_looks_is_taken_too(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loaded machine: nobody listens yet, and at the next look the server has ended already."""
    lives = process_table.lives

    def look_late(pid: int | None, started: int | None) -> bool:
        until = time.monotonic() + 20
        while len(place.ports) < 2 and lives(pid, started) and time.monotonic() < until:
            time.sleep(0.01)
        return lives(pid, started)

    monkeypatch.setattr(process_table, "lives", look_late)
    with place.thief(lambda number: ["127.0.0.1"] if number == 0 else []):
        reached = await place.server.reach()
    assert reached.url == f"http://127.0.0.1:{place.ports[1]}"


@pytest.mark.promise("X5")
async def test_who_takes_each_port_is_told_of_and_gets_nothing(place: Place) -> None:
    with place.thief(lambda _: ["127.0.0.1"]), pytest.raises(ServerNotStarted) as told:
        await place.server.reach()
    assert len(place.ports) == 3
    assert f"another process listens at port {place.ports[-1]} of 127.0.0.1" in str(told.value)
    assert place.heard == []
    assert not (place.server.folder / "server.json").exists()


@pytest.mark.parametrize("addresses", [["127.0.0.2", "::1"], ["::0"]])  # the last one: all of IPv6 alone
async def test_who_listens_elsewhere_at_that_port_takes_nothing(place: Place, addresses: list[str]) -> None:
    with place.thief(lambda _: addresses):
        reached = await place.server.reach()
        assert (await place.server.reach(), await place.server.living()) == (reached, reached)
    assert len(place.ports) == 1


async def test_a_server_that_runs_is_not_believed_once_somebody_else_has_its_port(place: Place) -> None:
    with place.thief(lambda _: []):
        first = await place.server.reach()
        port = place.ports[0]
        record = place.server.folder / "server.json"
        text = record.read_text()
        with socket.create_server(("127.0.0.1", 0)) as stranger:
            threading.Thread(target=place._listen, args=(stranger,), daemon=True).start()
            record.write_text(text.replace(str(port), str(stranger.getsockname()[1])))
            with pytest.raises(RunnerUnavailable, match="another process listens at port"):
                await place.server.living()
            second = await place.server.reach()
    assert second.instance != first.instance
    assert place.heard == []


async def test_without_proc_only_what_the_server_itself_prints_counts(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_table, "NETWORK", tmp_path / "nothing")
    with place.thief(lambda number: ["127.0.0.1"] if number == 0 else []):
        with pytest.raises(ServerNotStarted, match="Address already in use"):
            await place.server.reach()
        assert place.heard == []
        assert (await place.server.reach()).url == f"http://127.0.0.1:{place.ports[1]}"


def test_listeners_are_told_from_each_other() -> None:
    with socket.create_server(("0.0.0.0", 0)) as everywhere:
        port = everywhere.getsockname()[1]
        links = {os.readlink(f"/proc/self/fd/{everywhere.fileno()}")}
        assert process_table.listeners(port) == links
        assert process_table.have([os.getpid()], links)
        assert not process_table.have([os.getppid(), 0], links)
        with subprocess.Popen(["sleep", "60"], pass_fds=[everywhere.fileno()]) as child:
            assert process_table.have([child.pid], links), "a child may have it"
            child.kill()
    assert process_table.listeners(port) == set()
