"""What every adapter of annotations keeps, over the one in memory and the real bd."""

from dataclasses import replace

import pytest
from pydantic import JsonValue

from ashep.adapters.beads import BeadsAnnotations
from ashep.errors import TrackerRefused
from ashep.extras.simulation.memory.annotations import MemoryAnnotations
from ashep.extras.testing.worlds import STAMP, later, shown
from ashep.ports.tracker import Annotations, ClaimRequest, Dependency, IssueDraft, IssuePatch, IssueText, Update
from tests.conformance.trackers import BeadsWorld, MemoryWorld

TEXT = "  It works.\r\n\n```yaml\nchecks: []\t# é\u2028\u202e\x07\n```\n\n"


def annotations_of(world: MemoryWorld | BeadsWorld) -> Annotations:
    if isinstance(world, MemoryWorld):
        return MemoryAnnotations(world.tracker)
    return BeadsAnnotations(world.project, (str(world.beads.program),), "Ann", 60)


@pytest.mark.promise("F40")
async def test_texts_and_metadata_stand_beside_what_a_daemon_writes(world: MemoryWorld | BeadsWorld) -> None:
    issue = world.add("Work", text=IssueText(acceptance=TEXT))
    annotations = annotations_of(world)
    seen = await annotations.read(issue)
    assert seen is not None
    assert (seen.acceptance, dict(seen.metadata)) == (TEXT, {}), "exactly as it was written"
    await world.tracker.claim(ClaimRequest(issue, STAMP, add_labels=("phase:implement",)))
    before = await shown(world.tracker, issue)
    await annotations.annotate(issue, {"verification_status": "failing", "verification_log": [{"n": 1}]})
    await annotations.annotate(issue, {"verification_status": "passing"})
    await annotations.rewrite(issue, IssuePatch(acceptance=TEXT + "More.\n"))
    after = await shown(world.tracker, issue)
    assert after.issue == before.issue, "status, assignee, labels and stamp are the daemon's"
    assert after.text.acceptance.endswith("\n\nMore.\n")
    seen = await annotations.read(issue)
    assert seen is not None
    assert seen.acceptance == TEXT + "More.\n"
    assert {key: value for key, value in seen.metadata.items() if key != "ashep"} == {
        "verification_status": "passing",
        "verification_log": [{"n": 1}],
    }


async def test_a_daemons_write_sets_keys_beside_its_stamp_and_keeps_the_others(world: MemoryWorld | BeadsWorld) -> None:
    issue = world.add("Work")
    annotations = annotations_of(world)
    await world.tracker.claim(ClaimRequest(issue, STAMP))
    await annotations.annotate(issue, {"verification_log": [{"n": 1}], "verification_status": "failing"})
    notes: dict[str, JsonValue] = {"verification_status": "passing", "ticket_files": {"created": ['a "b".py', "é"]}}
    close = Update(issue, "in_progress", world.tracker.actor, later(9), "closed", None, metadata=notes)
    closed = await world.tracker.update(close)
    assert (closed.issue.status, closed.issue.stamp) == ("closed", later(9))
    seen = await annotations.read(issue)
    assert seen is not None
    assert {key: value for key, value in seen.metadata.items() if key != "ashep"} == {
        "verification_log": [{"n": 1}],
        **notes,
    }


@pytest.mark.promise("L21")
async def test_words_are_replaced_at_once_and_what_is_not_given_stays(world: MemoryWorld | BeadsWorld) -> None:
    issue = world.add("Work", text=IssueText(description="Do it.", acceptance="It works."))
    annotations = annotations_of(world)
    await world.tracker.claim(ClaimRequest(issue, STAMP, add_labels=("phase:implement",)))
    before = await shown(world.tracker, issue)
    words = "--json\n\n  with spaces \u2028é\n\n" + "é" * 59_000
    await annotations.rewrite(issue, IssuePatch("  --title  of it ", words, 0))
    after = await shown(world.tracker, issue)
    assert (after.issue.title, after.issue.priority) == ("--title  of it", 0)
    assert replace(after.issue, title=before.issue.title, priority=before.issue.priority) == before.issue
    assert after.text.description.startswith("--json\n\n  with spaces ")
    assert after.text.description.endswith("é" * 59_000)
    assert after.text.acceptance == "It works."
    await annotations.rewrite(issue, IssuePatch(description=""))
    await annotations.rewrite(issue, IssuePatch())
    last = await shown(world.tracker, issue)
    assert (last.text.description, last.text.acceptance, last.issue) == ("", "It works.", after.issue)


