"""From epics to a plan: each story with its key, what it depends on, and which may be worked on at once."""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from yaml.nodes import MappingNode, Node, ScalarNode

from ashep.bmad.markdown import bare, pieces
from ashep.bmad.sprint import planned_in, read_epics, read_sprint
from ashep.bmad.story import StoryProblem
from ashep.bmad.text import NotWritable, Text
from ashep.bmad.yaml_nodes import NodeLines, NoYaml, composed, pairs

_DEPENDS = re.compile(r"(?:depends? on|prerequisites?|blocked by)\W*(?::\W*(?P<rest>.*)|$)", re.IGNORECASE)
"""Not `requires` and `dependencies`: versions of libraries stand there, which look as ids do."""

_ID = r"(?:[a-z]{1,4}-)?\d{1,3}[a-z]?[.-]\d{1,3}[a-z]?(?:[.-]\d{1,2})?"
_NAMED = re.compile(
    rf"epics?\s+(?P<epic>\d+[a-z]?)\b(?![.-]\d)"
    rf"|(?<![\w.-])(?P<id>{_ID})(?:\s*(?:–|—|-|to|through)\s*(?P<last>{_ID}))?(?![\w-])", re.IGNORECASE
)  # fmt: skip
_MOST = 80
"""Characters of a title in a key."""
_CIRCLES = 20
"""Circles that are told."""

_HEADER = """\
# Sprint status of {project}, generated {date}
#
# Epics: backlog (not begun), in-progress, done
# Stories: backlog (only in the epics), ready-for-dev (its file is there), in-progress, review, done
# Retrospectives: optional, done

generated: {date}
project: {project}
project_key: NOKEY
tracking_system: file-system
story_location: {location}

development_status:
"""


@dataclass(frozen=True, slots=True)
class PlannedStory:
    """A story of the plan."""

    id: str
    key: str
    """As the sprint status is to name it."""
    title: str
    epic: str
    path: str
    line: int
    depends: tuple[str, ...] = ()
    priority: int = 0
    """From 1, by epic and by how long a chain it depends on; those of one number depend on none of each other."""


Told = tuple[str, StoryProblem]
"""What is wrong, with the file that it stands in."""


def plan_of(
    files: Sequence[tuple[str, bytes]], keys: Mapping[str, str]
) -> tuple[tuple[PlannedStory, ...], tuple[Told, ...]]:
    """Plan the stories of epics, in their order; `keys`: those that stories have already. Raises `Unreadable`."""
    steps, told = dict[str, PlannedStory](), list[Told]()
    for path, data in files:
        for one, epic in [(story, above.id) for above in read_epics(data) for story in above.stories]:
            step = PlannedStory(
                one.id, keys.get(one.id) or f"{one.id}-{kebab(one.title)}", one.title, epic, path, one.line
            )
            steps.setdefault(one.id, step)
    depends, of_epic = dict[str, dict[str, int]](), dict[str, list[str]]()
    for one in steps.values():
        of_epic.setdefault(f"epic-{one.epic}", []).append(one.id)
    for id_, said, line, title, path in [(*one, path) for path, data in files for one in _read_depends(data, steps)]:
        step, depends_on = steps[id_], depends.setdefault(id_, {})
        if title not in (None, "", step.title):
            twice = f"story {id_} has another title in {step.path}, line {step.line}"
            told.append((path, StoryProblem(line, twice, disagrees=True)))
        for name in _names(said, [*steps]):
            found = [name] if name in steps else of_epic.get(name, [])
            depends_on.update(dict.fromkeys(found, line))
            if not found:
                lacks = f"story {id_} depends on {name}, which the epics do not have"
                told.append((path, StoryProblem(line, lacks, disagrees=True)))
    steps = {step.id: replace(step, depends=tuple(depends.get(step.id, ()))) for step in steps.values()}
    order = _order(steps, depends, told)
    epics, places = [*dict.fromkeys(step.epic for step in steps.values())], dict[str, tuple[int, int]]()
    for one in order:
        above = [places[depend] for depend in steps[one].depends if depend in places]
        epic = max([epics.index(steps[one].epic), *(place for place, _ in above)])
        places[one] = epic, max((depth + 1 for _, depth in above), default=0)
    levels = {place: number for number, place in enumerate(sorted(set(places.values())), 1)}
    return tuple(replace(step, priority=levels[places[step.id]]) for step in steps.values()), tuple(told)


def _read_depends(data: bytes, steps: Mapping[str, PlannedStory]) -> Iterator[tuple[str, str, int, str | None]]:
    """Give of stories the texts that say what each depends on, with their lines; and the titles of their headings."""
    story, below = "", ""
    for piece in pieces(Text.from_bytes(data).plain):
        below = "" if piece.kind == "heading" else below
        if piece.kind == "heading" and (found := planned_in(piece.text)):
            story = found[1] if found[0] == "story" and found[1] in steps else ""
            yield from [(story, "", piece.line, found[2])] if story else ()
        for line, said in enumerate(piece.text.split("\n") if story else (), piece.line):
            if found := _DEPENDS.match(bare(said)):
                below = "" if found["rest"] else "item paragraph" if piece.kind == "heading" else "item"
                yield story, found["rest"] or "", line, None
            elif piece.kind in below:
                yield story, said, line, None
            else:
                below = ""


