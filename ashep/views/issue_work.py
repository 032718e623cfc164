"""Work of an issue as a person judges it: between which commits the change lies, and what agents say of it."""

from __future__ import annotations  # the types bring pydantic along, for which no command that reads has time

import json
from typing import TYPE_CHECKING

from ashep.views import Data, Database, read_facts, runs

if TYPE_CHECKING:
    from ashep.views import json_types

MOST = 30
"""Runs whose summaries are given, the last ones."""

NO_COMMIT = "No agent has left a commit yet."
"""Why there is no sum of work that nobody has begun."""

_TYPES = ("TreePrepared", "TreeSealed", "TreeSeen", "WorkIntegrated")


def ends(database: Database | None, issue: str) -> tuple[str, str] | str | None:
    """Say between which commits the sum of an issue's work lies, or why there is none; None: nothing is known of it.

    Once the work is on the newest base, that is what lands, or has landed. Before, it is what the branch holds. In the
    user's own work tree there is no sum where others committed between the issue's commits.
    """
    if database is None or not runs.knows(database, issue):
        return None
    base, head, start = None, None, None
    for fact in read_facts(database, _TYPES, "issue = ?", issue):
        body = fact["body"]
        match fact["type"]:
            case "TreePrepared":
                base, head = body["base"], body["head"]
            case "TreeSealed":
                head = body["head"]
            case "WorkIntegrated":
                base, head = body["base"], body["commit"]
            case "TreeSeen" if body.get("moment") == "before":
                start = body["tree"].get("head")
                base = base or start
            case "TreeSeen" if body.get("moment") == "after" and body.get("commits"):
                if head not in (None, start):
                    return "Others committed between its runs: the page of each run shows what that run changed."
                head = body["tree"].get("head")
            case _:
                pass
    return (base, head) if base and head and base != head else NO_COMMIT


def summaries(database: Database | None, issue: str) -> list[json_types.RunReportJson] | None:
    """Give what the agents of an issue say they did, or found; the newest first. None: nothing is known of it."""
    if database is None or not runs.knows(database, issue):
        return None
    query = "SELECT body FROM runs WHERE issue = ? ORDER BY trace DESC LIMIT ?"
    rows: list[Data] = [json.loads(row["body"]) for row in database.execute(query, [issue, MOST])]
    return [
        {
            "run": row["run"], "phase": row["phase"], "agent": row["agent"], "ended_at": row["ended_at"],
            "result": outcome["verdict"] or outcome["result"], "summary": outcome["summary"],
        }
        for row in rows
        if (outcome := row["outcome"])
    ]  # fmt: skip
