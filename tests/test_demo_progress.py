"""A demonstration goes on as long as anything new happens, and leaves no process, however it ends."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest

from ashep.adapters.runners.opencode.server import ServerRecord, folder_of
from ashep.adapters.system import process_table
from ashep.errors import AshepError
from ashep.extras.demo import progress
from ashep.extras.demo.progress import STILL, DemoProgress
from ashep.extras.demo.run import demo
from ashep.extras.demo.state_dir import PREFIX, DemoState, end_abandoned, end_processes
from tests.places import living_in, sweep

LIVES = "import signal, sys, time\nif 'serve' in sys.argv: signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
LIVES += "print(flush=True)\ntime.sleep(600)"


class Watch:
    """Progress of a project, by a clock that the test moves."""

    def __init__(self, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.requests, self._now = 0, 0.0
        monkeypatch.setattr(progress.time, "monotonic", lambda: self._now)
        state = project / ".agent-shepherd" / "state"
        self.journal = state / "journal" / "1.jsonl"
        self.journal.parent.mkdir(parents=True)
        self.journal.touch()
        environ = {"HOME": str(project), "XDG_STATE_HOME": str(project)}
        self.servers = folder_of(state, environ)
        self._progress = DemoProgress(project, environ, lambda: self.requests)

    def is_over_after(self, seconds: float) -> bool:
        self._now += seconds
        return self._progress.is_over()

    def write(self, record: str) -> None:
        with self.journal.open("a") as file:
            file.write(record + "\n")

    def serve(self, folder: Path, pid: int, *, answered: bool) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        started = process_table.stat(pid)[1]
        record = ServerRecord(port=1, password="p", pid=pid, started=started, token="t", answered=answered)
        (folder / "server.json").write_text(record.model_dump_json())


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watch:
    return Watch(tmp_path, monkeypatch)


def test_it_goes_on_for_hours_as_long_as_something_new_comes(watch: Watch) -> None:
    for _ in range(20):
        watch.write('{"type":"RunStarted","issue":"calc-1"}')
        assert not watch.is_over_after(STILL * 2), "a record about an issue, however late it is seen"
        watch.requests += 1
        assert not watch.is_over_after(STILL * 2), "a request to the model"
    assert not watch.is_over_after(STILL - 1)
    assert watch.is_over_after(1)


def test_a_server_that_is_tried_again_for_ever_is_nothing_new(watch: Watch) -> None:
    for _ in range(4):
        watch.write('{"type":"RunnerSeen","state":"down"}')
        assert not watch.is_over_after(STILL / 5)
    watch.write('{"type":"RunnerSeen","state":"down"}')
    assert watch.is_over_after(STILL / 5)


@pytest.mark.parametrize("place", ["", "servers/calc-1"])
def test_the_time_of_a_server_that_starts_does_not_count(watch: Watch, place: str) -> None:
    folder = watch.servers / place
    watch.serve(folder, os.getpid(), answered=False)
    for _ in range(10):
        assert not watch.is_over_after(STILL / 2)
    watch.serve(folder, os.getpid(), answered=True)
    assert not watch.is_over_after(STILL / 2)
    assert watch.is_over_after(STILL / 2)


def test_a_server_that_has_ended_does_not_start(watch: Watch) -> None:
    watch.serve(watch.servers, 2**22 + 1, answered=False)
    assert watch.is_over_after(STILL)


Begin = Callable[[Path, str], "subprocess.Popen[bytes]"]


@pytest.fixture
def begin() -> Iterator[Begin]:
    """Begins a process of a demonstration; a server ends by SIGKILL alone."""
    begun = list[subprocess.Popen[bytes]]()

    def process(folder: Path, word: str) -> "subprocess.Popen[bytes]":
        environ = os.environ | {"HOME": str(folder / "home")}
        argv = (sys.executable, "-c", LIVES, word)
        begun.append(subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, start_new_session=True))
        assert begun[-1].stdout is not None
        begun[-1].stdout.readline()  # it ignores signals now, if it does
        return begun[-1]

    yield process
    for one in begun:
        one.kill()
        one.communicate()


def test_what_a_demonstration_began_is_ended_and_nothing_of_another(tmp_path: Path, begin: Begin) -> None:
    own = [begin(tmp_path / "demo", word) for word in ("ashep", "serve", "--strict-mcp-config", "ashep.extras.demo")]
    others = begin(tmp_path / "demo", "vi"), begin(tmp_path / "demo2", "serve")
    anyio.run(end_processes, tmp_path / "demo")
    ends = [-signal.SIGTERM, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGTERM]
    assert [process.wait(5) for process in own] == ends
    assert [process.poll() for process in others] == [None, None]


def test_what_a_killed_demonstration_left_is_ended_by_the_next(
    tmp_path: Path, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    killed, shown, odd = (tmp_path / f"{PREFIX}{name}" for name in ("x_killed", "x__shown", "x_is_odd"))
    DemoState.load_or_begin(shown)
    script = "import sys; from pathlib import Path; from ashep.extras.demo.state_dir import DemoState"
    script += "; DemoState.load_or_begin(Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", script, str(killed)], check=True)
    shutil.copytree(killed, chosen := tmp_path / f"{PREFIX}of-mine")
    left, *live = begin(killed, "ashep"), begin(shown, "serve"), begin(chosen, "ashep")
    odd.mkdir()
    for text in ("", "[]", '{"url": "x", "more": 1}', "\0" * 10):
        (odd / "demo.json").write_text(text)
        anyio.run(end_abandoned)
    assert left.wait(5) == -signal.SIGTERM
    assert [process.poll() for process in live] == [None, None]
    assert (killed / "demo.json").exists(), "it can go on"


def test_a_demonstration_is_shown_by_one_process(tmp_path: Path) -> None:
    DemoState.load_or_begin(tmp_path)
    with pytest.raises(AshepError, match=f"process {os.getpid()} shows the demonstration in .*: wait for it, or stop"):
        DemoState.load_or_begin(tmp_path)
    text = (tmp_path / "demo.json").read_text()
    before = re.sub(r', "pid": \d+, "started": \d+', "", text)
    assert before != text
    (tmp_path / "demo.json").write_text(before)
    assert DemoState.load_or_begin(tmp_path).pid == os.getpid(), "one of an earlier version goes on"


@pytest.mark.real
@pytest.mark.full
def test_one_in_which_nothing_happens_ends_with_what_it_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(progress, "STILL", 0.0)
    try:
        with pytest.raises(AshepError, match=r"nothing new for \d+ s, so it was ended. `ashep status --all`:\n"):
            demo(say=lambda _: None)
        assert not living_in(tmp_path), "a process was left behind"
    finally:
        sweep(tmp_path)
    assert not list(tmp_path.iterdir())