def _names(said: str, ids: list[str]) -> Iterator[str]:
    for found in _NAMED.finditer(re.sub(r"\([^()]*\)", "", said.lower())):
        first, last = ((found[group] or "").replace(".", "-") for group in ("id", "last"))
        yield first or f"epic-{found['epic']}"
        if last in ids and first in ids:
            yield from ids[ids.index(first) + 1 : ids.index(last)]
        if last:
            yield last


def _order(steps: Mapping[str, PlannedStory], depends: Mapping[str, Mapping[str, int]], told: list[Told]) -> list[str]:
    """Put what is depended on first; a circle is told, and broken where it was found; after many it is left."""
    graph = {step.id: dict.fromkeys(step.depends) for step in steps.values()}
    for _ in range(_CIRCLES):
        try:
            return [*TopologicalSorter(graph).static_order()]
        except CycleError as error:
            circle: list[str] = error.args[1][::-1]  # each depends on the next
            lines = [f"{one} (line {depends[one][other]})" for one, other in pairwise(circle)]
            said = f"these depend on each other in a circle: {' → '.join([*lines, circle[-1]])}"
            told.append((steps[circle[0]].path, StoryProblem(depends[circle[0]][circle[1]], said, disagrees=True)))
            del graph[circle[0]][circle[1]]
    return [*steps]


def kebab(title: str) -> str:
    """Write a title as keys do."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    words = re.sub(r"[^a-z0-9]+", "-", plain.replace("'", "")).strip("-")
    return words[:_MOST].rpartition("-")[0] or words[:_MOST] if len(words) > _MOST else words or "story"


# --- the sprint status --------------------------------------------------------------------------------------------


def with_plan(data: bytes, steps: Sequence[PlannedStory]) -> tuple[bytes, tuple[str, ...]]:
    """Add what a sprint status lacks of a plan, as backlog, each behind the one before it; and say which keys.

    Nothing else changes. Raises `NotWritable`, `Unreadable`.
    """
    text, before = Text.from_bytes(data), read_sprint(data)
    end = (text.lines[0][len(text.line(1)) :] if text.lines else "") or "\n"
    try:
        root = composed(text.plain)
    except NoYaml as error:
        raise NotWritable(f"this is no YAML: {error} (line {error.line})") from error
    listed, lines, places = pairs(root).get("development_status"), list(text.lines), NodeLines(text.plain)
    there, indent, head = dict[str, int](), 2, ""
    if isinstance(listed, MappingNode) and listed.value and not listed.flow_style:
        there = {str(key.value): _last_line(key, value, places) for key, value in listed.value}
        first, indent = places.locate(listed.value[0][0].start_mark.index)
        anchor = first - 1
    elif isinstance(listed, ScalarNode) and not listed.value:
        anchor = places.locate(listed.start_mark.index)[0]
    elif listed is None and not before.entries and (root is None or isinstance(root, MappingNode)):
        anchor, head = len(lines), f"development_status:{end}"
    else:
        raise NotWritable("its stories are not listed under development_status, one a line; write them by hand")
    ids = {one.id: one.key for one in before.entries if one.kind == "story" and one.id}
    added, more = list[str](), dict[int, str]()
    for key, id_, status in _list_keys(steps, there):
        have = key if key in there else ids.get(id_)
        if have is not None:
            anchor = there[have]
        elif status:
            added.append(key)
            more[anchor] = more.get(anchor, head) + f"{' ' * indent}{key}: {status}{end}"
    for line, new in sorted(more.items(), reverse=True):
        whole = not line or lines[line - 1].endswith(("\n", "\r"))  # else the last line has no end, then as before
        lines.insert(line, new if whole else end + new.removesuffix(end))
    new = Text(tuple(lines), text.bom).bytes
    kept = [(one.key, one.said.said) for one in read_sprint(new).entries]
    if [one for one in kept if one[0] not in added] != [(one.key, one.said.said) for one in before.entries]:
        raise NotWritable("what it says would be read as something else; write the stories there by hand")
    return new, tuple(added)


def _list_keys(steps: Sequence[PlannedStory], there: Mapping[str, int]) -> Iterator[tuple[str, str, str]]:
    """Give keys in order, with id and status; without a status they are only looked for."""
    for name in dict.fromkeys(f"epic-{step.epic}" for step in steps):
        whole = re.fullmatch(r"epic-\d+[a-z]?", name)
        yield name, "", "backlog" if whole else ""
        yield from ((step.key, step.id, "backlog") for step in steps if f"epic-{step.epic}" == name)
        yield f"{name}-retrospective", "", "optional" if whole and name not in there else ""


def _last_line(key: Node, value: Node, places: NodeLines) -> int:
    """Give the line in which an entry ends; what an alias names stands elsewhere."""
    while isinstance(value, MappingNode) and not value.flow_style and value.start_mark.index > key.start_mark.index:
        key, value = value.value[-1]
    line, column = places.locate(max(value.end_mark.index, key.end_mark.index))
    return line - (column == 0)


def new_sprint(
    steps: Sequence[PlannedStory], *, date: datetime, project: str, location: str
) -> tuple[bytes, tuple[str, ...]]:
    """Write a sprint status for a plan, with the documented header."""
    project, location = (one if re.fullmatch(r"\w[\w ./-]*", one) else json.dumps(one) for one in (project, location))
    return with_plan(_HEADER.format(date=f"{date:%Y-%m-%d}", project=project, location=location).encode(), steps)
