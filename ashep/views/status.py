"""Standing of every issue: `ashep status`, and what people watch of it (`--watch`)."""

from __future__ import annotations  # the types bring pydantic along, for which no command that reads has time

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from ashep.core.policy.runner_kinds import spoken
from ashep.views import Data, Database, evidence
from ashep.views.id_masking import KnownIds
from ashep.views.times import distance, local, span, stamp

if TYPE_CHECKING:
    from ashep.store import row_types
    from ashep.views import json_types

STATES: dict[json_types.State, str] = {
    "person": "waits for a person",
    "running": "running",
    "time": "waits for a time or a slot",
    "parked": "parked",
    "not_eligible": "not eligible",
    "closed": "closed",
}
"""The six states, in the order in which they are shown, and how they are said."""

_OUTAGES = {
    "limited": "limited",
    "down": "down",
    "unauthorized": "refuses our credentials (`ashep resume` tries again)",
}

_ELSEWHERE = {"dependencies": "it depends on other issues", "work_tree": "another issue holds the work tree"}
"""Reasons that are about other issues, by their code, as they are told without an id."""

_LATEST = 50
"""How many of the last records are looked at for the daemon's end."""


def status(database: Database | None, process: row_types.ProcessJson) -> json_types.StatusJson:
    """Say where every known issue stands, each once; no issue's id stands outside of its own entry."""
    rows = issue_rows(database)
    bodies: list[row_types.IssueBodyJson] = json.loads(f"[{','.join(row['body'] for row in rows)}]")
    blockers = {other for body in bodies for other in body["blocked_by"]}
    names = KnownIds({row["issue"] for row in rows} | blockers)
    issues: list[json_types.StatusIssueJson] = [
        {**_entry(row, body, names.hide), "answer": None} for row, body in zip(rows, bodies, strict=True)
    ]
    order = {state: place for place, state in enumerate(STATES)}
    issues.sort(key=lambda entry: (order[entry["state"]], entry["priority"], entry["since"] or "", entry["issue"]))
    return {"daemon": of_all(database, process, names.hide), "issues": issues}


def build_dashboard(database: Database | None, process: row_types.ProcessJson) -> json_types.DashboardJson:
    """Say what a person looks at first: how many issues stand how, and those that wait for a person or run, in full.

    Issues are named in what is said of others, unlike in `status`.
    """
    issues, used, runs = first(database), _used(database) if database else {}, under_way(database)
    nothing: json_types.UsedJson = {"runs": 0, "tokens": 0, "cost": 0.0}
    return {
        "daemon": of_all(database, process, str),
        "counts": issues["counts"],
        "waiting": [{**issue, "used": used.get(issue["issue"], nothing)} for issue in issues["waiting"]],
        "running": [
            {**issue, "used": used.get(issue["issue"], nothing), "at_work": runs.get(str(issue["run"]))}
            for issue in issues["running"]
        ],
    }


def first(database: Database | None) -> json_types.FirstJson:
    """Say how many issues stand how, and of those that wait for a person or run where they stand."""
    wanted = "SELECT * FROM issues WHERE state IN ('person', 'running')"
    entries = [entry(row) for row in database.execute(wanted)] if database else []
    entries.sort(key=lambda entry: (entry["priority"], entry["since"] or "", entry["issue"]))
    return {
        "counts": count_states(database),
        "waiting": [entry for entry in entries if entry["state"] == "person"],
        "running": [entry for entry in entries if entry["state"] == "running"],
    }


def count_states(database: Database | None) -> dict[json_types.State, int]:
    """Say how many issues stand how."""
    known = database.execute("SELECT state, count(*) AS many FROM issues GROUP BY state").fetchall() if database else []
    return dict.fromkeys(STATES, 0) | {row["state"]: row["many"] for row in known}


def _used(database: Database) -> dict[str, json_types.UsedJson]:
    """Say what runs have used of each issue that waits for a person or runs."""
    query = (
        "SELECT r.issue, count(*) AS runs, sum(r.tokens) AS tokens, sum(r.cost) AS cost FROM issues i"
        " CROSS JOIN runs r ON r.issue = i.issue WHERE i.state IN ('person', 'running') GROUP BY r.issue"
    )
    rows = database.execute(query)
    return {row["issue"]: {"runs": row["runs"], "tokens": row["tokens"], "cost": row["cost"]} for row in rows}


