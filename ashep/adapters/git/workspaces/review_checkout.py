"""The ground on which a judge stands: what was committed, in a folder that nobody writes to, and nothing else.

No git is in it, nothing that git ignores, and no link that leads out of it. What tells agents how to work is as the
base has it: a candidate does not instruct its judges. What of that starts programs is absent, the base's too: they
would be started among the candidate's files. What the candidate has there instead stands next to it.
"""

import os
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from ashep.adapters.git.export import CommitSource, ExportedFiles
from ashep.adapters.git.submodules import Submodule, fill
from ashep.adapters.git.workspaces import lfs
from ashep.adapters.system.folders import walk
from ashep.core.policy.instructions import Instructions

CLOSED = 0o555
"""The mode of a folder to which nobody writes."""

_CANDIDATE = b".candidate"
_HOPS = 40  # links that are followed from one
_LINK = b"120000"
_ELSEWHERE = (b"symlink", b"dangling", b"loop", b"notdir")  # where a link may lead, as git says it

_Entries = dict[bytes, tuple[bytes, bytes]]
"""Mode and object, by path."""


async def lay(
    source: CommitSource,
    base: str,
    draft: Path,
    prefix: str,
    floor: int,
    submodules: Sequence[Submodule] = (),
    instructions: Instructions | None = None,
    contents: Path | None = None,
) -> Path:
    """Write a commit's files below a new folder, with the instructions of the commit `base`; give where they are.

    `contents`: where contents of Git LFS are kept; a judge is to see what lands, and not its pointer.

    The folder itself may be written to still: one that may not cannot be moved. Raises `AshepError`.
    """
    files, instructions = ExportedFiles(source, draft / "git", draft / "tree", floor), instructions or Instructions()
    await files.begin(source.commit)
    before, now = await _listed(files, base), await _listed(files, source.commit)
    if lines := await _instructed(files, base, before, now, instructions):
        await files.git("update-index", "-z", "--index-info", stdin=lines)
    await files.write()
    if contents is not None:
        paths = (await files.git("ls-files", "-z")).split(b"\0")[:-1]
        await files.on_disk(lambda: lfs.write_contents(contents, draft / "tree", paths))
    await fill(submodules, draft / "tree", draft, floor)

    def end() -> None:
        for one in submodules:
            _mark_below(draft / "tree", one.path, instructions, moved=before.get(one.path) != now.get(one.path))
        _close(draft / "tree", prefix)

    await files.on_disk(end)
    return draft / "tree"


# --- instructions ---


async def _instructed(
    files: ExportedFiles, base: str, before: _Entries, now: _Entries, instructions: Instructions
) -> bytes:
    """Say what the index must have next to what the head has, as `update-index --index-info` reads it."""

    def covers(path: bytes) -> bool:
        return instructions.covers(os.fsdecode(path))

    old, new = ({path: of[path] for path in of if covers(path)} for of in (before, now))
    acting = {path for path in {*old, *new} if instructions.acts(os.fsdecode(path))}
    told = await _followed(files, base, {path: old[path] for path in old.keys() - acting})
    beside = {path for path in new if path in acting or old.get(path) != new[path]}
    gone = beside | (new.keys() - told.keys())
    there = now.keys() - gone
    told = {path: entry for path, entry in told.items() if there.isdisjoint(_above(path)[:-1])}
    names = tuple({part for path in (*now, *told) for part in path.split(b"/")})
    marks = (_CANDIDATE + (b"-%d" % number if number else b"") for number in count())
    mark = next(mark for mark in marks if not any(name.endswith(mark) for name in names))
    marked = {_marked(path, mark, instructions): new[path] for path in beside}
    told |= {path: entry for path, entry in marked.items() if not covers(path)}  # `*` may fit a mark, too
    lines = [b"0 %s\t%s\0" % (b"0" * len(base), path) for path in gone]
    return b"".join([*lines, *(b"%s %s\t%s\0" % (*entry, path) for path, entry in told.items())])


async def _listed(files: ExportedFiles, commit: str) -> _Entries:
    printed = await files.git("ls-tree", "-r", "-z", "--full-tree", commit)
    parts = (line.partition(b"\t") for line in printed.split(b"\0")[:-1])
    return {path: (about.split()[0], about.split()[2]) for about, _, path in parts}


