"""The benchmarks' own arithmetic, and each of their parts that needs neither bd nor OpenCode, at a tiny size."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ashep.core.facts.resources import DaemonStopped
from ashep.journal.writer import Journal
from ashep.store.sqlite_reader import open_read_only
from ashep.store.writer import Store
from bench import __main__ as bench
from bench import commands, copies, history, landing, scale, trees
from bench.figures import Figure, markdown, short, table, times
from bench.issues import Side, figures_of, plan_of
from bench.place import THREE, Calls, Project, Tools
from bench.processes import Spent, Watched, end, peak_memory, spent, spent_by_tree, watch


def test_a_figure_is_held_against_its_bound() -> None:
    assert [Figure("a", value, "s", 2.0).verdict for value in (1.0, 2.0, 2.1)] == ["ok", "ok", "OVER"]
    assert Figure("a", 3.0, "s").verdict == "-"
    assert Figure("a", 1.0, "s", 2.0).share == 0.5
    assert [Figure("a", value, "bytes", 0).is_over for value in (0, 1)] == [False, True]


def test_a_ratio_is_the_median_over_pairs() -> None:
    figure = times("a", [(2.0, 1.0), (30.0, 10.0), (8.0, 1.0)], 4.0)
    assert (figure.value, figure.unit, figure.is_over) == (3.0, "x", False)
    assert figure.note == "8.00 s against 1.00 s, 2.00 to 8.00 in 3 pairs"


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (0.0123, "0.012"), (1.234, "1.23"), (12.34, "12.3"), (1234.5, "1234")]
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert short(value) == text


def test_tables_say_what_is_over() -> None:
    figures = [Figure("slow", 3, "s", 2, "a + b"), Figure("told", 1, "MB")]
    head, slow, told = table(figures).splitlines()
    assert head.split() == ["FIGURE", "MEASURED", "BOUND", "OF", "BOUND", "MADE", "OF"]
    assert slow.split() == ["slow", "3.00", "s", "2.00", "s", "150%", "OVER", "a", "+", "b"]
    assert told.split() == ["told", "1.00", "MB", "-", "-", "-"]
    assert head.index("MADE") == slow.index("a + b")
    assert markdown(figures).splitlines()[2] == "| slow | 3.00 s | 2.00 s | 150% | OVER | a + b |"


BUSY = "import time\nwhile time.process_time() < 0.3: pass"


def test_what_a_process_and_its_children_spent_is_seen_after_its_end() -> None:
    script = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BUSY!r}])"
    process = subprocess.Popen([sys.executable, "-c", script], start_new_session=True)
    found = watch(process, 60)
    assert found.code == 0
    assert found.spent.children >= 0.25
    assert found.spent.own < found.spent.children
    assert found.memory > 1_000_000


def test_what_a_tree_of_processes_spends_is_seen_while_it_lives() -> None:
    script = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BUSY + chr(10) + 'time.sleep(60)'!r}])"
    process = subprocess.Popen([sys.executable, "-c", script], start_new_session=True)
    try:
        deadline = time.monotonic() + 60
        while spent_by_tree(process.pid) < 0.25 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert spent_by_tree(process.pid) >= 0.25
        assert spent(process.pid).all < 0.25
    finally:
        end(process)
    assert peak_memory(process.pid) == 0


def test_a_process_that_does_not_end_is_ended() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    with pytest.raises(TimeoutError):
        watch(process, 0.3)
    assert process.returncode is not None


def test_a_made_up_history_is_one_that_the_store_draws(tmp_path: Path) -> None:
    state = tmp_path / "state"
    copies.write(state, 3)
    journal = Journal.open(state, history.START)
    Store.open(state, journal).close()
    journal.close()
    database = open_read_only(state)
    assert database.execute("SELECT state, count(*) FROM runs GROUP BY state").fetchall()[0][:] == ("succeeded", 9)
    assert database.execute("SELECT state, count(*) FROM issues GROUP BY state").fetchall()[0][:] == ("closed", 3)
    database.close()


def test_copied_lives_are_byte_for_byte_those_that_the_core_lives(tmp_path: Path) -> None:
    lived = history.History(tmp_path / "lived")
    lived.begin()
    lived.leave_open(4)
    for number in range(1, 13):
        lived.issue(number)
    lived.tell(DaemonStopped("bench"))
    lived.close()
    last = copies.write(tmp_path / "copied", 12, left_open=4)
    assert last == lived.world.seq
    name = lived.journal.position.file
    assert (tmp_path / "copied/journal" / name).read_bytes() == (tmp_path / "lived/journal" / name).read_bytes()


@pytest.mark.full
def test_what_must_not_grow_is_measured_at_a_tiny_size() -> None:
    figures = {figure.name: figure for figure in scale.measure(facts=2000, issues=30)}
    assert figures["  differences that it found"].value == 0
    assert figures["an hour of idling: entries that are no timers"].value == 0
    assert all(figure.bound is not None for figure in figures.values())
    assert len(figures) == 12


def test_the_plan_of_the_bare_loop_is_what_ashep_did(tmp_path: Path) -> None:
    project = Project(Tools(tmp_path, Path("bd"), Path("opencode")), tmp_path / "project")
    copies.write(project.state, 1)
    blob = project.state / "blobs" / history.BLOB[:2] / history.BLOB
    blob.parent.mkdir(parents=True)
    blob.write_text("Do it.")
    issues = plan_of(project)["issues"]
    assert list(issues) == ["t-00001"]
    assert [(run["run"], run["agent"], run["text"]) for run in issues["t-00001"]] == [
        ("t-00001/implement.1.1", "build", "Do it."),
        ("t-00001/review.1.1", "plan", "Do it."),
        ("t-00001/arbitrate.1.1", "plan", "Do it."),
    ]
    assert issues["t-00001"][0]["permission"] != issues["t-00001"][1]["permission"]


def test_calls_of_bd_are_counted_with_their_time(tmp_path: Path) -> None:
    bd = tmp_path / "bd"
    bd.write_text("#!/bin/sh\necho said $2; exit 3\n")
    bd.chmod(0o755)
    (tmp_path / "template").mkdir()
    project = Project(Tools(tmp_path, bd, Path("opencode")), tmp_path / "template").copy("copy")
    for words in (["--actor=me", "update", "t-1"], ["--actor=me", "update", "t-2"], ["--actor=me", "list"]):
        done = subprocess.run([project.bd, *words], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (3, f"said {words[1]}\n")
    assert project.calls().count == {"update": 2, "list": 1}
    assert set(project.calls().cpu) == {"update", "list"}


def test_figures_of_issues_count_looks_and_writes_apart() -> None:
    calls = Calls.of({"version": 1, "where": 1, "config": 2, "list": 5, "ready": 4, "update": 8})
    ours = Side(Spent(2.2, 3.0), 4.0, calls, 90_000_000)
    bare = Side(Spent(1.0, 3.0), 4.0, Calls.of({"update": 8}), 0)
    found = {
        figure.name.split(",")[0]: figure
        for figure in figures_of([(ours, bare)], [bare], [Watched(0, Spent(1.0), 0)], 2)
    }
    assert found["2 issues x 3 runs: all CPU"].value == pytest.approx(9.2 / 8)
    assert found["ashep's own CPU"].value == pytest.approx(1.2 / 6)
    assert found["bd calls"].value == 4
    assert found["bd reads"].value == 2
    assert found["memory of the daemon"].value == 90


@pytest.mark.slow
def test_the_commands_are_timed_at_a_tiny_size(capsys: pytest.CaptureFixture[str]) -> None:
    figures = commands.measure(runs=3, pairs=1)
    assert [figure.unit for figure in figures] == ["x", "x", "s"]
    assert all(figure.value > 0 for figure in figures)


def test_an_unknown_benchmark_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bench.main(["isues"])
    assert "there is no benchmark isues" in capsys.readouterr().err


def test_strict_is_about_figures_and_a_failure_is_always_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> list[Figure]:
        raise OSError("no bd here")

    parts = {"idle": lambda: [Figure("slow", 3, "s", 2)], "labels": broken}
    monkeypatch.setattr(bench, "benchmarks", lambda options: parts)
    assert bench.main(["idle"]) == 0
    assert bench.main(["idle", "--strict"]) == 1
    assert "1 over the bound: slow" in capsys.readouterr().out
    assert bench.main(["labels", "idle"]) == 1
    told = capsys.readouterr()
    assert "failed to run: labels" in told.out
    assert "slow" in told.out
    assert "no bd here" in told.err


def test_a_private_home_holds_nothing_of_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEADS_ACTOR", "somebody")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/somewhere")
    env = Tools(tmp_path, Path("bd"), Path("opencode")).env
    assert env["HOME"].startswith(str(tmp_path))
    assert not {"BEADS_ACTOR", "XDG_CONFIG_HOME"} & env.keys()
    assert env["PATH"] == os.environ["PATH"]
    assert "three" in THREE


@pytest.mark.slow
@pytest.mark.real
def test_landing_is_measured_against_git_merge() -> None:
    (figure,) = landing.measure(issues=2, pairs=1)
    assert figure.value > 0
    assert "against" in figure.note


@pytest.mark.slow
def test_trees_are_made_and_taken_away_at_a_tiny_size() -> None:
    figures = trees.measure(files=20, pairs=2, trees=2, sizes=(10,))
    assert [figure.unit for figure in figures] == ["x", "x", "x", "s", "s"]
    assert all(figure.value > 0 for figure in figures)
