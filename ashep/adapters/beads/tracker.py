"""The tracker port over bd 1.3.0.

A write is one process. Its answer is believed only where it shows what was asked for; anything else costs one `show`,
which tells what became of the write by our stamp, or by the marker of a comment (facts/beads.md 7: a bd that was killed
had stored the comment 5 times of 14). bd takes the beginning of an id for the id, in writes too (facts/beads.md 8), so
that nothing is written to an issue that was not read under exactly its id before.
"""

import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import anyio.lowlevel
from pydantic import JsonValue

from ashep.adapters.beads import schema
from ashep.adapters.beads.change_feed import EventFeed, Manifest
from ashep.adapters.beads.command import AlreadyThere, Bd, NothingWritten, UnknownIssue, parse
from ashep.adapters.system import process_table, programs
from ashep.core.facts.tracker import Change, Issue, Stamp
from ashep.core.text import clean
from ashep.errors import TrackerError, TrackerMissing, TrackerRefused, TrackerUnavailable
from ashep.ports.tracker import ClaimRequest, Creation, Look, PartialSnapshot, Seen, TrackerInfo, Update
from ashep.redaction import Redaction

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
"""What can be an id: no flag, no path, and nothing that bd would split."""
_AT_ONCE = 200  # issues, before others get their turn

_Step = Callable[[], Awaitable[bool]]
"""Writes, or probes for what was written; whether that shows it."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What an issue looks like after a write of ours; None: the write leaves it."""

    stamp: Stamp | None = None
    status: str | None = None
    assignee: tuple[str | None] | None = None
    labels: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    def shown_by(self, issue: Issue) -> bool:
        return (
            (self.stamp is None or issue.stamp == self.stamp)
            and (self.status is None or issue.status == self.status)
            and (self.assignee is None or issue.assignee == self.assignee[0])
            and set(self.labels).issubset(issue.labels)
            and set(self.without).isdisjoint(issue.labels)
        )


