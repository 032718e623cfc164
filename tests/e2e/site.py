"""A project with the real tools in it, and everything that tests do to it from outside."""

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from ashep.adapters.runners.opencode.server import folder_of
from ashep.extras.demo.project import DemoProject, run_of
from ashep.extras.demo.scripted_model import ModelRequest, ModelServer, Reply, opencode_config, outcome_text, settle
from chaos.killed.place import serve
from tests import databases
from tests.forks import Forks, shared

POLICIES = """
version: 1
default_policy: quick
policies:
  quick:
    match: {types: [task]}
    limits: {max_depth: 0}
    phases:
      - {name: implement, access: write, timeout: 2m, retry: {max_attempts: 1}, next: {success: close}}
  short:
    match: null
    phases:
      - name: implement
        access: write
        timeout: 15s
        retry: {max_attempts: 2, initial_delay: 0s}
        next: {success: close}
  shared:
    match: null
    takeover: {action: resume, cooldown: 3s}
    phases:
      - {name: implement, access: write, timeout: 5m, retry: {max_attempts: 1}, next: {success: close}}
  stuck:
    match: null
    phases:
      - name: implement
        access: write
        timeout: 5m
        stall: {after: 6s, action: diagnose}
        retry: {max_attempts: 2, initial_delay: 1s}
        next: {success: close}
  asked:
    match: null
    phases:
      - {name: implement, access: write, timeout: 2m, retry: {max_attempts: 1}}
      - {name: sign_off, human: {ask: "Fine?"}}
  proven:
    match: null
    phases:
      - name: implement
        access: write
        timeout: 2m
        retry: {max_attempts: 1}
        verify: {max_attempts: 2}
        checks: [{id: program, description: the program's own test, type: test_pass, verify: {command: [sh, test.sh]}}]
        next: {success: close}
"""

BEHAVES: dict[str, Callable[[ModelRequest], Reply]] = {}
"""What the model does, by issue; a plain success where nothing is said."""


def play(ask: ModelRequest) -> Reply:
    run = run_of(ask.prompt) or ""
    behave = BEHAVES.get(run.partition("/")[0])
    return behave(ask) if behave else Reply(outcome_text())


