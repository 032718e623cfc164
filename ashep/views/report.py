"""The morning report: `ashep report`, what became of the night, every line with the records that it rests on.

Lines are made of the journal's facts, as the database shows them; where an issue stands now is the account's word. A
line's numbers are those of the facts that say what it says: `ashep why` and the journal tell the rest.
"""

from __future__ import annotations  # the types bring pydantic along, for which no command that reads has time

import json
import re
import sqlite3
from bisect import bisect_left
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from ashep.core.facts.command_descriptions import REFUSES
from ashep.core.facts.delivery import UNTESTED
from ashep.core.policy.runner_kinds import OPENCODE, spoken
from ashep.views import Data, Database, evidence, read_facts
from ashep.views.times import local, stamp
from ashep.views.usage import money

if TYPE_CHECKING:
    from ashep.store import row_types
    from ashep.views import json_types

SECTIONS = {
    "closed": "Closed",
    "waiting": "Waits for you",
    "parked": "Parked",
    "going_on": "Still running, or waiting for a time",
    "cost": "Cost",
    "limits": "Limits and budgets met",
    "servers": "Servers and daemons",
    "findings": "Findings of the audit",
    "notices": "Messages that did not reach you",
}
"""The parts in their order, and how they are headed."""

_OF_ISSUES = ("closed", "waiting", "parked", "going_on")
"""The parts that tell of issues, a line each."""

EVENING = 18
"""The hour of the evening before, where no daemon began within a day."""

_SHOWN = 6
"""Numbers that a line of text shows; JSON has them all."""

