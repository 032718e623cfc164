"""Programs are found, run with bounds, and leave nothing behind: all of it with real processes."""

import os
import subprocess
import sys
from pathlib import Path

import anyio
import psutil
import pytest

from ashep.adapters.system import programs
from ashep.errors import AshepError, ProgramMissing, ProgramTimedOut

# A child that ignores SIGTERM and starts a grandchild that does too; both write their pid, then sleep.
STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[1], "a").write(f"{os.getpid()}\\n")
if len(sys.argv) > 2:
    subprocess.Popen([sys.executable, sys.argv[2], sys.argv[1]])
if len(sys.argv) > 3:
    while open(sys.argv[1]).read().count("\\n") < 2: time.sleep(0.01)
    sys.exit(7)
time.sleep(60)
"""


THREADS = """
import contextlib, sys, threading, anyio
from ashep.adapters.system import programs

async def main():
    ended = []
    async def run():
        done = await programs.run(["sh", "-c", "sleep 0.3; exit 7"], cwd=None, env=None, timeout=120)
        ended.append(done.returncode)
    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(run)
        await anyio.sleep(0.15)
        names = [thread.name for thread in threading.enumerate() if "waitpid" in thread.name]
    print(ended, names)

with programs.no_thread_each():
    anyio.run(main)
"""
"""Four programs that run at once, and the threads that wait for them."""


@pytest.fixture
def stubborn(tmp_path: Path) -> Path:
    """Give the script above as a file."""
    script = tmp_path / "stubborn.py"
    script.write_text(STUBBORN)
    return script


async def pids_in(path: Path, count: int) -> list[int]:
    """Wait until `count` processes have written their pids."""
    with anyio.fail_after(60):
        while True:
            text = await anyio.Path(path).read_text() if await anyio.Path(path).exists() else ""
            if text.count("\n") >= count:
                return [int(line) for line in text.split()]
            await anyio.sleep(0.02)


async def gone(pids: list[int]) -> bool:
    """Say whether all of them end within a few seconds (init reaps an orphan in its own time)."""
    for _ in range(250):
        if not any(alive(pid) for pid in pids):
            return True
        await anyio.sleep(0.02)
    return False


def alive(pid: int) -> bool:
    """Say whether a process runs: a zombie does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def python(
    code: str, *arguments: str | Path, timeout: float = 20.0, stdin: bytes | None = None
) -> programs.Finished:
    """Run a line of Python."""
    return await programs.run(
        [sys.executable, "-c", code, *arguments], cwd=None, env=None, timeout=timeout, stdin=stdin
    )


async def test_output_and_exit_code_come_back_apart() -> None:
    done = await python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    assert done == programs.Finished(3, b"out\n", b"err\n")


async def test_death_by_a_signal_is_a_negative_exit_code() -> None:
    assert (await python("import os; os.kill(os.getpid(), 15)")).returncode == -15


async def test_folder_and_environment_are_the_given_ones(tmp_path: Path) -> None:
    code = "import os; print(os.getcwd(), sorted(k for k in os.environ if k.startswith('ONLY') or k == 'HOME'))"
    done = await programs.run([sys.executable, "-c", code], cwd=tmp_path, env={"ONLY": "1"}, timeout=120)
    assert done.stdout.decode() == f"{tmp_path.resolve()} ['ONLY']\n"


async def test_standard_input_is_closed_unless_given() -> None:
    assert (await python("import sys; print(repr(sys.stdin.read()))")).stdout == b"''\n"


async def test_standard_input_is_given_whole() -> None:
    sent = bytes(range(256)) * 4096
    code = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())"
    assert (await python(code, stdin=sent)).stdout == sent


async def test_a_program_that_does_not_read_its_input_is_no_error() -> None:
    assert (await python("pass", stdin=b"x" * 1_000_000)).returncode == 0


async def test_the_program_leads_a_session_of_its_own() -> None:
    done = await python("import os; print(os.getsid(0) == os.getpid() == os.getpgrp())")
    assert done.stdout == b"True\n"


@pytest.mark.promise("G6", "E6")
async def test_time_is_up_for_the_whole_group(stubborn: Path, tmp_path: Path) -> None:
    with pytest.raises(ProgramTimedOut, match=r"after 1\.5 s"):
        await programs.run([sys.executable, stubborn, tmp_path / "pids", stubborn], cwd=tmp_path, env=None, timeout=1.5)
    pids = await pids_in(tmp_path / "pids", 2)
    assert await gone(pids)


async def test_a_stopped_program_dies_too() -> None:
    with pytest.raises(ProgramTimedOut):
        await python("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", timeout=0.7)


async def test_cancelling_kills_the_group_and_reaps(stubborn: Path, tmp_path: Path) -> None:
    pids: list[int] = []
    async with anyio.create_task_group() as tasks:

        async def start() -> None:
            await programs.run([sys.executable, stubborn, tmp_path / "pids", stubborn], cwd=None, env=None, timeout=60)

        tasks.start_soon(start)
        pids = await pids_in(tmp_path / "pids", 2)
        tasks.cancel_scope.cancel()
    assert not psutil.pid_exists(pids[0]), "the program itself must be reaped, not left a zombie"
    assert await gone(pids)


