"""Answers of a person, written to the tracker: an answer, a fresh start of a parked issue, a takeover.

Nothing here talks to the daemon: it sees the labels at its next look, just as if they had been set with bd. So every
answer is written as the person, the comment first and the label last; the label is what the daemon acts on, and it
looks up who set it. Whoever is cut off in between says it again.
"""

import getpass
import os
from collections.abc import Collection, Mapping
from datetime import datetime
from pathlib import Path

from ashep.adapters.git.program import Git
from ashep.core.issues.people import AGENT_ACTORS
from ashep.core.policy.settings import Labels, Settings
from ashep.core.text import clean
from ashep.errors import AshepError, ProgramMissing, UsageError
from ashep.ports.tracker import Seen, Tracker

_ACTORS = ("BEADS_ACTOR", "BD_ACTOR")
"""Variables by which bd's actor is set (facts/beads.md 2): an agent's environment holds ashep's name for agents."""


class NotAsked(AshepError):
    """There is no open question, or nothing to start afresh."""


Known = tuple[str, int]
"""Up to which record of which journal somebody has seen what they answer: its instance, and the number."""


async def person(project: Path, settings: Settings, environ: Mapping[str, str]) -> str:
    """Give the name under which this person writes: git's, as bd has it; `UsageError` where it is no person's.

    A variable that sets bd's actor is not followed: the answer of a person carries the person's name.
    """
    for name in _ACTORS:
        if environ.get(name, "").startswith(AGENT_ACTORS):
            raise UsageError(f"{name} is {environ[name]}: only a person answers, and no agent")
    given = await _git_name(project) or environ.get("USER", "") or getpass.getuser()
    if given.startswith(AGENT_ACTORS) or given == settings.tracker.actor:
        raise UsageError(f"git's user.name is {given}, which counts as ashep's: set git config user.name to your own")
    return given


async def answering(project: Path, settings: Settings, environ: Mapping[str, str]) -> str:
    """Give the name under which this person answers; `UsageError` where that would count for nothing."""
    name = await person(project, settings, environ)
    if settings.people is not None and not settings.people.names(name):
        why = f"{name} is not named in `people.tracker` of config.yaml, and so would count for nothing"
        raise UsageError(f"{why}: whoever keeps that file adds it, where it is right")
    return name


async def _git_name(project: Path) -> str:
    try:
        # it is the person's own shell that we are called from, and bd goes by all of it, too
        done = await Git(project).run("config", "user.name", env=os.environ)
    except ProgramMissing:
        return ""
    return clean(done.stdout.decode(errors="replace")).strip()


async def answer(
    tracker: Tracker,
    labels: Labels,
    issue: str,
    *,
    approved: bool,
    comment: str | None,
    at: datetime,
    known: Known | None = None,
) -> None:
    """Answer an issue's open question; `NotAsked` where none is open, or the issue was written to behind `known`."""
    seen = await _seen(tracker, issue, known)
    if not _is_asked(seen, labels):
        raise NotAsked(f"{issue} asks nothing: {_standing(seen, labels)}")
    yes, no = labels.approved, labels.changes_requested
    wanted, other = (yes, no) if approved else (no, yes)
    if wanted in seen.issue.labels:
        # a label that stands already leaves no record of who set it again (facts/beads.md 9)
        await tracker.relabel(issue, (), (wanted,))
    await _comment(tracker, seen, labels.needs_approval, comment, "approve" if approved else "reject", at)
    await tracker.relabel(issue, (wanted,), (other,) if other in seen.issue.labels else ())


async def say(
    tracker: Tracker, labels: Labels, issue: str, text: str, at: datetime, known: Known | None = None
) -> None:
    """Answer what a run asks in the midst of its work; `NotAsked` as above, `UsageError` without words."""
    if not clean(text).strip():
        raise UsageError("an answer has words")
    seen = await _seen(tracker, issue, known)
    standing = seen.issue
    if standing.status != "blocked" or labels.needs_input not in standing.labels or standing.stamp is None:
        raise NotAsked(f"{issue} asks for no words: {_standing(seen, labels)}")
    await _comment(tracker, seen, labels.needs_input, f"@ashep {text}", "answer", at)


async def retry(
    tracker: Tracker, labels: Labels, issue: str, *, phase: str | None, held: bool, comment: str | None, at: datetime
) -> None:
    """Start a parked issue afresh, or one that is `held` in the phase that is given; `NotAsked` where it is neither."""
    seen = await _seen(tracker, issue)
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
    seen = await _seen(tracker, issue)
    if seen.issue.status == "closed":
        raise NotAsked(f"{issue} is closed")
    await _comment(tracker, seen, labels.paused, comment, "take", at)
    if labels.paused in seen.issue.labels:
        return False
    await tracker.relabel(issue, (labels.paused,), ())
    return True


async def release(tracker: Tracker, labels: Labels, issue: str, *, comment: str | None, at: datetime) -> None:
    """Give a taken issue back, so that it goes on; `NotAsked` where nobody has taken it."""
    seen = await _seen(tracker, issue)
    if labels.paused not in seen.issue.labels:
        raise NotAsked(f"{issue} has no label {labels.paused}: {_standing(seen, labels)}")
    await _comment(tracker, seen, labels.paused, comment, "release", at)
    await tracker.relabel(issue, (), (labels.paused,))


def check_phase(phase: str, known: Collection[str]) -> None:
    """Raise `UsageError` where no policy that may apply has the phase."""
    if phase not in known:
        raise UsageError(f"there is no phase {phase}; there are {', '.join(sorted(known))}")


async def _seen(tracker: Tracker, issue: str, known: Known | None = None) -> Seen:
    seen = await tracker.issue(issue)
    if seen is None:
        raise NotAsked(f"there is no issue {issue}")
    stamp = seen.issue.stamp
    if known is not None and stamp is not None and stamp.instance == known[0] and stamp.seq > known[1]:
        raise NotAsked(f"ashep has gone on with {issue} in this moment: look at it again")
    return seen


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
    words, issue, signed = clean(text), seen.issue.id, f"(ashep {command}, "
    for last in seen.text.comments[-1:]:
        if last.author == tracker.actor and last.text.startswith(f"{words}\n{signed}"):
            changed = (one.at for one in await tracker.changes(issue) if one.what[1] == label)
            if next(changed, last.at) <= last.at:
                return
    await tracker.comment(issue, words, f"{signed}{at.isoformat(timespec='seconds')})")
