"""Suite of the tracker: each sentence of the contract in `ashep.ports.tracker.Tracker` that a test can hold it to.

`from ashep.extras.testing.trackers import *` in a test file, next to a fixture `world` that gives a `TrackerWorld`,
holds a tracker to it. The tests of ashep hold the one in memory and the one over the real bd to the very same.
"""

from datetime import UTC, timedelta

import anyio
import pytest

from ashep.core.facts.tracker import NewIssue, Stamp
from ashep.errors import ClaimLost, GuardTripped, TrackerRefused
from ashep.extras.testing.worlds import ACTOR, STAMP, TrackerWorld, later, needs, shown
from ashep.extras.testing.worlds import anyio_backend as anyio_backend
from ashep.ports.tracker import ClaimRequest, Creation, Dependency, IssueText, Look, Tracker, Update
from ashep.ports.user_classes import misfits

pytestmark = pytest.mark.anyio
RAW = "-n 0 --json\n--\tä€ \u2028 \x1b[31mred\x07 \u202etxt.exe\u2066\r\nend"
CLEAN = "-n 0 --json\n--\tä€ \u2028 [31mred txt.exe\nend"


async def test_every_method_can_be_called_as_the_port_says(world: TrackerWorld) -> None:
    assert list(misfits(type(world.tracker), Tracker)) == []
    assert world.tracker.actor == ACTOR


# --- reading ---


def assert_in_order(look: Look, *ids: str) -> None:
    """Exactly these are ready, by priority and then the oldest first; those of one second come in no order."""
    created = {issue.issue.id: (issue.issue.priority, issue.issue.created_at) for issue in look.issues}
    keys = [created[issue] for issue in look.ready]
    assert (set(look.ready), keys) == (set(ids), sorted(keys))


async def test_check_says_what_is_there(world: TrackerWorld) -> None:
    info = await world.tracker.check()
    assert (info.prefix, info.journal) == ("t", False)
    assert info.version
    assert info.location


async def test_a_look_shows_every_issue_that_is_not_closed(world: TrackerWorld) -> None:
    needs(world, "blocks", "parents", "words")
    words = IssueText(description="what\nand why", design="how", acceptance="when", notes="also")
    first = world.add("First", type="bug", priority=0, labels=("z", "a"), text=words)
    waits = world.add("Waits", blocked_by=(first,))
    child = world.add("Child", parent=first)
    closed = world.add("Closed")
    freed = world.add("Freed", blocked_by=(closed,))
    for status in ("in_progress", "blocked", "deferred"):
        world.add(f"Is {status}", status=status, id=f"t-{status.replace('_', '')}")
    world.person_sets(closed, "person", status="closed")
    world.person_sets(freed, "person", assignee="somebody")
    world.person_comments(first, "person", "hello")

    look = await world.tracker.look()

    seen = {issue.issue.id: issue for issue in look.issues}
    assert set(seen) == {first, waits, child, freed, "t-inprogress", "t-blocked", "t-deferred"}
    issue = seen[first].issue
    assert (issue.title, issue.type, issue.priority, issue.status) == ("First", "bug", 0, "open")
    assert (issue.labels, issue.comments, issue.assignee, issue.stamp) == (("a", "z"), 1, None, None)
    assert issue.created_at.tzinfo == UTC
    assert seen[first].text.title == "First"
    text = (await shown(world.tracker, first)).text
    assert (text.title, text.description, text.design) == ("First", "what\nand why", "how")
    assert (text.acceptance, text.notes, len(text.comments), text.left_out) == ("when", "also", 1, ())
    assert seen[waits].issue.blocked_by == (first,)
    assert seen[waits].text.dependencies == (Dependency(first, "blocks", "First", "open"),)
    assert seen[child].text.dependencies == (Dependency(first, "parent-child", "First", "open"),)
    assert seen[child].issue.blocked_by == ()
    assert seen[freed].issue.blocked_by == (closed,)  # open or not
    assert seen["t-deferred"].issue.status == "deferred"
    # by priority, then the oldest first; an open issue that has an assignee is still there (facts/beads.md 5)
    assert_in_order(look, first, child, freed)


