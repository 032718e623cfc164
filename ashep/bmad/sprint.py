"""Sprint status, `stories.yaml` and epics: what is listed, in its order, each with its line; one value is written."""

import re
from dataclasses import dataclass, replace
from typing import Literal

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from ashep.bmad.markdown import bare, id_in, pieces
from ashep.bmad.status_words import Status, further, restated
from ashep.bmad.story import StoryProblem, WrittenStatus, put_status, said_in
from ashep.bmad.text import NotWritable, Text
from ashep.bmad.yaml_nodes import NodeLines, NoYaml, composed, pairs, scalar

EntryKind = Literal["epic", "story", "retrospective", "other"]

_EPIC = re.compile(r"epic-\d+[a-z]?(?P<retrospective>-retrospective)?$", re.IGNORECASE)
_HEADING = re.compile(
    r"(?P<kind>Epic|Story)\s+(?P<id>(?:[a-z]{1,4}-)?\d+[a-z]?(?:[.-]\d+[a-z]?)*)(?!\w)\s*[:–—-]?\s*(?P<title>.*)",
    re.IGNORECASE,
)
_STORIES = ("development_status", "stories")


@dataclass(frozen=True, slots=True)
class Entry:
    """A key and what it says."""

    key: str
    kind: EntryKind
    id: str | None
    said: WrittenStatus


@dataclass(frozen=True, slots=True)
class Sprint:
    """A `sprint-status.yaml`."""

    entries: tuple[Entry, ...]
    location: str | None
    """Where it says that stories are."""
    problems: tuple[StoryProblem, ...] = ()

    def find_entry(self, key: str, id_: str | None, others: frozenset[str] = frozenset()) -> Entry | None:
        """Find what is said of a story: by its file's name, else by its id where that is no other's."""
        if found := next((entry for entry in self.entries if entry.key == key), None):
            return found
        same = [entry for entry in self.entries if id_ is not None and entry.id == id_ and entry.kind == "story"]
        return same[0] if len(same) == 1 and same[0].key not in others else None


@dataclass(frozen=True, slots=True)
class Planned:
    """A story that is planned: of `stories.yaml`, in the order of work (facts/bmad.md 12), or of the epics."""

    id: str
    title: str
    line: int
    spec_checkpoint: bool = False
    """A person looks once it is planned."""
    done_checkpoint: bool = False
    """A person looks once it is done."""


@dataclass(frozen=True, slots=True)
class Epic:
    """An epic, with the stories that it plans."""

    id: str
    title: str
    line: int
    stories: tuple[Planned, ...] = ()


def read_sprint(data: bytes) -> Sprint:
    """Read a sprint status. Raises `Unreadable`; YAML that is none is a problem of it."""
    root, places, problems = _composed(data)
    values = pairs(root)
    if not isinstance(root, MappingNode):
        return Sprint((), None, tuple(problems or [StoryProblem(1, "it holds no keys")]))
    listed = next((values[name] for name in _STORIES if isinstance(values.get(name), MappingNode)), None)
    if listed is None and any(_status_in(value) for value in values.values()):
        listed = root
    if listed is None:
        problems.append(StoryProblem(1, "it has no development_status, or that holds no keys"))
    entries, seen = list[Entry](), dict[str, int]()
    for key, value in listed.value if isinstance(listed, MappingNode) else ():
        name, line = str(key.value), places.locate(key.start_mark.index)[0]
        if name in seen:
            problems.append(StoryProblem(line, f"{name} stands here and in line {seen[name]}", disagrees=True))
        seen[name] = line
        status = value if scalar(value) and listed is not root else _status_in(value)
        if isinstance(status, ScalarNode):
            entries.append(Entry(name, _kind(name), id_in(name), said_in(status, places)))
        elif listed is not root:
            problems.append(StoryProblem(line, f"{name} says no status"))
    return Sprint(tuple(entries), scalar(values.get("story_location")), tuple(problems))


