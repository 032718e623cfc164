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
    """Make the step of a tool's call, of whatever its agent wrote down; long texts lose their end."""
    return TranscriptStep("tool", _write(answer), tool[:100], _write(arguments), failed, written_at=written_at)


def _write(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str) if value else ""
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"


def redact_steps(steps: Sequence[TranscriptStep], redact: Callable[[str], str]) -> tuple[TranscriptStep, ...]:
    """Take secrets out of the last steps."""
    return tuple(
        replace(step, text=redact(step.text), arguments=redact(step.arguments)) for step in steps[-MOST_STEPS:]
    )


def format_steps(steps: Sequence[TranscriptStep], limit: int) -> str:
    """Return the end of what was said, at most `limit` characters; tools are left out."""
    texts = [f"{step.role}:\n{step.text}\n" for step in steps if step.role != "tool" and step.text]
    return "\n".join(texts)[-limit:] if limit > 0 else ""
