"""Several real daemons on one Beads database: each with a work tree, a state folder and a name of its own."""

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from ashep.extras.demo.project import run_of
from ashep.extras.demo.scripted_model import ModelRequest, ModelServer, Reply, outcome_text
from chaos.killed.place import SANDBOX, Place, records, serve, wait_for
from tests.forks import shared

POLICIES = """
version: 1
default_policy: null
policies:
  quick:
    match: {types: [task]}
    phases:
      - {name: implement, capabilities: [implement], access: write, timeout: 5m, retry: {max_attempts: 1}}
"""

CONFIG = """version: 1
tracker: {command: [%s], poll_every: 5s, timeout: 60s}
monitor: {check_every: 500ms}
%s
"""
TOGETHER = 'runners: {opencode: {url: "%s"}}\nworker: {workspace: shared}'


def willing(_: ModelRequest) -> Reply:
    return Reply(outcome_text())


class Daemons:
    """Work trees of one project; `start` one's daemon. All use one agent server, whose owner is nobody of them, or,
    where the place's agents are in a sandbox, each has its own.
    """

    def __init__(self, place: Place, count: int) -> None:
        self.place = place
        self.environ = place.environ | {"OPENCODE_SERVER_PASSWORD": secrets.token_hex(8)}
        base = place.run("git", "branch", "--show-current").strip()
        self._server, how = None, f"worker: {{workspace: {SANDBOX}}}\nlanding: {{base: {base}}}"
        if place.workspace != "sandbox":
            self._server, url = serve(place.project, self.environ)
            how = TOGETHER % url
        config = place.project / ".agent-shepherd" / "config.yaml"
        config.write_text(CONFIG % (place.bd_program, how))
        place.run("git", "add", "-f", ".agent-shepherd/config.yaml", ".agent-shepherd/policies.yaml")
        place.run("git", "add", ".agent-shepherd")
        place.run("git", "commit", "-qm", "configured")
        self.trees = [place.folder / f"tree{number}" for number in range(count)]
        for tree in self.trees:
            place.run("git", "worktree", "add", "-q", "--detach", tree)
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, number: int, *words: str) -> subprocess.Popen[bytes]:
        """Start the daemon of a work tree."""
        with (self.place.folder / f"said{number}").open("ab") as output:
            process = subprocess.Popen(
                (sys.executable, "-m", "ashep", "work", *words),
                cwd=self.trees[number],
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def said(self, number: int) -> str:
        return (self.place.folder / f"said{number}").read_text(errors="replace")

    def actor(self, number: int) -> str:
        return next(one["actor"] for one in self.records(number) if one["type"] == "JournalBegun")

    def records(self, number: int) -> list[dict[str, Any]]:
        return list(records(self.trees[number] / ".agent-shepherd" / "state"))

    def prompts(self) -> Counter[str]:
        """How many turns of the model began, by issue."""
        asks = [ask for ask in self.place.model.asks if ask.kind == "turn" and not ask.repeated]
        return Counter(run.partition("/")[0] for ask in asks if (run := run_of(ask.prompt)))

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()
        if self._server is None:
            for tree in self.trees:
                shared().run(("stop", "--server"), self.environ, tree)
            return
        with suppress(ProcessLookupError):
            os.killpg(self._server.pid, signal.SIGKILL)
        self._server.wait()


@contextmanager
def daemons(place: Place, count: int) -> Iterator[Daemons]:
    made = Daemons(place, count)
    try:
        yield made
    finally:
        made.close()


def race(place: Place, count: int, issues: int) -> float:
    """Let so many daemons work on so many issues at once; give the seconds that it took. Fails on a double run."""
    names = [f"{place.name}-{number}" for number in range(1, issues + 1)]
    for name in names:
        place.bd("create", f"--id={name}", f"--title={name}", "--type=task", "--silent")
    with daemons(place, count) as made:
        began = time.monotonic()
        for number in range(count):
            made.start(number, "--all")
        bound = 60.0 + 20 * issues
        wait_for(lambda: _closed(place, names), bound, "the issues were not closed", every=6)
        took = time.monotonic() - began
        for process in made.processes:
            process.terminate()
        for number, process in enumerate(made.processes):
            assert process.wait(30) == 0, made.said(number)
        assert made.prompts() == Counter(names), f"prompts that the model saw: {made.prompts()}"
        runs = [_runs(made, number) for number in range(count)]
        done = Counter(issue for of in runs for issue, state in of if state == "succeeded")
        assert done == Counter(names), f"one run an issue: {runs}"
        lost = sum(state != "succeeded" for of in runs for _, state in of)
        each = [sum(state == "succeeded" for _, state in of) for of in runs]
        print(f"{issues} issues by {count} daemons, {each} each, {lost} planned in vain, in {took:.0f} s")
    return took


def wake_too_late(place: Place, *, by_hand: bool) -> float:
    """Stop a daemon in the middle of a run, let another one take the issue over, and let the first one wake.

    `by_hand`: somebody takes the claim back at once; else the second daemon does, ten minutes after the lease ran out.
    Gives the seconds until the issue was closed.
    """
    issue = f"{place.name}-1"
    place.bd("create", f"--id={issue}", f"--title={issue}", "--type=task", "--silent")
    with Hold(place.model) as hold, daemons(place, 2) as made:
        first, began = made.start(0), time.monotonic()
        assert hold.asked.wait(60), made.said(0)
        first.send_signal(signal.SIGSTOP)
        if by_hand:
            place.bd("update", issue, "--status=open", "--assignee=", "--force", "--json")
        second = made.start(1)
        wait_for(lambda: "closed by" in made.said(1), 120 if by_hand else 1500, "the second did not end it")
        took = time.monotonic() - began
        assert _closed(place, [issue])
        before = place.bd("show", issue, "--json", "--include-comments")
        first.send_signal(signal.SIGCONT)
        wait_for(lambda: "closed by" in made.said(0), 60, "the first had not seen it")
        time.sleep(2)
        for number, process in enumerate((first, second)):
            process.terminate()
            assert process.wait(30) == 0, made.said(number)
        after = place.bd("show", issue, "--json", "--include-comments")
        assert after == before, "nothing was written by the one that woke"
        planned = [one["run"] for number in (0, 1) for one in made.records(number) if one["type"] == "RunPlanned"]
        assert made.prompts()[issue] == len(planned) == 2, "one prompt a run"
        if not by_hand:
            comments = [one["text"] for one in json.loads(after)[0]["comments"]]
            assert any(made.actor(0) in text for text in comments), "it is said whose claim was taken back"
    return took


def _runs(made: Daemons, number: int) -> list[tuple[str, str]]:
    """By run that ended, its issue and how; one whose issue somebody else had claimed by then is aborted."""
    return [(one["issue"], one["state"]) for one in made.records(number) if one["type"] == "RunEnded"]


def _closed(place: Place, names: Sequence[str]) -> bool:
    listed = json.loads(place.bd("list", "--all", "-n", "0", "--json"))
    return {one["id"] for one in listed if one["status"] == "closed"} == set(names)


class Hold:
    """A script of the model whose first answer waits until it is let go."""

    def __init__(self, model: ModelServer) -> None:
        self.asked = threading.Event()
        self._model, self._before = model, model.script

    def __call__(self, _: ModelRequest) -> Reply:
        if not self.asked.is_set():
            self.asked.set()
            return Reply(outcome_text(), delay=8)
        return Reply(outcome_text())

    def __enter__(self) -> "Hold":
        self._model.script = self
        return self

    def __exit__(self, *_: object) -> None:
        self._model.script = self._before