_LONGEST, _RUNS = 240, 50
"""Characters of an agent's sentence, and the runs, the last ones, that it is looked for in."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[^a-z])")

_ASKED = ("PersonAsked", "InputWanted", "IssueAdopted")
_WORK = ("WorkVerified", "WorkLanded")
_TAKEN = ("SessionTaken", "IssueHeld")
_OPENED = ("PullRequestOpened",)
_PARKED = ("IssueParked", "IssueAdopted")
_GOES_ON = ("RunPlanned", "IssueHeld", "RetryScheduled", "RunWithdrawn", "EffectFailed", "IssueFinished",
            "IssueGivenBack", "PhaseEntered", "IssueTaken", "IssueAdopted", "SessionReleased")  # fmt: skip
"""What may say why an issue runs or waits: the newest of them does."""

_RUNNER_AWAY = "runner_"
_REFUSALS = {
    "limited": "takes no more", "down": "does not answer as it should", "unauthorized": "refuses our credentials"
}  # fmt: skip


def default_since(database: Database | None, now: datetime) -> str:
    """Give the start of the last daemon; 18:00 of yesterday, here, where that is longer ago than a day."""
    query = "SELECT at FROM facts WHERE type = 'DaemonStarted' ORDER BY seq DESC LIMIT 1"
    row = database.execute(query).fetchone() if database else None
    if row is not None and now - datetime.fromisoformat(row["at"]) < timedelta(days=1):
        return str(row["at"])
    here = now.astimezone().replace(tzinfo=None) - timedelta(days=1)
    return stamp(here.replace(hour=EVENING, minute=0, second=0, microsecond=0).astimezone())


def report(database: Database | None, since: str, now: datetime, journal: str = "") -> json_types.NightReportJson:
    """Tell what happened since a time (as the database writes times), and how everything stands.

    `journal`: the head of the journal's chain.
    """
    told: json_types.NightReportJson = {
        "since": since, "until": stamp(now), "sections": {name: [] for name in SECTIONS},
        "closes": dict.fromkeys(evidence.KINDS, 0), "journal": journal,
    }  # fmt: skip
    if database is None:
        return told
    rows = [*read_facts(database, _HAPPENED, "seq >= ?", _first(database, since))]
    issues: Issues = [(row, json.loads(row["body"])) for row in database.execute("SELECT * FROM issues")]
    closed = list(_closed(database, rows, {row["issue"]: row for row, _ in issues}))
    told["sections"] = {
        "closed": [*closed],
        "waiting": [*_waiting(database, issues)],
        "parked": [*_parked(database, issues)],
        "going_on": [*_going_on(database, issues)],
        "cost": [*_cost(database, since)],
        "limits": [*_limits(rows)],
        "servers": [*_servers(database, rows)],
        "findings": [*_findings(rows)],
        "notices": [*_notices(rows)],
    }
    for line in (line for name in _OF_ISSUES for line in told["sections"][name]):
        line["summary"] = _summary(database, line["issue"])
    # what ashep closed, by the proof that there was of it; what somebody else closed is none of these
    named = {line["issue"] for line in closed}
    ours = (body for row, body in issues if row["issue"] in named and row["code"] == "shepherd")
    for kind in (evidence.kind_of(body.get("verification")) for body in ours):
        told["closes"][kind] += 1
    return told


def _line(text: str, *seqs: int, issue: str | None = None, at: str | None = None) -> json_types.LineJson:
    return {"text": " ".join(text.split()), "issue": issue, "at": at, "seqs": sorted({*seqs}), "summary": None}


def _summary(database: Database, issue: str | None) -> str | None:
    """Give the first sentence of what the last agent that worked on an issue, and judged nobody, says it did."""
    query = "SELECT body FROM runs WHERE issue = ? ORDER BY trace DESC LIMIT ?"
    runs: Iterator[Data] = (json.loads(row["body"]) for row in database.execute(query, [issue, _RUNS]))
    summary = next((run["outcome"]["summary"] for run in runs if run["access"] == "write" and run["outcome"]), None)
    if summary is None:
        return None
    sentence = _SENTENCE_END.split(" ".join(summary.split()), maxsplit=1)[0]
    return sentence if len(sentence) <= _LONGEST else f"{sentence[:_LONGEST]}…"


Issues = list[tuple[sqlite3.Row, "row_types.IssueBodyJson"]]

# --- what happened --------------------------------------------------------------------------------------------------

_HAPPENED = (
    "IssueClosed", "BudgetWarned", "BudgetReached", "ProviderRefused", "ProviderRecovered", "RunnerSeen", "TurnDied",
    "DaemonStarted", "DaemonStopped", "RecycleWanted", "ServerRestartPlanned", "AccountAudited", "NoticeFailed",
    "NoticesGivenUp", "NoticeSent", "TrackerSeen", "RepositorySeen",
)  # fmt: skip


def _first(database: Database, since: str) -> int:
    """Give the first number at or after a time: times of the journal never go back."""

    def time_of(seq: int) -> str:
        row = database.execute("SELECT at FROM facts WHERE seq >= ? ORDER BY seq LIMIT 1", [seq]).fetchone()
        return since if row is None else row["at"]

    last = database.execute("SELECT max(seq) AS seq FROM facts").fetchone()["seq"] or 0
    return bisect_left(range(last + 1), since, key=time_of)


def _newest(database: Database, issue: str, kinds: tuple[str, ...], before: int | None = None) -> Data | None:
    bounds = (issue, before or 2**62)
    return next(read_facts(database, kinds, "issue = ? AND seq < ?", *bounds, order="seq DESC LIMIT 1"), None)


def _closed(database: Database, rows: list[Data], issues: dict[str, sqlite3.Row]) -> Iterator[json_types.LineJson]:
    """Each issue that was closed since and still is, by its last closing."""
    last = {row["issue"]: row for row in rows if row["type"] == "IssueClosed"}
    for issue, row in last.items():
        if issue not in issues or issues[issue]["state"] != "closed":
            continue
        by, said, seqs = row["body"]["by"], row["body"]["why"], [row["seq"]]
        head = f"{issue} ({issues[issue]['title']})"
        if by != "shepherd":
            yield _line(f"{head}: closed by somebody: {said}", *seqs, issue=issue, at=row["at"])
            continue
        if (decided := _newest(database, issue, ("IssueFinished",), row["seq"])) is not None:
            said, seqs = decided["body"]["why"], [*seqs, decided["seq"]]
        shown: row_types.IssueBodyJson = json.loads(issues[issue]["body"])
        found = evidence.in_short(evidence.counted(shown.get("verification")))
        way = evidence.landing(shown.get("landing"))
        work = [_newest(database, issue, (kind,), row["seq"]) for kind in _WORK]
        seqs += [fact["seq"] for fact in work if fact is not None]
        first = f"{UNTESTED} Closed" if evidence.is_untested(shown) else "closed"
        text = "; ".join(filter(None, (f"{head}: {first}: {said}", found, way and f"its work {way}")))
        yield _line(text, *seqs, issue=issue, at=row["at"])


def _limits(rows: list[Data]) -> Iterator[json_types.LineJson]:
    for row in rows:
        if row["type"] in ("BudgetWarned", "BudgetReached"):
            until = row["body"].get("until")
            end = f" (until {local(until)})" if until else ""
            yield _line(row["body"]["why"] + end, row["seq"], issue=row["body"].get("issue"), at=row["at"])
        if row["type"] in ("ProviderRefused", "ProviderRecovered"):
            body, text = row["body"], f"takes again what it is asked ({row['body']['why']})"
            if row["type"] == "ProviderRefused":
                end = f" until {local(body['until'])}" if body["until"] else ""
                text = f"{_REFUSALS[body['kind']]}{end}: {body['why']}"
            yield _line(f"{body['provider'] or 'the provider'} {text}", row["seq"], at=row["at"])


def _servers(database: Database, rows: list[Data]) -> Iterator[json_types.LineJson]:
    first = [rows[0]["seq"] if rows else 0]
    query = "SELECT body FROM facts WHERE type = 'RunnerSeen' AND seq < ? ORDER BY seq"
    bodies = (json.loads(row["body"]) for row in database.execute(query, first))
    instances = {_runner(body): body["instance"] for body in bodies if body.get("instance")}  # the last of each runner
    query = "SELECT type, body FROM facts WHERE type IN ('DaemonStarted', 'DaemonStopped') AND seq < ?"
    last = database.execute(f"{query} ORDER BY seq DESC LIMIT 1", first).fetchone()
    started = f"process {json.loads(last['body'])['pid']}" if last and last["type"] == "DaemonStarted" else ""
    newest = next((row for row in reversed(rows) if row["type"] == "RepositorySeen"), None)
    for row in rows:
        body, seq, at = row["body"], row["seq"], row["at"]
        match row["type"]:
            case "RunnerSeen" if body["state"] != "up":
                word = REFUSES.get(body["state"], "is away")
                yield _line(f"{_runner(body)} {word}: {body.get('detail') or 'it does not answer'}", seq, at=at)
            case "TrackerSeen" if body.get("replaced"):
                yield _line(f"the tracker's program was replaced: {body['replaced']}", seq, at=at)
            case "RunnerSeen":
                if body.get("replaced"):
                    yield _line(f"{_runner(body)} was replaced: {body['replaced']}; sessions went on", seq, at=at)
                before = instances.get(_runner(body), "")
                if before and body.get("instance") and body["instance"] != before:
                    yield _line(f"another life of {_runner(body)} answers: {body['instance']}", seq, at=at)
                instances[_runner(body)] = body.get("instance") or before
            case "RecycleWanted":
                yield _line(f"{_runner(body)} is to be begun anew: {body['why']}", seq, at=at)
            case "ServerRestartPlanned" if body["failures"] > 1:
                yield _line(f"{_runner(body)} failed {body['failures']} times in a row: {body['why']}", seq, at=at)
            case "TurnDied":
                yield _line(f"{row['run']}: {body['why']}; it was begun again", seq, issue=row["issue"], at=at)
            case "DaemonStarted":
                lost = f"; the one before ({started}) ended without a word" if started else ""
                yield _line(f"ashep {body['version']} began as process {body['pid']}{lost}", seq, at=at)
                started = f"process {body['pid']}"
            case "RepositorySeen" if body.get("fault"):
                yield _line(f"nothing began: {body['fault']}", seq, at=at)
            case "RepositorySeen" if row is newest and body.get("behind"):
                yield _line(body["behind"], seq, at=at)
            case "DaemonStopped":
                yield _line(f"ashep ended: {body['why']}", seq, at=at)
                started = ""
            case _:
                pass


def _runner(body: Data) -> str:
    return spoken(body.get("runner", OPENCODE))


def _findings(rows: list[Data]) -> Iterator[json_types.LineJson]:
    """What the last audit found, where there was one since."""
    audits = [row for row in rows if row["type"] == "AccountAudited"]
    for row in audits[-1:]:
        for one in row["body"].get("findings", ()):
            about = f"{one['issue']} " if one["issue"] else ""
            yield _line(f"{one['code']}: {about}{one['what']}", row["seq"], issue=one["issue"], at=row["at"])


def _notices(rows: list[Data]) -> Iterator[json_types.LineJson]:
    """Failures in a row to tell a target are one line; what it was never told is another."""
    failing: dict[str, list[Data]] = {}
    for row in rows:
        target, kind = row["body"].get("target"), row["type"]
        if kind == "NoticeFailed":
            failing.setdefault(target, []).append(row)
        elif kind in ("NoticeSent", "NoticesGivenUp"):
            yield from _failures(target, failing.pop(target, []))
        if kind == "NoticesGivenUp":
            ids = row["body"]["notices"]
            text = f"{target} was never told {len(ids)} notice{'s' if len(ids) > 1 else ''}: {row['body']['why']}"
            yield _line(text, row["seq"], *ids, at=row["at"])
    for target, failed in failing.items():
        yield from _failures(target, failed)


def _failures(target: str, rows: list[Data]) -> Iterator[json_types.LineJson]:
    if rows:
        times = "once" if len(rows) == 1 else f"{len(rows)} times in a row"
        text = f"{target} was not told, {times}: {rows[-1]['body']['error']}"
        yield _line(text, *(row["seq"] for row in rows), at=rows[0]["at"])


# --- how everything stands ------------------------------------------------------------------------------------------


def _waiting(database: Database, issues: Issues) -> Iterator[json_types.LineJson]:
    for row, body in _by_value(issues, "person"):
        taken = row["code"] in ("paused", "pull_request")
        kinds = {"paused": _TAKEN, "pull_request": _OPENED}.get(row["code"], _ASKED)
        fact = _newest(database, row["issue"], kinds)
        due = f", until {local(row['due'])}" if row["due"] else ""
        words = fact["body"]["question"] if fact and not taken else row["reason"]
        since = f"{'since' if taken else 'asked'} {local(row['since'])}{due}"
        text = f"{row['issue']} (P{body['priority']}, {row['title']}): {words} ({since})"
        yield _stands(row, text, fact)


def _parked(database: Database, issues: Issues) -> Iterator[json_types.LineJson]:
    for row, body in _by_value(issues, "parked"):
        text = f"{row['issue']} (P{body['priority']}, {row['title']}): {row['code']}: {row['reason']}"
        yield _stands(row, text, _newest(database, row["issue"], _PARKED))


def _going_on(database: Database, issues: Issues) -> Iterator[json_types.LineJson]:
    for row, body in _by_value(issues, "running", "time"):
        fact, more = _newest(database, row["issue"], _GOES_ON), list[int]()
        if str(row["code"]).startswith(_RUNNER_AWAY):
            query = "SELECT seq FROM facts WHERE type = 'RunnerSeen' ORDER BY seq DESC LIMIT 1"
            more = [seen["seq"] for seen in database.execute(query)]
        due = f", until {local(row['due'])}" if row["due"] else ""
        word = "running" if row["state"] == "running" else f"waits{due}"
        text = f"{row['issue']} (P{body['priority']}, {row['title']}): {word}: {row['reason']}"
        yield _stands(row, text, fact, *more)


def _by_value(issues: Issues, *states: str) -> Issues:
    """Of each state in order of value: priority, then age."""
    chosen = [(row, body) for row, body in issues if row["state"] in states]
    return sorted(chosen, key=lambda one: (one[0]["state"], one[1]["priority"], one[0]["since"] or "", one[0]["issue"]))


def _stands(row: sqlite3.Row, text: str, fact: Data | None, *more: int) -> json_types.LineJson:
    return _line(text, *([fact["seq"]] if fact else []), *more, issue=row["issue"], at=row["since"])


def _cost(database: Database, since: str) -> Iterator[json_types.CostLineJson]:
    """What runs used that ended since or are under way, by provider, each on the reads that said so."""
    query = "SELECT run, provider FROM runs WHERE state != 'withdrawn' AND (ended_at IS NULL OR ended_at >= ?)"
    found: dict[str, tuple[int, int, float, list[int]]] = {}
    for run in database.execute(query, [since]).fetchall():
        name = run["provider"] or "unknown"
        runs, tokens, cost, seqs = found.get(name, (0, 0, 0.0, []))
        used = _turns(database, run["run"])
        tokens += sum(turn[0] for turn in used.values())
        cost += sum(turn[1] for turn in used.values())
        found[name] = (runs + 1, tokens, round(cost, 9), [*seqs, *(seq for turn in used.values() for seq in turn[2])])
    for name, (runs, tokens, cost, seqs) in sorted(found.items(), key=lambda one: (-one[1][2], -one[1][1], one[0])):
        spent = f", cost {money(cost)}" if cost else ""
        text = f"{name}: {runs} run{'' if runs == 1 else 's'}, {tokens} tokens{spent}"
        yield {**_line(text, *seqs), "provider": name, "runs": runs, "tokens": tokens, "cost": cost}


def _turns(database: Database, run: str) -> dict[int, tuple[int, float, list[int]]]:
    """Of each prompt of a run what its turn used, and the numbers of the reads that showed the most."""
    turns: dict[int, tuple[int, float, list[int]]] = {}
    types, over = ("TurnSeen", "TurnStopped", "RunEnded"), False
    query = "SELECT seq, type, body FROM facts WHERE run = ? AND type IN (?, ?, ?) ORDER BY seq"
    for row in database.execute(query, [run, *types]):
        body, over = json.loads(row["body"]), over or row["type"] == "RunEnded"
        if not body.get("n") or (over and row["type"] != "TurnStopped"):
            continue
        tokens, cost, seqs = turns.get(body["n"], (0, 0.0, []))
        more, dearer = body.get("tokens", 0), body.get("cost", 0.0)
        if more > tokens or dearer > cost:
            seqs = [row["seq"]] if more >= tokens and dearer >= cost else [*seqs, row["seq"]]
        turns[body["n"]] = (max(tokens, more), max(cost, dearer), seqs)
    return turns


# --- as text --------------------------------------------------------------------------------------------------------


def lines(told: json_types.NightReportJson, when: Callable[[str], str] = local) -> Iterator[tuple[str, str]]:
    """Give the report as lines, each with what it is: `title`, `heading`, `line`, `summary` (of the line before it) or
    `nothing`.
    """
    yield f"since {when(told['since'])}, until {when(told['until'])}", "title"
    for name, heading in SECTIONS.items():
        section = told["sections"][name]
        yield (f"{heading} ({len(section)})" if section else heading) + _proofs(name, told["closes"]), "heading"
        for line in section:
            yield f"{line['text']} {numbers(line['seqs'])}".rstrip(), "line"
            if line["summary"]:
                yield f"Its agent says: {line['summary']}", "summary"
        if not section:
            yield "nothing", "nothing"
    if told["journal"]:
        yield f"the journal's head: {told['journal']} (`ashep journal verify --head`)", "nothing"


def _proofs(section: str, closes: dict[str, int]) -> str:
    """Say how many closed issues were verified; nothing where none was, as in a shared work tree."""
    if section != "closed" or not (closes["verified"] or closes["waived"]):
        return ""
    words = {"verified": "verified", "waived": "with checks that a person let pass", "unverified": "unverified"}
    return ": " + ", ".join(f"{closes[kind]} {word}" for kind, word in words.items() if closes[kind])


def numbers(seqs: list[int]) -> str:
    """Say on which records a line rests."""
    if not seqs:
        return ""
    shown = [f"#{seq}" for seq in seqs[:_SHOWN]]
    more = [f"and {len(seqs) - _SHOWN} more"] if len(seqs) > _SHOWN else []
    return f"[{' '.join([*shown, *more])}]"


def markdown(told: json_types.NightReportJson) -> Iterator[str]:
    """Give the report as lines of Markdown; what people and agents wrote cannot act in it."""
    for text, kind in lines(told):
        safe = "".join(f"\\{char}" if char in "\\`*_<>[]#|~" else char for char in text)
        yield {
            "title": f"# ashep: {safe}",
            "heading": f"\n## {safe}\n",
            "line": f"- {safe}",
            "summary": f"  - {safe}",
        }.get(kind, safe)