class Site:
    """One project, used by all tests one after the other, each with an issue of its own."""

    def __init__(self, folder: Path, model: ModelServer) -> None:
        self.model = model
        stage = DemoProject.open_folder(folder)
        self.project, self.bd_program = stage.project, stage.bd
        # an agent's shell finds bd, as a user's would
        self.environ = dict(stage.environ) | {"PATH": f"{stage.bd.parent}:{os.environ['PATH']}"}
        self.folder = self.project / ".agent-shepherd"
        self.state = self.folder / "state"
        config = folder / "home" / "config" / "opencode"
        for made in (folder / "home" / "tmp", self.project):
            made.mkdir(parents=True)
        self.opencode = config / "opencode.json"
        settle(config, opencode_config(model.url) | {"snapshot": False})  # half of its time, as in chaos.killed
        databases.copied("e", self.project)
        (self.project / "a.txt").write_text("a\n")
        for words in (("add", "."), ("commit", "-qm", "first")):
            self.run("git", *words)
        self.run(sys.executable, "-m", "ashep", "init")
        (self.folder / "policies.yaml").write_text(POLICIES)
        self._living: Working | None = None
        self.runners = ""
        """Kinds of agents beside OpenCode, as config.yaml names them."""
        self.environ["OPENCODE_SERVER_PASSWORD"] = secrets.token_hex(8)
        self._server, self.url = serve(self.project, self.environ | {"BEADS_ACTOR": "ashep-agent"})
        self._attached = True
        self.command([str(stage.bd)])
        self.forks = Forks(self.project, self.environ | {"PYTHONPATH": str(Path(__file__).parents[2])})

    @property
    def shared_server(self) -> int:
        """The process of the agent server that all lives share."""
        return self._server.pid

    def command(self, command: list[str]) -> None:
        """Which bd ashep uses from its next start on."""
        self.rest()
        self.bd_command = command
        self.config("")

    def config(self, more: str, poll: str = "15s") -> None:
        """What config.yaml says beside of that, and how often it is to look into the tracker unasked."""
        tracker = f"tracker: {{command: {json.dumps(self.bd_command)}, poll_every: {poll}}}"
        kinds = [f"opencode: {{url: '{self.url}'}}"] if self._attached else []
        kinds += [self.runners] if self.runners else []
        runners = f"runners: {{{', '.join(kinds)}}}" if kinds else ""
        if "sandbox" not in more:  # by default each place would have a server of its own, which takes seconds to begin
            more += "\nagents: {sandbox: none}"
        if "hold_when_busy:" not in more:  # what the machine's load holds is another test's
            more += "" if "worker: {" in more else "\nworker: {}"
            more = more.replace("worker: {", "worker: {hold_when_busy: false, ", 1)
        text = f"version: 1\n{tracker}\nmonitor: {{check_every: 500ms}}\n{runners}\n{more}\n"
        (self.folder / "config.yaml").write_text(text)

    @contextmanager
    def managing(self) -> Iterator[None]:
        """Each life has a server of its own, as a user's has; else they share one of nobody's, and begin sooner."""
        self._attached = False
        self.command(self.bd_command)
        try:
            yield
        finally:
            self._attached = True
            self.command(self.bd_command)

    @contextmanager
    def altered(self, files: Mapping[Path, str]) -> Iterator[None]:
        """These files stand in the place of those that are there, and variables may change: in the end all is back."""
        before = {file: file.read_text() if file.exists() else None for file in files}
        environ = dict(self.environ)
        try:
            for file, text in files.items():
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            yield
        finally:
            self.rest()
            self.environ.clear()
            self.environ |= environ
            for file, text in before.items():
                file.unlink() if text is None else file.write_text(text)

    # --- programs ---

    def run(self, *argv: str | Path, check: bool = True) -> str:
        done = subprocess.run(
            argv, cwd=self.project, env=self.environ, capture_output=True, text=True, timeout=scale(90)
        )
        assert done.returncode == 0 or not check, (argv, done.stdout, done.stderr)
        return done.stdout

    def bd(self, *words: str, actor: str = "pat") -> str:
        return self.run(self.bd_program, f"--actor={actor}", *words)

    def ashep(self, *words: str) -> str:
        code, output, errors = shared().run(words, self.environ, self.project)
        print(f"{words} ended with {code}: {errors}")  # pytest shows it where a test fails
        return output

    def living(self) -> "Working":
        """A daemon that works on whatever is ready, and goes on from test to test until one needs another."""
        if self._living is None or self._living.process.poll() is not None:
            self._living = Working(self, ())
        return self._living

    def rest(self) -> None:
        """End it."""
        if self._living is not None:
            self._living.end()
            self._living = None

    @contextmanager
    def working(self, *words: str) -> Iterator["Working"]:
        """A daemon, a fork of a process that has imported all of it; in the end it is stopped, if it has not ended."""
        self.rest()
        working = Working(self, words)
        try:
            yield working
        finally:
            working.end()

    def work_until_idle(self, issue: str, bound: float = 90) -> int:
        with self.working(issue, "--until-idle", "--idle-grace", "20s") as working:
            return working.wait(bound)

    # --- issues ---

    def add(
        self,
        title: str,
        *labels: str,
        behaves: Callable[[ModelRequest], Reply] | None = None,
        priority: int = 2,
        acceptance: str = "",
    ) -> str:
        flags = [f"--priority={priority}", *([f"--labels={','.join(labels)}"] if labels else [])]
        flags += [f"--acceptance={acceptance}"] if acceptance else []
        issue = self.bd("create", f"--title={title}", "--type=task", *flags, "--silent").strip()
        if behaves is not None:
            BEHAVES[issue] = behaves
        return issue

    def issue(self, issue: str) -> dict[str, Any]:
        return json.loads(self.bd("show", issue, "--json", "--include-comments"))[0]

    def tree(self, issue: str) -> Path:
        """The issue's own work tree."""
        return Path(self.ashep("trees", "open", issue).strip())

    def label(self, issue: str, label: str, actor: str = "pat") -> None:
        self.bd("label", "add", issue, label, "--json", actor=actor)

    # --- what happened ---

    def prompts(self, run: str) -> int:
        """How many turns of the model began with this run's prompt."""
        return sum(ask.kind == "turn" and not ask.repeated and run_of(ask.prompt) == run for ask in self.model.asks)

    def requests(self, run: str) -> int:
        """How often the model was asked because of this run: a turn that begins again may not look like a new one."""
        return sum(run_of(ask.prompt) == run for ask in self.model.asks)

    def runs(self, issue: str) -> list[dict[str, Any]]:
        """The lines of runs.jsonl, once all runs that ended are in it."""
        log = self.folder / "runs.jsonl"
        ended = sum(one["type"] == "RunEnded" for one in self.journal(issue))

        def drawn() -> tuple[list[dict[str, Any]]] | None:
            lines = [json.loads(line) for line in log.read_text().split("\n") if line]
            own = [run for run in lines if run["issue"] == issue]
            return (own,) if len(own) >= ended else None

        (own,) = until(drawn, 20)
        return own

    def journal(self, issue: str) -> list[dict[str, Any]]:
        """The journal's records about an issue."""
        return [record for record in self.journal_all() if record.get("issue") == issue]

    def journal_all(self) -> list[dict[str, Any]]:
        """All records of the journal: a daemon may be in the midst of its last line."""
        texts = [path.read_text() for path in sorted((self.state / "journal").glob("*.jsonl"))]
        lines = [line for text in texts for line in text.rpartition("\n")[0].split("\n")]
        return [json.loads(line.rpartition("\t")[0]) for line in lines if line]

    def server_pid(self) -> int:
        return int(self.server()["pid"])

    def server(self) -> dict[str, Any]:
        """The record of the managed server."""
        return json.loads((folder_of(self.state, self.environ) / "server.json").read_text())

    def person_in(self, session: str, what: str, **body: object) -> None:
        """What OpenCode's own screen asks of the server when a person writes in a session, or stops its turn."""
        url, password = self.url, self.environ["OPENCODE_SERVER_PASSWORD"]
        if not self._attached:
            record = self.server()
            url, password = f"http://127.0.0.1:{record['port']}", record["password"]
        auth = ("opencode", password)
        httpx.post(f"{url}/session/{session}/{what}", json=body, auth=auth, timeout=scale(30)).raise_for_status()

    def servers(self) -> list[int]:
        """Every OpenCode server of this project's home that lives, but for the one that is nobody's."""
        home = f"HOME={self.environ['HOME']}\0".encode()
        found = list[int]()
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                words = (process / "cmdline").read_bytes().split(b"\0")
                if b"serve" in words and home in (process / "environ").read_bytes():
                    found.append(int(process.name))
        return [pid for pid in found if pid != self._server.pid]

    def check(self) -> None:
        """What ashep says of itself is true: nothing is decided otherwise, and nothing is left over."""
        told = {word: self.ashep(word, "--json") for word in ("replay", "audit")}
        assert json.loads(told["replay"])["differences"] == [], told["replay"][:2000]
        assert json.loads(told["replay"])["decisions"] > 0
        audit = json.loads(told["audit"])
        assert audit["findings"] == [], told["audit"]
        assert audit["not_asked"]["tracker"] == ""

    def close(self) -> None:
        self.rest()
        try:
            self.check()
        finally:  # else the next test of this process is blamed for what lives on
            self.ashep("stop", "--server")
            os.killpg(self._server.pid, signal.SIGTERM)
            self._server.wait()
            self.forks.close()
        assert not self.servers()


