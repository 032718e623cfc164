"""What bd prints, as models, and the way from there to the values of the port.

The shapes are those of bd 1.3.0 (facts/beads.md 4). A write's answer lacks dependencies and the comment count, `list`
has raw edges where `show` has whole issues, and `metadata` holds whatever anybody put there.
"""

import json
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    JsonValue,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
)

from ashep.core.facts.tracker import Change, Comment, Difference, Issue, Stamp
from ashep.core.text import clean, invisible
from ashep.ports.tracker import Dependency, IssueText, Seen

STAMP_KEY = "ashep"
"""Our key in an issue's metadata."""

_TEMPLATE = "it is a template in bd, a step of a formula that is to be poured (`bd mol pour`)"
UNLISTED = "`bd ready` lists it, and `bd list` hides it"

_ADDED, _REMOVED = "Added label: ", "Removed label: "
_FIELDS = TypeAdapter(dict[str, object])
_WORDS = ("description", "design", "acceptance_criteria", "notes")
_NEVER = datetime(1, 1, 1, tzinfo=UTC)


def _none_is_empty(value: object) -> object:
    return [] if value is None else value


def _clean_text(text: str, info: ValidationInfo) -> str:
    if info.context is not None:
        info.context.append(invisible(text))
    return clean(text)


Text = Annotated[str, AfterValidator(_clean_text)]
Time = Annotated[AwareDatetime, AfterValidator(lambda moment: moment.astimezone(UTC))]


class _Answer(BaseModel):
    """A part of what bd prints; keys that we don't read may come and go."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class DependencyRow(_Answer):
    """A dependency, raw (`list`, `ready`) or as the whole issue that it leads to (`show`)."""

    issue_id: str | None = None
    depends_on_id: str | None = None
    type: str | None = None
    id: str | None = None
    dependency_type: str | None = None
    title: Text | None = None
    status: Text | None = None

    @property
    def target(self) -> str:
        """The issue that it leads to."""
        return self.depends_on_id or self.id or ""

    @property
    def kind(self) -> str:
        """Its type."""
        return self.type or self.dependency_type or ""


class CommentRow(_Answer):
    """A comment."""

    id: str
    issue_id: str
    author: Text = ""
    text: Text
    created_at: Time


class IssueRow(_Answer):
    """An issue in `list`, `ready`, `show`, or as a write's answer."""

    id: str
    title: Text
    status: Text
    issue_type: Text
    priority: int
    created_at: Time
    assignee: Text | None = None
    labels: Annotated[tuple[Text, ...], BeforeValidator(_none_is_empty)] = ()
    metadata: object = None
    description: Text = ""
    design: Text = ""
    acceptance_criteria: Text = ""
    notes: Text = ""
    dependencies: Annotated[tuple[DependencyRow, ...], BeforeValidator(_none_is_empty)] = ()
    comment_count: int = 0
    lease_expires_at: Time | None = None
    comments: Annotated[tuple[CommentRow, ...], BeforeValidator(_none_is_empty)] = ()
    ephemeral: bool = False
    is_template: bool = False
    left_out: tuple[str, ...] = ()
    """Not bd's: see `ashep.adapters.beads.json_stream`."""
    invisible: int = 0
    """Not bd's either: how many characters that nobody sees all its texts held."""

    @classmethod
    def read(cls, row: bytes, left_out: tuple[str, ...]) -> "IssueRow":
        """Read a row of bd's; of what was left out of it the words of an issue are told."""
        told = tuple(one for one in left_out if one.partition(":")[0] in _WORDS)
        counts = list[int]()
        read = cls.model_validate_json(row, context=counts)
        return read.model_copy(update={"left_out": told, "invisible": sum(counts)}) if told or any(counts) else read


class IssueId(_Answer):
    """An issue of which no more than the id is read, and the answer of `heartbeat`."""

    id: str

    @classmethod
    def read(cls, row: bytes, _: tuple[str, ...]) -> str:
        """Read the id of a row."""
        return cls.model_validate_json(row).id


class EventRow(_Answer):
    """A line of `history --events`."""

    id: str
    issue_id: str
    event_type: str
    actor: Text = ""
    comment: Text | None = None
    new_value: str = ""
    created_at: Time

    @classmethod
    def read(cls, row: bytes, _: tuple[str, ...]) -> "EventRow":
        """Read a line."""
        return cls.model_validate_json(row)


class Version(_Answer):
    """The answer of `version`."""

    version: str


class Where(_Answer):
    """The answer of `where`."""

    path: str
    prefix: str = ""
    database_path: str | None = None


class Setting(_Answer):
    """The answer of `config get`."""

    value: str


class Failed(_Answer):
    """One issue that an `update` could not write."""

    error: str
    guard_mismatch: bool = False


class CallError(_Answer):
    """The answer of a call that failed: on standard output, or as a line of standard error (facts/beads.md 8)."""

    error: str
    failed: tuple[Failed, ...] = ()


class Reclaimed(_Answer):
    """The answer of `reclaim`."""

    count: int


class JournalLine(_Answer):
    """A line of `events tail`."""

    seq: int
    ts: Time = _NEVER
    actor: str = ""


class Truncated(_Answer):
    """What `events tail` says when the journal no longer reaches back so far."""

    head: int


