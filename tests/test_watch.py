"""`ashep status --watch`: a live screen on a real pseudo-terminal, and what is on it."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import anyio
import pytest
from rich.console import Console

from ashep.cli.reading.watch import WatchedStatus, page
from ashep.core.facts import resources
from ashep.core.policy.policies import Human, Phase
from ashep.daemon.control import Control, LiveSigns
from ashep.errors import RunnerUnavailable
from ashep.extras.simulation.memory.runner import Play
from ashep.views import status
from tests.core import given
from tests.core.laws import of_batches
from tests.loop_world import World, minutes, policy
from tests.recorded import Recorded, draw

WIDE = (40, 120)
POLICY = given.policy_of(Phase(name="review"), Phase(name="sign", human=Human(ask="Is it fine?")))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project in which one issue waits for a person, one runs, and one has foreign text in its title."""
    made = Recorded(tmp_path / ".agent-shepherd" / "state", reply=lambda made, run: OUTCOMES.get(run.id))
    made.begin(*given.start(given.policies(POLICY)))
    for name in ("t-1", "t-2"):
        made.open(name)
    made.tracker["t-2"] = replace(made.tracker["t-2"], title="Evil \x1b[31m\x1b]0;owned\x07\ntitle")
    for _ in range(400):
        made.tick()
        flows = made.world.flows
        if len(flows) == 2 and flows["t-1"].stage == "person" and not made.jobs and flows["t-2"].run is not None:
            break
    assert made.world.flows["t-1"].stage == "person"
    draw(tmp_path / ".agent-shepherd" / "state", made.journal)
    made.journal.close()
    return tmp_path


OUTCOMES = {"t-1/review.1.1": '{"result": "success", "summary": "fine"}'}


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, process: "subprocess.Popen[bytes]", master: int) -> None:
        self.process, self.master, self.text = process, master, ""

    def read(self, seconds: float = 0.0) -> None:
        end = time.monotonic() + seconds
        while select.select([self.master], [], [], max(end - time.monotonic(), 0))[0]:
            try:
                self.text += os.read(self.master, 65536).decode(errors="replace")
            except OSError:  # the other end is closed
                return

    def until(self, seen: Callable[[str], Any], bound: float = 60) -> None:
        end = time.monotonic() + bound
        while not seen(self.text):
            assert time.monotonic() < end, repr(self.text[-3000:])
            self.read(0.2)

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


@contextmanager
def terminal(project: Path, *words: str, size: tuple[int, int] = WIDE, **environ: str) -> Iterator[Terminal]:
    master, slave = pty.openpty()
    argv = [sys.executable, "-m", "ashep", "-C", str(project), "status", *words]
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
    env = kept | {"TERM": "xterm-256color"} | environ
    made = Terminal(subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave, env=env), master)
    made.resize(*size)
    os.close(slave)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.wait()
        os.close(master)


LEAVES, SHOWS = "\x1b[?1049l", "\x1b[?25h"
"""What ends the other screen, and shows the cursor."""


@pytest.mark.promise("L10")
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_is_a_screen_that_ctrl_c_ends_and_leaves_clean(project: Path, number: signal.Signals) -> None:
    with terminal(project, "--watch") as seen:
        seen.until(lambda text: "Ctrl-C ends this" in text)
        assert "\x1b[?1049h" in seen.text
        shown = seen.text
        assert shown.index("Waits for you") < shown.index("Running")
        assert "Is it fine?" in shown
        seen.process.send_signal(number)
        assert seen.process.wait(20) == 0
        seen.read(0.3)
        assert LEAVES in seen.text
        assert SHOWS in seen.text
        assert seen.text.rindex(SHOWS) > seen.text.index("Ctrl-C ends this")
        assert "Traceback" not in seen.text
        assert "owned\x07" not in seen.text
        assert "\x1b]0;" not in seen.text
    assert not list((project / ".agent-shepherd").glob("state/redraw-*"))


