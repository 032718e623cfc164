"""What the shepherd asks of the world: a tracker, a runner, a clock and a work tree, each with its contract.

Every adapter keeps these contracts, the memory ones and those of users included; `ashep.testing` has one suite a port
that all of them pass. Nothing here assumes processes: an adapter may speak HTTP. Every call has a bound of its own and
can be cancelled; a cancelled or timed-out call leaves no process behind.
"""

from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, Protocol

from pydantic import JsonValue

from ashep.core.facts.runs import Life, Model, Refusal
from ashep.core.facts.tracker import Comment, Issue, NewIssue, Stamp, Status
from ashep.core.policy.policies import PermissionRule
from ashep.core.policy.settings import Change
from ashep.errors import TrackerUnavailable
from ashep.ports.runner import Requesting

# --- the tracker -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Dependency:
    """An edge from an issue to another."""

    on: str
    type: str
    """blocks, parent-child, related or discovered-from."""
    title: str | None = None
    status: Status | None = None


@dataclass(frozen=True, slots=True)
class IssueText:
    """The words of an issue: data for prompts, never read by the core."""

    title: str = ""
    description: str = ""
    design: str = ""
    acceptance: str = ""
    notes: str = ""
    dependencies: tuple[Dependency, ...] = ()
    comments: tuple[Comment, ...] = ()
    """Empty unless the read asked for comments."""
    left_out: tuple[str, ...] = ()
    """Which of these words are too long to be read, with their sizes: a note stands in their place."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One issue as the tracker showed it."""

    issue: Issue
    text: IssueText
    lease: datetime | None = None
    """When the holder's lease runs out, where the read shows one; it moves with each heartbeat, so it is no part of
    what the core compares."""


@dataclass(frozen=True, slots=True)
class Look:
    """A complete view: the ids that are ready, in the tracker's order, and every issue that is not closed."""

    ready: tuple[str, ...]
    issues: tuple[Seen, ...]
    """Of their words only the titles and the dependencies count: nothing that a look decides needs more."""
    unread: tuple[tuple[str, str], ...] = ()
    """Issues that cannot be read because there is too much of them, by id, and how much: nothing is known of them."""
    version: str = ""
    """The tracker's, by the time of the look; empty: the one that `check` gave."""


class HalfLook(TrackerUnavailable):
    """What is ready could not be read; the issues could, and count."""

    def __init__(self, message: str, look: Look) -> None:
        super().__init__(message)
        self.look = look


@dataclass(frozen=True, slots=True)
class TrackerInfo:
    """What there is to say about the tracker at start."""

    version: str
    prefix: str
    """The database's id prefix, as in `<prefix>-xh6`."""
    location: str
    journal: bool
    """Whether the project has its events journal on, so that changes can be followed."""
    tried: str = ""
    """The version that the adapter was tried with."""


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """Take an open, ready issue: assignee, `in_progress`, labels and stamp in one write."""

    issue: str
    stamp: Stamp
    add_labels: tuple[str, ...] = ()
    remove_labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Update:
    """One guarded write: nothing is written unless status and assignee are still as believed."""

    issue: str
    if_status: Status
    if_assignee: str | None
    """None: nobody."""
    stamp: Stamp
    status: Status
    assignee: str | None
    add_labels: tuple[str, ...] = ()
    remove_labels: tuple[str, ...] = ()
    metadata: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """What else is to stand on the issue, by key, beside the stamp: other keys stay. A tracker without a place for
    such things leaves it out."""


@dataclass(frozen=True, slots=True)
class Creation:
    """Create an issue under an id that is already known."""

    id: str
    new: NewIssue
    discovered_from: str
    stamp: Stamp
    parked: bool = False
    """Create it `blocked` and with `labels` (an issue beyond the allowed depth)."""
    labels: tuple[str, ...] = ()


