"""The promises, on the real tools: once, nothing stranded, people win."""

import json
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ashep.extras.demo.scripted_model import Call, ModelRequest, Reply, outcome_text
from tests.e2e.site import BEHAVES, Site, until

pytestmark = pytest.mark.real

SLOW = "I think about it, slowly. " * 3 + outcome_text()
"""About thirty words: with a drip of 0.2 s a turn of six seconds."""


def slowly(_: ModelRequest) -> Reply:
    return Reply(SLOW, drip=0.2)


def begun(site: Site, run: str) -> None:
    """Wait until the model is in the middle of a run's turn."""
    until(lambda: site.prompts(run), 60)
    time.sleep(1)


@pytest.mark.promise("G1")
def test_a_stop_in_the_middle_of_a_run_and_a_restart(site: Site) -> None:
    issue = site.add("stop me", behaves=slowly)
    run = f"{issue}/implement.1.1"
    with site.working(issue) as working:
        begun(site, run)
        working.signal(signal.SIGTERM)
        assert working.wait(240) == 0
        assert "SIGTERM" in working.text
    assert not any(one["type"] == "RunEnded" for one in site.journal(issue)), "it did not wait for the turn"
    assert site.issue(issue)["status"] == "in_progress"
    assert site.work_until_idle(issue) == 0
    assert site.issue(issue)["status"] == "closed"
    assert (site.prompts(run), site.requests(run)) == (1, 1)
    assert [(one["run"], one["state"], one["restarts"]) for one in site.runs(issue)] == [(run, "succeeded", 0)]


@pytest.mark.promise("G1")
@pytest.mark.usefixtures("managed")
def test_a_kill_in_the_middle_of_a_run_and_a_restart(site: Site) -> None:
    issue = site.add("kill me", behaves=slowly)
    run = f"{issue}/implement.1.1"
    with site.working(issue) as working:
        begun(site, run)
        server = site.server_pid()
        working.signal(signal.SIGKILL)
        assert working.wait(240) == -signal.SIGKILL
    with site.working(issue, "--until-idle", "--idle-grace", "20s") as working:
        working.says("closed by shepherd")
        assert site.servers() == [server], "the server that ran the turn is the only one"
        assert working.wait(240) == 0
    assert (site.prompts(run), site.requests(run)) == (1, 1)
    assert [(one["run"], one["state"], one["restarts"]) for one in site.runs(issue)] == [(run, "succeeded", 0)]


def test_a_failed_implement_and_an_approval_close_nothing(site: Site) -> None:
    failed = outcome_text(result="failed", summary="I cannot")
    issue = site.add("fail", "policy:asked", behaves=lambda _: Reply(failed))
    assert site.work_until_idle(issue) == 0
    assert (site.issue(issue)["status"], "ashep:parked" in site.issue(issue)["labels"]) == ("blocked", True)
    site.label(issue, "human:approved")
    assert site.work_until_idle(issue) == 0
    seen = site.issue(issue)
    assert seen["status"] == "blocked"
    assert "ashep:parked" in seen["labels"]
    assert len(site.runs(issue)) == 1


@pytest.mark.promise("Q2")
def test_an_agent_that_approves_its_own_work_passes_nothing(site: Site) -> None:
    def approves(ask: ModelRequest) -> Reply:
        later = f"(sleep 9; b''d label add {issue} human:approved) >/dev/null 2>&1 &"
        calls = (
            Call("bash", {"command": f"bd label add {issue} human:approved", "description": "refused by a rule"}),
            Call("bash", {"command": f"b''d label add {issue} human:approved", "description": "around the rule"}),
            Call("bash", {"command": later, "description": "when the question stands"}),
        )
        return Reply(calls=(calls[len(ask.results)],)) if len(ask.results) < len(calls) else Reply(outcome_text())

    issue = site.add("approve yourself", "policy:asked", behaves=approves)
    with site.working(issue) as working:
        working.says("waits for a person")
        working.says("which is no person")
        taken_off = until(
            lambda: "human:approved" not in (seen := site.issue(issue))["labels"] and seen, 20, lambda: working.text
        )
        assert taken_off["status"] == "blocked"
        # a name that begins as ashep's own do is no person either, wherever it runs
        site.label(issue, "human:approved", actor="ashep-somewhere")
        until(lambda: working.text.count("which is no person") == 2, 20, lambda: working.text)
        until(lambda: "human:approved" not in site.issue(issue)["labels"], 20, lambda: working.text)
        seen = site.issue(issue)
        assert seen["status"] == "blocked"
        assert any("Only a person's label answers" in comment["text"] for comment in seen["comments"])
        site.label(issue, "human:approved")
        working.says("closed by shepherd", 30)
    added = [event for event in site.journal(issue) if event["type"] == "PersonAnswered"]
    assert [event["actor"] for event in added] == ["pat"]