async def test_children_of_a_blocked_parent_are_not_ready(world: TrackerWorld) -> None:
    needs(world, "blocks", "parents")
    blocker = world.add("Blocker")
    parent = world.add("Parent", blocked_by=(blocker,))
    child = world.add("Child", parent=parent)
    stopped = world.add("Only its status says so", status="blocked")
    ready = world.add("Child of that", parent=stopped)  # the status of a parent does not matter
    look = await world.tracker.look()
    assert_in_order(look, blocker, ready)
    assert {one.issue.id for one in look.issues} == {blocker, parent, child, stopped, ready}


async def test_an_empty_database_is_no_error(world: TrackerWorld) -> None:
    look = await world.tracker.look()
    assert (look.ready, look.issues) == ((), ())


async def test_a_closed_issue_can_still_be_read(world: TrackerWorld) -> None:
    issue = world.add("Done")
    world.person_sets(issue, "person", status="closed")
    assert (await shown(world.tracker, issue)).issue.status == "closed"


async def test_only_an_issue_of_exactly_this_id_is_read(world: TrackerWorld) -> None:
    world.add("Long", id="t-abcdef")
    for other in ("t-abc", "abcdef", "t-nope", "", "--help"):
        assert await world.tracker.issue(other) is None


async def test_texts_from_outside_come_clean(world: TrackerWorld) -> None:
    issue = world.add("bad \x1b[2J title", text=IssueText(description=RAW))
    world.person_comments(issue, "person", RAW)
    seen = await shown(world.tracker, issue)
    assert seen.issue.title == "bad [2J title"
    assert seen.text.description == CLEAN
    [comment] = seen.text.comments
    assert (comment.author, comment.text) == ("person", CLEAN)
    assert comment.at.tzinfo == UTC


# --- claiming ---


async def test_a_claim_sets_everything_in_one_write(world: TrackerWorld) -> None:
    issue = world.add("Take me", labels=("old", "theirs"))
    request = ClaimRequest(issue, STAMP, add_labels=("phase:implement",), remove_labels=("old", "absent"))
    seen = await world.tracker.claim(request)
    assert (seen.issue.assignee, seen.issue.status, seen.issue.stamp) == (ACTOR, "in_progress", STAMP)
    assert seen.issue.labels == ("phase:implement", "theirs")
    assert (await shown(world.tracker, issue)).issue == seen.issue


async def test_one_of_two_actors_holds_an_issue(world: TrackerWorld) -> None:
    issue = world.add("Take me")
    rival = world.another("rival")
    await world.tracker.claim(ClaimRequest(issue, STAMP))
    with pytest.raises(ClaimLost):
        await rival.claim(ClaimRequest(issue, later(9), add_labels=("stolen",)))
    seen = await world.tracker.claim(ClaimRequest(issue, later(8)))  # claiming again what it holds succeeds
    assert (seen.issue.assignee, seen.issue.stamp, seen.issue.labels) == (ACTOR, later(8), ())


async def test_what_is_not_open_cannot_be_claimed(world: TrackerWorld) -> None:
    issue = world.add("Closed", status="blocked")
    with pytest.raises(ClaimLost):
        await world.tracker.claim(ClaimRequest(issue, STAMP, add_labels=("x",)))
    with pytest.raises(TrackerRefused):
        await world.tracker.claim(ClaimRequest("t-nope", STAMP))
    assert (await shown(world.tracker, issue)).issue.labels == ()


# --- guarded writes ---