class Tracker(Protocol):
    """A place where issues live and where people and other programs write at any moment.

    Errors, for every method: `TrackerMissing` (only for an unmistakable answer), `TrackerUnavailable` (try again
    later; `unknown=True` after a write whose fate is not known), `TrackerRefused` (never try the same again).
    Every write is made as the actor of this adapter. Texts given to a write reach the tracker unchanged; texts that
    come from it have lost control and bidirectional characters (newline and tab stay).
    """

    actor: str

    async def settle(self) -> None:
        """End what an earlier life of this actor left under way; only the one that owns its state folder may ask."""
        ...

    async def check(self) -> TrackerInfo:
        """Say what is there; raises `TrackerMissing` where it cannot be used at all."""
        ...

    async def look(self) -> Look:
        """Read the complete view in at most two reads; an incomplete or implausible one is `TrackerUnavailable`, or
        `HalfLook` where it lacks no more than what is ready.
        """
        ...

    async def issue(self, issue: str) -> Seen | None:
        """Read one issue (closed ones too) with its comments; None where there is no issue of exactly this id."""
        ...

    async def claim(self, request: ClaimRequest) -> Seen:
        """Take the issue: after a return exactly this actor holds it, as it may before; `ClaimLost`: it cannot."""
        ...

    async def update(self, update: Update) -> Seen:
        """Write all of it or nothing. `GuardTripped`: not as believed; `TrackerRefused`: a rule of the tracker's."""
        ...

    async def heartbeat(self, issue: str) -> None:
        """Renew this actor's lease on an issue that is `in_progress`; `ClaimLost` where it is not, or is another's."""
        ...

    async def reclaim(self, issue: str, holder: str, older_than: timedelta) -> bool:
        """Set an issue back to `open`, without assignee, whose lease by this holder ran out so long ago; whether it
        was. A holder that renewed it meanwhile keeps it.
        """
        ...

    async def relabel(self, issue: str, add: tuple[str, ...], remove: tuple[str, ...]) -> None:
        """Change labels only; not guarded, idempotent."""
        ...

    async def comment(self, issue: str, text: str, marker: str) -> None:
        """Post a comment that ends with the marker on a line of its own. Not idempotent: probe with `commented`."""
        ...

    async def commented(self, issue: str, marker: str) -> bool:
        """Whether a comment with this marker stands (the probe of `comment`)."""
        ...

    async def create(self, creation: Creation) -> None:
        """Create the issue with an edge `discovered-from`. Repeating it changes nothing: an issue of that id with our
        stamp counts as created; one without it is `TrackerRefused`.
        """
        ...

    async def changes(self, issue: str) -> tuple[Change, ...]:
        """Who put labels on the issue, took them off, set its status, or assigned it: newest first. Those of one second
        are in no order. What the tracker keeps no record of is not there.
        """
        ...

    def hints(self) -> AsyncIterator[None]:
        """Yield whenever something may have changed that this adapter did not write itself. Only a hint; ends at once
        where nothing can be watched. Yields coalesce.
        """
        ...

    async def aclose(self) -> None:
        """Let go of everything; nothing of ours is left running."""
        ...


# --- the runner --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Catalog:
    """What the agent server offers now."""

    version: str
    instance: str
    """This life of the server: by pid and start, or (attached) new each time its address refused a connection."""
    agents: tuple[str, ...]
    models: tuple[Model, ...]
    default: Model | None
    """What a prompt without a model would use, where the server says so."""
    memory: int | None = None
    """Bytes that a managed server, and what it keeps running, hold; None: not ours, or not known."""
    tried: str = ""
    """The version that the adapter was tried with."""


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """Open a session of its own for a run."""

    key: str
    """`<instance>:<run>` or with a suffix; stands in the session's metadata and finds it again."""
    title: str
    access: Literal["read", "write"]
    agent: str | None = None
    model: Model | None = None
    permissions: tuple[PermissionRule, ...] = ()
    """The user's rules: the first that fits decides. None of them widens the access."""
    directory: str | None = None
    """The folder in which it works; None: the project's."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One message to a session, under ids of our own so that sending it again starts nothing new."""

    session: str
    message_id: str
    """`msg_…`"""
    part_id: str
    """`prt_…`"""
    text: str
    agent: str | None = None
    model: Model | None = None


TurnState = Literal["missing", "stored", "running", "incomplete", "finished"]
"""missing: no such message (or it is without parts) · stored: the message stands, no assistant message follows, not
busy · running: busy (or retrying) · incomplete: an assistant message without an end, not busy · finished: the last
assistant message that is no summary has an error, or a finish other than tool-calls and unknown, and not busy, or busy
with what a person wrote behind it (facts/opencode.md 4, 8, 11, 24)."""


