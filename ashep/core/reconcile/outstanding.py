"""What should be under way for an issue: commands are the difference between that and what is known.

The order is the order in which effects must happen: a stopped turn, the work tree's state, what the agent asked to be
created, the issue's posture in the tracker, comments, and only then the run. At most one write to an issue and one to a
session is open at any time.
"""

import dataclasses
from dataclasses import replace

from ashep.core.delivery.landing import may_close, next_of_work
from ashep.core.delivery.workspaces import is_held
from ashep.core.facts import commands
from ashep.core.facts.tracker import Stamp
from ashep.core.issues.human_overrides import STATUS, answer_labels, phase_labels
from ashep.core.runs.prompt_commands import run_effect
from ashep.core.runs.requests import listens
from ashep.core.state.authorship import lookup
from ashep.core.state.flow import Flow, Posture
from ashep.core.state.world import World

MARKED_FOR_CHANGES = ("ask.",)
"""Comments that begin so tell a person what there is to look at."""

MOST_NAMED = 50
"""Commits, and files, that such a comment names."""

_OF_TRACKER = (*commands.WRITES, commands.ReadIssue, commands.ReadAnswer, commands.ReadAuthors)
"""Effects on an issue in the tracker, one of which is open at a time."""


def outstanding(world: World, issue: str) -> list[commands.Command]:
    """The commands that this issue lacks."""
    flow = world.flows.get(issue)
    if flow is None:
        return []
    asked = any(isinstance(command, _OF_TRACKER) for command in flow.open) or flow.given_up
    tries, known = dict(flow.tries), {command.key for command in flow.open}
    if flow.effect_after is not None:
        # who changed the issue is read at once, although another effect has failed: once, then it waits as all do
        command = lookup(issue, flow.authors)
        waits = asked or not flow.authors.doubts or flow.look_again or command.key in tries
        return [] if waits else [command]
    of_work = None if flow.authors.doubts else next_of_work(world, flow)
    of_tracker = None if asked else _tracker_effect(world, flow)
    if flow.write_after is not None and isinstance(of_tracker, commands.WRITES):
        of_tracker = None
    wanted = (run_effect(world, flow), of_work, of_tracker)
    lacking = (command for command in wanted if command is not None and command.key not in known)
    return [replace(one, tries=tries[one.key]) if one.key in tries else one for one in lacking]


# --- the tracker --------------------------------------------------------------------------------------------------


def _tracker_effect(world: World, flow: Flow) -> commands.Command | None:
    issue = flow.issue.id
    if flow.look_again:
        return commands.ReadIssue(f"{issue}/read/{flow.view_seq}.{flow.write_seq}", issue)
    if flow.reclaim is not None and not flow.active and flow.stage != "closed":
        return commands.ReclaimIssue(f"{issue}/reclaim/{flow.view_seq}", issue, flow.reclaim)
    if flow.authors.doubts:
        return lookup(issue, flow.authors)
    # said at once, although the run may not be settled: it is given up, or waits for whoever has its place
    at_once = flow.stage in ("parked", "giving_back") or is_held(world, flow)
    if flow.run is not None and flow.run.tree_wanted in ("after", "again") and not at_once:
        return None
    if flow.creations:
        return _creation(world, flow)
    if (undo := _undo(world, flow)) is not None:
        return undo
    closes_early = flow.target is not None and flow.target.kind == "close" and (flow.comments or not may_close(flow))
    if flow.target is not None and flow.unwritten and not closes_early:
        return _posture(world, flow, flow.target)
    if flow.take_off:
        return commands.TakeOffLabels(f"{issue}/labels/{flow.answer_seq}", issue, flow.take_off)
    if flow.comments:
        name, text = flow.comments[0]
        key = f"{issue}/comment/{name}"
        shown = f"{text}{_changes(world, flow)}" if name.startswith(MARKED_FOR_CHANGES) else text
        return commands.PostComment(key, issue, name, shown)
    if flow.stage == "person" and answer_labels(world, flow.issue) and flow.answer_seq < flow.view_seq:
        return commands.ReadAnswer(f"{issue}/answer/{flow.view_seq}", issue)
    if (name := listens(flow)) is not None:
        return commands.ReadAnswer(f"{issue}/answer/{flow.view_seq}", issue, f"{issue}/comment/{name}")
    return None


