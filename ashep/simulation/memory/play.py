"""What the agents of the memory server are told, and what they do."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ashep.core.facts import requests, runs


@dataclass(frozen=True, slots=True)
class Prompted:
    """What a scripted agent is told."""

    key: str
    """The session's key."""
    session: str
    text: str
    agent: str | None
    model: runs.Model | None
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
    refused: runs.Refusal | None = None
    """The provider does not take it: it waits for so long first, or, with an error, that is its end (fact 5)."""
    pulse: float | None = 1.0
    """Seconds between its signs of life while it is at work; None: it shows none."""
    tool: str | None = None
    """A tool that is at work all the time."""
    tokens: int = 100
    cost: float = 0.001


def request(play: Play, session: str, message: str, number: int) -> requests.Request:
    """What a session asks because of a prompt, for the so-and-so-many-th time."""
    id = f"{'per' if play.asks == 'permission' else 'que'}_{message}_{number}"
    if play.asks == "permission":
        return requests.Request(id, session, "permission", play.tool_asked, (play.wants,), play.wants)
    return requests.Request(id, session, "question", asks=play.questions)


Script = Callable[[Prompted], Play]
