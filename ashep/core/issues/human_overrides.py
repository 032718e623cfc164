"""People first: what somebody changed in the tracker is obeyed at the next look."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from ashep.core.facts import issues
from ashep.core.facts.tracker import AnswerRead, Change, Issue, LabelEvent
from ashep.core.facts.vocabulary import Fact
from ashep.core.issues.routing import (
    abort,
    after_answer,
    approve_command,
    begin_cycle,
    next_reminder,
    park,
    park_unknown_phase,
)
from ashep.core.issues.signed_approvals import find_signature
from ashep.core.state.flow import Flow, Posture, Question
from ashep.core.state.world import IssueRules, World
from ashep.core.text import clean

COOLDOWN = timedelta(minutes=10)
"""After a person set an issue to open while we held it, where `takeover.cooldown` says no other."""

AGENT_ACTORS = ("ashep-",)
"""Names that begin so are ashep's own and its agents'."""

AGENT = "ashep-agent"
"""The agents' (`BEADS_ACTOR` in a managed server)."""

STATUS = {"work": "in_progress", "ask": "blocked", "park": "blocked", "give_back": "open", "close": "closed"}
"""The tracker status of each posture."""


def is_person(name: str, ours: str) -> bool:
    """Whether a name in the tracker is a person's: not ours, no other ashep's, and no agent's."""
    return bool(name) and name != ours and not is_of_ashep(name)


def is_of_ashep(name: str) -> bool:
    """Whether a name in the tracker is that of a daemon or of its agents."""
    return name.startswith(AGENT_ACTORS)


def is_named(world: World, name: str) -> bool:
    """Whether `people` names somebody; without that key everybody is."""
    return world.settings.people is None or world.settings.people.names(name)


def may_answer(world: World, name: str) -> bool:
    """Whether the word of this name counts: a person's, and of those who are named, where some are."""
    return is_person(name, world.actor) and is_named(world, name)


def unnamed(world: World, actors: Iterable[str]) -> str:
    """Say which of these are people whom `people` does not name, and what to do; empty: none are."""
    missing = sorted({actor for actor in actors if is_person(actor, world.actor) and not is_named(world, actor)})
    if not missing:
        return ""
    who = f"{', '.join(map(clean, missing))} {'is' if len(missing) == 1 else 'are'}"
    remedy = "whoever is to count is added there first, and then does it again"
    return f"{who} not named in `people.tracker` of .agent-shepherd/config.yaml: {remedy}."


def obey(world: World, flow: Flow) -> list[Fact]:
    """Compare what the tracker shows with what our last confirmed write left there; the difference is a person's."""
    view = flow.issue
    if view.status == "closed":
        return _closed(world, flow)
    if flow.stage == "left":
        return _back_from_left(world, flow)
    if not flow.active:
        return []
    if flow.written is None:
        return _before_claim(world, flow)
    posture = flow.written
    if view.assignee not in (world.actor, None):
        return [*abort(flow, "assigned"), issues.IssueLeft(view.id, "assigned", f"assigned to {view.assignee}")]
    as_we_left_it = view.status in (STATUS[posture.kind], "open")  # another status is a person's, excluded or not
    if world.settings.labels.excluded in view.labels and as_we_left_it:
        return _excluded(world, flow)
    if view.status == "open" and STATUS[posture.kind] != "open":
        return _reopened(world, flow, posture)
    if view.status != STATUS[posture.kind] or view.assignee is None:
        why = f"somebody set it to {view.status}, assigned to {view.assignee or 'nobody'}"
        return [*abort(flow, why), issues.IssueLeft(view.id, "status_changed", why)]
    return _labels(world, flow, posture)


def _closed(world: World, flow: Flow) -> list[Fact]:
    if flow.stage == "closed":
        return []
    if flow.stage == "finishing" and flow.written is not None and flow.written.kind == "close":
        return [issues.IssueClosed(flow.issue.id, "shepherd", flow.why)]
    closed = issues.IssueClosed(flow.issue.id, "somebody", "closed by somebody else")
    return [*abort(flow, "closed by somebody"), closed]


