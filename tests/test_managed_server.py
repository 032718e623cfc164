"""The OpenCode server that ashep starts: at most one, found again, ended only where it is ours; whatever is killed.

These tests look at processes themselves, so that they may block; tests/conformance/test_runner.py sees that the
server's own code does not.
"""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from ashep.adapters.runners.opencode import OpencodeRunner
from ashep.adapters.runners.opencode.client import probe
from ashep.adapters.runners.opencode.server import TOKEN, ManagedServer, ServerRecord, folder_of
from ashep.adapters.system import process_table
from ashep.errors import ProgramMissing, RunnerMisconfigured, RunnerUnavailable
from tests.conformance.runners import RealWorld

pytestmark = [pytest.mark.real, pytest.mark.may_block]

STARTER = """
import sys, anyio
from pathlib import Path
from ashep.adapters.runners.opencode.server import ManagedServer
import os
directory, state, command = sys.argv[1:4]
server = ManagedServer(command=(command,), directory=Path(directory), state=Path(state))
if len(sys.argv) > 4:  # die between the start and its record
    write = server._write
    def once(record):
        if record.pid is not None:
            os.kill(os.getpid(), 9)
        write(record)
    server._write = once
print(anyio.run(server.reach).model_dump_json(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[RealWorld]:
    world = RealWorld(tmp_path / "place")
    (world.directory / "opencode.json").write_text("{}")
    yield world
    shutil.rmtree(world.folder, ignore_errors=True)


@pytest.fixture
async def world(place: RealWorld) -> AsyncIterator[RealWorld]:
    yield place
    await place.server.stop()
    for pid in servers(place):  # what a failed test left
        os.kill(pid, signal.SIGKILL)


def servers(world: RealWorld) -> list[int]:
    """The living OpenCode servers whose data lie in this world."""
    wanted = f"XDG_DATA_HOME={world.folder}".encode()
    found: list[int] = []
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal():
            try:
                environ = Path(entry.path, "environ").read_bytes()
                command = Path(entry.path, "cmdline").read_bytes()
            except OSError:
                continue
            if wanted in environ and b"serve" in command and process_table.stat(int(entry.name))[0] not in "ZX":
                found.append(int(entry.name))
    return found


def start_elsewhere(world: RealWorld, *more: str) -> "subprocess.Popen[str]":
    """Start the server from a process of its own."""
    program = world.new_server()._command[0]
    return subprocess.Popen(
        [sys.executable, "-c", STARTER, str(world.directory), str(world.state), program, *more],
        env=world.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def sleeper(**environ: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["sleep", "300"], env={**os.environ, **environ}, start_new_session=True)


def ended(process: "subprocess.Popen[str]", kill: bool = True) -> None:
    if kill:
        process.kill()
    with process:
        process.wait(30)


def first_line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline()


@pytest.mark.promise("X17")
async def test_a_configuration_that_opencode_refuses_is_told_with_its_file_until_it_is_mended(world: RealWorld) -> None:
    file, runner = world.directory / "opencode.json", OpencodeRunner(world.server, directory=world.directory)
    file.write_text('{"permission": {"bash": "maybe"}}')
    for _ in range(2):
        await runner.start()
        with pytest.raises(RunnerMisconfigured) as told:
            await runner.catalog()
        words = f'{file.resolve()}: permission.bash: Expected PermissionActionConfig, got "maybe"'
        assert str(told.value) == words
    file.write_text("{}")
    os.utime(file, (1, 1))  # another file by its time, as an edit leaves it
    with pytest.raises(RunnerMisconfigured):  # that life of the server read the old one, and ends
        await runner.catalog()
    await runner.start()
    assert "build" in (await runner.catalog()).agents
    await runner.aclose()


@pytest.mark.promise("X5")
async def test_it_starts_privately_and_is_seen_dead_when_stopped(world: RealWorld) -> None:
    credentials = Path(world.environ["HOME"], ".local/share/opencode/auth.json")
    credentials.parent.mkdir(parents=True)
    credentials.write_text("{}")
    address = await world.server.reach()
    assert await probe(address.url, address.password) == "1.18.33"
    folder = world.server.folder
    assert folder == folder_of(world.state, world.environ)
    assert folder.is_relative_to(Path(world.environ["HOME"], ".local/state/ashep"))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for name in ("server.json", "server.log", "server.lock"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    assert (folder / "data/opencode/auth.json").resolve() == credentials.resolve()
    assert (folder / "data/opencode/opencode.db").exists()
    assert not Path(credentials.parent, "opencode.db").exists()
    (pid,) = servers(world)
    environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    assert b"BEADS_ACTOR=ashep-agent" in environ
    assert os.getpgid(pid) == pid != os.getpgid(0)
    assert Path(f"/proc/{pid}/cwd").resolve() == world.directory.resolve()
    assert await world.server.stop()
    assert not Path(f"/proc/{pid}").exists()
    assert servers(world) == []
    with pytest.raises(RunnerUnavailable):
        await probe(address.url, address.password)
    assert not await world.server.stop()


@pytest.mark.promise("X5")
async def test_two_starters_at_once_reach_one_server(world: RealWorld) -> None:
    addresses: list[str] = []

    async def reach(server: ManagedServer) -> None:
        addresses.append((await server.reach()).model_dump_json())

    other = start_elsewhere(world)
    async with anyio.create_task_group() as group:
        group.start_soon(reach, world.server)
        group.start_soon(reach, world.new_server())
    addresses.append((await anyio.to_thread.run_sync(first_line, other)).strip())
    await anyio.to_thread.run_sync(ended, other)
    assert len(addresses) == 3
    assert len(set(addresses)) == 1
    assert len(servers(world)) == 1


@pytest.mark.promise("X6")
async def test_it_outlives_its_starter_and_is_found_again(world: RealWorld) -> None:
    other = start_elsewhere(world)
    line = await anyio.to_thread.run_sync(first_line, other)
    await anyio.to_thread.run_sync(ended, other)
    (pid,) = servers(world)
    assert (await world.server.reach()).model_dump_json() == line.strip()
    assert servers(world) == [pid]


async def test_a_server_without_a_recorded_pid_is_found(world: RealWorld) -> None:
    other = start_elsewhere(world, "die")
    await anyio.to_thread.run_sync(ended, other, False)
    assert world.record["pid"] is None
    with anyio.fail_after(60):
        while not (before := servers(world)):
            await anyio.sleep(0.05)
    address = await world.server.reach()
    assert servers(world) == before
    assert world.record["pid"] == before[0]
    assert await probe(address.url, address.password)


@pytest.mark.promise("X5")
async def test_a_server_that_does_not_answer_is_ended_before_another_starts(
    world: RealWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ashep.adapters.runners.opencode.server.BUSY_PATIENCE", 1.5)
    first = await world.server.reach()
    (pid,) = servers(world)
    os.kill(pid, signal.SIGSTOP)
    second = await world.new_server().reach()
    assert second.instance != first.instance
    assert pid not in servers(world)
    assert len(servers(world)) == 1


async def test_a_dead_servers_tools_are_ended_too(world: RealWorld) -> None:
    first = await world.server.reach()
    token = world.record["token"]
    tool = sleeper(**{TOKEN: token})
    os.kill(world.record["pid"], signal.SIGKILL)
    second = await world.server.reach()
    assert await anyio.to_thread.run_sync(tool.wait, 5) == -signal.SIGTERM
    assert second.instance != first.instance


@pytest.mark.promise("X6")
async def test_a_record_that_names_a_stranger_harms_nobody(world: RealWorld) -> None:
    """The machine was restarted, and the pid is somebody else's by now, even with the same start time."""
    stranger = sleeper()
    try:
        folder = world.server.folder
        folder.mkdir(parents=True)
        started = process_table.stat(stranger.pid)[1]
        record = ServerRecord(token="0" * 32, port=1, password="x", pid=stranger.pid, started=started)
        (folder / "server.json").write_text(record.model_dump_json())
        assert not await world.new_server().stop()
        (folder / "server.json").write_text(record.model_dump_json())
        await world.server.reach()
        assert stranger.poll() is None
        assert world.record["pid"] != stranger.pid
    finally:
        stranger.kill()
        stranger.wait()


async def test_a_damaged_record_is_no_record(world: RealWorld) -> None:
    world.server.folder.mkdir(parents=True)
    (world.server.folder / "server.json").write_text('{"token": ')
    await world.server.reach()
    assert len(servers(world)) == 1


async def test_a_server_that_ends_at_once_says_why(world: RealWorld) -> None:
    broken = world.folder / "bin" / "broken"
    broken.write_text("#!/bin/sh\necho the reason is this >&2\nexit 3\n")
    broken.chmod(0o755)
    server = ManagedServer(command=(str(broken),), directory=world.directory, state=world.state, environ=world.environ)
    began = time.monotonic()
    with pytest.raises(RunnerUnavailable, match="the reason is this"):
        await server.reach()
    assert time.monotonic() - began < 39, "it does not wait for one that has ended as for one that starts"
    assert not (server.folder / "server.json").exists()


async def test_a_missing_program_is_named(world: RealWorld) -> None:
    server = ManagedServer(
        command=("no-such-opencode",), directory=world.directory, state=world.state, environ=world.environ
    )
    with pytest.raises(ProgramMissing, match="no-such-opencode"):
        await server.reach()
    assert json.dumps(servers(world)) == "[]"
