"""Issues of sources, as far as they are known: how they stand there, what was approved, what was said. It folds."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

from ashep.core.facts import sources as facts
from ashep.core.facts.records import Intent
from ashep.core.state.immutable import replace
from ashep.core.state.pending_intents import FAULT_LIMIT

FIRST_AGAIN, LAST_AGAIN = timedelta(seconds=30), timedelta(minutes=30)
"""Between the tries of what failed, which double from the first to the longest."""

MOST_JUDGED = 200
"""Words of an issue that are kept in mind to have been judged, the last ones; older ones are older than the newest."""

MOST_REFUSED = 20
"""Effects on an issue that are kept in mind to have been refused, the last ones."""


@dataclass(frozen=True, slots=True)
class Posted:
    """A comment of ashep's at the source."""

    id: int
    moment: datetime
    digest: str
    """Of what it says."""


@dataclass(frozen=True)
class SourceIssue:
    """What is known of an issue of a source."""

    view: facts.SourceView
    admitted: str = ""
    """The blob of the words that were approved; empty: none ever were."""
    code: str = ""
    """Why it may not be begun; empty: it may."""
    reason: str = ""
    nod: datetime | None = None
    """When somebody who counts said yes to its words last, besides the label."""
    stopped: datetime | None = None
    """When somebody who counts stopped it."""
    mirrored: tuple[str, str, bool | None] | None = None
    """What is there in the tracker: the blobs of its words and comments, and True where it was closed."""
    posts: tuple[tuple[str, Posted], ...] = ()
    """Our comments, by name."""
    replies: tuple[tuple[str, str], ...] = ()
    """What is still to be answered to somebody: name and text."""
    pending: tuple[facts.SourceWordSeen, ...] = ()
    """Words that wait until the tracker holds what they say."""
    judged: tuple[str, ...] = ()
    commit: str = ""
    """What the base there is known to hold of this issue."""
    closed: bool = False
    """We closed it there."""
    opened_again: datetime | None = None
    """When it was seen open again, or other words were approved, by our clock: what was done before is not all."""
    open: Intent | None = None
    """An intent without an answer."""
    tries: int = 0
    """Failures in a row."""
    due: datetime | None = None
    """It is not tried again before."""
    refused: tuple[str, ...] = ()
    """Keys of what was refused for good, the last ones."""

    def posted(self, name: str) -> Posted | None:
        """Give our comment of this name."""
        return dict(self.posts).get(name)

    @property
    def ours(self) -> frozenset[int]:
        """The ids of our comments."""
        return frozenset(item.id for _, item in self.posts)


def digest_of(text: str) -> str:
    """Tell a text from others."""
    return sha256(text.encode()).hexdigest()[:16]


Body = facts.SourceFact | facts.SourceCommand


def folded(record: SourceIssue | None, body: Body, moment: datetime) -> SourceIssue | None:
    """Fold a record of an issue; None: nothing is known of it."""
    if isinstance(body, facts.SourceSeen):
        return _with_view(record or SourceIssue(body.view), body.view, moment)
    if record is None:
        return None
    match body:
        case facts.SourceWordSeen():
            return replace(record, pending=(*record.pending, body))
        case facts.SourceHasCommit():
            return replace(record, commit=body.commit)
        case facts.SourceDue():
            return replace(record, due=None)
        case facts.SourceAdmitted():
            is_changed = record.admitted not in ("", body.text)
            record = replace(record, admitted=body.text, code="", reason=body.why)
            return _opened_again(record, moment) if is_changed else record
        case facts.SourceHeld():
            return replace(record, code=body.code, reason=body.why)
        case facts.SourceWordJudged():
            return _judged(record, body)
        case facts.MirrorIssue() | facts.SayAtSource() | facts.CloseAtSource():
            return replace(record, open=body)
        case facts.SourceStood():
            return record
        case _:
            return _answered(record, body, moment)


def _with_view(record: SourceIssue, view: facts.SourceView, moment: datetime) -> SourceIssue:
    event, event_before = view.reopened, record.view.reopened
    record = replace(record, view=view, refused=(), nod=record.nod if view.labelled else None)
    if view.state != "open" or event is None or (event_before is not None and event.id == event_before.id):
        return record
    return _opened_again(record, moment)


def _opened_again(record: SourceIssue, moment: datetime) -> SourceIssue:
    mirrored = (*record.mirrored[:2], True) if record.mirrored else None  # so that it is opened in the tracker, too
    return replace(record, closed=False, opened_again=moment, mirrored=mirrored)


def _judged(record: SourceIssue, fact: facts.SourceWordJudged) -> SourceIssue:
    pending = tuple(item for item in record.pending if item.word.voice.id != fact.id)
    replies = (*record.replies, (f"reply.{fact.id}", fact.reply)) if fact.reply else record.replies
    return replace(
        record, pending=pending, judged=(*record.judged, fact.id)[-MOST_JUDGED:], replies=replies,
        nod=_later(record.nod, fact.approves), stopped=_later(record.stopped, fact.stops),
    )  # fmt: skip


def _later(record: datetime | None, latest: datetime | None) -> datetime | None:
    return max(filter(None, (record, latest)), default=None)


def _answered(
    record: SourceIssue,
    fact: facts.IssueMirrored | facts.SaidAtSource | facts.ClosedAtSource | facts.SourceFailed,
    moment: datetime,
) -> SourceIssue:
    command = record.open
    if command is None or command.key != fact.key:
        return record
    if isinstance(fact, facts.SourceFailed):
        wait = max(min(FIRST_AGAIN * 2 ** min(record.tries, 20), LAST_AGAIN), fact.wait)
        is_final = fact.final or (fact.unforeseen and record.tries + 1 >= FAULT_LIMIT)
        refused = (*record.refused, command.key)[-MOST_REFUSED:] if is_final else record.refused
        failed = replace(record, open=None, refused=refused)
        return failed if fact.final else replace(failed, tries=record.tries + 1, due=moment + wait)
    record = replace(record, open=None, tries=0, due=None)
    if isinstance(command, facts.MirrorIssue):
        return replace(record, mirrored=(command.text, command.comments, command.closed or None))
    if isinstance(command, facts.SayAtSource) and isinstance(fact, facts.SaidAtSource):
        posts = tuple(item for item in record.posts if item[0] != fact.name)
        posted = Posted(fact.id, fact.posted, digest_of(command.text))
        replies = tuple(item for item in record.replies if item[0] != fact.name)
        return replace(record, posts=(*posts, (fact.name, posted)), replies=replies)
    return replace(record, closed=True)