class BeadsTracker:
    """Issues in a Beads database, by way of the program bd.

    `calls` counts the processes by subcommand. What a write returns has the dependencies and the number of comments
    that the last read showed: bd's answer to a write holds neither.
    """

    def __init__(
        self, project: Path, command: tuple[str, ...], actor: str, timeout: float, redaction: Redaction | None = None
    ) -> None:
        self.actor = actor
        self._bd = Bd(project, command, actor, timeout, redaction or Redaction())
        self._read: dict[str, Seen] = {}
        self._listed = False
        self._hidden: frozenset[str] = frozenset()
        self._readers: list[EventFeed] = []
        self._found: tuple[schema.Where, bool] | None = None

    @property
    def calls(self) -> Counter[str]:
        """How many processes were started, by subcommand."""
        return self._bd.calls

    async def settle(self) -> None:
        """End what a killed ashep left (see the port): a bd goes on without it, and may still write."""
        await process_table.end(self._bd.mark, TrackerUnavailable)

    # --- reading ---

    async def check(self) -> TrackerInfo:
        """Ask for the version, the place, the prefix and whether the events journal is on."""
        version = await self._bd.version()
        where, has_journal = await self._find()
        return TrackerInfo(version, where.prefix or await self._prefix(), where.path, has_journal, programs.BD_VERSION)

    async def _find(self) -> tuple[schema.Where, bool]:
        """Ask for the place, and whether the events journal is on: the owner's setting, which a restart follows."""
        where = parse(schema.Where, await self._bd.call("where", "--json"))
        setting = parse(schema.Setting, await self._bd.call("config", "get", "events-journal", "--json"))
        self._found = where, setting.value == "true"
        return self._found

    async def _prefix(self) -> str:
        """Ask for what every sound database holds: one that lost its data says, with exit 0, that nothing is there.

        (facts/beads.md 8: with a truncated data file `ready` gave `[]`; so do `list`, and `show` finds no issue.)
        """
        prefix = parse(schema.Setting, await self._bd.call("config", "get", "issue_prefix", "--json")).value
        if not prefix:
            raise TrackerUnavailable("bd's database has no issue prefix: its data may be damaged")
        return prefix

    async def look(self) -> Look:
        """List what is not closed, then what is ready; where nothing is listed, the prefix is read before the list.

        `list` is bd's own default listing plus the `--no-history` issues, which `ready` shows and `list` hides. It
        leaves out statuses that bd's owner keeps out of it (pinned, custom ones that are done or frozen). What is ready
        and not in it (templates, facts/beads.md 5) is shown as hidden.
        """
        try:
            version = await self._bd.version(again=True)
        except TrackerMissing as error:  # the old one that took its place may make room again
            raise TrackerUnavailable(str(error)) from error
        # the list should be empty by the last one and our own writes since
        if sound := self._listed and all(seen.issue.status == "closed" for seen in self._read.values()):
            await self._prefix()
        listed = await self._list()
        if not listed.ids and not sound:
            await self._prefix()
            listed = await self._list()  # by a database that is sound now
        unread, found = listed.unread, listed.found
        for number, (issue, one) in enumerate(found.items()):
            found[issue] = schema.titled(one, found)
            if number % _AT_ONCE == 0:
                await anyio.lowlevel.checkpoint()
        look = Look((), tuple(found.values()), tuple(sorted(unread.items())), version)
        try:
            ready = await self._ready(listed) if found or self._hidden else []
        except TrackerUnavailable as error:
            raise PartialSnapshot(str(error), look) from error
        finally:
            self._read, self._listed = found, True
        ready = [issue for issue in ready if issue in found and found[issue].issue.status == "open"]
        return Look(tuple(ready), tuple(found.values()), tuple(sorted(unread.items())), version)

    async def _list(self) -> schema.ListedIssue:
        read = partial(schema.listed, self._read)
        return schema.ListedIssue(
            *await self._bd.rows(read, "list", "--limit=0", "--include-infra", "--brief", "--json")
        )

    async def _ready(self, listed: schema.ListedIssue) -> list[str]:
        """List what is ready; an issue that the list hides goes to what it shows, with the reason.

        One that it hid for no reason that we know may have come after it was read: it is read once more.
        """
        rows, unread = await self._bd.rows(partial(schema.ready, listed.ids), "ready", "--limit=0", "--brief", "--json")
        hidden = {issue: seen for issue, seen in rows if seen is not None}
        if any(not seen.issue.hidden and issue not in self._hidden for issue, seen in hidden.items()):
            later = await self._list()
            listed.found.update(later.found)
            listed.unread.update(later.unread)
            hidden = {issue: seen for issue, seen in hidden.items() if issue not in later.ids}
        self._hidden = frozenset(hidden)
        for issue, seen in hidden.items():
            why = seen.issue.hidden or schema.UNLISTED
            listed.found[issue] = replace(seen, issue=replace(seen.issue, hidden=why))
        listed.unread.update((issue, why) for issue, why in unread.items() if issue not in listed.ids)
        return [issue for issue, _ in rows if issue not in hidden]

    async def issue(self, issue: str) -> Seen | None:
        if not ID.fullmatch(issue):
            return None
        rows = await self._show(issue)
        if not rows:
            await self._prefix()
            rows = await self._show(issue)  # what was damaged when it was first asked is whole now: only this counts
        self._read.pop(issue, None)
        for row in rows:
            if row.id == issue:
                return self._read.setdefault(issue, schema.make_snapshot(row))
        return None

    async def _show(self, issue: str) -> list[schema.IssueRow]:
        with suppress(UnknownIssue):
            return await self._bd.rows_of_one(schema.IssueRow.read, "show", issue, "--include-comments")
        return []

    async def changes(self, issue: str) -> tuple[Change, ...]:
        """Read the issue's history; bd prints `null` for an issue that it does not know."""
        if not ID.fullmatch(issue):
            return ()
        events, _ = await self._bd.rows(schema.EventRow.read, "history", issue, "--events", "--json", null=True)
        if not events:
            await self._prefix()
        return schema.changes(issue, events)

    async def commented(self, issue: str, marker: str) -> bool:
        """Look for a line that is the marker in the issue's comments."""
        seen = await self.issue(issue)
        return seen is not None and any(clean(marker) in comment.text.split("\n") for comment in seen.text.comments)

    # --- writing ---

    async def claim(self, request: ClaimRequest) -> Seen:
        """Claim with bd's own compare-and-set; labels and stamp go with it."""
        wanted = _Wanted(request.stamp, "in_progress", (self.actor,), request.add_labels, request.remove_labels)
        return await self._update(request.issue, wanted, "--claim")

    async def update(self, update: Update) -> Seen:
        """Write with both guards, which cover labels too because the stamp is a field (facts/beads.md 6)."""
        wanted = _Wanted(update.stamp, update.status, (update.assignee,), update.add_labels, update.remove_labels)
        return await self._update(
            update.issue,
            wanted,
            f"--if-status={update.if_status}",
            f"--if-assignee={update.if_assignee or ''}",
            f"--status={update.status}",
            f"--assignee={update.assignee or ''}",
            beside=update.metadata,
        )

    async def _update(
        self, issue: str, wanted: _Wanted, *flags: str, beside: Mapping[str, JsonValue] | None = None
    ) -> Seen:
        stamp = wanted.stamp
        assert stamp is not None

        def landed(issue: Issue) -> bool:  # whatever else differs is a person's
            return issue.stamp is not None and issue.stamp.instance == stamp.instance and issue.stamp.seq >= stamp.seq

        metadata = f"--metadata={schema.stamp_json(stamp, beside)}"
        return await self._write(issue, wanted, landed, *flags, metadata)

    async def heartbeat(self, issue: str) -> None:
        """Renew the lease; bd knows one of its own from another's (facts/beads.md 6)."""
        await self._require_issue(issue)
        beat = parse(schema.IssueId, await self._bd.call("heartbeat", issue, "--json"))
        if beat.id != issue:
            raise TrackerUnavailable(f"bd's answer to the heartbeat of {issue} is about {beat.id}")

    async def reclaim(self, issue: str, holder: str, older_than: timedelta) -> bool:
        """Let bd judge the lease once more, by its own clock, for this issue and this holder alone."""
        await self._require_issue(issue)
        scope = (f"--id={issue}", f"--assignee={holder}", f"--older-than={older_than.total_seconds():.0f}s")
        self._read.pop(issue, None)
        return parse(schema.Reclaimed, await self._bd.call("reclaim", *scope, "--json")).count > 0

    async def relabel(self, issue: str, add: tuple[str, ...], remove: tuple[str, ...]) -> None:
        """Change the labels in one process."""
        if add or remove:
            wanted = _Wanted(labels=add, without=remove)
            await self._write(issue, wanted, wanted.shown_by)

    async def _write(self, issue: str, wanted: _Wanted, landed: Callable[[Issue], bool], *flags: str) -> Seen:
        """Update an issue, and find out what became of it where bd's answer does not show it."""
        before = await self._require_issue(issue)
        add = [f"--add-label={csv(label)}" for label in sorted(set(wanted.labels))]
        remove = [f"--remove-label={csv(label)}" for label in sorted(set(wanted.without))]

        async def write() -> bool:
            for row in await self._bd.rows_of_one(schema.IssueRow.read, "update", issue, *flags, *add, *remove):
                answer = schema.make_snapshot(row)
                self._read.pop(before.issue.id, None)
                # only reads show what it lacks
                view = replace(answer.issue, blocked_by=before.issue.blocked_by, comments=before.issue.comments)
                after = Seen(view, replace(answer.text, dependencies=before.text.dependencies))
                if row.id == issue and wanted.shown_by(after.issue):
                    self._read[issue] = after
                    return True
            return False

        async def probe() -> bool:
            seen = await self.issue(issue)
            return seen is not None and landed(seen.issue)

        await self._write_and_probe(issue, "write of", write, probe)
        return self._read[issue]

    async def _write_and_probe(self, issue: str, what: str, write: _Step, probe: _Step, *, new: bool = False) -> None:
        """Write, and probe where bd's answer does not show it; raises what went wrong where it did not land."""
        trouble: TrackerError = TrackerUnavailable(f"bd's answer to the {what} {issue} does not show it")
        try:
            if await write():
                return
        except NothingWritten:
            raise
        except UnknownIssue as error:
            if new or await self.issue(issue) is None:
                raise
            raise TrackerUnavailable(f"{error}; but there is one") from error
        except (AlreadyThere, TrackerUnavailable) as error:
            trouble = error
        try:
            landed = await probe()
        except TrackerError as error:
            raise TrackerUnavailable(f"{trouble}; its fate is unknown: {error}", unknown=True) from error
        if not landed:
            raise trouble

    async def _require_issue(self, issue: str) -> Seen:
        seen = self._read.get(issue) or await self.issue(issue)
        if seen is None:
            raise TrackerRefused(f"there is no issue {clean(issue)!r}")
        return seen

    async def comment(self, issue: str, text: str, marker: str) -> None:
        """Post the comment by standard input, where no line of it can be taken for a flag (facts/beads.md 4)."""
        seen = await self._require_issue(issue)

        async def write() -> bool:
            call = self._bd.call("comment", issue, "--stdin", "--json", stdin=f"{text}\n{marker}")
            row = parse(schema.CommentRow, await call)
            posted = row.issue_id == issue and row.text.rstrip("\n").endswith(clean(marker))
            if posted:
                self._read[issue] = replace(seen, issue=replace(seen.issue, comments=seen.issue.comments + 1))
            return posted

        await self._write_and_probe(issue, "comment on", write, partial(self.commented, issue, marker))

    async def create(self, creation: Creation) -> None:
        """Create everything in one process and one transaction, a parked one included."""
        new, stamp = creation.new, creation.stamp
        if not ID.fullmatch(creation.id) or not ID.fullmatch(creation.discovered_from):
            raise TrackerRefused(f"{clean(creation.id)!r} or {clean(creation.discovered_from)!r} is no id")
        await self._require_issue(creation.discovered_from)
        flags = [
            f"--id={creation.id}",
            f"--title={new.title}",
            f"--type={new.type}",
            f"--priority={new.priority}",
            f"--deps=discovered-from:{creation.discovered_from}",
            f"--metadata={schema.stamp_json(stamp)}",
            *([f"--labels={','.join(map(csv, creation.labels))}"] if creation.labels else []),
            *(["--status=blocked"] if creation.parked else []),
            *(["--stdin"] if new.description else []),
        ]
        wanted = _Wanted(stamp, "blocked" if creation.parked else "open", labels=creation.labels)

        async def write() -> bool:
            row = parse(schema.IssueRow, await self._bd.call("create", *flags, "--json", stdin=new.description or None))
            return row.id == creation.id and wanted.shown_by(schema.make_snapshot(row).issue)

        async def probe() -> bool:
            seen = await self.issue(creation.id)
            there = None if seen is None else seen.issue.stamp
            return there is not None and (there.instance, there.run) == (stamp.instance, stamp.run)

        await self._write_and_probe(creation.id, "creation of", write, probe, new=True)

    # --- hints ---

    async def hints(self) -> AsyncIterator[None]:
        """Follow the events journal where it is on, else watch the store's manifest."""
        where, has_journal = self._found or await self._find()
        if has_journal:
            self._readers.append(journal := EventFeed(self._bd))
            changes = journal.changes()
        else:
            manifest = Manifest(Path(where.database_path or where.path))
            self._bd.around_writes = manifest.before_write, manifest.after_write
            changes = manifest.changes(self._bd)
        async with aclosing(changes):
            async for _ in changes:
                yield

    async def aclose(self) -> None:
        """End the readers of the journal; calls that are under way end with whoever made them."""
        while self._readers:
            await self._readers.pop().aclose()


def csv(label: str) -> str:
    """Quote a label that bd would split or refuse: its label flags are read as lines of CSV."""
    return '"' + label.replace('"', '""') + '"' if any(mark in label for mark in ',"\n\r') else label
