"""Answers of a person, written to the tracker: an answer, a fresh start of a parked issue, a takeover.

Nothing here talks to the daemon: it sees the labels at its next look, just as if they had been set with bd. So every
answer is written as the person, the comment first and the label last; the label is what the daemon acts on, and it
looks up who set it. Whoever is cut off in between says it again.
"""

import getpass
import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Literal

import anyio

from ashep.actions.audit import Books
from ashep.adapters.git.command import Git
from ashep.adapters.system.signatures import is_signed, sign
from ashep.config import settings_in
from ashep.core.issues.human_overrides import AGENT_ACTORS, is_of_ashep
from ashep.core.issues.signed_approvals import LASTS, approval_of
from ashep.core.policy.policies import Policy
from ashep.core.policy.settings import Labels, Settings
from ashep.core.runs.requests import ADDRESSED
from ashep.core.text import clean
from ashep.errors import AshepError, ProgramMissing, UsageError
from ashep.factories import tracker_of
from ashep.ports.tracker import PartialSnapshot, Seen, Tracker

_ACTORS = ("BEADS_ACTOR", "BD_ACTOR")
"""Variables by which bd's actor is set (facts/beads.md 2): an agent's environment holds ashep's name for agents."""


class NotAsked(AshepError):
    """There is no open question, or nothing to start afresh."""


class Answered(AshepError):
    """A person's answer stands that whoever answers did not know of; nothing was written."""


Write = Callable[[Tracker, Labels], Awaitable[str | None]]
"""Writes to the tracker; says what else happened there in the same moment, where anything did."""

Known = tuple[str, int]
"""Up to which record of which journal somebody has seen what they answer: its instance, and the number."""

Instead = str | bool
"""What an answer replaces: the newest answer that its author saw, by its id; True: whatever stands; False: nothing."""

MOST = 20
"""Issues whose answers are read at one time; of others nothing is said."""

