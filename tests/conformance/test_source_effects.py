"""Issues of a source in the tracker, in memory and in the real bd: the effects, repeated as after a crash."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ashep.core.facts.sources import CloseAtSource, IssueMirrored, MirrorIssue, SaidAtSource, SayAtSource, SourceView
from ashep.core.policy.settings import Settings
from ashep.core.state.world import World
from ashep.daemon.effects.sources import MOST_TEXT, SourceAdapters, SourceEffects
from ashep.errors import TrackerRefused
from ashep.extras.simulation.memory.source import MemorySource
from ashep.extras.simulation.virtual_time import LoopClock
from ashep.journal.blobs import Blobs
from tests.conformance.test_annotations import annotations_of
from tests.conformance.trackers import BeadsWorld, MemoryWorld

VIEW = SourceView("acme/shop", 12, "https://forge.example/acme/shop/issues/12", "Add it", "open")


async def effects_of(world: MemoryWorld | BeadsWorld, folder: Path) -> tuple[SourceEffects, MemorySource, Blobs]:
    """The effects over a tracker, and a source in memory."""
    source, blobs = MemorySource(LoopClock().now), Blobs(folder)

    async def make(_: Settings) -> SourceAdapters:
        return SourceAdapters({source.name: source}, annotations_of(world))

    return SourceEffects(world.tracker, blobs, make), source, blobs


async def test_an_issue_is_mirrored_once_rewritten_closed_and_opened_again(
    world: MemoryWorld | BeadsWorld, tmp_path: Path
) -> None:
    effects, _, blobs = await effects_of(world, tmp_path)
    first = await blobs.keep('{"title": "Add it\\u202e", "body": "--json\\nDo it."}')
    second = await blobs.keep('{"title": "Add both", "body": ""}')
    said = await blobs.keep("Comments at acme/shop:\n\nann: please")
    issue = "t-gh-12"
    command = MirrorIssue("k", issue, VIEW, first, "", closed=None)
    for _ in range(2):
        assert await effects.carry_out(command, World()) == [IssueMirrored(issue, "k")]
    seen = await world.tracker.issue(issue)
    assert seen is not None
    assert (seen.issue.status, seen.issue.assignee, seen.issue.labels) == ("open", None, ())
    assert seen.text.description == f"--json\nDo it.\n\n({VIEW.url})"
    for closed, status in ((True, "closed"), (True, "closed"), (False, "open"), (None, "open")):
        await effects.carry_out(replace(command, text=second, comments=said, closed=closed), World(instance="i"))
        seen = await world.tracker.issue(issue)
        assert seen is not None
        assert (seen.issue.title, seen.issue.status) == ("Add both", status)
    assert seen.text.description.endswith("ann: please")
    await effects.aclose()


async def test_what_people_say_reaches_the_tracker_however_long_the_text_is(
    world: MemoryWorld | BeadsWorld, tmp_path: Path
) -> None:
    effects, _, blobs = await effects_of(world, tmp_path)
    text, comments = await blobs.keep(json.dumps({"title": "t", "body": "x" * 65_536})), await blobs.keep("Say please.")
    await effects.carry_out(MirrorIssue("k", "t-gh-12", VIEW, text, comments, closed=None), World())
    seen = await world.tracker.issue("t-gh-12")
    assert seen is not None
    assert seen.text.description.endswith(f"x\n\n({VIEW.url})\n\nSay please.")
    assert len(seen.text.description) == MOST_TEXT


async def test_an_issue_stays_the_same_under_another_name_of_its_repository(
    world: MemoryWorld | BeadsWorld, tmp_path: Path
) -> None:
    effects, _, blobs = await effects_of(world, tmp_path)
    text, view = await blobs.keep('{"title": "Add it", "body": ""}'), replace(VIEW, key="7")
    command = MirrorIssue("k", "t-gh-12", view, text, "", closed=None)
    await effects.carry_out(command, World())
    renamed = replace(command, view=replace(view, source="acme/store"))
    assert await effects.carry_out(renamed, World()) == [IssueMirrored("t-gh-12", "k")]
    with pytest.raises(TrackerRefused, match="not that of"):
        await effects.carry_out(replace(command, view=replace(view, key="8")), World())


async def test_an_issue_of_that_id_that_is_another_is_left_alone(
    world: MemoryWorld | BeadsWorld, tmp_path: Path
) -> None:
    effects, _, blobs = await effects_of(world, tmp_path)
    text = await blobs.keep('{"title": "Add it", "body": ""}')
    await effects.carry_out(MirrorIssue("k", "t-gh-12", VIEW, text, "", closed=None), World())
    other = replace(VIEW, source="acme/other")
    with pytest.raises(TrackerRefused, match="not that of"):
        await effects.carry_out(MirrorIssue("k", "t-gh-12", other, text, "", closed=None), World())


@pytest.mark.parametrize("world", ["memory"], indirect=True)
async def test_what_is_said_and_closed_there_is_so_once(world: MemoryWorld, tmp_path: Path) -> None:
    effects, source, _ = await effects_of(world, tmp_path)
    number = source.opens("Add it")
    for _ in range(2):
        (said,) = await effects.carry_out(
            SayAtSource("k", "t-gh-12", "acme/shop", number, "state", "It waits."), World()
        )
        assert isinstance(said, SaidAtSource)
        await effects.carry_out(CloseAtSource("k", "t-gh-12", "acme/shop", number), World())
    assert source.ours(number) == ["It waits.\n\n<!-- agent-shepherd: source/t-gh-12/state -->"]
    assert source.issues[number].read.state == "closed"
