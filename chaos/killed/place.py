"""A project in which one life after the other is lived, each from the same beginning, and what must hold in the end."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from ashep.actions.replay import replay
from ashep.adapters.runners.opencode.server import folder_of
from ashep.adapters.system import process_table, programs
from ashep.core.analysis.replay import Replay
from ashep.extras.demo.project import PERSON, DemoProject, run_of
from ashep.extras.demo.scripted_model import ModelServer, claude_environment, opencode_config, settle
from chaos.killed.scenario import EFFECT, PHASES, POLICIES, PROVEN, TEST, effect_of
from tests import databases
from tests.forks import Forked, Forks, shared
from tests.places import QUICK, free_port, sweep
from tests.places import made as new_folder

REPOSITORY = Path(__file__).parents[2]

CONFIG = """version: 1
tracker: {command: [%s], poll_every: 2s, timeout: %ds}
monitor: {check_every: 500ms}
worker: {workspace: %s, hold_when_busy: false}
"""
AGENTS = """version: 1
agents:
  - id: maker
    capabilities: [implement]
    read_write: write
    runner: {type: claude, provider: anthropic, model: sonnet}
  - {id: judge, capabilities: [review], read_write: read, runner: {type: opencode, agent_slug: plan}}
"""
SANDBOX = "place}\nagents: {sandbox: bwrap"
"""What stands for a workspace where agents have a sandbox each."""

BOUND = 120.0
"""Seconds without a line in its journal after which a process of ashep is taken for stuck: a slow one still writes."""

STARTS = 6
"""Processes of ashep that a life may need beyond the ones that were killed: one ends while a person is asked."""


@dataclass(slots=True)
class Life:
    """What became of one life."""

    kills: tuple[str, ...]
    killed: list[str] = field(default_factory=list[str])
    """The boundaries at which it was killed."""
    crossed: list[list[str]] = field(default_factory=list[list[str]])
    """By process, the boundaries that it crossed, in order."""
    said: list[str] = field(default_factory=list[str])
    """By process, what it printed."""
    seconds: float = 0.0


class Place:
    """One project. `name` is the prefix of its issues: places that share a model have different ones.

    `workspace`: `worktree` where each issue is to have a work tree of its own. `claude`: who makes is of Claude Code.
    """

    def __init__(
        self,
        folder: Path,
        model: ModelServer,
        name: str,
        *,
        policies: str | None = None,
        workspace: str = "shared",
        claude: bool = False,
    ) -> None:
        self.model, self.name, self.workspace, self.claude = model, name, workspace, claude
        stage = DemoProject.open_folder(folder)
        self.folder, self.project, self.bd_program = folder, stage.project, stage.bd
        self.environ = dict(stage.environ) | {**QUICK, "PYTHONPATH": str(REPOSITORY), "PYTHONUNBUFFERED": "1"}
        self.state = self.project / ".agent-shepherd" / "state"
        config = folder / "home" / "config" / "opencode"
        for made in (folder / "home" / "tmp", self.project):
            made.mkdir(parents=True)
        # no copies of the work tree at each step: they cost half of the server's time, and ashep does not know of them
        settle(config, opencode_config(model.url) | {"snapshot": False})
        databases.copied(name, self.project)
        (self.project / "a.txt").write_text("a\n")
        (self.project / "test.sh").write_text(TEST)
        for words in (("add", "."), ("commit", "-qm", "first")):
            self.run("git", *words)
        self.run(sys.executable, "-m", "ashep", "init")
        (self.project / ".agent-shepherd" / "policies.yaml").write_text(
            policies or (POLICIES if workspace == "shared" else PROVEN)
        )
        if claude:
            self.environ |= claude_environment(model.url, Path(self.environ["HOME"]))
            Path(self.environ["CLAUDE_CONFIG_DIR"]).mkdir(parents=True)
            (self.project / ".agent-shepherd" / "agents.yaml").write_text(AGENTS)
        self._template = folder / "template"
        self._forks = Forks(self.project, self.environ)
        self.use_bd(stage.bd)

    @property
    def issue(self) -> str:
        """The issue with which a life begins."""
        return f"{self.name}-1"

    def use_bd(self, program: Path, timeout: int = 30) -> None:
        """Which bd ashep uses from its next start on, and the seconds that it waits for an answer."""
        own = SANDBOX if self.workspace == "sandbox" else self.workspace
        more = f"runners: {{claude: {{command: [{programs.find('claude')}]}}}}\n" if self.claude else ""
        for folder in (self.project, self._template):
            if folder.exists():
                (folder / ".agent-shepherd" / "config.yaml").write_text(CONFIG % (program, timeout, own) + more)

    # --- programs ---

    def run(self, *argv: str | Path, check: bool = True) -> str:
        done = subprocess.run(argv, cwd=self.project, env=self.environ, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0 or not check, (argv, done.stdout, done.stderr)
        return done.stdout

    def bd(self, *words: str) -> str:
        return self.run(self.bd_program, f"--actor={PERSON}", *words)

    def ashep(self, *words: str, check: bool = False) -> str:
        code, said, errors = shared().run(words, self.environ, self.project)
        assert code == 0 or not check, (words, said, errors)
        return said

    def start(self, output: Path, *words: str, **ours: str) -> Forked:
        """Start `ashep` with these words; with variables of `chaos.killed.life`, as a life whose boundaries count."""
        return self._forks.start("chaos.killed.life" if ours else "ashep", words, self.environ | ours, output)

    def server_pid(self) -> int:
        record = json.loads((folder_of(self.state, self.environ) / "server.json").read_text())
        return int(record["pid"])

    def stop(self) -> None:
        """End the agent server, and forget all its sessions."""
        self.ashep("stop", "--server")
        shutil.rmtree(self.folder / "home" / "state", ignore_errors=True)

    def close(self) -> None:
        """End everything that was started here."""
        self.stop()
        self._forks.close()

    # --- a life ---

    def renew(self) -> None:
        """Put everything but the agent server back to the beginning."""
        if not self._template.exists():
            self.bd("create", f"--id={self.issue}", "--title=the first", "--type=task", "--silent")
            subprocess.run(("cp", "-a", self.project, self._template), check=True)
        for path in self.project.iterdir():  # the folder itself stays: the server works in it
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        subprocess.run(("cp", "-a", f"{self._template}/.", self.project), check=True)

    def live(self, *kills: str, cold: bool = False, both: bool = False) -> Life:
        """Live from the beginning to the end, killed at these boundaries: each in a process of its own.

        The agent server of the life before is found and used; `cold`: there is none, and in the end it is gone. `both`:
        what runs of Claude Code is killed with it.
        """
        if cold:
            self.stop()
        self.renew()
        mark, began = len(self.model.asks), time.monotonic()
        life, left = Life(kills), list(kills)
        person = Person(self)
        try:
            for _ in range(len(kills) + STARTS):
                code = self._process(life, left[0] if left else "", person, cold=cold)
                if code == -signal.SIGKILL and life.crossed[-1][-1].endswith(" killed"):
                    life.killed.append(life.crossed[-1][-1].removesuffix(" killed"))
                    left.pop(0)
                    if both:
                        self._kill_turns()
                else:
                    assert code == 0, f"ashep ended with {code}"
                    if self.all_closed():
                        break
            else:
                raise AssertionError("it did not come to its end")
            self.check(mark, None if both else 0)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.story(life)}") from error
        life.seconds = time.monotonic() - began
        return life

    def _kill_turns(self) -> None:
        mark = process_table.ProcessMark("CLAUDE_CONFIG_DIR", self.environ["CLAUDE_CONFIG_DIR"], "--strict-mcp-config")
        for pid, _ in process_table.holders_of(mark):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _process(self, life: Life, kill_at: str, person: "Person", *, cold: bool) -> int:
        points, output = self.folder / "points", self.folder / "output"
        points.unlink(missing_ok=True)
        ours = {"ASHEP_TEST_POINTS": str(points), "ASHEP_TEST_KILL_AT": kill_at}
        if not cold:
            ours["ASHEP_TEST_KEEP_SERVER"] = "1"
        process = self.start(output, "work", "--until-idle", "--idle-grace", "20s", **ours)
        try:
            wait_for(
                lambda: process.poll() is not None or person.look(),
                BOUND,
                "ashep had not ended, and written nothing",
                progress=lambda: journal_size(self.state),
            )
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            life.crossed.append(points.read_text().splitlines() if points.exists() else [])
            life.said.append(output.read_text(errors="replace"))
        return process.returncode

    # --- what became of it ---

    def issues(self) -> list[dict[str, Any]]:
        """Everything that bd holds, comments included."""
        return [json.loads(line) for line in self.bd("export").split("\n") if line]

    def all_closed(self) -> bool:
        issues = self.issues()
        return len(issues) > 1 and all(issue["status"] == "closed" for issue in issues)

    def records(self) -> list[dict[str, Any]]:
        """The journal's lines, read as they are."""
        return list(records(self.state))

    def check(self, mark: int, restarts: int | None = 0) -> None:
        """What must hold in the end, whatever was killed when; `restarts`: turns that a dead server cost, or None: as
        many as are told.
        """
        if restarts is None:
            restarts = sum(one["restarts"] for one in self._drawn())
            assert restarts <= 1, "one was killed"
        issues = {issue["id"]: issue for issue in self.issues()}
        assert all(issue["status"] == "closed" for issue in issues.values()), issues
        for issue in issues.values():
            labels: list[str] = issue.get("labels") or []
            assert not [one for one in labels if one.startswith(("phase:", "needs:", "ashep:", "human:"))], issue
            texts = [comment["text"] for comment in issue.get("comments") or []]
            assert len(set(texts)) == len(texts), f"a comment stands twice: {texts}"
        found = [issue for issue in issues if issue != self.issue]
        assert len(found) == 1, f"created once: {found}"
        expected = Counter({f"{self.issue}/{way}": 1 for way in PHASES} | {f"{found[0]}/{PHASES[0]}": 1})
        self._check_model(mark, expected, restarts)
        effects = self._effects(issues)
        effects = sorted({*effects}) if restarts else effects
        assert sorted(effects) == sorted(run for run in expected if "implement.1.1" in run), effects
        self._check_journal(set(expected), restarts)
        audit = self.start(self.folder / "audit", "audit", "--json")
        code, said = audit.wait(), (self.folder / "audit").read_text()
        assert code == 0, said
        audited = json.loads(said)
        assert (audited["findings"], audited["not_asked"]["tracker"]) == ([], ""), audited

    def _effects(self, issues: Iterable[str]) -> list[str]:
        """What tools did, by run; in own trees each is one commit of its issue's branch, which landed once."""
        if self.workspace == "shared":
            return (self.project / EFFECT).read_text().split()
        assert self.run("git", "status", "--porcelain", "--untracked-files=no") == ""
        assert self.run("git", "for-each-ref", "refs/ashep/moving", "refs/ashep/landing") == "", "a landing is over"
        assert not list((self.project / ".git").glob("*.lock"))
        found = [run for issue in issues for run in (self.project / effect_of(issue)).read_text().split()]
        assert sorted(self._trailers("Ashep-Run")) == sorted(found), "the base has each commit of an agent's once"
        assert sorted(self._trailers("Ashep-Issue")) == sorted(issues), "the base has each landing once"
        told = [(one["type"], one["issue"]) for one in self.records() if one["type"] in ("WorkLanded", "IssueClosed")]
        assert sorted(told) == sorted((kind, issue) for issue in issues for kind in ("WorkLanded", "IssueClosed")), told
        return found

    def _trailers(self, key: str) -> list[str]:
        """What the commits of the base have under a trailer."""
        return self.run("git", "log", f"--format=%(trailers:key={key},valueonly)", "HEAD").split()

    def _check_model(self, mark: int, expected: Counter[str], restarts: int) -> None:
        asks = self.model.asks[mark:]
        of = [(run, ask) for ask in asks if (run := run_of(ask.prompt)) and run.startswith(f"{self.name}-")]
        turns = Counter(run for run, ask in of if ask.kind == "turn" and not ask.repeated)
        requests = Counter(run for run, _ in of)
        tools = {run: 1 for run in expected if "implement.1.1" in run}
        assert restarts or turns == expected, f"prompts that the model saw: {turns}"
        assert sum(turns.values()) <= sum(expected.values()) + restarts, f"prompts that the model saw: {turns}"
        assert restarts or requests == expected + Counter(tools), f"requests that the model saw: {requests}"

    def _check_journal(self, runs: set[str], restarts: int) -> None:
        assert not list(replay(self.state, Replay())), "every decision is derived again as it was"
        ended = [(one["run"], one["state"]) for one in self.records() if one["type"] == "RunEnded"]
        assert sorted(ended) == sorted((run, "succeeded") for run in runs), ended
        drawn = self._drawn()
        assert sorted(one["run"] for one in drawn) == sorted(runs), drawn
        told = sum(one["restarts"] for one in drawn)
        # a turn of Claude Code that comes to a dead daemon's gate is begun again and counted; the model saw it once
        assert told == restarts or (self.claude and told <= 1), drawn

    def _drawn(self) -> list[dict[str, Any]]:
        lines = (self.project / ".agent-shepherd" / "runs.jsonl").read_text().split("\n")
        return [json.loads(line) for line in lines if line]

    def story(self, life: Life) -> str:
        """What a person needs to understand what went wrong."""
        parts = [f"killed at {life.killed} of {life.kills}"]
        for number, (said, crossed) in enumerate(zip(life.said, life.crossed, strict=True), 1):
            parts += [f"--- process {number}, {len(crossed)} boundaries, the last {crossed[-12:]}", said[-3000:]]
        kept = Path(tempfile.mkdtemp(prefix="ashep-killed-"))
        shutil.copytree(self.project, kept / "project", symlinks=True)
        return "\n".join([*parts, f"--- the project as it was then: {kept}"])


