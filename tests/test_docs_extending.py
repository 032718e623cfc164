"""docs/extending.md is a script: its blocks are files of a project and commands in it, one after the other."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.test_docs import DOCS, fences

PAGE = DOCS / "extending.md"
FILE, PART = 'title="', 'title="part of: '


class Block(NamedTuple):
    """A file to write, commands to carry out, or a part of what a command printed."""

    kind: str
    of: str
    """The file's path, or the command."""
    text: str


def blocks() -> Iterator[Block]:
    for words, text in fences(PAGE.read_text()):
        language, _, rest = words.partition(" ")
        if language == "console":
            yield Block("commands", "", text)
        elif rest.startswith(PART):
            yield Block("printed", rest.removeprefix(PART).removesuffix('"'), text)
        else:
            assert rest.startswith(FILE), f"what is to become of this block?\n{words}\n{text}"
            yield Block("file", rest.removeprefix(FILE).removesuffix('"'), text)


def test_each_block_is_a_file_a_command_or_what_one_prints() -> None:
    found = list(blocks())
    assert {block.kind for block in found} == {"file", "commands", "printed"}
    assert all(line.startswith("$ ") for block in found if block.kind == "commands" for line in block.text.splitlines())


@pytest.mark.slow
def test_the_page_can_be_followed_word_by_word(tmp_path: Path) -> None:
    environ = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    printed = dict[str, str]()
    for block in blocks():
        if block.kind == "file":
            (tmp_path / block.of).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / block.of).write_text(block.text)
        elif block.kind == "printed":
            said = printed[block.of].splitlines()
            assert [line for line in block.text.splitlines() if line not in said] == []
        else:
            for line in block.text.splitlines():
                printed[line.removeprefix("$ ")] = carried_out(line.removeprefix("$ "), tmp_path, environ)
    for suite in ("json_tracker", "command_runner"):
        assert " passed" in (tests := printed[f"python -m pytest -q test_{suite}.py"])
        assert " failed" not in tests
    issue = json.loads((tmp_path / "issues.json").read_text())["t-1"]
    assert issue["status"] == "closed"
    put_on = [event["label"] for event in issue["events"]]
    assert put_on == ["stage/implement", "stage/look_at_it", "please look", "stage/human_review", "ok to merge"]
    records = (tmp_path / ".agent-shepherd" / "state" / "journal").glob("*.jsonl")
    journal = b"".join(file.read_bytes() for file in records)
    for word in (b"command_runner:CommandRunner", b"agent.py", b"json_tracker:JsonTracker"):
        assert word in journal, "classes and options are adopted with the settings"


def carried_out(line: str, project: Path, environ: dict[str, str]) -> str:
    done = subprocess.run(shlex.split(line), cwd=project, env=environ, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, (line, done.stdout, done.stderr)
    return done.stdout
