"""Bounds of the server that ashep starts: files, priority, memory, log, and how long it may not answer.

The server is a small program that answers as OpenCode's health check does; the real one is in test_managed_server.py.
"""

import os
import resource
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import httpx
import pytest

from ashep.adapters.git import fsync
from ashep.adapters.runners.opencode import server as module
from ashep.adapters.runners.opencode.client import Address
from ashep.adapters.runners.opencode.server import LOG_KEPT, LOG_LIMIT, ManagedServer
from ashep.adapters.system import process_table
from ashep.errors import ServerNotStarted, ServerStarting

pytestmark = [pytest.mark.may_block, pytest.mark.slow]

PROGRAM = f"""#!{sys.executable}
import http.server, sys, threading, time
kept = []
lock = threading.Lock()
class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with lock:  # what is busy answers nobody
            began = time.monotonic()
            while self.path == "/busy" and time.monotonic() < began + 3:
                pass
        if self.path == "/grow":
            kept.append(bytearray(b"x" * 64 * 1024 * 1024))
        if self.path == "/chat":
            print("chatter " * 8191 + "end", flush=True)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{{"healthy": true, "version": "fake"}}')
    def log_message(self, *arguments):
        pass
print("listening", flush=True)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), Answers).serve_forever()
"""


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ManagedServer]:
    program = tmp_path / "opencode"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    environ = {"HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]}
    made = ManagedServer(command=(str(program),), directory=tmp_path, state=tmp_path / "state", environ=environ, nice=3)
    yield made
    await made.stop()


def pid_of(address: Address) -> int:
    return int(address.instance.split(":")[1])


async def get(address: Address, path: str, timeout: float = 30) -> None:
    async with httpx.AsyncClient(trust_env=False, timeout=timeout) as client:
        await client.get(address.url + path)


def a_tool() -> "subprocess.Popen[bytes]":
    """What an agent's shell runs: it has a session of its own."""
    grown = "import time; kept = bytearray(b'x' * 64 * 1024 * 1024); print(flush=True); time.sleep(60)"
    return subprocess.Popen([sys.executable, "-c", grown], stdout=subprocess.PIPE, start_new_session=True)


def settings_of_git(environ: Mapping[str, str]) -> list[str]:
    done = subprocess.run(["git", "config", "--list"], env=dict(environ), capture_output=True, text=True)
    return done.stdout.splitlines()


async def test_an_agents_git_is_told_to_flush(server: ManagedServer) -> None:
    told = ["core.fsync=committed", "core.fsyncmethod=batch"]
    pid = pid_of(await server.reach())
    lines = (line.partition("=") for line in Path(f"/proc/{pid}/environ").read_text().split("\0"))
    assert settings_of_git({name: value for name, _, value in lines if name})[-2:] == told
    said = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "pat"}
    assert settings_of_git(said | fsync.environment(said))[-3:] == ["user.name=pat", *told], "a person's stay"