Verdict = Literal["approved", "changes_requested", "answered"]
_SPOKEN: Mapping[Verdict, str] = {
    "approved": "approved it", "changes_requested": "asked for changes", "answered": "answered"
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PendingAnswer:
    """An answer of a person that stands in the tracker, and that no daemon has followed yet."""

    id: str
    """The tracker's, of the label's record or of the comment."""
    answer: Verdict
    by: str
    at: datetime
    words: str = ""
    """Of the comment that answers a run."""

    def __str__(self) -> str:
        """Say who answered what, and when."""
        return f"{clean(self.by)} {_SPOKEN[self.answer]} at {self.at:%Y-%m-%d %H:%M}Z"


async def person(project: Path, settings: Settings, environ: Mapping[str, str]) -> str:
    """Give the name under which this person writes: git's, as bd has it; `UsageError` where it is no person's.

    A variable that sets bd's actor is not followed: the answer of a person carries the person's name.
    """
    for name in _ACTORS:
        if environ.get(name, "").startswith(AGENT_ACTORS):
            raise UsageError(f"{name} is {environ[name]}: only a person answers, and no agent")
    try:
        # it is the person's own shell that we are called from, and bd goes by all of it, too
        done = await Git(project).run("config", "user.name", env=os.environ)
        user = clean(done.stdout.decode(errors="replace")).strip()
    except ProgramMissing:
        user = ""
    user = user or environ.get("USER", "") or getpass.getuser()
    if user.startswith(AGENT_ACTORS) or user == settings.tracker.actor:
        raise UsageError(f"git's user.name is {user}, which counts as ashep's: set git config user.name to your own")
    return user


async def answering(project: Path, settings: Settings, environ: Mapping[str, str]) -> str:
    """Give the name under which this person answers; `UsageError` where that would count for nothing."""
    name = await person(project, settings, environ)
    if (reason := why_not_counted(settings, name)) is not None:
        raise UsageError(f"{reason}: whoever keeps that file adds it, where it is right")
    return name


def write_as_person(folder: Path, write: Write) -> tuple[str, str]:
    """Let a person write to the tracker; give the name under which that happened, and what `write` says. `folder`:
    `.agent-shepherd` of the project.
    """
    settings = settings_in(folder)

    async def run() -> tuple[str, str]:
        name = await answering(folder.parent, settings, os.environ)
        async with aclosing(tracker_of(folder.parent, settings, name)) as tracker:
            return name, await write(tracker, settings.labels) or ""

    return anyio.run(run)


def why_not_counted(settings: Settings, name: str) -> str | None:
    """Say why the word of this person counts for nothing; None: it counts."""
    if settings.people is None or settings.people.names(name):
        return None
    return f"{name} is not named in `people.tracker` of config.yaml, and so would count for nothing"


async def answer(
    tracker: Tracker,
    labels: Labels,
    issue: str,
    *,
    approved: bool,
    comment: str | None,
    at: datetime,
    known: Known | None = None,
    instead: Instead = False,
) -> str:
    """Answer an issue's open question; say what else happened in the same moment: nothing, as a rule.

    `NotAsked` where none is open, or the issue was written to behind `known`; `Answered` where an opposite answer of a
    person stands that is not named by `instead`.
    """
    seen = await _read_issue(tracker, issue, known)
    if not _is_asked(seen, labels):
        raise NotAsked(f"{issue} asks nothing: {_standing(seen, labels)}")
    verdict: Verdict = "approved" if approved else "changes_requested"
    stands = await _list_answers(tracker, labels, seen)
    others = _find_replaced(issue, [answer for answer in stands if answer.answer != verdict], instead)
    return await _label(tracker, labels, seen, stands, others, approved, comment, at)


async def _label(
    tracker: Tracker,
    labels: Labels,
    seen: Seen,
    stands: Collection[PendingAnswer],
    others: Collection[PendingAnswer],
    approved: bool,
    comment: str | None,
    at: datetime,
) -> str:
    """Set the label of an answer, and take the opposite one off where it stood."""
    issue, yes, no = seen.issue.id, labels.approved, labels.changes_requested
    wanted, other = (yes, no) if approved else (no, yes)
    replaced = "; ".join(f"In place of what was answered before: {answer}." for answer in others)
    words = "\n\n".join(filter(None, ((comment or "").strip(), replaced)))
    await _comment(tracker, seen, labels.needs_approval, words, "approve" if approved else "reject", at)
    if wanted in seen.issue.labels:
        # a label that stands already leaves no record of who set it again (facts/beads.md 9)
        await tracker.relabel(issue, (), (wanted,))
    await tracker.relabel(issue, (wanted,), (other,) if other in seen.issue.labels else ())
    after = await tracker.issue(issue)
    if after is None:
        return ""
    asks = _is_asked(after, labels) and after.issue.stamp == seen.issue.stamp
    if not asks and wanted in after.issue.labels:  # it would count for what is asked next
        await tracker.relabel(issue, (), (wanted,))
        raise NotAsked(_gone_on(issue))
    if asks and wanted not in after.issue.labels:
        return f"somebody took that off again in this moment: look at {issue} again"
    if other not in (*seen.issue.labels, *after.issue.labels):
        return ""
    fresh = [answer for answer in await _newest(tracker, labels, issue, (other,)) if answer not in stands]
    return _crossed(issue, fresh[0]) if fresh else ""


async def say(
    tracker: Tracker,
    labels: Labels,
    issue: str,
    text: str,
    at: datetime,
    known: Known | None = None,
    *,
    instead: Instead = False,
    leads_back: bool = False,
) -> str:
    """Answer what a run asks in the midst of its work, or what a phase asks whose answers all lead back into it
    (`leads_back`); as `answer`, and `UsageError` without words.
    """
    if not clean(text).strip():
        raise UsageError("an answer has words")
    seen = await _read_issue(tracker, issue, known)
    standing = seen.issue
    if leads_back and _is_asked(seen, labels):
        stands = await _list_answers(tracker, labels, seen)
        again = all(answer.by == tracker.actor for answer in stands) and _is_last(tracker, seen, text, "approve")
        others = () if again else _find_replaced(issue, stands, instead)
        return await _label(tracker, labels, seen, stands, others, True, text, at)
    if standing.status != "blocked" or labels.needs_input not in standing.labels or standing.stamp is None:
        raise NotAsked(f"{issue} asks for no words: {_standing(seen, labels)}")
    words = f"@ashep {text}"
    stands = _answering_words(seen)
    if not _is_last(tracker, seen, words, "answer"):
        _find_replaced(issue, stands, instead)
    await _comment(tracker, seen, labels.needs_input, words, "answer", at)
    after = await tracker.issue(issue)
    if after is None:
        return ""
    ids = {answer.id for answer in stands}
    fresh = [answer for answer in _answering_words(after) if answer.id not in ids]
    others = [answer for answer in fresh if answer.by != tracker.actor or not answer.words.startswith(clean(words))]
    if others:
        return _crossed(issue, others[-1])
    return _gone_on(issue) if stands and labels.needs_input not in after.issue.labels else ""


def _gone_on(issue: str) -> str:
    return f"ashep has gone on with {issue} in this moment: look at it again"


def _crossed(issue: str, other: PendingAnswer) -> str:
    return f"in the same moment {other}: the later answer counts; look at {issue} again"


def _find_replaced(issue: str, stands: Collection[PendingAnswer], instead: Instead) -> Collection[PendingAnswer]:
    """Give the answers that are replaced; `Answered` where one of them is newer than what is meant to be."""
    until = max((answer.at for answer in stands if instead is True or answer.id == instead), default=None)
    unknown = [answer for answer in stands if until is None or answer.at > until]
    if unknown:
        raise Answered(f"{issue} is answered already: {'; '.join(map(str, unknown))}. Nothing is written")
    return stands


async def find_answers(tracker: Tracker, settings: Settings, asking: Collection[str]) -> dict[str, PendingAnswer]:
    """Say which of these issues a person has answered whose word counts, and what the last one answered.

    That is one look, and a read of each issue that shows an answer, or asks for words: of the first `MOST`.
    """
    labels, newest = settings.labels, dict[str, PendingAnswer]()
    if not asking:
        return newest
    try:
        look = await tracker.look()
    except PartialSnapshot as error:
        look = error.look
    marks = {labels.approved, labels.changes_requested, labels.needs_input}
    marked = [entry for entry in look.issues if entry.issue.id in asking and not marks.isdisjoint(entry.issue.labels)]
    for entry in marked[:MOST]:
        if labels.needs_input in entry.issue.labels:
            snapshot = await tracker.issue(entry.issue.id)
            answers = () if snapshot is None else _answering_words(snapshot)
        else:
            answers = await _list_answers(tracker, labels, entry)
        counting = [answer for answer in answers if settings.people is None or settings.people.names(answer.by)]
        if counting:
            newest[entry.issue.id] = counting[-1]
    return newest


async def _list_answers(tracker: Tracker, labels: Labels, snapshot: Seen) -> tuple[PendingAnswer, ...]:
    """Give the answers of people that stand as labels, the oldest first."""
    standing = {labels.approved, labels.changes_requested}.intersection(snapshot.issue.labels)
    return await _newest(tracker, labels, snapshot.issue.id, standing) if standing else ()


async def _newest(tracker: Tracker, labels: Labels, issue: str, names: Collection[str]) -> tuple[PendingAnswer, ...]:
    """Give who set each of these labels last, where that was a person."""
    newest = dict[str, PendingAnswer]()
    for change in await tracker.changes(issue):
        kind, label = change.what
        if kind == "added" and label in names:
            verdict = "approved" if label == labels.approved else "changes_requested"
            newest.setdefault(label, PendingAnswer(change.id, verdict, change.actor, change.at))
    return _of_people(newest.values())


def _answering_words(seen: Seen) -> tuple[PendingAnswer, ...]:
    """Give the comments of people that answer a run: they stand behind the last one of whoever holds the issue."""
    comments = seen.text.comments
    own = [number for number, comment in enumerate(comments, 1) if comment.author == seen.issue.assignee]
    behind = comments[own[-1] if own else 0 :]
    return _of_people(
        PendingAnswer(comment.id, "answered", comment.author, comment.at, comment.text)
        for comment in behind
        if ADDRESSED.match(comment.text)
    )


def _of_people(answers: Iterable[PendingAnswer]) -> tuple[PendingAnswer, ...]:
    by_people = (answer for answer in answers if answer.by and not is_of_ashep(answer.by))
    return tuple(sorted(by_people, key=lambda answer: answer.at))


async def retry(
    tracker: Tracker, labels: Labels, issue: str, *, phase: str | None, held: bool, comment: str | None, at: datetime
) -> None:
    """Start a parked issue afresh, or one that is `held` in the phase that is given; `NotAsked` where it is neither."""
    seen = await _read_issue(tracker, issue)
    parked = labels.parked in seen.issue.labels
    ours = held and seen.issue.stamp is not None and seen.issue.status in ("in_progress", "blocked")
    if not parked and not (ours and phase is not None):
        remedy = "; give the phase to go on with (--phase)" if ours else ""
        raise NotAsked(f"{issue} is not parked: {_standing(seen, labels)}{remedy}")
    label = None if phase is None else f"{labels.phase_prefix}{phase}"
    await _comment(tracker, seen, labels.parked if parked else label, comment, "retry", at)
    old = [one for one in seen.issue.labels if one.startswith(labels.phase_prefix) and one != label] if label else []
    add = (label,) if label and label not in seen.issue.labels else ()
    remove = (*old, labels.parked) if parked else tuple(old)
    await tracker.relabel(issue, add, remove)


async def take(tracker: Tracker, labels: Labels, issue: str, *, comment: str | None, at: datetime) -> bool:
    """Take an issue: nothing is sent or started for it any more; False: it was taken already."""
    seen = await _read_issue(tracker, issue)
    if seen.issue.status == "closed":
        raise NotAsked(f"{issue} is closed")
    await _comment(tracker, seen, labels.paused, comment, "take", at)
    if labels.paused in seen.issue.labels:
        return False
    await tracker.relabel(issue, (labels.paused,), ())
    return True


async def release(tracker: Tracker, labels: Labels, issue: str, *, comment: str | None, at: datetime) -> None:
    """Give a taken issue back, so that it goes on; `NotAsked` where nobody has taken it."""
    seen = await _read_issue(tracker, issue)
    if labels.paused not in seen.issue.labels:
        raise NotAsked(f"{issue} has no label {labels.paused}: {_standing(seen, labels)}")
    await _comment(tracker, seen, labels.paused, comment, "release", at)
    await tracker.relabel(issue, (), (labels.paused,))


async def sign_approval(
    folder: Path, issue: str, message: str | None, key: Path | None, at: datetime, say: Callable[[str], None]
) -> str:
    """Show what is approved, and return a comment that holds it with the person's signature.

    `folder`: the project's `.agent-shepherd`. Raises `NotAsked` if the issue asks for no approval, `UsageError` if no
    key of the person's signs.
    """
    settings, world = settings_in(folder), Books(folder / "state").go_on()
    name = await answering(folder.parent, settings, os.environ)
    keys = settings.people.keys_of(name) if settings.people is not None else ()
    if not keys:
        raise UsageError(f"{name} has no key in `people.keys` of config.yaml: add it there")
    approval = approval_of(world, world.flows[issue]) if issue in world.flows else None
    if approval is None:
        raise NotAsked(f"{issue} asks for no approval, as far as the journal tells (`ashep why {issue}`)")
    approval = replace(approval, expires=at.replace(microsecond=0) + LASTS)
    for field, value in asdict(approval).items():
        say(f"{field}: {value}")
    armor = sign(approval.text, key or keys[0])
    if not await is_signed(approval.text, armor, keys):
        raise UsageError(f"{key} signed, but is none of your keys in `people.keys` of config.yaml: add it there")
    return f"{message or ''}\n\n{approval.text}\n{armor}".strip()


def refuse_unsigned(settings: Settings, issue: str) -> None:
    """Raise `NotAsked` where an approval without a signature would count for nothing."""
    if settings.signed_only:
        why = "an approval counts only with a signature (`people.signed` in config.yaml)"
        raise NotAsked(f"{why}; make it on a terminal, with `ashep approve {issue} --sign`")


def check_phase(phase: str, policies: Mapping[str, Policy], policy: str | None) -> None:
    """Raise `UsageError` where no policy that may apply has the phase; `policy`: the issue's, where that is known."""
    chosen = [policies[policy]] if policy is not None and policy in policies else policies.values()
    names = {step.name for candidate in chosen for step in candidate.phases}
    if phase not in names:
        raise UsageError(f"there is no phase {phase}; there are {', '.join(sorted(names))}")


async def _read_issue(tracker: Tracker, issue: str, known: Known | None = None) -> Seen:
    snapshot = await tracker.issue(issue)
    if snapshot is None:
        raise NotAsked(f"there is no issue {issue}")
    stamp = snapshot.issue.stamp
    if known is not None and stamp is not None and stamp.instance == known[0] and stamp.seq > known[1]:
        raise NotAsked(_gone_on(issue))
    return snapshot


def _is_asked(seen: Seen, labels: Labels) -> bool:
    issue = seen.issue
    return issue.status == "blocked" and labels.needs_approval in issue.labels and issue.stamp is not None


def _standing(seen: Seen, labels: Labels) -> str:
    """Say what state the issue is in, as far as the tracker shows it."""
    issue = seen.issue
    said = f"its status is {issue.status}"
    if labels.parked in issue.labels:
        return f"{said}, and it is parked (`ashep retry {issue.id}` starts afresh)"
    if issue.stamp is None and issue.status != "closed":
        return f"{said}, and ashep does not hold it"
    if issue.status == "blocked" and labels.needs_input in issue.labels:
        return f"{said}, and its run waits for words (`ashep answer {issue.id} …`)"
    if issue.status == "blocked" and labels.needs_approval in issue.labels:
        return f"{said}, and it waits for a yes or no (`ashep approve {issue.id}`, `ashep reject {issue.id}`)"
    return said


async def _comment(
    tracker: Tracker, seen: Seen, label: str | None, text: str | None, command: str, at: datetime
) -> None:
    """Comment, but not twice: who was cut off behind the comment and says it again has said so already.

    That is so where it is the last one, and nothing has happened to the label since.
    """
    if text is None or not text.strip():
        return
    words, issue = clean(text), seen.issue.id
    if _is_last(tracker, seen, text, command):
        changed = (change.at for change in await tracker.changes(issue) if change.what[1] == label)
        last = seen.text.comments[-1].at
        if next(changed, last) <= last:
            return
    await tracker.comment(issue, words, f"(ashep {command}, {at.isoformat(timespec='seconds')})")


def _is_last(tracker: Tracker, seen: Seen, text: str, command: str) -> bool:
    """Whether this person has said this last."""
    signed, last = f"{clean(text)}\n(ashep {command}, ", seen.text.comments[-1:]
    return any(comment.author == tracker.actor and comment.text.startswith(signed) for comment in last)
