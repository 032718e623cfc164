"""No effect follows belief that is too old: a lease is asked for before it is acted on."""

from datetime import timedelta
from pathlib import Path

import pytest

from ashep.core.facts import commands as c
from ashep.core.facts.tracker import CommentPosted, EffectFailed, LeaseLost, Stamp
from ashep.daemon.effects.executor import Effects
from ashep.daemon.effects.trees import TreeEffects
from ashep.daemon.leases import LIMIT, Leases
from ashep.errors import TrackerUnavailable
from ashep.extras.simulation.memory.runner import MemoryRunner, Play
from ashep.extras.simulation.memory.tracker import MemoryTracker
from ashep.extras.simulation.memory.work_tree import MemoryTree
from ashep.journal.blobs import Blobs
from ashep.ports.tracker import ClaimRequest
from tests.core.given import ME
from tests.core.playbook import Playbook
from tests.memory import ManualClock

WORLD = Playbook().looked().world
"""An issue, `t-1`, is in progress by our own last write."""


class Site:
    """What an effect touches."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.tracker = MemoryTracker(self.clock.now, ME)
        self.tracker.add("one", id="t-1")
        runner = MemoryRunner(self.clock, lambda _: Play())
        leases = Leases(self.tracker, self.clock)
        self.effects = Effects(
            tracker=self.tracker, runner=runner, trees=TreeEffects(MemoryTree()), blobs=Blobs(folder), leases=leases
        )

    async def comment(self) -> list[type]:
        """Post a comment, as a daemon that believes it holds the issue; the kinds of its answers."""
        command = c.PostComment("t-1/comment/x", "t-1", "x", "text")
        return [type(fact) for fact in await self.effects.execute(command, lambda: WORLD, probe=False)]

    @property
    def beats(self) -> int:
        return self.tracker.calls["heartbeat"]


@pytest.fixture
async def site(tmp_path: Path) -> Site:
    site = Site(tmp_path)
    await site.tracker.claim(ClaimRequest("t-1", Stamp("instance", 1)))
    return site


@pytest.mark.promise("O1")
async def test_a_lease_that_is_too_old_is_renewed_before_an_effect(site: Site) -> None:
    assert await site.comment() == [CommentPosted]
    assert site.beats == 1  # after a start nothing is known
    site.clock.move(timedelta(seconds=LIMIT))
    assert await site.comment() == [CommentPosted]
    assert site.beats == 1
    site.clock.move(timedelta(seconds=1))
    assert await site.comment() == [CommentPosted]
    assert site.beats == 2


@pytest.mark.promise("O1")
async def test_a_machine_that_slept_is_asked_by_the_wall_clock(site: Site) -> None:
    await site.comment()
    site.clock.jump(timedelta(minutes=5))  # the monotonic clock stood still
    await site.comment()
    assert site.beats == 2


@pytest.mark.promise("O1")
async def test_nothing_is_done_to_an_issue_that_was_lost(site: Site) -> None:
    await site.comment()
    site.clock.move(timedelta(minutes=20))
    site.tracker.person_sets("t-1", "bob", assignee="bob")
    assert await site.comment() == [LeaseLost, EffectFailed]
    assert site.tracker.calls["comment"] == 1


async def test_nothing_is_done_while_nobody_can_say_whose_it_is(site: Site) -> None:
    site.tracker.fail("heartbeat", TrackerUnavailable("no answer"))
    answer = await site.effects.execute(c.PostComment("t-1/comment/x", "t-1", "x", "text"), lambda: WORLD, probe=False)
    assert isinstance(answer[-1], EffectFailed)
    assert answer[-1].infra
    assert site.tracker.calls["comment"] == 0