def of_all(
    database: Database | None, process: row_types.ProcessJson, hide: Callable[[str], str]
) -> row_types.DaemonJson:
    """Say what is true of everything: the daemon, and what stands in the way of more than one issue."""
    ended: row_types.EndJson = last_end(database, hide) if not process["running"] else {}
    # the daemon waits for some more room than it took to stop it
    short = database and database.execute("SELECT 1 FROM issues WHERE code = 'disk_low' LIMIT 1").fetchone()
    pauses: list[row_types.PauseJson] = of_daemon(database, "pauses") or []
    notices: list[row_types.NoticeJson] = of_daemon(database, "notices") or []
    providers: list[row_types.OutageJson] = of_daemon(database, "providers") or []
    sources: list[row_types.SourceTroubleJson] = of_daemon(database, "sources") or []
    kept = "SELECT count(*) AS kept, min(due) AS next FROM (SELECT json_extract(body, '$.tree.due') AS due FROM issues)"
    trees = database.execute(f"{kept} WHERE due IS NOT NULL").fetchone() if database else None
    running = database if process["running"] else None  # of one that has ended these say nothing any more
    edit: row_types.RefusedJson | None = of_daemon(running, "edit")
    low: row_types.DiskStateJson = {"disk": "low"} if short else {}
    return {
        **process,
        **ended,
        **low,
        "findings": of_daemon(database, "findings") or 0,
        "pauses": [
            {
                "by": pause["by"], "why": hide(pause["why"]), "since": pause["since"], "until": pause["until"],
                "provider": pause["provider"], "drain": pause["drain"],
            }
            for pause in pauses
        ],
        "budgets": of_daemon(database, "budgets") or [],
        "notices": [{**notice, "error": hide(notice["error"])} for notice in notices],
        "runners": of_daemon(running, "server") or [],
        "workspace": _meta(running, "workspace"),
        "repository": of_daemon(running, "repository"),
        "edit": edit and {**edit, "problems": [hide(problem) for problem in edit["problems"]]},
        "providers": [{**outage, "why": hide(outage["why"])} for outage in providers],
        "sources": [{**source, "reason": hide(source["reason"])} for source in sources],
        "quotas": of_daemon(database, "quotas") or [],
        "journal": kept_since(database),
        "trees": {"kept": trees["kept"], "next": trees["next"]} if trees else {"kept": 0, "next": None},
    }  # fmt: skip


def kept_since(database: Database | None) -> row_types.KeptJson | None:
    """Say with which record the journal begins, and of when that is; None: nothing of it was deleted."""
    begins = int(_meta(database, "begins") or 0)
    if database is None or not begins:
        return None
    oldest = database.execute("SELECT at FROM facts ORDER BY seq LIMIT 1").fetchone()
    return {"first": begins, "since": oldest["at"] if oldest else None}


def told_since(database: Database, created: str) -> str | None:
    """Say from when on the story of an issue of that time is told; None: from its beginning on."""
    kept = kept_since(database)
    return kept["since"] if kept is not None and kept["since"] is not None and created < kept["since"] else None


def of_daemon(database: Database | None, key: str) -> Any:
    """Give what the daemon keeps of itself next to the issues; None: nothing.

    `findings` of the last audit, by number · `server`: whether the agent server answers, and what is to become of it ·
    `edit`: the last one of the user's files that cannot be used · `pauses` · `budgets`: limits that were passed and
    still count · `notices`: targets that were not told something · `providers` that take nothing ·
    `quotas`: how much of them logins have used.
    """
    known = _meta(database, key)
    return None if known is None else json.loads(known)


def _meta(database: Database | None, key: str) -> str | None:
    row = database.execute("SELECT value FROM meta WHERE key = ?", [key]).fetchone() if database else None
    return str(row["value"]) if row else None


def issue_rows(database: Database | None) -> list[sqlite3.Row]:
    """Give the row of every known issue."""
    return database.execute("SELECT * FROM issues").fetchall() if database else []