async def test_what_an_ended_program_leaves_behind_is_killed_and_not_waited_for(stubborn: Path, tmp_path: Path) -> None:
    done = await programs.run(
        [sys.executable, stubborn, tmp_path / "pids", stubborn, "leave"], cwd=None, env=None, timeout=30
    )
    assert done.returncode == 7
    assert await gone(await pids_in(tmp_path / "pids", 2))


async def test_too_much_output_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "OUTPUT_LIMIT", 1024 * 1024)
    with pytest.raises(AshepError, match="printed more than 1 MiB"):
        await python("while True: print('x' * 4095)")


async def test_output_below_the_limit_is_whole() -> None:
    assert len((await python("print('x' * 3_000_000)")).stdout) == 3_000_001


@pytest.mark.parametrize("name", ["no-such-program-here", "/nowhere/at/all"])
async def test_no_such_program(name: str) -> None:
    with pytest.raises(ProgramMissing, match=name):
        await programs.run([name], cwd=None, env=None, timeout=5)


async def test_a_file_that_may_not_be_run_is_no_program(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("text")
    with pytest.raises(ProgramMissing):
        await programs.run([tmp_path / "plain"], cwd=None, env=None, timeout=5)


async def test_a_missing_folder_is_not_a_missing_program(tmp_path: Path) -> None:
    with pytest.raises(AshepError, match="is not a folder") as caught:
        await programs.run([sys.executable], cwd=tmp_path / "none", env=None, timeout=5)
    assert not isinstance(caught.value, ProgramMissing)


async def test_a_nul_in_an_argument_is_an_error_of_ours() -> None:
    with pytest.raises(AshepError, match="cannot be started"):
        await python("pass", "a\0b")


# --- find -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give an empty PATH folder `bin` and an empty cache folder."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def put(path: Path, mode: int = 0o755) -> Path:
    """Make a program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return path


def cached(machine: Path, name: str) -> Path:
    """Say where `make setup` puts a program."""
    tools = machine / "cache" / "ashep" / "tools"
    return tools / {"bd": "bd-1.3.0/bd", "opencode": "opencode-1.18.33/node_modules/.bin/opencode"}[name]


def test_programs_that_run_take_no_thread_each() -> None:
    done = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, check=True, timeout=240)
    assert done.stdout.decode().strip() == "[7, 7, 7, 7] []"
    without = THREADS.replace("programs.no_thread_each()", "contextlib.nullcontext()")
    if sys.version_info < (3, 12):
        done = subprocess.run([sys.executable, "-c", without], capture_output=True, check=True, timeout=240)
        assert done.stdout.count(b"waitpid") == 4, "this test can fail"


@pytest.mark.parametrize("name", ["bd", "opencode"])
def test_path_wins_over_the_cache(machine: Path, name: str) -> None:
    assert programs.find(name) is None
    in_cache = put(cached(machine, name))
    assert programs.find(name) == in_cache
    on_path = put(machine / "bin" / name)
    assert programs.find(name) == on_path
    assert programs.candidates(name) == [on_path, in_cache]


def test_the_wheel_of_bd_comes_after_path_and_before_the_cache(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(machine / "environment" / "python"))
    in_cache, in_wheel = put(cached(machine, "bd")), put(machine / "environment" / "bd")
    put(machine / "environment" / "opencode")
    assert programs.candidates("bd") == [in_wheel, in_cache]
    assert programs.find("opencode") is None
    assert programs.find("bd") != put(machine / "bin" / "bd") == programs.find("bd")


def test_a_program_that_may_not_be_run_is_not_found(machine: Path) -> None:
    put(cached(machine, "bd"), mode=0o644)
    assert programs.find("bd") is None


def test_other_names_are_looked_for_on_path_only(machine: Path) -> None:
    put(machine / "cache" / "ashep" / "tools" / "git")
    assert programs.find("git") is None


def test_a_path_stands_for_itself(machine: Path) -> None:
    program = put(machine / "elsewhere" / "bd")
    assert programs.find(str(program)) == program


def test_the_cache_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for nothing in ("", "relative/folder"):  # the XDG specification: a relative path is ignored
        monkeypatch.setenv("XDG_CACHE_HOME", nothing)
        assert programs.tools_cache() == tmp_path / ".cache" / "ashep" / "tools"
    assert os.path.isabs(programs.tools_cache())


LATER = """
import threading, anyio
from ashep.adapters.system import programs

async def main():
    done = await programs.run(["sh", "-c", "exit 7"], cwd=None, env=None, timeout=120)
    print(done.returncode)

with programs.no_thread_each():
    anyio.run(main)
thread = threading.Thread(target=anyio.run, args=(main,))
thread.start()
thread.join()
"""
"""A program of a loop in another thread, once the daemon's is over."""


def test_a_loop_of_another_thread_starts_programs_once_the_daemon_is_over() -> None:
    done = subprocess.run([sys.executable, "-c", LATER], capture_output=True, text=True, timeout=240, check=True)
    assert done.stdout.split() == ["7", "7"]
