"""Lists that are read page by page, and one issue's runs as a graph: what a page or a program asks for over HTTP.

A page of a list goes on behind the last entry of the one before, by what it is ordered by: so an entry that comes in
meanwhile moves none, and the thousandth page costs what the first one does.
"""

from __future__ import annotations  # the types bring pydantic along, for which no command that reads has time

import json
import sqlite3
from collections import Counter
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from ashep.core.facts.delivery import FAILING
from ashep.views import Data, Database, read_facts, status
from ashep.views.runs import knows

if TYPE_CHECKING:
    from ashep.views import json_types

MOST = 500
"""Entries of a page, at most."""

_LONGEST = 7 * 24 * 3600.0  # seconds that a bar of the timeline shows of a run whose end is not known


def seq(database: Database | None) -> int:
    """Give the number of the last record that the picture is drawn of; 0: there is none."""
    return status.read_model_position(database)[1]


def issues(
    database: Database | None,
    *,
    state: str | None = None,
    phase: str | None = None,
    policy: str | None = None,
    text: str = "",
    after: str | None = None,
    limit: int = 100,
) -> json_types.IssuesJson:
    """Give issues, those whose standing changed last first; each word of `text` is in an id or a title, whatever
    its case.

    `after` is what the page before gave as `next`. Raises `ValueError` where it is nothing of the kind.
    """
    if database is None:
        return {"seq": 0, "total": 0, "next": None, "items": []}
    where, values = list[str](), list[Any]()
    for column, wanted in (("state", state), ("phase", phase), ("policy", policy)):
        if wanted is not None:
            where.append(f"{column} = ?")
            values.append(wanted)
    for word in text.split():
        where.append("(issue LIKE ? ESCAPE '!' OR title LIKE ? ESCAPE '!')")
        values += [_pattern(word)] * 2
    kept = f" WHERE {' AND '.join(where)}" if where else ""
    total = int(database.execute(f"SELECT count(*) FROM issues{kept}", values).fetchone()[0])
    if after is not None:
        since, mark, issue = after.partition("|")
        if not mark:
            raise ValueError("it is no `next` of a page")
        kept += f"{' AND' if where else ' WHERE'} (coalesce(since, ''), issue) < (?, ?)"
        values += [since, issue]
    query = f"SELECT * FROM issues{kept} ORDER BY coalesce(since, '') DESC, issue DESC LIMIT ?"
    rows = database.execute(query, [*values, limit + 1]).fetchall()
    last = f"{rows[limit - 1]['since'] or ''}|{rows[limit - 1]['issue']}" if len(rows) > limit else None
    return {"seq": seq(database), "total": total, "next": last, "items": [status.entry(row) for row in rows[:limit]]}


def _pattern(word: str) -> str:
    return f"%{''.join(f'!{one}' if one in '!%_' else one for one in word)}%"


def runs(
    database: Database | None,
    *,
    issue: str | None = None,
    state: str | None = None,
    agent: str | None = None,
    text: str = "",
    before: int | None = None,
    limit: int = 100,
) -> json_types.RunsJson:
    """Give runs, the newest first, each as runs.jsonl has it; each word of `text` is in its id; `before`: the `next`
    of the page before.

    `states` and `agents`: how many runs there would be of each, were it asked for in place of what is.
    """
    if database is None:
        return {"seq": 0, "total": 0, "states": {}, "agents": {}, "next": None, "items": []}
    counts: dict[str, Counter[str]] = {"states": Counter(), "agents": Counter()}
    clauses = ["issue = ?"] if issue is not None else []
    values: list[Any] = [issue] if issue is not None else []
    for word in text.split():
        clauses.append("run LIKE ? ESCAPE '!'")
        values.append(_pattern(word))
    narrowed = f" WHERE {' AND '.join(clauses)}" if clauses else ""
    for row in database.execute(
        f"SELECT state, agent, count(*) AS n FROM runs{narrowed} GROUP BY state, agent", values
    ):
        counts["states"][row["state"]] += row["n"] if agent in (None, row["agent"]) else 0
        counts["agents"][row["agent"]] += row["n"] if state in (None, row["state"]) else 0
    total = counts["states"].total() if state is None else counts["states"][state]
    known = {"state": state, "agent": agent}
    clauses += [f"{column} = ?" for column, wanted in known.items() if wanted is not None]
    values += [wanted for wanted in known.values() if wanted is not None]
    if before is not None:
        clauses.append("trace < ?")
        values.append(before)
    narrowed = f" WHERE {' AND '.join(clauses)}" if clauses else ""
    query = f"SELECT trace, body FROM runs{narrowed} ORDER BY trace DESC LIMIT ?"
    rows = database.execute(query, [*values, limit + 1]).fetchall()
    last = rows[limit - 1]["trace"] if len(rows) > limit else None
    items = [json.loads(row["body"]) for row in rows[:limit]]
    return {
        "seq": seq(database), "total": total, "states": counts["states"], "agents": counts["agents"], "next": last,
        "items": items,
    }  # fmt: skip


