"""Two kinds of agents in one life, on the real tools: Claude Code implements, OpenCode reviews."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ashep.adapters.runners.opencode.isolated_runner import folder_for
from ashep.adapters.runners.opencode.server import folder_of
from ashep.adapters.system import programs
from ashep.extras.demo.project import run_of
from ashep.extras.demo.scripted_model import Call, ModelRequest, Reply, claude_environment, outcome_text
from tests.e2e.site import Site, until
from tests.full import repeated
from tests.places import has_bubblewrap

pytestmark = pytest.mark.real

AGENTS = """
version: 1
agents:
  - id: maker
    capabilities: [make]
    read_write: write
    runner: {type: claude, provider: anthropic, model: sonnet}
  - {id: builder, capabilities: [implement], read_write: write, runner: {type: opencode, agent_slug: build}}
  - {id: judge, capabilities: [review], read_write: read, runner: {type: opencode, agent_slug: plan}}
"""
MIXED = """
  mixed:
    match: null
    phases:
      - {name: implement, capabilities: [make], access: write, timeout: 2m, retry: {max_attempts: 1}}
      - {name: review, access: read, verdicts: [approve, reject], next: {approve: close, reject: implement}}
"""


@contextmanager
def with_claude(site: Site, more: str = "") -> Iterator[Site]:
    """The site with a maker on Claude Code, who is logged in; `more`: of config.yaml."""
    assert programs.find("claude") is not None, "make claude installs it"
    home, policies = Path(site.environ["HOME"]), site.folder / "policies.yaml"
    files = {site.folder / "agents.yaml": AGENTS, policies: policies.read_text() + MIXED}
    with site.altered({**files, home / ".claude" / "settings.json": "{}"}):
        site.environ |= claude_environment(site.model.url, home)
        site.runners = "claude: {}"
        site.command(site.bd_command)
        site.config(more)
        try:
            yield site
        finally:
            site.runners = ""
            site.command(site.bd_command)


@pytest.fixture
def mixed(site: Site) -> Iterator[Site]:
    with with_claude(site) as made:
        yield made


@pytest.fixture
def apart(site: Site, managed: None) -> Iterator[Site]:
    """The same, with agents in sandboxes."""
    with with_claude(site, "worker: {workspace: place}\nlanding: {mode: branch}\nagents: {sandbox: bwrap}\n") as made:
        yield made
        made.ashep("stop", "--server")


def writes(ask: ModelRequest) -> Reply:
    """The maker writes a file by its issue's name, and the judge approves."""
    if "Phase: review" in ask.prompt:
        return Reply(outcome_text("approve"))
    if not ask.results:
        issue = (run_of(ask.prompt) or "").partition("/")[0]
        return Reply(calls=(Call("bash", {"command": f"echo done > {issue}.txt", "description": "write"}),))
    return Reply(outcome_text())


def once_each(site: Site, issue: str) -> None:
    """Each phase ran once, each prompt began once, and what ran on Claude Code says so."""
    assert site.issue(issue)["status"] == "closed", site.ashep("why", issue)
    made, judged = (f"{issue}/{phase}.1.1" for phase in ("implement", "review"))
    assert [(one["run"], one["state"], one["restarts"]) for one in site.runs(issue)] == [
        (made, "succeeded", 0),
        (judged, "succeeded", 0),
    ]
    assert (site.prompts(made), site.prompts(judged)) == (1, 1)
    records = site.journal(issue)
    assert [(one["run"], one["n"]) for one in records if one["type"] == "TurnBegun"] == [(made, 1)]
    sessions = {one["run"]: str(one["session"]) for one in records if one["type"] == "SessionOpened"}
    assert sessions[made].startswith("claude:")
    assert sessions[judged].startswith("ses_")
    site.check()


