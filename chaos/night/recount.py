"""The night told once more, from the raw lines of the journal and from the tracker: `ashep report` must say the same.

Nothing of ashep's is used: lines are taken apart as the specification writes them down, where an issue stands is what
the tracker shows, and what a run used is added up anew. `compare` pairs each line of the report with what was counted.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def records(journal: Path) -> Iterator[Row]:
    """Every record, from its raw line; files that were archived included."""
    for file in sorted([*journal.glob("*.jsonl"), *journal.glob("archive/*.jsonl")], key=lambda path: path.name):
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line.rpartition("\t")[0])
            if "type" in row:
                yield row


class Recount:
    """What was counted. `issues` is the tracker's view: status and labels of each."""

    def __init__(self, rows: Iterable[Row], issues: dict[str, Any], since: str) -> None:
        self.rows = list(rows)
        self.issues, self.since = issues, since
        self.by_seq = {row["seq"]: row for row in self.rows}
        self.late = [row for row in self.rows if row["at"] >= since]

    def last(self, kind: str, issue: str) -> Row:
        """The newest record of a type about an issue."""
        return next(row for row in reversed(self.rows) if row["type"] == kind and row.get("issue") == issue)

    def of(self, *kinds: str) -> list[Row]:
        """The records of these types since then."""
        return [row for row in self.late if row["type"] in kinds]

    # --- where the issues stand ---------------------------------------------------------------------------------------

    def closed(self) -> dict[str, str]:
        """The issues that were closed since and are, with the evidence."""
        found: dict[str, str] = {}
        for row in self.of("IssueClosed"):
            issue = row["issue"]
            if issue in self.issues and self.issues[issue].status == "closed":
                ours = row["by"] == "shepherd"
                found[issue] = self.last("IssueFinished", issue)["why"] if ours else row["why"]
        return found

    def waiting(self) -> dict[str, str]:
        """The issues that wait for a person in the tracker, with the question, or how they were taken."""
        found: dict[str, str] = {}
        for name, issue in self.issues.items():
            if "needs:human_approval" in issue.labels and self.is_ours(name, "blocked"):
                found[name] = self.last("PersonAsked", name)["question"]
            elif "needs:human_input" in issue.labels and self.is_ours(name, "blocked"):
                found[name] = self.last("InputWanted", name)["question"]
            elif "ashep:paused" in issue.labels and self.is_ours(name, "in_progress"):
                found[name] = self.last("SessionTaken", name)["why"]
        return found

    def parked(self) -> dict[str, str]:
        """The issues that ashep parked, with code and reason."""
        names = [name for name, issue in self.issues.items() if "ashep:parked" in issue.labels]
        rows = {
            name: self.last("IssueParked", name) for name in names if self.is_ours(name, "blocked") and self.was(name)
        }
        return {name: f"{row['code']}: {row['why']}" for name, row in rows.items()}

    def is_ours(self, issue: str, status: str) -> bool:
        """Whether the tracker shows an issue as ours, in this status."""
        seen = self.issues[issue]
        return seen.status == status and (seen.assignee or "").startswith("ashep-")

    def was(self, issue: str) -> bool:
        """Whether an issue was ever parked: some are created so."""
        return any(row["type"] == "IssueParked" and row["issue"] == issue for row in self.rows)

    # --- what was used ------------------------------------------------------------------------------------------------

    def cost(self) -> dict[str, tuple[int, int, float]]:
        """By provider: runs that ended since or are under way, and the most that each turn was seen to use."""
        planned: dict[str, str] = {}
        ended: dict[str, str] = {}
        used: dict[tuple[str, int], tuple[int, float]] = {}
        for row in self.rows:
            run = str(row.get("run"))
            match row["type"]:
                case "RunPlanned":
                    planned[run] = row["model"]["provider"]
                case "RunWithdrawn":
                    planned.pop(run, None)
                case "RunEnded":
                    ended.setdefault(run, row["at"])
                case "TurnSeen" | "TurnStopped" if row.get("n") and (run not in ended or row["type"] == "TurnStopped"):
                    tokens, cost = used.get((run, row["n"]), (0, 0.0))
                    used[run, row["n"]] = max(tokens, row.get("tokens", 0)), max(cost, row.get("cost", 0.0))
                case _:
                    pass
        sums: dict[str, tuple[int, int, float]] = defaultdict(lambda: (0, 0, 0.0))
        for run, provider in planned.items():
            if run in ended and ended[run] < self.since:
                continue
            runs, tokens, cost = sums[provider]
            mine = [spent for (one, _), spent in used.items() if one == run]
            sums[provider] = runs + 1, tokens + sum(one[0] for one in mine), cost + sum(one[1] for one in mine)
        return dict(sums)


MET = ("BudgetWarned", "BudgetReached", "ProviderRefused", "ProviderRecovered")
"""Records of limits that were met."""


