"""A figure, the bound that it is held against, and the table of all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

MISSING = "-"


@dataclass(frozen=True, slots=True)
class Figure:
    """Something that was measured."""

    name: str
    value: float
    unit: str
    bound: float | None = None
    """The most that it may be; None: it is only told."""
    note: str = ""
    """What it was made of."""

    @property
    def share(self) -> float | None:
        """How much of the bound is used up."""
        if self.bound is None:
            return None
        return self.value / self.bound if self.bound else float(self.value > 0)

    @property
    def is_over(self) -> bool:
        return self.bound is not None and self.value > self.bound

    @property
    def verdict(self) -> str:
        if self.bound is None:
            return MISSING
        return "OVER" if self.is_over else "ok"


def times(name: str, pairs: Sequence[tuple[float, float]], bound: float | None, unit: str = "s") -> Figure:
    """How many times the second of each pair the first one is: the median over pairs that were measured together."""
    ratios = [one / other for one, other in pairs]
    mine, other = median(one for one, _ in pairs), median(other for _, other in pairs)
    spread = f", {min(ratios):.2f} to {max(ratios):.2f} in {len(pairs)} pairs" if len(pairs) > 1 else ""
    return Figure(name, median(ratios), "x", bound, f"{short(mine)} {unit} against {short(other)} {unit}{spread}")


def short(value: float) -> str:
    """Write a number with three digits that count."""
    if value == 0 or abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.{1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3}f}"


def _cells(figure: Figure) -> tuple[str, ...]:
    share = figure.share
    return (
        figure.name, f"{short(figure.value)} {figure.unit}",
        MISSING if figure.bound is None else f"{short(figure.bound)} {figure.unit}",
        MISSING if share is None else f"{share:.0%}", figure.verdict, figure.note,
    )  # fmt: skip


HEAD = ("FIGURE", "MEASURED", "BOUND", "OF BOUND", "", "MADE OF")


def table(figures: Sequence[Figure]) -> str:
    """All figures, one a line."""
    rows = [HEAD, *map(_cells, figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "\n".join(lines)


def markdown(figures: Sequence[Figure]) -> str:
    """The same as a table for docs/benchmarks.md."""
    rows = [HEAD, tuple("---" for _ in HEAD), *map(_cells, figures)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
