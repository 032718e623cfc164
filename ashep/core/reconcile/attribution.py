"""Who changed an issue that is ours: a person's change moves it, an agent's is put back, with a comment that says so.

What a read shows does not say who did it, and the tracker's history is one call more: it is read only where the issue
was changed in a way that something would follow from. What was changed is compared with our last confirmed write.
"""

from collections.abc import Iterator

from ashep.core.facts.issues import CommentWanted, IssueAdopted, IssueGivenBack, RetryScheduled
from ashep.core.facts.tracker import AnswerRead, Change, Difference, EffectFailed, IssueClaimed, IssueSeen, IssueWritten
from ashep.core.facts.vocabulary import AuthorsRead, ChangeDoubted, ChangeJudged, Fact
from ashep.core.issues.human_overrides import (
    AGENT,
    STATUS,
    answered,
    goes_back,
    is_of_ashep,
    may_answer,
    obey,
    phase_labels,
    unnamed,
    unparked,
)
from ashep.core.issues.routing import abort
from ashep.core.runs.requests import read_answers, withdrawn
from ashep.core.runs.takeover import keep_label, labelled
from ashep.core.state.authorship import lookup, stands, undone
from ashep.core.state.flow import Flow, Posture
from ashep.core.state.immutable import replace
from ashep.core.state.pending_intents import stale
from ashep.core.state.world import IssueRules, World

Shown = IssueSeen | IssueClaimed | IssueWritten | AnswerRead | IssueAdopted

GIVEN_UP = 3
"""Reads of the history that fail in a row before nobody counts as known: people are not kept waiting for it."""

_SAID = {"added": "set the label {}", "removed": "took the label {} off", "status": "set the status {}"}


def follow_look(world: World, earlier: Flow, flow: Flow, fact: IssueSeen) -> list[Fact]:
    """Say what follows from a look, unless it is older than what is known."""
    if stale(earlier, fact.as_of) and fact.key is None:
        return []
    facts = follow_view(world, earlier, flow, fact)
    if facts or not earlier.lease_lost or flow.lease_lost or flow.stage != "work" or flow.wanted:
        return facts
    # after a refused heartbeat a fresh read shows the issue as ours all the same: that was no agent's fault
    return _retry_phase(world, flow, "the tracker refused a heartbeat, and shows the issue as ours")


def answer_read(world: World, earlier: Flow, flow: Flow, fact: AnswerRead) -> list[Fact]:
    """Obey a change first, then hear an answer."""
    heard = answered(world, flow, fact) or read_answers(world, flow, fact)
    return follow_view(world, earlier, flow, fact) or heard


def follow_view(world: World, earlier: Flow, flow: Flow, fact: Shown) -> list[Fact]:
    """Say what follows from how the issue is shown now: where that depends on who changed it, that is looked up."""
    found = tuple(change for change in _differences(world, earlier, flow) if change not in flow.authors.known)
    facts: list[Fact] = [] if found == flow.authors.doubts else [ChangeDoubted(flow.issue.id, found)]
    if found:
        return facts
    facts += unparked(world, earlier, flow) or obey(world, flow) or labelled(world, flow) or withdrawn(world, flow)
    return _goes_on(world, flow, facts)


def authors_read(world: World, earlier: Flow, flow: Flow, fact: AuthorsRead) -> list[Fact]:
    """Judge the changes by what the tracker's history says; what is doubted by now may be something else."""
    asked = lookup(flow.issue.id, flow.authors)
    known = flow.authors.doubts and fact.key == asked.key
    return _goes_on(world, flow, _judged(world, flow, fact.changes)) if known else []


def unread(world: World, flow: Flow, fact: EffectFailed) -> list[Fact]:
    """The history could not be read: after some tries its authors are taken for unknown."""
    asked, tries = lookup(flow.issue.id, flow.authors), dict(flow.tries)
    if not flow.authors.doubts or fact.key != asked.key or tries.get(fact.key, 0) < GIVEN_UP:
        return []
    return _goes_on(world, flow, _judged(world, flow, ()))


def _retry_phase(world: World, flow: Flow, why: str) -> list[Fact]:
    """Go on with the phase of an issue whose run was ended by nobody's fault."""
    if flow.work.verifying or flow.phase is None:
        return []  # its run had succeeded
    if flow.run is not None and not flow.run.ended:
        return []
    return [RetryScheduled(flow.issue.id, flow.phase, flow.failures, world.now, why)]


