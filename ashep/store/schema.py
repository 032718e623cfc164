"""Tables, and the rows that are made of entries, runs and what is known of the daemon: pure functions."""

import json
from collections import Counter
from dataclasses import asdict
from typing import Any

from sqlalchemy import Table
from sqlmodel import Field, SQLModel

from ashep.core.facts.commands import Command
from ashep.core.facts.records import Entry, body_text, form_of, format_time
from ashep.core.facts.resources import JournalBegun
from ashep.core.facts.vocabulary import DECISIONS
from ashep.core.policy.runner_kinds import OPENCODE
from ashep.core.resources.budgets import BudgetUsage, Scope, Unit, of_all
from ashep.core.resources.notices import targets
from ashep.core.runs.run_record import RunRecord, run_of
from ashep.core.state.holds import NO_PROVIDER
from ashep.core.state.world import World
from ashep.store import row_types
from ashep.store.issue_row import Row, as_json, time_or_none


class Meta(SQLModel, table=True):
    """Of what the rest is a picture."""

    key: str = Field(primary_key=True)
    value: str


class Facts(SQLModel, table=True):
    """An entry of the journal."""

    seq: int = Field(primary_key=True)
    at: str
    kind: str
    type: str
    issue: str | None = Field(default=None, index=True)
    run: str | None = Field(default=None, index=True)
    body: str


class Runs(SQLModel, table=True):
    """A run."""

    run: str = Field(primary_key=True)
    issue: str = Field(index=True)
    phase: str
    visit: int
    attempt: int
    agent: str
    runner: str
    provider: str | None
    model: str | None
    capability: str
    access: str
    state: str = Field(index=True)
    planned_at: str
    started_at: str | None
    ended_at: str | None
    last_agent_message_at: str | None
    last_human_message_at: str | None
    session: str | None
    result: str | None
    verdict: str | None
    summary: str | None
    error: str | None
    tokens: int
    cost: float
    restarts: int
    trace: int = Field(index=True)
    ended: int | None = Field(index=True)
    body: str


class Issues(SQLModel, table=True):
    """An issue."""

    issue: str = Field(primary_key=True)
    title: str
    state: str = Field(index=True)
    code: str
    reason: str
    since: str | None
    phase: str | None
    policy: str | None
    run: str | None
    due: str | None
    body: str


META, FACTS, RUNS, ISSUES = (SQLModel.metadata.tables[name] for name in ("meta", "facts", "runs", "issues"))
ALL: tuple[Table, ...] = (META, FACTS, RUNS, ISSUES)

_NOBODYS_BUSINESS = frozenset({"secret"})  # what `body` leaves out of a `JournalBegun`


def fact_row(entry: Entry) -> Row:
    """Make the row of an entry."""
    body = entry.body
    kind = "command" if isinstance(body, Command) else "decision" if isinstance(body, DECISIONS) else "fact"
    return {
        "seq": entry.seq, "at": format_time(entry.at), "kind": kind, "type": type(body).__name__,
        "body": body_text(entry, _NOBODYS_BUSINESS if isinstance(body, JournalBegun) else frozenset()),
        "issue": getattr(body, "issue", None), "run": run_of(entry),
    }  # fmt: skip


def run_row(record: RunRecord, ended: int | None) -> Row:
    """Make the row of a run; `ended` is the sequence number of its end."""
    names = {*Runs.model_fields} - {"result", "verdict", "summary", "ended", "body"}
    row = record.model_dump(include=names)
    for name in (name for name in names if name.endswith("_at")):
        row[name] = time_or_none(row[name])
    outcome = {name: getattr(record.outcome, name, None) for name in ("result", "verdict", "summary")}
    return row | outcome | {"ended": ended, "body": record.model_dump_json()}


def marks_json(world: World) -> str:
    """Give the limits of more than one issue that were passed, whose period is not over."""
    marks: list[row_types.BudgetJson] = [
        {
            "scope": mark.scope, "name": mark.name, "unit": mark.unit, "used": mark.used, "limit": mark.limit,
            "reached": mark.hard, "until": time_or_none(mark.until),
        }
        for mark in world.spending.marks
        if mark.until is None or mark.until > world.now
    ]  # fmt: skip
    return as_json(marks)


