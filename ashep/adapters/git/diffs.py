"""Diffs, read by way of the git program.

What is read is what an agent wrote, who may not want it seen: neither attributes (`-diff`), nor replaced commits, nor
settings of the repository change what is shown here.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import Literal

import anyio.to_thread

from ashep.adapters.git.command import Git, commit_of
from ashep.core.impact.changes import ChangedFile, Diff
from ashep.core.impact.manifests import LARGEST_MANIFEST, changes_dependencies_alone, is_manifest
from ashep.core.impact.secrets import KNOWN, Line
from ashep.core.text import clean
from ashep.errors import AshepError, PrintedTooMuch
from ashep.redaction import Redaction

MOST_FILE = 4 * 1024**2
"""Bytes of a file before and now, together, of which the lines are read."""

MOST_TOTAL = 16 * 1024**2
"""Bytes of all such files; the smallest are read first."""

LONGEST_LINE = 2000
"""Characters of a line of a patch that are shown."""

_MOST_MANIFESTS = 20  # of one change that are compared
_HEAD = 400  # bytes that a patch begins with, about
_MOST_PATHS = 512 * 1024  # bytes of paths on a command line, below what every system takes
_RENAMES = "-l1000"  # so many files on either side are compared for renames; beyond, only equal ones are found
_HUNK = re.compile(rb"@@ -(?P<old>\d+)(?:,\d+)? \+(?P<new>\d+)(?:,\d+)? @@")
_SHOWN = (b"@@ -", b"old mode ", b"new mode ")  # what is shown of a patch begins with one of these
_LINK = "120000"
_SUBMODULE = "160000"
_KINDS: dict[str, Literal["created", "modified", "deleted", "renamed"]] = {
    "A": "created", "M": "modified", "T": "modified", "D": "deleted", "R": "renamed",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Entry:
    """A line of `git diff-tree --raw -z`."""

    modes: tuple[str, str]
    blobs: tuple[str, str]
    status: str
    paths: tuple[bytes, ...]
    """The former one first, where there are two."""

    @property
    def is_submodule(self) -> bool:
        return _SUBMODULE in self.modes


@dataclass(frozen=True, slots=True)
class Patch:
    """Lines of what is changed in a file, each with its sign."""

    lines: tuple[str, ...] = ()
    total: int = 0
    """How many there are of them."""
    unread: Literal["binary", "large", "submodule"] | None = None
    """Why there are none."""


class GitDiffs:
    """Diffs of the repository that holds the folder `project`; each call of git is bound by `timeout` seconds."""

    def __init__(self, project: Path, timeout: float = 60.0, redaction: Redaction | None = None) -> None:
        self._project, self._redaction = project, redaction or Redaction()
        self._git = Git(project, timeout=timeout, redaction=redaction)

    async def find(self, revision: str) -> str | None:
        return await commit_of(self._git, revision, absent=re.compile(""))  # whatever git says

    async def read(self, base: str, head: str) -> Diff:
        base, head, entries = await self._changed(base, head)
        read = await self._lines(base, head, entries, _chosen(entries, await self._sizes(entries)))
        alone = await self._dependencies_alone(entries)
        files = [
            replace(read.get(entry.paths[-1]) or _unread(entry), dependencies_alone=entry.paths[-1] in alone)
            for entry in entries
        ]
        return Diff(base, head, tuple(sorted(files, key=lambda file: file.path)))

    async def patch(self, base: str, head: str, path: str, first: int, most: int) -> Patch | None:
        """Give lines of what `head` changes in a file, named as `read` does; None: it changes none of that name.

        The name is compared with those of the files that differ, and goes nowhere else. Several whose names look alike
        are shown one after the other.
        """
        base, head, entries = await self._changed(base, head)
        named = [entry for entry in entries if _clean_path(entry.paths[-1]) == path]
        if not named:
            return None
        read = [entry for entry in named if not entry.is_submodule]
        chosen = _chosen(read, await self._sizes(read))
        if len(chosen) < len(named):
            return Patch(unread="large" if read else "submodule")
        try:
            paths = [f":(top,literal){os.fsdecode(path)}" for entry in named for path in entry.paths]
            _, patches = await self._diff(base, head, ("--patch", "--text", "--no-ext-diff", "--no-textconv"), paths)
        except PrintedTooMuch:
            return Patch(unread="large")
        if b"\0" in patches:
            return Patch(unread="binary")
        return await anyio.to_thread.run_sync(lambda: _part(self._redaction.data(patches), first, most))

    async def _changed(self, base: str, head: str) -> tuple[str, str, list[_Entry]]:
        base, head = await self._commit(base), await self._commit(head)
        fork = await self._git.run("merge-base", base, head)
        base = fork.stdout.decode().strip() if fork.returncode == 0 else base
        raw, _ = await self._diff(base, head)
        return base, head, _entries(raw)

    async def _commit(self, revision: str) -> str:
        found = await self.find(revision)
        if found is None:
            raise AshepError(f"{clean(revision)[:200]} is no commit of the repository at {self._project}")
        return found

    async def _diff(
        self, base: str, head: str, form: Sequence[str] = (), paths: Sequence[str] = ()
    ) -> tuple[bytes, bytes]:
        """Give the list of what differs, and the patches if `form` asks for them.

        `diff-tree` is plumbing: it reads none of the settings by which people have diffs their way.
        """
        how = ("-r", "--raw", "-z", "-M", _RENAMES, "--no-abbrev", "--ignore-submodules=none")
        argv = ("diff-tree", *how, *form, base, head, "--", *paths)
        raw, _, patches = (await self._git.raw(*argv)).partition(b"\0\0")
        return raw, patches

    async def _dependencies_alone(self, entries: Sequence[_Entry]) -> frozenset[bytes]:
        """Find the manifests in which nothing but plain dependencies differs."""
        found = list[bytes]()
        for entry in entries:
            path = _clean_path(entry.paths[-1])
            if entry.status != "M" or not is_manifest(path) or _LINK in entry.modes:
                continue
            sizes = await self._sizes([entry])
            if len(found) < _MOST_MANIFESTS and sum(sizes.values()) <= LARGEST_MANIFEST:
                before, now = [await self._git.raw("cat-file", "blob", blob) for blob in entry.blobs]
                if await anyio.to_thread.run_sync(changes_dependencies_alone, path, before, now):
                    found.append(entry.paths[-1])
        return frozenset(found)

    async def _sizes(self, entries: Sequence[_Entry]) -> dict[str, int]:
        blobs = sorted({blob for entry in entries if not entry.is_submodule for blob in entry.blobs})
        if not blobs:
            return {}
        form = "--batch-check=%(objectname) %(objectsize)"
        asked = "".join(f"{blob}\n" for blob in blobs).encode()
        out = await self._git.raw("cat-file", form, stdin=asked)
        said = [line.split(" ") for line in out.decode().splitlines()]
        return {blob: int(size) for blob, size in said if size.isdigit()}

    async def _lines(
        self, base: str, head: str, entries: Sequence[_Entry], chosen: frozenset[bytes]
    ) -> dict[bytes, ChangedFile]:
        if not chosen:
            return {}
        named = [path for entry in entries if entry.paths[-1] in chosen for path in entry.paths]
        paths = [] if len(chosen) == len(entries) else [f":(top,literal){os.fsdecode(path)}" for path in named]
        form = ("--patch", "-U0", "--text", "--no-ext-diff", "--no-textconv")
        try:
            raw, patches = await self._diff(base, head, form, paths)
        except PrintedTooMuch:  # a patch can be many times as long as what it changes
            return {}
        return await anyio.to_thread.run_sync(_read, _entries(raw), self._redaction.data(patches, KNOWN), chosen)


def _entries(raw: bytes) -> list[_Entry]:
    """Read `git diff-tree --raw -z`: a line's fields, then its path, or two of them, each ended by a NUL."""
    fields = iter(raw.removesuffix(b"\0").split(b"\0") if raw else ())
    found: list[_Entry] = []
    for field in fields:
        before, now, blob_before, blob_now, status = field.decode().removeprefix(":").split(" ")
        paths = (next(fields), next(fields)) if status[0] in "RC" else (next(fields),)
        found.append(_Entry((before, now), (blob_before, blob_now), status[0], paths))
    return found


