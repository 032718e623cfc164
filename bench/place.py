"""Where it is measured: a home of its own, projects with a bd database, a scripted model, an OpenCode server.

The model is a process of its own, which is not counted: on a user's machine it runs elsewhere.
"""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ashep.adapters.system import programs
from ashep.config import write_starter
from ashep.extras.demo.scripted_model import opencode_config
from bench.bare import PASSWORD
from bench.processes import end, spent_by_tree
from tests.places import free_port

ROOT = Path(__file__).resolve().parents[1]
ASHEP = Path(sys.executable).with_name("ashep")
PREFIX = "t"
RESTING = 0.05
"""CPU seconds in one second at which a server counts as at rest."""

THREE = """
version: 1
default_policy: three
policies:
  three:
    match: {types: [task, bug, feature, chore]}
    phases:
      - {name: implement, capabilities: [implement], access: write}
      - {name: review, capabilities: [review], access: read, verdicts: [approve, needs_changes],
         next: {approve: arbitrate, needs_changes: implement}}
      - {name: arbitrate, capabilities: [arbitrate], access: read, verdicts: [pass, needs_work],
         next: {pass: close, needs_work: implement}}
"""
PEOPLE = """
version: 1
default_policy: asked
policies:
  asked:
    match: {types: [task, bug, feature, chore]}
    phases:
      - {name: asked, human: {ask: "Shall it be done?", approved: close, changes_requested: close}}
"""

SHARED = "max_concurrent_runs: 3, workspace: shared, lock_work_tree: false"
"""Settings of the worker: all runs in one work tree, side by side."""

WRAPPER = """#!/bin/sh
# Notes the subcommand and the CPU time of a call of bd.
"{bd}" "$@"
code=$?
case "$1" in --actor=*) shift ;; esac
{{ echo "$1"; times; }} >> "{log}/$$"
exit $code
"""


