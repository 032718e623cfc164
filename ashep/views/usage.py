"""Usage: `ashep usage`, tokens, cost and runs by provider, issue, phase, agent or day.

A run's figures are those of its own prompts' turns, so that a session that several runs share is counted once.
"""

from ashep.views import Data, Database

KINDS = ("provider", "issue", "phase", "agent", "day")
"""By what it can be told apart."""

_OVER = "coalesce(ended_at, planned_at)"
"""When a run counts: at its end; one that is under way when it was planned."""

_KEYS = {"day": f"substr({_OVER}, 1, 10)"}
"""What is a column of another name: a day is UTC's, as budgets have it."""


def usage(database: Database | None, by: str, since: str | None) -> Data:
    """Give what runs used, those that ended since a time (as the database writes times) and those under way.

    A run that was withdrawn before it began is none. The most expensive comes first; days come in their order.
    """
    none: Data = {"by": by, "since": since, "rows": [], "total": {"runs": 0, "tokens": 0, "cost": 0.0}}
    if database is None:
        return none
    query = f"SELECT {_KEYS.get(by, by)} AS name, count(*) AS runs, sum(tokens) AS tokens, sum(cost) AS cost FROM runs"
    query += " WHERE state != 'withdrawn' AND (ended_at IS NULL OR ended_at >= ?) GROUP BY 1"
    rows: list[Data] = [dict(row) for row in database.execute(query, [since or ""])]
    total: Data = {key: sum(row[key] for row in rows) for key in ("runs", "tokens", "cost")}
    for row in (*rows, total):
        row["cost"] = round(float(row["cost"]), 9)
    by_name = by == "day"
    rows.sort(key=lambda row: row["name"] if by_name else (-row["cost"], -row["tokens"], row["name"] or ""))
    return none | {"rows": rows, "total": total}


def columns(told: Data) -> tuple[str, ...]:
    """Give the heads of the table."""
    return (told["by"].upper(), "RUNS", "TOKENS", "COST")


def table(told: Data) -> list[tuple[str, ...]]:
    """Give the rows of the table, the total last."""
    if not told["rows"]:
        return []
    return [_row(row["name"] or "unknown", row) for row in told["rows"]] + [_row("total", told["total"])]


def _row(name: str, row: Data) -> tuple[str, ...]:
    return (name, str(row["runs"]), str(row["tokens"]), money(row["cost"]))


def money(cost: float) -> str:
    """Write a cost, in the provider's currency, with as many places as small amounts need."""
    return f"{cost:.2f}" if cost >= 1 or not cost else f"{cost:.4f}"