async def test_an_update_writes_all_of_it(world: TrackerWorld) -> None:
    needs(world, "blocks")
    blocker = world.add("Blocker")
    issue = world.add("Work", labels=("theirs",), blocked_by=(blocker,))
    world.person_comments(issue, "person", "hello")
    await world.tracker.look()
    await world.tracker.claim(ClaimRequest(issue, later(1), add_labels=("phase:a",)))
    update = Update(
        issue, "in_progress", ACTOR, STAMP, "blocked", None, ("phase:b", 'needs, a "person"'), ("phase:a", "absent")
    )
    seen = await world.tracker.update(update)
    assert (seen.issue.status, seen.issue.assignee, seen.issue.stamp) == ("blocked", None, STAMP)
    assert seen.issue.labels == ('needs, a "person"', "phase:b", "theirs")
    assert (seen.issue.blocked_by, seen.issue.comments) == ((blocker,), 1)
    assert (await shown(world.tracker, issue)).issue == seen.issue


async def test_a_guard_that_trips_writes_nothing(world: TrackerWorld) -> None:
    issue = world.add("Work")
    held = await world.tracker.claim(ClaimRequest(issue, STAMP, add_labels=("phase:a",)))
    for status, assignee in (("open", ACTOR), ("in_progress", None), ("in_progress", "somebody")):
        with pytest.raises(GuardTripped):
            await world.tracker.update(
                Update(issue, status, assignee, later(9), "closed", None, ("phase:b",), ("phase:a",))
            )
        assert (await shown(world.tracker, issue)).issue == held.issue


async def test_a_person_who_closes_first_is_not_overwritten(world: TrackerWorld) -> None:
    issue = world.add("Work")
    await world.tracker.claim(ClaimRequest(issue, STAMP))
    world.person_sets(issue, "person", status="closed")
    with pytest.raises(GuardTripped):
        await world.tracker.update(Update(issue, "in_progress", ACTOR, later(9), "in_progress", ACTOR, ("phase:b",)))
    seen = await shown(world.tracker, issue)
    assert (seen.issue.status, seen.issue.stamp, seen.issue.labels) == ("closed", STAMP, ())


async def test_an_issue_is_not_closed_over_an_open_blocker(world: TrackerWorld) -> None:
    needs(world, "blocks")
    blocker = world.add("Blocker")
    issue = world.add("Work", blocked_by=(blocker,))
    close = Update(issue, "open", None, STAMP, "closed", None, ("done",))
    with pytest.raises(TrackerRefused):
        await world.tracker.update(close)
    assert (await shown(world.tracker, issue)).issue.stamp is None
    world.person_sets(blocker, "person", status="closed")
    assert (await world.tracker.update(close)).issue.status == "closed"
    assert (await world.tracker.look()).issues == ()


async def test_nothing_is_written_under_the_beginning_of_an_id(world: TrackerWorld) -> None:
    issue = world.add("Long", id="t-abcdef")
    tracker = world.tracker
    for write in (
        lambda: tracker.claim(ClaimRequest("t-abc", STAMP)),
        lambda: tracker.update(Update("t-abc", "open", None, STAMP, "closed", None)),
        lambda: tracker.relabel("t-abc", ("x",), ()),
        lambda: tracker.comment("t-abc", "text", "<!-- ashep:1 -->"),
    ):
        with pytest.raises(TrackerRefused):
            await write()
    seen = await shown(tracker, issue)
    assert (seen.issue.status, seen.issue.labels, seen.issue.stamp, seen.text.comments) == ("open", (), None, ())


# --- labels ---


async def test_relabelling_changes_labels_only_and_can_be_repeated(world: TrackerWorld) -> None:
    issue = world.add("Work", labels=("a", "b"))
    await world.tracker.relabel(issue, (), ())
    for _ in range(2):
        await world.tracker.relabel(issue, ("c",), ("a", "absent"))
    seen = await shown(world.tracker, issue)
    assert (seen.issue.labels, seen.issue.status, seen.issue.assignee) == (("b", "c"), "open", None)
    with pytest.raises(TrackerRefused):
        await world.tracker.relabel("t-nope", ("c",), ())


