"""A question that waits for a person."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Question:
    """An open question remembers who asked: the answer leads back there, or along a human phase's edges."""

    phase: str
    text: str
    human_phase: bool
    asked: datetime
    due: datetime
    remind: datetime | None = None
    """When people are to be reminded of it."""
    reminded: datetime | None = None
    """When they were last."""