# --- one issue's runs ---------------------------------------------------------------------------------------------

_LAST = f"seq DESC LIMIT {MOST}"
_ASKED = ("PersonAsked", "PersonAnswered", "IssueTaken", "IssueAdopted")


def course(database: Database | None, issue: str) -> json_types.CourseJson | None:
    """Give an issue's runs, what people were asked between them, and what led from each to the next.

    Questions and answers are steps like runs: without them a review that approves seems to lead back to the work. So
    are checks that fail and landings. None: nothing is known of the issue. Of too many steps the last ones.
    """
    if database is None or not knows(database, issue):
        return None
    query = "SELECT body FROM runs WHERE issue = ? ORDER BY trace DESC LIMIT ?"
    run_rows: list[Data] = [json.loads(row["body"]) for row in database.execute(query, [issue, MOST])][::-1]
    asked, starts = list["json_types.AskedJson"](), list[int]()
    for row in reversed([*read_facts(database, _ASKED, "issue = ?", issue, order=_LAST)]):
        body = row["body"]
        if row["type"] == "PersonAsked":
            asked.append({
                "seq": row["seq"], "at": row["at"], "phase": body["phase"], "question": body["question"],
                "answer": None, "by": None, "answered": None,
            })  # fmt: skip
        elif row["type"] == "PersonAnswered":
            if asked and asked[-1]["answer"] is None:
                asked[-1].update({"answer": body["answer"], "by": body["actor"], "answered": row["at"]})
        else:
            starts.append(row["seq"])
    delivery = _read_delivery(database, issue)
    edges = _edges(run_rows, asked, delivery, starts)
    return {"seq": seq(database), "runs": run_rows, "asked": asked, "delivery": delivery, "edges": edges}


_DELIVERY = ("WorkVerified", "WorkConflicted", "LandingRefused", "WorkLanded", "PullRequestOpened", "PullRequestMerged")


def _read_delivery(database: Database, issue: str) -> list[json_types.DeliveryStepJson]:
    """Give checks that failed after a run, and the steps of the landing; what repeats itself once."""
    steps = list["json_types.DeliveryStepJson"]()
    for row in reversed([*read_facts(database, _DELIVERY, "issue = ?", issue, order=_LAST)]):
        body = row["body"]
        failures = [
            result["check_id"]
            for result in body.get("results", ())
            if result["status"] in FAILING and not (body.get("ignore") and result.get("on_base"))
        ]
        match row["type"]:
            case "WorkVerified" if body.get("run") and not failures:
                continue
            case "WorkVerified":
                result = "checks failed" if failures else "checks passed"
                detail = ", ".join(failures)
            case "WorkConflicted":
                result, detail = "does not fit the base", ", ".join(body["paths"])
            case "LandingRefused":
                result, detail = "refused", body["why"]
            case "WorkLanded":
                result, detail = "landed", f"{body['base_branch']} {body['commit'][:10]}"
            case _:
                result = "pull request opened" if row["type"] == "PullRequestOpened" else "pull request merged"
                detail = f"#{body['number']}"
        step: json_types.DeliveryStepJson = {
            "seq": row["seq"], "at": row["at"], "phase": "checks" if body.get("run") else "landing",
            "passed": not failures and row["type"] not in ("WorkConflicted", "LandingRefused"),
            "result": result, "detail": detail,
        }  # fmt: skip
        if not steps or (steps[-1]["result"], steps[-1]["detail"]) != (result, detail):
            steps.append(step)
    return steps


def _edges(
    runs: list[Data],
    asked: list[json_types.AskedJson],
    delivery: list[json_types.DeliveryStepJson],
    starts: list[int],
) -> list[json_types.StepJson]:
    """What led from each step to the next: `cycle` where the issue was taken again between them."""
    outcomes: list[Data] = [run["outcome"] or {} for run in runs]
    steps = [
        (run["trace"], run["run"], run["phase"], str(outcome.get("verdict") or run["state"]), True)
        for run, outcome in zip(runs, outcomes, strict=True)
    ]
    steps += [(one["seq"], f"#{one['seq']}", one["phase"], one["answer"] or "no answer", False) for one in asked]
    steps += [(step["seq"], f"#{step['seq']}", step["phase"], "", False) for step in delivery]
    steps.sort(key=lambda step: step[0])
    edges, known = list["json_types.StepJson"](), dict[str, int]()
    for (first, source, phase, why, is_run), (second, target, next_phase, _, _) in pairwise(steps):
        known.setdefault(phase, len(known))
        kind: Literal["next", "retry", "back", "cycle"]
        if any(first < seq <= second for seq in starts):
            kind = "cycle"
        elif is_run and next_phase == phase and not target.startswith("#"):
            kind = "retry"
        else:
            kind = "back" if known.get(next_phase, len(known)) < known[phase] else "next"
        edges.append({"source": source, "target": target, "kind": kind, "why": why})
    return edges


