"""A person takes a session on the real OpenCode server: nothing is sent to them, and then the agent goes on there."""

import json
import re
import time

import pytest

from ashep.extras.demo.scripted_model import ModelRequest, Reply, outcome_text
from tests.e2e.site import Site, until

pytestmark = pytest.mark.real

MINE = "I look into this myself for a moment."


def slow_at_first(ask: ModelRequest, seconds: int = 30) -> Reply:
    """So many seconds of words; what a person says, and the second prompt, are answered at once."""
    if MINE in ask.prompt:
        return Reply("As you wish.")
    if "A person has worked in this session" in ask.prompt:
        return Reply(outcome_text(summary="went on"))
    return Reply("I think about it, slowly. " * (seconds // 2) + outcome_text(), drip=0.4)


def session_of(site: Site, run: str) -> str:
    """The session of a run, once its prompt is under way."""
    until(lambda: site.prompts(run), 90)
    opened = [record for record in site.journal(run.partition("/")[0]) if record["type"] == "SessionOpened"]
    return opened[-1]["session"]


def said(site: Site, issue: str) -> list[str]:
    """What the model was asked in the issue's session, in order: whose prompts those were."""
    ours = {ask.session for ask in site.model.asks if f"Run: {issue}/" in ask.prompt}
    turns = [ask for ask in site.model.asks if ask.session in ours and ask.kind == "turn" and not ask.repeated]
    return ["person" if MINE in ask.prompt else "resume" if "A person has" in ask.prompt else "task" for ask in turns]


def check(site: Site, issue: str, session: str) -> None:
    """One session, two runs, and no attempt burnt."""
    runs = site.runs(issue)
    assert [(run["run"], run["state"], run["session"]) for run in runs] == [
        (f"{issue}/implement.1.1", "aborted", session),
        (f"{issue}/implement.1.2", "succeeded", session),
    ]
    assert said(site, issue) == ["task", "person", "resume"]
    labels = site.issue(issue).get("labels", [])
    assert "ashep:paused" not in labels


@pytest.mark.promise("P11")
def test_who_writes_in_a_session_is_left_alone_and_then_the_agent_goes_on(site: Site) -> None:
    issue = site.add("share me", "policy:shared", behaves=slow_at_first)
    working = site.living()
    session = session_of(site, f"{issue}/implement.1.1")
    wrote = time.monotonic()
    site.person_in(session, "prompt_async", parts=[{"type": "text", "text": MINE}])
    print("noticed after", working.says(f"{issue} is a person's for now", 60) - wrote)
    print("went on after", working.says(f"{issue}/implement.1.2 goes to", 120) - wrote)
    working.says(f"{issue} closed by shepherd", 120)
    assert site.issue(issue)["status"] == "closed"
    check(site, issue, session)


@pytest.mark.promise("P13")
def test_an_issue_is_taken_and_released_at_the_command_line(site: Site) -> None:
    issue = site.add("take me", behaves=lambda ask: slow_at_first(ask, 120))  # a busy machine takes it late
    working = site.living()
    session = session_of(site, f"{issue}/implement.1.1")
    told = site.ashep("take", issue, "-m", "I have an idea")
    assert re.search(rf"opencode attach http://127\.0\.0\.1:\d+ --dir \S+ --session {session}", told), told
    assert site.environ["OPENCODE_SERVER_PASSWORD"] not in told
    working.says(f"{issue}/implement.1.1 aborted", 60)
    until(lambda: any(one["type"] == "TurnStopped" for one in site.journal(issue)), 60)
    site.person_in(session, "prompt_async", parts=[{"type": "text", "text": MINE}])
    until(lambda: said(site, issue) == ["task", "person"], 60)
    time.sleep(5)
    shown = json.loads(site.ashep("status", "--json"))["issues"]
    assert [(one["state"], one["code"]) for one in shown if one["issue"] == issue] == [("person", "paused")]
    assert said(site, issue) == ["task", "person"]
    site.ashep("release", issue)
    working.says(f"{issue} closed by shepherd", 120)
    check(site, issue, session)
