"""The program `ashep` from outside: what it prints, its exit codes, and what it costs to look."""

import fcntl
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ashep import __version__
from ashep.adapters.system import programs
from ashep.cli import fast_path
from ashep.cli.commands import whole
from ashep.cli.fast_path import HELP, READERS
from ashep.cli.reading import read_commands
from ashep.config import write_starter
from ashep.core.policy.isolation_notice import AS_YOU
from ashep.journal.lock import Lock
from ashep.store.sqlite_reader import FORM, NAME
from tests.conformance.trackers import Beads, BeadsWorld
from tests.forks import shared
from tests.recorded import Recorded, draw, life
from tools.commands_page import overview, reference

pytestmark = pytest.mark.slow  # starts a program for nearly every test

ROOT = Path(__file__).resolve().parent.parent
ASHEP = Path(sys.executable).with_name("ashep")
STOPPED = {
    "running": False, "disk": "ok", "findings": 0, "pauses": [], "budgets": [], "notices": [], "runners": [],
    "providers": [], "sources": [], "quotas": [], "trees": {"kept": 0, "next": None}, "journal": None, "edit": None,
    "workspace": None, "repository": None,
}  # fmt: skip
"""What status says of a daemon that does not run and has left nothing worth a word."""


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def ashep(*arguments: str, cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> Done:
    """Run the program."""
    return Done(*shared().run(arguments, {**os.environ, **(env or {})}, cwd))


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """Give the environment of a machine with neither bd nor OpenCode."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("git", "sh"):
        found = programs.find(name)
        assert found is not None
        (tools / name).symlink_to(found)
    return {"PATH": str(tools), "XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path / "home")}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Give a project that is set up and has no journal."""
    folder = tmp_path / "project"
    write_starter(folder / ".agent-shepherd")
    return folder


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a project whose daemon was killed after some work; nothing was drawn."""
    folder = tmp_path_factory.mktemp("lived")
    write_starter(folder / ".agent-shepherd")
    life(folder / ".agent-shepherd" / "state", issues=4, drawn=False, until="person")
    return folder


# --- using it -----------------------------------------------------------------------------------------------------


def test_version_and_help() -> None:
    assert ashep("--version").out == f"ashep {__version__}\n"
    for arguments in (["--help"], ["-h"], ["status", "-h"], ["policy", "check", "--help"]):
        done = ashep(*arguments)
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith("Usage: ashep")


def test_every_command_explains_itself_with_an_example() -> None:
    root = whole()
    groups = ("agents", "policy", "journal", "notify", "service", "story")
    commands = [*root.commands.values(), *(one for name in groups for one in root.commands[name].commands.values())]
    for command in commands:
        assert command.help
        assert command.short_help
        assert command.name in groups or "Examples:" in command.epilog


def test_status_says_that_nothing_can_be_known_without_bd(project: Path, bare: dict[str, str]) -> None:
    for arguments in (["status"], ["status", "--json"]):
        done = ashep(*arguments, cwd=project, env=bare)
        assert done.code == 2
        assert "bd is neither on PATH nor in the tools cache" in done.err
        assert "`ashep install`" in done.err


@pytest.mark.parametrize("arguments", [["nonsense"], ["status", "--nonsense"], ["why"], ["runs", "--limit", "x"]])
def test_wrong_usage_is_told(project: Path, arguments: list[str]) -> None:
    done = ashep(*arguments, cwd=project)
    assert done.code == 2
    assert "Error" in done.err
    assert done.out == ""


def test_status_names_the_command_that_takes_an_issue(project: Path) -> None:
    done = ashep("status", "t-1", "--json", cwd=project)
    assert (done.code, done.out) == (2, "")
    assert "(t-1): `ashep why t-1` says where one issue stands" in done.err


def test_a_project_that_is_not_set_up_is_told_what_to_do(tmp_path: Path) -> None:
    for command in (["status"], ["runs"], ["why", "t-1"], ["work"], ["stop"], ["policy", "check"], ["approve", "t-1"]):
        done = ashep(*command, cwd=tmp_path)
        assert (done.code, done.out) == (2, "")
        assert done.err == f"ashep: {tmp_path} has no folder .agent-shepherd: run `ashep setup` in the project first\n"
    assert ashep("-C", "nowhere", "status", cwd=tmp_path).err == "ashep: nowhere: there is no such folder\n"


def test_the_project_is_found_from_below_and_by_option(project: Path, tmp_path: Path) -> None:
    below = project / "a" / "b"
    below.mkdir(parents=True)
    for done in (
        ashep("status", cwd=below),
        ashep("-C", str(project), "status", cwd=tmp_path),
        ashep(f"--project={project}", "status", cwd=tmp_path),
        ashep("-C", "project", "status", cwd=tmp_path),
    ):
        assert (done.code, done.out) == (0, "ashep is not running\nno issues are known\n")


# --- setting up ---------------------------------------------------------------------------------------------------


def test_init_writes_the_files_even_where_nothing_else_is_there(tmp_path: Path, bare: dict[str, str]) -> None:
    folder = tmp_path / "new"
    folder.mkdir()
    done = ashep("init", cwd=folder, env=bare)
    assert done.code == 0
    assert "bd is neither on PATH" in done.err
    assert {path.name for path in (folder / ".agent-shepherd").iterdir()} == {
        "config.yaml", "policies.yaml", "agents.yaml", ".gitignore", "schemas",
    }  # fmt: skip
    assert ashep("policy", "check", cwd=folder, env=bare).code == 0
    again = ashep("init", cwd=folder, env=bare)
    assert (again.code, again.out) == (2, "")
    assert "--force" in again.err
    assert ashep("init", "--force", cwd=folder, env=bare).code == 0
    assert (folder / ".agent-shepherd/schemas/config.schema.json").is_file()


@pytest.mark.promise("L6")
def test_install_fails_where_something_is_missing(project: Path, bare: dict[str, str]) -> None:
    done = ashep("install", cwd=project, env=bare)
    assert done.code == 1
    assert "error bd: bd is neither on PATH" in done.out
    seen = ashep("install", "--json", cwd=project, env=bare)
    assert (seen.code, seen.json["ok"]) == (1, False)
    assert {"level", "check", "what", "remedy"} == set(seen.json["checks"][0])


BROKEN = {
    "syntax": ("policies: [", "policies.yaml:1"),
    "unknown key": ("version: 1\npolicies:\n  a:\n    phasez: [implement]\n", "policies.yaml:4: policies.a.phasez"),
    "unknown target": (
        "version: 1\npolicies:\n  a:\n    phases:\n      - {name: implement, next: {success: revue}}\n",
        "policies.yaml:5",
    ),
    "no agent": ("version: 1\npolicies:\n  a: [fly]\n", "no agent in agents.yaml has the capability fly"),
    "wrong type": ("version: 1\npolicies: 7\n", "policies.yaml:2: policies"),
    "empty": ("", "the file is empty"),
    "other version": ("version: 2\npolicies:\n  a: [implement]\n", "policies.yaml:1: version"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_policies_are_refused_with_file_and_line(project: Path, kind: str) -> None:
    text, said = BROKEN[kind]
    file = project / ".agent-shepherd" / "policies.yaml"
    file.write_text(text)
    checked = ashep("policy", "check", "--json", cwd=project)
    assert checked.code == 1
    assert any(
        said in f"{one['file']}:{one['line']}: {one['key']}: {one['message']}" for one in checked.json["findings"]
    )
    done = ashep("work", cwd=project)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert "Traceback" not in done.err
    assert not (project / ".agent-shepherd" / "state").exists()


def test_a_draft_can_be_checked(project: Path) -> None:
    (project / "draft.yaml").write_text(BROKEN["unknown target"][0])
    assert ashep("policy", "check", cwd=project).code == 0
    assert ashep("policy", "check", "draft.yaml", cwd=project).code == 1
    assert ashep("policy", "check", "none.yaml", cwd=project).code == 2


# --- working ------------------------------------------------------------------------------------------------------


def test_without_bd_there_is_no_work(project: Path, bare: dict[str, str]) -> None:
    for command in (["work"], ["work", "--dry-run"], ["approve", "t-1"]):
        done = ashep(*command, cwd=project, env=bare | {"USER": "ann"})
        assert (done.code, done.out) == (2, "")
        assert "bd is not on PATH" in done.err


def test_a_bd_that_is_too_old_or_without_a_database_is_refused(project: Path, bare: dict[str, str]) -> None:
    bd = Path(bare["PATH"]) / "bd"
    bd.write_text('#!/bin/sh\necho \'{"version":"1.2.0"}\'\n')
    bd.chmod(0o755)
    done = ashep("work", "--dry-run", cwd=project, env=bare)
    assert done.code == 2
    assert "bd 1.2.0 is too old" in done.err
    bd.write_text(
        '#!/bin/sh\ncase "$*" in *version*) echo \'{"version":"1.3.0"}\';; *)'
        ' echo "Error: no beads database found" >&2; exit 1;; esac\n'
    )
    done = ashep("work", cwd=project, env=bare)
    assert done.code == 2
    assert "no beads database found" in done.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--idle-grace", "5"],
        ["--idle-grace", "soon"],
        ["--max-issues", "0"],
        ["--json"],
        ["--prompt"],
        ["--all", "t-1"],
    ],
)
def test_wrong_options_of_work(project: Path, arguments: list[str]) -> None:
    done = ashep("work", *arguments, cwd=project)
    assert (done.code, done.out) == (2, "")
    assert not (project / ".agent-shepherd" / "state").exists()


def test_stopping_what_does_not_run_is_fine(project: Path) -> None:
    done = ashep("stop", cwd=project)
    assert (done.code, done.out) == (0, "ashep is not running\n")


def test_an_agent_server_that_is_down_is_told(project: Path, bare: dict[str, str]) -> None:
    (project / ".agent-shepherd" / "config.yaml").write_text(
        "version: 1\nrunners: {opencode: {managed: false, url: 'http://127.0.0.1:9'}}\n"
    )
    done = ashep("sync-agents", cwd=project, env=bare)
    assert (done.code, done.out) == (1, "")
    assert "http://127.0.0.1:9 does not answer" in done.err
    assert "error opencode:" in ashep("install", cwd=project, env=bare).out
    done = ashep("stop", "--server", cwd=project, env=bare)
    assert (done.code, done.out.splitlines()[1]) == (0, "there is no agent server of ashep's to end")


HOLDER = """
import json, os, signal, sys, time
from datetime import UTC, datetime
from pathlib import Path
from ashep.journal.lock import Lock
if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
with Lock.acquire(Path(sys.argv[1]), datetime.now(UTC)):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def daemon(project: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Give a process that holds the project as a daemon does."""
    state = project / ".agent-shepherd" / "state"
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(state)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.promise("L1")
def test_a_running_daemon_is_told_and_stopped(project: Path, daemon: subprocess.Popen[bytes]) -> None:
    seen = ashep("status", "--json", cwd=project)
    assert (seen.json["daemon"]["running"], seen.json["daemon"]["pid"]) == (True, daemon.pid)
    (project / ".agent-shepherd" / "config.yaml").write_text("version: 1\nworker: {workspace: shared}\n")
    said = ashep("status", cwd=project).out
    assert f"is running: process {daemon.pid}" in said
    assert AS_YOU in said
    work = ashep("work", cwd=project)
    assert work.code == 3
    assert "another daemon holds" in work.err
    done = ashep("stop", cwd=project)
    assert (done.code, done.out) == (0, f"stopped process {daemon.pid}\n")
    assert daemon.wait(5) == -signal.SIGTERM


def test_that_another_daemon_holds_the_project_is_said_before_anything_else_is_started(
    project: Path, daemon: subprocess.Popen[bytes]
) -> None:
    (project / ".agent-shepherd" / "config.yaml").write_text("not: a configuration\n")
    work = ashep("work", "--until-idle", cwd=project)
    assert (work.code, f"process {daemon.pid}" in work.err) == (3, True), work.err
    assert ashep("work", "--dry-run", cwd=project).code == 2, "it needs no lock"


def test_the_pid_of_a_dead_daemon_is_left_alone(project: Path, daemon: subprocess.Popen[bytes]) -> None:
    lock = project / ".agent-shepherd" / "state" / "lock"
    daemon.kill()
    daemon.wait()
    bystander = subprocess.Popen(["sleep", "30"])
    try:
        lock.write_text(json.dumps({"pid": bystander.pid, "started": "", "version": "0"}))
        assert ashep("stop", cwd=project).out == "ashep is not running\n"
        assert bystander.poll() is None
        assert ashep("status", "--json", cwd=project).json["daemon"] == STOPPED
    finally:
        bystander.kill()
        bystander.wait()


# --- looking ------------------------------------------------------------------------------------------------------


def test_looking_before_there_is_anything(project: Path) -> None:
    done = ashep("status", "--json", cwd=project)
    assert (done.code, done.json) == (0, {"daemon": STOPPED, "issues": []})
    assert "`ashep work` begins one" in done.err
    assert ashep("runs", "--json", cwd=project).json == {"runs": []}
    for command in (["why", "t-1"], ["show", "t-1/implement.1.1"], ["runs", "t-1"]):
        done = ashep(*command, cwd=project)
        assert (done.code, done.out) == (1, "")
        assert "t-1" in done.err
    assert not (project / ".agent-shepherd" / "state").exists()


@pytest.mark.promise("L5")
def test_readers_tell_all_although_the_daemon_was_killed_before_it_drew(lived: Path) -> None:
    state = lived / ".agent-shepherd" / "state"
    seen = ashep("status", "--json", cwd=lived)
    assert seen.code == 0
    assert next(entry["issue"] for entry in seen.json["issues"]) == "t-1"
    assert {entry["issue"] for entry in seen.json["issues"]} >= {"t-1", "t-2", "t-3", "t-4"}
    assert {entry["state"] for entry in seen.json["issues"]} <= {
        "running", "person", "time", "parked", "not_eligible", "closed",
    }  # fmt: skip
    assert all({"issue", "state", "reason", "since"} <= set(entry) for entry in seen.json["issues"])
    assert (state / NAME).exists()
    assert not list(state.glob("redraw-*"))
    runs = ashep("runs", "--json", "--limit", "0", cwd=lived).json["runs"]
    assert {run["issue"] for run in runs} >= {"t-1"}
    assert len(ashep("runs", "-n", "1", "--json", cwd=lived).json["runs"]) == 1
    shown = ashep("show", runs[-1]["run"], "--json", cwd=lived).json
    assert shown["run"] == runs[-1]
    assert shown["choice"]["agent"] == runs[-1]["agent"]
    tale = ashep("why", "t-1", cwd=lived).out.splitlines()
    assert tale[0] == "t-1: Title of t-1"
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d .* \[#\d+\]", line) for line in tale[1:-1])
    assert tale[-1].startswith("now: waits for a person")
    assert "Title of t-1" in ashep("status", cwd=lived).out
    assert runs[-1]["run"] in ashep("runs", cwd=lived).out


@pytest.mark.promise("L5")
def test_a_deleted_damaged_or_older_picture_is_drawn_again(lived: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(lived, folder)
    state = folder / ".agent-shepherd" / "state"
    before = ashep("status", "--json", cwd=folder).json
    (state / NAME).unlink()
    (folder / ".agent-shepherd" / "runs.jsonl").unlink(missing_ok=True)
    assert ashep("status", "--json", cwd=folder).json == before
    assert not (folder / ".agent-shepherd" / "runs.jsonl").exists(), "the daemon's alone to draw, as README.md says"
    (state / NAME).write_bytes(b"no database " * 100)
    assert ashep("status", "--json", cwd=folder).json == before
    make_older(state)
    assert ashep("status", "--json", cwd=folder).json == before
    with closing(sqlite3.connect(state / NAME)) as database, database:
        database.execute("UPDATE meta SET value = 'far' WHERE key = 'offset'")
    assert ashep("status", "--json", cwd=folder).json == before
    code = f"import sqlite3; sqlite3.connect({str(state / NAME)!r}).execute('DROP TABLE runs')"
    subprocess.run([sys.executable, "-c", code], check=True)
    (state / NAME).write_bytes((state / NAME).read_bytes()[:4096])
    assert ashep("status", "--json", cwd=folder).json == before


def make_older(state: Path) -> None:
    """Make the database one of an earlier form of the same release, whose rows lack keys."""
    with closing(sqlite3.connect(state / NAME)) as database, database:
        database.execute("UPDATE meta SET value = ? WHERE key = 'version'", [f"{FORM - 1}/{__version__}"])
        database.execute("UPDATE issues SET body = '{}'")


def test_an_older_picture_next_to_its_daemon_is_not_read(lived: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(lived, folder)
    state = folder / ".agent-shepherd" / "state"
    ashep("status", cwd=folder)
    make_older(state)
    with (state / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(json.dumps({"pid": 1, "started": "2026-01-01T00:00:00+00:00", "version": __version__}))
        lock.flush()
        done = ashep("status", cwd=folder)
    assert done.code == 1
    assert f"is of version {FORM - 1}/{__version__}, and this ashep reads {FORM}/{__version__}: restart" in done.err


def test_a_picture_that_is_behind_is_caught_up_with(tmp_path: Path) -> None:
    write_starter(tmp_path / ".agent-shepherd")
    state = tmp_path / ".agent-shepherd" / "state"
    made = Recorded(state)
    made.begin()
    made.open("t-1")
    made.look()
    draw(state, made.journal)
    made.open("t-2")
    made.look()
    made.journal.close()
    assert {entry["issue"] for entry in ashep("status", "--json", cwd=tmp_path).json["issues"]} == {"t-1", "t-2"}
    with (state / "journal" / sorted(os.listdir(state / "journal"))[-1]).open("ab") as file:
        file.write(b'{"torn')  # a batch that was never acted on
    assert {entry["issue"] for entry in ashep("status", "--json", cwd=tmp_path).json["issues"]} == {"t-1", "t-2"}


def test_beside_a_daemon_that_lags_what_is_drawn_is_told(lived: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(lived, folder)
    state = folder / ".agent-shepherd" / "state"
    ashep("status", cwd=folder)
    with (state / "journal" / sorted(os.listdir(state / "journal"))[-1]).open("ab") as file:
        file.write(b'{"more')
    with (state / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(json.dumps({"pid": 1, "started": "2026-01-01T00:00:00+00:00", "version": "0"}))
        lock.flush()
        seen = ashep("status", "--json", cwd=folder)
    assert (seen.json["daemon"]["behind"], bool(seen.json["issues"])) == (True, True)


def test_a_damaged_journal_is_told_with_its_own_exit_code(lived: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(lived, folder)
    state = folder / ".agent-shepherd" / "state"
    (state / NAME).unlink(missing_ok=True)
    file = next((state / "journal").glob("*.jsonl"))
    data = bytearray(file.read_bytes())
    data[len(data) // 3] ^= 0xFF
    file.write_bytes(data)
    done = ashep("status", cwd=folder)
    assert (done.code, done.out) == (65, "")
    assert done.err.splitlines()[-1].startswith(f"ashep: {file}:"), "what precedes it says that it takes a while"
    assert "Traceback" not in done.err


def test_a_reader_that_went_away_is_no_mistake(lived: Path) -> None:
    command = f"{ASHEP} runs --json --limit 0 | true; {ASHEP} why t-1 | head -1"
    done = subprocess.run(["sh", "-c", command], cwd=lived, capture_output=True, timeout=240)
    assert (done.stderr, done.stdout) == (b"", b"t-1: Title of t-1\n")


def test_there_are_no_colours_but_on_a_terminal(lived: Path) -> None:
    for command in (["status"], ["runs"], ["why", "t-1"]):
        assert "\x1b" not in ashep(*command, cwd=lived, env={"FORCE_COLOR": "1"}).out


def test_on_a_terminal_there_are_colours_unless_they_are_not_wanted(lived: Path) -> None:
    assert "\x1b[" in terminal("status", cwd=lived)
    assert "\x1b[3" not in terminal("status", cwd=lived, NO_COLOR="1")
    assert "t-1" in terminal("status", cwd=lived, NO_COLOR="1")


def terminal(*arguments: str, cwd: Path, **env: str) -> str:
    """Run the program on a terminal of its own."""
    ours, theirs = os.openpty()
    environ = {**os.environ, "TERM": "xterm", "COLUMNS": "150", **env}
    process = subprocess.Popen([ASHEP, *arguments], cwd=cwd, env=environ, stdout=theirs, stderr=theirs)
    os.close(theirs)
    text = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:
            break
        if not part:
            break
        text += part
    os.close(ours)
    assert process.wait(60) == 0
    return text.decode()


@pytest.mark.promise("G8")
def test_foreign_text_cannot_act_on_the_terminal(tmp_path: Path) -> None:
    write_starter(tmp_path / ".agent-shepherd")
    state = tmp_path / ".agent-shepherd" / "state"
    made = Recorded(state)
    made.begin()
    made.open("t-1")
    made.change("t-1", "eve", title="evil \x1b[2J\x9b title \u202e reversed")
    made.look()
    draw(state, made.journal)
    made.journal.close()
    for command in (["status"], ["status", "--json"], ["why", "t-1"], ["why", "t-1", "--json"]):
        out = ashep(*command, cwd=tmp_path).out
        assert "title" in out
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", out)


# --- what it costs ------------------------------------------------------------------------------------------------

HEAVY = ("typer", "pydantic", "sqlmodel", "sqlalchemy", "httpx", "anyio", "rich", "ashep.adapters", "yaml")


@pytest.mark.promise("L5")
@pytest.mark.parametrize(
    "arguments", [["--help"], ["status", "--json"], ["status"], ["runs"], ["why", "t-1"], ["runs", "t-1", "-n", "2"],
     ["usage", "--by", "day", "--since", "18:00"], ["report", "--since", "18:00"]],
)  # fmt: skip
def test_a_reader_imports_nothing_heavy(lived: Path, arguments: list[str]) -> None:
    ashep("status", cwd=lived)
    code = "import sys; from ashep.cli import main; code = main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=lived, capture_output=True, timeout=240)
    modules = done.stderr.decode().split()
    assert "ashep.cli" in modules
    assert [name for name in modules if name in HEAVY] == []


def test_the_daemon_does_not_import_what_it_may_never_need() -> None:
    """What draws the pictures is imported beside the work, a forge where there is one; of httpx the library alone."""
    unneeded = "{'sqlmodel', 'sqlalchemy', 'ashep.adapters.forges', 'click', 'rich', 'pygments'}"
    for first in ("ashep.app", "ashep.adapters.forges"):
        code = f"import sys, {first}; print(*{unneeded} & sys.modules.keys())"
        found = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True, timeout=240
        ).stdout.split()
        assert found == ([] if first == "ashep.app" else [first.encode()])


def processor_time(argv: list[str], cwd: Path, times: int) -> float:
    """Give the least time on a processor, user's and system's, that a program took."""
    least = float("inf")
    for _ in range(times):
        before = os.times()
        subprocess.run(argv, cwd=cwd, stdout=subprocess.DEVNULL, check=True, timeout=240)
        after = os.times()
        took = after.children_user + after.children_system - before.children_user - before.children_system
        least = min(least, took)
    return max(least, 0.01)  # the kernel counts hundredths


def test_looking_is_quick(lived: Path) -> None:
    ashep("status", cwd=lived)
    bare_python = processor_time([sys.executable, "-c", "pass"], lived, 10) + 0.005  # half of what the kernel counts in
    assert processor_time([str(ASHEP), "--help"], lived, 5) <= 8 * bare_python
    assert processor_time([str(ASHEP), "status", "--json"], lived, 5) <= 15 * bare_python


# --- one source ---------------------------------------------------------------------------------------------------


PLAIN = {
    "status": ["", "--all", "--json --watch", "--at 03:00"],
    "runs": ["", "t-1", "--limit 3", "-n 0 t-1 --json"],
    "show": ["t-1/a.1.1", "--prompt t-1/a.1.1 --json"],
    "why": ["t-1", "--json t-1"],
    "usage": ["", "--by day --since 18:00", "--json"],
    "report": ["", "--since 2h --json", "--markdown"],
}  # fmt: skip
"""Every option of the readers, in plain forms."""


@pytest.mark.parametrize("name", READERS)
def test_a_plain_form_is_read_as_typer_reads_it(name: str) -> None:
    assert {*READERS} == {*read_commands.EXAMPLES}
    command, used = whole().commands[name], set[str]()
    for line in PLAIN[name]:
        plain = fast_path.values_of(getattr(read_commands, name), line.split())
        assert plain is not None
        context = command.make_context(name, line.split())
        assert context.params == {one.name: one.default for one in command.params if one.name != "help"} | plain
        used |= {*plain}
    assert used == {param.name for param in command.params} - {"help"}


@pytest.mark.parametrize(
    "arguments",
    [["work"], ["status", "--help"], ["status", "x"], ["why"], ["why", "a", "b"], ["runs", "--limit"],
     ["runs", "--limit=3"], ["runs", "-n", "-1"], ["runs", "-n", "x"], ["-C"], ["why", ""],
     ["usage", "--by"], ["usage", "--since", "--json"]],
)  # fmt: skip
def test_what_is_not_plain_is_left_to_typer(arguments: list[str]) -> None:
    assert fast_path.run(arguments) is None


def test_the_pages_made_from_the_help_are_fresh() -> None:
    remedy = "run `python -m tools.commands_page`"
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == reference(), remedy
    assert HELP.read_text(encoding="utf-8") == overview(), remedy


# --- answering, with the real bd ----------------------------------------------------------------------------------


@pytest.fixture
def beads(tmp_path_factory: pytest.TempPathFactory) -> Beads:
    return Beads.make(tmp_path_factory.getbasetemp() / "beads")


@pytest.mark.promise("L4")
@pytest.mark.real
def test_a_person_answers_and_starts_afresh(beads: Beads, tmp_path: Path) -> None:
    world = BeadsWorld(beads, tmp_path / "project")
    write_starter(world.project / ".agent-shepherd")
    subprocess.run(["git", "config", "user.name", "Ann Example"], cwd=world.project, check=True)
    issue = world.add("An issue")
    metadata = '--metadata={"ashep":{"instance":"0f","seq":7,"run":"r","visit":1,"attempt":1,"runs":1}}'
    status = ("--status=blocked", "--assignee=ashep-test")
    world.bd("ashep-test", "update", issue, *status, metadata, "--add-label=needs:human_approval")
    env = dict(beads.env) | {"BEADS_ACTOR": "somebody", "PATH": f"{beads.program.parent}:{os.environ['PATH']}"}
    with Lock.acquire(world.project / ".agent-shepherd/state", datetime.now(UTC)):
        done = ashep("approve", issue, "--now", "-m", "-well done\nindeed", cwd=world.project, env=env)
    assert (done.code, done.err) == (0, "")
    assert done.out == f"{issue}: approved as Ann Example. ashep sees it at its next look\n", "a daemon goes on with it"
    shown = json.loads(world.bd("ann", "show", issue, "--include-comments", "--json"))[0]
    assert "human:approved" in shown["labels"]
    assert [(comment["author"], comment["text"].split("\n")[:2]) for comment in shown["comments"]] == [
        ("Ann Example", ["-well done", "indeed"])
    ]
    refused = ashep("reject", issue, "-m", "no", cwd=world.project, env=env)
    assert refused.code == 1
    assert re.search(r"Ann Example approved it at .*Z\. Nothing is written; --instead replaces it", refused.err)
    rejected = ashep("reject", issue, "--instead", cwd=world.project, env=env)
    assert rejected.code == 0
    assert "ashep is not running" in rejected.out
    assert "without a comment" in rejected.err
    labels = json.loads(world.bd("ann", "show", issue, "--json"))[0]["labels"]
    assert "human:changes_requested" in labels
    assert "human:approved" not in labels
    world.bd("ann", "update", issue, "--remove-label=needs:human_approval", "--add-label=ashep:parked")
    again = ashep("approve", issue, cwd=world.project, env=env)
    assert again.code == 1
    assert "parked" in again.err
    assert ashep("retry", issue, "--phase", "nowhere", cwd=world.project, env=env).code == 2
    assert ashep("retry", issue, "--phase", "review", cwd=world.project, env=env).code == 0
    labels = json.loads(world.bd("ann", "show", issue, "--json"))[0]["labels"]
    assert "ashep:parked" not in labels
    assert "phase:review" in labels
    agent = ashep("approve", issue, cwd=world.project, env=env | {"BEADS_ACTOR": "ashep-agent"})
    assert agent.code == 2
    assert "only a person answers" in agent.err


@pytest.mark.real
def test_a_dry_run_says_what_would_start_and_writes_nothing(beads: Beads, tmp_path: Path) -> None:
    world = BeadsWorld(beads, tmp_path / "project")
    write_starter(world.project / ".agent-shepherd")
    config = world.project / ".agent-shepherd/config.yaml"
    config.write_text(config.read_text().replace("command: [opencode]", "command: [git]"))  # nobody starts it
    first, second = world.add("A first issue", priority=1), world.add("A second issue")
    before = world.bd("ann", "list", "--json")
    env = dict(beads.env) | {"PATH": f"{beads.program.parent}:{os.environ['PATH']}"}
    seen = ashep("work", "--dry-run", "--json", cwd=world.project, env=env)
    assert seen.code == 0, seen.err
    (start,) = seen.json["starting"]
    assert (start["issue"], start["agent"], start["phase"]) == (first, "builder", "implement")
    assert "A first issue" in start["prompt"]
    assert [(held["issue"], held["code"]) for held in seen.json["held"]] == [(second, "work_tree")]
    assert [start["title"], seen.json["held"][0]["title"]] == ["A first issue", "A second issue"]
    told = ashep("work", "--dry-run", cwd=world.project, env=env).out
    assert f"{first} (A first issue): implement would start with builder" in told
    assert "Run: " not in told, "prompts are long"
    assert f"    Run: {first}/implement.1.1" in ashep("work", "--dry-run", "--prompt", cwd=world.project, env=env).out
    assert re.search(rf"^{second} +A second issue +work_tree +{first} holds the work tree$", told, re.MULTILINE)
    assert world.bd("ann", "list", "--json") == before
    assert not (world.project / ".agent-shepherd" / "state").exists()


# --- the server's agents ------------------------------------------------------------------------------------------


def at_home(folder: Path) -> dict[str, str]:
    """Variables of somebody whose home is there."""
    homes = {
        "HOME": str(folder / "home"),
        "XDG_STATE_HOME": str(folder / "state"),
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
    }
    return homes | {"XDG_CACHE_HOME": str(programs.tools_cache().parent.parent)}


@pytest.mark.real
def test_sync_agents_adds_what_the_server_has_and_ends_it_again(project: Path, tmp_path: Path) -> None:
    env = at_home(tmp_path)
    file = project / ".agent-shepherd" / "agents.yaml"
    before = file.read_text()
    (project / "opencode.json").write_text('{"permission": {"bash": {"*": "ask"}}}')
    dry = ashep("sync-agents", "--dry-run", cwd=project, env=env)
    assert (dry.code, file.read_text()) == (0, before), dry.err
    assert "opencode.json asks a person about bash `*`" in " ".join(dry.err.split())
    assert "# guessed from the server's agent" in dry.out
    assert "explore" in dry.out
    assert ashep("sync-agents", cwd=project, env=env).code == 0
    after = file.read_text()
    assert all(line in after.splitlines() for line in before.splitlines())
    assert ashep("policy", "check", cwd=project).code == 0
    assert "agents.yaml names everything" in ashep("sync-agents", cwd=project, env=env).out
    running = subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True)
    assert running.stdout == b""


@pytest.mark.real
def test_install_says_which_logins_agents_lack_and_shows_no_key(project: Path, tmp_path: Path) -> None:
    env = at_home(tmp_path)
    options = {"baseURL": "http://127.0.0.1:9/v1", "apiKey": "sk-of-nobody"}
    acme = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"large": {}}}
    (project / "opencode.json").write_text(json.dumps({"provider": {"acme": acme}, "model": "acme/large"}))
    file = project / ".agent-shepherd" / "agents.yaml"
    runner = "runner: {type: opencode, agent_slug: build, provider: %s, model: %s}"
    wanted = {"fits": ("acme", "large"), "misspelt": ("acme", "lrge"), "away": ("nowhere", "big")}
    some = [f"  - {{id: {name}, capabilities: [implement], {runner % at}}}\n" for name, at in wanted.items()]
    file.write_text(f"{file.read_text()}\n{''.join(some)}")
    done = ashep("install", "--json", cwd=project, env=env)
    told = [(one["level"], one["what"]) for one in done.json["checks"] if one["check"] == "providers"]
    assert told[0][0] == "ok", told
    assert "acme (1 model)" in told[0][1]
    assert "default: acme/large" in told[0][1]
    assert told[1:] == [
        ("warning", "misspelt cannot be used: acme has no model lrge"),
        ("warning", "away cannot be used: OpenCode has no login for nowhere"),
    ]
    assert "sk-of-nobody" not in done.out + done.err
    running = subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True)
    assert running.stdout == b""
