"""What is to be done next about an issue's work: verify it, bring it onto the base, move the base. Part of
`ashep.core.reconcile.outstanding`.
"""

from ashep.core.delivery.pull_text import title
from ashep.core.facts.commands import Command, IntegrateWork, MoveBase, OpenPullRequest, PrepareTree, VerifyWork
from ashep.core.state.flow import Flow
from ashep.core.state.landing_turns import at_liberty, turn
from ashep.core.state.proof import Landing, about_to_land, must_change
from ashep.core.state.world import World


def next_of_work(world: World, flow: Flow) -> Command | None:
    """Give the next step; None: there is none, or not now."""
    own, landing = flow.own, flow.landing
    if own is None or not at_liberty(flow):
        return None
    if flow.stage == "work" and flow.verifying:
        policy = world.policy(flow)
        phase = policy.phase(flow.phase) if policy and flow.phase else None
        change = phase is not None and phase.verify is not None
        return _verify(flow, f"{flow.verifying}/verify", own.head, own.base, flow.verifying, change=change)
    if flow.stage == "finishing" and landing is not None and landing.due is None:
        return _landing_step(world, flow, landing)
    return None


def is_wanted(flow: Flow, command: VerifyWork) -> bool:
    """Whether anything would still follow from what a verification finds."""
    return flow.verifying == command.run if command.run else about_to_land(flow) == command.commit


def may_close(flow: Flow) -> bool:
    """Whether nothing stands between the issue and its being closed."""
    return flow.landing is None or flow.landing.over


def _landing_step(world: World, flow: Flow, landing: Landing) -> Command | None:
    issue, own = flow.issue.id, flow.own
    assert own is not None
    if landing.over:
        return None
    step, change = f"{landing.seq}.{landing.round}", must_change(world.policy(flow))
    if not own.base:  # an earlier journal's
        return PrepareTree(f"{issue}/tree/{step}", issue, "", own.branch, None, own.slot)
    if landing.into and (landing.verified or not landing.verify):
        return _ask_for_merge(world, flow, landing)
    if not landing.onto:
        return _verify(flow, f"{issue}/verify/{step}", own.head, own.base, change=change)
    if not landing.landed and turn(world) != issue:
        return None
    if not landing.commit:
        message = f"{flow.issue.title} ({issue})"
        method = world.settings.landing.method
        key = f"{issue}/integrate/{step}"
        return IntegrateWork(key, issue, own.branch, own.head, landing.onto, method, message)
    if landing.verify and not landing.verified:
        return _verify(flow, f"{issue}/verify/{step}", landing.commit, landing.base or own.base, change=change)
    key = f"{issue}/land/{step}.{landing.refused}"
    return MoveBase(key, issue, own.branch, own.head, landing.onto, landing.base, landing.commit)


def _ask_for_merge(world: World, flow: Flow, landing: Landing) -> Command | None:
    issue, own, pull = flow.issue.id, flow.own, flow.pull
    if landing.asked or own is None:
        return None
    goes_on = pull is not None and pull.state == "open" and pull.base == landing.into
    name = pull.name if pull is not None and goes_on else f"{world.instance}/{issue}/{landing.seq}"
    key = f"{issue}/pull/{landing.seq}.{landing.refused}"
    head = title(issue, flow.issue.title)
    return OpenPullRequest(key, issue, own.branch, own.head, own.base, landing.into, name, head)


def _verify(flow: Flow, key: str, commit: str, base: str, run: str = "", *, change: bool) -> VerifyWork:
    criteria = flow.criteria
    phase = flow.phase if run else None
    blob = criteria.blob if criteria is not None else ""
    return VerifyWork(
        key, flow.issue.id, commit, base, run, flow.policy or "", phase or "", blob, criteria is None, change
    )