def say(text: str) -> None:
    """Tell a person who waits how far it is."""
    print(f"  {text}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Tools:
    """A private home, and programs with their whole paths."""

    folder: Path
    bd: Path
    opencode: Path

    @property
    def env(self) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("XDG_", "OPENCODE", "ASHEP", "BD_", "BEADS_", "GIT_", "PYTHON"))
        }
        # without bytecode, as in a container that forbids to write it, a start would be measured that nobody has
        kept["PYTHONPYCACHEPREFIX"] = str(self.folder / "bytecode")
        private = {"HOME": str(self.folder / "home"), "XDG_CACHE_HOME": str(self.folder / "cache")}
        git = {f"GIT_{who}_{what}": "pat@x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        quiet = {"BD_DISABLE_METRICS": "1", "BD_NON_INTERACTIVE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
        more = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_SERVER_PASSWORD": PASSWORD}
        return kept | private | git | quiet | more

    def run(self, *argv: str | Path, cwd: Path, actor: str = "pat", stdin: str = "") -> str:
        """Run a program as a person would."""
        env = self.env | {"BEADS_ACTOR": actor}
        done = subprocess.run([*argv], cwd=cwd, env=env, input=stdin.encode(), capture_output=True, timeout=120)
        if done.returncode:
            raise RuntimeError(f"{argv} ended with {done.returncode}: {done.stdout!r} {done.stderr!r}")
        return done.stdout.decode()


@contextmanager
def tools() -> Iterator[Tools]:
    """Find the programs, and make the home."""
    found = {name: programs.find(name) for name in ("bd", "opencode")}
    bd, opencode = found["bd"], found["opencode"]
    if bd is None or opencode is None:
        raise RuntimeError("bd or opencode is missing: `make setup`")
    folder = Path(tempfile.mkdtemp(prefix="ashep-bench-"))
    try:
        for name in ("home", "cache"):
            (folder / name).mkdir()
        made = Tools(folder, bd.absolute(), opencode.absolute())
        compiled = "ashep.app, ashep.cli.commands, ashep.extras.demo.scripted_model, ashep.store.writer"
        made.run(sys.executable, "-c", f"import {compiled}; ashep.cli.commands.whole()", cwd=folder)
        yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Project:
    """A git repository with a bd database and ashep's files."""

    tools: Tools
    folder: Path

    @property
    def state(self) -> Path:
        return self.folder / ".agent-shepherd" / "state"

    @property
    def bd(self) -> Path:
        """The bd that is counted."""
        return self.folder.parent / f"{self.folder.name}-bd"

    @property
    def _log(self) -> Path:
        """A folder with a file for each process: two that wrote to one file would mix their lines."""
        return self.folder.parent / f"{self.folder.name}-bd.log"

    def calls(self) -> "Calls":
        """What bd was called for, and what that cost, since the project was made."""
        count: Counter[str] = Counter()
        cpu: defaultdict[str, float] = defaultdict(float)
        for file in self._log.iterdir():
            lines = file.read_text().splitlines()
            for name, children in zip(lines[::3], lines[2::3], strict=True):
                count[name] += 1
                cpu[name] += sum(map(_seconds, children.split()))
        return Calls(count, cpu)

    def copy(self, name: str) -> "Project":
        """Another project like this one, with its own count."""
        other = Project(self.tools, self.tools.folder / name)
        shutil.copytree(self.folder, other.folder, symlinks=True)
        other.bd.write_text(WRAPPER.format(bd=self.tools.bd, log=other._log))
        other.bd.chmod(0o755)
        other._log.mkdir()
        return other

    def configure(self, policies: str, server: "Server | None", *, worker: str = SHARED) -> None:
        """Write ashep's files; without a server nothing listens at its url."""
        folder = self.folder / ".agent-shepherd"
        write_starter(folder, force=True)
        url = server.url if server else "http://127.0.0.1:9"
        (folder / "policies.yaml").write_text(policies)
        (folder / "config.yaml").write_text(
            f"version: 1\ntracker: {{command: [{self.bd}]}}\n"
            f"worker: {{{worker}, hold_when_busy: false}}\n"
            f'runners: {{opencode: {{url: "{url}"}}}}\n'
        )

    def journal(self) -> Iterator[dict[str, object]]:
        """The journal's records."""
        for file in sorted((self.state / "journal").glob("*.jsonl")):
            for line in file.read_bytes().split(b"\n"):
                with suppress(ValueError):
                    yield json.loads(line.rpartition(b"\t")[0])

    def work(self, *flags: str, profile: Path | None = None) -> "subprocess.Popen[bytes]":
        """Start the daemon."""
        program = [sys.executable, "-m", "cProfile", "-o", str(profile), "-m", "ashep"] if profile else [str(ASHEP)]
        words = ("work", "--all", *flags)
        with (self.folder.parent / f"{self.folder.name}.out").open("ab") as out:
            return subprocess.Popen(
                [*program, *words], cwd=self.folder, env=self.tools.env, stdin=subprocess.DEVNULL, stdout=out,
                stderr=out, start_new_session=True,
            )  # fmt: skip

    def said(self) -> str:
        """The end of what the daemon said."""
        return (self.folder.parent / f"{self.folder.name}.out").read_text()[-2000:]


@dataclass(frozen=True)
class Calls:
    """Calls of bd by subcommand, and their CPU seconds."""

    count: Counter[str]
    cpu: dict[str, float]

    @classmethod
    def of(cls, count: Mapping[str, int]) -> "Calls":
        """Calls that took no time."""
        return cls(Counter(count), dict.fromkeys(count, 0.0))

    def __str__(self) -> str:
        return ", ".join(f"{number} {name}" for name, number in self.count.most_common())


def _seconds(text: str) -> float:
    """Read what a shell's `times` says: `0m0.120000s`."""
    minutes, _, seconds = text.rstrip("s").partition("m")
    return int(minutes) * 60 + float(seconds)


def template(tools: Tools, issues: int, *, status: str = "open", others: int = 0) -> Project:
    """A project with so many issues, by default ready ones, and so many others that are blocked."""
    project = Project(tools, tools.folder / f"template-{status}-{issues}-{others}")
    if project.folder.exists():
        return project
    project.folder.mkdir()
    tools.run("git", "init", "-q", ".", cwd=project.folder)
    (project.folder / "README.md").write_text("A project.\n")
    tools.run("git", "add", ".", cwd=project.folder)
    tools.run("git", "commit", "-qm", "begin", cwd=project.folder)
    init = ("init", f"--prefix={PREFIX}", "--quiet", "--non-interactive", "--stealth", "--skip-hooks", "--skip-agents")
    tools.run(tools.bd, *init, cwd=project.folder)
    if issues:
        rows = [
            {
                "id": f"{PREFIX}-{number:03}",
                "title": f"Make part {number} of the program",
                "description": f"Part {number} is to read its input and to say what is wrong with it.\n" * 8,
                "status": status if number <= issues else "blocked",
                "issue_type": "task",
                "priority": 2,
            }
            for number in range(1, issues + others + 1)
        ]
        file = tools.folder / "issues.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        tools.run(tools.bd, "import", file, "--json", cwd=project.folder)
    return project


# --- servers ----------------------------------------------------------------------------------------------------------


@contextmanager
def model(tools: Tools, *module: str) -> Iterator[str]:
    """The scripted model, which answers at once, or that of a module; gives its url."""
    process = subprocess.Popen(
        [sys.executable, "-m", *(module or ("ashep.extras.demo.scripted_model", "--script", "outcome"))],
         cwd=ROOT, env=tools.env,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        yield str(json.loads(process.stdout.readline())["url"])
    finally:
        end(process)


@dataclass(frozen=True)
class Server:
    """An OpenCode server."""

    url: str
    pid: int

    def cpu(self) -> float:
        """CPU seconds of the server and what it started."""
        return spent_by_tree(self.pid)

    def call(self, method: str, path: str, directory: Path, body: Mapping[str, object] | None = None) -> bytes:
        """Make a call about a folder."""
        return call(self.url, method, path, directory, body)


def call(url: str, method: str, path: str, directory: Path, body: Mapping[str, object] | None = None) -> bytes:
    """Make a call of the OpenCode server about a folder."""
    query = urllib.parse.urlencode({"directory": str(directory)})
    request = urllib.request.Request(f"{url}{path}?{query}", method=method)
    request.add_header("Authorization", "Basic " + base64.b64encode(f"opencode:{PASSWORD}".encode()).decode())
    request.add_header("Content-Type", "application/json")
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(request, data, timeout=120) as answer:
        return answer.read()


@contextmanager
def server(tools: Tools, model_url: str, name: str, warm: Path | None = None) -> Iterator[Server]:
    """A server with data of its own; `warm`: one prompt has been answered in this folder before it is measured, and the
    server has come to rest: what it does after its start, some 3 s of CPU, is nobody's.
    """
    folder = tools.folder / name
    config = folder / "config" / "opencode"
    config.mkdir(parents=True)
    (config / "opencode.json").write_text(json.dumps(opencode_config(model_url)))
    port = free_port()
    homes = {f"XDG_{what.upper()}_HOME": str(folder / what) for what in ("config", "data", "state")}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [tools.opencode, "serve", "--port", str(port), "--hostname", "127.0.0.1"], cwd=tools.folder,
            env=tools.env | homes, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        found = Server(f"http://127.0.0.1:{port}", process.pid)
        _answers(port)
        if warm is not None:
            session = json.loads(found.call("POST", "/session", warm, {"title": "warm"}))["id"]
            found.call("POST", f"/session/{session}/message", warm, {"parts": [{"type": "text", "text": "Begin."}]})
            _rests(found)
        yield found
    finally:
        end(process)


def _rests(server: Server, patience: float = 60.0) -> None:
    """Wait until a server has used hardly any CPU for a second."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        before = server.cpu()
        time.sleep(1)
        if server.cpu() - before < RESTING:
            return


def _answers(port: int, patience: float = 60.0) -> None:
    """Wait until a server answers; the first connection to one that starts may never be (facts/opencode.md 18)."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        with suppress(OSError):
            request = urllib.request.Request(f"http://127.0.0.1:{port}/global/health")
            request.add_header("Authorization", "Basic " + base64.b64encode(f"opencode:{PASSWORD}".encode()).decode())
            with urllib.request.urlopen(request, timeout=1):
                return
        time.sleep(0.1)
    raise RuntimeError("the OpenCode server does not answer")
