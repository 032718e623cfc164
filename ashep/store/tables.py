"""Tables, and the rows that are made of entries, runs and issues: pure functions of what they are given."""

import json
from collections import Counter
from dataclasses import asdict
from typing import Any

from sqlalchemy import Table
from sqlmodel import Field, SQLModel

from ashep.core.analysis.account import account
from ashep.core.analysis.ahead import ways
from ashep.core.facts.commands import Command, IntegrateWork, MoveBase, OpenPullRequest, VerifyWork
from ashep.core.facts.records import Entry, body_text, form_of, format_time
from ashep.core.facts.resources import JournalBegun
from ashep.core.facts.vocabulary import DECISIONS
from ashep.core.policy.kinds import OPENCODE
from ashep.core.resources.budgets import Gauge, of_all
from ashep.core.resources.notices import targets
from ashep.core.runs.record import RunRecord, run_of
from ashep.core.runs.requests import asked_now, question_of
from ashep.core.state.delivery import Landing
from ashep.core.state.flow import Flow
from ashep.core.state.holds import NO_PROVIDER
from ashep.core.state.world import World

FORM = 6
"""The version of the tables."""

Row = dict[str, Any]


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

_NOTHING = frozenset[str]()


def fact_row(entry: Entry) -> Row:
    """Make the row of an entry."""
    body = entry.body
    kind = "command" if isinstance(body, Command) else "decision" if isinstance(body, DECISIONS) else "fact"
    return {
        "seq": entry.seq, "at": format_time(entry.at), "kind": kind, "type": type(body).__name__,
        "body": body_text(entry, _NOBODYS_BUSINESS if isinstance(body, JournalBegun) else _NOTHING),
        "issue": getattr(body, "issue", None), "run": run_of(entry),
    }  # fmt: skip


def run_row(record: RunRecord, ended: int | None) -> Row:
    """Make the row of a run; `ended` is the sequence number of its end."""
    names = {*Runs.model_fields} - {"result", "verdict", "summary", "ended", "body"}
    row = record.model_dump(include=names)
    for name in ("planned_at", "started_at", "ended_at"):
        row[name] = format_time(row[name]) if row[name] else None
    said = {name: getattr(record.outcome, name, None) for name in ("result", "verdict", "summary")}
    return row | said | {"ended": ended, "body": record.model_dump_json()}


def issue_row(world: World, issue: str) -> Row:
    """Make the row of an issue."""
    stands, flow = account(world, issue), world.flows[issue]
    view = flow.issue
    body = {
        "status": view.status, "type": view.type, "priority": view.priority, "labels": view.labels,
        "assignee": view.assignee, "blocked_by": view.blocked_by, "created_at": format_time(view.created_at),
        "stage": flow.stage, "cycle": flow.counters.cycle, "visit": flow.visit, "attempt": flow.attempt,
        "runs": flow.counters.runs, "question": _question(world, flow), "verification": verification(flow),
        "verification_log": looked_into(flow), "flags": flow.work.own.flags if flow.work.own is not None else (),
        "files": asdict(flow.work.own.files) if flow.work.own is not None and flow.work.own.files is not None else None,
        "landing": landing(flow), "tree": resting(flow),
        "deadline": format_time(flow.run.deadline) if flow.run is not None and flow.run.deadline else None,
    }  # fmt: skip
    return {
        "issue": issue, "title": stands.title, "state": stands.state, "code": stands.code, "reason": stands.reason,
        "since": format_time(stands.since) if stands.since else None, "phase": stands.phase, "policy": stands.policy,
        "run": stands.run, "due": format_time(stands.due) if stands.due else None, "body": _json(body),
    }  # fmt: skip