def _before_claim(world: World, flow: Flow) -> list[Fact]:
    view = flow.issue
    landed = view.stamp is not None and view.stamp.instance == world.instance and view.assignee == world.actor
    excluded = world.settings.labels.excluded in view.labels
    if landed and view.status in ("in_progress", "blocked"):  # a write of ours whose answer was lost leaves no other
        return _excluded(world, flow) if excluded else []
    if view.status == "open" and view.assignee in (None, world.actor) and not excluded:
        return []
    why = "it changed before it was claimed"
    return [*abort(flow, why), issues.IssueLeft(view.id, "changed", why)]


def _excluded(world: World, flow: Flow) -> list[Fact]:
    if flow.stage == "giving_back":
        return []
    why = f"the label {world.settings.labels.excluded} was set"
    return [*abort(flow, why), issues.IssueGivenBack(flow.issue.id, "excluded", why)]


def _reopened(world: World, flow: Flow, posture: Posture) -> list[Fact]:
    if flow.stage == "giving_back":
        return []
    view, why, policy = flow.issue, "somebody set it to open", world.policy(flow)
    if view.assignee is None:
        return [*abort(flow, why), issues.IssueLeft(view.id, "reopened", why)]
    by_hand = hand_set(world, view, posture.phase)
    wait = None if by_hand else world.now + ((policy.takeover.cooldown if policy else None) or COOLDOWN)
    return [*abort(flow, why), issues.IssueGivenBack(view.id, "reopened", why, not_before=wait)]


def _labels(world: World, flow: Flow, posture: Posture) -> list[Fact]:
    view, labels = flow.issue, world.settings.labels
    if posture.kind in ("give_back", "close"):
        return []
    by_hand = hand_set(world, view, posture.phase)
    standing = phase_labels(world, view)
    if by_hand or (posture.kind == "park" and labels.parked not in view.labels):
        # the policy may have been edited since the issue parked
        policy = world.policy(flow)
        known = tuple(name for name in standing if policy is None or policy.phase(name) is not None)
        return _phase_by_hand(world, flow, by_hand or known)
    if not standing and posture.kind != "park" and posture.phase is not None:
        why = f"the label {labels.phase_prefix}{posture.phase} was taken off"
        return [*abort(flow, why), issues.IssueLeft(view.id, "phase_taken_off", why)]
    return []


def _phase_by_hand(world: World, flow: Flow, names: tuple[str, ...]) -> list[Fact]:
    policy, issue = world.policy(flow), flow.issue.id
    if policy is None:
        return [*abort(flow, "no policy"), issues.IssueLeft(issue, "no_policy", f"the policy {flow.policy} is gone")]
    target, *more = names or (policy.phases[0].name,)
    if more or policy.phase(target) is None:
        why = unclear(flow.policy, names or (target,))
        return [*abort(flow, why), issues.IssueLeft(issue, "unknown_phase", why)]
    why = f"somebody set the phase {target}" if flow.stage != "parked" else f"un-parked into {target}"
    return [*abort(flow, why), *begin_cycle(world, flow, target, why, by_hand=bool(names))]


def unparked(world: World, earlier: Flow, flow: Flow) -> list[Fact]:
    """An issue that was created parked, beyond the allowed depth, is set free: it goes to the queue."""
    view, label = flow.issue, world.settings.labels.parked
    ours = view.stamp is not None and view.stamp.instance == world.instance
    if flow.stage != "idle" or not ours or label not in earlier.issue.labels or label in view.labels:
        return []
    if view.status != "blocked" or view.assignee is not None or world.settings.labels.excluded in view.labels:
        return []
    return [issues.IssueGivenBack(view.id, "unparked", f"the label {label} was taken off")]


