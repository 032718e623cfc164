"""Ten stories at once on the real git, with agents in memory: all land, none conflicts over the sprint status."""

import re
import subprocess
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from ashep import factories
from ashep.adapters.git.user_work_tree import GitTree
from ashep.adapters.system.clock import RealClock
from ashep.config import load, write_starter
from ashep.core.state.branches import branch_of
from ashep.daemon.daemon import Adapters, WorkOptions, daemon
from ashep.extras.demo.scripted_model import outcome_text
from ashep.extras.demo.state_dir import journal as records
from ashep.extras.demo.story_scenario import story
from ashep.extras.simulation.memory.runner import MemoryRunner, Play, Prompted
from ashep.extras.simulation.memory.tracker import MemoryTracker
from ashep.journal.writer import Journal

pytestmark = [pytest.mark.usefixtures("git_alone"), pytest.mark.slow, pytest.mark.may_block]

COUNT = 10
KEYS = [f"1-{number}-part" for number in range(1, COUNT + 1)]
SPRINT = "# people read this\ndevelopment_status:\n  epic-1: backlog  # begun soon\n" + "".join(
    f"  {key}: ready-for-dev\n" for key in KEYS
)
CONFIG = f"version: 1\nworker: {{workspace: worktree, max_concurrent_runs: {COUNT}}}\n"
VERDICTS = {"reviewer": "approve", "arbiter": "pass"}


def git(project: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=project, check=True, capture_output=True, text=True).stdout


def planned(project: Path) -> None:
    """A project with the stories, their sprint status, and the policy."""
    stories = project / "docs" / "stories"
    stories.mkdir(parents=True)
    (stories / "sprint-status.yaml").write_text(SPRINT)
    for number, key in enumerate(KEYS, 1):
        text = story(f"1.{number}", "A part", "As a tester, I want it.", ("It is there",), ("Make it",))
        (stories / f"{key}.md").write_text(text)
    git(project, "init", "-q", "-b", "main")
    git(project, "config", "user.name", "person")
    git(project, "config", "user.email", "person@example.invalid")
    git(project, "add", ".")
    git(project, "commit", "-qm", "Stories")
    write_starter(project / ".agent-shepherd", "bmad-story")
    (project / ".agent-shepherd" / "config.yaml").write_text(CONFIG)


async def test_ten_stories_at_once_all_land_and_none_conflicts_over_the_sprint_status(tmp_path: Path) -> None:
    project = tmp_path / "project"
    planned(project)
    configuration, state = load(project / ".agent-shepherd"), project / ".agent-shepherd" / "state"
    settings, clock, journal = configuration.settings, RealClock(), Journal.open(state, RealClock().now())
    tracker = MemoryTracker(clock.now, "ashep-test", "t")
    for key in KEYS:
        tracker.add(key, id=f"t-{key}", labels=(f"story:docs/stories/{key}.md", "policy:bmad-story"))
    trees = factories.worktrees_of(project, settings)

    def agent(asked: Prompted) -> Play:
        """Whoever develops makes a file, and says of the sprint status what it likes."""
        issue, _, rest = asked.key.partition(":")[2].partition("/")
        phase, key = rest.partition(".")[0], issue.removeprefix("t-")
        if phase == "developer":
            place = state / "trees" / branch_of(issue)
            (place / f"{key}.txt").write_text(key)
            status = place / "docs" / "stories" / "sprint-status.yaml"
            status.write_text(re.sub(r": (ready-for-dev|backlog).*", ": done", status.read_text()))
        return Play(outcome_text(VERDICTS.get(phase)), delay=0.05)

    runner = MemoryRunner(clock, agent)
    parts = Adapters(
        tracker, runner, GitTree(project), clock, workspaces=lambda _: trees,
        means=lambda given, keep: replace(factories.make_delivery_adapters(project, given, keep, actor="ashep-test"),
         annotations=None),
    )  # fmt: skip
    options = WorkOptions(until_idle=True, idle_grace=timedelta(0))
    try:
        async with daemon(parts, configuration, journal, options, []) as running:
            assert await running.until(await tracker.check(), options, print) == 0
    finally:
        journal.close()
    ended = [await tracker.issue(f"t-{key}") for key in KEYS]
    assert [one is not None and one.issue.status for one in ended] == ["closed"] * COUNT
    there = partial(git, project, "show")
    done = SPRINT.replace("ready-for-dev", "done").replace("backlog", "in-progress")
    assert there("main:docs/stories/sprint-status.yaml") == done
    assert all("\nStatus: done\n" in there(f"main:docs/stories/{key}.md") for key in KEYS)
    assert all(there(f"main:{key}.txt") == key for key in KEYS)
    seen = Counter(record["type"] for record in records(project))
    assert (seen["WorkLanded"], seen["WorkConflicted"]) == (COUNT, 0)
    assert set(runner.began.values()) == {1}
    assert len(runner.began) == 3 * COUNT