def _question(world: World, flow: Flow) -> Row | None:
    """The question that is open, of a phase, or of a run that waits in its session, and where answers to it lead."""
    question, pending = flow.question, asked_now(flow)
    if pending is not None and flow.run is not None:
        asks, asked = pending.request.asks, flow.run.asks.waits_since or flow.since
        one = asks[0] if len(asks) == 1 else None  # of several each wants a line
        told: Row = {"phase": flow.run.phase, "text": question_of(pending.request), "kind": "input"}
        told |= {
            "about": pending.request.kind,
            "options": one.options if one else (),
            "several": bool(one and one.several),
        }
    elif question is not None:
        asked, told = question.asked, {"phase": question.phase, "text": question.text, "kind": "approval"}
        told |= {"about": question.about, "options": (), "several": False}
    else:
        return None
    follows = [asdict(way) for way in ways(world, flow)]
    return told | {"asked": format_time(asked) if asked else None, "follows": follows}


def marks_json(world: World) -> str:
    """Give the limits of more than one issue that were passed, whose period is not over."""
    marks = [mark for mark in world.spending.marks if mark.until is None or mark.until > world.now]
    return _json(
        [
            {
                "scope": mark.scope, "name": mark.name, "unit": mark.unit, "used": mark.used, "limit": mark.limit,
                "reached": mark.hard, "until": format_time(mark.until) if mark.until else None,
            }
            for mark in marks
        ]
    )  # fmt: skip


def limits_json(world: World) -> str:
    """Give each limit, and how much is used of those of more than one issue."""
    budgets, rows = world.settings.budgets, list[Row]()
    gauges = [*of_all(world)]
    for scope, own in (("run", budgets.run), ("issue", budgets.issue)):
        gauges += [
            Gauge(scope, "", unit, 0, limit) for unit, limit in (("tokens", own.tokens), ("cost", own.cost)) if limit
        ]
    if budgets.runs_per_hour is not None:
        gauges.append(Gauge("runs_per_hour", "", "runs", 0, budgets.runs_per_hour))
    for one in gauges:
        used, until = one.used if one.scope not in ("run", "issue") else None, one.until and format_time(one.until)
        rows.append({"scope": one.scope, "name": one.name, "unit": one.unit, "used": used, "limit": one.limit,
                     "warn_at": budgets.warn_at * one.limit, "until": until})  # fmt: skip
    return _json(rows)


def notices_json(world: World) -> str:
    """Give the targets of `notify` that were not told something."""
    known = targets(world.settings.notify)
    return _json(
        [
            {
                "target": route.target, "error": route.error, "failures": route.tries, "given_up": route.given_up,
                "since": format_time(route.since) if route.since else None,
                "waiting": len(world.notices.of(route.target)),
                "due": format_time(route.after) if route.after else None,
            }
            for route in sorted(world.notices.routes, key=lambda one: one.target)
            if route.error and route.target in known
        ]
    )  # fmt: skip


def edit_json(world: World) -> str:
    """Give the last edit of the user's files where it cannot be used, else null."""
    refused = world.files.refused
    if refused is None:
        return "null"
    return _json({"since": format_time(refused.since), "problems": refused.problems, "more": refused.more})


def runners_json(world: World) -> str:
    """Give what is known of each runner that was looked at, OpenCode's first; null before one was."""
    names = sorted(world.seen, key=lambda name: (name != OPENCODE, name))
    return _json([_of_runner(world, name) for name in names]) if names else "null"


def _of_runner(world: World, name: str) -> dict[str, Any]:
    known, seen = world.servers[name], world.seen[name]
    recycling, since = known.recycling, known.since if seen.state == "up" else known.away
    return {
        "runner": name, "state": seen.state, "detail": seen.detail if seen.state != "up" else "",
        "since": format_time(since) if since else None, "failures": known.failures,
        "start_after": format_time(known.start_after) if known.start_after else None,
        "recycling": recycling.why if recycling else None, "replaced": seen.replaced,
        "tracker_replaced": world.tracker.replaced if world.tracker else "",
    }  # fmt: skip


