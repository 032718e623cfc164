"""How long the journal's files are kept: which may be deleted, and what of their texts the World still needs.

Only a beginning of the journal can go, for a snapshot stands for it. A file goes where all in it is older than
`journal.keep`, and no issue that was begun and is not done has a record in it: not one whose work is under way, waits,
is parked, or is closed with work on a branch that is nowhere else. An issue that was never begun holds nothing: all
that is known of it is in the World.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile

from ashep.core.facts import commands, resources
from ashep.core.facts.vocabulary import Fact
from ashep.core.state.flow import Flow
from ashep.core.state.immutable import replace
from ashep.core.state.timers import split_timer
from ashep.core.state.world import World


@dataclass(frozen=True, slots=True)
class SealedFile:
    """A file of the journal to which nothing is added any more."""

    name: str
    until: datetime
    """Nothing in it is later."""
    following: int
    """The sequence number of the next file's first line."""
    issues: frozenset[str]
    """The issues that have a record in it."""


def issue_of(body: Fact | commands.Command) -> str | None:
    """Name the issue whose record this is; None: it is of none."""
    if isinstance(body, resources.TimerDue):
        return split_timer(body.key)[1] or None
    return getattr(body, "issue", None)


def needed_for(flow: Flow) -> str:
    """Say why the records of an issue are to stay, as the end of a sentence; empty: they need not."""
    if flow.stage == "closed":
        if flow.busy or flow.takeover is not None or (flow.run is not None and not flow.run.forgettable):
            return "is closed, and something of it is under way"
        own = flow.work.own
        if own is not None and own.base and own.head not in ("", own.base) and flow.work.landed is None:
            return f"is closed, and its work is on {own.branch} alone"
        return ""
    begun = flow.counters.cycle or flow.counters.runs or flow.work.own is not None or flow.stage not in ("idle", "left")
    return "was begun, and is not done" if begun else ""


def why_kept(world: World, file: SealedFile, now: datetime) -> str:
    """Say why a file is to stay; empty: it may go."""
    keep = world.settings.journal.keep
    if not isinstance(keep, timedelta):
        return "journal.keep is no duration"
    if file.until > now - keep:
        return "something in it is younger than journal.keep"
    for issue in sorted(file.issues):
        flow = world.flows.get(issue)
        if flow is not None and (why := needed_for(flow)):
            return f"it has records of {issue}, which {why}"
    return ""


def going(world: World, files: Iterable[SealedFile], now: datetime) -> list[SealedFile]:
    """Give the files that may go, of those with which the journal begins, in order."""
    return list(takewhile(lambda file: not why_kept(world, file, now), files))


def pruned(world: World, files: Iterable[SealedFile], now: datetime) -> list[Fact]:
    """Decide that a beginning of the journal goes."""
    keep, gone = world.settings.journal.keep, going(world, files, now)
    if not gone or not isinstance(keep, timedelta):
        return []
    return [resources.JournalPruned(gone[-1].following, tuple(file.name for file in gone), keep)]


def lasting(world: World) -> World:
    """Leave out what nobody reads again of issues that are done; the texts that the rest names are needed.

    One that is opened again is read again, planned again and verified again. What is to be mended of it, and the checks
    that were adopted for it, count then, too.
    """
    for issue, flow in world.flows.items():
        if flow.stage == "closed" and not needed_for(flow):
            passed = flow.work.evidence is not None and not flow.work.evidence.failed
            evidence = None if passed else flow.work.evidence
            kept = replace(flow, run=None, text=None, work=replace(flow.work, evidence=evidence))
            world = replace(world, flows=world.flows.insert(issue, kept))
    return world
