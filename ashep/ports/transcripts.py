"""What was said and done in a session, step by step, as people read it."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

MOST_STEPS = 400
"""Steps that are given, the last ones."""

MOST_CHARACTERS = 4_000
"""Characters of what a tool was asked, and of what it answered."""

_MOST_RAW = 16 * MOST_CHARACTERS
"""Characters of either in which secrets are looked for: a text is cut once they are out, or half of one would stay."""


@dataclass(frozen=True, slots=True)
class TranscriptStep:
    """A message, or a call of a tool."""

    role: Literal["user", "assistant", "tool"]
    text: str
    """What was said; of a tool what it answered."""
    tool: str = ""
    arguments: str = ""
    """What the tool was asked."""
    failed: bool = False
    cost: float | None = None
    """What the message cost by its provider, in US dollars; None: that is not known."""
    written_at: datetime | None = None


def make_tool_step(
    tool: str, arguments: object, answer: object, written_at: datetime | None, *, failed: bool
) -> TranscriptStep:
    """Make the step of a tool's call, of whatever its agent wrote down."""
    answer, arguments = (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str) if value else ""
        for value in (answer, arguments)
    )
    return TranscriptStep("tool", answer[:_MOST_RAW], tool[:100], arguments[:_MOST_RAW], failed, written_at=written_at)


def redact_steps(steps: Sequence[TranscriptStep], redact: Callable[[str], str]) -> tuple[TranscriptStep, ...]:
    """Take secrets out of the last steps; then long texts of tools lose their end."""

    def shorten(text: str) -> str:
        return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"

    return tuple(
        replace(
            step, tool=redact(step.tool), text=shorten(redact(step.text)), arguments=shorten(redact(step.arguments))
        )
        if step.role == "tool"
        else replace(step, text=redact(step.text))
        for step in steps[-MOST_STEPS:]
    )


def format_steps(steps: Sequence[TranscriptStep], limit: int) -> str:
    """Return the end of what was said, at most `limit` characters; tools are left out."""
    texts = [f"{step.role}:\n{step.text}\n" for step in steps if step.role != "tool" and step.text]
    return "\n".join(texts)[-limit:] if limit > 0 else ""