def same(text: str) -> str:
    """A text as a line of the report has it."""
    return " ".join(text.split())


def compare(told: dict[str, Any], count: Recount) -> list[str]:
    """Say where the report and the recount differ, line by line; empty: nowhere."""
    sections: dict[str, list[Row]] = told["sections"]
    wrong: list[str] = []
    wrong += _by_issue("closed", sections["closed"], count.closed())
    wrong += _by_issue("waiting", sections["waiting"], count.waiting())
    wrong += _by_issue("parked", sections["parked"], count.parked())
    wrong += [f"going_on: {line['text']}" for line in sections["going_on"]]  # in the morning nothing is
    wrong += _cost(sections["cost"], count.cost())
    wrong += _one_for_one("limits", sections["limits"], count.of(*MET), "why")
    wrong += _servers(sections["servers"], count)
    audits = count.of("AccountAudited")
    last = audits[-1].get("findings", []) if audits else []
    wrong += [] if len(sections["findings"]) == len(last) else [f"findings: {last}"]
    wrong += _notices(sections["notices"], count)
    for name, lines in sections.items():
        for line in lines:
            wrong += [f"{name}: rests on {seq}, which is no record" for seq in line["seqs"] if seq not in count.by_seq]
            wrong += [f"{name}: rests on nothing: {line['text']}"] if not line["seqs"] else []
    return wrong


def _by_issue(name: str, lines: list[Row], counted: dict[str, str]) -> Iterator[str]:
    shown = Counter(line["issue"] for line in lines)
    yield from (f"{name}: {issue} is told {times} times" for issue, times in shown.items() if times > 1)
    yield from (f"{name}: {issue} is told, and is not so" for issue in sorted(shown.keys() - counted.keys()))
    yield from (f"{name}: {issue} is so, and is not told" for issue in sorted(counted.keys() - shown.keys()))
    for line in lines:
        if line["issue"] in counted and same(counted[line["issue"]]) not in line["text"]:
            yield f"{name}: {line['text']!r} lacks {counted[line['issue']]!r}"


def _cost(lines: list[Row], counted: dict[str, tuple[int, int, float]]) -> Iterator[str]:
    shown = {line["provider"]: (line["runs"], line["tokens"], line["cost"]) for line in lines}
    for provider in sorted(shown.keys() | counted.keys()):
        one, other = shown.get(provider, (0, 0, 0.0)), counted.get(provider, (0, 0, 0.0))
        if one[:2] != other[:2] or abs(one[2] - other[2]) > 1e-6:
            yield f"cost: {provider} is told as {one}, and is {other}"


def _one_for_one(name: str, lines: list[Row], rows: list[Row], words: str) -> Iterator[str]:
    """Each of these records has its line, in order, with its words."""
    if [line["seqs"] for line in lines] != [[row["seq"]] for row in rows]:
        yield f"{name}: {len(lines)} lines for {len(rows)} records"
    for line, row in zip(lines, rows, strict=False):
        if same(row[words]) not in line["text"]:
            yield f"{name}: {line['text']!r} lacks {row[words]!r}"


def _servers(lines: list[Row], count: Recount) -> Iterator[str]:
    said = {line["seqs"][0]: line["text"] for line in lines}
    running, instance = False, ""
    for row in count.rows:
        wanted = ""
        match row["type"]:
            case "DaemonStarted":
                wanted = "ended without a word" if running else "began as process"
                running = True
            case "DaemonStopped":
                wanted, running = "ashep ended: ", False
            case "TurnDied":
                wanted = f"{row['run']}: {same(row['why'])}; it was begun again"
            case "RecycleWanted":
                wanted = f"is to be begun anew: {same(row['why'])}"
            case "ServerRestartPlanned" if row["failures"] > 1:
                wanted = f"failed {row['failures']} times in a row: {same(row['why'])}"
            case "RunnerSeen" if row["state"] != "up":
                wanted = "the agent server "
            case "RunnerSeen":
                wanted = "another life" if instance and row["instance"] not in ("", instance) else ""
                instance = row["instance"] or instance
            case _:
                pass
        if row["at"] < count.since:
            continue
        text = said.pop(row["seq"], "")
        if (wanted not in text) or (bool(wanted) != bool(text)):
            yield f"servers: {row['seq']} {row['type']} is told as {text!r}, not {wanted!r}"
    yield from (f"servers: {text!r} rests on no such record" for text in said.values())


def _notices(lines: list[Row], count: Recount) -> Iterator[str]:
    failed = {row["seq"] for row in count.of("NoticeFailed")}
    given_up = {row["seq"] for row in count.of("NoticesGivenUp")}
    told = Counter(seq for line in lines for seq in line["seqs"] if seq in failed | given_up)
    if told != Counter(failed | given_up):
        yield f"notices: {len(failed)} failures and {len(given_up)} given up are told as {told}"
