"""A child has the person's terminal as if nobody stood between, and never outlives the one who started it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ashep.adapters.system import process_table
from ashep.extras.foreman.claude_process import LEFT_ON, VARIABLE
from tests.foreman.sittings import ROOT, SHELL, Day

pytestmark = [pytest.mark.slow, pytest.mark.may_block]


@pytest.mark.parametrize(
    ("script", "code"),
    [("exit 7", 7), ("kill -TERM $$", 143), ("test -t 0 && test -t 1 && test -t 2", 0), ("stty raw; kill -9 $$", 137)],
)
async def test_exit_codes_are_the_childs_and_what_its_shells_left_ends(tmp_path: Path, script: str, code: int) -> None:
    day = Day(tmp_path).plays(f"setsid sleep 1000 & {script}")
    with day.sits() as sitting:
        assert await sitting.ended() == code
        assert sitting.usable()
        assert (LEFT_ON.decode() in sitting.said) == (code > 128)
    assert not day.marked()


async def test_keys_that_interrupt_reach_the_child_alone_and_so_does_the_windows_size(tmp_path: Path) -> None:
    trapped = 'trap "echo got" INT; trap "echo quit" QUIT; trap "stty size; exit 3" WINCH'
    with Day(tmp_path).plays(f"{trapped}; echo ready; while :; do sleep 0.1; done").sits() as sitting:
        at = await sitting.says("ready")
        for key, said in (("\x03", "got"), ("\x03", "got"), ("\x1c", "quit")):
            sitting.types(key)
            at = await sitting.says(said, at)
        sitting.resize(31, 97)
        await sitting.says("31 97", at)
        assert await sitting.ended() == 3


@pytest.mark.parametrize("both", [False, True])
async def test_a_killed_wrapper_leaves_no_child_and_its_shells_end_next_time(tmp_path: Path, *, both: bool) -> None:
    trapped = 'trap "echo told > told; exit" TERM; setsid sleep 1000 & stty raw -echo'
    day = Day(tmp_path).plays(f"{trapped}; echo ready; while :; do sleep 0.1; done")
    with day.sits() as sitting:
        await sitting.says("ready")
        wrapper, child = sitting.pid, sitting.child() or 0
        sitting.kill(wrapper, child if both else None)
        await sitting.until(lambda: process_table.stat(child)[0] in "XZ" and sitting.usable())
        await sitting.says(LEFT_ON.decode())
        assert (day.work / "told").exists() != both
        await sitting.until(lambda: len(day.marked()) == 1)  # its own sleeps have ended
    with day.plays("exit 0").sits() as sitting:
        assert await sitting.ended() == 0
    assert not day.marked()


async def test_who_is_one_of_those_that_were_left_ends_nobody(tmp_path: Path) -> None:
    day = Day(tmp_path).plays("exit 4")
    marked = {VARIABLE: str(day.state)}
    with day.sits(argv=["sleep", "1000"], **marked) as other, day.sits(**marked) as sitting:
        assert (await sitting.ended(), other.code()) == (4, None)


async def test_a_child_that_is_stopped_alone_gives_the_shell_its_terminal_and_goes_on_with_fg(tmp_path: Path) -> None:
    with Day(tmp_path).plays("kill -STOP $$; exit 5").sits(argv=SHELL) as shell:
        shell.types(f"{sys.executable} -m ashep foreman; echo code=$?.\n")
        await shell.says("code=147.", await shell.says("Stopped"))
        shell.types("fg; echo then=$?.\n")
        await shell.says("then=5.")


def test_a_child_whose_parent_is_gone_already_does_not_begin() -> None:
    script = f"from ashep.extras.foreman import claude_process; claude_process._die_with({os.getpid() + 1})"
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, timeout=240).returncode == 143


async def test_a_child_that_cannot_be_started_is_told_of(tmp_path: Path) -> None:
    with Day(tmp_path).plays("", shell="/nothing").sits() as sitting:
        assert await sitting.ended() == 1
        assert "claude cannot be started" in sitting.said