def read_planned(data: bytes) -> tuple[tuple[Planned, ...], tuple[StoryProblem, ...]]:
    """Read a `stories.yaml`. Raises `Unreadable`."""
    root, places, problems = _composed(data)
    if isinstance(root, MappingNode):
        root = next((value for _, value in root.value if isinstance(value, SequenceNode)), root)
    if not isinstance(root, SequenceNode):
        return (), tuple(problems or [StoryProblem(1, "it is no list of stories")])
    planned = list[Planned]()
    for one in root.value:
        line = places.locate(one.start_mark.index)[0]
        values = {name: said for name, value in pairs(one).items() if (said := scalar(value))}
        id_, title = values.get("id"), values.get("title")
        if not id_ or not title:
            problems.append(StoryProblem(line, "a story has an id and a title"))
            continue
        clash = next(
            (old for old in planned if f"{id_}-".startswith(f"{old.id}-") or f"{old.id}-".startswith(f"{id_}-")), None
        )
        if clash is not None:
            problems.append(StoryProblem(line, f"{id_} begins as {clash.id} in line {clash.line} does", disagrees=True))
        wants = {name: values.get(name, "").lower() == "true" for name in ("spec_checkpoint", "done_checkpoint")}
        planned.append(Planned(id_, title, line, **wants))
    return tuple(planned), tuple(problems)


def planned_in(heading: str) -> tuple[str, str, str] | None:
    """Give what a heading of epics plans: `epic` or `story`, its id and title; None: nothing."""
    found = _HEADING.match(bare(heading))
    return found and (found["kind"].lower(), found["id"].lower().replace(".", "-"), found["title"].strip())


def read_epics(data: bytes) -> tuple[Epic, ...]:
    """Read `epics.md`: `## Epic 1: Title`, `### Story 1.2: Title`, at whatever level. Raises `Unreadable`."""
    epics, stories = dict[str, Epic](), dict[str, Planned]()
    for piece in pieces(Text.from_bytes(data).plain):
        if piece.kind != "heading" or not (found := planned_in(piece.text)):
            continue
        kind, id_, title = found
        if kind == "epic":
            epics.setdefault(id_, Epic(id_, title, piece.line))
        elif "-" in id_:
            stories.setdefault(id_, Planned(id_, title or id_, piece.line))
    for id_, story in stories.items():
        above = id_.rsplit("-", 1)[0]
        epic = epics.get(above) or epics.get(id_.split("-")[0]) or Epic(above, "", story.line)
        epics[epic.id] = replace(epic, stories=(*epic.stories, story))
    return tuple(epics.values())


def with_key(data: bytes, key: str, status: Status, *, force: bool = False) -> bytes:
    """Write one key's status. Raises `NotWritable` where it is not there, or is further and not `force`."""
    entries = read_sprint(data).entries
    found = [entry for entry in entries if entry.key == key]
    if len(found) != 1:
        raise NotWritable(f"{key} does not stand there" if not found else f"{key} stands there {len(found)} times")
    said = found[0].said
    if any(entry.said.line == said.line and entry.said.column == said.column for entry in entries if entry.key != key):
        raise NotWritable(f"{key} says what another key does (line {said.line}); give it a status of its own")
    if said.word is not None and further(said.word, status) and not force:
        raise NotWritable(f"{key} is {said.said}, which is further than {status}; --force writes it all the same")
    return data if said.word == status else put_status(data, said, restated(status, said.said))


def _composed(data: bytes) -> tuple[Node | None, NodeLines, list[StoryProblem]]:
    text = Text.from_bytes(data)
    places = NodeLines(text.plain)
    for number in range(1, len(text.lines) + 1):
        if text.line(number).startswith(("<<<<<<< ", ">>>>>>> ")):
            return None, places, [StoryProblem(number, "a merge was left half done: its markers stand here")]
    try:
        return composed(text.plain), places, []
    except NoYaml as error:
        return None, places, [StoryProblem(error.line, f"this is no YAML: {error}")]


def _kind(key: str) -> EntryKind:
    if found := _EPIC.match(key):
        return "retrospective" if found["retrospective"] else "epic"
    return "story" if id_in(key) else "other"


def _status_in(node: Node) -> Node | None:
    status = pairs(node).get("status")
    return status if scalar(status) else None
