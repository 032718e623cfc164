"""Projects in which the documentation's pages are followed: an empty one, one with an issue, one that was worked on."""

import json
import re
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from anyio.from_thread import start_blocking_portal

from ashep.adapters.system import programs
from ashep.extras.demo.scripted_model import (
    Call,
    ModelRequest,
    ModelServer,
    Reply,
    opencode_config,
    outcome_text,
    settle,
    verdict_asked,
)
from tests.conformance.trackers import Beads
from tests.docs_pages import File, Terminal, environment, steps
from tests.places import checked, has_bubblewrap, sweep

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
FOLDER = ".agent-shepherd"
BIN = Path(sys.executable).parent

GREET = """checks:
  - id: greeting
    type: code_pattern
    description: the program greets
    verify: {glob: "*.sh", pattern: Hello}
  - id: runs
    type: test_pass
    description: it ends well
    verify: {command: [sh, greet.sh], timeout: 10s}
"""

AGENT = """
import json, os, pathlib, re, sys
asked = sys.stdin.read()
report = {"result": "success", "summary": "it greets by name"}
if re.search("^Phase: implement", asked, re.M):
    file = "greet.sh" if "\\nIssue: t-1" in asked else "README.md"
    pathlib.Path(file).write_text('echo "Hello, $1"\\n')
elif re.search("^Phase: review", asked, re.M):
    report |= {"verdict": "approve", "summary": "nothing is wrong with it"}
else:
    report |= {"verdict": "pass", "summary": "it does what the issue asks"}
print("```json\\n" + json.dumps(report) + "\\n```")
"""


@contextmanager
def empty(folder: Path) -> Iterator[Terminal]:
    """A folder with nothing in it."""
    (folder / "project").mkdir(parents=True)
    environ = environment(folder / "home", BIN)
    yield Terminal(folder / "project", environ, {"/tmp/ashep-demo": f"{environ['TMPDIR']}/ashep-demo"})


@contextmanager
def begun(folder: Path) -> Iterator[Terminal]:
    """A folder with the starter files, and no repository."""
    with empty(folder) as terminal:
        did(terminal, "ashep init")
        yield terminal


def with_issue(folder: Path) -> Terminal:
    """A repository with the starter files, and a database of bd with the issue t-1, which asks for a greeting."""
    beads = Beads.make(folder.parent / "beads")
    terminal = Terminal(beads.copy(folder / "shop"), environment(folder / "home", BIN, beads.program.parent))
    put(terminal, "README.md", "A shop.\n")
    did(terminal, "git checkout -q -b main && ashep init")
    with (terminal.folder / FOLDER / "config.yaml").open("a") as config:
        config.write(checked())
    did(terminal, "git add . && git commit -qm 'A shop'")
    did(terminal, "git config --global user.name Ann && git config --global user.email ann@example.org")
    did(terminal, "bd create --id t-1 -t task 'Greet by name' -d 'greet.sh says hello to whom it is told.' --silent")
    return terminal


@contextmanager
def planned(folder: Path) -> Iterator[Terminal]:
    """Where a plan becomes issues."""
    yield with_issue(folder)


@contextmanager
def greeted(folder: Path) -> Iterator[Terminal]:
    """The branch of t-1 holds a documented command and a test."""
    terminal = with_issue(folder)
    if not has_bubblewrap():
        terminal.machine = ("ashep: the checks ran without a sandbox: see `ashep install`",)
    did(terminal, "git checkout -q -b ashep/t-1 && mkdir tests")
    put(terminal, "README.md", "A shop.\n\n    tool greet --name Ann\n")
    put(terminal, "tests/test_greet.py", "def test_it_greets() -> None:\n    assert 'Hello'\n")
    did(terminal, "git add . && git commit -qm 'Greet by name' && git checkout -q main")
    yield terminal


@contextmanager
def touched(folder: Path) -> Iterator[Terminal]:
    """The branch of t-1 touches continuous integration, moves a file, and brings a token along, which is none."""
    terminal = with_issue(folder)
    put(terminal, "kept.txt", "what it says stays\n")
    did(
        terminal, "git add . && git commit -qm before && git checkout -q -b ashep/t-1 && mkdir -p src .github/workflows"
    )
    put(terminal, ".github/workflows/ci.yml", "on: push\n")
    put(terminal, "src/a.py", f'print("a")\nTOKEN = "ghp_{"Zq8Xw2Lr5T" * 3}Kd93Vb"\n')
    did(terminal, "git mv kept.txt moved.txt && git add . && git commit -qm 'Greet by name' && git checkout -q main")
    yield terminal


