"""What follows from what Claude Code tells: what is kept of it, what it is answered, and when a session is begun anew.

Pure: a payload of a hook comes in (facts/claude-code.md 35-43), a decision goes out. Whatever has another form than
expected is let pass, and nothing is kept of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from ashep.foreman.entries import Entry

Payload = Mapping[str, object]
"""What a hook tells."""

Why = Literal["long", "topic", "cleared"]


@dataclass(frozen=True, slots=True)
class Relaunch:
    """The child is to be ended, and a new session begun."""

    why: Why
    prompt: str
    """What the new session is given."""
    line: str = ""
    """What the person is told of it."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What is done about a hook, in this order: entries are appended, the relaunch is told of, it is answered."""

    answer: Mapping[str, object] = field(default_factory=dict[str, object])
    entries: tuple[Entry, ...] = ()
    relaunch: Relaunch | None = None
    ask_topic: bool = False
    """Nothing of this is done yet: whether the prompt begins a new topic is to be found out first (`Seen.topic`)."""
    command: Literal["", "clear", "hand-over"] = ""
    """A command of ours, which is answered with what comes of it."""
    arguments: str = ""
    """Of the command."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known when a hook tells something."""

    session: str
    """The main agent's."""
    now: datetime
    first: bool = False
    """No prompt has come since the session was begun (anew)."""
    sent: str = ""
    """The prompt that the wrapper began the session with, if none has come yet."""
    ending: bool = False
    """A relaunch is under way."""
    long: str = ""
    """Why the session is too long; empty: it is not."""
    topics: bool = False
    """Whether somebody can be asked for a new topic."""
    topic: bool | None = None
    """What the answer was; None: nobody was asked yet."""
    plan: str = ""
    """What the file of a plan holds, where the tool's response names one without its text."""
    call: str = ""
    """The tool call that a subagent was asked by, as far as it is known."""


def decide(event: str, payload: Payload, seen: Seen) -> Decision:
    """Say what is done about a hook."""
    raise NotImplementedError