MOST_TEXT = 256 * 1024
"""Characters that a runner gives of what an agent said last: the end, where the outcome stands."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What followed a prompt, up to the next user message that is neither ours nor the server's own."""

    state: TurnState
    instance: str
    """The server's instance that answered this read."""
    text: str = ""
    """The text of the last assistant message that is no summary; of a longer one its last `MOST_TEXT` characters."""
    error: str | None = None
    """Its error, as `Name: message`."""
    provider: str | None = None
    model: str | None = None
    tokens: int = 0
    """Input, output, reasoning and cache reads and writes of the whole turn."""
    cost: float = 0.0
    """In the provider's currency, of the whole turn."""
    people: tuple[str, ...] = ()
    """Ids of user messages after the prompt that are neither ours nor the server's own."""
    refused: Refusal | None = None
    """The provider did not take it: the server waits to ask again, or that was the turn's end."""


@dataclass(frozen=True, slots=True)
class Sign:
    """Something happened in a session; `session` None: the stream was (re)connected, anything may have been missed."""

    session: str | None
    urgent: bool = True
    """Its turn may have ended, or waits for somebody, or a person wrote there; False: it goes on."""


class Runner(Requesting, Protocol):
    """A server that runs coding agents in sessions. Errors, for every method: `RunnerUnavailable` (no answer in time,
    connection refused, 5xx), `RunnerUnauthorized`, `RunnerRefused` (never try the same again).
    """

    async def start(self) -> None:
        """Make the server answer: start or re-attach to a managed one, or reach the attached one."""
        ...

    async def catalog(self) -> Catalog:
        """Say what the server offers."""
        ...

    async def open_session(self, request: SessionRequest) -> str:
        """Open a session with a ruleset of its access and give its id. Not idempotent: probe with `find_session`."""
        ...

    async def find_session(self, key: str, directory: str | None = None) -> str | None:
        """The oldest session in this folder (None: the project's) that carries this key, if one does."""
        ...

    async def has_session(self, session: str) -> bool:
        """Whether the server still has this session."""
        ...

    async def asked(self, session: str) -> tuple[str, ...]:
        """Ids of the user messages in the session, the server's own included; none where there is no such session."""
        ...

    async def send(self, prompt: Prompt) -> str:
        """Deliver the prompt; give the server's instance that has taken it. Idempotent by the prompt's ids."""
        ...

    async def turn(self, session: str, message_id: str, ours: frozenset[str] = frozenset()) -> Turn:
        """Read what followed the prompt. `ours`: user messages of ours, and those that stood there before it."""
        ...

    async def life(self, session: str) -> Life:
        """What signs of life a busy session shows, its subagents' included. Only what was watched counts as quiet."""
        ...

    async def busy(self, sessions: Collection[str]) -> frozenset[str]:
        """Those of these sessions that run a turn now. Absence proves nothing while a turn is young (fact 26)."""
        ...

    async def abort(self, session: str) -> None:
        """Stop the session's turn, and return only when a read showed that it stopped; its error then is
        `MessageAbortedError: …`. Nothing to stop is fine.
        """
        ...

    async def transcript(self, session: str, limit: int) -> str:
        """The tail of the session's text, at most `limit` characters, for an extraction."""
        ...

    def signs(self) -> AsyncIterator[Sign]:
        """Signs of life of sessions, for ever, reconnecting with backoff; a reconnect yields `Sign(None)`."""
        ...

    async def aclose(self) -> None:
        """Let go of connections; a managed server goes on."""
        ...

    async def stop_server(self) -> bool:
        """End a managed server and see it dead; False where there is none. Never ends what ashep did not start."""
        ...


# --- the clock ----------------------------------------------------------------------------------------------------


class Clock(Protocol):
    """Time from outside of the core."""

    def now(self) -> datetime:
        """The wall clock, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that only grow."""
        ...

    async def sleep_until(self, when: datetime) -> None:
        """Return once `now()` has reached `when`, or early; a caller looks again."""
        ...