class Working:
    """An `ashep work` process, and its lines with the moments at which they came."""

    def __init__(self, site: Site, words: tuple[str, ...]) -> None:
        self.lines: list[tuple[float, str]] = []
        output = site.project.with_name("said")
        output.unlink(missing_ok=True)  # a daemon of before may write still
        output.touch()
        environ = site.environ | {"PYTHONUNBUFFERED": "1"}
        self.process = site.forks.start("ashep", ("work", *words), environ, output)
        self._ended = threading.Event()
        self._reader = threading.Thread(target=self._read, args=(output,), daemon=True)
        self._reader.start()

    def _read(self, output: Path) -> None:
        rest = b""
        with output.open("rb") as said:
            while True:
                ended = self._ended.is_set()
                if more := said.read():
                    *lines, rest = (rest + more).split(b"\n")
                    self.lines += [(time.monotonic(), line.decode(errors="replace")) for line in lines]
                elif ended:
                    break
                else:
                    self._ended.wait(0.02)

    @property
    def text(self) -> str:
        return "\n".join(line for _, line in self.lines)

    def says(self, words: str, bound: float = 60) -> float:
        """When it said this; fails after the bound."""
        return until(lambda: next((at for at, line in self.lines if words in line), None), bound, lambda: self.text)

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    def wait(self, bound: float) -> int:
        try:
            code = self.process.wait(bound)
        except AssertionError:
            raise AssertionError(f"it had not ended after {bound} s:\n{self.text}") from None
        self._ended.set()
        self._reader.join(5)
        return code

    def end(self) -> None:
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
            with suppress(AssertionError):  # it is killed then
                self.process.wait(scale(15))
        self._ended.set()
        self._reader.join(5)


def scale(bound: float) -> float:
    """Return the seconds for a busy machine: as many times more as more wants to run than can."""
    return bound * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def until(found: Callable[[], Any], bound: float, state: Callable[[], object] = lambda: "") -> Any:
    """Wait until something is there; a look that starts programs is taken a third of the time at most.

    `bound`: seconds on an idle machine.
    """
    bound = scale(bound)
    end, looked = time.monotonic() + bound, False
    while time.monotonic() < end or not looked:
        began = time.monotonic()
        if value := found():
            return value
        looked = True
        time.sleep(max(0.02, 2 * (time.monotonic() - began)))
    raise AssertionError(f"not seen within {bound} s\n{state()}")
