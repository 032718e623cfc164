"""Facts and commands of sources: issues that are kept elsewhere, and mirrored into the tracker."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from ashep.core.facts import Answer, Decision, OfIssue


@dataclass(frozen=True, slots=True)
class Voice:
    """Who did something there, when, and what they may do, as it was when this was read."""

    id: str
    """Of the event or comment: stable, and of it alone."""
    login: str
    moment: datetime
    permission: str
    """`admin`, `write`, `read`, `none`, or empty: nobody could say."""
    bot: bool = False
    is_ours: bool = False
    """The account is the one that ashep writes as."""


@dataclass(frozen=True, slots=True)
class SourceView:
    """What the core may read of an issue of a source: exactly these fields, so that a read can be compared."""

    source: str
    """The repository, as `owner/name`."""
    number: int
    url: str
    title: str
    state: Literal["open", "closed", "gone"]
    """gone: it was deleted, transferred or made a discussion, or can be seen no more."""
    text: str = ""
    """The blob of its title and description."""
    edited: datetime | None = None
    """When title or description were changed last; None: never."""
    unknown: str = ""
    """Why nobody can say when they were changed; empty: it was read."""
    label: Voice | None = None
    """Who set the label that is there; None: it does not, or nobody knows."""
    labelled: bool = False
    reopened: Voice | None = None
    """Who opened it again last."""
    closer: str = ""
    """Who closed it."""
    comments: str = ""
    """The blob of what people said there that agents may read; empty: nobody did."""
    locked: bool = False
    """Nobody but who may write comments there."""
    key: str = ""
    """Identity that stays when the source gets another name; empty: its source and number are."""


@dataclass(frozen=True, slots=True)
class SourceWord:
    """A comment that begins with `/ashep`, or a thumbs-up on one of ashep's."""

    voice: Voice
    verb: str
    """`approve`, `changes`, `answer`, `stop`, or whatever else stood there."""
    text: str = ""
    """What follows it."""
    edited: bool = False
    target: int = 0
    """The comment that a reaction is on; 0: it is a comment."""


# --- what was seen ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SourceSeen(OfIssue):
    """An issue as its source showed it. By difference."""

    view: SourceView


@dataclass(frozen=True, slots=True)
class SourceWordSeen(OfIssue):
    """Somebody speaks to ashep. Each once."""

    word: SourceWord
    signed_only: bool = False
    """The base branch's configuration has only signed approvals count."""
    boxed: bool = False
    """This machine has a sandbox for agents."""


@dataclass(frozen=True, slots=True)
class SourceHasCommit(OfIssue):
    """The base at the source holds this commit."""

    commit: str


@dataclass(frozen=True, slots=True)
class SourceDue(OfIssue):
    """What failed there is tried again."""


@dataclass(frozen=True, slots=True)
class SourceStood:
    """Whether a source answers. By difference."""

    source: str
    reason: str = ""
    """Why it does not; empty: it does."""


# --- decisions ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SourceDecision(OfIssue, Decision):
    """A decision about an issue of a source."""

    why: str = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class SourceAdmitted(SourceDecision):
    """The issue may be worked on, with the words that it has now."""

    text: str


@dataclass(frozen=True, slots=True)
class SourceHeld(SourceDecision):
    """The issue may not be begun, for a reason that changed."""

    code: str


@dataclass(frozen=True, slots=True)
class SourceWordJudged(SourceDecision):
    """Whether a word counts."""

    id: str
    counts: bool
    reply: str = ""
    """What the person who said it reads there."""
    approves: datetime | None = None
    """It approves the issue's words as they were then."""
    stops: datetime | None = None


# --- commands -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MirrorIssue:
    """Have the tracker show an issue as it is there at its source, with the words that were approved."""

    key: str
    issue: str
    view: SourceView
    text: str
    comments: str
    closed: bool | None
    """None: whether it is closed stays as it is."""
    tries: int = 0


@dataclass(frozen=True, slots=True)
class SayAtSource:
    """Have a comment of ashep's say this there; the name is its mark."""

    key: str
    issue: str
    source: str
    number: int
    name: str
    text: str
    comment: int | None = None
    """The comment that is there, where that is known."""
    tries: int = 0


@dataclass(frozen=True, slots=True)
class CloseAtSource:
    """Close it there, as done."""

    key: str
    issue: str
    source: str
    number: int
    tries: int = 0


SourceCommand = MirrorIssue | SayAtSource | CloseAtSource


# --- answers ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IssueMirrored(Answer):
    """The tracker shows it so."""


@dataclass(frozen=True, slots=True)
class SaidAtSource(Answer):
    """The comment is there."""

    name: str
    id: int
    posted: datetime
    """By the clock there."""


@dataclass(frozen=True, slots=True)
class ClosedAtSource(Answer):
    """It is closed there."""


@dataclass(frozen=True, slots=True)
class SourceFailed(Answer):
    """It did not happen, or cannot be told to have. `final`: it is not tried again before the issue changes."""

    error: str
    wait: timedelta = timedelta()
    final: bool = False
    unforeseen: bool = False
    """It is a bug of ashep's, or of a class of the user's."""


SourceFact = (
    SourceSeen | SourceWordSeen | SourceHasCommit | SourceDue | SourceStood | SourceAdmitted | SourceHeld
    | SourceWordJudged | IssueMirrored | SaidAtSource | ClosedAtSource | SourceFailed
)  # fmt: skip
