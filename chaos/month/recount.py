"""The same comparison once more, from the raw lines of the journal, for one question only: reviews of docs left out.

Nothing of ashep's is used. An issue with the label `docs` goes another way where the record enters `review` for the
first time: it asks at once. The answer is known where the record asks that before anybody writes again, and somebody
answers.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]

ENDS = {
    "PersonAnswered", "IssueFinished", "IssueParked", "CycleBegan", "IssueClosed", "IssueLeft", "IssueGivenBack",
}  # fmt: skip
MAX_RUNS = 12


@dataclass
class Counted:
    """What a recount of an issue comes to."""

    verdict: str
    runs: tuple[int, int, int]
    """Recorded, and at least and at most under the other policy."""
    questions: tuple[int, int, int]


def recount(rows: Iterable[Row], docs: set[str]) -> dict[str, Counted]:
    """Count every issue that was taken."""
    by_issue: dict[str, list[Row]] = {}
    for row in rows:
        by_issue.setdefault(str(row.get("issue")), []).append(row)
    found: dict[str, Counted] = {}
    for issue, mine in by_issue.items():
        if any(row["type"] == "IssueTaken" for row in mine):
            found[issue] = _one(mine, docs=issue in docs)
    for row in (row for mine in by_issue.values() for row in mine if row["type"] == "CreationWanted"):
        child, maker = found.get(row["id"]), found[row["issue"]]
        fork = _fork(by_issue[row["issue"]]) if row["issue"] in docs else None
        if child is None or fork is None or row["seq"] < fork["seq"]:
            continue
        recorded = _count(by_issue[row["id"]])
        if maker.verdict == "unknown":  # nobody knows whether it would have been asked for
            recorded = _count(_until_cycle_ends(by_issue[row["id"]], fork["seq"]))
            found[row["id"]] = Counted("unknown", (recorded[0], 0, MAX_RUNS), (recorded[1], 0, 1))
        else:
            found[row["id"]] = Counted("differs", (recorded[0], 0, 0), (recorded[1], 0, 0))
    return found


def _count(rows: Iterable[Row]) -> tuple[int, int]:
    """Runs and questions."""
    kinds = Counter[str]()
    for row in rows:
        kinds[row["type"]] += 1
        kinds["no run"] += row["type"] == "RunWithdrawn" or (row["type"] == "RunEnded" and not row.get("counts", True))
    return kinds["RunPlanned"] - kinds["no run"], kinds["PersonAsked"]


def _fork(mine: list[Row]) -> Row | None:
    return next((row for row in mine if row["type"] == "PhaseEntered" and row["phase"] == "review"), None)


def _until_cycle_ends(mine: list[Row], after: int) -> list[Row]:
    """The rows up to where the cycle ends that goes on there; what begins with the taking ends none."""
    for place, row in enumerate(mine):
        begins = row["type"] == "CycleBegan" and mine[place - 1]["type"] == "IssueTaken"
        if row["seq"] > after and row["type"] in ENDS and not begins:
            return mine[: place + 1]
    return mine


def _until_life_ends(mine: list[Row], after: int) -> list[Row]:
    for place, row in enumerate(mine):
        if row["seq"] > after and row["type"] in ("IssueClosed", "IssueLeft", "IssueGivenBack"):
            return mine[: place + 1]
    return mine


def _one(mine: list[Row], *, docs: bool) -> Counted:
    fork = _fork(mine) if docs else None
    if fork is None:
        runs, questions = _count(mine)
        return Counted("same", (runs, runs, runs), (questions, questions, questions))
    runs, questions = _count(row for row in mine if row["seq"] < fork["seq"])
    later = [row for row in mine if row["seq"] > fork["seq"]]
    answer = _answer(later)
    if answer is None:  # asked, and nobody knows what would have been said
        recorded = _count(_until_cycle_ends(mine, fork["seq"]))
        return Counted("unknown", (recorded[0], runs, runs), (recorded[1], questions + 1, questions + 1))
    if answer["answer"] == "approved":
        recorded = _count(_until_life_ends(mine, fork["seq"]))
        return Counted("differs", (recorded[0], runs, runs), (recorded[1], questions + 1, questions + 1))
    begun = next(row for row in later if row["type"] == "CycleBegan" and row["seq"] > answer["seq"])
    recorded = _count(_until_cycle_ends(mine, begun["seq"]))
    # the run that the answer leads to is certain, up to `max_runs` may follow, and one question
    most = (runs + MAX_RUNS, questions + 2)
    return Counted("unknown", (recorded[0], runs + 1, most[0]), (recorded[1], questions + 1, most[1]))


def _answer(later: list[Row]) -> Row | None:
    """The answer to the question of the human phase, if that was asked before anybody wrote, or anything else ended."""
    asked = False
    for row in later:
        match row["type"]:
            case "RunPlanned" if not asked and row["access"] == "write":
                return None
            case "PersonAsked" if row["phase"] == "human_review":
                asked = True
            case "PersonAnswered":
                return row if asked else None
            case kind if kind in ENDS or kind == "SessionTaken":
                return None
            case _:
                pass
    return None
