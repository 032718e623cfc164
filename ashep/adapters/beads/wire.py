"""What bd prints, as models, and the way from there to the values of the port.

The shapes are those of bd 1.3.0 (facts/beads.md 4). A write's answer lacks dependencies and the comment count, `list`
has raw edges where `show` has whole issues, and `metadata` holds whatever anybody put there.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    JsonValue,
    TypeAdapter,
    ValidationError,
)

from ashep.core.model import Comment, Issue, LabelEvent, Stamp
from ashep.core.text import clean
from ashep.ports import Dependency, IssueText, Seen

STAMP_KEY = "ashep"
"""Our key in an issue's metadata."""

_ADDED = "Added label: "
_NEVER = datetime(1, 1, 1, tzinfo=UTC)


def _none_is_empty(value: object) -> object:
    return [] if value is None else value


Text = Annotated[str, AfterValidator(clean)]
Time = Annotated[AwareDatetime, AfterValidator(lambda moment: moment.astimezone(UTC))]


class _Answer(BaseModel):
    """A part of what bd prints; keys that we don't read may come and go."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class _Edge(_Answer):
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
        return self.depends_on_id or self.id or ""

    @property
    def kind(self) -> str:
        return self.type or self.dependency_type or ""


class _CommentRow(_Answer):
    """A comment."""

    id: str
    issue_id: str
    author: Text = ""
    text: Text
    created_at: Time


class Row(_Answer):
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
    dependencies: Annotated[tuple[_Edge, ...], BeforeValidator(_none_is_empty)] = ()
    comment_count: int = 0
    lease_expires_at: Time | None = None
    comments: Annotated[tuple[_CommentRow, ...], BeforeValidator(_none_is_empty)] = ()
    ephemeral: bool = False


class _EventRow(_Answer):
    """A line of `history --events`."""

    id: str
    issue_id: str
    event_type: str
    actor: Text = ""
    comment: Text | None = None
    created_at: Time


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


class Problem(_Answer):
    """The answer of a call that failed: on standard output, or as a line of standard error (facts/beads.md 8)."""

    error: str
    failed: tuple[Failed, ...] = ()


class Beat(_Answer):
    """The answer of `heartbeat`."""

    id: str


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


ROWS = TypeAdapter(tuple[Row, ...])
COMMENT = TypeAdapter(_CommentRow)
EVENTS = TypeAdapter(tuple[_EventRow, ...] | None)
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


def seen(row: Row, titles: Mapping[str, Row] | None = None) -> Seen:
    """Give the issue as the port shows it; `titles` lends the words of dependencies that only an id is known of."""
    known = titles or {}
    dependencies = tuple(
        _dependency(edge, known.get(edge.target))
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
    )
    text = IssueText(
        title=row.title,
        description=row.description,
        design=row.design,
        acceptance=row.acceptance_criteria,
        notes=row.notes,
        dependencies=dependencies,
        comments=tuple(Comment(c.id, c.author, c.text, c.created_at) for c in row.comments),
    )
    return Seen(issue, text, row.lease_expires_at)


def _dependency(edge: _Edge, target: Row | None) -> Dependency:
    title, status = (edge.title, edge.status) if target is None else (target.title, target.status)
    return Dependency(on=edge.target, type=edge.kind, title=title, status=status)


def label_events(issue: str, events: tuple[_EventRow, ...] | None) -> tuple[LabelEvent, ...]:
    """Give the `label added` events of exactly this issue, newest first (facts/beads.md 9)."""
    found = [
        LabelEvent(id=row.id, label=row.comment.removeprefix(_ADDED), actor=row.actor, at=row.created_at)
        for row in events or ()
        if row.issue_id == issue and row.event_type == "label_added" and row.comment
    ]
    return tuple(sorted(found, key=lambda event: event.at, reverse=True))