class Person:
    """Approves as soon as the tracker asks: ashep may be dead at that moment."""

    def __init__(self, place: Place) -> None:
        self._place, self._size, self._asked, self._next = place, 0, False, 0.0
        self.done = False

    def look(self) -> bool:
        """Answer if there is something to be answered; never more than a look at a file otherwise."""
        if self.done or not (self._asked or self._asks()) or time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + 0.3
        place = self._place
        shown = json.loads(place.bd("show", place.issue, "--json"))[0]
        if "needs:human_approval" in (shown.get("labels") or []):
            place.bd("label", "add", place.issue, "human:approved", "--json")
            self.done = True
        return False

    def _asks(self) -> bool:
        size = journal_size(self._place.state)
        if size != self._size:
            self._size = size
            files = (self._place.state / "journal").glob("*.jsonl")
            self._asked = any(b'"type":"PersonAsked"' in file.read_bytes() for file in files)
        return self._asked


def journal_size(state: Path) -> int:
    """The bytes of a state folder's journal."""
    return sum(file.stat().st_size for file in (state / "journal").glob("*.jsonl"))


def records(state: Path) -> Iterator[dict[str, Any]]:
    """The records of a state folder's journal, without looking at what they say."""
    for path in sorted((state / "journal").glob("*.jsonl")):
        for line in path.read_text().split("\n"):
            if line:
                yield json.loads(line.rpartition("\t")[0])