@pytest.mark.promise("G1")
def test_one_kind_of_agent_makes_and_another_judges(mixed: Site) -> None:
    issue = mixed.add("made by one, judged by another", "policy:mixed", behaves=writes)
    with mixed.working(issue, "--until-idle", "--idle-grace", "20s") as working:
        assert working.wait(240) == 0, working.text
    once_each(mixed, issue)


@pytest.mark.promise("G1")
def test_a_turn_goes_on_without_its_daemon_and_the_next_one_finds_it(mixed: Site) -> None:
    def slowly(ask: ModelRequest) -> Reply:
        return writes(ask) if "Phase: review" in ask.prompt else Reply("I think. " * 10 + outcome_text(), drip=0.15)

    issue = mixed.add("killed in its midst", "policy:mixed", behaves=slowly)
    with mixed.working(issue) as working:
        until(lambda: mixed.prompts(f"{issue}/implement.1.1"), 60, lambda: working.text)
        working.signal(signal.SIGKILL)
        assert working.wait(240) == -signal.SIGKILL
    assert not any(one["type"] == "TurnSeen" and one["state"] == "finished" for one in mixed.journal(issue))
    with mixed.working(issue, "--until-idle", "--idle-grace", "20s") as working:
        assert working.wait(240) == 0, working.text
    assert mixed.requests(f"{issue}/implement.1.1") == 1
    once_each(mixed, issue)


@pytest.mark.promise("G1")
def test_one_kind_that_is_away_holds_its_own_issues_alone(mixed: Site) -> None:
    del mixed.environ["ANTHROPIC_API_KEY"]
    held = mixed.add("its maker is logged out", "policy:mixed", behaves=writes)
    goes_on = mixed.add("all of it on the other kind")
    with mixed.working(held, goes_on) as working:
        working.says(f"{goes_on} closed by shepherd")

        def standing() -> dict[str, Any]:
            listed = json.loads(mixed.ashep("status", "--json"))["issues"]
            return next(one for one in listed if one["issue"] == held)

        told = standing()
        assert (told["state"], told["code"]) == ("time", "runner_unauthorized"), told
        assert "claude" in told["reason"], told
        settings = Path(mixed.environ["CLAUDE_CONFIG_DIR"], "settings.json")
        settings.write_text(json.dumps({"env": {"ANTHROPIC_API_KEY": "none"}}))
        working.says(f"{held} closed by shepherd")
    once_each(mixed, held)


@pytest.mark.full
def test_both_kinds_are_away_and_back(mixed: Site) -> None:
    server, key = mixed.shared_server, mixed.environ.pop("ANTHROPIC_API_KEY")
    issues = [mixed.add("its maker is logged out", "policy:mixed", behaves=writes), mixed.add("all on the other kind")]
    os.kill(server, signal.SIGSTOP)
    try:
        with mixed.working(*issues) as working:

            def standing() -> set[str]:
                listed = json.loads(mixed.ashep("status", "--json"))["issues"]
                return {one["code"] for one in listed if one["issue"] in issues}

            until(lambda: standing() == {"runner_unauthorized", "runner_away"}, 120, lambda: working.text)
            os.kill(server, signal.SIGCONT)
            working.says(f"{issues[1]} closed by shepherd", 120)
            settings = Path(mixed.environ["CLAUDE_CONFIG_DIR"], "settings.json")
            settings.write_text(json.dumps({"env": {"ANTHROPIC_API_KEY": key}}))
            working.says(f"{issues[0]} closed by shepherd", 120)
    finally:
        os.kill(server, signal.SIGCONT)
    once_each(mixed, issues[0])


def kept(site: Site) -> Path:
    """The folder in which the runner keeps its sessions and turns."""
    return folder_of(site.state, site.environ) / "runners" / "claude"


def process_of(site: Site, run: str) -> tuple[Path, int]:
    """The folder and the process of the last attempt at a run's prompt on Claude Code."""
    (session,) = {one["session"] for one in site.journal_all() if one["type"] == "SessionOpened" and one["run"] == run}
    turns = kept(site) / "sessions" / session.removeprefix("claude:") / "turns"
    last = max(turns.glob("*/*/process.json"), key=lambda file: int(file.parent.name))
    return last.parent, int(json.loads(last.read_text())["pid"])


