"""A child has the person's terminal as if nobody stood between, and never outlives the one who started it."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ashep.adapters import processes
from ashep.foreman.child import LEFT_ON, VARIABLE
from tests.foreman.terminals import Typed, comes_true

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
WRAPPER = """
import anyio, os, sys
from pathlib import Path
from ashep.foreman.child import VARIABLE, Child, Terminal, end_left

async def main():
    folder, terminal = Path(sys.argv[1]), Terminal()
    await end_left(folder)
    with terminal.left_to_child():
        child = Child.start(sys.argv[2:], {**os.environ, VARIABLE: str(folder)}, folder, terminal)
        try:
            code = await child.wait()
        finally:
            await child.end()
    await end_left(folder)
    return code

sys.exit(anyio.run(main))
"""


def words(folder: Path, script: str) -> list[str]:
    return [sys.executable, "-c", WRAPPER, str(folder), "sh", "-c", script]


def wrapped(folder: Path, script: str) -> Typed:
    return Typed(words(folder, script), environ(), folder)


def environ() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PS1": "$ "}


def left(folder: Path) -> list[tuple[int, int]]:
    return processes.holders_of(processes.Mark(VARIABLE, str(folder)))


def pid_said(terminal: Typed) -> int:
    terminal.until("ready")
    found = re.search(rb"pid=(\d+)\r", terminal.said)
    assert found is not None
    return int(found[1])


def test_exit_codes_are_the_childs_and_a_signal_counts_as_in_a_shell(tmp_path: Path) -> None:
    for script, code in (("exit 7", 7), ("kill -TERM $$", 143), ("test -t 0 && test -t 1 && test -t 2", 0)):
        with wrapped(tmp_path, script) as terminal:
            assert terminal.ends() == code, script


def test_keys_that_interrupt_reach_the_child_alone_and_so_does_the_windows_size(tmp_path: Path) -> None:
    trapped = 'trap "echo got" INT; trap "echo quit" QUIT; trap "stty size; exit 3" WINCH'
    with wrapped(tmp_path, f"{trapped}; echo ready; while :; do sleep 0.1; done") as terminal:
        at = terminal.until("ready")
        for _ in range(2):
            terminal.types("\x03")
            at = terminal.until("got", at)
        terminal.types("\x1c")
        terminal.until("quit", at)
        terminal.resize(31, 97)
        terminal.until("31 97")
        assert terminal.ends() == 3


def test_a_killed_childs_terminal_is_as_it_was_and_what_its_shells_left_has_ended(tmp_path: Path) -> None:
    script = 'setsid sleep 1000 & stty raw -echo; printf "pid=%s\\r\\n" $$; echo ready; read -r _'
    with wrapped(tmp_path, script) as terminal:
        child = pid_said(terminal)
        assert terminal.attributes != terminal.before
        assert len(left(tmp_path)) == 2
        os.kill(child, signal.SIGKILL)
        assert terminal.ends() == 137
        assert terminal.attributes == terminal.before
        assert LEFT_ON.encode() in terminal.said
        assert not left(tmp_path)


def test_a_killed_wrapper_leaves_no_child_and_its_shells_end_at_the_next_start(tmp_path: Path) -> None:
    # the session's leader dies: whoever is in the foreground is hung up on, which is not meant here
    trapped = 'trap "" HUP; trap "echo told > told; exit" TERM; setsid sleep 1000 &'
    with wrapped(tmp_path, f'{trapped} printf "pid=%s\\r\\n" $$; echo ready; while :; do sleep 0.1; done') as terminal:
        child = pid_said(terminal)
        began = processes.stat(child)[1]
        terminal.process.kill()
        comes_true(lambda: not processes.lives(child, began))
    assert (tmp_path / "told").read_text() == "told\n"
    comes_true(lambda: len(left(tmp_path)) == 1)  # its own sleeps have ended
    with wrapped(tmp_path, "exit 0") as terminal:
        assert terminal.ends() == 0
    assert not left(tmp_path)


def test_who_is_one_of_those_that_were_left_ends_nobody(tmp_path: Path) -> None:
    marked = {**environ(), VARIABLE: str(tmp_path)}
    with subprocess.Popen(["sleep", "1000"], env=marked) as other:
        try:
            ended = subprocess.run(words(tmp_path, "exit 4"), env=marked, stdin=subprocess.DEVNULL, timeout=60)
            assert (ended.returncode, other.poll()) == (4, None)
        finally:
            other.kill()


def test_a_child_that_is_stopped_goes_on_with_the_wrapper(tmp_path: Path) -> None:
    with wrapped(tmp_path, "kill -STOP $$; exit 5") as terminal:
        comes_true(lambda: processes.stat(terminal.process.pid)[0] == "T")
        terminal.process.send_signal(signal.SIGCONT)
        assert terminal.ends() == 5


def test_a_child_whose_parent_is_gone_already_does_not_begin() -> None:
    script = f"from ashep.foreman import child; child._dies_with({os.getpid() + 1})"
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, timeout=60).returncode == 143


def test_a_child_that_cannot_be_started_is_told_of(tmp_path: Path) -> None:
    argv = [*words(tmp_path, "")[:4], str(tmp_path / "nothing")]
    ended = subprocess.run(argv, env=environ(), stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert b"ProgramMissing" in ended.stderr
    ended = subprocess.run([*argv[:4], "echo", "x" * 130_000], env=environ(), capture_output=True, timeout=60)
    assert len(ended.stdout) == 130_001  # as long as a word may be
    assert ended.returncode == 0


@pytest.mark.parametrize("stops", ["\x1a", ""])
def test_a_child_that_stops_gives_the_shell_its_terminal_and_goes_on_with_fg(tmp_path: Path, stops: str) -> None:
    """Ctrl-Z stops the whole group; a child that is stopped alone stops the wrapper, too."""
    script = (
        "echo ready; sleep 0.1; read -r word; echo on-$word; exit 5" if stops else "kill -STOP $$; echo on-; exit 5"
    )
    (tmp_path / "run").write_text(script)
    with Typed(["bash", "--norc", "--noprofile", "-i"], environ(), tmp_path) as shell:
        at = shell.until("$ ")
        (tmp_path / "wrapper").write_text(WRAPPER)
        shell.types(f"{sys.executable} wrapper {tmp_path} sh run; echo code=$?.\n")
        if stops:
            at = shell.until("ready\r", at)
            shell.types(stops)
        at = shell.until("Stopped", at)
        at = shell.until("code=148." if stops else "code=147.", at)
        shell.types("fg; echo then=$?.\n")
        at = shell.until("wrapper", shell.until("fg;", at))
        if stops:
            shell.types("word\n")
        at = shell.until("on-word" if stops else "on-", at)
        shell.until("then=5.", at)
        shell.types("exit\n")
        assert shell.ends() == 0
