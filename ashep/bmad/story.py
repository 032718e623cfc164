"""A story: what its file says, in any of the forms that people have (facts/bmad.md 1 to 8, 13), each with its line."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Literal

from yaml.nodes import Node, ScalarNode

from ashep.bmad.markdown import MarkdownBlock, bare, id_and_title, id_in, pieces
from ashep.bmad.status_words import State, Status, halt_in, restated, state_of, status_of
from ashep.bmad.text import NotWritable, Text
from ashep.bmad.yaml_nodes import NodeLines, NoYaml, composed, pairs, scalar, texts

Kind = Literal["story", "specification", "archive", "other"]
Outcome = Literal["approve", "changes requested", "blocked"]


@dataclass(frozen=True, slots=True)
class WrittenStatus:
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
    outcome: Outcome | None = None
    findings: tuple[Box, ...] = ()
    held: bool = False
    """It says something; a template that nobody filled in does not."""


@dataclass(frozen=True, slots=True)
class BuildNote:
    """What build-auto noted in its specification."""

    iteration: int | None
    """How often the review sent it back."""
    warnings: tuple[str, ...]
    deferred: tuple[str, ...]
    result: WrittenStatus | None = None
    """The status with which the last run ended."""
    blocking: str | None = None
    """Why it stopped, in its words."""

    @property
    def halt(self) -> str | None:
        """The documented words for why it stopped."""
        return halt_in(self.blocking or "")


@dataclass(frozen=True, slots=True)
class StoryProblem:
    """What is wrong with a file, or contradicts itself in it."""

    line: int
    said: str
    disagrees: bool = False
    code: Literal["two statuses", "merge"] | None = None
    """By what a program knows it."""


@dataclass(frozen=True, slots=True)
class Story:
    """What a file says."""

    key: str
    """The file's name without its ending: so the sprint status names it."""
    id: str | None
    """`1-3`; None: neither name nor title has one."""
    kind: Kind
    title: str | None
    status: WrittenStatus | None
    state: State
    why: str
    """Why the state is unknown."""
    criteria: tuple[tuple[str, int], ...] = ()
    tasks: tuple[Box, ...] = ()
    reviews: tuple[Review, ...] = ()
    problems: tuple[StoryProblem, ...] = ()
    run: BuildNote | None = None
    """Of a specification."""

    @property
    def unresolved(self) -> tuple[Box, ...]:
        """Findings that are open, of whichever review."""
        return tuple(finding for review in self.reviews for finding in review.findings if not finding.done)


_SECTIONS = (
    ("tasks", re.compile(r"(?:development |implementation )?tasks\b", re.IGNORECASE)),
    ("criteria", re.compile(r"acceptance criteria\b", re.IGNORECASE)),
    ("result", re.compile(r"auto run result$", re.IGNORECASE)),
)
_STATUS_HEADING = re.compile(r"(?:story )?status\s*(:.*)?$", re.IGNORECASE)
_REVIEW = re.compile(
    r"(?:senior developer review|(?:code )?review follow-?ups?|review findings"
    r"|code review(?=$|\s*[-–—:(#\d]|\s+(?:findings|results?|report|round|notes|summary|record|outcome)))",
    re.IGNORECASE,
)
_CHECKED = re.compile(r"(?:verification|(?:review )?checklist)\b", re.IGNORECASE)
_NOTHING = re.compile(r"[\W_]*(?:tbd|none|n/a|pending|to be|not yet|not started|\{\{|$)|\|", re.IGNORECASE)
_BOX = re.compile(r"\[([ xX])\]\s+(.*)", re.DOTALL)
_CONTENTS = re.compile(r"\[[^\]]*\]\(#[^)]*\)\s*$")
_SEVERITY = re.compile(r"\[(critical|high|medium|med|low|decision|patch|defer)\]", re.IGNORECASE)
_CRITERION = re.compile(r"(?:AC|(?:acceptance )?criterion|scenario)\b|AC\d", re.IGNORECASE)
_OUTCOME = re.compile(r"\W*(?:review )?outcome\W*:\W*(\w.*)", re.IGNORECASE)
_OUTCOMES: tuple[tuple[str, Outcome], ...] = (
    ("approve", "approve"), ("changes", "changes requested"), ("block", "blocked"),
)  # fmt: skip
_STATUS = re.compile(
    r"(?:[^\w|]|_)*(?:Story\s+)?Status[*_]{0,3}\s*:[\s*_`]*(?P<said>[^\s*_`].*?)[\s*_`]*$", re.IGNORECASE
)
_BLOCKING = re.compile(r"\W*Blocking condition\W*:[\s*_`]*(?P<said>.*?)[\s*_`]*$", re.IGNORECASE)
_MARKER = re.compile(r"(?:<{7}|>{7}) \S|={7}$")
_BESIDE = re.compile(
    r"(?:code-review|completion|atdd|test-|tech-spec|traceability|validation|epic-|phase-|sprint-)"
    r"|.*(?:\.context\.|-retro(?:spective)?\b)"
)
_PERHAPS = re.compile(r".*-(?:validation|report|summary|checklist|findings|planning|results)\.md$")
"""Names of what stands beside stories; a story that is called so says all that a story does."""


