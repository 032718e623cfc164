"""The words of a pull request, made of what is known. All that agents or checks wrote stands in fences.

In a fence a forge reads no mention, no link, no `closes #1`, no quick action and no markup, whatever the text holds.
"""

import re
from collections.abc import Sequence

from ashep.core.facts.delivery import UNTESTED, CheckResult, Verification, has_run, status_of, summary_of
from ashep.core.text import clean

OURS = "<!-- agent-shepherd:"
"""How a mark of Agent Shepherd begins."""

MOST_TITLE = 200
MOST_SUMMARY = 8_000
"""Characters that are shown of what the agent said."""
MOST_CHECKS = 100
MOST_MESSAGE = 300
MOST_RUNS = 50

_FENCE = re.compile(r"`{3,}")
_MARKS = {"passed": "passed ", "failed": "FAILED ", "error": "ERROR  ", "skipped": "skipped"}


def marker(key: str) -> str:
    """Give the line by which a pull request of ours is found again; a forge shows no comment of HTML."""
    safe = re.sub(r"[^A-Za-z0-9._/:-]", "_", key).replace("--", "_")
    return f"{OURS} {safe} -->"


def title(issue: str, said: str) -> str:
    """Give a title: one line that names the issue."""
    words = " ".join(clean(said).split()) or "Landed by Agent Shepherd"
    name = f" ({' '.join(clean(issue).split())})"
    room = MOST_TITLE - len(name)
    return (words if len(words) <= room else words[: room - 1].rstrip() + "…") + name


def body(
    *,
    key: str,
    issue: str,
    summary: str,
    verification: Verification | None,
    runs: Sequence[tuple[str, int]],
    closes: str = "",
) -> str:
    """Say what was done, what shows it, and how to find out more; ends with the marker. First: that no check ran.

    `closes`: the issue at the forge that a merge closes, as `#12` · `summary`: what the last outcome said ·
    `runs`: ids of the issue's runs, with their trace ids.
    """
    traces = [f"{' '.join(clean(run).split())} (trace {trace})" for run, trace in runs[-MOST_RUNS:]]
    untested = verification is None or not has_run(result.status for result in verification.results)
    parts = [
        f"**{UNTESTED}**" if untested else "",
        f"Agent Shepherd asks to merge the work on issue {_code(issue)}.",
        f"Closes {closes}" if closes else "",
        "What the agent says of it:\n\n" + fenced(_capped(clean(summary).strip() or "(nothing)", MOST_SUMMARY)),
        _evidence(verification),
        f"Its runs, which {_code('ashep why ' + issue)} explains:\n\n{fenced(chr(10).join(traces))}" if traces else "",
        "What you say here, and whether you merge or close it, reaches the issue.",
        marker(key),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _evidence(found: Verification | None) -> str:
    if found is None:
        return "No check was carried out: this is **unverified**."
    counted = summary_of(found.results)
    where = {True: ", in a sandbox", False: ", without a sandbox", None: ""}[found.isolated]
    head = (
        f"Agent Shepherd itself checked git tree {_code(found.tree)} (commit {_code(found.commit)}){where}: "
        f"**{status_of(found.results)}**; {counted.passed} of {counted.total} passed, {counted.failed} failed, "
        f"{counted.skipped} left to people."
    )
    lines = [_line(result) for result in found.results[:MOST_CHECKS]]
    if len(found.results) > MOST_CHECKS:
        lines.append(f"… and {len(found.results) - MOST_CHECKS} more")
    return f"{head}\n\n{fenced(chr(10).join(lines))}" if lines else head


def _line(result: CheckResult) -> str:
    message = " ".join(clean(result.message).split())
    note = " (it passed before any work, and so proves nothing)" if result.proves_nothing else ""
    note = f" (it {result.blame})" if result.on_base else note
    name = " ".join(clean(result.check_id).split())
    return f"{_MARKS[result.status]} {name}: {_capped(message, MOST_MESSAGE)}{note} [{result.duration_ms} ms]"


def fenced(text: str) -> str:
    """Give a text in a fence that nothing in it can end."""
    longest = max(map(len, _FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def _code(text: str) -> str:
    """Give a word as code, which needs more backticks around than any within."""
    word = " ".join(clean(text).split())
    ticks = "`" * (max(map(len, re.findall(r"`+", word)), default=0) + 1)
    gap = " " if len(ticks) > 1 else ""
    return f"{ticks}{gap}{word}{gap}{ticks}"


def _capped(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
