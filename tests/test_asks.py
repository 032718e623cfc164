"""Asks of agents in a sandbox: a folder to which they write whatever they like, and the stub that asks for them."""

import os
import shutil
import subprocess
import time
from contextlib import aclosing
from pathlib import Path

import anyio
import pytest

from ashep.adapters.sandboxes import request_files
from ashep.adapters.sandboxes.request_files import ANSWERS, ASKS, AT_ONCE, STUB, answer, stirring, take

NAME = "0123456789abcdef"
SHELLS = [shell for shell in ("sh", "dash", "bash") if shutil.which(shell)]


@pytest.fixture
def server(tmp_path: Path) -> Path:
    """The folder of a place's server."""
    (tmp_path / ASKS).mkdir()
    (tmp_path / "stubs" / ANSWERS).mkdir(parents=True)
    return tmp_path


def test_only_names_that_are_asks_are_taken(server: Path) -> None:
    for name in (NAME, "0123456789abcdeF", NAME + "0", NAME[1:], "..x", f"{NAME}\n", "é" * 16):
        (server / ASKS / name).touch()
    assert take(server / ASKS) == [NAME]
    assert NAME not in os.listdir(server / ASKS)
    assert len(os.listdir(server / ASKS)) == 6
    assert take(server / ASKS) == []
    assert take(server / "nowhere") == []


def test_nothing_that_bears_the_name_of_an_ask_is_read_or_followed(server: Path, tmp_path: Path) -> None:
    """A link, a pipe, a socket and another name of a file go; a folder stays; what they lead to is as it was."""
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "file").write_text("x")
    names = [f"{number:016x}" for number in range(6)]
    there = [server / ASKS / name for name in names]
    there[0].symlink_to(theirs / "file")
    there[1].symlink_to(theirs)
    os.mkfifo(there[2])
    os.mknod(there[3], 0o600 | 0o140000)
    os.link(theirs / "file", there[4])
    there[5].mkdir()
    began = time.monotonic()
    assert sorted(take(server / ASKS)) == names[:5]
    assert time.monotonic() - began < 2, "who opens a pipe waits for ever"
    assert os.listdir(server / ASKS) == names[5:]
    assert (theirs / "file").read_text() == "x"


@pytest.mark.parametrize("kind", ["link", "file", "closed"])
def test_a_folder_of_asks_that_is_none_has_none(server: Path, tmp_path: Path, kind: str) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / NAME).touch()
    folder = server / "other"
    if kind == "link":
        folder.symlink_to(theirs)
    elif kind == "file":
        folder.touch()
    else:
        theirs.rename(folder)
        folder.chmod(0)
        if os.access(folder, os.R_OK):
            pytest.skip("nothing is closed to root")
    try:
        assert take(folder) == []
    finally:
        if kind == "closed":
            folder.chmod(0o700)
    assert (folder if kind == "closed" else theirs).joinpath(NAME).exists() or kind == "file"


def test_a_look_takes_a_few_however_many_there_are(server: Path) -> None:
    for number in range(10_000):
        (server / ASKS / f"{number:016x}").touch()
    taken = take(server / ASKS)
    assert len(taken) == AT_ONCE
    assert len(os.listdir(server / ASKS)) == 10_000 - AT_ONCE
    shutil.rmtree(server / ASKS)
    (server / ASKS).mkdir()
    for number in range(AT_ONCE):
        (server / ASKS / f"{number:016x}").mkdir()
    assert take(server / ASKS) == []


def test_old_answers_go(server: Path) -> None:
    folder = server / "stubs" / ANSWERS
    for number in range(40):
        answer(folder, f"{number:016x}", 0, "fine\n")
        os.utime(folder / f"{number:016x}", (number, number))
    assert sorted(os.listdir(folder)) == [f"{number:016x}" for number in range(24, 40)]
    answer(folder, NAME, 69, "lone \ud800 half")
    assert (folder / NAME).read_text() == "69\nlone ? half"


async def test_whoever_comes_is_seen_at_once(server: Path) -> None:
    for come in ("touch", "rename"):
        async with aclosing(stirring(server / ASKS)) as stirs:
            await anext(stirs)
            (server / ASKS / f".{come}").touch() if come == "touch" else (server / "x").rename(server / ASKS / "x")
            with anyio.fail_after(0.8):
                await anext(stirs)
        (server / "x").touch()


async def test_where_the_machine_tells_nothing_it_is_looked_at_all_the_same(
    server: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_files, "_LONGEST", 50)
    async with aclosing(stirring(server / "nowhere")) as stirs:
        with anyio.fail_after(2):
            for _ in range(3):
                await anext(stirs)


# --- the stub ---


def stub(server: Path, shell: str, *words: str) -> subprocess.Popen[str]:
    """Call it as an agent's shell does, as a program or by a shell of another kind."""
    file = server / "stubs" / "ashep"
    file.write_text(STUB)
    file.chmod(0o755)
    command = [*([] if shell == "sh" else [shell]), file, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def asked(server: Path, times: int = 1) -> list[str]:
    names, end = list[str](), time.monotonic() + 10
    while len(names) < times:
        assert time.monotonic() < end, "nobody asked"
        time.sleep(0.02)
        names += take(server / ASKS)
    return names


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("code", [0, 1, 69])
def test_the_stub_prints_the_answer_and_ends_with_its_code(server: Path, shell: str, code: int) -> None:
    calling = stub(server, shell, "verify", "t-2", "--json")
    text = "t-1: passing\n7\n\\n $HOME `id`\n  last"
    (name,) = asked(server)
    answer(server / "stubs" / ANSWERS, name, code, text)
    out, said = calling.communicate(timeout=120)
    assert (calling.returncode, out) == (code, text)
    assert said == "this waits for what the checks of your issue find in what you have committed\n"


def test_each_call_asks_by_a_name_of_its_own(server: Path) -> None:
    calls = [stub(server, "sh", "verify") for _ in range(2)]
    names = asked(server, times=2)
    assert len({*names}) == 2
    for name in names:
        answer(server / "stubs" / ANSWERS, name, 0, name)
    assert sorted(call.communicate(timeout=120)[0] for call in calls) == sorted(names)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_stub_gives_up_where_nobody_is(server: Path, shell: str) -> None:
    """A clock that runs: `sleep` in there does nothing."""
    (server / "bin").mkdir()
    (server / "bin" / "sleep").write_text("#!/bin/sh\n")
    (server / "bin" / "sleep").chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{server / 'bin'}:{os.environ['PATH']}")
        _, said = (calling := stub(server, shell, "verify", "t-1")).communicate(timeout=240)
    assert (calling.returncode, "nobody answers: the daemon is not there" in said) == (69, True)
    assert os.listdir(server / ASKS) == []


def test_the_stub_asks_nothing_else_and_takes_its_ask_along(server: Path) -> None:
    for words in (("approve", "t-1"), ("status",), ()):
        calling = stub(server, "sh", *words)
        assert "ashep is not in here, but for `ashep verify`" in calling.communicate(timeout=120)[1]
        assert calling.returncode == 1
    calling = stub(server, "sh", "verify", "t-1")
    while not os.listdir(server / ASKS):
        time.sleep(0.02)
    calling.terminate()
    calling.communicate(timeout=120)
    assert (calling.returncode, os.listdir(server / ASKS)) == (130, [])
    shutil.rmtree(server / ASKS)
    calling = stub(server, "sh", "verify", "t-1")
    calling.communicate(timeout=120)
    assert calling.returncode == 69
