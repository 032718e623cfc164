"""Stories kept as issues: what the folder holds, what the tracker and git have of it, and the writes that follow.

Whoever is killed in the midst of it leaves what the next one completes: an issue is created whole, under an id that is
made of its story's path, and an issue that is there notes what was written of it in the write itself.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal, cast

import anyio
from anyio import to_thread
from pydantic import JsonValue

from ashep.actions.story_catalog import FoundStory, Stories, look, marks
from ashep.adapters.git.user_work_tree import GitTree
from ashep.bmad.sprint import Planned
from ashep.bmad.sync_plan import (
    NOTE,
    IssueChange,
    IssueToCreate,
    IssueWords,
    Plan,
    Prefixes,
    StoryIssue,
    StoryWarning,
    TrackedStory,
    of_epic,
    plan,
)
from ashep.core.delivery.stories import can_be_named
from ashep.core.policy.settings import Labels, Settings
from ashep.errors import AshepError, TrackerRefused, UsageError
from ashep.factories import READER, annotations_of
from ashep.ports.tracker import Annotations, Dependency, IssueDraft, IssuePatch, Seen

EVERY = 60.0
"""Seconds between looks at whether a story has changed."""

_PRIORITY = 2


@dataclass(frozen=True, slots=True)
class Mirrored:
    """What the folder and the tracker hold of stories, and what was, or is to be, written."""

    stories: Stories
    chosen: tuple[FoundStory, ...]
    """Those that were asked for."""
    plan: Plan
    told: tuple[StoryWarning, ...]
    """What a person should know, what the tracker refused included."""


@dataclass
class Mirror:
    """Keeps an issue of each story of a project."""

    project: Path
    labels: Labels
    annotations: Annotations
    tree: GitTree
    policies: Collection[str] | None = None
    """Those that the project has; None: it is not asked."""

    async def sync(
        self, names: Sequence[str] = (), epic: str | None = None, *, dry: bool = False, finished: bool = False
    ) -> Mirrored:
        """Write what is lacking: of the stories that are named, of an epic's, or of all.

        `dry`: nothing is written. `finished`: those that are named get an issue although they are done. Raises
        `UsageError`, and what the tracker and git raise.
        """
        seen = await to_thread.run_sync(look, self.project)
        chosen = _chosen(seen, names, epic)
        paths = [one.path for one in seen.found if _is_one(one)]
        states = await self.tree.uncommitted(paths)
        wants = {path: planned for one in seen.order for path, planned in one}
        stories = [_filed(one, states.get(one.path), wants.get(one.path)) for one in seen.found if _is_one(one)]
        issues = await _read_tracked(self.annotations)
        planned = partial(
            plan,
            stories,
            issues,
            order=[[path for path, _ in one] for one in seen.order],
            epics={epic.id: epic.title for epic in seen.epics},
            only=[one.path for one in chosen] if names or epic else None,
            asked=[one.path for one in chosen] if names and finished else (),
            there=[one.path for one in seen.found if not _is_one(one)],
        )
        labels = self.labels
        prefixes = Prefixes("", labels.story_prefix, labels.policy_prefix, labels.phase_prefix, self.policies)
        made = planned(prefixes)
        if made.made:  # only then it matters how ids begin
            made = planned(replace(prefixes, ids=await self.annotations.prefix()))
        told = made.told if dry else (*made.told, *await self._write(made))
        return Mirrored(seen, chosen, made, told)

    async def _write(self, wanted: Plan) -> list[StoryWarning]:
        """Write; what the tracker refuses is told, and the rest goes on. Edges go first that would make circles."""
        told = list[StoryWarning]()
        for change in wanted.changed:
            for on in change.wait_no_more:
                await self.annotations.depend(change.id, on, stands=False)
        for one in (*wanted.made, *wanted.changed):
            try:
                await (self._make(one) if isinstance(one, IssueToCreate) else self._change(one))
            except TrackerRefused as error:
                path = one.path if isinstance(one, IssueChange) else one.note.get("path", one.words.title)
                told.append(StoryWarning(path, f"{one.id} was not written: {error}", refuses=True))
        return told

    async def _make(self, made: IssueToCreate) -> None:
        words, edges = made.words, [Dependency(on, "blocks") for on in made.waits_for]
        edges += [Dependency(made.parent, "parent-child")] if made.parent else []
        metadata: dict[str, JsonValue] = {NOTE: {**made.note}}
        fresh = IssueDraft(
            made.id, words.title, words.description, made.type, _PRIORITY, words.acceptance, metadata, made.labels,
            tuple(edges),
        )  # fmt: skip
        if not await self.annotations.create(fresh):
            there = await self.annotations.read(made.id)
            noted = there.metadata.get(NOTE) if there is not None else None
            if not isinstance(noted, dict) or noted.get("path") != made.note.get("path"):  # else another was quicker
                raise TrackerRefused("there is an issue of that id, which is another story's, or none's")

    async def _change(self, wanted: IssueChange) -> None:
        for on in wanted.wait_for:
            await self.annotations.depend(wanted.id, on)
        words = wanted.words
        metadata: dict[str, JsonValue] = {NOTE: {**wanted.note}} if wanted.note else {}
        said = (words.title, words.description, words.acceptance) if words else (None, None, None)
        labels = wanted.add_labels, wanted.remove_labels
        await self.annotations.rewrite(wanted.id, IssuePatch(said[0], said[1], None, said[2], metadata, *labels))


def mirror_of(project: Path, settings: Settings, actor: str, policies: Collection[str] | None = None) -> Mirror:
    """Make the mirror of a project, which writes as `actor`. Raises `UsageError` for a tracker of the user's own."""
    annotations = annotations_of(project, settings, actor)
    return Mirror(project, settings.labels, annotations, GitTree(project), policies)