def asking(database: Database | None) -> dict[str, str | None]:
    """Give the issues that wait for an answer, and since when each asks."""
    asked = "json_extract(body, '$.question.asked') AS asked"
    query = f"SELECT issue, {asked} FROM issues WHERE code IN ('question', 'input')"
    return {row["issue"]: row["asked"] for row in database.execute(query)} if database else {}


def read_issue(database: Database | None, issue: str) -> json_types.IssueJson | None:
    """Give where an issue stands, with other issues named; None: nothing is known of it."""
    row = database.execute("SELECT * FROM issues WHERE issue = ?", [issue]).fetchone() if database else None
    return entry(row) if row is not None else None


def read_model_position(database: Database | None) -> tuple[str, int]:
    """Say up to where the picture is drawn: the instance of the journal, and the number of its last record there."""
    return _meta(database, "instance") or "", int(_meta(database, "seq") or 0)


def last_end(database: Database | None, hide: Callable[[str], str]) -> row_types.EndJson:
    """Say when and why the last daemon ended; empty: it did not end in order, or that is not known."""
    if database is None:
        return {}
    query = f"SELECT at, type, body FROM (SELECT * FROM facts ORDER BY seq DESC LIMIT {_LATEST}) ORDER BY seq DESC"
    for row in database.execute(query):
        if row["type"] == "DaemonStopped":
            return {"ended": hide(row["at"]), "why": hide(json.loads(row["body"])["why"])}
        if row["type"] == "DaemonStarted":
            break
    return {}


def entry(row: sqlite3.Row) -> json_types.IssueJson:
    """Give where an issue stands, as `status` does, with other issues named."""
    return {**_entry(row, json.loads(row["body"]), lambda text, _: text), "reason": row["reason"]}


def _entry(row: sqlite3.Row, body: row_types.IssueBodyJson, hide: Callable[[str, str], str]) -> json_types.IssueJson:
    own = row["issue"]
    question, landing = body["question"], body.get("landing")
    return {
        "issue": own,
        "state": row["state"],
        "reason": _ELSEWHERE.get(row["code"]) or hide(row["reason"], own),
        "since": row["since"],
        "code": row["code"],
        "due": row["due"],
        "title": hide(row["title"], own),
        "phase": row["phase"],
        "policy": row["policy"],
        "run": row["run"],
        "type": body["type"],
        "priority": body["priority"],
        "tracker_status": body["status"],
        "question": question and {
            **question, "text": hide(question["text"], own), "options": [hide(one, own) for one in question["options"]],
            "follows": [{**way, "why": way["why"] and hide(way["why"], own)} for way in question["follows"]],
        },
        "waits_for": len(body["blocked_by"]),
        "cycle": body["cycle"],
        "runs": body["runs"],
        "verification": evidence.counted(body.get("verification")),
        "flags": body.get("flags", []),
        "changes": evidence.changes(body.get("files")),
        "landing": landing and {**landing, "onto": landing["onto"] and hide(landing["onto"], own)},
    }  # fmt: skip


# --- for a terminal -----------------------------------------------------------------------------------------------

COLUMNS = ("STATE", "ISSUE", "PHASE", "SINCE", "TITLE", "REASON")


def headline(seen: json_types.StatusJson, when: Callable[[str], str]) -> str:
    """Say in a line what the daemon does."""
    daemon = seen["daemon"]
    low = "; the disk is nearly full: nothing new is taken" if daemon.get("disk") == "low" else ""
    if daemon["running"]:
        since = f" since {when(at)}" if (at := daemon.get("since")) else ""
        behind = "; what follows may be some seconds old" if daemon.get("behind") else ""
        return f"ashep {daemon.get('version')} is running: process {daemon.get('pid')}{since}{behind}{low}"
    ended = f" since {when(at)} ({daemon.get('why')})" if (at := daemon.get("ended")) else ""
    return f"ashep is not running{ended}{low}"


WORKPLACE = {
    "worktree": "each issue that is begun has a work tree and a branch of its own",
    "shared": "all issues share the work tree that is checked out",
    "impossible": "no issue is begun: worker.workspace is worktree, and this is no git repository with a commit",
    "unknown": "the work tree was not read yet",
}
"""Where issues that are begun now are worked on."""