@dataclass(slots=True)
class _Reading:
    text: Text
    headings: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    section: str = ""
    """The innermost that has a name; `rest` is what nothing is read of."""
    reviewing: bool = False
    said: WrittenStatus | None = None
    title: tuple[str, int] | None = None
    sections: set[str] = field(default_factory=set[str])
    criteria: dict[str, list[tuple[str, int]]] = field(default_factory=dict[str, list[tuple[str, int]]])
    tasks: list[Box] = field(default_factory=list[Box])
    reviews: list[Review] = field(default_factory=list[Review])
    result: WrittenStatus | None = None
    blocking: str | None = None

    def take(self, piece: MarkdownBlock) -> None:
        if piece.kind == "heading":
            self._heading(piece)
        elif self.section == "rest":
            return
        elif self.reviewing:
            self._review(piece)
        elif self.section == "criteria":
            if piece.level == (1 if piece.kind == "item" else 0):
                box = _BOX.match(piece.text)
                said = box[2] if box else piece.text
                named = _CRITERION.match(bare(said))
                self.criteria.setdefault("named" if named else piece.kind, []).append((said, piece.line))
        elif self.section == "tasks":
            if task := _box(piece):
                self.tasks.append(task)
            elif bare(piece.text).lower() in ("acceptance criteria", "acceptance criteria:"):
                self.sections.add("criteria")
                self._enter(7, "criteria")  # as specifications have them: a line of their tasks
        elif self.section == "result":
            self._result(piece)
        elif self.said is None:  # before the first section, or in that of the status
            self._status(piece, whole=self.section == "status")

    def _heading(self, piece: MarkdownBlock) -> None:
        while self.headings and self.headings[-1][0] >= piece.level:
            self.headings.pop()
            self.section = next((name for _, name in reversed(self.headings) if name), "")
            self.reviewing = any(name == "review" for _, name in self.headings)
        plain = bare(piece.text)
        if self.reviewing:
            name = self._in_review(plain, piece)
        elif _REVIEW.match(plain):
            name = "review"
            self.reviews.append(Review(plain, piece.line))
        elif piece.level == 1:
            name, self.title = "", self.title or (plain, piece.line)
        elif self.section == "criteria":
            name = "criterion" if _CRITERION.match(plain) or piece.text[:1].isdigit() else ""
            if name:
                self.criteria.setdefault("named", []).append((plain, piece.line))
        else:
            name = self._section(plain, piece)
        self.sections.add(name)
        self._enter(piece.level, name)

    def _section(self, plain: str, piece: MarkdownBlock) -> str:
        if found := piece.level == 2 and _STATUS_HEADING.match(plain):
            if found[1] and self.said is None:
                self._status(piece, whole=False)
            return "status"
        name = next((name for name, rule in _SECTIONS if rule.match(plain)), "rest" if piece.level == 2 else "")
        return "" if name == "criteria" and piece.level > 2 and name in self.sections else name

    def _enter(self, level: int, name: str) -> None:
        self.headings.append((level, name))
        self.section, self.reviewing = name or self.section, self.reviewing or name == "review"

    def _status(self, piece: MarkdownBlock, *, whole: bool) -> None:
        for number in range(piece.line, piece.line + piece.text.count("\n") + 1):
            line = self.text.line(number)
            if found := _STATUS.match(line):
                self.said = WrittenStatus(found["said"], status_of(found["said"]), number, found.start("said"))
                return
            if whole:
                said = line.strip().lstrip("-+*_` ").rstrip("*_` ")
                self.said = WrittenStatus(said, status_of(said), number, line.index(said)) if said else None
                return

    def _in_review(self, plain: str, piece: MarkdownBlock) -> str:
        last = self.reviews[-1]
        if _REVIEW.match(plain) and plain[:12].lower() == last.title[:12].lower():
            self.reviews.append(Review(plain, piece.line))  # the next round of the same
        elif found := _OUTCOME.match(plain):
            self._outcome(found[1])
        return (
            "checked" if _CHECKED.match(plain) else "outcome" if re.fullmatch(r"(?i)(review )?outcome", plain) else ""
        )

    def _review(self, piece: MarkdownBlock) -> None:
        last = self.reviews[-1]
        if box := _box(piece):
            held = last.held or self.section != "checked" or box.done
            self.reviews[-1] = replace(last, findings=(*last.findings, box), held=held)
        elif not _NOTHING.match(piece.text):
            self.reviews[-1] = replace(last, held=True)
            for line in piece.text.split("\n"):
                if found := _OUTCOME.match(line):
                    self._outcome(found[1])
            if self.section == "outcome":
                self._outcome(piece.text)

    def _outcome(self, said: str) -> None:
        word = bare(said).lower()
        outcome = next((name for begins, name in _OUTCOMES if word.startswith(begins)), None)
        self.reviews[-1] = replace(self.reviews[-1], outcome=outcome, held=True)

    def _result(self, piece: MarkdownBlock) -> None:
        for number in range(piece.line, piece.line + piece.text.count("\n") + 1):
            line = self.text.line(number)
            if found := _STATUS.match(line):  # runs follow one another
                self.result = WrittenStatus(found["said"], status_of(found["said"]), number, found.start("said"))
                self.blocking = None
            elif (found := _BLOCKING.match(line)) and found["said"].lower() not in ("", "none"):
                self.blocking = found["said"]


