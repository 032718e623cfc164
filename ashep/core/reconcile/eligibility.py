"""Which issues may be taken at all, and under which policy (design sections 4 and 7)."""

from fnmatch import fnmatchcase

from ashep.core.issues.people import phase_labels, unclear
from ashep.core.policy.settings import Issue, Match, Policies, Policy
from ashep.core.state.flow import Flow
from ashep.core.state.holds import Hold
from ashep.core.state.world import World

NOT_ASKED = Hold("not_asked", "this daemon was asked to work on other issues")

STANDING = ("phase_taken_off", "unknown_phase", "no_policy", "write_refused", "status_changed", "assigned")
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
    if labels.excluded in issue.labels:
        return Hold("excluded", f"the label {labels.excluded} is set"), None, None
    if labels.parked in issue.labels:
        return Hold("parked_label", f"the label {labels.parked} is set"), None, None
    if labels.paused in issue.labels:
        return Hold("paused", f"the label {labels.paused} is set"), None, None
    if not_asked(world, flow):
        return NOT_ASKED, None, None
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
    for name, policy in policies.policies.items():
        match = policy.match
        if match is None or issue.type not in match.types or issue.priority not in match.priorities:
            continue
        if set(match.labels) <= set(issue.labels) and is_titled(match, issue):
            return None, name, policy
    default = policies.default_policy
    typed = any(policy.match and issue.type in policy.match.types for policy in policies.policies.values())
    if default is not None and typed:
        return None, default, policies.policies[default]
    return Hold("no_policy", f"no policy claims a {issue.type} like this"), None, None


def is_titled(match: Match, issue: Issue) -> bool:
    """Whether the title fits; a shell pattern takes no more steps than its length times the title's."""
    return match.title is None or fnmatchcase(issue.title.casefold(), match.title.casefold())
