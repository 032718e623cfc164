"""Gathers a commit's `.gitattributes` into one file, for merging where there is no work tree.

Attributes name the ways in which files are merged. Without a work tree git would look for none, and in one it would
take those of whatever is checked out there; `git --attr-source` came with 2.41 only. Git reads one file more,
`core.attributesFile`, as if it stood at the top: so the patterns of files below are given the folder they stand in.
"""

import re
from collections.abc import Iterator

import anyio

from ashep.adapters.git.program import Git
from ashep.errors import AshepError

_NAME = b".gitattributes"
_LINE = re.compile(rb'\s*(?P<pattern>"(?:[^"\\]|\\.)*"|[^\s"#]\S*)(?P<attributes>\s.*)', re.DOTALL)
_ESCAPED = re.compile(rb"\\([abfnrtv\"\\]|[0-7]{3})")
_UNQUOTABLE = re.compile(rb"[\x00-\x1f\"\\\x7f-\xff]")
_LETTERS = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


async def attributes(git: Git, base: str) -> str:
    """Write down the attributes that a commit's files have, and give the file's path."""
    empty = await git.word("hash-object", "-t", "tree", "/dev/null")
    found = await git.bare(
        "diff-tree",
        "-r",
        "-z",
        "--raw",
        "--no-renames",
        "--no-abbrev",
        empty,
        base,
        "--",
        f":(glob)**/{_NAME.decode()}",
    )
    fields = iter(found.stdout.split(b"\0"))
    files = sorted(
        (path.count(b"/"), path, head.split(b" ")[3].decode())
        for head, path in ((head, next(fields)) for head in fields if head)
        if head.split(b" ")[1].startswith(b"100")  # git follows no link here
    )
    if not files:
        return "/dev/null"
    lines: list[bytes] = []  # of two that match, the later one counts: those of a deeper folder come later
    for _, path, name in files:
        content = (await git.bare("cat-file", "blob", name)).stdout
        lines += [content] if path == _NAME else list(_below(path.removesuffix(b"/" + _NAME), content))
    place = anyio.Path(await git.common()) / "ashep.attributes"
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
        yield _quoted(above + between + pattern.removeprefix(b"/")) + found["attributes"]


def _letter(found: re.Match[bytes]) -> bytes:
    code = found[1]
    return bytes([int(code, 8) & 0xFF]) if len(code) == 3 else _LETTERS.get(code, code)


def _quoted(pattern: bytes) -> bytes:
    """Quote a pattern as C does: a line could not hold every one otherwise."""
    return (
        b'"'
        + _UNQUOTABLE.sub(lambda found: b"\\" + (found[0] if found[0] in b'"\\' else b"%03o" % ord(found[0])), pattern)
        + b'"'
    )
