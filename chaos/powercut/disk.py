"""A disk that loses power: what processes wrote (recorded by strace), and what of it there may be afterwards.

Only what was flushed is sure: the bytes of a file once it was, an entry of a folder once the folder was. All else may
be there or not, in any order, and bytes may be there in part, or as zeros of the right length.
"""

import os
import random
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Mode = Literal["lost", "empty", "zeros", "kept", "any"]
MODES: tuple[Mode, ...] = ("lost", "empty", "zeros", "any")
"""What is not flushed is lost · names are there and no bytes · names, and zeros · anything, by a seed."""


@dataclass(frozen=True, slots=True)
class Write:
    """Bytes of a file; `size` alone: it was cut or grew to that."""

    node: int
    at: int
    data: bytes
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A folder's entry is set, or taken away; a rename also takes one away, and both are one step."""

    folder: int
    name: str
    node: int | None
    former: tuple[int, str] | None = None


@dataclass(frozen=True, slots=True)
class Flush:
    """A file or a folder is on the disk; None: everything is."""

    node: int | None
    path: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """Words that somebody was given at this moment."""

    words: str


Step = Write | Entry | Flush | Told


@dataclass
class Recording:
    """What a folder held, and what was done to it."""

    folders: dict[int, dict[str, int]] = field(default_factory=dict[int, dict[str, int]])
    files: dict[int, bytes] = field(default_factory=dict[int, bytes])
    steps: list[Step] = field(default_factory=list[Step])

    def told(self, cut: int) -> list[str]:
        """What was told before a cut."""
        return [step.words for step in self.steps[:cut] if isinstance(step, Told)]

    def cuts(self, each: int = 1) -> list[int]:
        """Moments that differ from the one before, each n-th of them, and those at which something was told."""
        moments = [number for number, step in enumerate(self.steps, 1) if not isinstance(step, Flush)]
        told = [number for number, step in enumerate(self.steps, 1) if isinstance(step, Told)]
        return sorted({*moments[::each], *told})

    def without(self, path: str, *, folders: bool) -> "Recording":
        """Give what there was if files, or folders, whose path this is a part of, had not been flushed."""
        left, rest = re.compile(path), int(not folders)
        steps = [one for one in self.steps if not isinstance(one, Flush) or one.node is None or one.node % 2 != rest
                 or not left.search(one.path)]  # fmt: skip
        return Recording(self.folders, self.files, steps)

    def after(self, cut: int, mode: Mode, seed: int = 0) -> dict[str, bytes | None]:
        """Give what there may be after a cut, by path; a folder is None, a link its target after `link:`."""
        chance = random.Random(f"{cut} {seed}")
        sure = self._flushed(cut)
        folders = {node: dict(entries) for node, entries in self.folders.items()}
        files = defaultdict(bytearray, {node: bytearray(data) for node, data in self.files.items()})
        for number, step in enumerate(self.steps[:cut]):
            if isinstance(step, Entry):
                if number in sure or mode in ("empty", "zeros", "kept") or (mode == "any" and chance.random() < 0.5):
                    _enter(folders, step)
            elif isinstance(step, Write):
                if number in sure or mode == "kept":
                    write(files[step.node], step, len(step.data))
                elif mode == "zeros":
                    write(files[step.node], Write(step.node, step.at, bytes(len(step.data)), step.size), len(step.data))
                elif mode == "any" and chance.random() < 0.7:
                    write(files[step.node], step, chance.choice((len(step.data), len(step.data) // 2)))
        return dict(_paths(folders, files, 0, ""))

    def _flushed(self, cut: int) -> set[int]:
        """The steps that are on the disk for sure."""
        waiting, sure = defaultdict[int, list[int]](list), set[int]()
        for number, step in enumerate(self.steps[:cut]):
            if isinstance(step, Write):
                waiting[step.node].append(number)
            elif isinstance(step, Entry):
                for folder in {step.folder, step.former[0] if step.former else step.folder}:
                    waiting[folder].append(number)
            elif isinstance(step, Flush):
                nodes = list(waiting) if step.node is None else [step.node]
                sure.update(one for node in nodes for one in waiting.pop(node, []))
        return sure


def _enter(folders: dict[int, dict[str, int]], step: Entry) -> None:
    if step.former is not None:
        folders.setdefault(step.former[0], {}).pop(step.former[1], None)
    entries = folders.setdefault(step.folder, {})
    if step.node is None:
        entries.pop(step.name, None)
    else:
        entries[step.name] = step.node


def write(content: bytearray, step: Write, length: int) -> None:
    """Do a write of which so many bytes came to the disk."""
    if step.size is not None:
        content[:] = content[: step.size].ljust(step.size, b"\0")
        return
    if len(content) < step.at:
        content.extend(bytes(step.at - len(content)))
    content[step.at : step.at + length] = step.data[:length]


def _paths(
    folders: dict[int, dict[str, int]], files: dict[int, bytearray], node: int, above: str
) -> Iterator[tuple[str, bytes | None]]:
    for name, below in sorted(folders.get(node, {}).items()):
        path = f"{above}{name}"
        if below % 2 == 0:  # a folder
            yield path, None
            yield from _paths(folders, files, below, f"{path}/")
        else:
            yield path, bytes(files[below])


def put(top: Path, content: dict[str, bytes | None]) -> None:
    """Make a folder hold exactly this."""
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir(parents=True)
    for path, data in content.items():
        if data is None:
            (top / path).mkdir()
        elif data.startswith(b"link:"):
            os.symlink(data[5:], top / path)
        else:
            (top / path).write_bytes(data)


def held(top: Path) -> dict[str, bytes | None]:
    """Give what a folder holds, as `Recording.after` does."""
    found = dict[str, bytes | None]()
    for path in sorted(top.rglob("*")):
        name = path.relative_to(top).as_posix()
        if path.is_symlink():
            found[name] = b"link:" + os.fsencode(os.readlink(path))
        else:
            found[name] = None if path.is_dir() else path.read_bytes()
    return found