async def test_changes_name_who_made_them(world: TrackerWorld) -> None:
    issue = world.add("Work", labels=("old",), actor="author")
    world.add("Other", labels=("else",))
    await world.tracker.claim(ClaimRequest(issue, STAMP, ("human:approved",)))
    world.person_sets(issue, "person", add_labels=("human:approved",))  # there already: no record (facts/beads.md 9)
    await anyio.sleep(world.tick)  # those of one moment come in no order
    world.person_sets(issue, "ann", remove_labels=("old", "absent"))
    world.person_sets(issue, "ashep-agent", status="open", assignee="bob")
    world.person_sets(issue, "pat", status="closed")
    world.person_sets(issue, "ann", status="closed")  # it is: nobody ever knows that she said so
    changes = await world.tracker.changes(issue)
    assert {change.what: change.actor for change in changes} == {
        ("added", "old"): "author", ("added", "human:approved"): ACTOR, ("status", "in_progress"): ACTOR,
        ("assignee", ACTOR): ACTOR, ("removed", "old"): "ann", ("status", "open"): "ashep-agent",
        ("assignee", "bob"): "ashep-agent", ("status", "closed"): "pat",
    }  # fmt: skip
    assert len({change.id for change in changes}) == len(changes) == 8
    assert list(changes) == sorted(changes, key=lambda one: one.at, reverse=True)
    assert await world.tracker.changes("t-nope") == ()
    again = Update(issue, "closed", "bob", later(20), "in_progress", ACTOR)  # what others did can be put back
    assert (await world.tracker.update(again)).issue.status == "in_progress"
    await world.tracker.heartbeat(issue)


# --- comments ---


async def test_a_comment_arrives_whole_and_ends_with_its_marker(world: TrackerWorld) -> None:
    issue = world.add("Work")
    marker = "<!-- ashep:key-1 -->"
    assert not await world.tracker.commented(issue, marker)
    await world.tracker.comment(issue, RAW, marker)
    assert await world.tracker.commented(issue, marker)
    seen = await shown(world.tracker, issue)
    [comment] = seen.text.comments
    assert (comment.author, comment.text) == (ACTOR, f"{CLEAN}\n{marker}")
    assert seen.issue.comments == 1
    assert not await world.tracker.commented(issue, "<!-- ashep:key-11 -->")
    with pytest.raises(TrackerRefused):
        await world.tracker.comment("t-nope", "text", marker)


async def test_a_marker_that_a_person_quotes_is_none(world: TrackerWorld) -> None:
    issue = world.add("Work")
    world.person_comments(issue, "person", "what is\n> <!-- ashep:key-1 -->\nfor?")
    assert not await world.tracker.commented(issue, "<!-- ashep:key-1 -->")


# --- creating ---


async def test_an_issue_is_created_once(world: TrackerWorld) -> None:
    origin = world.add("Origin", labels=("theirs",))
    creation = Creation("t-abcd2345", NewIssue('--status=closed "$(id)"', RAW, "bug", 1), origin, STAMP)
    for _ in range(2):
        await world.tracker.create(creation)
    look = await world.tracker.look()
    assert [issue.issue.id for issue in look.issues].count("t-abcd2345") == 1
    assert_in_order(look, "t-abcd2345", origin)  # discovered-from does not block
    seen = await shown(world.tracker, "t-abcd2345")
    assert (seen.issue.title, seen.issue.type, seen.issue.priority) == ('--status=closed "$(id)"', "bug", 1)
    assert (seen.issue.status, seen.issue.labels, seen.issue.stamp) == ("open", (), STAMP)
    assert seen.text.description == CLEAN
    assert [(dependency.on, dependency.type) for dependency in seen.text.dependencies] == [(origin, "discovered-from")]
    assert seen.issue.blocked_by == ()


async def test_a_parked_issue_is_created_blocked_and_labelled(world: TrackerWorld) -> None:
    origin = world.add("Origin")
    parked = Creation("t-abcd2345", NewIssue("Too deep"), origin, STAMP, parked=True, labels=("ashep:parked", "b"))
    for _ in range(2):
        await world.tracker.create(parked)
    assert (await world.tracker.look()).ready == (origin,)
    seen = await shown(world.tracker, "t-abcd2345")
    assert (seen.issue.status, seen.issue.labels) == ("blocked", ("ashep:parked", "b"))