def _back_from_left(world: World, flow: Flow) -> list[Fact]:
    view = flow.issue
    names = phase_labels(world, view)
    waiting = flow.code in ("phase_taken_off", "unknown_phase") and view.assignee == world.actor
    if not waiting or view.status not in ("in_progress", "blocked"):
        return []
    if world.settings.labels.excluded in view.labels:
        return _excluded(world, flow)
    if len(names) != 1:
        return []
    policy, (name, *_) = world.policy(flow), names
    if policy is None or policy.phase(name) is None:
        return []
    return begin_cycle(world, flow, name, f"somebody set the phase {name}", by_hand=True)


def goes_back(world: World, flow: Flow) -> bool:
    """Whether labels make an issue ours again that was left to people for want of a good one."""
    return bool(_back_from_left(world, flow))


def phase_labels(world: World, view: Issue) -> tuple[str, ...]:
    """The phases that the issue's labels name."""
    prefix = world.settings.labels.phase_prefix
    return tuple(label.removeprefix(prefix) for label in view.labels if label.startswith(prefix))


def unclear(policy: str | None, names: tuple[str, ...]) -> str:
    """Say why phase labels say nothing."""
    if len(names) > 1:
        return f"it has {len(names)} phase labels ({', '.join(names)}), and may have one: take the others off"
    return f"the phase label {', '.join(names)} is none of the policy {policy}'s"


def hand_set(world: World, view: Issue, ours: str | None) -> tuple[str, ...]:
    """Phase labels that we did not write."""
    return tuple(name for name in phase_labels(world, view) if name != ours)


# --- answers ------------------------------------------------------------------------------------------------------


def answer_labels(world: World, view: Issue) -> tuple[str, ...]:
    """The answer labels that stand, changes_requested first: it wins over an approval of the same second."""
    labels = world.settings.labels
    return tuple(label for label in (labels.changes_requested, labels.approved) if label in view.labels)


def answered(world: World, flow: Flow, fact: AnswerRead) -> list[Fact]:
    """Decide whether an answer label counts, and follow it."""
    question = flow.question
    standing = answer_labels(world, fact.view)
    if question is None or flow.stage != "person" or not standing:
        return []
    fresh = tuple(event for event in fact.events if event.id not in flow.judged)
    yes, (signature, unsigned) = world.settings.labels.approved, find_signature(world, flow, fact)
    judged = [(label, *_set_by(world, label, fresh, unsigned if label == yes else "")) for label in standing]
    counting = sorted((one for one in judged if one[1] and not one[2]), key=lambda one: one[3], reverse=True)
    if counting:
        (label, actor, _, at), *earlier = counting
        answer, signature = ("approved", signature) if label == yes else ("changes_requested", None)
        actor = signature.signer if signature is not None else actor
        why = f"{actor} answered {answer}{', signed' if signature is not None else ''}"
        told: list[Fact] = []
        for other, who, _, before in earlier:
            both = f"{other} was set by {who} at {before:%H:%M:%S}Z, and {label} by {actor} at {at:%H:%M:%S}Z"
            why += f", the later of two answers: {both}"
            text = f"Two answers stood: {both}. The later one counts, of one second the wish for changes."
            told = [issues.CommentWanted(flow.issue.id, f"answers.{world.seq}", text)]
        follow = after_answer(world, flow, question, answer == "approved", why)
        return [issues.PersonAnswered(flow.issue.id, answer, actor, why, signature), *told, *follow]
    why = "; ".join(f"{label} {against}" for label, _, against, _ in judged)
    hint = unnamed(world, (actor for _, actor, _, _ in judged)) or "Only a person's label answers."
    if unsigned and unsigned in why:
        hint = f"Sign it on a terminal: `ashep approve {flow.issue.id} --sign`."
    text = f"An answer was taken off again: {why}. {hint}"
    refused = issues.AnswerRefused(flow.issue.id, standing, why, tuple(event.id for event in fact.events))
    return [refused, issues.CommentWanted(flow.issue.id, f"refused.{world.seq}", text)]


