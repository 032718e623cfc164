"""Reads and makes git objects: commits, branches' tips, merges of trees."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ashep.adapters.git.git_program import SHA, failed
from ashep.adapters.git.program import Git
from ashep.core.text import clean
from ashep.errors import AshepError

IDENTITY = "Agent Shepherd <agent-shepherd@localhost>"
"""Who commits. Not the settings of whoever runs the daemon: the same candidate must give the same commit anywhere."""

_UNRELATED = b"refusing to merge unrelated histories"
_PERSON = re.compile(r"(?P<name>[^<]*)<(?P<email>[^>]*)> (?P<at>\d+) (?P<zone>[+-]\d+)")


@dataclass(frozen=True, slots=True)
class Commit:
    """What a commit object says."""

    id: str
    tree: str
    parents: tuple[str, ...]
    author: str
    """As git writes it: name, address, seconds and zone."""
    at: int
    """When it was committed, in seconds since 1970."""
    message: str


@dataclass(frozen=True, slots=True)
class Merged:
    """What merge-tree made."""

    tree: str
    conflicts: bytes = b""
    """What it printed of conflicts; empty where there is none."""
    unrelated: bool = False
    """There is no common history; nothing was merged."""


async def tip(git: Git, branch: str) -> str | None:
    """Give a branch's newest commit; None where there is no such branch."""
    done = await git.bare("show-ref", "--verify", "--hash", f"refs/heads/{branch}", accepted=(0, 1, 128))
    found = done.stdout.decode(errors="replace").strip()
    return found if SHA.fullmatch(found) else None


async def existing(git: Git, branch: str) -> str:
    """Give a branch's newest commit. Raises `AshepError` where there is no such branch."""
    found = await tip(git, branch)
    if found is None:
        raise AshepError(f"there is no branch {clean(branch)}")
    return found


async def holds(git: Git, later: str, earlier: str) -> bool:
    """Say whether a commit comes after another, or is it."""
    return (await git.bare("merge-base", "--is-ancestor", earlier, later, accepted=(0, 1))).returncode == 0


async def commits(git: Git, ids: Sequence[str]) -> list[Commit]:
    """Read commits. Raises `AshepError` where one is missing or none."""
    printed = (await git.bare("cat-file", "--batch", stdin="".join(f"{one}\n" for one in ids).encode())).stdout
    found, at = list[Commit](), 0
    for one in ids:
        head = printed[at : printed.find(b"\n", at)]
        words = head.decode(errors="replace").split(" ")
        if len(words) != 3 or words[1] != "commit":
            raise AshepError(f"there is no commit {clean(one)[:80]}")
        at, size = at + len(head) + 1, int(words[2])
        found.append(_commit(words[0], printed[at : at + size]))
        at += size + 1
    return found


def _commit(sha: str, content: bytes) -> Commit:
    header, _, message = content.decode(errors="replace").partition("\n\n")
    lines = [(key, value) for key, _, value in (line.partition(" ") for line in header.split("\n"))]
    fields = dict(reversed(lines))  # the first of each counts
    committer = _PERSON.fullmatch(fields.get("committer", ""))
    parents = tuple(value for key, value in lines if key == "parent")
    return Commit(
        sha, fields["tree"], parents, fields.get("author", ""), int(committer["at"]) if committer else 0, message
    )


async def write_commit(git: Git, tree: str, parents: Sequence[str], message: str, *, author: str, at: int) -> str:
    """Make a commit, the same for the same arguments; `author` is what git writes of one, or empty: ours."""
    dated = author if _PERSON.fullmatch(author) else f"{IDENTITY} {at} +0000"
    content = [f"tree {tree}", *(f"parent {one}" for one in parents), f"author {dated}"]
    content += [f"committer {IDENTITY} {at} +0000", "", message.rstrip("\n") + "\n"]
    done = await git.bare("hash-object", "-t", "commit", "-w", "--stdin", stdin="\n".join(content).encode())
    return done.stdout.decode().strip()


async def merge(git: Git, ours: str, theirs: str, attributes: str) -> Merged:
    """Merge two commits into a tree."""
    settings = ("-c", f"core.attributesFile={attributes}")
    done = await git.bare(
        *settings, "merge-tree", "--write-tree", "-z", "--name-only", ours, theirs, accepted=(0, 1, 128, 129)
    )
    if done.returncode == 129:
        raise AshepError("git is too old to land with: it must be 2.38 or later")
    if done.returncode == 128 and _UNRELATED in done.stderr:
        return Merged("", unrelated=True)
    tree = done.stdout.partition(b"\0")[0].decode(errors="replace")
    if done.returncode == 128 or not SHA.fullmatch(tree):
        raise await failed("merge-tree", done.returncode, git.shown(done.stderr), await git.common())
    return Merged(tree, done.stdout if done.returncode else b"")
