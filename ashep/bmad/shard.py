"""A long story in two files: what is resolved moves to an archive next to it, and comes back byte for byte.

Where lines were moved from, the story has a link that names a part of the archive, by the hash of what it holds. So
either file may be edited further: a part comes back to where its link stands by then.
"""

import re
from bisect import bisect_left as bisect
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from pathlib import PurePath

from ashep.bmad.story import Story, outline, read
from ashep.bmad.text import LARGEST, NotWritable, Text

_LINK = re.compile(
    r"\s*(?:(?:[-*+]|\d+[.)])\s+)?\[archived\]\([^\n]*\) <!-- ashep:(?P<name>[0-9a-f]{12}-\d{1,6}) -->\s*$"
)
_BULLET = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")
_PART = re.compile(rb"(?:\r\n?|\n)<!-- ashep: ([0-9a-f]{12}-\d{1,6}), (\d{1,9}) bytes -->(?:\r\n|\r|\n)")

_Parts = dict[str, tuple[bytes, int, int]]


@dataclass(frozen=True, slots=True)
class Sharded:
    """Both files as they are to be."""

    story: bytes
    archive: bytes
    """Empty: there is to be none."""
    moved: tuple[tuple[int, int, str], ...] = ()
    """Of what moves the first line, how many lines, and what it is."""
    left: tuple[str, ...] = ()
    """Parts of the archive that the story has no link to; they stay."""


def archive_of(name: str) -> str:
    """Give the name of the archive next to a story's file."""
    return f"{name.removesuffix('.md')}.archive.md"


def shard(path: str, data: bytes, archive: bytes = b"") -> Sharded:
    """Move resolved findings, and reviews before the last one in which nothing is open.

    What is there already, of a run that was killed before it wrote the story, is not added again. Raises `NotWritable`
    where this is no story, or what stays would be read as something else; `Unreadable`.
    """
    text, seen, name = Text.from_bytes(data), read(path, data), PurePath(path).name
    if seen.kind not in ("story", "specification") or any(problem.code == "merge" for problem in seen.problems):
        raise NotWritable("this is no story that can be read as one: see `ashep story check`")
    end = text.lines[0][len(text.line(1)) :] or "\n"
    parts, link = _parts(archive), archive_of(name)
    said = (*text.lines, *(line for content, _, _ in parts.values() for line in _lines(content)))
    named = {found["name"] for line in said if (found := _LINK.match(line))}
    link = f"<{link}>" if re.search(r"[\s()<>]", link) else link
    made, lines, done, moved = archive or _header(name, end), list[str](), 0, list[tuple[int, int, str]]()
    fresh, numbers = list[str](), Counter[bytes]()
    for begin, behind, what in sorted(_movable(seen, text)):
        content = "".join(text.lines[begin:behind]).encode()
        part = next(one for number in count(numbers[content]) if (one := _name_part(content, number)) not in named)
        numbers[content] += 1
        named.add(part)
        fresh.append(part)
        if part not in parts:
            made += f"{end}<!-- ashep: {part}, {len(content)} bytes -->{end}".encode() + content
        bullet = _BULLET.match(text.lines[begin]) if what == "resolved findings" else None
        ends = text.lines[behind - 1][len(text.line(behind)) :]
        lines += [
            *text.lines[done:begin],
            f"{bullet[0] if bullet else ''}[archived]({link}) <!-- ashep:{part} -->{ends}",
        ]
        moved.append((begin + 1, behind - begin, what))
        done = behind
        if len(made) > LARGEST:
            raise NotWritable(f"its archive would have more than {LARGEST} bytes; give the old one another name first")
    story = Text((*lines, *text.lines[done:]), text.bom)
    back = "".join(_back(story.lines, _parts(made), set(), fresh))
    if _read_as(read(path, story.bytes)) != _read_as(seen) or back != "".join(text.lines):
        raise NotWritable("what stays would be read as something else, so nothing was moved")
    return Sharded(story.bytes, made, tuple(moved)) if moved else Sharded(data, archive)


