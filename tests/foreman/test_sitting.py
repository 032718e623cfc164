"""A sitting starts Claude Code, keeps what its hooks tell, begins it anew, and leaves nothing behind."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from ashep.adapters import processes
from ashep.demo.model import Ask, Call, ModelServer, Reply, claude_environment
from ashep.demo.wires import text_of
from ashep.foreman.child import VARIABLE
from ashep.foreman.sitting import RESTARTS
from tests.conformance.claudes import claude
from tests.foreman.terminals import Typed, comes_true

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
FAKE = f"""#!{sys.executable}
import http.client, json, os, subprocess, sys, time
from pathlib import Path
from urllib.parse import urlsplit

argv, log = sys.argv[1:], Path(os.environ["FAKE_LOG"])
after = dict(zip(argv, argv[1:]))
told = Path(after["--append-system-prompt-file"]).read_text() if "--append-system-prompt-file" in after else ""
with log.open("a") as out:
    out.write(json.dumps({{"argv": argv, "pid": os.getpid(), "told": told, "folder": os.getcwd()}}) + "\\n")
act = json.loads(os.environ["FAKE_ACTS"])[len(log.read_text().splitlines()) - 1]


def hook(event, **more):
    session = after.get("--session-id", "resumed")
    told = {{"hook_event_name": event, "session_id": session, "transcript_path": str(log), "cwd": os.getcwd(), **more}}
    asked = json.loads(Path(after["--plugin-dir"], "hooks", "hooks.json").read_text())["hooks"][event][0]["hooks"][0]
    url = urlsplit(asked["url"])
    wire = http.client.HTTPConnection(url.netloc, timeout=60)
    wire.request("POST", url.path, json.dumps(told), asked["headers"])
    return wire.getresponse().read().decode()


if act in ("waits", "leaves"):
    subprocess.Popen(["sleep", "1000"], start_new_session=True, stdout=-3, stderr=-3)
    while act == "waits":
        time.sleep(0.05)
if act == "delegates":
    hook("UserPromptSubmit", prompt="build it", prompt_id="p1")
    log.with_name("transcript").write_text(json.dumps({{"type": "user", "message": "x" * 5000}}) + "\\n")
    call = {{"tool_name": "Agent", "tool_use_id": "c1", "tool_input": {{"prompt": "do", "subagent_type": "a"}}}}
    call["transcript_path"] = str(log.with_name("transcript"))
    while "deny" in (answer := hook("PreToolUse", **call)):
        time.sleep(0.05)
    print("answer=" + answer, flush=True)
    act = "9"