def outages_json(world: World) -> str:
    """Give the providers that take nothing, each with how many issues wait for it."""
    if not world.outages:
        return "[]"
    flows = (world.flows[issue] for issue in world.indexes.unclosed)
    waiting = Counter(flow.held_by for flow in flows if flow.code in NO_PROVIDER)
    return _json(
        [
            {
                "provider": one.provider, "state": one.kind, "why": one.why, "since": format_time(one.since),
                "until": format_time(one.until) if one.until else None, "tried": one.tried_since is not None,
                "waiting": waiting[one.provider],
            }
            for one in world.outages
        ]
    )  # fmt: skip


def entry_data(row: Row) -> dict[str, Any]:
    """Give a row of `facts` as the record that it was made of, for `ashep.core.facts.records.from_json`."""
    head = {"v": form_of(row["type"]), "seq": row["seq"], "at": row["at"], "type": row["type"]}
    return head | json.loads(row["body"])


def _json(data: Row | list[Row]) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


_STEPS = ((IntegrateWork, "integrating"), (VerifyWork, "verifying"), (MoveBase, "moving"), (OpenPullRequest, "opening"))


def verification(flow: Flow) -> Row | None:
    """Give what was last found about the work; None: nothing, and nothing was to be."""
    evidence = flow.work.evidence
    if evidence is None:
        closed = flow.stage == "closed" and flow.code == "shepherd"
        nothing: Row = {"commit": None, "tree": None, "changed": None, "isolated": None, "checks": (), "log": None}
        return {"status": "unverified", **nothing, "waived": flow.work.waived} if closed else None
    checks = [
        {
            "check_id": one.check_id, "status": one.status, "message": one.message, "duration_ms": one.duration_ms,
            "proves_nothing": one.proves_nothing,
        }
        for one in evidence.results
    ]  # fmt: skip
    return {
        "status": evidence.status, "commit": evidence.commit, "tree": evidence.tree, "changed": evidence.changed,
        "isolated": evidence.isolated, "checks": checks, "log": evidence.log or None, "waived": flow.work.waived,
    }  # fmt: skip


def looked_into(flow: Flow) -> list[Row]:
    """Give the verifications of the work, the oldest first."""
    return [{**asdict(one), "at": format_time(one.at)} for one in flow.work.proofs]


def landing(flow: Flow) -> Row | None:
    """Give how far the work is on its way to the base; None: it is not, or not yet."""
    if flow.work.landing is not None and not flow.work.landing.landed:
        onto, due = flow.work.landing.onto or flow.work.landing.into or None, flow.work.landing.due
        commit = (
            flow.work.pull.head if flow.work.pull is not None and flow.work.landing.asked else flow.work.landing.commit
        )
        made = {"onto": onto, "commit": commit or None, "due": format_time(due) if due else None}
        return {"state": _state(flow, flow.work.landing), **made}
    if flow.work.landed is not None:
        return {"state": "landed", "onto": flow.work.landed[0], "commit": flow.work.landed[1], "due": None}
    if flow.stage == "closed" and flow.code == "shepherd" and flow.work.own is not None and flow.work.own.head:
        return {"state": "branch", "onto": None, "commit": flow.work.own.head, "due": None}
    return None


def _state(flow: Flow, landing: Landing) -> str:
    if landing.due is not None:
        return "waits"
    idle = "queued" if landing.onto else "pull_request" if landing.asked else "branch"
    return next((word for kind, word in _STEPS if any(isinstance(one, kind) for one in flow.open)), idle)


def resting(flow: Flow) -> Row | None:
    """Say when the tree of a closed issue goes by itself, and why it was kept before; None: it has none that does."""
    rest = flow.work.own.rest if flow.work.own is not None and flow.stage == "closed" else None
    if rest is None or flow.work.own is None:
        return None
    return {
        "branch": flow.work.own.branch,
        "due": format_time(rest.due) if rest.due is not None else None,
        "why": rest.why,
    }
