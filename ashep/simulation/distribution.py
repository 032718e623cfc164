"""What many lives have in common: how they ended, and how much each of them took."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

from ashep.simulation.lives import Life
from ashep.simulation.script import written

STUCK_SHOWN = 20
"""Lives that got stuck, of which the script is given."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The least, the middle, what nine of ten stay within, the most, and the mean."""

    min: float
    median: float
    p90: float
    max: float
    mean: float

    @staticmethod
    def of(values: Iterable[float]) -> "Spread":
        """Order some numbers, one at least; each figure but the mean is one of them (the nearest rank)."""
        ordered = sorted(values)
        middle, most = (ordered[ceil(len(ordered) * share) - 1] for share in (0.5, 0.9))
        return Spread(ordered[0], middle, most, ordered[-1], round(sum(ordered) / len(ordered), 3))


@dataclass(frozen=True, slots=True)
class Distribution:
    """All of some lives."""

    lives: int
    ends: tuple[tuple[str, str, int], ...]
    """How they ended: closed, parked or waiting and why by its code, and how many; the most frequent first."""
    runs: Spread
    visits: Spread
    questions: Spread
    seconds: Spread
    phases: tuple[tuple[str, Spread], ...]
    """Visits of each phase, in the policy's order."""
    stuck: tuple[str, ...]
    """What brings lives to where nothing can happen to them any more, as scripts: there must be none."""

    @staticmethod
    def of(lives: Sequence[Life], phases: Sequence[str]) -> "Distribution":
        """Sum lives up, one at least."""
        ends = Counter((life.end or "stuck", life.code) for life in lives)
        stuck = [written(life.moves) for life in lives if life.end == "stuck"]
        return Distribution(
            len(lives),
            tuple((end, code, count) for (end, code), count in sorted(ends.items(), key=lambda one: (-one[1], one[0]))),
            Spread.of(life.runs for life in lives),
            Spread.of(life.visits.total() for life in lives),
            Spread.of(life.questions for life in lives),
            Spread.of(round(life.time.total_seconds(), 3) for life in lives),
            tuple((name, Spread.of(life.visits[name] for life in lives)) for name in phases),
            tuple(stuck[:STUCK_SHOWN]),
        )

    def as_json(self) -> dict[str, Any]:
        """Give it as plain JSON data; times are seconds."""
        return {
            "lives": self.lives,
            "ends": [{"end": end, "code": code or None, "lives": count} for end, code, count in self.ends],
            "per_issue": {
                "runs": asdict(self.runs), "visits": asdict(self.visits), "questions": asdict(self.questions),
                "seconds": asdict(self.seconds),
            },
            "visits_of": {name: asdict(spread) for name, spread in self.phases},
            "stuck": list(self.stuck),
        }  # fmt: skip