async def issues_of(project: Path, settings: Settings) -> dict[str, tuple[str, bool]]:
    """Ask the tracker for the issues of stories, by path, each with whether it is closed."""
    stories = reversed(await _read_tracked(annotations_of(project, settings, READER)))
    return {story.note["path"]: (story.id, story.status == "closed") for story in stories if "path" in story.note}


def _is_one(found: FoundStory) -> bool:
    return found.may_be_story and found.story is not None and not Path(found.path).is_absolute()


def _chosen(seen: Stories, names: Sequence[str], epic: str | None) -> tuple[FoundStory, ...]:
    if names:
        return tuple({found.path: found for found in map(seen.find_story, names)}.values())
    kept = tuple(one for one in seen.found if _is_one(one))
    if epic is None:
        return kept
    wanted = epic.lower().removeprefix("epic-")
    if found := tuple(one for one in kept if one.story is not None and of_epic(one.story.id) == wanted):
        return found
    raise UsageError(f"no story is of epic {epic}; `ashep story list` shows those that there are")


def _filed(found: FoundStory, git: Literal["new", "changed"] | None, planned: Planned | None) -> StoryIssue:
    story = found.story
    assert story is not None
    said_done = found.sprint is None or found.sprint.said.word == "done"
    return StoryIssue(
        found.path,
        story,
        of_epic(story.id),
        planned is not None and planned.spec_checkpoint,
        planned is not None and planned.done_checkpoint,
        git,
        can_be_named(found.path),
        finished=story.state == "complete" and said_done,
    )


async def _read_tracked(annotations: Annotations) -> list[TrackedStory]:
    stories = [_parse_issue(row, metadata.get(NOTE)) for row, metadata in await annotations.marked(NOTE)]
    return [story for story in stories if story is not None]


def _parse_issue(row: Seen, note: object) -> TrackedStory | None:
    """Read an issue; None: what stands in its metadata is none of ours."""
    noted = cast("dict[object, object]", note) if isinstance(note, dict) else {}
    texts = {key: value for key, value in noted.items() if isinstance(key, str) and isinstance(value, str)}
    if not texts.get("path") and not texts.get("epic"):
        return None
    issue, text, is_begun = row.issue, row.text, row.issue.stamp is not None
    waits_for = tuple(dependency.on for dependency in text.dependencies if dependency.type == "blocks")
    words = IssueWords(issue.title, text.description, text.acceptance)
    return TrackedStory(issue.id, words, issue.status, texts, issue.assignee, issue.labels, waits_for, begun=is_begun)


@dataclass
class Keeping:
    """Keeps the issues of stories next to a daemon: at its start, and whenever a story, or HEAD, has changed."""

    mirror: Mirror
    say: Callable[[str], None]
    _known: object = None
    _told: frozenset[str] = field(default_factory=frozenset[str])

    async def run(self) -> None:
        """Look again and again, for ever."""
        while True:
            await anyio.sleep(EVERY)
            await self.once()

    async def once(self) -> None:
        """Look once; nothing is asked of the tracker where nothing has changed. What went wrong is tried again."""
        known, lines = None, list[str]()
        try:
            found = await to_thread.run_sync(marks, self.mirror.project)
            known = (found, await self.mirror.tree.head())
            if known == self._known:
                return
            done = await self.mirror.sync()
            lines = [f"{one.path}: {one.says}" for one in done.told]
            if wrote := len(done.plan.made) + len(done.plan.changed):
                self.say(f"{wrote} issue{'' if wrote == 1 else 's'} of stories written")
        except AshepError as error:
            known, lines = None, [f"stories are not kept as issues: {error}"]
        for line in lines:
            if line not in self._told:
                self.say(line)
        self._known, self._told = known, frozenset(lines)
