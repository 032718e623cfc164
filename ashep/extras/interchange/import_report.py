"""Notes on an import: what it made, and what it has to say about it."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ashep.config import yaml_tree
from ashep.config.findings import ConfigErrors, read_text, refused
from ashep.config.yaml_tree import Node, Plain, YamlProblem, YamlUnreadable

Kind = Literal["lost", "changed"]
"""lost: there is nothing here that would mean it · changed: it is carried over, and means a little else, or more."""

_WORDS: dict[Kind, str] = {"lost": "not carried over", "changed": "changed"}


@dataclass(frozen=True, slots=True)
class Note:
    """Something of the input that is not here as it was there."""

    kind: Kind
    key: str
    line: int
    why: str
    file: str = ""
    """Of several files, which one."""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file else f"line {self.line}"
        return f"{_WORDS[self.kind]}: {place}: {self.key}: {self.why}"


def grouped(notes: Iterable[Note]) -> list[str]:
    """Give the notes as lines, those that say the same of many entries of a list as one."""
    groups: dict[tuple[str, ...], list[Note]] = {}
    for note in notes:
        groups.setdefault((note.kind, note.file, re.sub(r"\[\d+\]", "[]", note.key), note.why), []).append(note)
    lines: list[str] = []
    for (_, file, key, why), same in groups.items():
        numbers = f"{file and f'{file}: '}lines {', '.join(str(note.line) for note in same)}"
        lines.append(str(same[0]) if len(same) == 1 else f"{_WORDS[same[0].kind]}: {numbers}: {key}: {why}")
    return lines


@dataclass(frozen=True, slots=True)
class Imported:
    """The files of an import, by their paths in `.agent-shepherd`."""

    files: dict[str, str]
    notes: tuple[Note, ...]


@dataclass(slots=True)
class ImportReading:
    """A file that is being read: what was taken from it, what was noted, and what nobody asked for in the end."""

    file: Path
    root: Node
    name: str = ""
    """How notes call the file; empty: it is the only one."""
    notes: list[Note] = field(default_factory=list[Note])
    carried: set[int] = field(default_factory=set[int])
    """Values, by identity, that the output or a note stands for."""

    def take(self, node: Node | None) -> Plain:
        """Give a value that is carried over, all that is in it included."""
        if node is None:
            return None
        self.carried.update(map(id, _walk(node)))
        return node.plain()

    def note(self, kind: Kind, node: Node | None, why: str) -> None:
        """Say something about a value, if it is there, all that is in it included."""
        if node is not None:
            self.take(node)
            self.remark(kind, node, why)

    def remark(self, kind: Kind, node: Node, why: str) -> None:
        """Say something about a value whose parts are still to be read."""
        self.notes.append(Note(kind, node.key or "(the file)", node.line, why, self.name))

    def refuse(self, node: Node, message: str) -> ConfigErrors:
        """Give the error that the file cannot be read as what it seems to be."""
        return refused(self.file, node.problem("unreadable", message))

    def rest(self) -> None:
        """Note every key that was neither carried nor noted: nothing is dropped silently."""
        for node in _walk(self.root):
            if node.key and id(node) not in self.carried and not node.children:
                self.remark("lost", node, "not known here")


def read_yaml(file: Path, name: str = "", text: str | None = None) -> ImportReading:
    """Read YAML as the user's own files are read; raises `ConfigErrors` where it is none, or says a thing twice."""
    try:
        root, problems = yaml_tree.read(read_text(file) if text is None else text)
    except YamlUnreadable as error:
        raise refused(file, error.problem) from error
    if problems:
        raise refused(file, *problems)
    return ImportReading(file, root, name)


def read_json(file: Path) -> ImportReading:
    """Read JSON; raises `ConfigErrors` with the line of what is wrong."""
    text = read_text(file)
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        message = f"not valid JSON: {error.msg}, column {error.colno}"
        raise refused(file, YamlProblem("syntax", message, error.lineno)) from error
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else "a number is too long"
        raise refused(file, YamlProblem("syntax", f"not valid JSON: {reason}", 1)) from error
    # JSON is YAML, but for tabs, which stand only between its parts; the reader of YAML knows the lines.
    return read_yaml(file, text=text.replace("\t", " "))


def _walk(node: Node) -> list[Node]:
    """Give a value and all that is in it."""
    return [node, *(part for child in node.children for part in _walk(child))]
