"""A tracker in memory that keeps the port's contract, with people who write to it and calls that fail.

Several trackers may share one database under names of their own, as several programs share a real one. It behaves as
bd does where the contract leaves that open: what is ready, in which order, and which writes leave a label event
(facts/beads.md 5, 6 and 9).
"""

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count

import anyio
import anyio.lowlevel
from pydantic import JsonValue

from ashep.core.facts.tracker import Change, Comment, Difference, Issue
from ashep.core.text import clean, invisible
from ashep.errors import ClaimLost, GuardTripped, TrackerRefused
from ashep.ports.tracker import ClaimRequest, Creation, Dependency, IssueText, Look, Seen, TrackerInfo, Update

LEASE = timedelta(minutes=5)
"""How long a claim or a heartbeat lasts (facts/beads.md 6)."""

_TITLE = 500  # characters; bd refuses more
_TYPES = frozenset({"bug", "feature", "task", "epic", "chore", "decision", "spike", "story", "milestone"})


@dataclass(slots=True)
class StoredIssue:
    """An issue as it is stored."""

    issue: Issue
    text: IssueText
    order: int
    lease: datetime | None = None
    comments: list[Comment] = field(default_factory=list[Comment])
    changes: list[Change] = field(default_factory=list[Change])
    metadata: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])


class Database:
    """What all trackers of one database share: issues, who changed them, and what bd would make of them."""

    def __init__(self, now: Callable[[], datetime], prefix: str) -> None:
        self.now, self.prefix = now, prefix
        self.records: dict[str, StoredIssue] = {}
        self.written: Counter[str] = Counter()
        self.numbers = count(1)
        self.changed = anyio.Event()

    def note(self, actor: str) -> None:
        """Count a write of this actor and wake whoever watches."""
        self.written[actor] += 1
        self.changed.set()
        self.changed = anyio.Event()

    def count_others(self, actor: str) -> int:
        """Count the writes of all others."""
        return self.written.total() - self.written[actor]

    def record(self, issue: str) -> StoredIssue:
        """Give an issue; TrackerRefused where there is none."""
        if issue not in self.records:
            raise TrackerRefused(f"there is no issue {clean(issue)!r}")
        return self.records[issue]

    def is_open(self, issue: str) -> bool:
        """Whether there is such an issue, and it is not closed."""
        return issue in self.records and self.records[issue].issue.status != "closed"

    def is_blocked(self, record: StoredIssue) -> bool:
        """Say whether an open blocker, of the issue or of a parent, keeps it from being ready."""
        if any(map(self.is_open, record.issue.blocked_by)):
            return True
        parents = [
            self.records[dependency.on] for dependency in record.text.dependencies if dependency.type == "parent-child"
        ]
        return any(map(self.is_blocked, parents))

    def relabel(self, record: StoredIssue, actor: str, add: Iterable[str], remove: Iterable[str]) -> None:
        """Change labels; one that is already there, or not there, leaves no record."""
        labels = set(record.issue.labels)
        after = (labels | set(add)) - set(remove)
        for label in sorted(after - labels):
            self._changed(record, actor, ("added", label))
        for label in sorted(labels - after):
            self._changed(record, actor, ("removed", label))
        record.issue = replace(record.issue, labels=tuple(sorted(after)))

    def assign(self, record: StoredIssue, actor: str, status: str, assignee: str | None) -> None:
        """Change the status and who has it."""
        before, record.issue = record.issue, replace(record.issue, status=status, assignee=assignee)
        if status != before.status:
            self._changed(record, actor, ("status", status))
        if assignee != before.assignee:
            self._changed(record, actor, ("assignee", assignee or ""))

    def _changed(self, record: StoredIssue, actor: str, what: Difference) -> None:
        event = f"event-{next(self.numbers)}"
        record.changes.append(Change(event, (what[0], clean(what[1])), clean(actor), self.now()))

    def make_snapshot(self, record: StoredIssue, *, comments: bool = False) -> Seen:
        """Show an issue as a read does: clean, and dependencies with the words of what they lead to."""
        issue, text = record.issue, record.text
        said = tuple(one.text for one in record.comments) if comments else ()
        words = (text.title, text.description, text.design, text.acceptance, text.notes, *said)
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
                invisible=sum(map(invisible, words)),
            ),
            record.lease if issue.status == "in_progress" else None,
        )