def label_events(changes: Iterable[Change]) -> tuple[LabelEvent, ...]:
    """Give the records of labels that were put on."""
    return tuple(
        LabelEvent(change.id, change.what[1], change.actor, change.at)
        for change in changes
        if change.what[0] == "added"
    )


def _set_by(world: World, label: str, events: tuple[LabelEvent, ...], unsigned: str) -> tuple[str, str, datetime]:
    """Say who set a label, what speaks against it, and when; of one second there is no order (facts/beads.md 9)."""
    mine = [event for event in events if event.label == label]
    if not mine:
        return "", "has no record of who set it", world.now
    newest = max(event.at for event in mine)
    actors = sorted({event.actor for event in mine if event.at == newest})
    for actor in actors:
        if not is_person(actor, world.actor):
            return actor, f"was set by {actor or 'nobody known'}, which is no person", newest
        if not is_named(world, actor):
            return actor, f"was set by {actor}, who is not named in `people`", newest
    return actors[0], unsigned, newest


def after_policies(world: World) -> list[Fact]:
    """Park what asks a person for a phase that is gone: no answer would lead on. `dispatch` sees to the rest."""
    facts: list[Fact] = []
    for issue in sorted(world.indexes.unclosed):
        flow = world.flows[issue]
        policy, question = world.policy(flow), flow.question
        if flow.stage == "person" and question and (policy is None or policy.phase(question.phase) is None):
            facts += park_unknown_phase(world, flow, question.phase)
    return facts


CANCELLABLE = ("work", "person")
"""Stages in which an issue, or its run, can be cancelled."""


def cancellation(world: World, target: str, by: str) -> tuple[issues.IssueCancelled | None, str]:
    """Give the fact that an issue, or the run of one, is cancelled; None and a sentence: why it cannot be."""
    issue = target if target in world.flows else target.rpartition("/")[0]
    flow = world.flows.get(issue)
    if flow is None:
        return None, f"there is no issue and no run {target}"
    run = None if target == issue else target
    if run is not None and (flow.run is None or flow.run.id != run or flow.run.ended):
        return None, f"{run} is not under way"
    if flow.stage not in CANCELLABLE:
        return None, f"{issue} is {flow.stage.replace('_', ' ')}: there is nothing to cancel"
    return issues.IssueCancelled(issue, by, run), ""


def cancelled(world: World, earlier: Flow, flow: Flow, fact: issues.IssueCancelled) -> list[Fact]:
    """Stop the run and park the issue."""
    run, why = flow.run, f"cancelled by {fact.by}"
    if flow.stage not in CANCELLABLE or (fact.run is not None and (run is None or run.id != fact.run or run.ended)):
        return []
    return [*abort(flow, why), *park(flow, "cancelled", why)]


TIMER = "remind"
"""The name of the timer."""


def after_reminder(world: World, flow: Flow, question: Question) -> list[Fact]:
    """Remind people; whether once more says the policy as it is by now."""
    policy, issue, labels = world.policy(flow), flow.issue.id, world.settings.labels
    phase = policy.phase(question.phase) if policy else None
    every = phase.human.reminder if phase and phase.human else None
    again = next_reminder(every, question.asked, world.now, question.due)
    text = (
        f"Still open, since {question.asked:%Y-%m-%d %H:%M}Z: **{question.text}**\n\n"
        f"Answer by label: `{labels.approved}` or `{labels.changes_requested}`.\n"
        f"(or `{approve_command(world, issue)}` / `ashep reject {issue} -m …`)"
        f" It is given up {question.due:%Y-%m-%d %H:%M}Z."
    )
    why = f"nobody has answered {question.phase} yet"
    return [
        issues.PersonReminded(issue, question.phase, question.text, question.due, again, why),
        issues.CommentWanted(issue, f"remind.{world.seq}", text),
    ]


RULES: IssueRules = {issues.IssueCancelled: cancelled}
