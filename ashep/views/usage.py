"""Usage: `ashep usage`, tokens, cost and runs by provider, issue, phase, agent or day.

A run's figures are those of its own prompts' turns, so that a session that several runs share is counted once.
"""

from __future__ import annotations  # the types bring pydantic along, for which no command that reads has time

import json
import sqlite3
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from ashep.views import Database
from ashep.views.lists import seq
from ashep.views.times import stamp

if TYPE_CHECKING:
    from ashep.store import row_types
    from ashep.views import json_types

MOST_HELD = 100
"""Issues that are named of those which a limit keeps."""

KINDS = ("provider", "issue", "phase", "agent", "day")
"""By what it can be told apart."""

_OVER = "coalesce(ended_at, planned_at)"
"""When a run counts: at its end; one that is under way when it was planned."""

_KEYS = {"day": f"substr({_OVER}, 1, 10)"}
"""What is a column of another name: a day is UTC's, as budgets have it."""


def usage(database: Database | None, by: str, since: str | None) -> json_types.UsageTableJson:
    """Give what runs used, those that ended since a time (as the database writes times) and those under way.

    A run that was withdrawn before it began is none. The most expensive comes first; days come in their order.
    """
    query = f"SELECT {_KEYS.get(by, by)} AS name, count(*) AS runs, sum(tokens) AS tokens, sum(cost) AS cost FROM runs"
    query += " WHERE state != 'withdrawn' AND (ended_at IS NULL OR ended_at >= ?) GROUP BY 1"
    found = database.execute(query, [since or ""]).fetchall() if database else []
    rows: list[json_types.UsageRowJson] = [{"name": row["name"], **_usage(row)} for row in found]
    by_name = by == "day"
    rows.sort(key=lambda row: (row["name"] or "",) if by_name else (-row["cost"], -row["tokens"], row["name"] or ""))
    total = {key: sum(row[key] for row in found) for key in ("runs", "tokens", "cost")}
    return {"by": by, "since": since, "rows": rows, "total": _usage(total)}


def _usage(row: sqlite3.Row | Mapping[str, Any]) -> json_types.UsedJson:
    return {"runs": row["runs"], "tokens": row["tokens"], "cost": round(float(row["cost"]), 9)}


def days(database: Database | None, since: str | None) -> json_types.DaysJson:
    """Give what runs used by day and provider, in the order of days: for charts."""
    names = f"{_KEYS['day']} AS day, provider AS name, count(*) AS runs, sum(tokens) AS tokens, sum(cost) AS cost"
    query = f"SELECT {names} FROM runs WHERE state != 'withdrawn' AND (ended_at IS NULL OR ended_at >= ?)"
    found = database.execute(f"{query} GROUP BY 1, 2 ORDER BY 1, 2", [since or ""]) if database else ()
    return {"seq": seq(database), "rows": [{"day": row["day"], "name": row["name"], **_usage(row)} for row in found]}


_HOLDS = {"budget": "day", "budget_provider": "provider", "budget_total": "total", "runs_per_hour": "runs_per_hour"}
"""By the code of an issue that waits: which limit keeps it."""


def budgets(database: Database | None, now: datetime) -> json_types.BudgetsJson:
    """Give each limit as the daemon has it, what is used of it, and the issues that it keeps.

    What a run or an issue has used is its own: of these limits only what they keep is told.
    """
    row = database.execute("SELECT value FROM meta WHERE key = 'limits'").fetchone() if database else None
    if database is None or row is None:
        return {"seq": seq(database), "limits": []}
    value = database.execute("SELECT value FROM meta WHERE key = 'budgets'").fetchone()["value"]
    marks: list[row_types.BudgetJson] = json.loads(value)
    query = f"SELECT issue, state, code, reason FROM issues WHERE code IN ({', '.join('?' * len(_HOLDS))})"
    held = database.execute(f"{query} ORDER BY issue", [*_HOLDS]).fetchall()
    hour = "SELECT count(*) AS many FROM runs WHERE planned_at > ?"
    hourly = [mark for mark in marks if mark["scope"] == "runs_per_hour"]
    limits: list[json_types.LimitJson] = json.loads(row["value"])
    for limit in limits:
        if limit["until"] is not None and limit["until"] <= stamp(now):  # of a day that is over
            limit.update({"name": limit["name"].partition(" on ")[0], "used": 0, "until": None})
        elif limit["scope"] == "runs_per_hour":
            limit["used"] = database.execute(hour, [stamp(now - timedelta(hours=1))]).fetchone()["many"]
            ends = (mark["until"] or "" for mark in hourly if mark["limit"] == limit["limit"])
            limit["until"] = next((end for end in ends if end > stamp(now)), None)
        kept = [issue["issue"] for issue in held if _keeps(limit, issue)]
        limit["reached"] = limit["used"] is not None and limit["used"] >= limit["limit"]
        limit["holds"], limit["held"] = kept[:MOST_HELD], len(kept)
    return {"seq": seq(database), "limits": limits}


def _keeps(limit: json_types.LimitJson, issue: sqlite3.Row) -> bool:
    if issue["state"] == "parked":
        return f"used up: the {limit['unit']} of {limit['scope']} " in issue["reason"]
    named = limit["scope"] != "provider" or limit["name"].partition(" on ")[0] in issue["reason"]
    full = limit["used"] is not None and limit["used"] >= limit["limit"]
    return _HOLDS[issue["code"]] == limit["scope"] and named and full


def columns(told: json_types.UsageTableJson) -> tuple[str, ...]:
    """Give the heads of the table."""
    return (told["by"].upper(), "RUNS", "TOKENS", "COST")


def table(told: json_types.UsageTableJson) -> list[tuple[str, ...]]:
    """Give the rows of the table, the total last."""
    if not told["rows"]:
        return []
    return [_row(row["name"] or "unknown", row) for row in told["rows"]] + [_row("total", told["total"])]


def _row(name: str, row: json_types.UsedJson) -> tuple[str, ...]:
    return (name, str(row["runs"]), str(row["tokens"]), money(row["cost"]))


def money(cost: float) -> str:
    """Write a cost as the page does; empty: there is none that anybody knows."""
    return f"${cost:,.2f}" if cost >= 0.01 else "<$0.01" if cost > 0 else ""
