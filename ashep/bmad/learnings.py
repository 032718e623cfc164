"""What completed stories taught: their lessons, and what reviews found in two or more of them."""

import re
from collections.abc import Iterator, Sequence

from ashep.bmad.markdown import bare
from ashep.bmad.story import Story, outline
from ashep.bmad.text import NotWritable, Text
from ashep.core.text import clean

LINES = 50
"""Lines that are kept; the oldest go."""
BYTES = 8_000
BEGIN, END = "<!-- ashep: learnings, written anew each time -->", "<!-- ashep: end of learnings -->"

_LESSONS = re.compile(r"(?:\w+ ){0,3}(?:lessons|learnings)\b|completion notes\b", re.IGNORECASE)
_BOX = re.compile(r"(?:\[[ xX]\]\s+)?(?:\[[^\]]*\]\s*)*")
_LONGEST = 300
_NAMED = 5


def learnings(stories: Sequence[tuple[Story, bytes]]) -> tuple[str, ...]:
    """Give a line for each lesson of completed stories, the oldest first, with the stories that it is from.

    What says the same in the same words is one. Of findings those count that two stories have. Raises `Unreadable`.
    """
    groups = dict[str, tuple[str, dict[str, None], bool]]()
    said = [one for story, data in stories if story.state == "complete" for one in _read_lessons(story, data)]
    for text, name, lesson in said:
        if words := " ".join(re.findall(r"\w+", text.lower())):
            _, names, lessons = groups.pop(words, ("", dict[str, None](), False))
            groups[words] = text, names | {name: None}, lessons or lesson  # the newest gives the place
    lines = [f"- {text} ({_from([*names])})" for text, names, lesson in groups.values() if lesson or len(names) > 1]
    lines = lines[-LINES:]
    while sum(len(line.encode()) + 1 for line in lines) > BYTES:
        del lines[0]
    return tuple(lines)


def _read_lessons(story: Story, data: bytes) -> Iterator[tuple[str, str, bool]]:
    """Give what it says on a line each, its name, and whether it is a lesson, and no finding."""
    name, below = story.id or story.key, 0
    yield from ((_line(box.text), name, False) for review in story.reviews for box in review.findings)
    for piece, section in outline(data):
        if piece.kind == "heading" and not 0 < below < piece.level:
            below = piece.level if _LESSONS.match(bare(piece.text)) else 0
        elif below and piece.kind == "item" and section != "review":
            yield _line(piece.text), name, True


def _line(text: str) -> str:
    """Give a text without its box, what kind of finding it is, and what would end the part of the file."""
    said = " ".join(re.sub("<!--|-->", " ", clean(_BOX.sub("", text, count=1))).split())
    return said if len(said) <= _LONGEST else f"{said[: _LONGEST - 1]}…"


def _from(names: list[str]) -> str:
    return ", ".join([*([f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []), *names[-_NAMED:]])


def with_learnings(data: bytes, lines: Sequence[str]) -> bytes:
    """Write these lines between their marks; what else the file says stays. Raises `NotWritable`, `Unreadable`."""
    text = Text.from_bytes(data)
    end = (text.lines[0][len(text.line(1)) :] if text.lines else "") or "\n"
    whole, part = "".join(text.lines), end.join([BEGIN, *lines, END])
    counts = whole.count(BEGIN), whole.count(END)
    if counts == (1, 1) and whole.index(BEGIN) < whole.index(END):
        new = whole[: whole.index(BEGIN)] + part + whole[whole.index(END) + len(END) :]
    elif any(counts):
        raise NotWritable(f"its marks are broken: leave one line `{BEGIN}`, and below it one `{END}`")
    else:
        gap = "" if whole.endswith(("\n", "\r")) else end
        new = f"{whole}{gap}{end}{part}{end}" if whole.strip() else f"# Learnings{end}{end}{part}{end}"
    return Text((new,), text.bom).bytes
