"""What judges the slow night: it finds what only the machine can be the reason of, and agents do start late."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ashep.adapters.system import programs
from tests import slow
from tests.e2e.site import until
from tests.slow import BLAMED, FATES, FIRST, LATER, judge, late, starts

LATE = {FIRST: 1, LATER: 2}


def ended(state: str, issue: str = "e-1", **more: Any) -> dict[str, Any]:
    run = f"{issue}/implement.1.1"
    return {"type": "RunEnded", "issue": issue, "run": run, "state": state, "why": "?", "error": None} | more


def test_a_night_in_which_nobody_is_blamed_is_good() -> None:
    outcome = judge([ended("succeeded"), ended("stopped", doubt=True), {"type": "EffectFailed"}], LATE)
    assert outcome.wrong == []
    assert outcome.figures == (
        "0 attempts used up by the machine; 0 issues given to a person who was not there; "
        "starts: 2 20 s late, 1 90 s late; runs: 1 stopped, 1 succeeded; 1 stopped out of doubt; 1 effects failed; "
        "bd was away 0 times"
    )


@pytest.mark.parametrize("state", sorted(BLAMED))
def test_an_attempt_that_is_used_up_is_found_but_for_its_own_fate(state: str) -> None:
    assert judge([ended(state)], LATE).wrong == [f"e-1/implement.1.1 {state}: ? "]
    assert judge([ended(state)], LATE, {"e-1": (state,)}).wrong == []
    assert judge([ended(state)], LATE, {"e-2": (state,), "e-1": ("parked",)}).wrong


@pytest.mark.parametrize(("kind", "fate"), [("SessionTaken", "taken"), ("IssueParked", "parked")])
def test_an_issue_that_is_given_to_nobody_is_found_but_for_its_own_fate(kind: str, fate: str) -> None:
    record = {"type": kind, "issue": "e-1", "why": "somebody stopped the turn"}
    outcome = judge([record], LATE)
    assert outcome.wrong == [f"e-1 {kind}: somebody stopped the turn"]
    assert "1 issues given to a person" in outcome.figures
    assert judge([record], LATE, {"e-1": (fate,)}).wrong == []


def test_a_night_without_a_late_start_was_not_slow() -> None:
    assert judge([ended("succeeded")], {LATER: 3}).wrong == ["no agent started late: the night was not slow"]


def test_the_fates_are_those_of_mishaps_that_there_are() -> None:
    assert set(FATES) <= set(slow.mishaps.MISHAPS)


def test_an_agent_starts_late_once_much_and_then_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)
    monkeypatch.setattr(programs, "find", lambda name: program if name == "opencode" else None)
    monkeypatch.setattr(slow, "FIRST", 1)
    monkeypatch.setattr(slow, "LATER", 0)
    path = late(tmp_path / "bin")
    assert not (tmp_path / "bin" / "claude").exists()
    for words in (["serve", "--port=1"], ["--version"], ["serve", "--port=2"], ["serve"]):
        environ = {"PATH": path, "XDG_DATA_HOME": str(tmp_path / "data")}
        assert subprocess.check_output(["opencode", *words], env=environ, text=True).split() == words
    assert starts(tmp_path) == {1: 1, 0: 2}


def test_the_loops_end_with_a_night_that_is_killed() -> None:
    script = "from tests.slow import busy\nwith busy(1) as loops: print(*loops, flush=True); input()"
    argv = [sys.executable, "-c", script]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        (loop,) = map(int, process.stdout.readline().split())
        assert Path(f"/proc/{loop}").exists()
        process.send_signal(signal.SIGKILL)
        until(lambda: not Path(f"/proc/{loop}").exists(), 10)
