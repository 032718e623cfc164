"""Sessions of the memory server: their messages, and what the scripted agents in them are told and do."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal

from ashep.core.facts import requests
from ashep.core.facts.runs import Model, Quota, Refusal
from ashep.ports.runner import SessionRequest


@dataclass(frozen=True, slots=True)
class Prompted:
    """What a scripted agent is told."""

    key: str
    """The session's key."""
    session: str
    text: str
    agent: str | None
    model: Model | None
    turn: int
    """How many turns this prompt has begun before: more than 0 after the server died."""


@dataclass(frozen=True, slots=True)
class Play:
    """What a scripted agent does with a prompt."""

    text: str = ""
    """Its final message."""
    error: str | None = None
    """It ends with this error, as `Name: message`."""
    delay: float = 0.0
    """Seconds until it ends."""
    fate: Literal["ends", "hangs", "stored", "missing", "dies"] = "ends"
    """hangs: busy until aborted · stored: the message stands and nothing follows (fact 16, unknown model; 26 for a
    while) · missing: taken without a trace (fact 16, unknown agent) · dies: after `delay` the turn is gone although the
    server lives (issues 32010, 21524)."""
    asks: Literal["permission", "question"] | None = None
    """It first waits until this is answered."""
    times: int = 1
    """So often, one after the other."""
    tool_asked: str = "read"
    """For which tool leave is asked for."""
    wants: str = "secret.env"
    """What it is to be used for."""
    listed: bool = True
    """Whether the server can list it; else it lists nothing that is asked in the folder."""
    questions: tuple[requests.Asked, ...] = (requests.Asked("Which one?", ("first", "second")),)
    """What is asked."""
    refused: Refusal | None = None
    """The provider does not take it: it waits for so long first, or, with an error, that is its end (fact 5)."""
    pulse: float | None = 1.0
    """Seconds between its signs of life while it is at work; None: it shows none."""
    tool: str | None = None
    """A tool that is at work all the time."""
    tokens: int = 100
    cost: float = 0.001
    cut: bool = False
    """Its final message is cut off by a limit on its length."""
    quota: Quota | None = None
    """What its session shows of the login's quota."""


def request(play: Play, session: str, message: str, number: int) -> requests.Request:
    """What a session asks because of a prompt, for the so-and-so-many-th time."""
    id = f"{'per' if play.asks == 'permission' else 'que'}_{message}_{number}"
    if play.asks == "permission":
        return requests.Request(id, session, "permission", play.tool_asked, (play.wants,), play.wants)
    return requests.Request(id, session, "question", asks=play.questions)


Script = Callable[[Prompted], Play]


@dataclass(slots=True)
class ScriptedTurn:
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

    def has_ended(self, now: datetime) -> bool:
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
class ScriptedMessage:
    """A user's message, and what answers it."""

    id: str
    who: Literal["ashep", "person"]
    text: str
    at: datetime
    agent: str | None = None
    model: Model | None = None
    work: ScriptedTurn | None = None


@dataclass(slots=True)
class ScriptedSession:
    """A conversation."""

    id: str
    request: SessionRequest
    messages: list[ScriptedMessage] = field(default_factory=list["ScriptedMessage"])
