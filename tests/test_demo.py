"""The demonstration does what it shows: in memory within seconds, and on the real tools."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from ashep.adapters import programs
from ashep.demo.run import demo
from ashep.demo.stage import Stage, run_of
from ashep.demo.story import FILES, ISSUES, part
from ashep.errors import ProgramMissing
from ashep.simulation.virtual import VIRTUAL, LoopClock, wait_for_threads
from tests.places import living_in, sweep


def test_the_simulation_closes_everything_and_proves_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    said = list[str]()
    assert demo(simulated=True, say=said.append) == 0
    text = "\n".join(said)
    assert "FAILED" not in text
    assert "closed in the tracker: 3 of 3" in text
    assert "prompts that the agents saw: 12, for 12 runs" in text
    assert re.search(r"ok +decisions derived again: \d{3}, 0 differences\n +ok +audit: 3 issues, 0 findings", text)
    assert re.search(r"calc-1 closed by shepherd.*calc-2: ready", text, re.S), "calc-2 waited for calc-1"
    assert "now: closed: pat answered approved" in text
    assert not list(tmp_path.iterdir()), "nothing is left"


def test_it_can_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    said = list[str]()
    assert demo(simulated=True, keep=True, say=said.append) == 0
    (folder,) = tmp_path.iterdir()
    assert said[-1] == f"everything is in {folder}"
    assert (folder / ".agent-shepherd" / "state" / "journal").is_dir()


@pytest.mark.real
def test_the_real_tools_do_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    said = list[str]()
    try:
        assert demo(say=said.append) == 0, "\n".join(said)
    except BaseException:
        sweep(tmp_path)
        raise
    text = "\n".join(said)
    assert "closed in bd: 3 of 3" in text
    assert "prompts that the model saw: 12, for 12 runs" in text
    assert re.search(r"ok +ashep replay: \d+ decisions derived again: all as recorded", text)
    assert "ok     ashep audit: 3 issues: nothing is left over" in text
    assert re.search(r"ok     an unsound edit of the policy was refused: \S+policies.yaml:\d+: policies.standard", text)
    assert "ok     a sound edit came into force, while runs went on" in text
    assert not list(tmp_path.iterdir())
    assert not living_in(tmp_path), "a process was left behind"


@pytest.mark.real
def test_a_demonstration_that_is_stopped_leaves_nothing(tmp_path: Path) -> None:
    environ = os.environ | {"TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    argv = (sys.executable, "-m", "ashep", "demo")
    process = subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    try:
        with process.stdout as lines:
            assert any("goes to builder" in line for line in lines), "it works"
            process.send_signal(signal.SIGTERM)
            assert process.wait(100) == 128 + signal.SIGTERM
    except BaseException:
        process.kill()
        process.wait()
        sweep(tmp_path)
        raise
    assert not living_in(tmp_path), "a process was left behind"
    assert not list(tmp_path.iterdir())


def test_without_the_tools_it_says_what_is_missing_and_what_goes_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(ProgramMissing, match=r"git and bd and opencode cannot be found.*--simulated"):
        Stage.at(tmp_path)


def test_the_programs_see_nothing_of_the_users_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEADS_ACTOR", "somebody")
    monkeypatch.setenv("OPENCODE_SERVER_PASSWORD", "secret")
    monkeypatch.setattr(programs, "find", lambda name: Path(name))
    environ = Stage.at(tmp_path).environ
    assert not {"BEADS_ACTOR", "OPENCODE_SERVER_PASSWORD"} & set(environ)
    private = {name: value for name, value in environ.items() if name == "HOME" or name.startswith("XDG_")}
    cache = private.pop("XDG_CACHE_HOME")
    assert not cache.startswith(str(tmp_path))
    assert all(value.startswith(str(tmp_path)) for value in private.values())


def test_every_edit_of_the_story_fits_the_program_that_it_finds() -> None:
    files = dict(FILES)
    for run in ("calc-1/implement.1.1", "calc-1/implement.2.1", "calc-2/implement.1.1", "calc-3/implement.1.1"):
        edits = part(run).edits
        assert edits
        for edit in edits:
            assert files[edit.path].count(edit.old) == 1, (run, edit)
            files[edit.path] = files[edit.path].replace(edit.old, edit.new)
    assert [issue.id for issue in ISSUES] == ["calc-1", "calc-2", "calc-3"]


def test_a_run_is_named_by_the_line_of_its_prompt() -> None:
    assert run_of("Run: calc-1/review.2.1\nPhase: review") == "calc-1/review.2.1"
    assert run_of("a text that mentions Run: calc-1/x") is None


def test_virtual_time_jumps_but_not_over_a_worker_thread() -> None:
    async def main() -> tuple[float, float]:
        wait_for_threads()
        clock, seen = LoopClock(), list[float]()

        async def timer() -> None:
            await anyio.sleep(3600)
            seen.append(clock.monotonic())

        async with anyio.create_task_group() as group:
            group.start_soon(timer)
            await anyio.to_thread.run_sync(lambda: __import__("time").sleep(0.05))
            seen.append(clock.monotonic())
        return seen[0], seen[1]

    after_thread, after_timer = anyio.run(main, backend_options=dict(VIRTUAL))
    assert after_thread < 1
    assert after_timer == pytest.approx(3600)
