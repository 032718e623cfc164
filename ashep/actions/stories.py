"""Stories of a folder as their files say it, each beside what the sprint status says of it; nothing is written."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ashep.bmad.places import LAYERS, OLDER, USUAL, Places, places_of
from ashep.bmad.sprint import Entry, Sprint, read_sprint
from ashep.bmad.story import Problem, Story, id_in, read
from ashep.bmad.text import Unreadable
from ashep.errors import AshepError, UsageError

SPRINT = "sprint-status.yaml"
MOST = 20_000
"""Files that are looked at."""

_SKIPPED = frozenset({"node_modules", "archive", ".git"})


@dataclass(frozen=True, slots=True)
class Found:
    """A file, and what is said of it."""

    path: str
    story: Story | None
    """None: it cannot be read, and `problems` says why."""
    sprint: Entry | None
    problems: tuple[Problem, ...]

    @property
    def disagrees(self) -> bool:
        """Whether something said of it contradicts something else."""
        return any(one.disagrees for one in self.problems)


@dataclass(frozen=True, slots=True)
class Stories:
    """What is in a folder."""

    found: tuple[Found, ...]
    sprint: str | None
    """The sprint status that counts."""
    problems: tuple[tuple[str, Problem], ...]
    """Of other files than stories."""

    @property
    def disagrees(self) -> bool:
        """Whether anything contradicts something else."""
        return any(one.disagrees for one in self.found) or any(one.disagrees for _, one in self.problems)

    def named(self, wanted: str) -> Found:
        """Find a story by `1-3`, `1.3`, its key or its path. Raises `UsageError`: there is none, or several."""
        stories = [one for one in self.found if one.story is not None and one.story.kind != "other"]
        same = [one for one in stories if wanted in (one.path, Path(one.path).name, one.story and one.story.key)]
        id_ = id_in(Path(wanted).name)
        same = same or [one for one in stories if id_ is not None and one.story is not None and one.story.id == id_]
        if len(same) == 1:
            return same[0]
        if same:
            raise UsageError(f"{wanted} is one of {', '.join(one.path for one in same)}: say which, by its path")
        raise UsageError(f"there is no story {wanted}; `ashep story list` shows those that there are")


def look(root: Path, paths: Sequence[Path] = ()) -> Stories:
    """Read stories: of these files and folders, else where the project has them. Raises `UsageError`."""
    problems = list[tuple[str, Problem]]()
    places = _places(root, problems)
    wanted = [root / one for one in paths] or _folders(root, places)
    files = list(dict.fromkeys(file for one in wanted for file in _files(one)))
    status = _sprint_of(root, places, files)
    sprint = _read_sprint(status, root, problems)
    found = [_found(file, root, sprint) for file in files if file.suffix == ".md"]
    if status is not None:
        name = _relative(status, root)
        for entry in _without_file(sprint, found) if not paths else ():
            said = f"{entry.key} is {entry.said.said}, and has no file"
            problems.append((name, Problem(entry.said.line, said, disagrees=True)))
    return Stories(tuple(found), status and _relative(status, root), tuple(problems))


def _places(root: Path, problems: list[tuple[str, Problem]]) -> Places:
    there = {name: data for name in (*OLDER, *LAYERS) if (data := _bytes(root / name)) is not None}
    places = places_of(there)
    problems.extend((name, Problem(1, said)) for name, said in places.problems)
    return places


def _bytes(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as error:
        raise AshepError(f"{file}: cannot be read: {error.strerror}") from error


def _folders(root: Path, places: Places) -> list[Path]:
    names = [places.stories] if places.stories is not None else USUAL
    folders = [folder for name in names if (folder := root / name).is_dir()]
    if not folders:
        said = f"; {places.said_by} says {places.stories}" if places.said_by else f": {', '.join(USUAL)}"
        raise UsageError(f"{root} has no folder of stories{said}; give one: `ashep story check PATH`")
    return folders


def _files(wanted: Path) -> Iterator[Path]:
    """Files of a folder, in order; a file itself whatever its name is."""
    if not wanted.is_dir():
        if not wanted.exists():
            raise UsageError(f"{wanted}: there is no such file or folder")
        yield wanted
        return
    count = 0
    for folder, folders, names in os.walk(wanted):
        folders[:] = sorted(one for one in folders if one not in _SKIPPED and not one.startswith("."))
        for name in sorted(names):
            if name.endswith(".md") or name == SPRINT:
                count += 1
                if count > MOST:
                    raise UsageError(f"{wanted} has more than {MOST} files: give a smaller folder")
                yield Path(folder, name)


def _sprint_of(root: Path, places: Places, files: Sequence[Path]) -> Path | None:
    """The sprint status that counts: beside the stories, else where the project has them; of several the uppermost."""
    near = [one for one in files if one.name == SPRINT]
    beside = [folder / SPRINT for one in files for folder in one.parents[:2]]
    usual = [root / name / SPRINT for name in (*([places.stories] if places.stories else ()), *USUAL, "docs")]
    there = (one for one in (*sorted(near, key=lambda one: len(one.parts)), *dict.fromkeys(beside), *usual))
    return next((one for one in there if one.is_file()), None)


def _read_sprint(file: Path | None, root: Path, problems: list[tuple[str, Problem]]) -> Sprint:
    data = None if file is None else _bytes(file)
    if file is None or data is None:
        return Sprint((), None)
    try:
        sprint = read_sprint(data)
    except Unreadable as error:
        sprint = Sprint((), None, (Problem(1, str(error)),))
    problems.extend((_relative(file, root), one) for one in sprint.problems)
    return sprint


def _found(file: Path, root: Path, sprint: Sprint) -> Found:
    path = _relative(file, root)
    try:
        story = read(path, _bytes(file) or b"")
    except Unreadable as error:
        return Found(path, None, None, (Problem(1, str(error)),))
    if story.kind == "other":
        return Found(path, story, None, ())
    entry, problems = sprint.of(story.key, story.id), story.problems
    if entry is not None and story.status is not None and entry.said.word != story.status.word:
        told = f"it says {story.status.said[:60]}, and the sprint status {entry.said.said} (line {entry.said.line})"
        problems = (*problems, Problem(story.status.line, told, disagrees=True))
    return Found(path, replace(story, problems=()), entry, problems)


def _without_file(sprint: Sprint, found: Sequence[Found]) -> Iterator[Entry]:
    """Entries that were begun, of which there is no story; a backlog has none yet."""
    keys = {one.story.key for one in found if one.story} | {one.story.id for one in found if one.story}
    for entry in sprint.entries:
        begun = entry.said.word in ("ready-for-dev", "in-progress", "review", "done")
        if entry.kind == "story" and begun and entry.key not in keys and entry.id not in keys:
            yield entry


def _relative(file: Path, root: Path) -> str:
    try:
        return str(file.resolve().relative_to(root.resolve()))
    except ValueError:
        return str(file)


# --- as JSON ------------------------------------------------------------------------------------------------------


def told(found: Found) -> dict[str, Any]:
    """Give a file as `story check --json` has it."""
    problems = [{"line": one.line, "says": one.said, "disagrees": one.disagrees} for one in found.problems]
    story = found.story
    if story is None:
        return {"path": found.path, "id": None, "kind": "unreadable", "status": None, "state": "unknown",
                "why": problems[0]["says"], "problems": problems}  # fmt: skip
    said, boxes = story.status, Counter(one.done for one in story.tasks)
    return {
        "path": found.path, "id": story.id, "key": story.key, "kind": story.kind, "title": story.title,
        "status": said and said.word, "said": said and {"text": said.said, "line": said.line},
        "state": story.state, "why": story.why or None,
        "criteria": [{"text": text, "line": line} for text, line in story.criteria],
        "tasks": {"done": boxes[True], "all": len(story.tasks)},
        "reviews": [{"title": one.title, "line": one.line, "outcome": one.outcome} for one in story.reviews],
        "open": [{"text": one.text, "line": one.line, "severity": one.severity} for one in story.unresolved],
        "sprint": found.sprint and {"key": found.sprint.key, "status": found.sprint.said.word,
                                    "line": found.sprint.said.line},
        "problems": problems,
    }  # fmt: skip