class MemoryTracker:
    """Issues in memory; `person_…` and `add` play people, `fail` plays a tracker that does not work.

    `calls` counts calls by method. `now` gives the time of what is written.
    """

    def __init__(self, now: Callable[[], datetime], actor: str = "ashep", prefix: str = "t") -> None:
        self.actor = actor
        self.version = "memory"
        """A test may upgrade it."""
        self.calls: Counter[str] = Counter()
        self._failures: list[tuple[str, Exception, bool]] = []
        """What `fail` asked for: the method, its error, and whether that comes after its work."""
        self._database = Database(now, prefix)

    def as_actor(self, actor: str) -> "MemoryTracker":
        """Give another tracker on the same database, under another name and with calls and failures of its own."""
        other = MemoryTracker(self._database.now, actor, self._database.prefix)
        other._database = self._database
        return other

    def fail(self, method: str, error: Exception, *, after: bool = False, times: int = 1) -> None:
        """Let the next calls of a method raise this: before they do anything, or `after` it (a lost answer)."""
        self._failures += [(method, error, after)] * times

    @asynccontextmanager
    async def _call(self, method: str) -> AsyncGenerator[None]:
        """Count a call, let others run as a real one would, and raise what `fail` asked for."""
        self.calls[method] += 1
        failure = next((failure for failure in self._failures if failure[0] == method), None)
        if failure is not None:
            self._failures.remove(failure)
        _, error, after = failure or (method, None, False)
        await anyio.lowlevel.checkpoint()
        if error is not None and not after:
            raise error
        yield
        if error is not None:
            raise error

    # --- people and other programs ---

    def add(
        self,
        title: str,
        *,
        id: str | None = None,
        type: str = "task",
        priority: int = 2,
        labels: tuple[str, ...] = (),
        status: str = "open",
        text: IssueText | None = None,
        blocked_by: tuple[str, ...] = (),
        parent: str | None = None,
        actor: str = "person",
    ) -> str:
        """Create an issue as a person does, and give its id."""
        database = self._database
        edges = [Dependency(one, "blocks") for one in blocked_by]
        edges += [Dependency(parent, "parent-child")] if parent else []
        number = next(database.numbers)
        issue = id or f"{database.prefix}-{number}"
        database.records[issue] = record = StoredIssue(
            Issue(issue, title, status, type, priority, database.now(), blocked_by=tuple(sorted(blocked_by))),
            replace(text or IssueText(), title=title, dependencies=tuple(edges), comments=()),
            order=number,
        )
        database.relabel(record, actor, labels, ())
        database.note(actor)
        return issue

    def person_sets(
        self,
        issue: str,
        actor: str,
        *,
        status: str | None = None,
        assignee: str | None = None,
        add_labels: tuple[str, ...] = (),
        remove_labels: tuple[str, ...] = (),
        title: str | None = None,
    ) -> None:
        """Change an issue without any guard, as people do; `assignee=""` clears it."""
        record = self._database.record(issue)
        record.issue = replace(record.issue, title=record.issue.title if title is None else title)
        after = record.issue.status if status is None else status
        holder = record.issue.assignee if assignee is None else assignee or None
        self._database.assign(record, actor, after, holder)
        record.text = replace(record.text, title=record.issue.title)
        record.lease = record.lease if record.issue.status == "in_progress" else None
        self._database.relabel(record, actor, add_labels, remove_labels)
        self._database.note(actor)

    def person_comments(self, issue: str, actor: str, text: str) -> None:
        """Comment as a person does."""
        record = self._database.record(issue)
        number = next(self._database.numbers)
        record.comments.append(Comment(f"comment-{number}", clean(actor), text, self._database.now()))
        self._database.note(actor)

    def person_rewrites(
        self,
        issue: str,
        actor: str,
        acceptance: str | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        priority: int | None = None,
    ) -> None:
        """Replace the acceptance criteria, or what else is given."""
        record = self._database.record(issue)
        words = {"title": title, "description": description, "acceptance": acceptance}
        record.text = replace(record.text, **{name: word for name, word in words.items() if word is not None})
        after = record.issue.priority if priority is None else priority
        record.issue = replace(record.issue, title=record.text.title, priority=after)
        self._database.note(actor)

    def person_blocks(self, issue: str, on: str, actor: str, *, stands: bool = True) -> None:
        """Let an issue wait for another, or no more."""
        record, edge = self._database.record(issue), Dependency(on, "blocks")
        edges = [
            dependency for dependency in record.text.dependencies if (dependency.on, dependency.type) != (on, "blocks")
        ]
        record.text = replace(record.text, dependencies=(*edges, edge) if stands else tuple(edges))
        others = [one for one in record.issue.blocked_by if one != on]
        record.issue = replace(record.issue, blocked_by=tuple(sorted([*others, *([on] if stands else [])])))
        self._database.note(actor)

    def stored(self, issue: str) -> IssueText | None:
        """Give the words of an issue as they were written."""
        return self._database.records[issue].text if issue in self._database.records else None

    def everything(self) -> dict[str, Issue]:
        """Give every issue, closed ones too."""
        return {issue: record.issue for issue, record in self._database.records.items()}

    def metadata(self, issue: str) -> dict[str, JsonValue]:
        """Give what else stands on an issue, to be read and changed."""
        return self._database.record(issue).metadata

    def person_deletes(self, issue: str, actor: str) -> None:
        """Delete an issue, and every edge that leads to it."""
        self._database.record(issue)
        del self._database.records[issue]
        for record in self._database.records.values():
            edges = tuple(dependency for dependency in record.text.dependencies if dependency.on != issue)
            record.text = replace(record.text, dependencies=edges)
            blocked_by = tuple(one for one in record.issue.blocked_by if one != issue)
            record.issue = replace(record.issue, blocked_by=blocked_by)
        self._database.note(actor)

    # --- the port ---

    async def settle(self) -> None:
        """Nothing outlives its caller here."""

    async def check(self) -> TrackerInfo:
        """Say what is there."""
        async with self._call("check"):
            return TrackerInfo(self.version, self._database.prefix, "memory", journal=False)

    async def look(self) -> Look:
        """Give all issues that are not closed, and which are ready, by priority and then the oldest first."""
        async with self._call("look"):
            records = [record for record in self._database.records.values() if record.issue.status != "closed"]
            ready = [
                record for record in records if record.issue.status == "open" and not self._database.is_blocked(record)
            ]
            ready.sort(key=lambda one: (one.issue.priority, one.issue.created_at, one.order))
            shown = [self._database.make_snapshot(record) for record in records]
            # no more words than must be: nothing may rest on what a real tracker would read for nothing
            few = [replace(one, text=IssueText(one.text.title, dependencies=one.text.dependencies)) for one in shown]
            return Look(tuple(one.issue.id for one in ready), tuple(few), version=self.version)

    async def issue(self, issue: str) -> Seen | None:
        """Give one issue with its comments."""
        async with self._call("issue"):
            record = self._database.records.get(issue)
            return None if record is None else self._database.make_snapshot(record, comments=True)

    async def claim(self, request: ClaimRequest) -> Seen:
        """Take an issue that is open, or that this actor holds."""
        async with self._call("claim"):
            record = self._database.record(request.issue)
            status, holder = record.issue.status, record.issue.assignee
            if holder not in (None, self.actor):
                raise ClaimLost(f"{request.issue} is already claimed by {holder}")
            if status != "open" and (status, holder) != ("in_progress", self.actor):
                raise ClaimLost(f"{request.issue} is not claimable: status {status}")
            record.lease = record.lease or self._database.now() + LEASE  # claiming again does not extend it
            return self._write(record, "in_progress", self.actor, request)

    async def update(self, update: Update) -> Seen:
        """Write all or nothing, under both guards."""
        async with self._call("update"):
            record = self._database.record(update.issue)
            if (record.issue.status, record.issue.assignee) != (update.if_status, update.if_assignee):
                raise GuardTripped(f"{update.issue} is {record.issue.status}, assigned to {record.issue.assignee}")
            if update.status == "closed" and any(map(self._database.is_open, record.issue.blocked_by)):
                raise TrackerRefused(f"cannot close {update.issue}: it is blocked by an open issue")
            record.metadata |= update.metadata
            return self._write(record, update.status, update.assignee, update)

    def _write(self, record: StoredIssue, status: str, assignee: str | None, write: ClaimRequest | Update) -> Seen:
        self._database.assign(record, self.actor, status, assignee)
        record.issue = replace(record.issue, stamp=write.stamp)
        record.lease = record.lease if status == "in_progress" else None
        self._database.relabel(record, self.actor, write.add_labels, write.remove_labels)
        self._database.note(self.actor)
        return self._database.make_snapshot(record)

    async def heartbeat(self, issue: str) -> None:
        """Renew the lease of an issue that this actor holds and works on."""
        async with self._call("heartbeat"):
            record = self._database.record(issue)
            if record.issue.assignee != self.actor:
                raise ClaimLost(f"{issue} is already claimed by {record.issue.assignee}")
            if record.issue.status != "in_progress":
                raise ClaimLost(f"{issue} is not claimable: status {record.issue.status}")
            record.lease = self._database.now() + LEASE

    async def reclaim(self, issue: str, holder: str, older_than: timedelta) -> bool:
        """Free an issue whose lease ran out so long ago."""
        async with self._call("reclaim"):
            record = self._database.record(issue)
            view, lease = record.issue, record.lease
            dead = lease is not None and lease + older_than <= self._database.now()
            if not dead or (view.status, view.assignee) != ("in_progress", holder):
                return False
            self._database.assign(record, self.actor, "open", None)
            record.lease = None
            self._database.note(self.actor)
            return True

    async def relabel(self, issue: str, add: tuple[str, ...], remove: tuple[str, ...]) -> None:
        """Change labels only."""
        async with self._call("relabel"):
            if add or remove:
                self._database.relabel(self._database.record(issue), self.actor, add, remove)
                self._database.note(self.actor)

    async def comment(self, issue: str, text: str, marker: str) -> None:
        """Post a comment that ends with the marker."""
        async with self._call("comment"):
            self.person_comments(issue, self.actor, f"{text}\n{marker}")

    async def commented(self, issue: str, marker: str) -> bool:
        """Look for a line that is the marker in the issue's comments."""
        async with self._call("commented"):
            record = self._database.records.get(issue)
            return record is not None and any(marker in comment.text.split("\n") for comment in record.comments)

    async def create(self, creation: Creation) -> None:
        """Create an issue once."""
        async with self._call("create"):
            database, new, stamp = self._database, creation.new, creation.stamp
            there = database.records.get(creation.id)
            if there is not None:
                found = there.issue.stamp
                if found is None or (found.instance, found.run) != (stamp.instance, stamp.run):
                    raise TrackerRefused(f"{creation.id} already exists")
                return
            database.record(creation.discovered_from)
            titled = new.title.strip() and len(new.title) <= _TITLE and "\0" not in new.title
            named = creation.id.startswith(f"{database.prefix}-")
            if not (titled and named and new.type in _TYPES and 0 <= new.priority <= 4):
                raise TrackerRefused(f"{clean(creation.id)}: no such id, title, type or priority")
            edge = Dependency(creation.discovered_from, "discovered-from")
            status = "blocked" if creation.parked else "open"
            database.records[creation.id] = record = StoredIssue(
                Issue(creation.id, new.title, status, new.type, new.priority, database.now(), stamp=stamp),
                IssueText(title=new.title, description=new.description, dependencies=(edge,)),
                order=next(database.numbers),
            )
            database.relabel(record, self.actor, creation.labels, ())
            database.note(self.actor)

    async def changes(self, issue: str) -> tuple[Change, ...]:
        """Give who changed what, newest first."""
        async with self._call("changes"):
            record = self._database.records.get(issue)
            return () if record is None else tuple(reversed(record.changes))

    async def hints(self) -> AsyncIterator[None]:
        """Yield after writes of others."""
        seen = self._database.count_others(self.actor)
        while True:
            changed, now = self._database.changed, self._database.count_others(self.actor)
            if now == seen:
                await changed.wait()
            else:
                seen = now
                yield

    async def aclose(self) -> None:
        """Do nothing: nothing was opened."""
