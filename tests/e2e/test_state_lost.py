"""The state folder is gone in the middle of three issues: one waits for a person, one runs, one waits for its turn."""

import json
import shutil
import signal
import time

import pytest

from ashep.demo.model import Ask, Reply, outcome_text
from tests.e2e.site import Site, until

pytestmark = pytest.mark.real


def slowly(_: Ask) -> Reply:
    return Reply("I think about it. " * 12 + outcome_text(), drip=0.1)


def test_the_state_folder_is_deleted_in_the_middle_of_three_issues(site: Site) -> None:
    asks = site.add("asks a person", "policy:asked")
    with site.working(asks) as working:
        working.says("waits for a person")
        until(lambda: site.issue(asks).get("comments"), 30, lambda: working.text)
    runs, waits = site.add("runs", behaves=slowly), site.add("waits for the work tree", priority=3)
    issues = (asks, runs, waits)
    with site.working(*issues) as working:
        until(lambda: site.prompts(f"{runs}/implement.1.1"), 60, lambda: working.text)
        time.sleep(1)
        working.signal(signal.SIGKILL)
        working.wait(10)
    before = {issue: site.issue(issue) for issue in issues}
    assert [before[issue]["status"] for issue in issues] == ["blocked", "in_progress", "open"]
    shutil.rmtree(site.state)
    assert site.work_until_idle(runs) == 0
    assert site.work_until_idle(waits) == 0
    assert site.work_until_idle(asks) == 0
    assert site.issue(asks)["status"] == "blocked", "its question stands"
    site.label(asks, "human:approved")
    assert site.work_until_idle(asks) == 0
    for issue in issues:
        seen = site.issue(issue)
        assert seen["status"] == "closed", seen
        texts = [comment["text"] for comment in seen.get("comments") or []]
        assert len(set(texts)) == len(texts), texts
        assert not [label for label in seen.get("labels") or [] if label.startswith(("phase:", "needs:", "ashep:"))]
    counted = {run["run"]: site.prompts(run["run"]) for issue in issues for run in site.runs(issue)}
    assert set(counted.values()) == {1}, "each prompt of each run once"
    # what ran when the folder went is not taken for the new run: it is awaited or stopped, and another attempt is made
    assert [run["run"] for run in site.runs(runs)] == [f"{runs}/implement.1.2"]
    assert site.prompts(f"{runs}/implement.1.1") == 1
    assert json.loads(site.ashep("status", "--all", "--json"))["issues"]