def limits_json(world: World) -> str:
    """Give each limit, and how much is used of those of more than one issue."""
    budgets, gauges = world.settings.budgets, [*of_all(world)]
    limits: tuple[tuple[Scope, Unit, float | None], ...] = (
        ("run", "tokens", budgets.run.tokens), ("run", "cost", budgets.run.cost),
        ("issue", "tokens", budgets.issue.tokens), ("issue", "cost", budgets.issue.cost),
    )  # fmt: skip
    gauges += [BudgetUsage(scope, "", unit, 0, limit) for scope, unit, limit in limits if limit]
    if budgets.runs_per_hour is not None:
        gauges.append(BudgetUsage("runs_per_hour", "", "runs", 0, budgets.runs_per_hour))
    rows: list[row_types.BudgetLimitJson] = [
        {
            "scope": gauge.scope, "name": gauge.name, "unit": gauge.unit,
            "used": gauge.used if gauge.scope not in ("run", "issue") else None, "limit": gauge.limit,
            "warn_at": budgets.warn_at * gauge.limit, "until": time_or_none(gauge.until),
        }
        for gauge in gauges
    ]  # fmt: skip
    return as_json(rows)


def notices_json(world: World) -> str:
    """Give the targets of `notify` that were not told something."""
    names = targets(world.settings.notify)
    notices: list[row_types.NoticeJson] = [
        {
            "target": route.target, "error": route.error, "failures": route.tries, "given_up": route.given_up,
            "since": time_or_none(route.since), "waiting": len(world.notices.list_unsent(route.target)),
            "due": time_or_none(route.after),
        }
        for route in sorted(world.notices.routes, key=lambda route: route.target)
        if route.error and route.target in names
    ]  # fmt: skip
    return as_json(notices)


def edit_json(world: World) -> str:
    """Give the last edit of the user's files where it cannot be used, else null."""
    refused = world.files.refused
    if refused is None:
        return "null"
    edit: row_types.RefusedJson = {
        "since": format_time(refused.since), "problems": [*refused.problems], "more": refused.more,
    }  # fmt: skip
    return as_json(edit)


def repository_json(world: World) -> str:
    """Give what was seen of the repository since the start, else null."""
    return "null" if world.repository is None else as_json(row_types.RepositorySeenJson(**asdict(world.repository)))


def runners_json(world: World) -> str:
    """Give what is known of each runner that was looked at, OpenCode's first; null before one was."""
    names = sorted(world.seen, key=lambda name: (name != OPENCODE, name))
    rows: list[row_types.RunnerStandsJson] = [
        {
            "runner": name, "state": sight.state, "detail": sight.detail if sight.state != "up" else "",
            "since": time_or_none(server.since if sight.state == "up" else server.away), "failures": server.failures,
            "start_after": time_or_none(server.start_after),
            "recycling": server.recycling.why if server.recycling else None, "replaced": sight.replaced,
            "tracker_replaced": world.tracker.replaced if world.tracker else "",
        }
        for name, server, sight in ((name, world.servers[name], world.seen[name]) for name in names)
    ]  # fmt: skip
    return as_json(rows) if rows else "null"


def outages_json(world: World) -> str:
    """Give the providers that take nothing, each with how many issues wait for it."""
    if not world.outages:
        return "[]"
    flows = (world.flows[issue] for issue in world.indexes.unclosed)
    waiting = Counter(flow.held_by for flow in flows if flow.code in NO_PROVIDER)
    outages: list[row_types.OutageJson] = [
        {
            "provider": outage.provider, "state": outage.kind, "why": outage.why,
            "since": format_time(outage.since), "until": time_or_none(outage.until),
            "tried": outage.tried_since is not None, "waiting": waiting[outage.provider],
        }
        for outage in world.outages
    ]  # fmt: skip
    return as_json(outages)


def sources_json(world: World) -> str:
    """Give the sources of issues that do not answer, each with its reason."""
    sources: list[row_types.SourceTroubleJson] = [
        {"source": source, "reason": reason} for source, reason in sorted(world.trouble.items())
    ]
    return as_json(sources)


def quotas_json(world: World) -> str:
    """Give how much of its quota each login has used, as its provider said last."""
    quotas: list[row_types.QuotaJson] = [
        {
            "runner": quota.runner, "provider": quota.quota.provider, "login": quota.quota.login,
            "status": quota.quota.status, "window": quota.quota.window, "seen": format_time(quota.at),
            "resets": time_or_none(quota.quota.resets),
            "windows": [
                {
                    "name": window.name, "used": window.used, "resets": format_time(window.resets),
                    "status": window.status,
                }
                for window in quota.quota.windows
            ],
        }
        for quota in world.quotas
    ]  # fmt: skip
    return as_json(quotas)


def entry_data(row: Row) -> dict[str, Any]:
    """Give a row of `facts` as the record that it was made of, for `ashep.core.facts.records.from_json`."""
    head = {"v": form_of(row["type"]), "seq": row["seq"], "at": row["at"], "type": row["type"]}
    return head | json.loads(row["body"])
