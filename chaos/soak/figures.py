"""Samples, and whether what they say is flat."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

Sample = dict[str, float]


@dataclass(frozen=True)
class Bound:
    """How much something may grow from the second quarter to the last."""

    share: float = 0.0
    """Of what it was."""
    amount: float = 0.0
    """Beyond that."""


@dataclass(frozen=True)
class Flat:
    """What became of one figure."""

    name: str
    before: float
    after: float
    most: float
    bound: Bound | None

    @property
    def good(self) -> bool:
        """Whether it did not grow; what has no bound is only shown."""
        return self.bound is None or self.after <= self.before * (1 + self.bound.share) + self.bound.amount

    def __str__(self) -> str:
        verdict = "" if self.bound is None else "flat" if self.good else "GROWS"
        return f"{self.name:<34} {self.before:>14,.1f} {self.after:>14,.1f} {self.most:>14,.1f}  {verdict}"


HEADER = f"{'':<34} {'2nd quarter':>14} {'last quarter':>14} {'at most':>14}"


def judge(samples: Sequence[Sample], bounds: dict[str, Bound]) -> list[Flat]:
    """Compare the medians of the second and the last quarter, figure by figure."""
    quarter = len(samples) // 4
    if quarter < 1:
        raise ValueError(f"{len(samples)} samples are too few")
    found: list[Flat] = []
    for name in samples[0]:
        values = [sample[name] for sample in samples]
        before, after = median(values[quarter : 2 * quarter]), median(values[-quarter:])
        found.append(Flat(name, before, after, max(values), bounds.get(name)))
    return found
