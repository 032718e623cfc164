"""Stories of a folder as their files say it, each next to what the sprint status says; and writing one of them."""

import os
import stat
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from ashep.adapters.system.folders import walk
from ashep.bmad.paths import EPICS, LAYERS, OLDER, SPECS, SPRINT, USUAL, StoryPaths, places_of, relative
from ashep.bmad.sprint import Entry, Epic, Planned, Sprint, read_epics, read_planned, read_sprint
from ashep.bmad.story import Story, StoryProblem, id_in, read
from ashep.bmad.text import LARGEST, NotWritable, UnreadableText
from ashep.errors import UsageError
from ashep.journal.durable_io import replace as replace_file

PLANNED = "stories.yaml"
MOST = 20_000
"""Files that are looked at."""

_SKIPPED = frozenset({"node_modules"})
_BEGUN = ("ready-for-dev", "in-progress", "review", "done")


@dataclass(frozen=True, slots=True)
class FoundStory:
    """A file, and what is said of it."""

    path: str
    story: Story | None
    """None: it cannot be read, and `problems` says why."""
    sprint: Entry | None
    problems: tuple[StoryProblem, ...]
    issue: tuple[str, bool] | None = None
    """Its issue, where that is known, and whether it is closed."""

    @property
    def may_be_story(self) -> bool:
        """Whether it is a story, or may be one."""
        return self.story is None or self.story.kind in ("story", "specification")

    @property
    def disagrees(self) -> bool:
        """Whether something said of it contradicts something else."""
        return any(problem.disagrees for problem in self.problems)


@dataclass(frozen=True, slots=True)
class Stories:
    """What is in a folder."""

    found: tuple[FoundStory, ...]
    sprint: str | None
    """The sprint status that counts."""
    planned: tuple[tuple[str, Planned], ...]
    """Stories that have no file, each with the file that plans it."""
    problems: tuple[tuple[str, StoryProblem], ...]
    """Of other files than stories."""
    order: tuple[tuple[tuple[str, Planned], ...], ...] = ()
    """Of each `stories.yaml` the stories that have a file, by path, in the order of work."""
    epics: tuple[Epic, ...] = ()

    @property
    def disagrees(self) -> bool:
        """Whether anything contradicts something else."""
        return any(one.disagrees for one in self.found) or any(one.disagrees for _, one in self.problems)

    def find_story(self, name: str) -> FoundStory:
        """Find a story by `1-3`, `1.3`, its key or its path. Raises `UsageError`: there is none, or several."""
        stories = [(one, one.story) for one in self.found if one.may_be_story and one.story is not None]
        same = [one for one, story in stories if name in (one.path, Path(one.path).name, story.key)]
        ids = {name.lower(), id_in(Path(name).name)}
        same = same or [one for one, story in stories if story.id is not None and story.id in ids]
        if len(same) == 1:
            return same[0]
        if same:
            raise UsageError(f"{name} is one of {', '.join(one.path for one in same)}: say which, by its path")
        raise UsageError(f"there is no story {name}; `ashep story list` shows those that there are")


def look(root: Path, paths: Sequence[Path] = ()) -> Stories:
    """Read stories: of these files and folders, else where the project has them. Raises `UsageError`."""
    return _Looking(root).look(paths)


def beside_issues(seen: Stories, issues: Mapping[str, tuple[str, bool]]) -> Stories:
    """Put each story next to its issue, by its path, and say where they disagree."""

    def join_issue(entry: FoundStory) -> FoundStory:
        issue = issues.get(entry.path)
        if issue is None or entry.story is None:
            return entry
        id_, closed = issue
        status, problems = entry.story.status, entry.problems
        if closed != (entry.story.state == "complete"):
            words = status.said[:60] if status else "no status"
            message = f"it says {words}, and {id_} is {'' if closed else 'not '}closed"
            problems = (*problems, StoryProblem(status.line if status else 1, message, disagrees=True))
        return replace(entry, issue=issue, problems=problems)

    return replace(seen, found=tuple(map(join_issue, seen.found)))


def marks(root: Path) -> frozenset[tuple[str, int, int]]:
    """Give what tells that nothing changed of what is looked at. Raises `UsageError`."""
    looking = _Looking(root)
    files = [file for folder in looking.folders(looking.places()) for file in _files(folder)]
    found = set[tuple[str, int, int]]()
    for one in files:
        with suppress(OSError):
            seen = one.stat()
            found.add((str(one), seen.st_mtime_ns, seen.st_size))
    return frozenset(found)


