"""`ashep policy import`, `export` and `state`, and what `ashep init` writes beside the policies."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ashep.cli import main
from ashep.config import load, write_starter
from ashep.extras.interchange.transition_table import CODING, PRESET, STATE_SCHEMA, TRANSITIONS, files_of_preset
from tests.recorded import life

IMPORTS = Path(__file__).parent / "imports"


class Said:
    """How a command ended, and what it printed."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def ashep(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Run a command in this process, in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Said:
        code = main(list(arguments))
        out, err = capsys.readouterr()
        return Said(code, out, err)

    return run


@pytest.mark.slow
def test_init_writes_the_table_and_the_schema_of_its_states(ashep: Any, tmp_path: Path) -> None:
    done = ashep("init", "--preset", PRESET)
    assert done.code == 0
    for name, text in files_of_preset(PRESET).items():
        assert (tmp_path / name).read_text() == text
        assert f"wrote {tmp_path / name}" in done.out
    assert ashep("-C", ".", "policy", "export").out == CODING.as_json()
    shown = ashep("policy", "export", "--format", "state-schema", PRESET).out
    assert shown == (tmp_path / STATE_SCHEMA).read_text()


@pytest.mark.slow
def test_init_overwrites_no_table_of_somebody_else_and_then_writes_nothing(ashep: Any, tmp_path: Path) -> None:
    (tmp_path / TRANSITIONS).parent.mkdir(parents=True)
    (tmp_path / TRANSITIONS).write_text("{}")
    refused = ashep("init", "--preset", PRESET)
    assert refused.code == 2
    assert (
        refused.err
        == f"ashep: {tmp_path / TRANSITIONS}: is there already; nothing was written (--force overwrites it)\n"
    )
    assert not (tmp_path / ".agent-shepherd").exists()
    assert ashep("init", "--preset", PRESET, "--force").code == 0
    assert (tmp_path / TRANSITIONS).read_text() == CODING.as_json()
    other = tmp_path / "other"
    other.mkdir()
    assert ashep("-C", "other", "init").code == 0
    assert not (other / ".opencode").exists()


def test_a_table_is_imported_into_a_folder_that_loads(ashep: Any, tmp_path: Path) -> None:
    (tmp_path / "My table!.json").write_text(json.dumps(json.loads(CODING.as_json())["transitions"]))
    write_starter(tmp_path / "draft")
    taken = ashep("policy", "import", "My table!.json", "--output", "draft")
    assert (taken.code, taken.out) == (2, "")
    assert "policies.yaml: is there already; nothing was written" in taken.err
    done = ashep("policy", "import", "My table!.json", "--output", "draft", "--force")
    assert (done.code, done.out) == (0, f"wrote {Path('draft/policies.yaml')}\n")
    assert done.err.splitlines()[0].startswith("ashep: changed: line 1: BLOCKED: no row says what follows it")
    assert list(load(tmp_path / "draft").policies.policies) == ["My-table"]
    printed = ashep("policy", "import", "My table!.json", "--name", "coding")
    assert printed.out == (tmp_path / "draft" / "policies.yaml").read_text().replace("My-table", "coding")
    told = json.loads(ashep("policy", "import", "My table!.json", "--json").out)
    assert told["files"] == {"policies.yaml": (tmp_path / "draft" / "policies.yaml").read_text()}
    assert [(note["key"], note["file"]) for note in told["notes"]] == [("BLOCKED", None)]


def test_notes_about_several_files_say_which_one_they_mean(ashep: Any) -> None:
    told = json.loads(ashep("policy", "import", str(IMPORTS / "webboty"), "--json").out)
    assert {note["file"] for note in told["notes"]} == {"policies.yaml", "agents.yaml", "config.yaml"}
    assert {*told["notes"][0]} == {"kind", "key", "line", "why", "file"}


