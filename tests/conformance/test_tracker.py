"""What every tracker keeps, over the one in memory and the real bd."""

from datetime import timedelta

import pytest

from ashep.errors import ClaimLost
from ashep.extras.testing.trackers import *  # noqa: F403 - its tests
from ashep.extras.testing.worlds import STAMP, TrackerWorld, shown
from ashep.ports.tracker import ClaimRequest, IssueText
from tests.conformance.trackers import MemoryWorld

# The promises of docs/SPEC.md that tests of the suite prove (tests/conformance/conftest.py marks them).
PROVES: dict[str, tuple[str, ...]] = {
    "test_a_look_shows_every_issue_that_is_not_closed": ("S1",),
    "test_a_claim_sets_everything_in_one_write": ("S2",),
    "test_one_of_two_actors_holds_an_issue": ("S3",),
    "test_an_issue_is_created_once": ("R12",),
    "test_a_guard_that_trips_writes_nothing": ("P1",),
    "test_a_person_who_closes_first_is_not_overwritten": ("P1",),
    "test_a_heartbeat_renews_a_lease_and_is_refused_to_who_has_none": ("O1",),
    "test_nothing_is_written_under_the_beginning_of_an_id": ("E8",),
}


async def test_what_nobody_sees_of_an_issue_is_counted(world: TrackerWorld) -> None:
    hidden = "all of it\u200b \U000e0041\U000e0042\x1b"
    issue = world.add(
        "Fix\u2060 it", text=IssueText(description=hidden, design=hidden, acceptance=hidden, notes=hidden)
    )
    world.person_comments(issue, "person", hidden)
    text = (await shown(world.tracker, issue)).text
    assert (text.title, text.description, text.notes) == ("Fix it", "all of it ", "all of it ")
    assert text.invisible == 1 + 5 * 3
    assert (await shown(world.tracker, world.add("\u2764\ufe0f plain"))).text.invisible == 0


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


def test_what_tests_of_a_suite_prove_is_marked(request: pytest.FixtureRequest) -> None:
    for item in request.session.items:
        proves = getattr(getattr(item, "module", None), "PROVES", None)
        if isinstance(item, pytest.Function) and proves is not None:
            told = [one for mark in item.iter_markers("promise") for one in mark.args]
            assert told == list(proves.get(item.originalname, ())), item.nodeid
