"""What an agent may try, and what comes of it: written from the table of the tests to docs/attacks.md.

.venv/bin/python -m tools.attacks_page
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from chaos.attacks.table import ROWS, Row

PAGE = Path(__file__).resolve().parent.parent / "docs" / "attacks.md"
HEAD = """# What an agent may try

Each line is tried by a test on the real tools: with `agents.sandbox: bwrap`, and with `none`, where a place for each
issue is all that there is. This page is made of their table (`.venv/bin/python -m tools.attacks_page`).

**contained**: it gets nothing · **detected**: it is refused, or told to people · **open**: it gets what it wants;
[what is contained](security.md) says so · *the machine's*: without a sandbox that hangs on the machine and the user,
and no test tries it.
"""
_SHOWN = {"machine": "*the machine's*", "open": "**open**", "untried": "not tried"}


def page() -> str:
    """Write the page."""
    rows = [row for _, group in ROWS for row in group]
    lines = [HEAD, f"Of {len(rows)} ways: {_counts(rows, 'boxed')} with a sandbox; {_counts(rows, 'bare')} without.\n"]
    for title, group in ROWS:
        lines += [f"## {title}\n", "| it tries | with a sandbox | without | tried by |", "|---|---|---|---|"]
        lines += [*map(_line, group), ""]
    return "\n".join(lines)


def _counts(rows: Sequence[Row], how: str) -> str:
    counted = Counter(getattr(row.way, how) for row in rows)

    def told() -> Iterator[str]:
        for word, shown in (("contained", "contained"), ("detected", "detected"), ("open", "open")):
            if counted[word]:
                yield f"{counted[word]} {shown}"
        if left := counted["machine"] + counted["untried"]:
            yield f"{left} not tried"

    return ", ".join(told())


def _line(row: Row) -> str:
    words = (_SHOWN.get(one, one) for one in (row.way.boxed, row.way.bare))
    return f"| {row.way.name} | {' | '.join(words)} | `{row.by}` |"


if __name__ == "__main__":
    PAGE.write_text(page())