@pytest.mark.parametrize(("arguments", "said"), [
    (("import", "gone.json"), "gone.json: there is no such file"),
    (("import", "x.txt"), "x.txt: its form is not known; expected"),
    (("import", "bad.json"), "bad.json:1: not valid JSON: Expecting value, column 1"),
    (("import", "bin.json"), "bin.json:1: not UTF-8 text (byte 0xff); save the file as UTF-8"),
    (("import", "t.json", "--name", "no name"), "--name no name: expected a letter, then letters, digits, _ or -"),
    (("import", "t.yaml", "--name", "x"), "--name goes with a transition table or a workflow; other files say how"),
    (("import", "t.yaml"), "t.yaml:1: neither policies, agents nor a configuration of webboty/agent-shepherd"),
    (("import", "t.md"), "t.md:1: the front matter has no end: a line with --- alone"),
    (("import", "."), "there is none of policies.yaml, agents.yaml, config.yaml in it"),
    (("export", "nope"), "there is no policy nope; there are standard, quick"),
    (("export", "--format", "xml"), "--format xml: it is one of transitions, state-schema"),
])  # fmt: skip
def test_a_mistake_is_one_line_and_writes_nothing(
    arguments: tuple[str, ...], said: str, ashep: Any, tmp_path: Path
) -> None:
    write_starter(tmp_path / ".agent-shepherd")
    (tmp_path / "x.txt").write_text("x")
    (tmp_path / "bad.json").write_text("nothing")
    (tmp_path / "bin.json").write_bytes(b"\xff\xfe")
    (tmp_path / "t.json").write_text(CODING.as_json())
    (tmp_path / "t.yaml").write_text("one: 1")
    (tmp_path / "t.md").write_text("---")
    before = sorted(tmp_path.rglob("*"))
    done = ashep("policy", *arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.removeprefix("ashep: ").removeprefix(".: ").startswith(said)
    assert done.err.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", ["webboty", "WORKFLOW.md"])
def test_files_of_others_are_imported_into_a_folder(name: str, ashep: Any, tmp_path: Path) -> None:
    done = ashep("policy", "import", str(IMPORTS / name), "--output", "draft")
    assert done.code == 0
    written = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}
    assert {line.removeprefix("wrote ") for line in done.out.splitlines()} == written
    assert "draft/policies.yaml" in written
    assert all(line.startswith(("ashep: changed: ", "ashep: not carried over: ")) for line in done.err.splitlines())
    printed = ashep("policy", "import", str(IMPORTS / name)).out
    assert all(f"# --- {file.removeprefix('draft/')} ---\n" in printed for file in written)


def test_bounds_are_named_where_a_table_is_written(ashep: Any, tmp_path: Path) -> None:
    write_starter(tmp_path / ".agent-shepherd")
    done = ashep("policy", "export", "standard")
    assert json.loads(done.out)["transitions"][0]["route_to"] == "implement"
    assert "ashep: a table cannot say: at most 12 runs and 6h in a cycle, then it is parked\n" in done.err


@pytest.mark.slow
def test_the_state_of_an_issue_is_printed_and_valid(ashep: Any, tmp_path: Path) -> None:
    write_starter(tmp_path / ".agent-shepherd")
    life(tmp_path / ".agent-shepherd" / "state", issues=2, until="person")
    done = ashep("policy", "state", "t-1")
    assert (done.code, done.err) == (0, "")
    state = json.loads(done.out)
    jsonschema.validate(state, json.loads(ashep("policy", "export", "--format", "state-schema").out))
    assert state["state"] == "HUMAN_REVIEW"
    assert state["route_to"] == "human"
    code = "import sys; from ashep.cli import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    argv = [sys.executable, "-c", code, "policy", "state", "t-1"]
    modules = subprocess.run(argv, capture_output=True, check=True, timeout=240).stderr.decode().split()
    heavy = ("sqlmodel", "sqlalchemy", "httpx", "anyio", "yaml", "ashep.core.policy.settings", "ashep.adapters")
    assert [name for name in heavy if name in modules] == []
    unknown = ashep("policy", "state", "t-9")
    assert (unknown.code, unknown.err) == (1, "ashep: nothing is known of an issue t-9\n")
