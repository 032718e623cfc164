"""A round of a story: what follows from a verdict in its file and in the sprint status, whoever wrote what there."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ashep.bmad.content_diff import with_criteria
from ashep.bmad.markdown import bare
from ashep.bmad.sprint import read_sprint, with_key
from ashep.bmad.status_words import Status
from ashep.bmad.story import Story, read, with_box, with_status
from ashep.bmad.text import NotWritable, Text, UnreadableText

FOLLOW_UPS = "Review Follow-ups (AI)"
"""The section in which the next developer finds what is to be done (facts/bmad.md 7)."""

LONGEST = 500
"""Characters of a point."""

MOST_PUT_OFF = 50
"""Findings left for later that are told of one by one."""

_PUT_OFF = " — deferred"
_POINT = re.compile(r"(?:#+|[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?")


@dataclass(frozen=True, slots=True)
class Round:
    """How a story is left, and what is to be written."""

    story: bytes | None
    """The file as it is to be; None: there is none."""
    sprint: bytes | None
    """The sprint status as it is to be; None: there is none."""
    status: str = ""
    state: str = ""
    lacking: str = ""
    """Why it could not be marked."""
    blocked: str = ""
    """Why whoever worked on it stopped."""
    put_off: tuple[str, ...] = ()
    """What its reviews left for later, where it is done."""
    mended: bool = False
    """Whether its criteria were put back."""


def write_round(
    path: str,
    story: bytes | None,
    sprint: bytes | None,
    status: Status | None,
    remains: str = "",
    by: str = "",
    known: Sequence[bytes] = (),
) -> Round:
    """Write a status, what remains to be done, and where it is `done` the sprint status, too.

    `sprint`: the sprint status as it was before anybody worked on the story; `by`: who says what remains: of two points
    of one name the first stands; `known`: the story as others wrote it: what is to be fulfilled is theirs to say. Doing
    it again changes nothing.
    """
    if story is None:
        return Round(None, sprint, lacking=f"{path} is not there any more" if status else "")
    try:
        given = story
        story = with_criteria(path, story, known)
        mended = story != given
        before = read(path, story)
        blocked = ""
        if status in (None, "review") and before.status is not None and before.status.word == "blocked":
            blocked = (before.run and before.run.blocking) or f"its story says that it is {before.status.said}"
        new = story if blocked or not remains else _with_points(story, remains, by)
        new = _with_put_off(path, new) if status == "done" else new
        new = new if blocked or status is None else with_status(new, path, status)
        after = read(path, new)
        done = status == "done"
        sprint = completed(sprint, after) if done and sprint is not None else sprint
        put_off = tuple(_left_for_later(after)) if done else ()
        return Round(new, sprint, (after.status and after.status.word) or "", after.state, "", blocked, put_off, mended)
    except (NotWritable, UnreadableText) as error:
        said = f"{error}" if path in f"{error}" else f"{path}: {error}"
        return Round(story, sprint, lacking=said if status else "")


def completed(sprint: bytes, story: Story) -> bytes:
    """Say in a sprint status that a story is done, and that its epic is in progress. Raises `NotWritable`."""
    status = read_sprint(sprint)
    entry = status.find_entry(story.key, story.id)
    if entry is None:
        return sprint
    epic = f"epic-{(story.id or entry.id or '').split('-')[0]}"
    sprint = with_key(sprint, entry.key, "done")
    waits = any(entry.key.lower() == epic and entry.said.word == "backlog" for entry in status.entries)
    return with_key(sprint, epic, "in-progress") if waits else sprint


def wishes(before: bytes | None, after: bytes | None) -> tuple[str, ...]:
    """Say what an edit of a sprint status wanted to change: nobody but ashep writes it while stories are worked on."""
    try:
        old, new = (
            {entry.key: entry.said.said for entry in read_sprint(data or b"").entries} for data in (before, after)
        )
    except UnreadableText:
        return ("it cannot be read any more",)
    differ = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    return tuple(f"{key}: {new.get(key, 'away')}" for key in differ) or (("its text",) if before != after else ())


def _left_for_later(story: Story) -> Iterator[str]:
    """Give what was left for later: a box that is checked, and says so (facts/bmad.md 3)."""
    for box in (finding for review in story.reviews for finding in review.findings):
        if box.done and (box.severity == "defer" or _PUT_OFF.strip() in box.text):
            said = re.sub(r"^(?:\[[^\]]*\]\s*)+", "", " ".join(box.text.split())).removesuffix(_PUT_OFF.strip())
            yield bare(said).strip() or said


def _with_put_off(path: str, data: bytes) -> bytes:
    """Whoever completes a story with findings that are open leaves them for later."""
    text = Text.from_bytes(data)
    lines = list(text.lines)
    for box in read(path, data).unresolved:
        line = text.line(box.line)
        ending = text.lines[box.line - 1][len(line) :]
        checked = with_box(line.encode(), 1, done=True).decode()
        lines[box.line - 1] = f"{checked.rstrip()}{_PUT_OFF}{ending}"
    return Text(tuple(lines), text.bom).bytes


def _with_points(data: bytes, remains: str, by: str) -> bytes:
    """Put what remains behind everything else, as findings that are open."""
    heading, text = f"## {FOLLOW_UPS} - {by}", Text.from_bytes(data)
    points = list(_points(remains))
    if not points or any(line.rstrip("\r\n") == heading for line in text.lines):
        return data
    end = "\r\n" if text.lines and text.lines[0].endswith("\r\n") else "\n"
    last = text.lines[-1:] and not text.lines[-1].endswith(("\r", "\n"))
    lines = ["", heading, "", *(f"- [ ] {point}" for point in points)]
    return Text((*text.lines, *((end,) if last else ()), *(f"{line}{end}" for line in lines)), text.bom).bytes


def _points(remains: str) -> Iterator[str]:
    """Read points, a line each; lines that are further in belong to the one before."""
    points = list[str]()
    for line in remains.splitlines():
        said = line.strip().replace("```", "'''")
        if said and points and line[:1].isspace() and not _POINT.match(said):
            points[-1] = f"{points[-1]} {said}"
        elif said and not (said.endswith(":") and not _POINT.match(said)):
            points.append(_POINT.sub("", said, count=1))
    yield from (point[:LONGEST] for point in points if point.strip())
