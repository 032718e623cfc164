"""What the memory server keeps: its sessions, their messages, and the turns of agents in them."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal

from ashep.core.facts.runs import Model, Refusal
from ashep.ports.runner import SessionRequest
from ashep.simulation.memory.play import Play


@dataclass(slots=True)
class Work:
    """A turn of an agent."""

    play: Play
    instance: str
    began: datetime
    at: float
    """The same, on the clock that only grows."""
    ends: datetime | None
    asked: int = 0
    """How often it still asks; the present question included."""
    told: bool = False
    """Whether the stream told of that question."""
    dead: bool = False
    error: str | None = None

    def active(self, now: datetime) -> bool:
        """Whether it keeps its session busy."""
        return not self.dead and (self.asked > 0 or self.ends is None or now < self.ends)

    def over(self, now: datetime) -> bool:
        """Whether it came to its end, and did not die."""
        return not self.dead and not self.active(now) and (self.play.fate != "dies" or self.error is not None)

    def refused(self, now: datetime) -> Refusal | None:
        """The provider's refusal while it waits to ask again."""
        refusal = self.play.refused
        if refusal is None or refusal.again_in is None:
            return None
        left = self.began + refusal.again_in - now
        return replace(refusal, again_in=left) if left > timedelta() else None


@dataclass(slots=True)
class Message:
    """A user's message, and what answers it."""

    id: str
    who: Literal["ashep", "person"]
    text: str
    at: datetime
    agent: str | None = None
    model: Model | None = None
    work: Work | None = None


@dataclass(slots=True)
class Session:
    """A conversation."""

    id: str
    request: SessionRequest
    messages: list[Message] = field(default_factory=list["Message"])
