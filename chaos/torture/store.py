"""A Beads database: what it holds, how bd 1.3.0 changes and shows it (facts/beads.md 4, 5, 6, 8, 9), and nothing else.

`run` takes bd's arguments and gives its exit code and output, at once and without lies; those are told by `bd`.
"""

import csv
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from ashep.adapters.system.programs import Finished

PREFIX = "t"
AGENT = "ashep-agent"
LEASE = timedelta(minutes=5)
"""facts/beads.md 6: a constant."""


class Refusal(Exception):
    """bd ends with this exit code; `failed` wants the message as an issue that could not be updated."""

    def __init__(self, message: str, code: int = 1, *, failed: bool = False) -> None:
        super().__init__(message)
        self.message, self.code, self.failed = message, code, failed


@dataclass(slots=True)
class Row:
    """An issue."""

    id: str
    title: str
    order: int
    created_at: datetime
    status: str = "open"
    type: str = "task"
    priority: int = 2
    assignee: str | None = None
    description: str = ""
    labels: set[str] = field(default_factory=set[str])
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    edges: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    comments: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    events: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    lease: datetime | None = None
    heartbeat: datetime | None = None
    by: str = ""
    """Who changed its status or assignee last."""

    @property
    def standing(self) -> tuple[str, str | None]:
        return self.status, self.assignee

    @property
    def stamp(self) -> dict[str, Any]:
        found = self.metadata.get("ashep")
        return found if isinstance(found, dict) else {}