@pytest.mark.promise("G1")
@pytest.mark.parametrize("mark", ["process.json", *repeated("begun", "TurnBegun")])
def test_killed_at_the_gate_a_prompt_is_told_once(mixed: Site, mark: str) -> None:
    issue = mixed.add("killed at the gate", "policy:mixed", behaves=writes)
    run = f"{issue}/implement.1.1"
    folder = kept(mixed) / "sessions"
    known = {*folder.glob(f"*/turns/*/*/{mark}")}

    def reached() -> bool:
        written = any(one["type"] == mark for one in mixed.journal(issue))
        return written or bool({*folder.glob(f"*/turns/*/*/{mark}")} - known)

    with mixed.working(issue) as working:
        end = time.monotonic() + 60
        while not reached() and time.monotonic() < end:
            time.sleep(0.001)
        working.signal(signal.SIGKILL)
        working.wait(240)
    with mixed.working(issue, "--until-idle", "--idle-grace", "20s") as working:
        assert working.wait(240) == 0, working.text
    assert mixed.issue(issue)["status"] == "closed"
    assert mixed.prompts(run) == 1
    mixed.check()


@pytest.mark.promise("G1")
def test_a_process_that_is_killed_in_its_turn_is_begun_once_more_and_counted(mixed: Site) -> None:
    def slowly(ask: ModelRequest) -> Reply:
        first = mixed.prompts(f"{issue}/implement.1.1") == 0
        if "Phase: review" in ask.prompt or not first:
            return writes(ask)
        return Reply("I think. " * 20 + outcome_text(), drip=0.2)

    issue = mixed.add("its process dies", "policy:mixed", behaves=slowly)
    run = f"{issue}/implement.1.1"
    with mixed.working(issue, "--until-idle", "--idle-grace", "20s") as working:
        until(lambda: mixed.prompts(run), 60, lambda: working.text)
        os.kill(process_of(mixed, run)[1], signal.SIGKILL)
        assert working.wait(240) == 0, working.text
    assert mixed.issue(issue)["status"] == "closed"
    told = [one["type"] for one in mixed.journal(issue) if one["type"] in ("TurnBegun", "TurnDied")]
    assert told == ["TurnBegun", "TurnDied", "TurnBegun"]
    assert mixed.prompts(run) == 2
    assert [one["restarts"] for one in mixed.runs(issue)] == [1, 0]
    mixed.check()


@pytest.mark.promise("H4")
def test_what_claude_code_asks_stands_on_the_issue_and_is_answered_after_a_kill(mixed: Site) -> None:
    def asks(ask: ModelRequest) -> Reply:
        if "Phase: review" in ask.prompt:
            return Reply(outcome_text("approve"))
        if not ask.results:
            return Reply(calls=(Call("bash", {"command": "date +%Y", "description": "look at the clock"}),))
        return Reply(outcome_text(summary=ask.results[-1][:100]))

    rule = {"tool": "bash", "pattern": "date *", "action": "ask"}
    mixed.config(f"questions: {{deadline: 10m}}\npermissions: {json.dumps([rule])}")
    issue = mixed.add("asks for leave", "policy:mixed", behaves=asks)
    run = f"{issue}/implement.1.1"
    with mixed.working(issue) as working:
        working.says("waits for a person")
        until(lambda: "needs:human_input" in mixed.issue(issue)["labels"], 30, lambda: working.text)
        # an answer counts behind its question, and a daemon that is killed before that asks again
        until(lambda: "asks:**" in json.dumps(mixed.issue(issue).get("comments")), 30, lambda: working.text)
        working.signal(signal.SIGKILL)
        working.wait(240)
    with mixed.working(issue, "--until-idle", "--idle-grace", "5s") as working:
        mixed.bd("comment", issue, "@ashep yes")
        assert working.wait(240) == 0, working.text
    assert mixed.issue(issue)["status"] == "closed"
    (ended,) = [one for one in mixed.journal(issue) if one["type"] == "RunEnded" and one["run"] == run]
    assert re.fullmatch(r"\d{4}", ended["outcome"]["summary"].strip()), "the command ran, by leave"
    once_each(mixed, issue)


