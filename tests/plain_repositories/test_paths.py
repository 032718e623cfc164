"""A folder of the time before UTF-8: no command ends in a traceback, and `ashep install` says what to do about it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ashep import factories
from ashep.actions import doctor
from ashep.adapters.system import process_table, programs
from ashep.cli import main
from ashep.cli.commands import COMMANDS
from ashep.cli.context import find_project
from ashep.config import write_starter
from ashep.errors import UsageError
from tests import databases

CACHE = programs.tools_cache().parent.parent  # before there is another home
ISSUE = "t-1"
WORDS: dict[str, tuple[str, ...]] = {
    "show": ("t-1/implement.1.1",), "why": (ISSUE,), "approve": (ISSUE,), "retry": (ISSUE,),
    "reject": (ISSUE, "-m", "no"),
    "answer": (ISSUE, "yes"), "take": (ISSUE,), "release": (ISSUE,), "cancel": ("t-1/implement.1.1",),
    "criteria": (ISSUE,), "verify": (ISSUE,), "impact": (ISSUE,), "sandbox": ("--", "true"), "work": ("--until-idle",),
    "policy simulate": ("standard", "--runs", "1"), "policy import": ("table.json",), "policy export": ("standard",),
    "policy state": (ISSUE,), "agents explain": ("implement",), "trees open": (ISSUE,), "trees remove": (ISSUE,),
    "story show": ("1-1",), "story shard": ("1-1",),
    "story run": ("--all",), "story import": ("table.json",), "story compare": ("a", "b"),
    "foreman": ("--doctor",),
}  # fmt: skip
"""Arguments of commands."""
SERVING = {"serve", "ui", "demo"}
"""These go on until a signal; `demo` is in a folder of its own."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in such a folder, with a database and a commit."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/M\xfcller/shop"))
    folder.mkdir(parents=True)
    databases.copied("t", folder)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "pat")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "pat@example.invalid")
    subprocess.run(["git", "commit", "-q", "--allow-empty", "-m", "first"], cwd=folder, check=True)
    write_starter(folder / ".agent-shepherd")
    return folder


@pytest.mark.real
def test_every_command_once_in_a_folder_whose_name_is_no_text(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(CACHE))
    monkeypatch.chdir(project)
    groups = COMMANDS.keys() - {"ashep"}
    names = [name for name in COMMANDS["ashep"] if name not in groups]
    names += [f"{group} {name}" for group in groups for name in COMMANDS[group]]
    assert main(["status"]) == 0
    for name in sorted({*names} - SERVING):
        code = main([*name.split(), *WORDS.get(name, ())])  # a bug raises here
        output = capfd.readouterr()
        assert "Usage:" not in output.err, (name, output.err)
        assert code in (0, 1, 2, 69), (name, code, output.err)
    served = [sys.executable, "-m", "ashep", "serve", "--port", "0"]
    with subprocess.Popen(served, stdout=subprocess.PIPE, text=True, errors="replace") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("listening on http://127.0.0.1:")
        process.terminate()
        assert process.wait(30) in (0, -signal.SIGTERM)
    assert main(["work", "--until-idle"]) == 2
    assert "is not UTF-8, and no agent can be started there: rename the folder" in capfd.readouterr().err


def test_install_says_that_no_agent_can_be_started_there(project: Path) -> None:
    errors = [line for line in doctor.configuration(project) if line.level == "error"]
    assert [(line.check, "is not UTF-8" in line.what) for line in errors] == [("configuration", True)]
    with pytest.raises(UsageError, match="rename the folder"):
        factories.check(project, doctor.settings_of(project))


def test_below_a_project_such_a_folder_is_as_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_starter(tmp_path / "shop" / ".agent-shepherd")
    subprocess.run(["git", "init", "-q", "shop"], cwd=tmp_path, check=True)
    inner = Path(os.fsdecode(os.fsencode(tmp_path) + b"/shop/M\xfcller"))
    (inner / ".git").mkdir(parents=True)  # a clone in it: each folder above may hold the notes of a place
    monkeypatch.chdir(inner)
    assert find_project(None) == tmp_path / "shop"
    assert main(["policy", "check"]) == 0


def test_a_process_is_found_by_a_folder_whose_name_is_no_text(project: Path) -> None:
    child = [sys.executable, "-c", "input()"]
    with subprocess.Popen(child, stdin=subprocess.PIPE, env=os.environ | {"HOLDS": str(project)}) as process:
        assert [pid for pid, _ in process_table.holders_of(process_table.ProcessMark("HOLDS", str(project)))] == [
            process.pid
        ]
        process.communicate(b"\n")
