"""Eligibility of issues: which are ours to work on, which are adopted after a lost state folder, and which are freed.

Whose an issue is, the assignee says: our own name means ours, whatever this journal knows of it. Another daemon's is
touched only once its lease has run out, which a living one never lets happen; a person's is never touched.
"""

from datetime import timedelta
from fnmatch import fnmatchcase

from ashep.core.delivery.repository import merge_hold
from ashep.core.delivery.workspaces import branch_for, own_trees
from ashep.core.facts.issues import CommentWanted, IssueAdopted, TakeoverWanted
from ashep.core.facts.tracker import Issue, IssueReclaimed, LeaseExpired, LeaseLost, Stamp
from ashep.core.facts.vocabulary import Fact
from ashep.core.issues.admission import hold as hold_of_source
from ashep.core.issues.human_overrides import phase_labels, unclear
from ashep.core.issues.routing import PHASE_QUESTION_DEADLINE, abort
from ashep.core.policy.policies import Match, Policies, Policy
from ashep.core.policy.settings import HUMAN
from ashep.core.runs.prompt_commands import RUN
from ashep.core.state.flow import Flow, orphan_of
from ashep.core.state.holds import Hold
from ashep.core.state.world import IssueRules, World

LEASE_GRACE = timedelta(minutes=10)
"""After a lease ran out its holder counts as dead: what `bd reclaim` takes by itself, and longer than any daemon acts
on a lease that it could not renew (facts/beads.md 6)."""


def is_ours(world: World, view: Issue) -> bool:
    """Whether the tracker shows as ours, by name and stamp, what this journal does not know as such."""
    return view.assignee == world.actor and view.stamp is not None and view.status in ("in_progress", "blocked")


def adopt(world: World, flow: Flow, name: str, policy: Policy) -> IssueAdopted:
    """Go on with an issue of ours that this journal knows nothing of, from where its labels and stamp say it is."""
    view, labels = flow.issue, world.settings.labels
    assert view.stamp is not None
    # the phase that our last write left it in: where the label differs, a person has set it since
    candidates = (_parse_run_id(view.stamp)[0], *phase_labels(world, view), policy.phases[0].name)
    phase = next(phase for label in candidates if (phase := policy.phase(label)) is not None)
    known, visits = flow.phase == phase.name, dict(flow.counters.visits).get(phase.name, 0)
    visit = max(view.stamp.visit, flow.visit if known else 0, 1)
    if not known and visits >= visit:
        visit = visits + 1  # how many runs it had in that visit nobody knows any more: their ids are not used again
    asks = phase.human is not None or labels.needs_approval in view.labels
    asks = asks and labels.parked not in view.labels
    waited = labels.needs_input in view.labels and labels.parked not in view.labels  # a run did: it begins again
    kind = "ask" if asks else "work" if waited or view.status == "in_progress" else "park"
    deadline = phase.human.deadline if phase.human else PHASE_QUESTION_DEADLINE
    return IssueAdopted(
        issue=view.id,
        policy=name,
        phase=phase.name,
        kind=kind,
        visit=visit,
        attempt=max(_parse_run_id(view.stamp)[1], view.stamp.attempt, flow.attempt if known else 0),
        cycle_runs=max(view.stamp.cycle_runs, flow.counters.cycle_runs),
        why="the tracker shows it as ours, and this state folder does not know it",
        orphan=orphan_of(flow, world.instance) if kind == "work" else None,
        question=(phase.human.ask if phase.human else f"{phase.name} asked; its comment says what") if asks else "",
        due=world.now + deadline if asks else None,
        human_phase=phase.human is not None,
        branch=branch_for(view, labels) if own_trees(world) else None,
        onto=world.tree.branch if own_trees(world) and world.tree else None,
    )


def _parse_run_id(stamp: Stamp) -> tuple[str, int]:
    """The phase and the attempt that the stamp's run id names: `<issue>/<phase>.<visit>.<attempt>`."""
    issue, _, rest = (stamp.run or "").rpartition("/")
    found = RUN.fullmatch(rest) if issue else None
    return (found[1], int(found[3])) if found else ("", 0)


def lease_lost(world: World, earlier: Flow, flow: Flow, fact: LeaseLost) -> list[Fact]:
    """End the run of an issue that is ours no more."""
    return abort(flow, f"the lease was lost: {fact.why}") if earlier.leased else []


def lease_expired(world: World, earlier: Flow, flow: Flow, fact: LeaseExpired) -> list[Fact]:
    """Free the issue of a daemon that died, where this one could go on with it."""
    view = flow.issue
    if flow.active or flow.stage == "closed" or not_asked(world, flow):
        return []
    if view.stamp is None or not view.assignee == view.stamp.actor == fact.holder:
        return []  # a person's: whoever claims has a lease, and only a daemon keeps it alive
    if view.status != "in_progress" or world.settings.labels.excluded in view.labels or fact.holder == world.actor:
        return []
    why = f"{fact.holder} holds it, and its lease ran out at {fact.expired:%Y-%m-%d %H:%M} UTC"
    return [TakeoverWanted(view.id, fact.holder, why)]


