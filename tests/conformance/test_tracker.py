"""What every tracker keeps, over the one in memory and the real bd."""

from datetime import timedelta

import pytest

from ashep.errors import ClaimLost
from ashep.ports.tracker import ClaimRequest
from ashep.testing.trackers import *  # noqa: F403 - its tests
from ashep.testing.worlds import STAMP, shown
from tests.conformance.trackers import MemoryWorld


async def test_a_lease_that_ran_out_is_reclaimed_from_the_holder_that_was_named() -> None:
    world = MemoryWorld()  # a real one lasts five minutes: `make torture-real` waits for that
    issue, kept = world.add("Work"), world.add("Kept")
    other = world.another("ashep-other")
    for one in (issue, kept):
        await other.claim(ClaimRequest(one, STAMP, add_labels=("phase:implement",)))
    over = timedelta(minutes=-6)
    assert not await world.tracker.reclaim(issue, "somebody", over)
    assert await world.tracker.reclaim(issue, "ashep-other", over)
    view = (await shown(world.tracker, issue)).issue
    assert (view.status, view.assignee, view.stamp) == ("open", None, STAMP)
    assert view.labels == ("phase:implement",)
    assert (await shown(world.tracker, kept)).issue.assignee == "ashep-other"
    with pytest.raises(ClaimLost):
        await other.heartbeat(issue)
    assert not await world.tracker.reclaim(issue, "ashep-other", over)