@pytest.mark.promise("X13")
async def test_it_has_limits_and_gives_way(server: ManagedServer) -> None:
    pid = pid_of(await server.reach())
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    assert soft == hard == min(process_table.OPEN_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    assert resource.prlimit(pid, resource.RLIMIT_CORE) == (0, 0)
    assert os.getpriority(os.PRIO_PROCESS, pid) == min(os.getpriority(os.PRIO_PROCESS, 0) + 3, 19)


@pytest.mark.promise("X13")
async def test_the_memory_of_its_group_is_measured_and_of_nobody_else(server: ManagedServer) -> None:
    assert await server.memory() is None
    address = await server.reach()
    before = await server.memory()
    assert before is not None
    assert 1024**2 < before < 200 * 1024**2
    await get(address, "/grow")
    after = await server.memory()
    assert after is not None
    assert 60 * 1024**2 < after - before < 80 * 1024**2
    with a_tool() as tool:
        try:
            assert tool.stdout is not None
            tool.stdout.readline()
            again = await server.memory()
            assert again is not None
            assert abs(again - after) < 20 * 1024**2
            assert process_table.memory_of(tool.pid) > 64 * 1024**2
        finally:
            tool.kill()
    assert await server.stop()
    assert await server.memory() is None


@pytest.mark.promise("X13")
async def test_its_log_is_cut_while_it_goes_on_writing(server: ManagedServer) -> None:
    address = await server.reach()
    log, old = server.folder / "server.log", server.folder / "server.log.old"
    while log.stat().st_size <= LOG_LIMIT:
        await get(address, "/chat")
    size = log.stat().st_size
    tail = log.read_bytes()[size - LOG_KEPT :]
    await server.memory()
    assert old.read_bytes() == tail
    assert stat.S_IMODE(old.stat().st_mode) == 0o600
    assert log.stat().st_size == 0
    await get(address, "/chat")
    assert log.read_bytes().endswith(b"end\n")
    assert log.stat().st_blocks * 512 < 1024**2, "no hole is left where it was cut"
    await server.memory()
    assert log.stat().st_size > 0


@pytest.mark.promise("X10")
async def test_one_that_accepts_and_never_answers_is_ended_and_another_begins(
    server: ManagedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BUSY_PATIENCE", 3.0)
    first = await server.reach()
    os.kill(pid_of(first), signal.SIGSTOP)
    with pytest.raises(httpx.ReadTimeout):
        await get(first, "/global/health", timeout=0.3)
    began = time.monotonic()
    second = await server.reach()
    assert time.monotonic() - began >= 3.0
    assert second.instance != first.instance
    assert not Path(f"/proc/{pid_of(first)}").exists()


@pytest.mark.promise("X10")
async def test_what_is_refused_while_it_begins_costs_no_patience(
    server: ManagedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the real one does, it never answers the first connection that it takes (facts/opencode.md 18)."""
    monkeypatch.setattr(server, "_first", 15.0)
    monkeypatch.setattr(module, "_PATIENCE", 60.0)
    late = PROGRAM.replace('print("listening"', 'import time\ntime.sleep(2)\nprint("listening"')
    hung = "        if not kept:\n            kept.append(self.path)\n            time.sleep(60)\n"
    (tmp_path / "opencode").write_text(late.replace("def do_GET(self):\n", f"def do_GET(self):\n{hung}"))
    assert pid_of(await server.reach())


SPIN = "import time\nbegan = time.monotonic()\nwhile time.monotonic() < began + 3:\n    pass\n"
SLEEP = "import time\ntime.sleep({})\n"


def starting(tmp_path: Path, first: str) -> None:
    """Have the server do something before it listens."""
    (tmp_path / "opencode").write_text(PROGRAM.replace('print("listening"', f'{first}print("listening"'))


@pytest.mark.promise("X9")
async def test_one_that_works_at_its_start_is_waited_for_and_not_begun_again(
    server: ManagedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that needs 82 s on a loaded machine: it was ended after 40 s, each time."""
    monkeypatch.setattr(server, "_first", 1.0)
    starting(tmp_path, SPIN)
    words = r"did not answer within 1 s, alive, used \d+ s of CPU; waiting up to 2 s"
    with pytest.raises(ServerStarting, match=words):
        await server.reach()
    record = server._read()
    assert record is not None
    with pytest.raises(ServerStarting, match="waiting up to 4 s"):
        await server.reach()
    assert pid_of(await server.reach()) == record.pid


@pytest.mark.promise("X9")
async def test_one_that_shows_no_life_at_its_start_is_ended_and_the_next_gets_twice_as_long(
    server: ManagedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_first", 1.0)
    for bound in (1, 2):
        starting(tmp_path, SLEEP.format(60))
        with pytest.raises(ServerNotStarted, match=f"did not answer within {bound} s and was ended; .*is empty"):
            await server.reach()
        assert server._read() is None
    starting(tmp_path, SLEEP.format(3))
    assert pid_of(await server.reach())


@pytest.mark.promise("X9")
async def test_one_that_never_answers_is_ended_at_the_longest_bound_whatever_it_uses(
    server: ManagedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_first", 0.5)
    monkeypatch.setattr(module, "LONGEST_PATIENCE", 1.0)
    starting(tmp_path, SPIN.replace("began + 3", "began + 60"))
    with pytest.raises(ServerStarting):
        await server.reach()
    with pytest.raises(ServerNotStarted, match=r"within 1 s and was ended; it had used \d s of CPU"):
        await server.reach()


@pytest.mark.promise("X10")
async def test_one_that_has_answered_and_works_is_not_wedged(
    server: ManagedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BUSY_PATIENCE", 1.0)
    first = await server.reach()
    async with anyio.create_task_group() as group:
        group.start_soon(get, first, "/busy")
        await anyio.sleep(0.2)
        with pytest.raises(ServerStarting, match=r"within 1 s, alive, used \d s of CPU; waiting up to 2 s"):
            await server.reach()
        await anyio.sleep(3)
        assert await server.reach() == first


@pytest.mark.promise("X10")
async def test_one_that_is_slow_for_a_while_is_kept(server: ManagedServer) -> None:
    first = await server.reach()
    os.kill(pid_of(first), signal.SIGSTOP)

    async def goes_on() -> None:
        await anyio.sleep(4)
        os.kill(pid_of(first), signal.SIGCONT)

    async with anyio.create_task_group() as group:
        group.start_soon(goes_on)
        assert await server.reach() == first


@pytest.mark.promise("X10")
async def test_a_stopped_server_of_somebody_else_is_left_alone(server: ManagedServer) -> None:
    first = await server.reach()
    record = server._read()
    assert record is not None
    server._write(record.model_copy(update={"token": "0" * 32}))
    os.kill(pid_of(first), signal.SIGSTOP)
    try:
        second = await server.reach()
        assert second.instance != first.instance
        assert process_table.stat(pid_of(first))[0] == "T"
    finally:
        os.kill(pid_of(first), signal.SIGKILL)


@pytest.mark.promise("X16")
async def test_nothing_of_it_is_left_after_a_stop_and_nobody_else_is_ended(server: ManagedServer) -> None:
    await server.reach()
    record = server._read()
    assert record is not None
    with sleeping(record.token) as tool, sleeping("0" * 32) as stranger:
        assert await server.stop()
        assert await anyio.to_thread.run_sync(tool.wait, 20) != 0
        assert stranger.poll() is None
    assert not process_table.holders_of(record.mark)


@contextmanager
def sleeping(token: str) -> "Iterator[subprocess.Popen[bytes]]":
    """A program that ignores SIGTERM, with a session of its own, as an agent's shell may leave it behind."""
    argv = ["sh", "-c", "trap '' TERM; while true; do sleep 1; done"]
    with subprocess.Popen(argv, env=os.environ | {module.TOKEN: token}, start_new_session=True) as made:
        try:
            yield made
        finally:
            with suppress(ProcessLookupError):
                os.killpg(made.pid, signal.SIGKILL)


async def test_one_that_cannot_be_started_says_so(tmp_path: Path) -> None:
    broken = tmp_path / "opencode"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    made = ManagedServer(command=(str(broken),), directory=tmp_path, state=tmp_path / "state", environ=environ)
    with pytest.raises(ServerNotStarted, match="ended at its start"):
        await made.reach()


@pytest.mark.may_block
async def test_one_that_several_look_at_while_it_ends_is_reaped_once() -> None:
    together = threading.Barrier(2, timeout=10)

    class Ending(subprocess.Popen[bytes]):
        def poll(self) -> int | None:
            together.wait()
            return super().poll()

    one = Ending(("true",))
    one.wait()
    process_table.children[one.pid] = one
    async with anyio.create_task_group() as group:
        for _ in range(2):
            group.start_soon(anyio.to_thread.run_sync, process_table.lives, one.pid, 1)
    assert one.pid not in process_table.children


async def test_what_another_thread_started_is_below_its_process_and_its_processor_time_counts() -> None:
    """The kernel lists children by the thread that started them, and a runtime may start tools from any."""
    program = "import os\nwhile sum(os.times()[:2]) < 0.3: pass\nprint(flush=True)\ninput()"
    with ThreadPoolExecutor(1) as thread:  # it lives on: those of one that ends become the main thread's
        start = partial(
            subprocess.Popen, (sys.executable, "-c", program), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        with thread.submit(start).result() as child:
            assert child.stdout is not None
            child.stdout.readline()
            assert child.pid in process_table.below(os.getpid())
            used = process_table.processor_time(os.getpid(), itself=False)
            assert 0.25 < used < process_table.processor_time(os.getpid())
            child.kill()
