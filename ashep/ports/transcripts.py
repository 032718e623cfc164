"""What was said and done in a session, step by step, as people read it."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from itertools import accumulate
from typing import Literal

from pydantic import TypeAdapter

MOST_STEPS = 400
"""Steps that are given, the last ones."""

MOST_CHARACTERS = 4_000
"""Characters of what a tool was asked, and of what it answered."""

MOST_KEPT = 200_000
"""Characters of a turn's steps, about, that are kept, of the last ones."""

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


@dataclass(frozen=True, slots=True)
class KeptSteps:
    """The end of what was said and done, without secrets."""

    steps: tuple[TranscriptStep, ...] = ()
    cut: bool = False
    """More was said before."""

    def shorten(self, limit: int) -> "KeptSteps":
        """Leave as many of the last steps as are not longer than `limit` characters, and of the last one its end."""
        lengths = accumulate(len(step.text) + len(step.arguments) for step in reversed(self.steps))
        number = max(1, sum(length <= limit for length in lengths))
        steps = tuple(replace(step, text=step.text[-limit:]) for step in self.steps[-number:])
        return KeptSteps(steps, self.cut or steps != self.steps)


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


def write_steps(steps: Sequence[TranscriptStep], redact: Callable[[str], str]) -> str:
    """Give the end of a turn's steps, without secrets, as the text that is kept."""
    end = KeptSteps(redact_steps(steps, redact), len(steps) > MOST_STEPS).shorten(MOST_KEPT)
    return json.dumps(asdict(end), ensure_ascii=False, default=str)


def read_steps(texts: Sequence[str]) -> KeptSteps:
    """Read what was kept of a run's turns, in their order. Raises ValueError."""
    turns = [TypeAdapter(KeptSteps).validate_json(text) for text in texts]
    return KeptSteps(tuple(step for turn in turns for step in turn.steps), any(turn.cut for turn in turns))


def format_steps(steps: Sequence[TranscriptStep], limit: int) -> str:
    """Return the end of what was said, at most `limit` characters; tools are left out."""
    texts = [f"{step.role}:\n{step.text}\n" for step in steps if step.role != "tool" and step.text]
    return "\n".join(texts)[-limit:] if limit > 0 else ""