async def test_what_cannot_be_created_is_refused(world: TrackerWorld) -> None:
    origin = world.add("Origin")
    taken = world.add("Somebody's", id="t-abcd2345")
    stamped = "t-other234"
    await world.tracker.create(Creation(stamped, NewIssue("Ours"), origin, STAMP))
    refused = [
        Creation(taken, NewIssue("x"), origin, STAMP),
        Creation(stamped, NewIssue("x"), origin, Stamp("instance-2", 7, run=STAMP.run)),
        Creation("other-abcd2345", NewIssue("x"), origin, STAMP),
        Creation("t-abcd2346", NewIssue("   "), origin, STAMP),
        Creation("t-abcd2346", NewIssue("x" * 501), origin, STAMP),
        Creation("t-abcd2346", NewIssue("nul \0"), origin, STAMP),
        Creation("t-abcd2346", NewIssue("x", type="nonsense"), origin, STAMP),
        Creation("t-abcd2346", NewIssue("x", priority=9), origin, STAMP),
        Creation("t-abcd2346", NewIssue("x"), "t-nope", STAMP),
    ]
    for creation in refused:
        with pytest.raises(TrackerRefused):
            await world.tracker.create(creation)
    assert (await shown(world.tracker, taken)).issue.stamp is None
    assert await world.tracker.issue("t-abcd2346") is None


# --- leases ---


async def test_a_heartbeat_renews_a_lease_and_is_refused_to_who_has_none(world: TrackerWorld) -> None:
    needs(world, "leases")
    issue = world.add("Work")
    with pytest.raises(ClaimLost):
        await world.tracker.heartbeat(issue)
    await world.tracker.claim(ClaimRequest(issue, STAMP))
    first = (await shown(world.tracker, issue)).lease
    assert first is not None
    await anyio.sleep(world.tick)
    await world.tracker.heartbeat(issue)
    (seen,) = (await world.tracker.look()).issues
    assert seen.lease is not None
    assert seen.lease > first
    with pytest.raises(ClaimLost):
        await world.another("ashep-other").heartbeat(issue)
    world.person_sets(issue, "person", status="blocked")
    with pytest.raises(ClaimLost):
        await world.tracker.heartbeat(issue)
    assert (await shown(world.tracker, issue)).lease is None
    world.person_sets(issue, "person", status="in_progress")  # no lease comes of that, but a heartbeat makes one
    assert (await shown(world.tracker, issue)).lease is None
    await world.tracker.heartbeat(issue)
    assert (await shown(world.tracker, issue)).lease is not None


async def test_a_lease_that_has_not_run_out_is_not_reclaimed(world: TrackerWorld) -> None:
    issue = world.add("Work")
    other = world.another("ashep-other")
    await other.claim(ClaimRequest(issue, STAMP))
    assert not await world.tracker.reclaim(issue, "ashep-other", timedelta(0))
    assert not await world.tracker.reclaim(issue, "somebody", timedelta(0))
    await other.heartbeat(issue)
    assert (await shown(world.tracker, issue)).issue.assignee == "ashep-other"


# --- hints ---


async def test_a_hint_comes_for_what_others_write_and_not_for_ours(world: TrackerWorld) -> None:
    needs(world, "hints")
    issue = world.add("Work")
    hints: list[None] = []
    arrived = anyio.Event()

    async def listen() -> None:
        async for hint in world.tracker.hints():
            hints.append(hint)
            arrived.set()

    async with anyio.create_task_group() as group:
        group.start_soon(listen)
        await anyio.sleep(world.settle)
        await world.tracker.claim(ClaimRequest(issue, STAMP))
        await world.tracker.comment(issue, "text", "<!-- ashep:1 -->")
        await anyio.sleep(world.settle)
        assert hints == []
        world.person_comments(issue, "person", "hello")
        with anyio.fail_after(20):
            await arrived.wait()
        group.cancel_scope.cancel()
    await world.tracker.aclose()