def planning_of(root: Path) -> tuple[list[tuple[str, bytes]], Path]:
    """Give the files that plan epics, and the sprint status, there or where it is to be. Raises `UsageError`."""
    return _Looking(root).planning()


class _Looking:
    def __init__(self, root: Path) -> None:
        self.root, self.resolved = root, root.resolve()
        self.problems = list[tuple[str, StoryProblem]]()
        self.order, self.epics = list[tuple[tuple[str, Planned], ...]](), tuple[Epic, ...]()

    def look(self, paths: Sequence[Path]) -> Stories:
        places = self.places()
        wanted = [self.root / path for path in paths] or self.folders(places)
        files = list(dict.fromkeys(file for one in wanted for file in _files(one)))
        status = self._sprint_of(places, files)
        sprint = self._sprint(status)
        stories = list[tuple[str, Story | StoryProblem]]()
        for file in (file for file in files if file.name not in (SPRINT, PLANNED)):
            name = self._name_file(file)
            try:
                stories.append((name, read(name, _bytes(file))))
            except UnreadableText as error:
                stories.append((name, StoryProblem(error.line, str(error))))
        planned = [self._plan(file, stories) for file in files if file.name == PLANNED]
        planned += [] if paths else [self._planned(places)]
        found = list(_join_sprint(stories, sprint))
        if status is not None and not paths:
            for entry in _without_file(sprint, found):
                said = f"{entry.key} is {entry.said.said}, and has no file"
                self.problems.append((self._name_file(status), StoryProblem(entry.said.line, said, disagrees=True)))
        without = dict[str, tuple[str, Planned]]()
        ids = {one.story.id for one in found if one.story is not None}
        for path, one in ((path, one) for path, listed in planned for one in listed if one.id not in ids):
            without.setdefault(one.id, (path, one))
        told, order = tuple(self.problems), tuple(self.order)
        return Stories(
            tuple(found), status and self._name_file(status), tuple(without.values()), told, order, self.epics
        )

    def places(self) -> StoryPaths:
        there = {name: data for name in (*OLDER, *LAYERS) if (data := self._bytes(self.root / name)) is not None}
        places = places_of(there)
        self.problems.extend((name, StoryProblem(1, said)) for name, said in places.problems)
        return places

    def _bytes(self, file: Path) -> bytes | None:
        try:
            return _bytes(file) if os.path.lexists(file) else None
        except UnreadableText as error:
            self.problems.append((self._name_file(file), StoryProblem(error.line, str(error))))
            return None

    def folders(self, places: StoryPaths) -> list[Path]:
        names = [places.stories] if places.stories is not None else USUAL
        folders = [folder for name in (*names, SPECS) if (folder := self.root / name).is_dir()]
        if not folders and places.stories is None:
            told = self._sprint(self._sprint_of(places, ())).location
            folders = [folder for name in ([relative(told)] if told else []) if (folder := self.root / name).is_dir()]
        if not folders:
            said = f"; {places.said_by} says {places.stories}" if places.said_by else f": {', '.join(USUAL)}"
            raise UsageError(f"{self.root} has no folder of stories{said}; give one: `ashep story check PATH`")
        return folders

    def _sprint_of(self, places: StoryPaths, files: Sequence[Path]) -> Path | None:
        """The sprint status that counts: next to the stories, else where projects have it; of several the uppermost."""
        near = sorted((file for file in files if file.name == SPRINT), key=lambda one: len(one.parts))
        beside = dict.fromkeys(folder / SPRINT for file in files for folder in file.parents[:2])
        usual = [self.root / name / SPRINT for name in (places.stories or ".", *USUAL, "docs")]
        return next((one for one in (*near, *beside, *usual) if one.is_file()), None)

    def _sprint(self, file: Path | None) -> Sprint:
        data = None if file is None else self._bytes(file)
        if file is None or data is None:
            return Sprint((), None)
        try:
            sprint = read_sprint(data)
        except UnreadableText as error:
            sprint = Sprint((), None, (StoryProblem(error.line, str(error)),))
        told = [(self._name_file(file), problem) for problem in sprint.problems]
        self.problems.extend(one for one in told if one not in self.problems)
        return sprint

    def _plan(self, file: Path, stories: list[tuple[str, Story | StoryProblem]]) -> tuple[str, tuple[Planned, ...]]:
        name, data = self._name_file(file), self._bytes(file)
        try:
            planned, problems = read_planned(data or b"[]")
        except UnreadableText as error:
            planned, problems = (), (StoryProblem(error.line, str(error)),)
        self.problems.extend((name, one) for one in problems)
        order = list[tuple[str, Planned]]()
        for one in planned:
            mine = [
                (place, story)
                for place, (path, story) in enumerate(stories)
                if Path(path).parent in (Path(name).parent, Path(name).parent / "stories")
                and Path(path).name.startswith(f"{one.id}-") and isinstance(story, Story) and story.kind != "archive"
            ]  # fmt: skip
            for place, story in mine:
                stories[place] = stories[place][0], replace(story, id=one.id.lower())
            if len(mine) > 1:
                said = f"{one.id} has {len(mine)} files: {', '.join(stories[place][0] for place, _ in mine)}"
                self.problems.append((name, StoryProblem(one.line, said, disagrees=True)))
            order += [(stories[place][0], one) for place, _ in mine[:1]]
        self.order.append(tuple(order))
        return name, tuple(replace(one, id=one.id.lower()) for one in planned)

    def _planned(self, places: StoryPaths) -> tuple[str, tuple[Planned, ...]]:
        for file in chain.from_iterable(self._epic_files(places)):
            data = self._bytes(file)
            try:
                epics = read_epics(data or b"")
            except UnreadableText as error:
                self.problems.append((self._name_file(file), StoryProblem(error.line, str(error))))
                continue
            if planned := tuple(story for epic in epics for story in epic.stories):
                self.epics = epics
                return self._name_file(file), planned
        return "", ()

    def _epic_files(self, places: StoryPaths) -> Iterator[list[Path]]:
        """List the files of epics, folder by folder."""
        for folder in (self.root / name for name in (*([places.plans] if places.plans else ()), *EPICS)):
            yield [folder / "epics.md", *sorted((folder / "epics").glob("*.md"))]

    def planning(self) -> tuple[list[tuple[str, bytes]], Path]:
        places = self.places()
        listed = self._epic_files(places)
        named = [[(self._name_file(file), data) for file in files if (data := self._bytes(file))] for files in listed]
        epics = next((some for some in named if any(read_epics(data) for _, data in some)), None)
        if epics is None:
            raise UsageError(f"{self.root} has no epics: no epics.md or epics/ in {', '.join(dict.fromkeys(EPICS))}")
        stories = next((name for name in USUAL if (self.root / name).is_dir()), USUAL[0])
        status = self._sprint_of(places, ())
        return epics, status or self.root / (places.stories or stories) / SPRINT

    def _name_file(self, file: Path) -> str:
        """A path relative to the root; one link that is a story is named by where it stands."""
        try:
            return str((file.parent.resolve() / file.name).relative_to(self.resolved))
        except ValueError:
            return str(file)