async def test_what_is_no_issue_is_not_written_to(world: MemoryWorld | BeadsWorld) -> None:
    issue = world.add("Work", id="t-abcd")
    annotations = annotations_of(world)
    for other in ("t-abc", "t-none", "--json"):
        assert await annotations.read(other) is None
        with pytest.raises(TrackerRefused):
            await annotations.rewrite(other, IssuePatch(acceptance="x"))
        with pytest.raises(TrackerRefused):
            await annotations.annotate(other, {"key": "value"})
    seen = await annotations.read(issue)
    assert seen is not None
    assert (seen.acceptance, dict(seen.metadata)) == ("", {})


async def test_an_issue_is_created_whole_under_its_id_and_only_once(world: MemoryWorld | BeadsWorld) -> None:
    annotations = annotations_of(world)
    metadata: dict[str, JsonValue] = {"verification_status": "pending", "request": {"key": "é"}}
    fresh = IssueDraft("t-0a1b2c3d4e", "--json", "- words\n\u2028", "bug", 0, TEXT, metadata)
    assert await annotations.create(fresh)
    assert not await annotations.create(replace(fresh, title="Another", acceptance=""))
    seen = await annotations.read("t-0a1b2c3d4e")
    assert seen is not None
    assert (seen.acceptance, dict(seen.metadata)) == (TEXT, metadata)
    issue = (await shown(world.tracker, "t-0a1b2c3d4e")).issue
    assert (issue.title, issue.type, issue.priority, issue.status) == ("--json", "bug", 0, "open")
    assert (issue.assignee, issue.stamp, issue.labels) == (None, None, ())


async def test_issues_are_listed_by_status(world: MemoryWorld | BeadsWorld) -> None:
    annotations = annotations_of(world)
    assert await annotations.listed(None) == ()
    world.add("Two", id="t-2")
    world.add("One", id="t-1")
    await annotations.annotate("t-2", {"verification_status": "failing"})
    await world.tracker.claim(ClaimRequest("t-1", STAMP))
    await world.tracker.update(Update("t-1", "in_progress", world.tracker.actor, later(9), "closed", None))
    (row,) = await annotations.listed(None)
    assert (row.id, row.title, row.status, dict(row.metadata)) == (
        "t-2", "Two", "open", {"verification_status": "failing"},
    )  # fmt: skip
    assert [one.id for one in await annotations.listed("closed")] == ["t-1"]
    assert [one.id for one in await annotations.listed("all")] == ["t-1", "t-2"]
    assert await annotations.listed("deferred") == ()


async def test_the_stamp_is_never_written(world: MemoryWorld | BeadsWorld) -> None:
    with pytest.raises(AssertionError):
        await annotations_of(world).annotate("t-1", {"ashep": {}})


async def test_what_no_command_line_holds_is_refused() -> None:
    annotations = BeadsAnnotations(None, ("bd",), "Ann", 60)  # pyright: ignore[reportArgumentType] - no call is made
    with pytest.raises(TrackerRefused, match="at most 100,000 bytes"):
        await annotations.rewrite("t-1", IssuePatch(acceptance="é" * 60_000))


async def test_what_is_created_and_changed_with_labels_edges_and_metadata_is_found_by_a_key(
    world: MemoryWorld | BeadsWorld,
) -> None:
    annotations = annotations_of(world)
    prefix, other = await annotations.prefix(), world.add("Not one of these")
    names = [f"{prefix}-{name}" for name in ("epic", "one", "two")]
    label, edges = 'story:docs/a, "b".md', [(), (names[0],), (names[0], names[1])]
    for name, above in zip(names, edges, strict=True):
        needs = tuple(Dependency(on, "parent-child" if on == names[0] else "blocks") for on in above)
        kind, labels = ("task", (label, "x")) if above else ("epic", ())
        fresh = IssueDraft(name, name, "text", kind, 2, "- a", {"story": {"path": name}}, labels, needs)
        assert await annotations.create(fresh)
        assert not await annotations.create(fresh)
    words = IssuePatch("New", metadata={"story": {"path": "new"}}, add_labels=("y",), remove_labels=("x", "none"))
    await annotations.rewrite(names[2], words)
    await annotations.depend(names[2], names[1], stands=False)
    await annotations.depend(names[2], other)
    await annotations.depend(names[2], other)
    marked = await annotations.marked("story")
    assert [(seen.issue.id, metadata) for seen, metadata in marked] == [
        (name, {"story": {"path": path}}) for name, path in zip(names, (*names[:2], "new"), strict=True)
    ]
    one, two = marked[1][0], marked[2][0]
    assert (one.issue.labels, one.issue.type, one.text.acceptance) == ((label, "x"), "task", "- a")
    assert [(edge.on, edge.type) for edge in one.text.dependencies] == [(names[0], "parent-child")]
    assert (two.issue.title, two.text.description.strip(), two.issue.labels) == ("New", "text", (label, "y"))
    assert sorted((edge.on, edge.type) for edge in two.text.dependencies) == sorted(
        [(names[0], "parent-child"), (other, "blocks")]
    )
