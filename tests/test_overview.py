"""`ashep` without a command: what waits for a person, and what to type."""

import sys
from pathlib import Path

import pytest

from ashep.cli import main
from ashep.cli.commands import COMMANDS, SECTIONS
from ashep.views.json_types import StatusJson
from ashep.views.status import next_steps
from tests.first_hour.terminal import Terminal


def test_each_command_stands_in_one_section_of_the_help() -> None:
    names = [name for section in SECTIONS.values() for name in section]
    assert sorted(names) == sorted(COMMANDS["ashep"])


@pytest.mark.parametrize(
    ("issues", "running", "line"),
    [
        ([], False, "type: ashep work"),
        ([], True, "type: ashep status"),
        ([("t-1", "person", "question")], False, "type: ashep approve t-1 · ashep reject t-1 -m … · ashep work"),
        ([("t-1", "person", "input")], True, "type: ashep answer t-1 … · ashep status"),
        ([("t-1", "running", ""), ("t-2", "parked", "max_visits")], False, "type: ashep retry t-2 · ashep work"),
    ],
)  # fmt: skip
def test_what_to_type_follows_from_what_waits(issues: list[tuple[str, str, str]], running: bool, line: str) -> None:
    rows = [{"issue": issue, "state": state, "code": code} for issue, state, code in issues]
    seen: StatusJson = {"daemon": {"running": running}, "issues": rows}  # type: ignore[typeddict-item]
    assert next_steps(seen)[0] == line


def test_alone_it_says_where_things_stand_in_a_project_and_helps_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-C", str(tmp_path), "init"]) == 0
    capsys.readouterr()
    assert main(["-C", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "ashep is not running",
        "no issues are known",
        "type: ashep work",
        "look: ashep ui · everything else: ashep --help",
    ]
    (tmp_path / "other").mkdir()
    main(["-C", str(tmp_path / "other")])
    assert "Usage: ashep" in "".join(capsys.readouterr())


@pytest.mark.may_block
@pytest.mark.parametrize("words", ["status", "status --json", "install", "install --json", "demo --simulated"])
def test_at_a_terminal_the_last_line_says_where_more_is_shown(words: str, tmp_path: Path) -> None:
    assert main(["-C", str(tmp_path), "init"]) == 0
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    terminal = Terminal([sys.executable, "-m", "ashep", *words.split()], tmp_path, environ)
    terminal.ends()
    looks = {"demo --simulated": "look: ashep demo --ui"}
    last = "}" if words.endswith("--json") else looks.get(words, "look: ashep ui")
    assert terminal.text.splitlines()[-1] == last
