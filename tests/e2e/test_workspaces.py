"""Issues in work trees of their own, on the real git, Beads and OpenCode."""

import json
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from ashep.core.state.branches import shared_branch
from ashep.extras.demo.scripted_model import Call, ModelRequest, Reply, outcome_text
from tests.e2e.site import Site, until

pytestmark = pytest.mark.real


def writing(line: str, drip: float = 0.0) -> Callable[[ModelRequest], Reply]:
    """An agent that writes a line into a file, commits nothing, and reports; with `drip` it talks for a while first."""
    work = Call("bash", {"command": f"echo {line} >> b.txt && cat b.txt && pwd", "description": "work"})

    def behave(ask: ModelRequest) -> Reply:
        if not ask.results:
            return Reply(calls=(work,))
        said = outcome_text(summary=ask.results[-1][:300])
        return Reply("I think about it, slowly. " * 3 + said if drip else said, drip=drip)

    return behave


@pytest.fixture(params=["worktree"])
def own_trees(site: Site, request: pytest.FixtureRequest) -> Iterator[Site]:
    site.config(f"worker: {{workspace: {request.param}, max_concurrent_runs: 2}}\nlanding: {{mode: branch}}")
    yield site
    site.config("")


@pytest.mark.promise("I5")
def test_two_issues_at_once_work_apart_and_leave_the_users_tree_as_it_is(own_trees: Site) -> None:
    site = own_trees
    (site.project / "a.txt").write_text("a person is at work here\n")  # in the shared tree that would hold every run
    issues = [site.add(f"apart {line}", behaves=writing(line, drip=0.15)) for line in ("one", "two")]
    with site.working(*issues, "--until-idle", "--idle-grace", "20s") as working:
        until(lambda: all(site.prompts(f"{issue}/implement.1.1") for issue in issues), 60, lambda: working.text)
        assert working.wait(240) == 0, working.text
    assert (site.project / "a.txt").read_text() == "a person is at work here\n"
    site.run("git", "checkout", "-q", "a.txt")
    assert not (site.project / "b.txt").exists()
    for issue, line in zip(issues, ("one", "two"), strict=True):
        assert site.issue(issue)["status"] == "closed"
        branch, run = f"ashep/{issue}", f"{issue}/implement.1.1"
        assert site.run("git", "show", f"{branch}:b.txt") == f"{line}\n"
        told = site.run("git", "log", "-1", "--format=%(trailers:key=Ashep-Run,valueonly)", branch)
        assert told.strip() == run
        assert (site.prompts(run), site.tree(issue).is_dir()) == (1, True)
        sealed = [one for one in site.journal(issue) if one["type"] == "TreeSealed"]
        assert sealed[0]["tree"] == site.run("git", "rev-parse", f"{branch}^{{tree}}").strip()
        assert "on the branch" in site.ashep("why", issue)
    listed = json.loads(site.ashep("trees", "list", "--json"))["trees"]
    assert {f"ashep/{issue}" for issue in issues} <= {one["branch"] for one in listed}


@pytest.mark.promise("I5")
@pytest.mark.parametrize("own_trees", ["worktree", "place"], indirect=True)
def test_a_prompt_runs_in_the_folder_of_any_branch(own_trees: Site) -> None:
    site = own_trees
    issue = site.add("of an epic", behaves=writing("ours"))
    branch = shared_branch(f"epic {issue}: 100% =done")
    site.label(issue, f"branch:epic {issue}: 100% =done")
    assert site.work_until_idle(issue) == 0
    assert site.issue(issue)["status"] == "closed"
    assert site.run("git", "show", f"{branch}:b.txt") == "ours\n"
    assert "%" in branch
    listed = {one["branch"]: one["path"] for one in json.loads(site.ashep("trees", "list", "--json"))["trees"]}
    assert "%" not in listed[branch]


@pytest.mark.promise("I5")
@pytest.mark.parametrize("own_trees", ["worktree", "place"], indirect=True)
def test_killed_in_the_middle_of_a_run_it_goes_on_in_the_same_tree_and_seals_once(own_trees: Site) -> None:
    site = own_trees
    issue = site.add("kill me in my tree", behaves=writing("kept", drip=0.2))
    run = f"{issue}/implement.1.1"
    with site.working(issue) as working:
        until(lambda: site.requests(run) > 1, 60, lambda: working.text)
        time.sleep(0.5)
        working.signal(signal.SIGKILL)
        assert working.wait(10) == -signal.SIGKILL
    with site.working(issue, "--until-idle", "--idle-grace", "20s") as working:
        working.says("closed by shepherd")
        assert working.wait(240) == 0
    assert site.prompts(run) == 1
    assert site.run("git", "show", f"ashep/{issue}:b.txt") == "kept\n"
    assert site.run("git", "rev-list", "--count", f"HEAD..ashep/{issue}").strip() == "1"