@pytest.mark.promise("P14")
def test_who_is_not_named_approves_nothing_and_chooses_nothing(site: Site) -> None:
    site.config("people: {tracker: [PAT]}")
    try:
        issue = site.add("approve me by name", "policy:asked")
        flags = ("--title=chosen by another", "--type=task", "--labels=policy:asked", "--silent")
        other = site.bd("create", *flags, actor="bob").strip()
        with site.working(issue) as working:
            working.says("waits for a person")
            until(lambda: "needs:human_approval" in site.issue(issue)["labels"], 60, lambda: working.text)
            site.label(issue, "human:approved", actor="bob")
            working.says("who is not named in `people`")
            until(lambda: "human:approved" not in site.issue(issue)["labels"], 20, lambda: working.text)
            words = "bob is not named in `people.tracker`"
            until(lambda: any(words in one["text"] for one in site.issue(issue).get("comments", ())), 20)
            seen = site.issue(issue)
            site.label(issue, "human:approved")
            working.says("closed by shepherd", 30)
        assert site.work_until_idle(other) == 0
        seen = site.issue(other)
        assert (seen["status"], seen.get("labels", [])) == ("closed", []), "it went by the policy of all others"
    finally:
        site.config("")


@pytest.fixture
def seldom(site: Site) -> Iterator[Site]:
    """It looks into the tracker when it is told to: nobody waits for a poll."""
    site.config("", poll="10m")
    yield site
    site.config("")


@pytest.mark.promise("G5")
def test_an_approval_is_seen_soon(seldom: Site) -> None:
    site, issue = seldom, seldom.add("approve me", "policy:asked")
    with site.working(issue) as working:
        working.says("waits for a person")
        until(lambda: "needs:human_approval" in site.issue(issue)["labels"], 60)
        time.sleep(4)  # its comment is posted, and it looks rarely now
        site.label(issue, "human:approved")
        labelled = time.monotonic()
        took = working.says("pat answered approved", 90) - labelled
        working.says("closed by shepherd", 60)
    print(f"an approval was seen {took:.2f} s after the label, 2 s on a machine that has nothing else to do")


@pytest.mark.promise("G5")
def test_an_agent_cannot_move_its_issue_past_what_a_person_is_asked(site: Site) -> None:
    issue = site.add("guard me", "policy:asked")
    with site.working(issue) as working:
        working.says("waits for a person")
        until(lambda: "needs:human_approval" in site.issue(issue)["labels"], 20)
        before = site.issue(issue)
        site.bd("label", "add", issue, "phase:implement", actor="ashep-agent")
        working.says("ashep-agent set the label phase:implement")
        site.bd("close", issue, "--force", actor="ashep-agent")
        working.says("ashep-agent set the status closed")
        until(lambda: (seen := site.issue(issue))["status"] == "blocked" and seen["labels"] == before["labels"], 20)
        assert site.issue(issue)["assignee"] == before["assignee"]
        site.label(issue, "human:approved")
        working.says("closed by shepherd")
    kinds = [record["type"] for record in site.journal(issue)]
    assert kinds.count("AuthorsRead") == 3, "of its policy's label, and of each change"
    assert "ashep-agent set the label phase:implement" in site.ashep("why", issue)
    told = [comment["text"] for comment in json.loads(site.bd("comments", issue, "--json"))]
    assert sum("Put back: ashep-agent" in text for text in told) == 2