def wait_for(
    found: Callable[[], Any],
    bound: float,
    what: str,
    every: float = 0.02,
    progress: Callable[[], object] = lambda: None,
) -> Any:
    """Wait until something is there; fail `bound` seconds after what `progress` returns has changed last."""
    end, last = time.monotonic() + bound, progress()
    while not (value := found()):
        if (now := progress()) != last:
            end, last = time.monotonic() + bound, now
        assert time.monotonic() < end, f"{what} within {bound:.0f} s"
        time.sleep(every)
    return value


def serve(project: Path, environ: Mapping[str, str]) -> tuple[subprocess.Popen[bytes], str]:
    """Start an agent server that is nobody's, with the password of these variables; give it and its address."""
    port, nothing = free_port(), subprocess.DEVNULL
    argv = (str(programs.find("opencode")), "serve", "--port", str(port), "--hostname", "127.0.0.1")
    process = subprocess.Popen(
        argv, cwd=project, env=environ, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True
    )
    url, auth = f"http://127.0.0.1:{port}", ("opencode", environ["OPENCODE_SERVER_PASSWORD"])

    def healthy() -> bool:
        with suppress(httpx.HTTPError):
            return httpx.get(f"{url}/global/health", auth=auth, timeout=1).is_success
        return False

    try:
        wait_for(healthy, 60, "the agent server did not answer", every=0.1)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    return process, url


@contextmanager
def places(model: ModelServer, names: Sequence[str], **options: Any) -> Iterator[list[Place]]:
    """Make places, in memory where the machine has such a place; in the end their servers are gone."""
    folder, made = new_folder("ashep-killed"), list[Place]()
    try:
        for name in names:
            made.append(Place(folder / name, model, name, **options))
        yield made
        for place in made:
            place.close()
    finally:
        sweep(folder)  # whatever went wrong, nothing lives on
        shutil.rmtree(folder, ignore_errors=True)