@pytest.mark.promise("P10")
def test_nothing_goes_on_beside_a_person_who_resumes_the_session(mixed: Site) -> None:
    def plays(ask: ModelRequest) -> Reply:
        if run_of(ask.prompt) is None:
            return Reply("As you wish.")
        first = mixed.prompts(f"{issue}/implement.1.1") == 0
        return Reply("I think. " * 600 + outcome_text(), drip=0.2) if first else writes(ask)  # it outlasts any start

    issue = mixed.add("a person comes", "policy:mixed", behaves=plays)
    run = f"{issue}/implement.1.1"
    with mixed.working(issue) as working:
        until(lambda: mixed.prompts(run), 60, lambda: working.text)
        folder, process = process_of(mixed, run)
        resume = ("-p", "--resume", folder.parents[2].name, "--", "What are you doing?")
        program = programs.find("claude")
        assert program is not None
        argv = (program, *resume)
        given = {"cwd": mixed.tree(issue), "env": mixed.environ, "stdin": subprocess.DEVNULL, "timeout": 60}
        said = subprocess.run(argv, **given, capture_output=True, text=True)  # pyright: ignore[reportCallIssue, reportArgumentType] - as given
        assert said.stdout.strip(), said
        working.says(f"{issue} is a person's for now", 30)
        until(lambda: not Path(f"/proc/{process}").exists(), 10, lambda: working.text)
        until(lambda: "ashep:paused" in mixed.issue(issue)["labels"], 30, lambda: working.text)
        mixed.ashep("release", issue)
        working.says(f"{issue} closed by shepherd", 60)
    assert [one["state"] for one in mixed.runs(issue)] == ["aborted", "succeeded", "succeeded"]
    assert mixed.prompts(run) == 1
    mixed.check()


@pytest.mark.promise("I7")
@pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap cannot be used here")
def test_in_a_sandbox_a_person_takes_the_session_over_and_gives_it_back(apart: Site) -> None:
    site = apart

    def behaves(ask: ModelRequest) -> Reply:
        if "Phase: review" in ask.prompt or site.prompts(f"{issue}/implement.1.1") > 1:
            return writes(ask)
        return Reply("I think. " * 20 + outcome_text(), drip=0.2)

    issue = site.add("taken in a sandbox", "policy:mixed", behaves=behaves)
    run = f"{issue}/implement.1.1"
    with site.working(issue) as working:
        until(lambda: site.prompts(run), 60, lambda: working.text)
        pid = process_of(site, run)[1]
        line = site.ashep("take", issue).splitlines()[-1]
        assert line.startswith(f"ashep sandbox {issue} -- "), line
        assert " --resume " in line
        until(lambda: "RunEnded" in [one["type"] for one in site.journal(issue)], 30, lambda: working.text)
        until(lambda: not Path(f"/proc/{pid}").exists(), 30, lambda: working.text)
        argv = [sys.executable, "-m", *shlex.split(line), "-p", "what have you done?"]
        told = subprocess.run(argv, cwd=site.project, env=site.environ, capture_output=True, text=True, timeout=240)
        assert (told.returncode, "done" in told.stdout) == (0, True), told
        (site.tree(issue) / "person.txt").write_text("mine\n")
        site.ashep("release", issue)
        working.says("closed by shepherd")
    assert site.issue(issue)["status"] == "closed", site.ashep("why", issue)
    assert site.run("git", "show", f"ashep/{issue}:person.txt") == "mine\n"
    assert not [*folder_for(site.state, site.tree(issue), site.environ).glob("occupants/*")]
    site.check()