_STAMP = TypeAdapter(Stamp)


def stamp_json(stamp: Stamp, beside: Mapping[str, JsonValue] | None = None) -> str:
    """Give the metadata that a write sets: an object under our key, and what else is to stand there.

    Keys that are not named are kept (facts/beads.md 4).
    """
    assert STAMP_KEY not in (beside or ()), "the stamp is a key of its own"
    more = "".join(f",{json.dumps(key)}:{json.dumps(value)}" for key, value in (beside or {}).items())
    return f'{{"{STAMP_KEY}":{_STAMP.dump_json(stamp).decode()}{more}}}'


def _stamp(metadata: object) -> Stamp | None:
    """Read our stamp leniently: a person may have written anything there, and a stamp that cannot be read is none."""
    if not isinstance(metadata, Mapping):
        return None
    # of a Mapping that came out of JSON the types are not known
    found: object = metadata.get(STAMP_KEY)  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    try:
        stamp = _STAMP.validate_json(found) if isinstance(found, str) else _STAMP.validate_python(found)
    except ValidationError:
        return None
    words = stamp.instance + stamp.actor + (stamp.run or "")
    return stamp if words == clean(words) else None


def make_snapshot(row: IssueRow) -> Seen:
    """Give the issue as the port shows it."""
    dependencies = tuple(
        Dependency(on=edge.target, type=edge.kind, title=edge.title, status=edge.status)
        for edge in row.dependencies
        if edge.target and edge.issue_id in (None, row.id)
    )
    issue = Issue(
        id=row.id,
        title=row.title,
        status=row.status,
        type=row.issue_type,
        priority=row.priority,
        created_at=row.created_at,
        assignee=row.assignee or None,
        labels=tuple(sorted(row.labels)),
        blocked_by=tuple(sorted(one.on for one in dependencies if one.type == "blocks")),
        comments=row.comment_count,
        stamp=_stamp(row.metadata),
        hidden=_TEMPLATE if row.is_template else "",
    )
    text = IssueText(
        title=row.title,
        description=row.description,
        design=row.design,
        acceptance=row.acceptance_criteria,
        notes=row.notes,
        dependencies=dependencies,
        comments=tuple(Comment(c.id, c.author, c.text, c.created_at) for c in row.comments),
        left_out=row.left_out,
        invisible=row.invisible,
    )
    return Seen(issue, text, row.lease_expires_at)


def titled(seen: Seen, others: Mapping[str, Seen]) -> Seen:
    """Lend dependencies of which only the id is known the words of the others."""
    if not seen.text.dependencies:
        return seen
    known = tuple(
        replace(one, title=other.issue.title, status=other.issue.status) if (other := others.get(one.on)) else one
        for one in seen.text.dependencies
    )
    return replace(seen, text=replace(seen.text, dependencies=known))


def listed(known: Mapping[str, Seen], row: bytes, left_out: tuple[str, ...]) -> tuple[str, Seen | None]:
    """Read a row of a listing; of what is closed or passes by itself only the id counts.

    An issue that is as it was known is the same object.
    """
    shown = IssueRow.read(row, left_out)
    if shown.ephemeral or shown.status == "closed":
        return shown.id, None
    one, before = make_snapshot(shown), known.get(shown.id)
    return shown.id, one if before is None or before.issue != one.issue else replace(one, issue=before.issue)


def ready(listed: Set[str], row: bytes, left_out: tuple[str, ...]) -> tuple[str, Seen | None]:
    """Read a row of what is ready: no more than its id counts where the listing shows the issue."""
    issue = IssueId.read(row, left_out)
    return (issue, None) if issue in listed else (issue, make_snapshot(IssueRow.read(row, left_out)))


class ListedIssue:
    """What a listing shows."""

    def __init__(self, rows: Sequence[tuple[str, Seen | None]], unread: Mapping[str, str]) -> None:
        self.found = {issue: one for issue, one in rows if one is not None}
        self.ids = frozenset(unread).union(issue for issue, _ in rows)
        self.unread = dict(unread)


def changes(issue: str, events: Iterable[EventRow]) -> tuple[Change, ...]:
    """Give who changed labels, status and assignee of exactly this issue, newest first (facts/beads.md 9)."""
    found = [
        Change(f"{row.id}{part or ''}", what, row.actor, row.created_at)
        for row in events
        if row.issue_id == issue
        for part, what in enumerate(_changes(row))
    ]
    return tuple(sorted(found, key=lambda change: change.at, reverse=True))


def _changes(row: EventRow) -> list[Difference]:
    match row.event_type:
        case "label_added":
            return [("added", (row.comment or "").removeprefix(_ADDED))]
        case "label_removed":
            return [("removed", (row.comment or "").removeprefix(_REMOVED))]
        case "closed":
            return [("status", "closed")]
        case "reopened" if not row.new_value:
            return [("status", "open")]
        case _:
            fields = dict[str, object]()
            with suppress(ValidationError):  # a reason in words names no field
                fields = _FIELDS.validate_json(row.new_value)
            known: tuple[Literal["status", "assignee"], ...] = ("status", "assignee")
            return [(kind, clean(value)) for kind in known if isinstance(value := fields.get(kind), str)]
