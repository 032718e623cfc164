"""Facts of the tracker: what it shows, and what it answers to our writes."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ashep.core.facts import Answer, OfIssue
from ashep.core.facts.approvals import Signature

Difference = tuple[Literal["added", "removed", "status", "assignee"], str]
"""What can be changed of an issue: a label that was put on or taken off, its status, or who has it (empty: nobody)."""


@dataclass(frozen=True, slots=True)
class Change:
    """The tracker's record of who changed an issue."""

    id: str
    what: Difference
    actor: str
    at: datetime


# --- what was seen ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TrackerSeen:
    """The tracker answered. By difference."""

    actor: str
    prefix: str
    version: str
    unread: tuple[tuple[str, str], ...] = ()
    """Issues that it lists and that cannot be read, by id, and why: nothing is known of them."""
    lacks: str = ""
    """Why it could not be read what is ready, look after look; the rest was."""
    replaced: str = ""
    """Which version answers where another one did before; empty: the same does."""


@dataclass(frozen=True, slots=True)
class TrackerLost:
    """The tracker stopped answering; nothing is started until it was seen again."""

    error: str


@dataclass(frozen=True, slots=True)
class ChangeHinted:
    """Something may have changed in the tracker: the ready view is no longer good for a start."""


@dataclass(frozen=True, slots=True)
class ReadySeen:
    """A complete read of what is ready. Written no more: it named all of it at every change."""

    ids: tuple[str, ...]
    as_of: int


@dataclass(frozen=True, slots=True)
class ReadyChanged:
    """A complete read of what is ready, by difference: also one that shows no change, after a hint of one."""

    added: tuple[str, ...]
    """In the tracker's order."""
    removed: tuple[str, ...]
    """Sorted."""
    as_of: int


@dataclass(frozen=True, slots=True)
class Stamp:
    """Our metadata on an issue (key `ashep`): who holds it, since which decision, and how far it has got."""

    instance: str
    seq: int
    run: str | None = None
    visit: int = 0
    attempt: int = 0
    runs: int = 0
    """Runs and visits of the issue: those of whoever adopts it have higher numbers."""
    depth: int = 0
    cycle_runs: int = 0
    """Runs of the present cycle: whoever adopts the issue goes on counting."""
    actor: str = ""
    """Whose claim it was: an assignee of another name is a person, or somebody that a person chose."""


# --- values that facts and commands carry ---------------------------------------------------------------------------

Status = str
"""A tracker status: open, in_progress, blocked, closed, deferred, or one that the tracker's owner added."""


@dataclass(frozen=True, slots=True)
class Issue:
    """What the core may read of an issue: exactly these fields, so that a read can be compared with the World."""

    id: str
    title: str
    status: Status
    type: str
    priority: int
    created_at: datetime
    assignee: str | None = None
    labels: tuple[str, ...] = ()
    """Sorted."""
    blocked_by: tuple[str, ...] = ()
    """Issues that this one depends on with type `blocks`, open or not; sorted."""
    comments: int = 0
    """How many comments there are."""
    stamp: Stamp | None = None
    hidden: str = ""
    """Why the tracker's own list leaves it out although it is ready; empty: it does not."""


@dataclass(frozen=True, slots=True)
class IssueSeen(OfIssue):
    """An issue as the tracker showed it. By difference."""

    view: Issue
    as_of: int
    key: str | None = None
    """The command that asked for this read; it is recorded although nothing may differ."""


@dataclass(frozen=True, slots=True)
class IssueGone(OfIssue):
    """A complete read did not list the issue among those that are not closed; with a key: there is none of this id."""

    as_of: int
    key: str | None = None


@dataclass(frozen=True, slots=True)
class LeaseLost(OfIssue):
    """The tracker refused a heartbeat: the issue may be another daemon's. Nothing is written before a fresh read."""

    why: str


@dataclass(frozen=True, slots=True)
class LeaseExpired(OfIssue):
    """Another daemon's lease on the issue ran out long ago. By difference."""

    holder: str
    expired: datetime


# --- answers of effects -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EffectFailed(Answer):
    """An effect did not happen, or cannot be told to have. `infra`: it is tried again and burns no attempt."""

    error: str
    infra: bool
    lock: str = ""
    """The file, where it is another git's lock that keeps it from happening."""
    unforeseen: bool = False
    """Whether nobody foresaw that it could fail so: its issue parks at once."""


@dataclass(frozen=True, slots=True)
class IssueClaimed(Answer):
    """The claim stands, with the first phase's label and our stamp."""

    view: Issue
    text: str | None = None
    """The blob of the issue's words."""


@dataclass(frozen=True, slots=True)
class ClaimRefused(Answer):
    """Somebody else has the issue, or it is not claimable any more."""

    error: str


@dataclass(frozen=True, slots=True)
class IssueWritten(Answer):
    """A transition, question, parking, giving back or close stands in the tracker."""

    posture: int
    """The sequence number of the decision whose posture was written."""
    view: Issue
    text: str | None = None


@dataclass(frozen=True, slots=True)
class GuardRefused(Answer):
    """A person was faster; nothing was written. The issue is read again and obeyed."""


@dataclass(frozen=True, slots=True)
class WriteRefused(Answer):
    """The tracker's rules forbid the write."""

    error: str


@dataclass(frozen=True, slots=True)
class CommentPosted(Answer):
    """The comment stands."""

    name: str


@dataclass(frozen=True, slots=True)
class IssueCreated(Answer):
    """The issue stands."""

    id: str


@dataclass(frozen=True, slots=True)
class LabelsTakenOff(Answer):
    """Refused answer labels are gone."""


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment; `text` has lost its control characters."""

    id: str
    author: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class LabelEvent:
    """The tracker's record that somebody put a label on an issue."""

    id: str
    label: str
    actor: str
    at: datetime


@dataclass(frozen=True, slots=True)
class AnswerRead(Answer):
    """Who set the answer labels, and what people have said."""

    view: Issue
    events: tuple[LabelEvent, ...]
    comments: tuple[Comment, ...] = ()
    signatures: tuple[Signature, ...] = ()
    signed_only: bool = False
    """The base branch's configuration has only signed approvals count."""
    early: tuple[Comment, ...] = ()
    """What people have said in front of the question's comment, and behind ashep's comment before that."""


@dataclass(frozen=True, slots=True)
class IssueReclaimed(Answer):
    """The tracker was asked to free a dead daemon's issue; `done`: the claim was taken back."""

    holder: str
    done: bool


@dataclass(frozen=True, slots=True)
class NewIssue:
    """An issue that an agent asked for in its outcome."""

    title: str
    description: str = ""
    type: str = "task"
    priority: int = 2