def reclaimed(world: World, earlier: Flow, flow: Flow, fact: IssueReclaimed) -> list[Fact]:
    """Say in the tracker what became of the claim."""
    if not fact.done:
        return []
    at = f" at {flow.expired[1]:%Y-%m-%d %H:%M} UTC" if flow.expired else ""
    text = f"The lease of {fact.holder} ran out{at}: its claim was taken back, and the issue is free again."
    return [CommentWanted(fact.issue, f"reclaimed.{world.seq}", text)]


NOT_ASKED = Hold("not_asked", "this daemon was asked to work on other issues")

BACKLOG = Hold("backlog", "it was ready before anything was worked on: `ashep work --all` lets all such issues go")

STANDING = (
    "phase_taken_off", "unknown_phase", "no_policy", "write_refused", "unforeseen", "status_changed", "assigned",
)  # fmt: skip
"""Reasons for which an issue was left that say more than its status does."""


def not_asked(world: World, flow: Flow) -> bool:
    """Whether this daemon was asked for other issues."""
    return world.daemon is not None and bool(world.daemon.only) and flow.issue.id not in world.daemon.only


def stands(world: World, flow: Flow) -> bool:
    """Whether the reason for which an issue was left still says what is in the way."""
    if flow.code not in STANDING or flow.stage != "left" or flow.issue.status == "open":
        return False
    if flow.code == "assigned":
        return flow.issue.assignee not in (None, world.actor)
    if flow.code in ("phase_taken_off", "unknown_phase"):  # a good label would lead on only while it is ours
        return flow.issue.assignee == world.actor and flow.issue.status in ("in_progress", "blocked")
    return True


def eligible(world: World, flow: Flow) -> tuple[Hold | None, str | None, Policy | None]:
    """Say whether an issue may be taken at all, and under which policy; the hold says why not."""
    issue, labels = flow.issue, world.settings.labels
    assert world.policies is not None
    for code, label in (("excluded", labels.excluded), ("parked_label", labels.parked), ("paused", labels.paused)):
        if label in issue.labels:
            return Hold(code, f"the label {label} is set"), None, None
    if not_asked(world, flow):
        return NOT_ASKED, None, None
    if (unapproved := hold_of_source(world, issue.id)) is not None:
        return unapproved, None, None
    if issue.id in world.backlog.issues and not flow.counters.cycle and not (world.daemon and world.daemon.only):
        return BACKLOG, None, None
    if issue.hidden:
        return Hold("hidden", issue.hidden), None, None
    if barred := sorted({*issue.labels}.intersection(world.settings.worker.not_labels)):
        word = ", bd's word for what people do" if barred[0] == HUMAN else ""
        why = f"the label {barred[0]} is set{word} (`worker.not_labels` in config.yaml)"
        return Hold("not_labels", why), None, None
    if issue.status != "open":
        return Hold("status", f"its status is {issue.status}"), None, None
    if issue.assignee not in (None, world.actor):
        return Hold("assigned", f"it is assigned to {issue.assignee}"), None, None
    hold, name, policy = policy_for(world.policies, issue, labels.policy_prefix)
    if hold is not None or policy is None:
        return hold, None, None
    if issue.id not in world.ready:
        blockers = ", ".join(issue.blocked_by)
        why = f"it depends on {blockers}" if blockers else "the tracker does not list it as ready"
        return Hold("dependencies" if blockers else "not_ready", why), None, None
    if (behind := merge_hold(world, flow)) is not None:
        return behind, None, None
    if flow.not_before is not None:
        return Hold("cooldown", "somebody set it to open, or a claim was refused, a short time ago"), None, None
    names = phase_labels(world, issue)
    if len(names) > 1 or (names and policy.phase(names[0]) is None):
        return Hold("unknown_phase", unclear(name, names)), None, None
    return None, name, policy


def policy_for(policies: Policies, issue: Issue, prefix: str) -> tuple[Hold | None, str | None, Policy | None]:
    """Find the policy: forced by label, the first that matches, or the default for types that some policy names."""
    forced = [label.removeprefix(prefix) for label in issue.labels if label.startswith(prefix)]
    if forced:
        policy = policies.policies.get(forced[0])
        if policy is None or len(forced) > 1:
            return Hold("unknown_policy", f"there is no policy {', '.join(forced)}"), None, None
        return None, forced[0], policy
    labels = set(issue.labels)
    for name, policy in policies.policies.items():
        match = policy.match
        if match is None or issue.type not in match.types or issue.priority not in match.priorities:
            continue
        fits = set(match.labels) <= labels and labels.isdisjoint(match.not_labels)
        if fits and is_titled(match, issue):
            return None, name, policy
    default = policies.default_policy
    typed = any(policy.match and issue.type in policy.match.types for policy in policies.policies.values())
    if default is not None and typed:
        return None, default, policies.policies[default]
    return Hold("no_policy", f"no policy claims an issue like this, of the type {issue.type}"), None, None


def is_titled(match: Match, issue: Issue) -> bool:
    """Whether the title fits; a shell pattern takes no more steps than its length times the title's."""
    return match.title is None or fnmatchcase(issue.title.casefold(), match.title.casefold())


RULES: IssueRules = {LeaseLost: lease_lost, LeaseExpired: lease_expired, IssueReclaimed: reclaimed}
