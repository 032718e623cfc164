"""Read what a tree holds: its files, what is staged, what git ignores and what it does not see."""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import anyio.to_thread

from ashep.adapters.git.repository import TreeRepository, WorkspacePaths
from ashep.core.text import clean
from ashep.errors import AshepError
from ashep.journal import durable_io

GITLINK, LINK = "160000", "120000"
"""The modes of a submodule and of a symbolic link."""

OWN = (".beads", ".agent-shepherd/state", ".agent-shepherd/runs.jsonl", ".beads.gate.lock")
"""What is of bd and of ashep in a project; what people edit, the policies, is not."""

FILLED = "submodules"
"""Our note of what the submodules of a tree were filled with (`ashep.adapters.git.workspaces.submodules`)."""


class Stat(NamedTuple):
    """What tells that a file is still as it was; `ctime` cannot be set by a program."""

    mode: int
    size: int
    mtime: int
    ctime: int


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One entry of the index."""

    path: bytes
    mode: str
    sha: str
    stage: int
    hidden: bool
    """Git was told to take the file for unchanged, or for absent."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a tree holds."""

    files: dict[bytes, Stat]
    entries: tuple[IndexEntry, ...]
    changed: frozenset[bytes]
    """Tracked files whose content git does not have, or may not have."""
    ignored: frozenset[bytes]
    head: str | None
    head_tree: str | None
    staged: bool
    """The index differs from HEAD, or there is no HEAD."""


async def look(repository: TreeRepository) -> Content:
    """Read what is in a tree and in its index."""
    place = repository.place
    files = await anyio.to_thread.run_sync(files_of, place)
    listed = await repository.inside("ls-files", "--stage", "-v", "-z")
    entries = tuple(_entry(line) for line in listed.split(b"\0") if line)
    changed, ignored = b"", b""
    if files or await anyio.Path(place.path).is_dir():
        links = [place.path / os.fsdecode(entry.path) / ".git" for entry in entries if entry.mode == GITLINK]
        if filled := await anyio.to_thread.run_sync(lambda: [link.parent.name for link in links if link.is_file()]):
            raise AshepError(  # its commits lie in the tree's own git folder, and go with it
                f"{place.path} has a submodule with content ({clean(', '.join(filled[:3]))}), whose work cannot be "
                "saved. Push what is in it, empty it with `git submodule deinit`, and try again."
            )
        changed = await repository.inside("diff-files", "--name-only", "-z", "--ignore-submodules=all")
        ignored = await repository.inside("ls-files", "--others", "--ignored", "--exclude-standard", "-z")
    none = re.compile("^$|fatal: Needed a single revision")
    found = await repository.inside("rev-parse", "--verify", "--quiet", "HEAD^{commit}", "HEAD^{tree}", absent=none)
    head, tree = (found.decode().split() or [None, None])[:2]
    same = await repository.ask("diff-index", "--cached", "--quiet", "HEAD", "--")
    held = ignored.split(b"\0")
    nested = tuple(
        path for path in held if path.endswith(b"/")
    )  # repositories in it, of which git names the folder only
    within = [path for path in files if nested and path.startswith(nested)]
    return Content(
        files=files,
        entries=entries,
        changed=frozenset(changed.split(b"\0")) | {entry.path for entry in entries if entry.hidden or entry.stage},
        ignored=frozenset([*held, *within]) - {b""},
        head=head,
        head_tree=tree,
        staged=same.returncode != 0 or any(entry.stage for entry in entries),
    )


def files_of(place: WorkspacePaths) -> dict[bytes, Stat]:
    """List every file and link of a tree, but not git's own, nor those that its submodules were filled with."""
    stats, filled = walk(place.path, b".git" if place.whole else None), read_stats(place.notes / FILLED)
    return {path: about for path, about in stats.items() if filled.get(path) != about}


def read_stats(note: Path) -> dict[bytes, Stat]:
    """Read our note of how files were; none where there is no note. Blocks."""
    with suppress(OSError):
        parts = [line.split(b" ", 4) for line in note.read_bytes().split(b"\0") if line]
        return {part[4]: Stat(*map(int, part[:4])) for part in parts}
    return {}


def write_stats(note: Path, stats: Mapping[bytes, Stat]) -> None:
    """Note how files are. Blocks."""
    note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    durable_io.replace(note, b"".join(b"%d %d %d %d " % about + path + b"\0" for path, about in stats.items()))


def walk(top: Path, unseen: bytes | None = None) -> dict[bytes, Stat]:
    """List every file and link below a folder, but not the `.git` by which git knows a work tree.

    `unseen`: a folder in it that is left out.
    """
    found, left = dict[bytes, Stat](), [b""]
    root = os.fsencode(top)
    while left:
        folder = left.pop()
        try:
            entries = list(os.scandir(os.path.join(root, folder)))
        except FileNotFoundError:
            continue
        except OSError as error:
            raise _unreadable(root, folder, error) from error
        for entry in entries:
            path = os.path.join(folder, entry.name)
            try:
                about = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            except OSError as error:  # its path is too long, say
                raise _unreadable(root, path, error) from error
            if stat.S_ISDIR(about.st_mode):
                left += [path] if path != unseen else []
            elif (stat.S_ISREG(about.st_mode) or stat.S_ISLNK(about.st_mode)) and path != b".git":
                found[path] = Stat(about.st_mode, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
    return found


def _unreadable(root: bytes, path: bytes, error: OSError) -> AshepError:
    where = clean(os.fsdecode(os.path.join(root, path)))
    return AshepError(f"{where[:300]}{'…' if len(where) > 300 else ''} cannot be read: {error.strerror}")


def hidden(listed: bytes) -> list[bytes]:
    """Read `git ls-files -v -z`: the files that git was told to take for unchanged, or for absent."""
    return [line[2:] for line in listed.split(b"\0") if line[:1].islower() or line[:1] == b"S"]


def find_present(top: Path, paths: Iterable[bytes]) -> list[bytes]:
    """Give those of the paths at which something stands below a folder. Blocks."""
    return [path for path in paths if os.path.lexists(os.path.join(os.fsencode(top), path))]


def parents(path: bytes) -> Iterator[bytes]:
    """Give the folders above a file, the nearest first."""
    while b"/" in path:
        path = path.rpartition(b"/")[0]
        yield path


def git_files(place: WorkspacePaths) -> list[tuple[int, int]]:
    """Say how git's own files of a tree are, so that a change can be seen."""
    files = [place.admin / name for name in ("index", "HEAD", "logs/HEAD")]
    return [(about.st_size, about.st_mtime_ns) for about in (file.stat() for file in files if file.exists())]


def _entry(line: bytes) -> IndexEntry:
    about, _, path = line.partition(b"\t")
    tag, mode, sha, stage = about.decode().split(" ")
    return IndexEntry(path, mode, sha, int(stage), hidden=tag.islower() or tag == "S")
