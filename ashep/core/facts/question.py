"""A question that waits for a person."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

About = Literal["phase", "proof", "change"]
"""phase: what a human phase, or an agent, asks · proof: whether work is let pass whose checks failed · change: whether
work may land that touches what a person is always asked about."""


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
    about: About = "phase"
