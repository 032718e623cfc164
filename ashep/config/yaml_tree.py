"""YAML text -> a tree of plain values that knows the line and the key of each of them.

pyyaml's parser gives the events; what they mean is decided here, because YAML 1.1's surprises and YAML's ways to write
much with little have no place in files that start programs: `on`, `off`, `yes`, `no`, `1:30`, `010` and dates are
words, only `true` and `false` are booleans, and aliases, anchors, tags, merge keys, duplicate keys, keys that are no
words, a second document, and files too large or too deep are errors.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import yaml

MAX_BYTES = 256 * 1024
MAX_DEPTH = 32

Scalar = str | int | float | bool | None
Plain = Scalar | list["Plain"] | dict[str, "Plain"]

_CONSTANTS: dict[str, Scalar] = {"true": True, "false": False, "null": None, "~": None, "": None}
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+([eE][-+]?[0-9]{1,3})?|[eE][-+]?[0-9]{1,3})")
_SIMPLE_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class Node:
    """A value, where it stands, and its key as a person would write it: `policies.standard.phases[0].next`."""

    value: "Scalar | list[Node] | dict[str, Node]"
    line: int
    """Of the key that it belongs to, else of the value itself; the first line is 1."""
    key: str
    """Empty at the top."""
    file: str = ""
    """The file that it stands in; empty where the text is from nowhere."""

    @property
    def entries(self) -> "dict[str, Node]":
        """Entries of a mapping; of any other value none."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def items(self) -> "list[Node]":
        """Items of a list; of any other value none."""
        return self.value if isinstance(self.value, list) else []

    @property
    def children(self) -> "list[Node]":
        """Values of a mapping, or items of a list."""
        return [*self.entries.values(), *self.items]

    def plain(self) -> Plain:
        """Give the value without the places."""
        if isinstance(self.value, dict):
            return {key: child.plain() for key, child in self.value.items()}
        return [child.plain() for child in self.value] if isinstance(self.value, list) else self.value

    def child(self, part: str | int) -> "Node | None":
        """Find an entry of a mapping or an item of a list."""
        if isinstance(part, str):
            return self.entries.get(part)
        return self.items[part] if part < len(self.items) else None

    def locate(self, path: Sequence[str | int]) -> "Node":
        """Find the value at a path; a missing value has the line of its parent."""
        node = self
        for part in path:
            node = node.child(part) or Node(None, node.line, node.key_of(part), node.file)
        return node

    def problem(self, code: str, message: str) -> "YamlProblem":
        """Make a problem of this value."""
        return YamlProblem(code, message, self.line, self.key or None, self.file)

    def key_of(self, part: str | int) -> str:
        """Name an entry below this one, whether it is there or not."""
        if isinstance(part, int):
            return f"{self.key}[{part}]"
        word = part if _SIMPLE_KEY.fullmatch(part) else shorten(repr(part))
        return f"{self.key}.{word}" if self.key else word


@dataclass(frozen=True, slots=True)
class YamlProblem:
    """Something that the file may not say."""

    code: str
    message: str
    line: int | None = None
    key: str | None = None
    file: str = ""
    """Where that is another file than the one that is being read."""


