"""What writes more of a story's files than a status: sharded and put back, planned, and what they taught."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from ashep.actions.story_catalog import look, planning_of, write
from ashep.bmad.content_diff import nothing_lost
from ashep.bmad.learnings import learnings, with_learnings
from ashep.bmad.plan import PlannedStory, Told, new_sprint, plan_of, with_plan
from ashep.bmad.shard import Sharded, archive_of, shard, unshard
from ashep.bmad.story import StoryProblem
from ashep.bmad.text import LARGEST, NotWritable
from ashep.errors import UsageError
from ashep.journal.durable_io import sync_folder


def moved(root: Path, wanted: str, *, undo: bool, dry_run: bool) -> tuple[Path, Sharded]:
    """Shard a story, or put it back; the file that gets lines is written first, so that they are never nowhere."""
    story = (root / look(root).find_story(wanted).path).resolve()
    archive = story.with_name(archive_of(story.name))
    data, kept = _read_file(story) or b"", _read_file(archive)
    try:
        made = unshard(data, kept or b"") if undo else shard(str(story), data, kept or b"")
    except NotWritable as error:
        raise NotWritable(f"{story.name}: {error}") from error
    if undo and not dry_run:
        write(story, data, made.story)
    if not dry_run and (made.archive or kept is not None):
        write(archive, kept, made.archive)
        if not made.archive:
            archive.unlink()
            sync_folder(archive.parent)
    if not undo and not dry_run:
        write(story, data, made.story)
    return archive, made


def compared(before: Path, after: Path) -> tuple[StoryProblem, ...]:
    """Tell what a story has lost from one file to the other, whose name counts; lines are those of `before`."""
    old, new = _read_file(before), _read_file(after)
    if old is None:
        raise UsageError(f"{before}: there is no such file")
    return (StoryProblem(1, f"{after} is not there"),) if new is None else nothing_lost(old, new, str(after))


@dataclass(frozen=True, slots=True)
class PlanProposal:
    """A plan, and what the sprint status would be."""

    steps: tuple[PlannedStory, ...]
    problems: tuple[Told, ...]
    sprint: Path
    was: bytes | None
    new: bytes
    added: tuple[str, ...]
    """Keys that it lacks."""

    def write(self) -> None:
        """Write the sprint status. Raises `NotWritable`."""
        self.sprint.parent.mkdir(parents=True, exist_ok=True)
        write(self.sprint, self.was, self.new)


def planned(root: Path, date: datetime) -> PlanProposal:
    """Plan the stories of the epics. Raises `UsageError`, `NotWritable`, `Unreadable`."""
    (epics, sprint), keys = planning_of(root), dict[str, str]()
    if sprint.parent.is_dir():
        stories = [one.story for one in look(root, [sprint.parent]).found if one.may_be_story and one.story is not None]
        pairs = ((story.id, story.key) for story in stories if story.id is not None)
        keys = {id_: key for id_, key in pairs if key.startswith(f"{id_}-")}
    (steps, problems), was = plan_of(epics, keys), _read_file(sprint)
    if was is not None:
        return PlanProposal(steps, problems, sprint, was, *with_plan(was, steps))
    location = str(sprint.parent.relative_to(root))
    content = new_sprint(steps, date=date, project=root.resolve().name, location=location)
    return PlanProposal(steps, problems, sprint, None, *content)


def taught(root: Path, *, keep: bool) -> tuple[Path, tuple[str, ...]]:
    """Give what completed stories taught, and the file for it, next to the sprint status; and write it there."""
    seen = look(root)
    stories = [(one.story, root / one.path) for one in seen.found if one.may_be_story and one.story is not None]
    stories.sort(key=lambda one: [int(part) if part.isdecimal() else 0 for part in (one[0].id or "").split("-")])
    lines = learnings([(story, _read_file(file) or b"") for story, file in stories if story.state == "complete"])
    beside = root / seen.sprint if seen.sprint else stories[0][1] if stories else root / "sprint"
    file = beside.with_name("learnings.md")
    if keep:
        was = _read_file(file)
        write(file, was, with_learnings(was or b"", lines))
    return file, lines


def _read_file(file: Path) -> bytes | None:
    """Read a file that may not be there. Raises `NotWritable` where it cannot be read whole."""
    try:
        with file.open("rb") as stream:
            data = stream.read(LARGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NotWritable(f"{file}: it cannot be read: {error.strerror}") from error
    if len(data) > LARGEST:
        raise NotWritable(f"{file}: it has more than {LARGEST} bytes, and is not read")
    return data
