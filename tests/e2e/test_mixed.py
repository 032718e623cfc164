"""Two kinds of agents in one life, on the real tools: Claude Code implements, OpenCode reviews."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ashep.adapters import programs
from ashep.demo.model import Ask, Call, Reply, claude_environment, outcome_text
from tests.e2e.site import Site, until

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
      - {name: review, access: read, timeout: 2m, verdicts: [approve, reject], next: {approve: close, reject: implement}}
"""


@pytest.fixture
def mixed(site: Site) -> Iterator[Site]:
    """The site with a maker on Claude Code, who is logged in."""
    folder = site.project / ".agent-shepherd"
    before = {name: (folder / name).read_text() for name in ("agents.yaml", "policies.yaml")}
    environ = dict(site.environ)
    program = programs.find("claude")
    assert program is not None, "make claude installs it"
    site.environ |= claude_environment(site.model.url, Path(environ["HOME"]))
    (folder / "agents.yaml").write_text(AGENTS)
    (folder / "policies.yaml").write_text(before["policies.yaml"] + MIXED)
    site.runners = "claude: {}"
    site.command(site.bd_command)
    try:
        yield site
    finally:
        site.rest()
        site.runners = ""
        site.environ.clear()
        site.environ |= environ
        for name, text in before.items():
            (folder / name).write_text(text)
        site.command(site.bd_command)


def writes(ask: Ask) -> Reply:
    """The maker writes a file, and the judge approves."""
    if "Phase: review" in ask.prompt:
        return Reply(outcome_text("approve"))
    if not ask.results:
        return Reply(calls=(Call("bash", {"command": "echo b > b.txt", "description": "write"}),))
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
        assert working.wait(90) == 0, working.text
    once_each(mixed, issue)