@contextmanager
def worked_on(folder: Path) -> Iterator[Terminal]:
    """After a night: t-1 has landed, and its tree held a draft when it was removed; t-2 waits for a person.

    Beside it lie set-ups of others: a folder of webboty/agent-shepherd, and a workflow of Symphony.
    """
    terminal = with_issue(folder)
    own = {file.name: file.text for file in steps((DOCS / "extending.md").read_text()) if isinstance(file, File)}
    library = folder / "library"
    library.mkdir()
    (library / "command_runner.py").write_text(own["command_runner.py"])
    (library / "agent.py").write_text(AGENT)
    terminal.environ = {**terminal.environ, "PYTHONPATH": str(library)}
    command = [sys.executable, str(library / "agent.py")]
    runner = {"type": "command_runner:CommandRunner", "options": {"command": command}}
    config: dict[str, object] = {"version": 1, "tracker": {"poll_every": "1s"}, "runners": {"program": runner}}
    if checked():
        config["verification"] = {"sandbox": "none"}
    put(terminal, f"{FOLDER}/config.yaml", json.dumps(config))
    agents = (terminal.folder / FOLDER / "agents.yaml").read_text()
    agents = re.sub(r"runner:(?: \{.*|\n(?:      .*\n)+)", "runner: {type: program}\n", agents)
    put(terminal, f"{FOLDER}/agents.yaml", agents)
    put(terminal, "checks.yaml", GREET)
    did(terminal, "ashep criteria t-1 --set checks.yaml && rm checks.yaml && git commit -qam 'Another runner'")
    did(terminal, "bd create --id t-2 -t task 'Greet in the readme' --silent")
    did(terminal, "ashep work --until-idle")
    did(terminal, "ashep approve t-1 -m 'Thank you' && ashep work --until-idle t-1")
    tree = terminal.folder / FOLDER / "state" / "trees" / "ashep" / "t-1"
    (tree / "src").mkdir()
    (tree / "src" / "new.py").write_text("a draft\n")
    did(terminal, "ashep trees remove t-1")
    imports = ROOT / "tests" / "imports"
    shutil.copytree(imports / "webboty", folder / "other" / FOLDER)
    shutil.copy(imports / "WORKFLOW.md", terminal.folder)
    yield terminal


@contextmanager
def readme(folder: Path) -> Iterator[Terminal]:
    """A repository my-project with a commit, and OpenCode with a scripted model on loopback."""
    opencode, bd = programs.find("opencode"), programs.find("bd")
    assert opencode is not None
    assert bd is not None, "`make setup` gets both"
    environ = environment(folder / "home", BIN, bd.absolute().parent, opencode.absolute().parent)
    (folder / "my-project").mkdir()
    terminal = Terminal(folder, environ)
    did(terminal, "git init -q -b main my-project && cd my-project && git commit -q --allow-empty -m first && cd ..")

    def before(line: str) -> None:
        if line == "ashep work --dry-run":
            issue = json.loads(did(terminal, "bd list --json"))[0]["id"]
            terminal.names["my-project-abc"] = issue
        elif line == "ashep status":
            end = time.monotonic() + 200
            while "waits for a person" not in (told := did(terminal, "ashep status")):
                assert time.monotonic() < end, told
                time.sleep(2)

    terminal.before = before
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(ModelServer(_says_hello)) as model:
        config = Path(environ["XDG_CONFIG_HOME"]) / "opencode"
        settle(config, opencode_config(model.url))
        try:
            yield terminal
            terminal.close()
            terminal.run("ashep stop --server")
        finally:
            sweep(folder)


def _says_hello(ask: ModelRequest) -> Reply:
    """Write a friendly sentence where the phase writes, and report what is hoped for."""
    if "Phase: implement" in ask.prompt and not ask.results:
        return Reply(calls=(Call("write", {"filePath": "README.md", "content": "Hello, and welcome.\n"}),))
    return Reply(outcome_text(verdict_asked(ask.prompt)))


def put(terminal: Terminal, name: str, text: str) -> None:
    """Write a file."""
    (terminal.folder / name).parent.mkdir(parents=True, exist_ok=True)
    (terminal.folder / name).write_text(text)


def did(terminal: Terminal, line: str) -> str:
    """Carry out a line that no page shows."""
    code, said = terminal.run(line)
    assert code == 0, (line, said)
    return said