def _bytes(file: Path) -> bytes:
    try:
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise UnreadableText("it is no file")
            return stream.read(LARGEST + 1)
    except OSError as error:
        raise UnreadableText(f"it cannot be read: {error.strerror}") from error


def _files(wanted: Path) -> Iterator[Path]:
    """Files of a folder, in order; a file itself whatever its name is."""
    if not wanted.is_dir():
        if not os.path.lexists(wanted):
            raise UsageError(f"{wanted}: there is no such file or folder")
        yield wanted
        return
    count = 0
    for folder, folders, names in walk(str(wanted)):
        folders[:] = sorted(folder for folder in folders if folder not in _SKIPPED and not folder.startswith("."))
        for name in sorted(names):
            if name.endswith(".md") or name in (SPRINT, PLANNED):
                count += 1
                if count > MOST:
                    raise UsageError(f"{wanted} has more than {MOST} files: give a smaller folder")
                yield Path(folder, name)


def _join_sprint(stories: Sequence[tuple[str, Story | StoryProblem]], sprint: Sprint) -> Iterator[FoundStory]:
    """Put each story next to what the sprint status says of it, and next to others of the same id."""
    kept = {path: one for path, one in stories if isinstance(one, Story) and one.kind in ("story", "specification")}
    keys, same = frozenset(one.key for one in kept.values()), dict[tuple[str, str], list[str]]()
    for path, one in kept.items():
        same.setdefault(_named_as(path, one), []).append(path)
    for path, one in stories:
        if isinstance(one, StoryProblem):
            yield FoundStory(path, None, None, (one,))
            continue
        if path not in kept:
            yield FoundStory(path, one, None, ())
            continue
        entry, problems = sprint.find_entry(one.key, one.id, keys), list(one.problems)
        if entry is not None and one.status is not None and entry.said.word != one.status.word:
            listed = f"{entry.said.said[:60]} (line {entry.said.line})"
            said = f"it says {one.status.said[:60]}, and the sprint status {listed}"
            problems.append(StoryProblem(one.status.line, said, disagrees=True))
        for other in same[_named_as(path, one)]:
            twin = kept[other]
            differ = twin.key == one.key and (twin.status and twin.status.word) != (one.status and one.status.word)
            if other != path:
                problems.append(StoryProblem(1, f"{other} is {one.id or one.key}, too", disagrees=differ))
        yield FoundStory(path, replace(one, problems=()), entry, tuple(problems))


