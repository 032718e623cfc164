"""Notes on an import: what it made, and what it has to say about it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ashep.config import nodes
from ashep.config.findings import ConfigErrors, Finding
from ashep.config.nodes import Node, Plain, Problem, Unreadable, decode

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
    groups: dict[tuple[Kind, str, str, str], list[Note]] = {}
    for note in notes:
        groups.setdefault((note.kind, note.file, re.sub(r"\[\d+\]", "[]", note.key), note.why), []).append(note)
    lines: list[str] = []
    for (kind, file, key, why), same in groups.items():
        if len(same) == 1:
            lines.append(str(same[0]))
            continue
        numbers = ", ".join(str(note.line) for note in same)
        place = f"{file}: lines {numbers}" if file else f"lines {numbers}"
        lines.append(f"{_WORDS[kind]}: {place}: {key}: {why}")
    return lines


@dataclass(frozen=True, slots=True)
class Imported:
    """The files of an import, by their paths in `.agent-shepherd`."""

    files: dict[str, str]
    notes: tuple[Note, ...]


@dataclass(slots=True)
class Reading:
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
        self.carried.update(map(id, everything(node)))
        return node.plain()

    def note(self, kind: Kind, node: Node, why: str) -> None:
        """Say something about a value, all that is in it included."""
        self.carried.update(map(id, everything(node)))
        self.notes.append(Note(kind, node.key or "(the file)", node.line, why, self.name))

    def lost(self, node: Node | None, why: str) -> None:
        """Say that a value has no counterpart."""
        if node is not None:
            self.note("lost", node, why)

    def changed(self, node: Node | None, why: str) -> None:
        """Say that a value means a little else."""
        if node is not None:
            self.note("changed", node, why)

    def refuse(self, node: Node, message: str) -> ConfigErrors:
        """Give the error that the file cannot be read as what it seems to be."""
        return refused(self.file, Problem("unreadable", message, node.line, node.key or None))

    def rest(self) -> None:
        """Note every key that was neither carried nor noted: nothing is dropped silently."""
        for node in leaves(self.root):
            if id(node) not in self.carried:
                self.lost(node, "not known here")


def refused(file: Path, *problems: Problem) -> ConfigErrors:
    """Give problems of a file as an exception."""
    return ConfigErrors([Finding(one.code, str(file), one.line, one.key, one.message) for one in problems])


def read_yaml(file: Path, name: str = "", text: str | None = None) -> Reading:
    """Read YAML as the user's own files are read; raises `ConfigErrors` where it is none, or says a thing twice."""
    try:
        root, problems = nodes.read(read_text(file) if text is None else text)
    except Unreadable as error:
        raise refused(file, error.problem) from error
    if problems:
        raise refused(file, *problems)
    return Reading(file, root, name)


def read_text(file: Path) -> str:
    """Read a file of bounded size; raises `ConfigErrors`."""
    try:
        return decode(file.read_bytes())
    except Unreadable as error:
        raise refused(file, error.problem) from error
    except OSError as error:
        raise refused(file, Problem("unreadable", f"cannot be read: {error.strerror}", None, None)) from error


def everything(node: Node) -> list[Node]:
    """Give a value and all that is in it."""
    return [node, *(part for child in children(node) for part in everything(child))]


def leaves(node: Node) -> list[Node]:
    """Give the values that hold no others."""
    below = children(node)
    return [leaf for child in below for leaf in leaves(child)] if below else [node] if node.key else []


def children(node: Node) -> list[Node]:
    """Give the entries of a mapping, or the items of a list."""
    if isinstance(node.value, dict):
        return list(node.value.values())
    return node.value if isinstance(node.value, list) else []
