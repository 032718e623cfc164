"""Whether a story that was put into another form says all that it said: what a reformatting may not lose.

Form is free: where the status stands, levels of headings, numbers, list marks, emphasis, line breaks in a paragraph.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from textwrap import dedent
from typing import NamedTuple

from ashep.bmad.markdown import MarkdownBlock, bare
from ashep.bmad.story import Story, StoryProblem, front_lines, outline, read
from ashep.bmad.text import Text, UnreadableText

MOST = 100
"""Problems that are told."""

_FORM = re.compile(
    r"(?:story|status|acceptance criteria|(?:(?:development|implementation) )?tasks(?: ?/ ?subtasks)?|dev notes"
    r"|references|dev agent record|agent model used|debug log(?: references)?|completion notes(?: list)?|file list"
    r"|change ?log|action items|(?:review )?outcome"
    r"|(?:senior developer review|code review|review follow-?ups?|review findings)(?: \(ai\))?)$"
)
"""Headings that only say what stands below them."""

_EMPHASIS = re.compile(r"(?<![\w*_`])(\*{1,3}|_{1,3})(?=[^\s*_])(.{0,400}?[^\s*_])\1(?![\w*_`])", re.DOTALL)
_NUMBER = re.compile(
    r"(?:(?:(?:sub)?task|ac|(?:acceptance )?criterion|scenario)[-\s]*\d++(?:\.\d+)*+[a-z]?(?:[:.)]+\s*|\s+[—–-]+\s+)"
    r"|\d++(?:\.\d+)*+[.):]+\s+)(?=.*\w)", re.IGNORECASE | re.DOTALL
)  # fmt: skip
_SEVERITY = re.compile(r"\[(?:critical|high|medium|med|low|decision|patch|defer)\]\s*", re.IGNORECASE)
_COMMENT = re.compile(r"\s*<!--(?:(?!-->).)*-->\s*$", re.DOTALL)


class _Unit(NamedTuple):
    text: str
    line: int
    done: bool | None = None
    severity: str | None = None

    @property
    def key(self) -> tuple[object, ...]:
        return self.text, self.done, self.severity


def nothing_lost(before: bytes, after: bytes, path: str = "story.md") -> tuple[StoryProblem, ...]:
    """Tell what a story said before and says no more, or otherwise; lines are those of before.

    Criteria have the same words in the same order; tasks are as they were, in their order; findings are as they were,
    with their severity; whatever else it says, record or note, stands there in the same paragraphs. Status, id, title,
    and what its reviews ended with are the same.
    """
    try:
        was, (criteria, tasks, findings, records) = read(path, before), _units(path, before)
        now, (criteria_now, tasks_now, findings_now, records_now) = read(path, after), _units(path, after)
    except UnreadableText as error:
        return (StoryProblem(error.line, f"one of both cannot be read: {error}"),)
    told = [*_find_differences(was, now)]
    if " ".join(criterion.text for criterion in criteria) != " ".join(one.text for one in criteria_now):
        told += [*_find_lost("criterion", criteria, criteria_now)] or [StoryProblem(1, "criteria have another order")]
    told += [*_find_lost("task", tasks, tasks_now), *_find_lost("finding", findings, findings_now)]
    keys = {task.key: task for task in tasks}
    order = [one.key for one in tasks_now if one.key in keys]
    if {*keys} <= {*order} and [task.key for task in tasks] != order:
        told.append(StoryProblem(1, "tasks have another order"))
    return tuple(islice((*told, *_find_lost("what it said", records, records_now)), MOST))


def with_criteria(path: str, story: bytes, known: Sequence[bytes]) -> bytes:
    """Give a story that has the criteria of none of the known ones those of the first, and else as it is.

    Where they cannot be put back in one place, it is that one whole; a known one that nobody can read asks for nothing.
    Raises `UnreadableText`.
    """
    wanted = dict[bytes, list[str]]()
    for one in known:
        with suppress(UnreadableText):
            wanted.setdefault(one, _criteria(path, one))
    if not wanted:
        return story
    first = next(iter(wanted))
    if not wanted[first] or _criteria(path, story) in wanted.values():
        return story
    kept, place, source = Text.from_bytes(story), _place(story), _place(first)
    if place is None or source is None:
        return first
    said = Text.from_bytes(first).lines[source.start : source.stop]
    mended = Text((*kept.lines[: place.start], *said, *kept.lines[place.stop :]), kept.bom).bytes
    return mended if _criteria(path, mended) == wanted[first] else first


def _criteria(path: str, data: bytes) -> list[str]:
    """Give the words of its criteria; whether one is checked off counts for nothing."""
    return [re.sub(r"^\[[ xX]\]\s+", "", one.text) for one in _units(path, data)[0]]


def _place(data: bytes) -> range | None:
    """Find the lines of the criteria, heading included; None: there are none, or in more than one place."""
    found, after = list[range](), False
    for piece, section in outline(data):
        mine = section.startswith("criteri")
        if mine and not after:
            found.append(range(piece.line - 1, len(Text.from_bytes(data).lines)))
        elif after and not mine:
            found[-1] = range(found[-1].start, piece.line - 1)
        after = mine
    return found[0] if len(found) == 1 else None


def _find_differences(was: Story, now: Story) -> Iterator[StoryProblem]:
    line = was.status.line if was.status else 1
    said = [one.status and (one.status.word or _plain(one.status.said)) for one in (was, now)]
    ended = [one.reviews[-1].outcome if one.reviews else None for one in (was, now)]
    for what, one, other in (
        ("its status", *said), ("its id", was.id, now.id),
        ("its title", _plain(was.title or ""), _plain(now.title or "")),
        ("what its last review ended with", *ended), ("its state", was.state, now.state),
        ("the number of its reviews", len(was.reviews), len(now.reviews)),
    ):  # fmt: skip
        if one != other:
            yield StoryProblem(line, f"{what} was {one or 'not said'}, and is {other or 'not said'}")


def _find_lost(what: str, was: Sequence[_Unit], now: Sequence[_Unit]) -> Iterator[StoryProblem]:
    left, lost = Counter(one.key for one in now), list[_Unit]()
    for one in was:
        left[one.key] -= 1
        if left[one.key] < 0:
            lost.append(one)
    others = {one.text: one for one in now if left[one.key] > 0}
    for one in lost:
        how, other = "is gone, or says something else", others.get(one.text)
        if other is not None:
            how = f"was {one.severity or 'of no severity'}, and is {other.severity or 'of none'}"
        if other is not None and other.done != one.done:
            how = "was checked off" if other.done else "is open again"
        yield StoryProblem(one.line, f"{what} {how}: {' '.join(one.text.split())[:80]}")


def _units(path: str, data: bytes) -> tuple[list[_Unit], ...]:
    """Give criteria, tasks, findings, and all else."""
    story, headed = read(path, data), False
    status = story.status.line if story.status else 0
    boxes = {task.line: (task, 1) for task in story.tasks}
    boxes |= {finding.line: (finding, 2) for review in story.reviews for finding in review.findings}
    front = [_Unit(_plain(line), number) for number, line in front_lines(data) if number != status]
    units: tuple[list[_Unit], ...] = ([], [], [], front)
    for piece, section in outline(data):
        headed = headed or (piece.kind == "heading" and piece.level > 1)
        if piece.kind == "item" and piece.line in boxes:
            box, place = boxes[piece.line]
            text = _SEVERITY.sub("", box.text, count=1) if box.severity else box.text
            units[place].append(_Unit(_unnumbered(text), box.line, box.done, box.severity))
        elif section in ("criteria", "criterion") and piece.kind != "other":
            said = "" if piece.kind == "heading" and _FORM.match(bare(piece.text).lower()) else piece.text
            units[0].append(_Unit(_unnumbered(re.sub(r"^\[ \]\s+", "", said)), piece.line))
        else:
            units[0 if section.startswith("criteri") else 3].extend(_record(piece, status, apart=not headed))
    return tuple([one for one in some if one.text] for some in units)


def _record(piece: MarkdownBlock, status: int, *, apart: bool) -> Iterator[_Unit]:
    """Give what stands for itself: a paragraph, or above the first section a line; and code as it is laid out."""
    lines = [(number, line) for number, line in enumerate(piece.text.split("\n"), piece.line) if number != status]
    if piece.kind == "heading" and ((piece.level == 1 and apart) or _FORM.match(bare(piece.text).lower())):
        return
    if piece.kind == "other":
        said = "" if _COMMENT.match(piece.text) else dedent(piece.text).strip("\n")
        yield _Unit("\n".join(line.rstrip() for line in said.split("\n")), piece.line)
    elif apart:
        yield from (_Unit(_plain(line), number) for number, line in lines)
    else:
        yield _Unit(_plain("\n".join(line for _, line in lines)), piece.line)


def _plain(text: str) -> str:
    """Give the words without emphasis, and with one blank where there are any; tables with none that only align."""
    text = re.sub(r"-{3,}", "---", re.sub(r"\s*\|\s*", " | ", text)).replace("[X]", "[x]")
    while (bald := _EMPHASIS.sub(r"\2", text)) != text:
        text = bald
    return " ".join(text.split())


def _unnumbered(text: str) -> str:
    return _NUMBER.sub("", _plain(text), count=1)