@pytest.mark.promise("L10")
@pytest.mark.slow
def test_what_happens_shows_on_it(project: Path) -> None:
    with terminal(project, "--watch") as seen:
        seen.until(lambda text: "Ctrl-C ends this" in text)
        assert "by the night watch" not in seen.text
        state = project / ".agent-shepherd" / "state"
        made = Recorded(state)
        world, after = made.journal.load_world()
        made.world = of_batches(made.journal.batches(after), world)
        made.now = made.world.now
        made.turn(resources.WorkPaused("the night watch"))
        draw(state, made.journal)
        made.journal.close()
        seen.until(lambda text: "by the night watch" in text)


@pytest.mark.promise("L10")
@pytest.mark.slow
def test_no_color_and_a_small_terminal(project: Path) -> None:
    with terminal(project, "--watch", size=(8, 30), NO_COLOR="1") as seen:
        seen.until(lambda text: "Ctrl-C ends" in text)
        assert not re.search(r"\x1b\[(?:\d+;)*3\d", seen.text), "a colour"
        seen.resize(3, 10)
        before = len(seen.text)
        seen.until(lambda text: len(text) > before)
        assert seen.process.poll() is None
        seen.process.send_signal(signal.SIGINT)
        assert seen.process.wait(20) == 0


@pytest.mark.promise("L10")
@pytest.mark.slow
def test_what_is_no_terminal_is_refused(project: Path) -> None:
    argv = [sys.executable, "-m", "ashep", "-C", str(project), "status", "--watch"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--watch needs a terminal" in done.stderr
    for words, environ in ((("--watch",), {"TERM": "dumb"}), (("--watch", "--json"), {})):
        with terminal(project, *words, TERM=environ.get("TERM", "xterm")) as seen:
            assert seen.process.wait(60) == 2
            seen.read(0.3)
            assert "--watch" in seen.text
            assert "\x1b" not in seen.text


# --- what is on it ------------------------------------------------------------------------------------------------

NOW = given.T0 + timedelta(hours=2)


def entry(issue: str, state: str, **more: Any) -> Any:
    blank = {"issue": issue, "state": state, "reason": "why", "since": "2026-01-01T22:30:00.000000Z", "code": "x",
             "due": None, "title": f"title of {issue}", "phase": "review", "run": None}  # fmt: skip
    return blank | more


RUNS: Any = {
    "t-2/review.1.1": {
        "run": "t-2/review.1.1", "agent": "critic", "planned_at": "2026-01-01T23:00:00.000000Z",
        "started_at": "2026-01-01T23:30:00.000000Z",
    }
}  # fmt: skip


def signs(**sign: Any) -> Mapping[str, dict[str, Any]]:
    return {"t-2/review.1.1": {"quiet": 3.2, "tool": None, "tool_for": 0.0, "retry_in": None} | sign}


def test_a_run_says_for_how_long_and_when_it_last_showed_a_sign() -> None:
    issues = [entry("t-2", "running", run="t-2/review.1.1"), entry("t-3", "closed")]

    def row(known: Mapping[str, dict[str, Any]]) -> tuple[str, ...]:
        ((section),) = status.sections(issues, RUNS, known, NOW)
        return section.rows[0]

    assert row(signs()) == ("t-2", "review.1.1 critic", "30m", "sign 3s ago", "title of t-2")
    assert row(signs(tool="bash", tool_for=200.0))[3] == "sign 3s ago, bash for 3m"
    assert row(signs(retry_in=90.0))[3] == "its provider is asked again in 1m"
    assert row({})[3] == ""
    (found,) = status.sections([entry("t-2", "running", run="gone")], RUNS, {}, NOW)
    assert found.rows[0][-1] == "title of t-2: why"


def test_what_waits_for_people_comes_first_and_closed_issues_are_counted_only() -> None:
    states = ["closed", "parked", "time", "running", "person", "not_eligible"]
    issues = [entry(f"t-{n}", state) for n, state in enumerate(states)]
    assert [one.state for one in status.sections(issues, {}, {}, NOW)] == ["person", "running", "time", "parked"]
    due = entry("t-1", "time", due="2026-01-02T01:00:00.000000Z")
    (section,) = status.sections([due], {}, {}, NOW)
    assert section.rows[0][3] == "due in 1h"


@pytest.mark.promise("L10")
@pytest.mark.parametrize("height", range(1, 30))
def test_a_page_never_has_more_lines_than_the_terminal(height: int) -> None:
    seen = WatchedStatus.__new__(WatchedStatus)
    daemon: Any = {"running": False, "findings": 0, "pauses": [], "budgets": [], "notices": [], "runners": []}
    issues = [entry(f"t-{n}", state) for n, state in enumerate(["person"] * 9 + ["running"] * 3 + ["parked"] * 30)]
    told: Any = {"daemon": daemon, "issues": issues}
    seen.told, seen.runs = told, {}
    lines = Console(width=50, height=height, file=StringIO()).render_lines(page(seen, {}, height), pad=False)
    text = ["".join(part.text for part in line) for line in lines]
    assert len(text) <= max(height, 3)
    if height >= 6:
        assert any(line.startswith("Waits for you") for line in text)
    if 8 <= height < 14:
        assert any(re.search(r"Waits for you \(\d+ more\)", line) for line in text)
    assert "42 issues: 9 waits for a person" in "\n".join(text)
    assert status.counts(seen.told).startswith("42 issues")


def test_a_page_says_that_an_edit_is_not_in_force() -> None:
    seen = WatchedStatus.__new__(WatchedStatus)
    edit = {"since": "2026-01-01T22:00:00.000000Z", "problems": ["policies.yaml:3: x: wrong"], "more": 0}
    daemon: Any = {"running": True, "pid": 1, "since": "2026-01-01T22:00:00.000000Z", "version": "1", "behind": False}
    daemon |= {"findings": 0, "pauses": [], "budgets": [], "notices": [], "runners": [], "edit": edit}
    told: Any = {"daemon": daemon, "issues": []}
    seen.told, seen.runs = told, {}
    lines = Console(width=120, height=20, file=StringIO()).render_lines(page(seen, {}, 20), pad=False)
    text = ["".join(part.text for part in line) for line in lines]
    assert any(line.endswith("is not in force, what was before it is: policies.yaml:3: x: wrong") for line in text), (
        text
    )


# --- how alive ----------------------------------------------------------------------------------------------------


@pytest.mark.virtual
@pytest.mark.promise("L10")
async def test_the_daemon_says_how_alive_its_runs_are(tmp_path: Path) -> None:
    world = World(tmp_path / "p", policies=policy({"name": "check", "capabilities": ["review"], "timeout": "3h"}))
    world.tracker.add("first")
    world.answer = lambda _, asked: Play(pulse=None, tool="bash", delay=9000.0)
    async with world.living() as running:
        signs = LiveSigns(running.shepherd, running.poller._shepherd._effects.runners, world.clock)
        control = Control(running.shepherd, signs.read)
        assert (await control.answer(b'{"do": "watch"}'))["signs"] == {}
        await anyio.sleep(minutes(10))
        told = await control.answer(b'{"do": "watch"}')
        (run,) = told["runs"]
        assert told["signs"][run]["tool"] == "bash"
        assert 500 < told["signs"][run]["quiet"] <= 600
        again = await control.answer(b'{"do": "watch"}')
        assert again["signs"] == told["signs"], "it is not asked at once again"
        world.runner.fault = lambda method, _: RunnerUnavailable("away") if method == "life" else None
        await anyio.sleep(5)
        assert (await control.answer(b'{"do": "watch"}'))["signs"] == {}
        plain = await Control(running.shepherd).answer(b'{"do": "watch"}')
        assert plain["runs"] == [run]