# --- all runs -----------------------------------------------------------------------------------------------------


_WANTED = ("PhaseEntered", "RetryScheduled", "RunWithdrawn")
"""From when on an issue waits for a run."""

_PARTS = ("held", "starting", "length", "verified")


def timeline(database: Database | None, now: datetime | None) -> json_types.TimelineJson:
    """Give every run as columns, not rows, so that ten thousand are a few hundred kilobytes: in seconds since `epoch`.

    `length` of a run that goes on reaches to `at`: now, or (None) the last record, where no daemon goes on with it.
    Before it began (`begin`) it was `held` until it was planned, and `starting` then; after it its work was being
    `verified`: as far as that is known. `issues`, `states` and `agents` are what the columns count into.
    """
    names: dict[str, dict[str, int]] = {"issue": {}, "state": {}, "agent": {}}
    columns: dict[str, list[int]] = {name: [] for name in ("issue", "state", "agent", "begin", *_PARTS)}
    wanted, verified = _moments(database)
    rows = database.execute(
        "SELECT run, issue, state, agent, planned_at, started_at, ended_at FROM runs ORDER BY trace"
    ).fetchall() if database else []  # fmt: skip
    last = database.execute("SELECT at FROM facts ORDER BY seq DESC LIMIT 1").fetchone() if database else None
    at = now.timestamp() if now is not None else _seconds(last["at"]) if last else 0.0
    epoch = min((_seconds(row["planned_at"]) for row in rows), default=at)
    for run, issue, state, agent, planned_at, started_at, ended_at in rows:
        planned = _seconds(planned_at)
        begin = _seconds(started_at) if started_at else planned
        end = _seconds(ended_at) if ended_at else at
        ready, checked = wanted.get(run, planned), verified.get(run, end)
        for (name, seen), value in zip(names.items(), (issue, state, agent), strict=True):
            columns[name].append(seen.setdefault(value, len(seen)))
        columns["begin"].append(round(begin - epoch))
        for name, part in zip(_PARTS, (planned - ready, begin - planned, end - begin, checked - end), strict=True):
            columns[name].append(round(min(max(part, 0.0), _LONGEST)))
    return {
        "seq": seq(database), "epoch": epoch, "at": at, "issues": [*names["issue"]], "states": [*names["state"]],
        "agents": [*names["agent"]], "run": [row["run"] for row in rows], "issue": columns["issue"],
        "state": columns["state"], "agent": columns["agent"], "begin": columns["begin"], "held": columns["held"],
        "starting": columns["starting"], "length": columns["length"], "verified": columns["verified"],
    }  # fmt: skip


def _moments(database: Database | None) -> tuple[dict[str, float], dict[str, float]]:
    """Give since when each run's issue had waited for it, and until when its work was verified, by runs."""
    since, wanted, verified = dict[str, str](), dict[str, float](), dict[str, float]()
    kinds = (*_WANTED, "RunPlanned", "WorkVerified")
    query = f"SELECT at, type, issue, run FROM facts WHERE type IN ({', '.join('?' * len(kinds))}) ORDER BY seq"
    for at, kind, issue, run in database.execute(query, kinds) if database else ():
        if kind == "WorkVerified":
            verified |= {run: _seconds(at)} if run else {}
        elif kind == "RunPlanned":
            wanted[run] = _seconds(since.pop(issue, at))
        else:
            since[issue] = at
    return wanted, verified


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


# --- records ------------------------------------------------------------------------------------------------------


def records(
    database: Database | None, *, issue: str | None = None, after: int = 0, limit: int = 100
) -> json_types.RecordsJson:
    """Give records of the journal behind a number, in order, an issue's alone or all."""
    if database is None:
        return {"seq": 0, "next": None, "items": []}
    kept, values = (" AND issue = ?", [issue]) if issue is not None else ("", [])
    query = f"SELECT * FROM facts WHERE seq > ?{kept} ORDER BY seq LIMIT ?"
    rows = database.execute(query, [after, *values, limit + 1]).fetchall()
    last = rows[limit - 1]["seq"] if len(rows) > limit else None
    return {"seq": seq(database), "next": last, "items": [_record(row) for row in rows[:limit]]}


def record(database: Database | None, number: int) -> json_types.RecordJson | None:
    """Give one record; None: there is none of this number, or not any more."""
    row = database.execute("SELECT * FROM facts WHERE seq = ?", [number]).fetchone() if database else None
    return _record(row) if row else None


def _record(row: sqlite3.Row) -> json_types.RecordJson:
    return {
        "seq": row["seq"], "at": row["at"], "kind": row["kind"], "type": row["type"], "issue": row["issue"],
        "run": row["run"], "body": json.loads(row["body"]),
    }  # fmt: skip
