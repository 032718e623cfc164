"""A story: what its file says, in any of the forms that people have (facts/bmad.md 1 to 8), each with its line."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import PurePath
from typing import Literal

import yaml
from markdown_it import MarkdownIt
from yaml.nodes import MappingNode, ScalarNode

from ashep.bmad.text import Text
from ashep.bmad.words import State, Status, state_of, status_of, styled
from ashep.errors import AshepError

Kind = Literal["story", "specification", "archive", "other"]


class NotWritable(AshepError):
    """What is to be changed is not there, or not in one place."""


@dataclass(frozen=True, slots=True)
class Said:
    """A status as a file says it."""

    said: str
    word: Status | None
    """The documented word for it; None: it is no known one."""
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Box:
    """A line with a checkbox: a task, or what a review found."""

    text: str
    done: bool
    line: int
    depth: int = 0
    severity: str | None = None


@dataclass(frozen=True, slots=True)
class Review:
    """A review, with what it found."""

    title: str
    line: int
    outcome: Literal["approve", "changes requested", "blocked"] | None = None
    findings: tuple[Box, ...] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a file, or contradicts itself in it."""

    line: int
    said: str
    disagrees: bool = False


@dataclass(frozen=True, slots=True)
class Story:
    """What a file says."""

    key: str
    """The file's name without its ending: so the sprint status names it."""
    id: str | None
    """`1-3`; None: neither name nor title has one."""
    kind: Kind
    title: str | None
    status: Said | None
    state: State
    why: str
    """Why the state is unknown."""
    criteria: tuple[tuple[str, int], ...] = ()
    tasks: tuple[Box, ...] = ()
    reviews: tuple[Review, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def unresolved(self) -> tuple[Box, ...]:
        """Findings that are open, of whichever review."""
        return tuple(one for review in self.reviews for one in review.findings if not one.done)


# --- pieces of the text -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Piece:
    kind: Literal["heading", "item", "paragraph"]
    level: int
    """Of a heading, or how deep lists are."""
    text: str
    line: int


@cache
def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark").disable(["inline", "text_join"])  # what is inside of a line is not looked at


def _pieces(plain: str) -> Iterator[_Piece]:
    """Headings, first lines of list items and paragraphs; what is code, a quotation or HTML is left out."""
    depth, quoted, heading, item = 0, 0, 0, False
    for token in _markdown().parse(plain):
        match token.type:
            case "bullet_list_open" | "ordered_list_open":
                depth += 1
            case "bullet_list_close" | "ordered_list_close":
                depth -= 1
            case "blockquote_open" | "blockquote_close":
                quoted += token.nesting
            case "heading_open":
                heading = int(token.tag[1])
            case "list_item_open":
                item = True
            case "inline" if token.map and not quoted:
                kind = "heading" if heading else "item" if item else "paragraph"
                yield _Piece(kind, heading or depth, token.content, token.map[0] + 1)
                heading, item = 0, False
            case _:
                pass


_EMPHASIS = re.compile(r"[*_`]+")
_NUMBER = re.compile(r"^(?:\d+[.)]\s*)?[^\w#]*")
_TASKS = re.compile(r"(?:development |implementation )?tasks\b", re.IGNORECASE)
_CRITERIA = re.compile(r"acceptance criteria\b", re.IGNORECASE)
_STATUS_HEADING = re.compile(r"(?:story )?status$", re.IGNORECASE)
_REVIEW = re.compile(
    r"(?:senior developer review|(?:code )?review follow-?ups?|review findings"
    r"|code review(?=$|\s*[-–—:(#\d]|\s+(?:findings|results?|report|round|notes|summary|record|outcome)))",
    re.IGNORECASE,
)
_BOX = re.compile(r"\[([ xX])\]\s+(.*)", re.DOTALL)
_CONTENTS = re.compile(r"\[[^\]]*\]\(#[^)]*\)\s*$")
_SEVERITY = re.compile(r"\[(critical|high|medium|med|low|decision|patch|defer)\]", re.IGNORECASE)
_OUTCOME = re.compile(r"^(?:[-*+]\s+)?[*_]*(?:review )?outcome[*_]*\s*:[*_]*\s*(.+)$", re.IGNORECASE)
_STATUS = re.compile(
    r"^\s*(?:[-*+]\s+)?[*_]{0,3}(?:Story\s+)?Status[*_]{0,3}\s*:[*_]{0,3}\s*(?P<said>\S.*?)[*_]*\s*$", re.IGNORECASE
)
_TITLE = re.compile(r"Story\s+(\d+)[.-](\d+[a-z]?)\s*[:–—-]?\s*", re.IGNORECASE)
_NAME = re.compile(r"(?:story[-._]?)?(\d+)[-._](\d+[a-z]?)(?=$|[-._])", re.IGNORECASE)
_MARKER = re.compile(r"(?:<{7}|>{7}) \S|={7}$")


def _bare(heading: str) -> str:
    return _NUMBER.sub("", _EMPHASIS.sub("", heading)).strip()


def id_in(name: str) -> str | None:
    """Give the id in a file's name, or in what a person types: `1-3`, `1.3`, `story-1.3.md`; None: there is none."""
    found = _NAME.match(name)
    return f"{found[1]}-{found[2].lower()}" if found else None


# --- reading ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Reading:
    """What was found so far, piece by piece."""

    text: Text
    headings: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    said: Said | None = None
    title: tuple[str, int] | None = None
    sections: set[str] = field(default_factory=set[str])
    criteria: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    tasks: list[Box] = field(default_factory=list[Box])
    reviews: list[Review] = field(default_factory=list[Review])

    def take(self, piece: _Piece) -> None:
        if piece.kind == "heading":
            self._heading(piece)
            return
        section = next((name for _, name in reversed(self.headings) if name), "")
        if self.said is None and (section == "status" or all(level == 1 for level, _ in self.headings)):
            self._status(piece, whole=section == "status")
        if section == "review":
            self._review(piece)
        elif section == "criteria":
            if piece.level == (1 if piece.kind == "item" else 0):
                self.criteria.append((piece.text, piece.line))
        elif section == "tasks" and (box := _box(piece)):
            self.tasks.append(box)

    def _heading(self, piece: _Piece) -> None:
        while self.headings and self.headings[-1][0] >= piece.level:
            self.headings.pop()
        bare = _bare(piece.text)
        inside = any(name == "review" for _, name in self.headings)
        name = "review" if _REVIEW.match(bare) and not inside else ""
        if name:
            self.reviews.append(Review(bare, piece.line))
        elif piece.level > 1:
            rules = (("tasks", _TASKS), ("criteria", _CRITERIA), ("status", _STATUS_HEADING))
            name = next((name for name, rule in rules if rule.match(bare)), "")
            name = name or ("rest" if piece.level == 2 and not inside else "")
        elif self.title is None:
            self.title = bare, piece.line
        if name == "criteria" and piece.level > 2 and "criteria" in self.sections:
            name = ""
        self.sections.add(name)
        self.headings.append((piece.level, name))

    def _status(self, piece: _Piece, *, whole: bool) -> None:
        for number in range(piece.line, piece.line + piece.text.count("\n") + 1):
            line = self.text.line(number)
            if found := _STATUS.match(line):
                self.said = Said(found["said"], status_of(found["said"]), number, found.start("said"))
                return
            if whole:
                said = line.strip().strip("*_` ")
                self.said = Said(said, status_of(said), number, line.index(said)) if said else None
                return

    def _review(self, piece: _Piece) -> None:
        last = self.reviews[-1]
        if box := _box(piece):
            self.reviews[-1] = replace(last, findings=(*last.findings, box))
            return
        for line in piece.text.split("\n"):
            if found := _OUTCOME.match(line):
                word = _bare(found[1]).lower()
                outcomes = (("approve", "approve"), ("changes", "changes requested"), ("block", "blocked"))
                outcome = next((name for begins, name in outcomes if word.startswith(begins)), None)
                self.reviews[-1] = replace(last, outcome=outcome)  # pyright: ignore[reportArgumentType] - of the three


def _box(piece: _Piece) -> Box | None:
    found = _BOX.match(piece.text) if piece.kind == "item" else None
    if found is None or _CONTENTS.match(found[2]):
        return None
    severity = _SEVERITY.search(found[2])
    return Box(found[2], found[1] != " ", piece.line, piece.level, severity and severity[1].lower())


def read(path: str, data: bytes) -> Story:
    """Read a file. Raises `Unreadable`."""
    text, name = Text.of(data), PurePath(path)
    problems = list[Problem]()
    body, said, front = _front_matter(text, problems)
    reading = _Reading(text)
    for piece in _pieces(body):
        reading.take(piece)
    problems.extend(_markers(text))
    if said is not None and reading.said is not None and said.word != reading.said.word:
        where = f"line {said.line} says {said.said}, and line {reading.said.line} {reading.said.said}"
        problems.append(Problem(reading.said.line, f"two statuses: {where}", disagrees=True))
    said = said or reading.said
    title, id_ = reading.title, id_in(name.name)
    if title is not None and (found := _TITLE.match(title[0])):
        told = f"{found[1]}-{found[2].lower()}"
        if id_ is not None and told != id_:
            problems.append(Problem(title[1], f"its title says {told}, and its name {id_}", disagrees=True))
        id_ = id_ or told
        title = title[0][found.end() :], title[1]
    kind = _kind(name, front, reading.sections, id_)
    unresolved = sum(not one.done for review in reading.reviews for one in review.findings)
    state, why = _state(said, reviewed=bool(reading.reviews), unresolved=unresolved)
    return Story(
        name.name.removesuffix(".md"), id_, kind, title and title[0], said, state, why,
        tuple(reading.criteria), tuple(reading.tasks), tuple(reading.reviews),
        tuple(sorted(problems, key=lambda one: one.line)),
    )  # fmt: skip


def _state(said: Said | None, *, reviewed: bool, unresolved: int) -> tuple[State, str]:
    if said is None:
        return "unknown", "it says no status"
    if said.word is None:
        return "unknown", f"line {said.line}: {said.said[:60]} is no status that is known"
    return state_of(said.word, reviewed=reviewed, unresolved=unresolved)


def _front_matter(text: Text, problems: list[Problem]) -> tuple[str, Said | None, set[str]]:
    """Take the front matter off, line for line: the rest, the status in it, and its keys."""
    if not text.lines or text.line(1).rstrip() != "---":
        return text.plain, None, set()
    end = next((number for number in range(2, len(text.lines) + 1) if text.line(number).rstrip() == "---"), 0)
    if not end:
        return text.plain, None, set()
    lines = text.plain.split("\n")
    rest = "\n".join([*[""] * end, *lines[end:]])
    try:
        node = yaml.compose("\n".join(["", *lines[1 : end - 1], ""]), Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        line, why = told(error)
        problems.append(Problem(line, f"its front matter is no YAML: {why}"))
        return rest, None, set()
    if not isinstance(node, MappingNode):
        return rest, None, set()
    said: Said | None = None
    keys = set[str]()
    for key, value in node.value:
        keys.add(str(key.value))
        if key.value == "status" and isinstance(value, ScalarNode) and value.value:
            line, column = value.start_mark.line + 1, value.start_mark.column + (value.style in ("'", '"'))
            said = Said(str(value.value), status_of(str(value.value)), line, column)
    return rest, said, keys


def told(error: yaml.YAMLError) -> tuple[int, str]:
    """Give the line of what is no YAML, and why."""
    mark = error.problem_mark or error.context_mark if isinstance(error, yaml.MarkedYAMLError) else None
    why = error.problem if isinstance(error, yaml.MarkedYAMLError) else None
    return mark.line + 1 if mark else 1, why or str(error).splitlines()[0]


def _markers(text: Text) -> Iterator[Problem]:
    found = [number for number in range(1, len(text.lines) + 1) if _MARKER.match(text.line(number))]
    if len(found) >= 3:
        yield Problem(found[0], "a merge was left half done: its markers stand here")


def _kind(name: PurePath, front: set[str], sections: set[str], id_: str | None) -> Kind:
    """Say what a file is; validations, contexts and analyses stand beside stories (facts/bmad.md 6, 8)."""
    plain = name.name.lower()
    if ".archive." in plain:
        return "archive"
    if not plain.endswith(".md") or re.search(r"validation|\.context\.|retrospective|-report\b", plain):
        return "other"
    if "baseline_revision" in front or ({"status", "title"} <= front and name.parent.name == "stories"):
        return "specification"
    return "story" if {"tasks", "criteria"} & sections and (id_ is not None or sections >= {"tasks"}) else "other"


# --- writing ------------------------------------------------------------------------------------------------------


def with_status(data: bytes, path: str, status: Status) -> bytes:
    """Write a status in the place and form of the old one. Raises `NotWritable`, `Unreadable`."""
    story = read(path, data)
    if story.status is None:
        raise NotWritable(f"{path}: it says no status; write a line `Status: {status}` below its title")
    if any(one.disagrees and one.said.startswith("two statuses") for one in story.problems):
        raise NotWritable(f"{path}: it says two statuses; leave one")
    return put_status(data, story.status, styled(status, story.status.said))


def put_status(data: bytes, old: Said, said: str) -> bytes:
    """Replace what a file says of its status by these words."""
    text = Text.of(data)
    return text.with_part(old.line, old.column, old.column + len(old.said), said).bytes


def with_box(data: bytes, line: int, *, done: bool) -> bytes:
    """Check or clear the box in a line. Raises `NotWritable` where there is none."""
    text = Text.of(data)
    found = re.search(r"\[([ xX])\]", text.line(line)) if 0 < line <= len(text.lines) else None
    if found is None:
        raise NotWritable(f"line {line} has no box")
    if (found[1] != " ") == done:
        return data
    return text.with_part(line, found.start(1), found.end(1), "x" if done else " ").bytes
