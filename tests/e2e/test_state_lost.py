"""The state folder is gone in the middle of three issues: one waits for a person, one runs, one waits for its turn.

And once more where it held the work tree in which an agent was at work.
"""

import json
import shutil
import signal
import time
from collections.abc import Iterator

import pytest

from ashep.extras.demo.scripted_model import Call, ModelRequest, Reply, outcome_text
from tests.e2e.site import Site, until

pytestmark = pytest.mark.real


def slowly(_: ModelRequest) -> Reply:
    return Reply("I think about it. " * 12 + outcome_text(), drip=0.1)


@pytest.fixture
def shared_tree(site: Site) -> Iterator[Site]:
    site.config("worker: {workspace: shared}")
    yield site
    site.config("")


@pytest.mark.promise("G2")
def test_the_state_folder_is_deleted_in_the_middle_of_three_issues(shared_tree: Site) -> None:
    site = shared_tree
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


def committing(ask: ModelRequest) -> Reply:
    if not ask.results:
        commit = "echo kept > c.txt; git add c.txt; git commit -qm c; true"
        return Reply(calls=(Call("bash", {"command": commit, "description": "work"}),))
    return Reply("I think about it. " * 12 + outcome_text(), drip=0.1)


@pytest.mark.usefixtures("managed")
def test_an_issue_whose_tree_went_with_the_state_folder_goes_on(site: Site) -> None:
    issue = site.add("runs", behaves=committing)
    with site.working(issue) as working:
        until(lambda: site.requests(f"{issue}/implement.1.1") > 1, 60, lambda: working.text)
        time.sleep(1)
        working.signal(signal.SIGKILL)
        working.wait(10)
    assert site.tree(issue).is_dir()
    shutil.rmtree(site.state)
    assert site.work_until_idle(issue) == 0
    assert site.issue(issue)["status"] == "closed"
    assert site.run("git", "show", "HEAD:c.txt") == "kept\n", "what was committed before is on the branch still"
    assert (site.prompts(f"{issue}/implement.1.1"), site.prompts(f"{issue}/implement.1.2")) == (1, 1)