def _named_as(path: str, story: Story) -> tuple[str, str]:
    """Give what no two stories have; ids of specifications are those of a folder."""
    return story.id or story.key, str(Path(path).parent) if story.kind == "specification" else ""


def _without_file(sprint: Sprint, found: Sequence[FoundStory]) -> Iterator[Entry]:
    """Entries that were begun, of which there is no story; a backlog has none yet."""
    stories = [one.story for one in found if one.story is not None and one.story.kind != "other"]
    unread = [Path(one.path).stem for one in found if one.story is None]
    keys = {*(story.key for story in stories), *(story.id for story in stories), *unread, *map(id_in, unread)}
    for entry in sprint.entries:
        if entry.kind == "story" and entry.said.word in _BEGUN and entry.key not in keys and entry.id not in keys:
            yield entry


def write(file: Path, was: bytes | None, new: bytes) -> None:
    """Write a file that was read as `was`, all of it or nothing; None: it was not there.

    Raises `NotWritable` where it is that no more.
    """
    real = file.resolve()
    try:
        if (_bytes(real) if was is not None or os.path.lexists(real) else None) != was:
            raise NotWritable(f"{file}: it was changed meanwhile, and was not written")
        if new != was:
            replace_file(real, new, 0o644 if was is None else stat.S_IMODE(real.stat().st_mode))
    except UnreadableText as error:
        raise NotWritable(f"{file}: {error}") from error
    except OSError as error:
        raise NotWritable(f"{file}: it cannot be written: {error.strerror}") from error


# --- as JSON ------------------------------------------------------------------------------------------------------


def dump_story(found: FoundStory) -> dict[str, Any]:
    """Give a file as `story check --json` has it."""
    problems = [{"line": one.line, "says": one.said, "disagrees": one.disagrees} for one in found.problems]
    story = found.story
    if story is None:
        return {
            "path": found.path, "id": None, "key": None, "kind": "unreadable", "title": None, "status": None,
            "said": None, "state": "unknown", "why": problems[0]["says"], "criteria": [], "reviews": [], "open": [],
            "tasks": {"done": 0, "all": 0}, "sprint": None, "run": None, "problems": problems,
            "issue": found.issue and found.issue[0],
        }  # fmt: skip
    status, boxes, run = story.status, Counter(one.done for one in story.tasks), story.run
    return {
        "path": found.path, "id": story.id, "key": story.key, "kind": story.kind, "title": story.title,
        "status": status and status.word, "said": status and {"text": status.said, "line": status.line},
        "state": story.state, "why": story.why or None,
        "criteria": [{"text": text, "line": line} for text, line in story.criteria],
        "tasks": {"done": boxes[True], "all": len(story.tasks)},
        "reviews": [{"title": one.title, "line": one.line, "outcome": one.outcome} for one in story.reviews],
        "open": [{"text": one.text, "line": one.line, "severity": one.severity} for one in story.unresolved],
        "sprint": found.sprint and {"key": found.sprint.key, "status": found.sprint.said.word,
                                    "line": found.sprint.said.line},
        "run": run and {"iteration": run.iteration, "warnings": run.warnings, "deferred": run.deferred,
                        "result": run.result and run.result.word, "blocking": run.blocking, "halt": run.halt},
        "problems": problems, "issue": found.issue and found.issue[0],
    }  # fmt: skip


def dump_planned(path: str, planned: Planned) -> dict[str, Any]:
    """Give a story that has no file as `story list --json` has it."""
    return {"path": path, "id": planned.id, "kind": "planned", "title": planned.title, "line": planned.line,
            "status": None, "state": "unknown", "why": "it is planned, and has no file"}  # fmt: skip
