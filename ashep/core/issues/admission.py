"""Whose word counts at a source, and whether an issue of it may be worked on: asked for, and as it was approved."""

import re
from datetime import datetime

from ashep.core.facts.sources import SourceAdmitted, SourceHeld, SourceView, Voice
from ashep.core.facts.vocabulary import Fact
from ashep.core.policy.settings import PUSHES, Settings
from ashep.core.policy.sources import short_name
from ashep.core.state.holds import Hold
from ashep.core.state.sources.source_issue import SourceIssue
from ashep.core.state.world import World

WRITES = ("write", "maintain", "admin")
"""What somebody may do at a forge whose word counts."""

OWNS = "OWNER"

OVER = ("gone", "closed")
"""Why an issue may not be worked on that is over there."""


def source_id(prefix: str, name: str, number: int, *, several: bool) -> str:
    """Give the id in the tracker; `several`: there are more repositories than this one (`owner/name`)."""
    return f"{prefix}-gh-{short_name(name)}-{number}" if several else f"{prefix}-gh-{number}"


def is_other(view: SourceView, source: str, number: int, key: str) -> bool:
    """Whether an id in the tracker belongs to another issue than this one, whose identity is its key if it has one."""
    if view.key and key:
        return view.key != key
    return (view.source.casefold(), view.number) != (source.casefold(), number)


def against(settings: Settings, voice: Voice) -> str:
    """Say why somebody's word does not count; empty: it does."""
    names = settings.people.forge if settings.people is not None else None
    writes = voice.permission in WRITES
    if names is not None:
        if voice.login.casefold() in {name.casefold() for name in names if name not in (OWNS, PUSHES, "MEMBER")}:
            return ""
        # an organisation's MEMBER has no right to write by that
        if (writes and {PUSHES, "MEMBER"} & {*names}) or (voice.permission == "admin" and OWNS in names):
            return ""
        return f"{voice.login} is not named in `people.forge`"
    if voice.bot:
        return f"{voice.login} is a program, and not named in `people.forge`"
    if writes:
        return ""
    rights = voice.permission or "nobody could say what they may do"
    return f"{voice.login or 'a deleted account'} may not write to the repository ({rights})"


def approval(settings: Settings, record: SourceIssue) -> tuple[datetime | None, str]:
    """Give the moment at which the issue was approved last, and by what; None and why it never was."""
    label, nod = record.view.label, record.nod
    if not record.view.labelled:
        return None, "the label was taken off"
    reason = against(settings, label) if label is not None else "nobody can say who set the label"
    moments = [(label.moment, f"{label.login} set the label")] if label is not None and not reason else []
    if nod is not None and (label is None or nod > label.moment):  # an older one went with the label of its time
        moments.append((nod, "its text was approved"))
    return max(moments, default=(None, f"the label counts for nothing: {reason}" if label is not None else reason))


def admit(settings: Settings, record: SourceIssue) -> tuple[str, str]:
    """Say why an issue may not be begun, as code and reason; an empty code: it may, and why."""
    view = record.view
    if view.state == "gone":
        return "gone", f"{view.url} is there no more"
    if view.state == "closed":
        return "closed", f"{view.closer or 'somebody'} closed it at its source"
    moment, reason = approval(settings, record)
    if moment is None:
        return ("label" if view.labelled else "unlabelled"), reason
    if record.stopped is not None and record.stopped >= moment:
        return "stopped", "somebody stopped it there; set the label again to let it go on"
    reopening = view.reopened
    if reopening is not None and reopening.moment >= moment and (wrong := against(settings, reopening)):
        return "reopened", f"it was opened again by somebody whose word does not count ({wrong}): set the label again"
    if view.unknown:
        reason = f"nobody can say whether its text was changed since it was approved ({view.unknown})"
        return "edited", f"{reason}: the token must be allowed to read it by GraphQL"
    if view.edited is not None and view.edited >= moment:  # of one second nobody knows the order
        remedy = "look at it, then set the label again, or comment `/ashep approve`"
        return "edited", f"its text was changed after it was approved: {remedy}"
    return "", reason


def admitted(world: World, record: SourceIssue, issue: str) -> list[Fact]:
    """Decide whether it may be worked on; nothing where that is as it was."""
    code, reason = admit(world.settings, record)
    if not code:
        fresh = record.code or record.admitted != record.view.text
        return [SourceAdmitted(issue, record.view.text, why=reason)] if fresh else []
    return [SourceHeld(issue, code, why=reason)] if code != record.code or not record.reason else []


def hold(world: World, issue: str) -> Hold | None:
    """Say why an issue of a source is not begun; None: it may be, or is no such issue."""
    record, names = world.sources.get(issue), [item.repository for item in world.settings.sources.all]
    if (
        record is not None
        and names
        and record.view.source.casefold() not in [(name or record.view.source).casefold() for name in names]
    ):
        return Hold("source", f"{record.view.source} is no source of this project any more")
    if record is not None:
        return Hold("source", record.reason) if record.code or not record.admitted else None
    prefix = re.escape(world.tracker.prefix) if world.tracker is not None else ""
    if names and re.fullmatch(rf"{prefix}-gh-([a-z0-9-]+-)?[0-9]+", issue):
        return Hold("source", "its source has not shown it yet")
    return None
