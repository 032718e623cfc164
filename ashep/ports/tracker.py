"""Port of the tracker: issues as it shows them, claims, updates, comments and new issues.

Every adapter keeps these contracts, the memory ones and those of users included; `ashep.extras.testing` has one suite a
port that all of them pass. Nothing here assumes processes: an adapter may speak HTTP. Every call has a bound of its own
and can be cancelled; a cancelled or timed-out call leaves no process behind.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from pydantic import JsonValue

from ashep.core.facts.tracker import Change, Comment, Issue, NewIssue, Stamp, Status
from ashep.errors import TrackerUnavailable

LONGEST_CALL = 600.0
"""Seconds after which a call ends that was given more than its bound, because it works and is slow."""

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
    invisible: int = 0
    """How many characters that nobody sees were taken out of the issue as it was read."""


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
    """Issues that cannot be read, by id, and why (too big, or of another form): nothing is known of them."""
    version: str = ""
    """The tracker's, by the time of the look; empty: the one that `check` gave."""


class PartialSnapshot(TrackerUnavailable):
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
    """What else is to stand on the issue, by key, next to the stamp: other keys stay. A tracker without a place for
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
    come from it have lost control, bidirectional and invisible characters (newline and tab stay).
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
        `PartialSnapshot` where it lacks no more than what is ready.
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


@dataclass(frozen=True, slots=True)
class AnnotatedIssue:
    """What stands on an issue."""

    acceptance: str
    """Its acceptance criteria exactly as they stand, control characters included: to be written back, not shown."""
    metadata: Mapping[str, JsonValue]
    """By key; the key `ashep` is the daemon's stamp."""


@dataclass(frozen=True, slots=True)
class IssueSummary:
    """An issue in a list."""

    id: str
    title: str
    status: str
    metadata: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class IssueDraft:
    """An issue that is to be created, under an id that is already known."""

    id: str
    title: str
    description: str
    type: str
    priority: int
    acceptance: str
    metadata: Mapping[str, JsonValue]
    labels: tuple[str, ...] = ()
    dependencies: tuple[Dependency, ...] = ()
    external_ref: str = ""
    """Where it is kept elsewhere; empty: nowhere."""


@dataclass(frozen=True, slots=True)
class IssuePatch:
    """What is to stand on an issue; None: what stands there stays. Spaces around a title are not kept."""

    title: str | None = None
    description: str | None = None
    priority: int | None = None
    acceptance: str | None = None
    metadata: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """Keys that are set; the others stay. Never the key `ashep`."""
    add_labels: tuple[str, ...] = ()
    remove_labels: tuple[str, ...] = ()


class Annotations(Protocol):
    """Words and metadata of issues.

    No write to an issue that is there touches status, assignee, the daemon's stamp, or a label that is not named, so
    that it may be made next to a daemon at any moment. Errors: those of `ashep.ports.tracker.Tracker`.
    """

    async def prefix(self) -> str:
        """Give what all ids of the database begin with, as in `<prefix>-xh6`."""
        ...

    async def marked(self, key: str) -> tuple[tuple[Seen, Mapping[str, JsonValue]], ...]:
        """List all issues whose metadata have this key, closed ones too, each with its metadata; by id, in one read."""
        ...

    async def depend(self, issue: str, on: str, *, stands: bool = True) -> None:
        """Let an issue wait for another (`blocks`), or no more. Idempotent; `TrackerRefused`: each would for itself."""
        ...

    async def read(self, issue: str) -> AnnotatedIssue | None:
        """Read an issue, closed ones too; None where there is none of exactly this id."""
        ...

    async def listed(self, status: str | None) -> tuple[IssueSummary, ...]:
        """List issues with this status, `all` of them, or (None) those that are not closed; by id."""
        ...

    async def create(self, fresh: IssueDraft) -> bool:
        """Create an issue, with everything at once; False: there is one of this id, which stays as it is.

        Where the error says that its fate is unknown, reading it tells.
        """
        ...

    async def rewrite(self, issue: str, words: IssuePatch) -> None:
        """Replace what is given, all of it at once. Idempotent."""
        ...

    async def annotate(self, issue: str, values: Mapping[str, JsonValue]) -> None:
        """Set keys of the metadata; those that are not named stay as they are. Idempotent. Never the key `ashep`."""
        ...
