"""What people watch: `ashep status --watch`. What waits for them comes first, then what runs, and how alive it is."""

import sqlite3
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from ashep.views import Data, Database
from ashep.views.times import distance, span

SECTIONS = {
    "person": "Waits for you",
    "running": "Running",
    "time": "Waits for a time or a slot",
    "parked": "Parked",
}
"""The states that are listed, in their order; the others are counted only."""


class Section(NamedTuple):
    """A state's issues."""

    state: str
    title: str
    rows: list[tuple[str, ...]]
    """The last column is the longest."""


def under_way(database: Database | None) -> dict[str, Data]:
    """Give agent and times of every run that has not ended."""
    query = "SELECT run, agent, planned_at, started_at FROM runs WHERE ended IS NULL"
    rows: list[sqlite3.Row] = database.execute(query).fetchall() if database else []
    return {row["run"]: dict(row) for row in rows}


def sections(told: Data, runs: Mapping[str, Data], signs: Mapping[str, Data], now: datetime) -> list[Section]:
    """Give what is to be shown of `standing.status`; `signs`: what is known of the life of runs."""
    found: list[Section] = []
    for state, title in SECTIONS.items():
        entries = [entry for entry in told["issues"] if entry["state"] == state]
        rows = [_running(one, runs, signs, now) if state == "running" else _waiting(one, now) for one in entries]
        if rows:
            found.append(Section(state, title, rows))
    return found


def _waiting(entry: Data, now: datetime) -> tuple[str, ...]:
    since = distance(entry["since"], now) if entry["since"] else ""
    due = f"due in {distance(entry['due'], now)}" if entry["due"] and entry["due"] > _text(now) else ""
    return entry["issue"], entry["phase"] or "", since, due, f"{entry['title']}: {entry['reason']}"


def _running(entry: Data, runs: Mapping[str, Data], signs: Mapping[str, Data], now: datetime) -> tuple[str, ...]:
    run = runs.get(entry["run"] or "")
    if run is None:
        return entry["issue"], entry["phase"] or "", "", "", f"{entry['title']}: {entry['reason']}"
    began = run["started_at"] or run["planned_at"]
    what = f"{run['run'].rpartition('/')[2]} {run['agent']}"
    return entry["issue"], what, distance(began, now), _alive(signs.get(run["run"])), entry["title"]


def _alive(sign: Data | None) -> str:
    if sign is None:
        return ""
    if sign["retry_in"] is not None:
        return f"its provider is asked again in {span(sign['retry_in'])}"
    tool = f", {sign['tool']} for {span(sign['tool_for'])}" if sign["tool"] else ""
    return f"sign {span(sign['quiet'])} ago{tool}"


def _text(now: datetime) -> str:
    return now.isoformat(timespec="microseconds").replace("+00:00", "Z")
