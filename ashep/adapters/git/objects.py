"""Reads and makes git objects: commits, branches' tips, merges of trees."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from ashep.adapters.git.command import SHA, Git, failed
from ashep.core.text import clean
from ashep.errors import AshepError

IDENTITY = "Agent Shepherd <agent-shepherd@localhost>"
"""Who commits. Not the settings of whoever runs the daemon: the same candidate must give the same commit anywhere."""

LINK = b"160000"
"""The mode of a submodule, which has no file of its own."""

_UNRELATED = b"refusing to merge unrelated histories"
_PERSON = re.compile(r"(?P<name>[^<]*)<(?P<email>[^>]*)> (?P<at>\d+) (?P<zone>[+-]\d+)")
_NAME = b".gitattributes"
_LINE = re.compile(rb'\s*(?P<pattern>"(?:[^"\\]|\\.)*"|[^\s"#]\S*)(?P<attributes>\s.*)', re.DOTALL)
_ESCAPED = re.compile(rb"\\([abfnrtv\"\\]|[0-7]{3})")
_UNQUOTABLE = re.compile(rb"[\x00-\x1f\"\\\x7f-\xff]")
_LETTERS = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


@dataclass(frozen=True, slots=True)
class CommitObject:
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
    told: tuple[str, ...] = ()
    """Why files in conflict were not merged by key."""


@dataclass(frozen=True, slots=True)
class PathChange:
    """A path that differs between two commits."""

    path: bytes
    old: tuple[bytes, bytes] | None
    """Mode and object; None: it is not there."""
    new: tuple[bytes, bytes] | None


async def tip(git: Git, branch: str) -> str | None:
    """Give a branch's newest commit; None where there is no such branch."""
    done = await git.bare("show-ref", "--verify", "--hash", f"refs/heads/{branch}", accepted=(0, 1, 128))
    found = done.stdout.decode(errors="replace").strip()
    return found if SHA.fullmatch(found) else None


async def holds(git: Git, later: str, earlier: str) -> bool:
    """Say whether a commit comes after another, or is it."""
    return (await git.bare("merge-base", "--is-ancestor", earlier, later, accepted=(0, 1))).returncode == 0


async def commits(git: Git, ids: Sequence[str]) -> list[CommitObject]:
    """Read commits. Raises `AshepError` where one is missing or none."""
    printed = (await git.bare("cat-file", "--batch", stdin="".join(f"{one}\n" for one in ids).encode())).stdout
    found, at = list[CommitObject](), 0
    for one in ids:
        head = printed[at : printed.find(b"\n", at)]
        words = head.decode(errors="replace").split(" ")
        if len(words) != 3 or words[1] != "commit":
            raise AshepError(f"there is no commit {clean(one)[:80]}")
        at, size = at + len(head) + 1, int(words[2])
        found.append(_commit(words[0], printed[at : at + size]))
        at += size + 1
    return found


def _commit(sha: str, content: bytes) -> CommitObject:
    header, _, message = content.decode(errors="replace").partition("\n\n")
    lines = [(key, value) for key, _, value in (line.partition(" ") for line in header.split("\n"))]
    fields = dict(reversed(lines))  # the first of each counts
    committer = _PERSON.fullmatch(fields.get("committer", ""))
    parents = tuple(value for key, value in lines if key == "parent")
    return CommitObject(
        sha, fields["tree"], parents, fields.get("author", ""), int(committer["at"]) if committer else 0, message
    )


async def changes(git: Git, old: str, new: str, *paths: str) -> list[PathChange]:
    """List what differs between two commits or trees, file by file; in these paths alone, where any are given."""
    how = ("-r", "-z", "--raw", "--no-renames", "--no-abbrev")
    done = await git.bare("diff-tree", *how, old, new, "--", *paths)
    fields = iter(done.stdout.split(b"\0"))
    found: list[PathChange] = []
    for head in fields:
        if head:
            before, after, was, becomes, _ = head.removeprefix(b":").split(b" ")
            found.append(PathChange(next(fields), _side(before, was), _side(after, becomes)))
    return found