@pytest.mark.promise("P1")
def test_a_person_who_closes_just_before_our_write_is_not_overwritten(site: Site, tmp_path: Path) -> None:
    issue = site.add("close me", "policy:asked")
    flag, wrapper = tmp_path / "flag", tmp_path / "bd"
    flag.touch()
    wrapper.write_text(f"""#!/bin/sh
case "$*" in *if-status*)
  if [ -e {flag} ]; then rm {flag}; {site.bd_program} --actor=pat close {issue} --force --reason "by hand" >&2; fi;;
esac
exec {site.bd_program} "$@"
""")
    wrapper.chmod(0o755)
    site.command([str(wrapper)])
    try:
        assert site.work_until_idle(issue) == 0
    finally:
        site.command([str(site.bd_program)])
    assert not flag.exists(), "the person acted between our read and our write"
    seen = site.issue(issue)
    assert (seen["status"], seen["close_reason"]) == ("closed", "by hand")
    assert any(record["type"] == "GuardRefused" for record in site.journal(issue))
    closed = [record for record in site.journal(issue) if record["type"] == "IssueClosed"]
    assert [record["by"] for record in closed] == ["somebody"]


@pytest.mark.promise("R12")
def test_created_issues_stand_in_bd_before_the_transition(site: Site) -> None:
    body = '{"result": "success", "summary": "done", "created_issues": [{"title": "found -- it\'s", "priority": 3}]}'
    issue = site.add("find more", behaves=lambda _: Reply(f"```json\n{body}\n```\n"))
    assert site.work_until_idle(issue) == 0
    records = site.journal(issue)
    created = next(record for record in records if record["type"] == "IssueCreated")
    closing = [r["seq"] for r in records if r["type"] == "WriteIssue" and r["kind"] == "close"]
    assert created["seq"] < closing[0]
    found = site.issue(created["id"])
    assert (found["title"], found["priority"]) == ("found -- it's", 3)
    assert [(one["id"], one["dependency_type"]) for one in found["dependencies"]] == [(issue, "discovered-from")]
    assert found["status"] == "blocked", "deeper than the policy allows"
    assert "ashep:parked" in found["labels"]


PROPOSED = """I looked.

```yaml
checks:
- {id: readme, type: file_exists, description: d, verify: {path: a.txt}}
```
"""


@pytest.mark.promise("F40")
@pytest.mark.usefixtures("managed")
def test_checks_are_proposed_shown_and_written(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    issue = site.add("suggest something")
    monkeypatch.setitem(BEHAVES, "", lambda _: Reply(PROPOSED))
    servers = site.servers()
    said = site.run(sys.executable, "-m", "ashep", "criteria", issue, "--suggest", "--yes")
    assert said.startswith("```yaml\nchecks:\n- {id: readme")
    assert f"{issue}: 1 check, hash " in said
    assert site.issue(issue)["acceptance_criteria"] == PROPOSED.removeprefix("I looked.\n\n")
    assert site.servers() == servers, "a server that runs goes on, one that was started for this is ended"
    site.living().says(f"{issue} closed by shepherd", 90)


def test_a_dry_run_asks_a_server_that_runs_for_its_agents(site: Site) -> None:
    issue, registry = site.add("who would do it?"), site.folder / "agents.yaml"
    site.rest()

    def held() -> str:
        seen = json.loads(site.ashep("work", issue, "--dry-run", "--json"))
        return next((one["why"] for one in seen["held"] if one["issue"] == issue), "")

    assert held() == ""
    with site.altered({registry: registry.read_text().replace("agent_slug: build", "agent_slug: nobody")}):
        assert "nobody" in held()
    site.living().says(f"{issue} closed by shepherd", 90)