def _chosen(entries: Sequence[_Entry], sizes: Mapping[str, int]) -> frozenset[bytes]:
    """Choose the files whose lines are read: the smallest first, until the bounds are reached."""
    by_size = sorted((sum(sizes.get(blob, 0) for blob in entry.blobs), entry.paths) for entry in entries)
    totals = accumulate(size + _HEAD for size, _ in by_size)
    fit = [
        paths for (size, paths), total in zip(by_size, totals, strict=True) if size <= MOST_FILE and total <= MOST_TOTAL
    ]
    if len(fit) < len(by_size):  # then they are named
        lengths = accumulate(sum(len(path) + len(":(top,literal) ") for path in paths) for paths in fit)
        fit = [paths for paths, length in zip(fit, lengths, strict=True) if length <= _MOST_PATHS]
    return frozenset(paths[-1] for paths in fit)


def _unread(entry: _Entry) -> ChangedFile:
    *former, path = map(_clean_path, entry.paths)
    why = "submodule" if entry.is_submodule else "large"
    kind = _KINDS[entry.status]
    return ChangedFile(path, kind, former[0] if former else None, unread=why, link=entry.modes[1] == _LINK)


def _read(entries: Sequence[_Entry], patches: bytes, chosen: frozenset[bytes]) -> dict[bytes, ChangedFile]:
    """Give each entry its lines. Patches stand in the order of the entries; a file that became something else, a link
    say, has two: as it was, and as it is.
    """
    sections = iter(patches.split(b"\ndiff --git "))
    read: dict[bytes, ChangedFile] = {}
    for entry in entries:
        own = list(islice(sections, 2 if entry.status == "T" else 1))
        if entry.paths[-1] in chosen:
            read[entry.paths[-1]] = _with_lines(_unread(entry), own)
    return read


