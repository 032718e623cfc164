"""How often each edge of a policy was taken, counted from the records; what was counted once is not read again."""

from __future__ import annotations  # the types bring pydantic along, for which no command that reads has time

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ashep.views import Data, Database, read_facts

if TYPE_CHECKING:
    from ashep.views import json_types

_TYPES = (
    "IssueTaken", "IssueAdopted", "RunEnded", "PersonAnswered", "PhaseEntered", "PersonAsked", "IssueFinished",
    "IssueParked",
)  # fmt: skip
_ENDS = {"IssueFinished": "close", "IssueParked": "park"}
Edge = tuple[str, str, str]
"""Source, move, target."""


@dataclass
class EdgeCounts:
    """The edges that issues went along, by policy."""

    _of: tuple[str, int] = ("", 0)
    _stands: dict[str, tuple[str, str, str]] = field(default_factory=dict[str, tuple[str, str, str]])
    """Of each issue its policy, its phase, and what came of that last."""
    _counts: dict[str, Counter[Edge]] = field(default_factory=dict[str, Counter[Edge]])

    def count_edges(self, database: Database | None, policy: str) -> Counter[Edge]:
        """Count what the records tell by now."""
        if database is None:
            return Counter()
        meta = dict(database.execute("SELECT key, value FROM meta WHERE key IN ('instance', 'seq')").fetchall())
        instance, seq = meta.get("instance", ""), int(meta.get("seq", 0))
        if instance != self._of[0] or seq < self._of[1]:
            self._stands.clear()
            self._counts.clear()
            self._of = instance, 0
        if seq > self._of[1]:
            for fact in read_facts(database, _TYPES, "seq > ?", self._of[1]):
                self._tell(fact["issue"], fact["type"], fact["body"])
            self._of = instance, seq
        return self._counts.get(policy, Counter())

    def _tell(self, issue: str, kind: str, body: Data) -> None:
        policy, phase, move = self._stands.get(issue, ("", "", ""))
        match kind:
            case "IssueTaken" | "IssueAdopted":
                policy, phase, move = body["policy"], body.get("phase", ""), ""
            case "RunEnded":
                move = _move(body["state"], body.get("outcome") or {})
            case "PersonAnswered":
                move = body["answer"]
            case "PhaseEntered":
                self._count(policy, phase, move, body["phase"])
                phase, move = body["phase"], ""
            case "PersonAsked":
                self._count(policy, phase, move, body["phase"] if body["human_phase"] else "ask")
                phase, move = body["phase"], "deadline"  # until somebody answers
            case _:
                self._count(policy, phase, move, _ENDS[kind])
        self._stands[issue] = policy, phase, move

    def _count(self, policy: str, source: str, move: str, target: str) -> None:
        if source and move:
            self._counts.setdefault(policy, Counter())[source, move, target] += 1


def _move(state: str, outcome: Data) -> str:
    """What a run's end is called in a policy; of one that somebody ended nothing follows by itself."""
    if state == "succeeded":
        return str(outcome.get("verdict") or outcome.get("result"))
    partial = state == "failed" and outcome.get("result") == "partial"
    return "" if state == "aborted" else "partial" if partial else state.replace("_", " ")


def spread(edges: list[json_types.MoveJson], taken: Counter[Edge]) -> list[json_types.MoveJson]:
    """Give the edges with how often each was taken; a move that no edge has counts for the first that leads there."""
    found = Counter[int]()
    for (source, move, target), many in taken.items():
        ways = [place for place, edge in enumerate(edges) if (edge["source"], edge["target"]) == (source, target)]
        same = [place for place in ways if edges[place]["move"] == move]
        for place in (same or ways)[:1]:
            found[place] += many
    return [{**edge, "taken": found[place]} for place, edge in enumerate(edges)]
