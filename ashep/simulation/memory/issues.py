"""The database that trackers in memory share: issues, who changed them, and what bd would make of them."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import anyio
from pydantic import JsonValue

from ashep.core.facts.tracker import Change, Comment, Difference, Issue
from ashep.core.text import clean
from ashep.errors import TrackerRefused
from ashep.ports.tracker import Creation, Dependency, IssueText, Seen

LEASE = timedelta(minutes=5)
"""How long a claim or a heartbeat lasts (facts/beads.md 6)."""

_TITLE = 500  # characters; bd refuses more
_TYPES = frozenset({"bug", "feature", "task", "epic", "chore", "decision", "spike", "story", "milestone"})


@dataclass(slots=True)
class Record:
    """An issue as it is stored."""

    issue: Issue
    text: IssueText
    order: int
    lease: datetime | None = None
    comments: list[Comment] = field(default_factory=list[Comment])
    changes: list[Change] = field(default_factory=list[Change])
    metadata: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])


class Database:
    """What all trackers of one database share."""

    def __init__(self, now: Callable[[], datetime], prefix: str) -> None:
        self.now, self.prefix = now, prefix
        self.records: dict[str, Record] = {}
        self.written: Counter[str] = Counter()
        self.numbers = 0
        self.changed = anyio.Event()

    def number(self) -> int:
        """Give a number that was not given before."""
        self.numbers += 1
        return self.numbers

    def note(self, actor: str) -> None:
        """Count a write of this actor and wake whoever watches."""
        self.written[actor] += 1
        self.changed.set()
        self.changed = anyio.Event()

    def others(self, actor: str) -> int:
        """Count the writes of all others."""
        return self.written.total() - self.written[actor]

    def record(self, issue: str) -> Record:
        """Give an issue; TrackerRefused where there is none."""
        if issue not in self.records:
            raise TrackerRefused(f"there is no issue {clean(issue)!r}")
        return self.records[issue]

    def is_open(self, issue: str) -> bool:
        """Whether there is such an issue, and it is not closed."""
        return issue in self.records and self.records[issue].issue.status != "closed"

    def is_blocked(self, record: Record) -> bool:
        """Say whether an open blocker, of the issue or of a parent, keeps it from being ready."""
        if any(map(self.is_open, record.issue.blocked_by)):
            return True
        parents = [self.records[one.on] for one in record.text.dependencies if one.type == "parent-child"]
        return any(map(self.is_blocked, parents))

    def relabel(self, record: Record, actor: str, add: Iterable[str], remove: Iterable[str]) -> None:
        """Change labels; one that is already there, or not there, leaves no record."""
        labels = set(record.issue.labels)
        after = (labels | set(add)) - set(remove)
        for label in sorted(after - labels):
            self._changed(record, actor, ("added", label))
        for label in sorted(labels - after):
            self._changed(record, actor, ("removed", label))
        record.issue = replace(record.issue, labels=tuple(sorted(after)))

    def assign(self, record: Record, actor: str, status: str, assignee: str | None) -> None:
        """Change the status and who has it."""
        before, record.issue = record.issue, replace(record.issue, status=status, assignee=assignee)
        if status != before.status:
            self._changed(record, actor, ("status", status))
        if assignee != before.assignee:
            self._changed(record, actor, ("assignee", assignee or ""))

    def _changed(self, record: Record, actor: str, what: Difference) -> None:
        record.changes.append(Change(f"event-{self.number()}", (what[0], clean(what[1])), clean(actor), self.now()))

    def seen(self, record: Record, *, comments: bool = False) -> Seen:
        """Show an issue as a read does: clean, and dependencies with the words of what they lead to."""
        issue, text = record.issue, record.text
        dependencies = tuple(
            Dependency(one.on, one.type, clean(target.title), target.status)
            for one in text.dependencies
            if (target := self.records[one.on].issue)
        )
        return Seen(
            replace(
                issue,
                title=clean(issue.title),
                assignee=None if issue.assignee is None else clean(issue.assignee),
                labels=tuple(sorted(map(clean, issue.labels))),
                comments=len(record.comments),
            ),
            IssueText(
                title=clean(text.title),
                description=clean(text.description),
                design=clean(text.design),
                acceptance=clean(text.acceptance),
                notes=clean(text.notes),
                dependencies=dependencies,
                comments=tuple(replace(one, text=clean(one.text)) for one in record.comments) if comments else (),
            ),
            record.lease if issue.status == "in_progress" else None,
        )


def creatable(creation: Creation, prefix: str) -> bool:
    """Whether bd would make such an issue."""
    new = creation.new
    title = len(new.title.strip()) > 0 and len(new.title) <= _TITLE and "\0" not in new.title
    return title and creation.id.startswith(f"{prefix}-") and new.type in _TYPES and 0 <= new.priority <= 4