def workplace(seen: json_types.StatusJson) -> str:
    """Say in a line where issues that are begun now are worked on; empty: that is not known."""
    return WORKPLACE.get(seen["daemon"].get("workspace") or "", "")


def paused(seen: json_types.StatusJson, when: Callable[[str], str]) -> str:
    """Say in a line which pauses stand; empty: none does."""
    return "; ".join(_pause(pause, when) for pause in seen["daemon"].get("pauses", ()))


def _pause(pause: row_types.PauseJson, when: Callable[[str], str]) -> str:
    what = f"{pause['provider']} is paused" if pause["provider"] else "drained" if pause["drain"] else "paused"
    end = f"until {when(pause['until'])}" if pause["until"] else "until `ashep resume`"
    why = f" ({pause['why']})" if pause["why"] else ""
    return f"{what} {end} by {pause['by']}{why}: no run starts"


def limits(seen: json_types.StatusJson, now: datetime) -> Iterator[str]:
    """Say of each limit that was passed how much of it is used, and until when it counts."""
    for mark in seen["daemon"].get("budgets", ()):
        if mark["until"] and not _ahead(mark["until"], now):
            continue
        of = {"total": "all runs", "runs_per_hour": "the last hour"}.get(mark["scope"], mark["name"])
        word = "used up" if mark["reached"] else "nearly used up"
        until = f", until {local(mark['until'])}" if mark["until"] else ""
        yield f"budget {word}: {mark['used']:.6g} of {mark['limit']:.6g} {mark['unit']} of {of}{until}"


def untold(seen: json_types.StatusJson, now: datetime) -> Iterator[str]:
    """Say of each target that was not told something why not, and when it is tried again."""
    for route in seen["daemon"].get("notices", ()):
        again = f", tried again in {distance(route['due'], now)}" if route["due"] and _ahead(route["due"], now) else ""
        waiting = f"; {route['waiting']} to be told{again}" if route["waiting"] else ""
        given_up = f"; {route['given_up']} given up" if route["given_up"] else ""
        since = f" since {local(route['since'])}" if route["since"] else ""
        yield f"{route['target']} is not told{since}: {route['error']}{waiting}{given_up}"


def runners(seen: json_types.StatusJson, now: datetime) -> Iterator[str]:
    """Say what is wrong with the agent server and other runners, and what was replaced."""
    known = seen["daemon"].get("runners") or []
    for one in known:
        name = spoken(one["runner"])
        if one["start_after"] and _ahead(one["start_after"], now):
            when = distance(one["start_after"], now)
            yield f"{name} failed {one['failures']} times in a row; it is started again in {when}"
        if one["state"] != "up":
            since = f" for {distance(one['since'], now)}" if one["since"] else ""
            yield f"{name} is {one['state']}{since}: {one['detail']}"
        if one["recycling"]:
            yield f"{name} is begun anew once it is at rest: {one['recycling']}"
        if one["replaced"]:
            yield f"{name} was replaced: {one['replaced']}; sessions go on"
    if known and known[0]["tracker_replaced"]:
        yield f"the tracker's program was replaced: {known[0]['tracker_replaced']}"


def repository(seen: json_types.StatusJson) -> Iterator[str]:
    """Say what keeps every issue from a tree, how far the base is behind, and why it was not fetched."""
    if known := seen["daemon"].get("repository"):
        fault = f"nothing begins: {known['fault']}" if known["fault"] else ""
        yield from filter(None, (fault, known["behind"], known["error"]))


def edits(seen: json_types.StatusJson, now: datetime) -> Iterator[str]:
    """Say that an edit of the files is not in force, and why."""
    if known := seen["daemon"].get("edit"):
        more = len(known["problems"]) - 1 + known["more"]
        several = f" (and {more} more: `ashep policy check`)" if more else ""
        since = distance(known["since"], now)
        yield f"an edit of {since} ago is not in force, what was before it is: {known['problems'][0]}{several}"


def servers(seen: json_types.StatusJson) -> Iterator[str]:
    """Say how many agent servers live, and the memory that they hold."""
    if known := seen["daemon"].get("servers"):
        count = known["count"]
        many = "1 agent server lives and holds" if count == 1 else f"{count} agent servers live and hold"
        yield f"{many} {known['bytes'] / 1024**3:.1f} GiB"