def _creation(world: World, flow: Flow) -> commands.Command:
    wanted, run = flow.creations[0], flow.run
    stamp = Stamp(world.instance, run.trace if run else 0, run.id if run else None, depth=wanted.depth)
    labels = (world.settings.labels.parked,) if wanted.parked else ()
    key = f"{flow.issue.id}/create/{wanted.id}"
    return commands.CreateIssue(key, flow.issue.id, wanted.id, wanted.new, stamp, wanted.parked, labels)


def _undo(world: World, flow: Flow) -> commands.Command | None:
    """Put back what no person changed, where no other write would: that waits, or the issue is not ours."""
    undo, view, written = flow.authors.undo, flow.issue, flow.written
    if undo is None:
        return None
    if written is not None and flow.target is not None and flow.target.kind == "close" and flow.unwritten:
        return _posture(world, flow, dataclasses.replace(written, seq=undo.seq))
    if flow.active or view.stamp is None:
        return None
    add, drop = (tuple(label for kind, label in undo.labels if kind == one) for one in ("removed", "added"))
    stamp, key = dataclasses.replace(view.stamp, seq=undo.seq), f"{view.id}/write/{undo.seq}"
    status, who = view.status, view.assignee
    return commands.WriteIssue(key, view.id, "park", status, who, stamp, status, who, add, drop)


def _posture(world: World, flow: Flow, target: Posture) -> commands.Command:
    view, labels = flow.issue, world.settings.labels
    stamp = _stamp(world, flow, target)
    add = set[str]()
    drop = {labels.approved, labels.changes_requested, labels.needs_approval, labels.needs_input, labels.needs_answer}
    drop |= {labels.parked, *(labels.phase_prefix + name for name in phase_labels(world, view))}
    if target.kind in ("work", "ask", "park") and target.phase:
        add.add(labels.phase_prefix + target.phase)
    if target.kind == "ask":
        add.add(labels.needs_input if target.input else labels.needs_approval)
        if target.input or (flow.question is not None and not flow.question.human_phase):
            add.add(labels.needs_answer)
    if target.kind == "park":
        add.add(labels.parked)
    if target.paused:
        add.add(labels.paused)
    elif flow.written is not None and flow.written.paused:
        drop.add(labels.paused)  # it is ours
    if target.kind == "give_back":
        phase = flow.written.phase if flow.written else flow.phase
        drop -= {labels.phase_prefix + name for name in phase_labels(world, view) if name != phase}
    undo = flow.authors.undo
    if undo is not None and undo.seq == target.seq:
        drop -= {labels.approved, labels.changes_requested}  # they answer the question that stands
    answers = {labels.approved, labels.changes_requested} if target.kind == "ask" else set[str]()
    drop = {label for label in drop - add if label in view.labels or label in answers}
    if undo is not None:
        add |= {label for kind, label in undo.labels if kind == "removed"} if target.kind != "give_back" else set()
        drop |= {label for kind, label in undo.labels if kind == "added"} & set(view.labels)
    key = f"{view.id}/write/{target.seq}"
    added, dropped = tuple(sorted(add - set(view.labels))), tuple(sorted(drop))
    if flow.written is None and view.status == "open" and target.kind == "work":
        return commands.ClaimIssue(key, view.id, stamp, added, dropped)
    mine = world.actor if target.kind in ("work", "ask", "park", "close") else None
    return commands.WriteIssue(
        key, view.id, target.kind, view.status, view.assignee, stamp, STATUS[target.kind], mine, added, dropped
    )


def _stamp(world: World, flow: Flow, target: Posture) -> Stamp:
    run = flow.run if flow.run and not flow.run.ended else None
    name = run.id if run else f"{flow.issue.id}/{flow.phase}.{flow.visit}.{flow.attempt + 1}"
    attempt = run.attempt if run else flow.attempt
    counters = flow.counters
    runs = max((counters.runs, *(visit for _, visit in counters.visits)))  # who adopts it counts visits on from there
    return Stamp(
        world.instance, target.seq, name, flow.visit, attempt, runs, counters.depth, counters.cycle_runs, world.actor
    )


def _changes(world: World, flow: Flow) -> str:
    lines = [f"- commit {sha}" for sha in flow.work.commits[-MOST_NAMED:]]
    left = sorted(path for path, (_, issue) in world.left_over.items() if issue == flow.issue.id)
    lines += [f"- left uncommitted: {path[:300]}" for path in left[:MOST_NAMED]]
    lines += [f"- left uncommitted: {len(left) - MOST_NAMED} more"] if len(left) > MOST_NAMED else []
    if not lines:
        return "\n\nThis issue's runs left no commits and no files."
    return "\n\nThis issue's changes:\n" + "\n".join(lines)