def unshard(data: bytes, archive: bytes) -> Sharded:
    """Put everything back to where its link stands. Raises `NotWritable` where a part is not as it was."""
    text, parts, used = Text.from_bytes(data), _parts(archive), set[str]()
    story = Text(tuple(_back(text.lines, parts, used)), text.bom).bytes
    rest, left = archive, list[str]()
    for name, (content, begin, behind) in reversed(parts.items()):
        if name in used or content in story:  # that of a run which was killed stands in both
            rest = rest[:begin] + rest[behind:]
        else:
            left.append(name)
    first = rest.splitlines()[0].decode(errors="replace").removeprefix("# Archive of ") if rest else ""
    rest = b"" if rest in [_header(first, end) for end in ("\n", "\r\n", "\r")] else rest
    return Sharded(story, rest, left=tuple(left))


def _back(lines: Iterable[str], parts: _Parts, used: set[str], only: Collection[str] | None = None) -> Iterator[str]:
    for line in lines:
        found = _LINK.match(line)
        if found is None or (only is not None and found["name"] not in only):
            yield line
        elif found["name"] in used or found["name"] not in parts:
            raise NotWritable(f"part {found['name']} is linked twice, or is not in the archive as it was")
        else:
            used.add(found["name"])
            yield from _back(_lines(parts[found["name"]][0]), parts, used, only)


def _movable(seen: Story, text: Text) -> Iterator[tuple[int, int, str]]:
    """Give lines, from 0, from and up to, without blank ones around, and what they are."""
    pieces, taken = [piece for piece, _ in outline(text.bytes)], set[int]()
    opened = [box.line - 1 for box in seen.unresolved]
    levels = {piece.line: piece.level for piece in pieces if piece.kind == "heading"}
    for one, after in zip(seen.reviews, seen.reviews[1:], strict=False):
        above = [line for line, level in levels.items() if line > one.line and level <= levels[one.line]]
        begin, behind = _trimmed(text, one.line, min(after.line, *above, len(text.lines) + 1) - 1)
        linked = behind - begin == 1 and _LINK.match(text.lines[begin])
        if begin < behind and not linked and bisect(opened, begin) == bisect(opened, behind):
            taken.update(range(begin, behind))
            yield begin, behind, "an old review"
    items = {piece.line: piece.end for piece in pieces if piece.kind == "item"}
    found = list[tuple[int, int, int]]()
    for box in (box for review in seen.reviews for box in review.findings if box.done):
        begin, behind = _trimmed(text, box.line - 1, items[box.line] - 1)
        if begin in taken or bisect(opened, begin) != bisect(opened, behind):
            continue
        taken.update(range(begin, behind))
        if found and found[-1][2] == box.depth and not "".join(text.lines[found[-1][1] : begin]).strip():
            begin = found.pop()[0]
        found.append((begin, behind, box.depth))
    yield from ((begin, behind, "resolved findings") for begin, behind, _ in found)


def _trimmed(text: Text, begin: int, behind: int) -> tuple[int, int]:
    whole = [number for number in range(begin, behind) if text.lines[number].strip()]
    return (whole[0], whole[-1] + 1) if whole else (begin, begin)


def _read_as(story: Story) -> object:
    """Give what has to stay."""
    boxes = [(task.text, task.done) for task in story.tasks], [(one.text, one.severity) for one in story.unresolved]
    reviews = len(story.reviews), story.reviews[-1].outcome if story.reviews else None
    return story.status and story.status.said, story.state, [said for said, _ in story.criteria], boxes, reviews


def _header(name: str, end: str) -> bytes:
    said = "What `ashep story shard` moved out of the story; with `--undo` it puts it back."
    return f"# Archive of {name}{end}{end}{said}{end}".encode()


def _name_part(content: bytes, number: int | str) -> str:
    return f"{sha256(content).hexdigest()[:12]}-{number}"


def _lines(content: bytes) -> tuple[str, ...]:
    return Text.from_bytes(b"\n" + content).lines[1:]


def _parts(archive: bytes) -> _Parts:
    """Give parts that are as they were written: what they hold, and from where up to where they stand."""
    parts, place = dict[str, tuple[bytes, int, int]](), 0
    while found := _PART.search(archive, place):
        place = found.end() + int(found[2])
        name, content = found[1].decode(), archive[found.end() : place]
        if name == _name_part(content, name[13:]):
            parts[name] = content, found.start(), place
        else:
            place = found.end()
    return parts