def outages(seen: json_types.StatusJson, now: datetime) -> Iterator[str]:
    """Say of each provider that takes nothing until when, why, and how many issues wait for it."""
    for one in seen["daemon"].get("providers", ()):
        until = f" until {local(one['until'])}" if one["until"] and _ahead(one["until"], now) else ""
        tried = ", one run tries" if one["tried"] else ""
        waiting = f"{one['waiting']} issue{' waits' if one['waiting'] == 1 else 's wait'}"
        what = _OUTAGES[one["state"]] + until + tried
        yield f"{one['provider'] or 'the provider'}: {what}, {waiting} ({one['why']})"


def sources(snapshot: json_types.StatusJson) -> Iterator[str]:
    """Say of each source that does not answer why; its issues go on, and nothing new comes from it."""
    for source in snapshot["daemon"].get("sources", ()):
        yield f"{source['source']} does not answer: {source['reason']}; no new issue comes from it until it does"


_NEAR = {"allowed_warning": " (nearly all)", "rejected": " (all)"}


def quotas(seen: json_types.StatusJson, now: datetime) -> Iterator[str]:
    """Say of each login how much of its quota is used, and when each window begins again."""
    for quota in seen["daemon"].get("quotas", ()):
        windows = [
            f"{window['used']:.0%} of {window['name']} used{_NEAR.get(window['status'] or '', '')} until"
            f" {local(window['resets'])}"
            for window in quota["windows"]
            if _ahead(window["resets"], now)
        ]
        if windows:
            yield f"quota of {quota['provider']} on {spoken(quota['runner'])}: {'; '.join(windows)}"


def trees(seen: json_types.StatusJson, now: datetime) -> Iterator[str]:
    """Say how many trees of closed issues stand, and when the next is to go by itself."""
    if (known := seen["daemon"].get("trees")) and known["kept"]:
        many = f"{known['kept']} work trees of closed issues stand"
        count = "1 work tree of a closed issue stands" if known["kept"] == 1 else many
        when = f"in {distance(due, now)}" if (due := known["next"]) and _ahead(due, now) else "now"
        yield f"{count}; the next is to go {when} (`ashep trees gc --dry-run`)"


def records(seen: json_types.StatusJson, when: Callable[[str], str]) -> Iterator[str]:
    """Say since when the journal tells everything, where older records were deleted."""
    if (known := seen["daemon"].get("journal")) and known["since"] is not None:
        yield f"records older than {when(known['since'])} are not kept (`ashep journal verify`)"


def counts(seen: json_types.StatusJson) -> str:
    """Say in a line how many issues stand where."""
    states = [entry["state"] for entry in seen["issues"]]
    said = [f"{states.count(state)} {words}" for state, words in STATES.items() if state in states]
    found = seen["daemon"].get("findings", 0)
    audit = f"; the last audit has {found} finding{'s' if found > 1 else ''} (`ashep audit`)" if found else ""
    return (f"{len(states)} issues: {', '.join(said)}" if said else "no issues are known") + audit


WAITING = ("person", "parked")
"""States of issues that a person must look at."""


def next_steps(summary: json_types.StatusJson) -> list[str]:
    """Say what a person can type now: answers first, then work, then where more is shown."""
    steps = dict[str, str]()
    for entry in summary["issues"]:
        if entry["state"] == "person" and entry["code"] == "input":
            steps.setdefault("answer", f"ashep answer {entry['issue']} …")
        elif entry["state"] == "person":
            steps.setdefault("approve", f"ashep approve {entry['issue']}")
            steps.setdefault("reject", f"ashep reject {entry['issue']} -m …")
        elif entry["state"] == "parked":
            steps.setdefault("retry", f"ashep retry {entry['issue']}")
    steps["work"] = "ashep status" if summary["daemon"]["running"] else "ashep work"
    return [f"type: {' · '.join(steps.values())}", "look: ashep ui · everything else: ashep --help"]