def _time(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


class Store:
    """All issues, and what happened to them."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self.now = now
        self.rows: dict[str, Row] = {}
        self.damaged = False
        """Its data file is cut short: it says with exit 0 that there is nothing (facts/beads.md 8)."""
        self.numbers = 0
        self.changed: Callable[[str], None] = lambda actor: None
        self.touched: set[str] = set()
        """Issues to which somebody but ashep and its agents did more than to answer and comment."""
        self.moved: set[str] = set()
        """Issues to which agents did."""

    # --- people ---

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    def add(self, title: str, *, actor: str = "pat", blocked_by: tuple[str, ...] = (), **values: Any) -> str:
        number = self.number()
        row = Row(f"{PREFIX}-{number}", title, number, self.now(), by=actor, **values)
        row.edges = [(other, "blocks") for other in blocked_by]
        self.rows[row.id] = row
        self.changed(actor)
        return row.id

    def set(
        self, issue: str, actor: str, *, status: str | None = None, assignee: str | None = None,
        add: Iterable[str] = (), remove: Iterable[str] = (),
    ) -> None:  # fmt: skip
        """Change an issue as people do: without a guard; `assignee=""` clears it (facts/beads.md 6).

        What changes nothing is nobody's act: bd says that it closed what was closed, and writes no event.
        """
        row = self.rows[issue]
        before = row.standing
        moves = status is not None or assignee is not None
        if moves or any(not one.startswith("human:") for one in (*add, *remove)):
            (self.moved if actor == AGENT else self.touched).add(issue)
        if status is not None:
            row.status = status
            row.lease = row.lease if status == "in_progress" else None
        if assignee is not None:
            row.assignee = assignee or None
        if row.standing != before:
            row.by = actor
            fields = {"status": status, "assignee": assignee}
            value = json.dumps({name: one for name, one in fields.items() if one is not None})
            event = {"id": f"e{self.number()}", "issue_id": row.id, "event_type": "updated", "actor": actor}
            row.events.append(event | {"new_value": value, "created_at": _time(self.now())})
        self._relabel(row, actor, add, remove)
        self.changed(actor)

    def comment(self, issue: str, actor: str, text: str) -> dict[str, str]:
        row = self.rows[issue]
        made = {"id": f"c{self.number()}", "issue_id": issue, "author": actor, "text": text}
        row.comments.append(made | {"created_at": _time(self.now())})
        self.changed(actor)
        return row.comments[-1]

    def delete(self, issue: str, actor: str) -> None:
        self.touched.add(issue)
        del self.rows[issue]
        for row in self.rows.values():
            row.edges = [edge for edge in row.edges if edge[0] != issue]
        self.changed(actor)

    # --- what is ready ---

    def is_blocked(self, row: Row) -> bool:
        return any(kind == "blocks" and self.is_open(on) for on, kind in row.edges)

    def is_open(self, issue: str) -> bool:
        return issue in self.rows and self.rows[issue].status != "closed"

    def ready(self) -> list[Row]:
        """Open issues without an open blocker; an assignee does not hide them (facts/beads.md 5)."""
        rows = [row for row in self.rows.values() if row.status == "open" and not self.is_blocked(row)]
        return sorted(rows, key=lambda row: (row.priority, row.order))

    # --- bd ---

    def run(self, actor: str, arguments: tuple[str, ...], stdin: str | None = None) -> Finished:
        """Do what bd does with these arguments."""
        command, *rest = [argument for argument in arguments if argument != "--json"]
        try:
            answer = getattr(self, f"_{command.replace('-', '_')}")(actor, rest, stdin)
        except Refusal as refusal:
            return _refused(refusal)
        return Finished(0, json.dumps(answer, ensure_ascii=False).encode(), b"")

    def _version(self, actor: str, rest: list[str], stdin: str | None) -> object:
        return {"build": "dev", "schema_version": 1, "version": "1.3.0"}

    def _where(self, actor: str, rest: list[str], stdin: str | None) -> object:
        return {"database_path": "/p/.beads/embeddeddolt", "path": "/p/.beads", "prefix": PREFIX}

    def _config(self, actor: str, rest: list[str], stdin: str | None) -> object:
        value = "" if self.damaged else PREFIX
        return {"key": rest[1], "value": value if rest[1] == "issue_prefix" else "false"}

    def _list(self, actor: str, rest: list[str], stdin: str | None) -> object:
        if self.damaged:
            return []
        values = _flags(rest)
        statuses = values.get("status", [None])[0]
        wanted = set(statuses.split(",")) if statuses else None
        key = values.get("has-metadata-key", [None])[0]
        return [
            self._shown(row)
            for row in self.rows.values()
            if (row.status in wanted if wanted else row.status != "closed") and (key is None or key in row.metadata)
        ]

    def _ready(self, actor: str, rest: list[str], stdin: str | None) -> object:
        return [] if self.damaged else [self._shown(row) for row in self.ready()]

    def _show(self, actor: str, rest: list[str], stdin: str | None) -> object:
        row = self._row(rest[0])
        shown = self._shown(row)
        shown["dependencies"] = [self._shown(self.rows[on]) | {"dependency_type": kind} for on, kind in row.edges]
        return [shown | {"comments": row.comments, "revision": "1"}]

    def _history(self, actor: str, rest: list[str], stdin: str | None) -> object:
        row = self.rows.get(rest[0])
        return None if row is None or self.damaged else list(reversed(row.events))

    def _update(self, actor: str, rest: list[str], stdin: str | None) -> object:
        issue, values = rest[0], _flags(rest[1:])
        row = self._row(issue)
        claim = "claim" in values
        for name, standing in (("if-status", row.status), ("if-assignee", row.assignee or "")):
            if name in values and values[name][0] != standing:
                raise Refusal(f"guard mismatch: {name} is {standing}", 13, failed=True)
        if claim:
            if row.assignee not in (None, actor):
                raise Refusal(f"updating issue: issue already claimed by {row.assignee}", failed=True)
            if row.status != "open" and row.standing != ("in_progress", actor):
                raise Refusal(f"updating issue: issue not claimable: status {row.status}", failed=True)
        status = "in_progress" if claim else values.get("status", [row.status])[0]
        if status == "closed" and self.is_blocked(row):
            raise Refusal(f"cannot close {issue}: blocked by open issues")
        held = row.status == "in_progress" and row.assignee not in (None, actor)
        if held and "assignee" in values and "if-assignee" not in values and "force" not in values:
            raise Refusal(f"updating issue: {issue} is claimed by {row.assignee}", failed=True)
        self._write(row, actor, status, values, claim=claim)
        return [self._shown(row)]

    def _write(self, row: Row, actor: str, status: str, values: dict[str, list[str]], *, claim: bool) -> None:
        before = row.standing
        row.status = status
        row.assignee = actor if claim else values.get("assignee", [row.assignee or ""])[0] or None
        if claim and before != row.standing:
            row.lease = self.now() + LEASE
        if status != "in_progress":
            row.lease = None
        if before != row.standing:
            row.by = actor
        for text in values.get("metadata", []):
            row.metadata |= json.loads(text)
        add = [label for text in values.get("add-label", []) for label in next(csv.reader([text]))]
        remove = [label for text in values.get("remove-label", []) for label in next(csv.reader([text]))]
        self._relabel(row, actor, add, remove)
        self.changed(actor)

    def _heartbeat(self, actor: str, rest: list[str], stdin: str | None) -> object:
        row = self._row(rest[0])
        if row.assignee != actor:
            raise Refusal(f"issue already claimed by {row.assignee or 'nobody'}")
        if row.status != "in_progress":
            raise Refusal(f"issue not claimable: status {row.status}")
        row.lease, row.heartbeat = self.now() + LEASE, self.now()
        return {"id": row.id, "owner": actor, "status": "heartbeat"}

    def _reclaim(self, actor: str, rest: list[str], stdin: str | None) -> object:
        """Free what nobody keeps alive; the expiry alone frees nothing (facts/beads.md 6)."""
        older = _seconds(_flags(rest).get("older-than", ["10m"])[0])
        now, freed = self.now(), list[dict[str, str]]()
        for row in self.rows.values():
            if row.lease is not None and now - row.lease > older:
                freed.append({"id": row.id, "previous_owner": row.assignee or ""})
                row.status, row.assignee, row.lease, row.by = "open", None, None, actor
                self.touched.add(row.id)
        if freed:
            self.changed(actor)
        return {"count": len(freed), "reclaimed": freed or None}

    def _comment(self, actor: str, rest: list[str], stdin: str | None) -> object:
        self._row(rest[0])
        return self.comment(rest[0], actor, stdin or "")

    def _create(self, actor: str, rest: list[str], stdin: str | None) -> object:
        values = _flags(rest)
        issue = values["id"][0]
        if self.damaged:
            raise Refusal("database not initialized: issue_prefix config is missing")
        if issue in self.rows:
            raise Refusal(f"{issue} already exists")
        row = Row(issue, values["title"][0], self.number(), self.now(), by=actor)
        row.type, row.priority = values["type"][0], int(values["priority"][0])
        row.description, row.status = stdin or "", values.get("status", ["open"])[0]
        row.metadata = json.loads(values.get("metadata", ["{}"])[0])
        for edge in values.get("deps", []):
            kind, _, on = edge.partition(":")
            self._row(on)
            row.edges.append((on, kind))
        self.rows[issue] = row
        self._relabel(row, actor, [one for text in values.get("labels", []) for one in next(csv.reader([text]))], ())
        self.changed(actor)
        return self._shown(row)

    # --- inside ---

    def _row(self, issue: str) -> Row:
        if self.damaged or issue not in self.rows:
            raise Refusal(f'no issues found matching "{issue}"')
        return self.rows[issue]

    def _relabel(self, row: Row, actor: str, add: Iterable[str], remove: Iterable[str]) -> None:
        """Change labels; one that is already there leaves no event (facts/beads.md 9)."""
        after = (row.labels | set(add)) - set(remove)
        for kind, said, labels in (("added", "Added", after - row.labels), ("removed", "Removed", row.labels - after)):
            for label in sorted(labels):
                event = {"id": f"e{self.number()}", "issue_id": row.id, "event_type": f"label_{kind}", "actor": actor}
                row.events.append(event | {"comment": f"{said} label: {label}", "created_at": _time(self.now())})
        row.labels = after

    def _shown(self, row: Row) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "id": row.id, "title": row.title, "status": row.status, "issue_type": row.type, "priority": row.priority,
            "created_at": _time(row.created_at), "labels": sorted(row.labels), "description": row.description,
            "comment_count": len(row.comments),
            "dependencies": [{"issue_id": row.id, "depends_on_id": on, "type": kind} for on, kind in row.edges],
        }  # fmt: skip
        if row.metadata:
            shown["metadata"] = row.metadata
        if row.assignee:
            shown["assignee"] = row.assignee
        if row.lease:
            shown["lease_expires_at"] = _time(row.lease)
            shown["heartbeat_at"] = _time(row.heartbeat or row.lease - LEASE)
        return shown


def _seconds(text: str) -> timedelta:
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    return timedelta(seconds=float(text[:-1]) * units[text[-1]])


def _flags(rest: list[str]) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for argument in rest:
        name, _, value = argument.removeprefix("--").partition("=")
        values.setdefault(name, []).append(value)
    return values


def _refused(refusal: Refusal) -> Finished:
    """Say it as `update` does, on standard error, or as the others do, on standard output (facts/beads.md 8)."""
    if not refusal.failed:
        return Finished(refusal.code, json.dumps({"error": refusal.message}).encode(), b"")
    failed = {"error": refusal.message, "guard_mismatch": refusal.code == 13}
    problem = {"error": "1 of 1 issues failed to update", "failed": [failed]}
    return Finished(refusal.code, b"", f"Error: {refusal.message}\n{json.dumps(problem)}\n".encode())