sys.exit(int(act) if act.isdecimal() else 0)
"""


class Bench:
    """A person's home with a `claude` on its PATH that does as it is told."""

    def __init__(self, folder: Path) -> None:
        self.home, self.work, self.log = folder / "home", folder / "work", folder / "log"
        for made in (self.home / ".config" / "ashep", self.work, folder / "bin"):
            made.mkdir(parents=True)
        (folder / "bin" / "claude").write_text(FAKE)
        (folder / "bin" / "claude").chmod(0o755)
        (self.home / ".config" / "ashep" / "foreman.yaml").write_text("version: 1\nrestart: {bytes: 1000}\n")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("XDG_", "ANTHROPIC", "CLAUDE"))}
        self.environ = {
            **kept, "HOME": str(self.home), "PYTHONPATH": str(ROOT), "FAKE_LOG": str(self.log),
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "WORKER_NAME": "w", "PS1": "$ ", "TERM": "xterm-256color",
        }  # fmt: skip
        self.folder = self.home / ".local" / "state" / "ashep" / "foreman" / "w"

    def sits(self, *words: str, acts: tuple[str, ...] = ()) -> Typed:
        argv = [sys.executable, "-m", "ashep", "foreman", *words]
        return Typed(argv, {**self.environ, "FAKE_ACTS": json.dumps(acts)}, self.work)

    def starts(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def said(self) -> list[tuple[str, str]]:
        lines = (self.folder / "history.jsonl").read_text().splitlines()
        return [(one["kind"], one["text"]) for one in map(json.loads, lines)]

    def left(self) -> list[object]:
        """What must not be there once a sitting has ended."""
        return [*processes.holders_of(processes.Mark(VARIABLE, str(self.folder))), *self.folder.glob("now")]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_session_that_grew_too_long_is_begun_anew_with_what_was_said(bench: Bench) -> None:
    (bench.work / "own.md").write_text("mind the gap")
    words = ("--model", "opus", "--append-system-prompt-file", "own.md", "--resume", "X", "the prompt")
    with bench.sits(*words, acts=("delegates", "5")) as terminal:
        assert terminal.ends() == 5
        assert terminal.attributes == terminal.before
    first, second = bench.starts()
    plugin, file = str(bench.folder / "now" / "plugin"), str(bench.folder / "last-system-prompt.log")
    ours = ["--plugin-dir", plugin, "--append-system-prompt-file", file]
    assert first["argv"] == [*ours, "--model", "opus", "--resume", "X", "the prompt"]
    assert (first["folder"], second["folder"]) == (str(bench.work),) * 2
    *kept, dashes, prompt = second["argv"]
    assert kept == [*ours, "--session-id", kept[5], "--model", "opus"]
    assert (len(kept[5]), dashes) == (36, "--")
    assert prompt
    assert terminal.said.decode().count("begun anew") == 1
    assert "mind the gap" in first["told"]
    assert second["told"].index("build it") < second["told"].index("mind the gap")
    assert {"prompt", "restart"} <= {kind for kind, _ in bench.said()}
    assert not bench.left()


def test_one_that_answers_once_is_never_begun_anew(bench: Bench) -> None:
    with bench.sits("-p", "the prompt", acts=("delegates",)) as terminal:
        assert terminal.ends() == 9
    assert terminal.said.decode() == "answer={}\r\n"  # and nothing of ours, or of a library's
    assert len(bench.starts()) == 1
    assert ("prompt", "build it") in bench.said()


def test_one_that_is_begun_anew_again_and_again_is_left_running_and_the_person_is_told(bench: Bench) -> None:
    with bench.sits(acts=("delegates",) * (RESTARTS + 1)) as terminal:
        assert terminal.ends() == 9
    assert len(bench.starts()) == RESTARTS + 1
    assert terminal.said.decode().endswith("within a minute; it is left as it is now\r\n")
    assert len({one["argv"][5] for one in bench.starts()}) == RESTARTS + 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_wrapper_that_is_told_to_end_ends_its_child_and_a_second_one_is_told_of_it(
    bench: Bench, number: signal.Signals, code: int
) -> None:
    dead = subprocess.Popen(["sleep", "1000"], env={VARIABLE: str(bench.folder), **os.environ})
    with bench.sits(acts=("waits",)) as terminal:
        comes_true(bench.starts)
        assert dead.poll() is not None, "an earlier one left it"
        if number == signal.SIGTERM:
            with bench.sits(acts=("0", "0")) as second:
                assert second.ends() == 3
            assert str(terminal.process.pid) in second.said.decode()
            assert len(bench.starts()) == 1
        child = bench.starts()[0]["pid"]
        terminal.process.send_signal(number)
        assert terminal.ends() == code
    assert processes.stat(child)[0] in "XZ"
    assert not bench.left()


def test_what_its_shells_left_ends_with_it(bench: Bench) -> None:
    with bench.sits(acts=("leaves",)) as terminal:
        assert terminal.ends() == 0
    assert len(bench.starts()) == 1
    assert not bench.left()


def test_what_begins_no_session_here_is_claudes_own(bench: Bench) -> None:
    with bench.sits("mcp", "add", "--help", acts=("3",)) as terminal:
        assert terminal.ends() == 3
    (start,) = bench.starts()
    assert start["argv"] == ["mcp", "add", "--help"]
    assert start["pid"] == terminal.process.pid
    assert not bench.folder.exists()


def test_words_that_cannot_be_meant_are_told_of_and_nothing_begins(bench: Bench) -> None:
    def told(*words: str) -> tuple[int, str]:
        argv = [sys.executable, "-m", "ashep", "foreman", *words]
        done = subprocess.run(argv, env=bench.environ, cwd=bench.work, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr

    for words, said in (
        (("--append-system-prompt-file", "nothing.md"), "nothing.md"),
        (("--clear", "--history"), "at a time"),
        (("--worker", "a/b"), "a/b"),
        (("--history", "--model", "opus"), "--model"),
    ):
        code, text = told(*words)
        assert (code, said in text, "Traceback" in text) == (2, True, False), text
    assert not bench.starts()


@pytest.fixture
def real(bench: Bench) -> Bench:
    """The same with the real program, which has been answered what it asks at its first start."""
    (bench.home / ".claude").mkdir()
    settled = {
        "hasCompletedOnboarding": True,
        "projects": {str(bench.work): {"hasTrustDialogAccepted": True}},
        "customApiKeyResponses": {
            "approved": [claude_environment("", bench.home)["ANTHROPIC_API_KEY"]],
            "rejected": [],
        },
    }
    (bench.home / ".claude" / ".claude.json").write_text(json.dumps(settled))
    bench.environ["PATH"] = f"{Path(claude()).parent}:{os.environ['PATH']}"
    return bench


@pytest.mark.real
async def test_the_real_one_is_sat_with_as_if_nobody_stood_between(real: Bench) -> None:
    """A prompt is answered; Ctrl-C and Ctrl-Z are Claude's; a restart knows what was said; `/exit` ends both."""

    def script(ask: Ask) -> Reply:
        if "delegate" in ask.prompt and not ask.results:
            agent = {"description": "work", "prompt": "do it", "subagent_type": "foreman:mini-goal-worker"}
            return Reply(calls=(Call("Agent", agent),))
        words = {"firstword": "ANSWERONE", "secondword": "ANSWERTWO", "anew": "ANSWERTHREE"}
        return Reply(next((said for word, said in words.items() if word in ask.prompt), "well"))

    async with ModelServer(script) as model:
        real.environ |= claude_environment(model.url, real.home)
        await anyio.to_thread.run_sync(_plays, real, model)
        new = next(ask for ask in model.asks if "anew" in ask.prompt)
        system = " ".join(text_of(one.get("content")) for one in new.messages if one["role"] == "system")
        assert system.index("firstword") < system.index("secondword") < system.index("How you work")
        assert len({ask.session for ask in model.asks if ask.kind == "turn"}) == 2
        await anyio.to_thread.run_sync(_ended, real)


def _ended(bench: Bench) -> None:
    assert [text for kind, text in bench.said() if kind == "prompt"] == ["firstword", "secondword", "delegate"]
    assert not bench.left()


def _plays(bench: Bench, model: ModelServer) -> None:
    with Typed(["bash", "--norc", "--noprofile", "-i"], bench.environ, bench.work, (40, 120)) as shell:

        def sends(keys: str, fact: Callable[[], object]) -> None:
            """Type it until it is taken: what comes at once with a key may count as pasted."""
            shell.types(keys)
            shell.sends_until("\r", fact)

        at = shell.until("$ ")
        shell.types(f"{sys.executable} -m ashep foreman --permission-mode default; echo code=$?.\n")
        at = shell.until("manual", at)
        sends("firstword", lambda: model.prompts_seen("firstword"))
        at = shell.until("ANSWERONE", at)
        shell.reads_until(lambda: ("answer", "ANSWERONE") in bench.said())
        shell.types("\x03")  # whatever it is taken for: who stands between does not end by it
        shell.sends_until("\x1a", lambda: b"Stopped" in shell.said[at:])
        at = shell.until("code=148.", at)
        assert shell.cooked
        shell.types("fg; echo then=$?.\n")
        at = shell.until("manual", at)
        sends("secondword", lambda: model.prompts_seen("secondword"))
        at = shell.until("ANSWERTWO", at)
        shell.reads_until(lambda: ("answer", "ANSWERTWO") in bench.said())
        sends("delegate", lambda: model.prompts_seen("delegate"))
        at = shell.until("ANSWERTHREE", at)
        shell.reads_until(lambda: ("answer", "ANSWERTHREE") in bench.said())
        sends("/exit", lambda: b"then=0." in shell.said[at:])
        shell.types("exit\n")
        assert shell.ends() == 0
