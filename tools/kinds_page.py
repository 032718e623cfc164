"""What each kind of agent can, in docs/guides/agents.md, from what the worlds of their tests declare.

    .venv/bin/python -m tools.kinds_page

A world of the suite of runners can all that its kind does not declare that it cannot, so that a test tries each cell.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from tests.conformance import unsupported

PAGE = Path(__file__).resolve().parent.parent / "docs" / "guides" / "agents.md"
BEGIN, END = "<!-- kinds: begin (made by `python -m tools.kinds_page`) -->", "<!-- kinds: end -->"

KINDS: Mapping[str, Mapping[str, str]] = {
    "OpenCode": {},
    "Claude Code": unsupported.CLAUDE,
    "`opencode acp`": unsupported.OPENCODE_OVER_ACP,
    "Claude Code over ACP": unsupported.CLAUDE_OVER_ACP,
}
"""What each lacks, and why."""

WORDS = {
    "answers": "a prompt is begun once, and its answer is read, whoever was away meanwhile",
    "hangs": "a turn is stopped, and is seen to have stopped",
    "counts": "tokens and models of a turn are known",
    "dies": "a turn that died with its process is known to be dead",
    "drips": "what an agent writes is a sign of life at once",
    "works": "a tool that runs is seen, so that its silence is no stall",
    "asks": "a rule `ask` about reading asks people on the issue",
    "fetches": "a rule `ask` about a page of the web asks people on the issue",
    "questions": "a question of an agent's is asked on the issue",
    "people": "a person who writes into a session is seen, and takes the issue over",
    "fails": "a provider that refuses the credentials is known as that, and holds all its runs",
    "waits": "that an agent waits for its provider is known while it waits",
    "words": "the provider's words are known while it waits",
    "serves": "one server has all turns, is watched, and is begun anew when it is too large",
    "cut": "an answer that a limit on its length cut off is known as that, and gone on with",
    "times": "when the agent wrote last is known",
    "unlists": "a request that its server fails to list is found in another way",
}
"""What the suite knows, in the words of the page."""


def table() -> str:
    """Draw the table, and say why below it."""
    lines = ["| | " + " | ".join(KINDS) + " |", "|---" * (len(KINDS) + 1) + "|"]
    for word, said in WORDS.items():
        lines.append(f"| {said} | " + " | ".join("no" if word in lacks else "yes" for lacks in KINDS.values()) + " |")
    lines += ["", "Where it says no:", ""]
    for word, said in WORDS.items():
        whose = dict[str, list[str]]()
        for name, lacks in KINDS.items():
            if word in lacks:
                whose.setdefault(lacks[word], []).append(name)
        lines += [f"- *{said}*: {' and '.join(names)}: {why}." for why, names in whose.items()]
    return re.sub(r" \(facts/[^)]*\)", "", "\n".join(lines))


def redrawn(page: str) -> str:
    """Give the page with its table made anew."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN} … {END}")
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(redrawn(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
