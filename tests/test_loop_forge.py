"""The whole daemon with a forge over HTTP: what CI, people and GitHub's interface say there reaches the issue.

The time is the machine's own, for a server does not live in virtual time; everything else is in memory.
"""

import random
from pathlib import Path

import anyio
import pytest

from ashep.adapters.forges import forge_of
from ashep.core.facts.delivery import PullRequestMerged, PullRequestReturned
from ashep.core.facts.issues import IssueParked
from ashep.core.policy.landing import ForgeSettings
from ashep.core.state.branches import branch_of
from ashep.daemon.effects.pulls import ForgeAdapters
from ashep.extras.simulation.memory.workspaces import MemoryWorkspaces
from ashep.ports.landing import NotPushed, Pushed
from ashep.redaction import Redaction
from tests.fake_forge import REPOSITORY, TOKEN, FakeForge, Pull
from tests.loop_world import Points, World, policy
from tests.memory import MemoryForge

BRANCH = branch_of("t-1")
CONFIG = """\
version: 1
worker: {{workspace: worktree}}
monitor: {{check_every: 50ms}}
landing:
  mode: pull_request
  forge: {{type: {kind}, repository: acme/tools, url: "{url}/{kind}", poll_every: 100ms, token_env: TOKEN}}
"""
IMPLEMENT: dict[str, object] = {"name": "implement", "access": "write", "verify": True, "max_visits": 4}


class Site(MemoryForge):
    """A remote in memory, of which the forge over HTTP knows what was pushed there."""

    def __init__(self, workspaces: MemoryWorkspaces, forge: FakeForge) -> None:
        super().__init__(workspaces)
        self.forge = forge

    async def push(self, branch: str, commit: str, base: str) -> Pushed | NotPushed:
        pushed = await super().push(branch, commit, base)
        if isinstance(pushed, Pushed):
            self.forge.heads[branch] = commit
            for pull in self.forge.pulls:
                pull.head, pull.checks = commit, pull.checks if pull.head == commit else {}
        return pushed


class Quick(random.Random):
    """What lies between the daemon and the world in memory costs no time: it is the machine's own here."""

    def uniform(self, a: float, b: float) -> float:
        return 0.0


class Overheard(World):
    """A world whose pull requests are at a forge over HTTP."""

    def _pulls(self, points: Points) -> object:  # type: ignore[override]
        assert isinstance(self.forge, Site)
        site = self.forge

        def made(settings: ForgeSettings) -> ForgeAdapters:
            return ForgeAdapters(forge_of(settings, Redaction(), {"TOKEN": TOKEN}), site)

        return made


async def until_asked(site: FakeForge, heads: set[str]) -> Pull:
    """Wait for work that was not there before, and give its pull request."""
    while not site.pulls or site.pulls[0].head in heads:
        await anyio.sleep(0.02)
    heads.add(site.pulls[0].head)
    return site.pulls[0]


async def people(site: FakeForge) -> None:
    """CI fails on the first work, a person wants changes of the second, and the third is merged."""
    heads = set[str]()
    pull = await until_asked(site, heads)
    pull.checks = {"build": "failing"}
    pull = await until_asked(site, heads)
    pull.checks = {"build": "passing"}
    site.says(pull, "remark", "ann", "Rename this.", path="calc.py")
    await anyio.sleep(0.5)  # of what is said while a read is under way, it may show the later part only
    site.says(pull, "changes_requested", "ann", "Not yet.")
    pull = await until_asked(site, heads)
    site.says(pull, "approved", "ann")
    pull.state, pull.by = "merged", "ann"


def overheard(folder: Path, site: FakeForge, kind: str) -> World:
    """A world with one issue."""
    world = Overheard(folder, config=CONFIG.format(url=site.url, kind=kind), policies=policy(IMPLEMENT))
    world.workspaces = MemoryWorkspaces({"calc.py": "1"})
    world.forge = Site(world.workspaces, site)
    world.delay, world.random = 0.05, Quick()
    world.tracker.add("an issue")
    return world


@pytest.mark.slow
@pytest.mark.may_block  # the world of these tests keeps its files itself
@pytest.mark.parametrize("kind", ["github", "gitlab", "gitea"])
async def test_ci_a_review_and_a_merge_come_back_over_http(folder: Path, kind: str) -> None:
    with FakeForge().listening() as site:
        world = overheard(folder, site, kind)
        await world.finish(patience=40, beside=lambda: people(site))
        assert [pull.branch for pull in site.pulls if pull.repository == REPOSITORY] == [BRANCH]
        returned = world.bodies(PullRequestReturned)
        assert [fact.kind for fact in returned] == ["ci", "review"]
        assert "build" in returned[0].why
        assert "ann requested changes" in returned[1].why
        (merged,) = world.bodies(PullRequestMerged)
        assert merged.why.startswith("ann merged https://forge.example/acme/tools/")
        prompts = [message.text for one in world.runner.sessions.values() for message in one.messages]
        assert "ann says, about calc.py:\nRename this." in prompts[2]


@pytest.mark.slow
@pytest.mark.may_block  # the world of these tests keeps its files itself
async def test_a_pull_request_that_is_gone_parks_the_issue(folder: Path) -> None:
    with FakeForge().listening() as site:
        world = overheard(folder, site, "github")

        async def deleted() -> None:
            await until_asked(site, set())
            site.pulls.clear()

        await world.live(
            lambda: bool(world.world.flows) and world.stands("t-1") == "parked", patience=40, beside=deleted
        )
        (parked,) = world.bodies(IssueParked)
        assert parked.code == "landing_closed"
