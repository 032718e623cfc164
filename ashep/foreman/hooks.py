"""The endpoints that Claude Code's hooks call: who may, what they hear, and that what was said is kept before that.

Whatever goes wrong here lets Claude Code go on: a mistake of ours is a line in the wrapper's log, and never a prompt
that is stopped.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from anyio.streams.memory import MemoryObjectSendStream
from starlette.routing import Route

from ashep.foreman.entries import Entry
from ashep.foreman.rules import Relaunch
from ashep.foreman.settings import ForemanSettings
from ashep.redaction import Redaction

Topic = Callable[[Sequence[Entry], str], Awaitable[bool]]
"""Whether a prompt begins a new topic, by the recent entries: unsure, slow or failing is no."""

Tool = Callable[[Mapping[str, object]], Awaitable[object]]
"""A web tool: its arguments in, something that JSON can hold out."""


class Kept(Protocol):
    """The history, as far as a hook needs it (`ashep.foreman.history.History`)."""

    def append(self, entry: Entry) -> bool:
        """Keep an entry, durably; False: its id is there."""
        ...

    def recent(self) -> Sequence[Entry]:
        """Give what was said since the last topic, or since it was cleared."""
        ...

    def clear(self, at: datetime, session: str) -> object:
        """Begin the recent history anew."""
        ...


@dataclass
class Desk:
    """What one wrapper has, and what its hooks write in."""

    history: Kept
    redaction: Redaction
    settings: ForemanSettings
    secret: str
    """That of this start: who does not bring it is told nothing."""
    relaunches: MemoryObjectSendStream[Relaunch]
    """Room for one is enough: nothing is sent before `begun` says that the last one is done."""
    now: Callable[[], datetime]
    say: Callable[[str], None]
    """The wrapper's log."""
    is_new_topic: Topic | None = None
    """None: there is no small model."""
    hand_over: Callable[[str], Awaitable[str]] | None = None
    """What `/hand-over ARGUMENTS` answers."""
    tools: Mapping[str, Tool] = field(default_factory=dict[str, Tool])
    """`web-search` and `web-fetch`, as far as they are there."""
    session: str = ""
    """The main agent's session now: it follows `/clear` and `/resume`."""

    def begun(self, session: str, sent: str = "") -> None:
        """Say that a child was started (anew), with this session if it is known, and with this prompt if it got one.

        It is called before each start: the first prompt is not asked about, and one that we sent is not kept twice.
        """
        raise NotImplementedError


def routes(desk: Desk) -> list[Route]:
    """Give the endpoints: `/hook/…`, `/tool/…`, `/clear-history`."""
    raise NotImplementedError