class YamlUnreadable(Exception):
    """The text cannot be read any further."""

    def __init__(self, problem: YamlProblem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def shorten(text: str, limit: int = 60) -> str:
    """Cut a text that is only quoted."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def decode(raw: bytes) -> str:
    """Bytes of a file -> text without a byte order mark; raises `YamlUnreadable`."""
    if len(raw) > MAX_BYTES:
        raise YamlUnreadable(
            YamlProblem("too-large", f"larger than {MAX_BYTES // 1024} KiB; is this the right file?", 1)
        )
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        message = f"not UTF-8 text (byte 0x{raw[error.start]:02x}); save the file as UTF-8"
        raise YamlUnreadable(YamlProblem("encoding", message, line)) from error


def read(text: str, file: str = "", above: int = 0) -> tuple[Node, list[YamlProblem]]:
    """Text -> its tree, and what it may not say; raises `YamlUnreadable` where nothing can be made of the rest.

    `above`: how many lines stand before it where it is a part of a text, whose lines are then told.
    """
    reader = _Reader(iter(yaml.parse(text, Loader=yaml.SafeLoader)), file, above)
    try:
        return reader.document(), reader.problems
    except yaml.MarkedYAMLError as error:
        problem = _syntax(error, text, reader.where)
    except yaml.YAMLError as error:
        position: object = getattr(error, "position", 0)
        at = position if isinstance(position, int) else 0
        message = f"a character that no text file holds (U+{ord(text[at]):04X}); is this the right file?"
        problem = YamlProblem("encoding", message, text.count("\n", 0, at) + 1)
    raise YamlUnreadable(replace(problem, line=(problem.line or 1) + above))


def _syntax(error: yaml.MarkedYAMLError, text: str, where: str) -> YamlProblem:
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else 1
    lines = text.splitlines()
    before = lines[line - 1][: mark.column + 1] if mark and line <= len(lines) else ""
    if "\t" in before:
        return YamlProblem("tab", "a tab stands where only spaces may; indent with spaces", line, where or None)
    words = ": ".join(part for part in (error.context, error.problem) if part)
    return YamlProblem("syntax", f"not valid YAML: {words}", line, where or None)


def resolve(text: str) -> Scalar:
    """Say what an unquoted word means."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        number = float(text)
        return number if math.isfinite(number) else text
    return text


@dataclass
class _Reader:
    events: Iterator[yaml.Event]
    file: str
    above: int
    problems: list[YamlProblem] = field(default_factory=list[YamlProblem])
    where: str = ""
    """The key that is being read, for errors of the parser itself."""

    def document(self) -> Node:
        top = Node(None, self.above + 1, "", self.file)
        next(self.events)  # the start of the stream
        event = next(self.events)
        if isinstance(event, yaml.StreamEndEvent):
            return top
        top = self._node(next(self.events), top, 0)
        next(self.events)  # the end of the document
        event = next(self.events)
        if not isinstance(event, yaml.StreamEndEvent):
            raise YamlUnreadable(YamlProblem("documents", "a second document begins here; use one", self._line(event)))
        return top

    def _node(self, event: yaml.Event, place: Node, depth: int) -> Node:
        self.where = place.key
        self._refuse_shorthand(event, place)
        if isinstance(event, yaml.ScalarEvent):
            plain: bool = event.implicit[0]
            text: str = event.value
            return replace(place, value=resolve(text) if plain else text)
        if depth == MAX_DEPTH:
            raise self._fatal("depth", f"nested more than {MAX_DEPTH} deep", event, place)
        if isinstance(event, yaml.MappingStartEvent):
            return replace(place, value=self._mapping(place, depth))
        return replace(place, value=self._sequence(place, depth))

    def _fatal(self, code: str, message: str, event: yaml.Event, place: Node) -> YamlUnreadable:
        return YamlUnreadable(YamlProblem(code, message, self._line(event), shorten(place.key) or None))

    def _refuse_shorthand(self, event: yaml.Event, place: Node) -> None:
        anchor: str | None = getattr(event, "anchor", None)
        if isinstance(event, yaml.AliasEvent):
            raise self._fatal("alias", f"an alias (*{anchor}) is not allowed; write the value out", event, place)
        if anchor is not None:
            raise self._fatal("alias", f"an anchor (&{anchor}) is not allowed; write the value out", event, place)
        tag: str | None = getattr(event, "tag", None)
        if tag is not None:
            message = f"a tag ({shorten(tag.replace('tag:yaml.org,2002:', '!!'))}) is not allowed; leave it out"
            raise self._fatal("tag", message, event, place)

    def _sequence(self, place: Node, depth: int) -> list[Node]:
        items: list[Node] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            below = Node(None, self._line(event), place.key_of(len(items)), self.file)
            items.append(self._node(event, below, depth + 1))
            self.where = place.key
        return items

    def _mapping(self, place: Node, depth: int) -> dict[str, Node]:
        entries: dict[str, Node] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            line, name = self._line(event), self._key(event, place)
            below = Node(None, line, place.key_of(name), self.file)
            value = self._node(next(self.events), below, depth + 1)
            self.where = place.key
            if name in entries:
                message = f"duplicate key, it stands on line {entries[name].line} already; keep one of them"
                self.problems.append(below.problem("duplicate-key", message))
            else:
                entries[name] = value
        return entries

    def _key(self, event: yaml.Event, place: Node) -> str:
        self._refuse_shorthand(event, place)
        if not isinstance(event, yaml.ScalarEvent):
            raise self._fatal("key", "a mapping or list cannot be a key; keys are words", event, place)
        plain: bool = event.implicit[0]
        text: str = event.value
        if plain and text == "<<":
            raise self._fatal("merge-key", "a merge key (<<) is not allowed; write the values out", event, place)
        if plain and not isinstance(resolve(text), str):
            message = f'keys are words; write it in quotes: "{shorten(text)}"'
            self.problems.append(YamlProblem("key", message, self._line(event), place.key_of(text), self.file))
        return text

    def _line(self, event: yaml.Event) -> int:
        mark = event.start_mark
        return self.above + (mark.line if mark else 0) + 1


class IndentedDumper(yaml.SafeDumper):
    """Writes lists further in than their keys, and no aliases, which are not read."""

    def ignore_aliases(self, data: object) -> bool:
        """Write the same value twice where it occurs twice."""
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Never leave a list as far out as its key."""
        return super().increase_indent(flow, False)