def _goes_on(world: World, flow: Flow, facts: list[Fact]) -> list[Fact]:
    """Where a change had cost the lease, and with it the run, the issue goes on once it is known to move nothing."""
    undoubted = ChangeDoubted(flow.issue.id, ())  # it is as it was before anybody knew who had changed it
    moved = not all(isinstance(fact, (ChangeJudged, CommentWanted)) or fact == undoubted for fact in facts)
    if not facts or moved or flow.stage != "work" or flow.wanted or flow.takeover is not None:
        return facts
    undone = any(isinstance(fact, ChangeJudged) for fact in facts)
    who = "an agent" if world.settings.people is None else "somebody who does not count"
    return facts + _retry_phase(world, flow, f"what {who} changed is put back" if undone else "it is as it was before")


# --- what differs -------------------------------------------------------------------------------------------------


def _differences(world: World, earlier: Flow, flow: Flow) -> Iterator[Difference]:
    """Compare the issue with how our last confirmed write left it, in what anything would follow from."""
    labels, view, posture = world.settings.labels, flow.issue, flow.written
    if flow.stage == "left":
        if goes_back(world, flow):
            yield from _added(flow, *(labels.phase_prefix + name for name in phase_labels(world, view)))
            yield from _added(flow, labels.excluded)
        return
    if flow.stage == "idle":
        parked: Difference = ("removed", labels.parked)
        if unparked(world, earlier, flow) or (parked in flow.authors.doubts and stands(parked, view)):
            yield parked
        return
    if posture is None or not flow.active or flow.stage == "giving_back":
        return
    if view.status != STATUS[posture.kind]:
        yield "status", view.status
    holder = holder_of(world, posture)
    if view.assignee != holder:
        yield "assignee", view.assignee or ""
    if posture.kind == "close":
        return
    for name in phase_labels(world, view):
        if name != posture.phase or labels.phase_prefix + name in flow.authors.before:
            yield "added", labels.phase_prefix + name
    prefixes = (labels.policy_prefix, labels.branch_prefix)
    yield from _added(flow, *(label for label in view.labels if label.startswith(prefixes)))
    yield from _added(flow, labels.excluded)
    taken = flow.takeover is not None and flow.takeover.label == "theirs" and not flow.takeover.ending
    if not taken:  # ours, too, may be a person's, who set it before our write was done
        yield from _added(flow, labels.paused)
    expected = {
        labels.phase_prefix + (posture.phase or ""): posture.phase is not None and posture.kind != "give_back",
        labels.parked: posture.kind == "park",
        labels.needs_approval: posture.kind == "ask" and not posture.input,
        labels.needs_input: posture.kind == "ask" and posture.input,
        labels.paused: posture.paused or taken,
    }
    for label, stood in expected.items():
        if stood and label not in view.labels:
            yield "removed", label


def _added(flow: Flow, *names: str) -> Iterator[Difference]:
    for label in names:
        if label in flow.issue.labels:
            yield "added", label


def holder_of(world: World, posture: Posture) -> str | None:
    """Who holds an issue of this posture."""
    return None if posture.kind == "give_back" else world.actor


# --- who did it -----------------------------------------------------------------------------------------------------


def _judged(world: World, flow: Flow, changes: tuple[Change, ...]) -> list[Fact]:
    issue, doubts = flow.issue.id, flow.authors.doubts
    fresh = tuple(change for change in changes if change.id not in flow.judged)
    found = [(what, *_set_by(world, flow, what, changes)) for what in doubts]
    refused = tuple(what for what, _, counts in found if not counts)
    counts = tuple(what for what, _, counts in found if counts)
    why = "; ".join(f"{actor or 'nobody who is on record'} {describe_change(what)}" for what, actor, _ in found)
    alone = "; ".join(
        f"{actor or 'nobody who is on record'} {describe_change(what)}" for what, actor, ok in found if not ok
    )
    posture = flow.written
    status = STATUS[posture.kind] if posture else flow.issue.status
    holder = holder_of(world, posture) if posture else flow.issue.assignee
    view = undone(flow.issue, tuple(what for what in refused if not _chosen(flow, what)), status, holder)
    rest = replace(flow, issue=view)
    parked = ("removed", world.settings.labels.parked)
    if flow.stage == "idle":
        free = IssueGivenBack(issue, "unparked", f"the label {world.settings.labels.parked} was taken off")
        theirs: list[Fact] = [free] if parked in counts else []
    else:
        theirs = obey(world, rest)
    undo = bool(refused) and not theirs
    ids = tuple(change.id for change in fresh if change.what in doubts)
    judged = ChangeJudged(issue, counts, refused, why, ids, undo)
    hint = unnamed(world, (actor for _, actor, ok in found if not ok))
    text = f"Put back: {alone}. " + (hint or "Only a person's change moves an issue that ashep works on.")
    fresh_why = refused and alone not in flow.authors.told
    told: list[Fact] = [CommentWanted(issue, f"undone.{world.seq}", text)] if fresh_why else []
    gives_back = undo and any(_chosen(flow, what) for what in refused)
    late = told if hint and gives_back else []  # giving back drops what was to be said, and a person is to know
    facts: list[Fact] = [judged, *(told if not late else ())]
    people = any(_is_ours(world, flow, what) and may_answer(world, actor) for what, actor, _ in found)
    stays = keep_label(flow, why) if people else []
    if theirs:
        return facts + stays + theirs
    facts += stays or labelled(world, rest) or withdrawn(world, rest)
    if gives_back:
        facts += [*abort(flow, alone), IssueGivenBack(issue, "chosen_by_agent", alone), *late]
    return facts


