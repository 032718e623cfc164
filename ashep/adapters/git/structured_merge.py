"""Merges by key what git could not merge by line, where all that is in conflict are files of which that is wanted."""

from dataclasses import replace

import anyio.to_thread

from ashep.adapters.git.command import Git
from ashep.adapters.git.objects import Merged
from ashep.bmad.yaml_merge import LARGEST, NotMerged, merge
from ashep.core.policy.globs import Globs

MOST = 20
"""Files that are merged by key in one landing."""

_CONTENTS = b"CONFLICT (contents)"
_FILES = (b"100644", b"100755")

Stages = dict[bytes, tuple[bytes, bytes]]
"""By git's number (1: what both come from, 2: the base, 3: the branch) mode and object."""


def conflicts_of(printed: bytes) -> tuple[dict[bytes, Stages], list[bytes], set[bytes]]:
    """Read what `git merge-tree -z` printed: files in conflict, messages about conflicts, and their kinds."""
    fields, kinds = iter(printed.split(b"\0")[1:]), set[bytes]()
    paths, messages = dict[bytes, Stages](), list[bytes]()
    for field in iter(lambda: next(fields, b""), b""):
        head, _, path = field.partition(b"\t")
        mode, name, stage = head.split(b" ")
        paths.setdefault(path, {})[stage] = mode, name
    while (count := next(fields, b"").strip()).isdigit():
        for _ in range(int(count)):
            next(fields, b"")
        kind, message = next(fields, b""), next(fields, b"")
        if kind.startswith(b"CONFLICT"):
            kinds.add(kind)
            messages.append(message)
    return paths, messages, kinds


async def merged_by_key(git: Git, merged: Merged, globs: Globs) -> Merged:
    """Give a merge without its conflicts where each is of a file that can be merged by key; else as it was."""
    paths, _, kinds = conflicts_of(merged.conflicts)
    wanted = paths and len(paths) <= MOST and all(globs.has(path.decode(errors="surrogateescape")) for path in paths)
    if not wanted or kinds != {_CONTENTS}:
        return merged
    tree, told = merged.tree, list[str]()
    for path, stages in paths.items():
        try:
            content = await _content(git, stages)
        except NotMerged as error:
            why = " ".join(git.redact_bytes(str(error).encode()).split())
            told.append(f"{git.redact_bytes(path)} is not merged by key: {why}")
            continue
        done = await git.bare("hash-object", "-t", "blob", "-w", "--stdin", stdin=content)
        tree = await _with_blob(git, tree, path.split(b"/"), done.stdout.strip())
    return replace(merged, told=tuple(told)) if told else Merged(tree)


async def _content(git: Git, stages: Stages) -> bytes:
    sides = [stages[stage] for stage in (b"1", b"2", b"3") if stage in stages]
    if len(sides) < 3 or any(mode not in _FILES for mode, _ in sides):
        raise NotMerged("it is not a file on both sides and before")
    names = b"".join(name + b"\n" for _, name in sides)
    sizes = (await git.bare("cat-file", "--batch-check=%(objectsize)", stdin=names)).stdout.split()
    if any(int(size) > LARGEST for size in sizes):
        raise NotMerged(f"it has more than {LARGEST} bytes")
    printed = (await git.bare("cat-file", "--batch", stdin=names)).stdout
    blobs, at = list[bytes](), 0
    for size in map(int, sizes):
        at = printed.index(b"\n", at) + 1  # before each stands a line
        blobs.append(printed[at : at + size])
        at += size + 1
    old, base, branch = blobs
    return await anyio.to_thread.run_sync(merge, old, base, branch)


async def _with_blob(git: Git, tree: str, parts: list[bytes], blob: bytes) -> str:
    lines = list[bytes]()
    for line in (await git.bare("ls-tree", "-z", tree)).stdout.split(b"\0"):
        head, _, name = line.partition(b"\t")
        if name == parts[0]:
            mode, kind, old = head.split(b" ")
            new = (await _with_blob(git, old.decode(), parts[1:], blob)).encode() if parts[1:] else blob
            line = b" ".join((mode, kind, new)) + b"\t" + name
        lines.append(line)
    return (await git.bare("mktree", "-z", "--missing", stdin=b"\0".join(lines))).stdout.decode().strip()
