"""Sprint status and `stories.yaml`: keys in their order, each with its line; one value is written, nothing else."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from ashep.bmad.story import NotWritable, Problem, Said, id_in, told
from ashep.bmad.text import Text
from ashep.bmad.words import Status, further, status_of, styled

EntryKind = Literal["epic", "story", "retrospective", "other"]

_EPIC = re.compile(r"epic-(\d+)$")
_RETROSPECTIVE = re.compile(r"epic-\d+-retrospective$")
_STORIES = ("development_status", "stories")


@dataclass(frozen=True, slots=True)
class Entry:
    """A key and what it says."""

    key: str
    kind: EntryKind
    id: str | None
    said: Said


@dataclass(frozen=True, slots=True)
class Sprint:
    """A `sprint-status.yaml`."""

    entries: tuple[Entry, ...]
    location: str | None
    """Where it says that stories are."""
    problems: tuple[Problem, ...] = ()

    def of(self, key: str, id_: str | None) -> Entry | None:
        """Find what is said of a story: by its file's name, else by its id where that names one alone."""
        if found := next((one for one in self.entries if one.key == key), None):
            return found
        same = [one for one in self.entries if id_ is not None and one.id == id_ and one.kind == "story"]
        return same[0] if len(same) == 1 else None


@dataclass(frozen=True, slots=True)
class Planned:
    """An entry of `stories.yaml`, in the order of work (facts/bmad.md 12)."""

    id: str
    title: str
    line: int
    spec_checkpoint: bool = False
    """A person looks once it is planned."""
    done_checkpoint: bool = False
    """A person looks once it is done."""


def read_sprint(data: bytes) -> Sprint:
    """Read a sprint status. Raises `Unreadable`; YAML that is none is a problem of it."""
    text = Text.of(data)
    root, problems = _composed(text)
    if not isinstance(root, MappingNode):
        problems = problems or [Problem(1, "it holds no keys")]
        return Sprint((), None, tuple(problems))
    values = {str(key.value): value for key, value in root.value}
    listed = next((values[name] for name in _STORIES if isinstance(values.get(name), MappingNode)), None)
    if listed is None and any(_status_in(value) for value in values.values()):
        listed = root
    if listed is None:
        problems.append(Problem(1, "it has no development_status"))
    entries, seen = list[Entry](), dict[str, int]()
    for key, value in listed.value if isinstance(listed, MappingNode) else ():
        name, line = str(key.value), key.start_mark.line + 1
        if name in seen:
            problems.append(Problem(line, f"{name} stands here and in line {seen[name]}", disagrees=True))
        seen[name] = line
        status = value if isinstance(value, ScalarNode) else _status_in(value)
        if status is not None:
            entries.append(Entry(name, _kind(name), id_in(name), _said(status)))
        elif listed is not root:
            problems.append(Problem(line, f"{name} says no status"))
    location = values.get("story_location")
    return Sprint(tuple(entries), _scalar(location), tuple(problems))


def read_planned(data: bytes) -> tuple[tuple[Planned, ...], tuple[Problem, ...]]:
    """Read a `stories.yaml`. Raises `Unreadable`."""
    root, problems = _composed(Text.of(data))
    if isinstance(root, MappingNode):
        root = next((value for _, value in root.value if isinstance(value, SequenceNode)), root)
    if not isinstance(root, SequenceNode):
        return (), tuple(problems or [Problem(1, "it is no list of stories")])
    planned = list[Planned]()
    for one in root.value:
        line = one.start_mark.line + 1
        values = {str(key.value): _scalar(value) for key, value in one.value} if isinstance(one, MappingNode) else {}
        id_, title = values.get("id"), values.get("title")
        if not id_ or not title:
            problems.append(Problem(line, "a story has an id and a title"))
            continue
        clash = next((old for old in planned if id_.startswith(old.id) or old.id.startswith(id_)), None)
        if clash is not None:
            problems.append(Problem(line, f"{id_} begins as {clash.id} in line {clash.line} does", disagrees=True))
        wants = {name: values.get(name) == "true" for name in ("spec_checkpoint", "done_checkpoint")}
        planned.append(Planned(id_, title, line, **wants))
    return tuple(planned), tuple(problems)


def with_key(data: bytes, key: str, status: Status, *, force: bool = False) -> bytes:
    """Write one key's status. Raises `NotWritable` where it is not there, or is further and not `force`."""
    sprint = read_sprint(data)
    found = [one for one in sprint.entries if one.key == key]
    if len(found) != 1:
        raise NotWritable(f"{key} does not stand there" if not found else f"{key} stands there {len(found)} times")
    said = found[0].said
    if said.word is not None and further(said.word, status) and not force:
        raise NotWritable(f"{key} is {said.said}, which is further than {status}; --force writes it all the same")
    if said.word == status:
        return data
    return put_key(data, said, styled(status, said.said))


def put_key(data: bytes, old: Said, said: str) -> bytes:
    """Replace what is said by these words, in the quotes that stand there."""
    return Text.of(data).with_part(old.line, old.column, old.column + len(old.said), said).bytes


# --- nodes --------------------------------------------------------------------------------------------------------


def _composed(text: Text) -> tuple[Node | None, list[Problem]]:
    if merged := next(_merged(text), None):
        return None, [merged]
    try:
        return yaml.compose(text.plain, Loader=yaml.SafeLoader), []
    except yaml.YAMLError as error:
        line, why = told(error)
        return None, [Problem(line, f"this is no YAML: {why}")]


def _merged(text: Text) -> Iterator[Problem]:
    for number in range(1, len(text.lines) + 1):
        if text.line(number).startswith(("<<<<<<< ", ">>>>>>> ")):
            yield Problem(number, "a merge was left half done: its markers stand here")


def _kind(key: str) -> EntryKind:
    if _EPIC.match(key):
        return "epic"
    return "retrospective" if _RETROSPECTIVE.match(key) else "story" if id_in(key) else "other"


def _status_in(node: Node) -> ScalarNode | None:
    pairs = node.value if isinstance(node, MappingNode) else ()
    return next((value for key, value in pairs if key.value == "status" and isinstance(value, ScalarNode)), None)


def _scalar(node: Node | None) -> str | None:
    return str(node.value) if isinstance(node, ScalarNode) and node.value else None


def _said(node: ScalarNode) -> Said:
    mark, said = node.start_mark, str(node.value)
    return Said(said, status_of(said), mark.line + 1, mark.column + (node.style in ("'", '"')))