def _box(piece: MarkdownBlock) -> Box | None:
    found = _BOX.match(piece.text) if piece.kind == "item" else None
    if found is None or _CONTENTS.match(found[2]):
        return None
    severity = _SEVERITY.search(found[2])
    return Box(found[2], found[1] != " ", piece.line, piece.level, severity and severity[1].lower())


def read(path: str, data: bytes) -> Story:
    """Read a file. Raises `Unreadable`."""
    text, name = Text.from_bytes(data), PurePath(path)
    marked = [number for number, line in enumerate(text.lines, 1) if line[:1] in "<=>" and _MARKER.match(line.rstrip())]
    merge = "a merge was left half done: its markers stand here" if len(marked) >= 3 else ""
    problems = [StoryProblem(marked[0], merge, code="merge")] if merge else []
    body, front, said = _front_matter(text, problems)
    reading = _Reading(text)
    for piece in pieces(body):
        reading.take(piece)
    if said is not None and reading.said is not None and said.word != reading.said.word:
        where = f"line {said.line} says {said.said}, and line {reading.said.line} {reading.said.said}"
        problems.append(StoryProblem(reading.said.line, f"two statuses: {where}", disagrees=True, code="two statuses"))
    said = said or reading.said
    key = scalar(front.get("story_key")) or name.name.removesuffix(".md")
    heading = reading.title or ((front_title, 1) if (front_title := scalar(front.get("title"))) else None)
    named, (told, title) = id_in(key), id_and_title(heading[0]) if heading else (None, None)
    if named and told and named != told and not named.startswith(f"{told}-"):  # 1-2-3-way-merge is 1-2
        problems.append(
            StoryProblem(heading[1] if heading else 1, f"its title says {told}, and its name {named}", True)
        )
        told = None
    reviews = tuple(one for one in reading.reviews if one.held)
    if said and said.word == "done" and (left := [one for one in reading.tasks if not one.done]):
        problems.append(StoryProblem(left[0].line, f"it is done, and of its tasks {len(left)} are open"))
    unresolved = sum(not one.done for review in reviews for one in review.findings)
    kind = _kind(name, front, reading, told or named)
    run = _run(front, reading) if kind == "specification" else None
    state, why = _state(said, run, reviewed=bool(reviews), unresolved=unresolved)
    if merge:
        state, why = "unknown", merge
    if run and run.result and run.result.word == "blocked" and said and said.word == "done":
        problems.append(StoryProblem(run.result.line, "its last run ended blocked, and it is done", disagrees=True))
    found = reading.criteria
    return Story(
        key, told or named, kind, title or (heading and heading[0]), said, state, why,
        tuple(found.get("named") or found.get("item") or found.get("paragraph") or ()), tuple(reading.tasks), reviews,
        tuple(sorted(problems, key=lambda one: one.line)), run,
    )  # fmt: skip


def outline(data: bytes) -> Iterator[tuple[MarkdownBlock, str]]:
    """Give each piece of a file, code and quotations too, with the section that it is read in.

    Raises `Unreadable`.
    """
    text = Text.from_bytes(data)
    reading = _Reading(text)
    for piece in pieces(_front_matter(text, [])[0], whole=True):
        if piece.kind != "other":
            reading.take(piece)
        yield piece, "review" if reading.reviewing else reading.section