def table(issues: Sequence[json_types.IssueJson], now: datetime, *, everything: bool) -> list[tuple[str, ...]]:
    """Give the rows of the table; closed issues only with `everything`."""
    shown = [entry for entry in issues if everything or entry["state"] != "closed"]
    return [
        (
            entry["state"],
            entry["issue"],
            entry["phase"] or "",
            distance(entry["since"], now) if entry["since"] else "",
            entry["title"],
            _reason(entry, now),
        )
        for entry in shown
    ]


def answered(told: json_types.StatusJson, issue: str, answer: str, by: str, at: datetime) -> None:
    """Note in `status` the answer of a person that no daemon has seen yet."""
    for entry in told["issues"]:
        if entry["issue"] == issue:
            entry["answer"] = {"answer": answer, "by": by, "at": stamp(at)}


_SPOKEN = {"approved": "approved", "changes_requested": "changes requested", "answered": "answered"}


def _answer(entry: json_types.IssueJson) -> str:
    """Say how a question is answered, or that it was; empty: nothing is asked."""
    given, question, issue = entry.get("answer"), entry.get("question"), entry["issue"]
    if given:
        said = "answered" if question and question["kind"] == "input" else _SPOKEN[given["answer"]]
        return f"{said} by {given['by']} at {local(given['at'])}, counts when the daemon runs"
    if question is None or entry["code"] not in ("question", "input"):
        return ""
    return (
        f"`ashep answer {issue}`"
        if question["kind"] == "input"
        else f"`ashep approve {issue}` or `ashep reject {issue}`"
    )


def _reason(entry: json_types.IssueJson, now: datetime) -> str:
    due = entry["due"]
    if due and _ahead(due, now):
        return "; ".join(filter(None, (f"{entry['reason']} (due in {distance(due, now)})", _answer(entry))))
    found = evidence.in_short(entry["verification"]) if entry["state"] == "closed" else ""
    way = evidence.landing(entry["landing"]) if entry["state"] in ("closed", "running") else ""
    return "; ".join(filter(None, (entry["reason"], found, way and f"its work {way}", _answer(entry))))


def _ahead(due: str, now: datetime) -> bool:
    return datetime.fromisoformat(due) > now


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


def under_way(database: Database | None) -> dict[str, json_types.AtWorkJson]:
    """Give of every run that has not ended its agent, its times, what it used, and when a record last told of it."""
    last = "(SELECT at FROM facts WHERE facts.run = runs.run ORDER BY seq DESC LIMIT 1) AS last"
    until = "(SELECT json_extract(body, '$.deadline') FROM issues WHERE issues.issue = runs.issue) AS deadline"
    keys = "run, agent, runner, provider, model, planned_at, started_at, tokens, cost"
    query = f"SELECT {keys}, {last}, {until} FROM runs WHERE ended IS NULL"
    runs: list[json_types.AtWorkJson] = [dict(row) for row in database.execute(query)] if database else []  # pyright: ignore[reportAssignmentType] # the columns are the keys
    return {run["run"]: run for run in runs}


def sections(
    issues: Sequence[json_types.IssueJson],
    runs: Mapping[str, json_types.AtWorkJson],
    signs: Mapping[str, Data],
    now: datetime,
) -> list[Section]:
    """Give what is to be shown of `status`; `signs`: what is known of the life of runs."""
    found: list[Section] = []
    for state, title in SECTIONS.items():
        entries = [entry for entry in issues if entry["state"] == state]
        rows = [_running(one, runs, signs, now) if state == "running" else _waiting(one, now) for one in entries]
        if rows:
            found.append(Section(state, title, rows))
    return found


def _waiting(entry: json_types.IssueJson, now: datetime) -> tuple[str, ...]:
    since = distance(entry["since"], now) if entry["since"] else ""
    due = f"due in {distance(entry['due'], now)}" if entry["due"] and _ahead(entry["due"], now) else ""
    how = f" ({_answer(entry)})" if _answer(entry) else ""
    return entry["issue"], entry["phase"] or "", since, due, f"{entry['title']}: {entry['reason']}{how}"


def _running(
    entry: json_types.IssueJson, runs: Mapping[str, json_types.AtWorkJson], signs: Mapping[str, Data], now: datetime
) -> tuple[str, ...]:
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