def describe_change(what: Difference) -> str:
    """A change in words."""
    kind, value = what
    if kind == "assignee":
        return f"assigned it to {value or 'nobody'}"
    return _SAID[kind].format(value)


def _chosen(flow: Flow, what: Difference) -> bool:
    return what[0] == "added" and what[1] in flow.authors.before


def _set_by(world: World, flow: Flow, what: Difference, changes: tuple[Change, ...]) -> tuple[str, bool]:
    """Say who made a change, and whether it counts.

    Events of one second are in no order (facts/beads.md 9), and those of a clock that was set back in a wrong one: what
    is not as we wrote it was changed by no write of ours, as long as anybody else may have done it.
    """
    mine = [one for one in changes if one.what == what and one.id not in flow.judged]
    if not mine:
        return _judged_before(world, flow, what, changes) or ("", not _moves_on(world, flow, what))
    ours = _is_ours(world, flow, what)
    mine = [one for one in mine if ours or one.actor != world.actor] or mine
    counting = sorted({change.actor for change in mine if _counts(world, flow, what, change.actor)})
    if counting and any(change.at > world.now for change in mine):
        return counting[0], True  # the clock was set back: nobody knows which change came last, and people win
    newest = max(one.at for one in mine)
    actors = sorted({one.actor for one in mine if one.at == newest})
    others = [actor for actor in actors if actor != world.actor] or actors
    if ours:
        return others[0], True
    against = next((actor for actor in others if not _counts(world, flow, what, actor)), None)
    return (others[0], True) if against is None else (against, False)


def _judged_before(world: World, flow: Flow, what: Difference, changes: tuple[Change, ...]) -> tuple[str, bool] | None:
    """Say who made a change that was refused, and is shown once more before it was put back."""
    others = (change for change in changes if change.what == what and change.actor != world.actor)
    last = max(others, key=lambda change: change.at, default=None)
    return (last.actor, False) if last is not None and not _counts(world, flow, what, last.actor) else None


def _is_ours(world: World, flow: Flow, what: Difference) -> bool:
    """Whether it is the label by which we tell that a person has the session."""
    return what == ("added", world.settings.labels.paused) and flow.written is not None and flow.written.paused


def _counts(world: World, flow: Flow, what: Difference, actor: str) -> bool:
    left = actor != AGENT and (world.settings.people is None or actor == world.actor or is_of_ashep(actor))
    if may_answer(world, actor) or (_chosen(flow, what) and left):
        return True  # what a daemon left on an issue that was given up may be gone on with
    if actor == world.actor:
        return flow.stage == "left"  # there it may be the label that we ourselves left
    other_daemon = is_of_ashep(actor) and actor != AGENT
    return other_daemon and what[0] in ("status", "assignee")  # it takes over what it takes for abandoned


def _moves_on(world: World, flow: Flow, what: Difference) -> bool:
    """Whether a change lets an issue go past something: of nobody on record it does not count, any other is obeyed."""
    labels, (kind, value) = world.settings.labels, what
    if _chosen(flow, what):
        return False
    if value.startswith(labels.phase_prefix):  # that one goes may be a part of setting another
        return any(doubt[0] == "added" and doubt[1].startswith(labels.phase_prefix) for doubt in flow.authors.doubts)
    return kind == "removed" and value in (labels.parked, labels.paused, labels.needs_approval, labels.needs_input)


RULES: IssueRules = {
    IssueSeen: follow_look,
    IssueClaimed: follow_view,
    IssueWritten: follow_view,
    IssueAdopted: follow_view,
    AnswerRead: answer_read,
    AuthorsRead: authors_read,
}