def _side(mode: bytes, name: bytes) -> tuple[bytes, bytes] | None:
    return None if mode == b"000000" else (mode, name)


async def write_commit(git: Git, tree: str, parents: Sequence[str], message: str, *, author: str, at: int) -> str:
    """Make a commit, the same for the same arguments; `author` is what git writes of one, or empty: ours."""
    dated = author if _PERSON.fullmatch(author) else f"{IDENTITY} {at} +0000"
    content = [f"tree {tree}", *(f"parent {parent}" for parent in parents), f"author {dated}"]
    content += [f"committer {IDENTITY} {at} +0000", "", message.rstrip("\n") + "\n"]
    done = await git.bare("hash-object", "-t", "commit", "-w", "--stdin", stdin="\n".join(content).encode())
    return done.stdout.decode().strip()


async def merge(git: Git, ours: str, theirs: str, attributes: str) -> Merged:
    """Merge two commits into a tree."""
    settings = ("-c", f"core.attributesFile={attributes}")
    done = await git.bare(*settings, "merge-tree", "--write-tree", "-z", ours, theirs, accepted=(0, 1, 128, 129))
    if done.returncode == 129:
        raise AshepError("git is too old to land with: it must be 2.38 or later")
    if done.returncode == 128 and _UNRELATED in done.stderr:
        return Merged("", unrelated=True)
    tree = done.stdout.partition(b"\0")[0].decode(errors="replace")
    if done.returncode == 128 or not SHA.fullmatch(tree):
        raise await failed("merge-tree", done.returncode, git.redact_bytes(done.stderr), await git.common())
    return Merged(tree, done.stdout if done.returncode else b"")


# --- attributes ---


async def attributes(git: Git, base: str, folder: Path | None = None) -> str:
    """Write down the attributes that a commit's files have, in a folder (None: git's), and give the file's path."""
    empty = await git.word("hash-object", "-t", "tree", "/dev/null")
    found = await changes(git, empty, base, f":(glob)**/{_NAME.decode()}")
    files = sorted(
        (one.path.count(b"/"), one.path, one.new[1].decode())
        for one in found
        if one.new and one.new[0].startswith(b"100")  # git follows no link here
    )
    if not files:
        return "/dev/null"
    lines: list[bytes] = []  # of two that match, the later one counts: those of a deeper folder come later
    for _, path, name in files:
        content = (await git.bare("cat-file", "blob", name)).stdout
        lines += [content] if path == _NAME else list(_below(path.removesuffix(b"/" + _NAME), content))
    place = anyio.Path(folder or await git.common()) / "ashep.attributes"
    try:
        await place.write_bytes(b"\n".join([*lines, b""]))
    except OSError as error:
        raise AshepError(f"{place} cannot be written: {error.strerror}") from error
    return str(place)


def _below(folder: bytes, content: bytes) -> Iterator[bytes]:
    """Give the lines of a file in a folder as they would stand at the top."""
    above = re.sub(rb"([*?\[\\])", rb"\\\1", folder)
    above = b"\\" + above if above.startswith(b"!") else above
    for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        found = _LINE.match(line)
        if found is None or found["pattern"].startswith((b"[attr]", b"!")):  # neither is anything in a folder
            continue
        pattern = found["pattern"]
        if pattern.startswith(b'"'):
            pattern = _ESCAPED.sub(_letter, pattern[1:-1])
        between = b"/" if b"/" in pattern else b"/**/"
        yield quoted(above + between + pattern.removeprefix(b"/")) + found["attributes"]


def _letter(found: re.Match[bytes]) -> bytes:
    code = found[1]
    return bytes([int(code, 8) & 0xFF]) if len(code) == 3 else _LETTERS.get(code, code)


def quoted(pattern: bytes) -> bytes:
    """Quote a pattern as C does: a line could not hold every one otherwise."""
    return (
        b'"'
        + _UNQUOTABLE.sub(lambda found: b"\\" + (found[0] if found[0] in b'"\\' else b"%03o" % ord(found[0])), pattern)
        + b'"'
    )