def _with_lines(file: ChangedFile, patches: Sequence[bytes]) -> ChangedFile:
    if file.unread == "submodule":
        return file
    if any(b"\0" in patch for patch in patches):
        return replace(file, unread="binary")
    removed, added = (tuple(chain.from_iterable(_hunks(patch, sign) for patch in patches)) for sign in (b"-", b"+"))
    counts = {"added": len(added), "removed": len(removed)}
    return replace(file, unread=None, added_lines=added, removed_lines=removed, **counts)


def _hunks(patch: bytes, sign: bytes) -> Iterator[Line]:
    """Read the lines with a sign, numbered as they are in the file where they stand."""
    number, in_hunk = 0, False
    for line in patch.split(b"\n"):
        if found := _HUNK.match(line):
            number, in_hunk = int(found["old" if sign == b"-" else "new"]), True
        elif in_hunk and line.startswith(sign):
            yield number, _text(line[1:])
            number += 1


def _part(patches: bytes, first: int, most: int) -> Patch:
    shown, in_hunk = list[bytes](), False
    for line in patches.removesuffix(b"\n").split(b"\n"):
        begins = line.startswith(b"diff --git ")
        in_hunk = not begins and (in_hunk or line.startswith(b"@@ -"))
        if in_hunk or line.startswith(_SHOWN):
            shown.append(line)
    lines = (_text(line) for line in shown[first : first + most])
    return Patch(tuple(line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}…" for line in lines), len(shown))


def _text(line: bytes) -> str:
    return clean(line.decode(errors="replace"))


def _clean_path(path: bytes) -> str:
    return " ".join(clean(path.decode(errors="replace")).split("\n"))