def front_lines(data: bytes) -> Iterator[tuple[int, str]]:
    """Give the lines of the front matter. Raises `Unreadable`."""
    text = Text.from_bytes(data)
    rest = _front_matter(text, [])[0].split("\n")
    said = [(number, line) for number, line in enumerate(text.plain.split("\n"), 1) if line and not rest[number - 1]]
    yield from said[1:-1]


def _state(said: WrittenStatus | None, run: BuildNote | None, *, reviewed: bool, unresolved: int) -> tuple[State, str]:
    if said is None:
        return "unknown", "it says no status"
    if said.word is None:
        return "unknown", f"{said.said[:60]} is no status that is known"
    if said.word == "blocked" and run and run.blocking:
        return "unknown", f"it is blocked: {run.blocking}"
    return state_of(said.word, reviewed=reviewed, unresolved=unresolved)


def _front_matter(text: Text, problems: list[StoryProblem]) -> tuple[str, dict[str, Node], WrittenStatus | None]:
    """Take the front matter off, line for line: the rest, what it holds, and the status in it."""
    if not text.lines or text.line(1).rstrip() != "---":
        return text.plain, {}, None
    end = next((number for number in range(2, len(text.lines) + 1) if text.line(number).rstrip() == "---"), 0)
    if not end:
        problems.append(StoryProblem(1, "its front matter has no end"))
        return text.plain, {}, None
    lines = text.plain.split("\n")
    rest, inside = "\n".join([*[""] * end, *lines[end:]]), "\n".join(["", *lines[1 : end - 1], ""])
    try:
        front = pairs(composed(inside))
    except NoYaml as error:
        problems.append(StoryProblem(error.line, f"its front matter is no YAML: {error}"))
        return rest, {}, None
    node = front.get("status")
    return rest, front, said_in(node, NodeLines(inside)) if isinstance(node, ScalarNode) and node.value else None


def said_in(node: ScalarNode, places: NodeLines) -> WrittenStatus:
    """Read a status in YAML."""
    said, (line, column) = str(node.value), places.locate(node.start_mark.index)
    return WrittenStatus(said, status_of(said), line, column + (node.style in ("'", '"')))


def _run(front: dict[str, Node], reading: _Reading) -> BuildNote:
    iteration = scalar(front.get("review_loop_iteration")) or ""
    return BuildNote(
        int(iteration) if iteration.isdecimal() and len(iteration) < 10 else None,
        texts(front.get("warnings")), texts(front.get("deferred")), reading.result, reading.blocking,
    )  # fmt: skip


def _kind(name: PurePath, front: dict[str, Node], reading: _Reading, id_: str | None) -> Kind:
    """Say what a file is; validations, contexts and analyses stand beside stories (facts/bmad.md 6, 8)."""
    plain, sections = name.name.lower(), {"tasks", "criteria"} & reading.sections
    if ".archive." in plain or {"archive", "archives", "archived"} & {one.lower() for one in name.parts[:-1]}:
        return "archive"
    if not plain.endswith(".md"):
        return "other"
    of_run = {"baseline_revision", "review_loop_iteration"} & front.keys()
    if of_run or ({"status", "title"} <= front.keys() and name.parent.name == "stories"):
        return "specification"
    whole = len(sections) == 2 and (reading.said is not None or "status" in front)
    if _BESIDE.match(plain) or not (whole or (sections and id_ and not _PERHAPS.match(plain))):
        return "other"
    return "story"


# --- writing ------------------------------------------------------------------------------------------------------


def with_status(data: bytes, path: str, status: Status) -> bytes:
    """Write a status in the place and form of the old one. Raises `NotWritable`, `Unreadable`."""
    story = read(path, data)
    if story.status is None:
        raise NotWritable(f"{path}: it says no status; write a line `Status: {status}` below its title")
    if any(problem.code is not None for problem in story.problems):
        raise NotWritable(f"{path}: it says two statuses; leave one")
    return put_status(data, story.status, restated(status, story.status.said))


def put_status(data: bytes, old: WrittenStatus, said: str) -> bytes:
    """Replace what a file says of a status by these words. Raises `NotWritable` where it says that no more."""
    return Text.from_bytes(data).with_part(old.line, old.column, old.said, said).bytes


def with_box(data: bytes, line: int, *, done: bool) -> bytes:
    """Check or clear the box in a line. Raises `NotWritable` where there is none."""
    text = Text.from_bytes(data)
    found = (
        re.match(r"(?:\s*(?:[-*+]|\d+[.)]))+\s+\[([ xX])\]", text.line(line)) if 0 < line <= len(text.lines) else None
    )
    if found is None:
        raise NotWritable(f"line {line} has no box")
    if (found[1] != " ") == done:
        return data
    return text.with_part(line, found.start(1), found[1], "x" if done else " ").bytes