async def _followed(files: ExportedFiles, commit: str, entries: _Entries) -> _Entries:
    """Give entries with the files that their links lead to in the commit, without links that lead to none there."""
    links = [path for path, (mode, _) in entries.items() if mode == _LINK]
    found, at = {path: entry for path, entry in entries.items() if entry[0] != _LINK}, 0
    words = ("cat-file", "-z", "--batch-check=%(objecttype) %(objectname)", "--follow-symlinks")
    asked = b"".join(b"%s:%s\0" % (commit.encode(), path) for path in links)
    printed = await files.git(*words, stdin=asked) if links else b""
    for path in links:
        head = printed[at : printed.find(b"\n", at)]
        kind, _, rest = head.partition(b" ")
        at += len(head) + 1
        if kind == b"blob":
            found[path] = (b"100644", rest)
        elif kind in _ELSEWHERE:
            at += int(rest) + 1  # it says where
    return found


def _marked(path: bytes, mark: bytes, instructions: Instructions) -> bytes:
    """Put a mark behind each name of a path that is one of instructions; else it is a link, and its last name is."""
    parts = path.split(b"/")
    named = [instructions.has(os.fsdecode(above)) for above in _above(path)]
    named[-1] = named[-1] or not any(named)
    return b"/".join(part + mark if is_named else part for part, is_named in zip(parts, named, strict=True))


def _mark_below(top: Path, submodule: bytes, instructions: Instructions, *, moved: bool) -> None:
    """Put marks where a submodule was filled: in one that is another than the base's behind each name of instructions,
    else behind what starts programs, and links, which may lead to what the candidate has.
    """
    root = os.fsencode(top)
    at = os.path.join(root, submodule)
    below = os.walk(at, topdown=False)
    paths = [os.path.join(folder, name) for folder, folders, names in below for name in (*folders, *names)]
    for path in (*paths, at) if os.path.isdir(at) else ():
        inner = os.fsdecode(path[len(root) + 1 :])
        if (instructions.has(inner) and (moved or os.path.islink(path))) or instructions.acts(inner):
            ends = (_CANDIDATE + (b"-%d" % number if number else b"") for number in count())
            os.rename(path, next(path + end for end in ends if not os.path.lexists(path + end)))


def _above(path: bytes) -> list[bytes]:
    parts = path.split(b"/")
    return [b"/".join(parts[:number]) for number in range(1, len(parts) + 1)]


# --- what is closed ---


def _close(top: Path, prefix: str) -> None:
    """Take away what leads out of a folder, and leave to write below it."""
    root = os.fsencode(top)
    for path, _, names in walk(root):
        for link in filter(os.path.islink, (os.path.join(path, name) for name in names)):
            if _leaves(root, link):
                target = os.readlink(link)
                os.unlink(link)
                Path(os.fsdecode(link)).write_bytes(b"This was a link out of the checkout, to " + target + b"\n")
    (top / prefix).mkdir(parents=True, exist_ok=True)  # no link leads it elsewhere any more
    for path, _, names in walk(root):
        for file in (os.path.join(path, name) for name in names):
            if not os.path.islink(file):
                os.chmod(file, os.lstat(file).st_mode & CLOSED)
        if path != root:
            os.chmod(path, CLOSED)


def _leaves(root: bytes, link: bytes) -> bool:
    """Say whether a link leads out of a folder at any step, wherever that folder may stand."""
    at, left, hops = [*link[len(root) + 1 :].split(b"/")[:-1]], [*reversed(os.readlink(link).split(b"/"))], 1
    if not left[-1]:
        return True
    while left:
        part = left.pop()
        if part == b"..":
            if not at:
                return True
            at.pop()
        elif part not in (b"", b"."):
            here = os.path.join(root, *at, part)
            if not os.path.islink(here):
                at.append(part)
                continue
            target, hops = os.readlink(here), hops + 1
            if target.startswith(b"/") or hops > _HOPS:
                return True
            left += reversed(target.split(b"/"))
    return False
