"""How long the trees and branches of closed issues stand: `trees.keep` after the issue is closed, and longer where what
is in them is nowhere else. When they are looked at is decided here; whether anything would be lost, git says then.
"""

from datetime import timedelta

from ashep.core.facts.commands import RemoveTree
from ashep.core.facts.delivery import TreeKept, TreeRests
from ashep.core.facts.issues import IssueClosed
from ashep.core.facts.vocabulary import Fact
from ashep.core.state.delivery import OwnTree, is_shared
from ashep.core.state.flow import Flow
from ashep.core.state.world import IssueRules, World

AGAIN = timedelta(days=1)
"""When a tree that was kept is looked at again, the first time."""

MOST_DOUBLED = 5
"""How often that time doubles, at most: a tree that a person left uncommitted work in is looked at once a month."""


def begins(world: World, earlier: Flow, flow: Flow, fact: IssueClosed) -> list[Fact]:
    """The issue is closed: its tree has its time."""
    own, keep = flow.work.own, world.settings.trees.keep
    if own is None or not own.base or keep is None:
        return []
    return [TreeRests(fact.issue, own.branch, world.now + keep, keep)]


def after_settings(world: World) -> list[Fact]:
    """Give the trees that stand the times of the settings that have come into force.

    A tree that had none, as those of an earlier release, has all of it from now on: nothing goes that nobody was told
    of.
    """
    keep, facts = world.settings.trees.keep, list[TreeRests]()
    for flow in world.flows.values():
        own = flow.work.own
        if flow.stage != "closed" or own is None or not own.base:
            continue
        rest = own.rest
        if rest is None:
            facts += [TreeRests(flow.issue.id, own.branch, world.now + keep, keep)] if keep is not None else []
        elif rest.keep != keep and not rest.asked:
            later = None if keep is None else world.now + keep
            if rest.due is not None and rest.keep is not None and keep is not None:
                later = max(world.now, rest.due + keep - rest.keep)
            facts.append(TreeRests(flow.issue.id, own.branch, later, keep, rest.tries, rest.why))
    return [*sorted(facts, key=lambda fact: fact.issue)]


def due(world: World, flow: Flow) -> list[Fact]:
    """Its time is over. A branch that issues share stands as long as one of them needs it, and one that was pushed for
    good: what is begun again from the base, when the issue is opened again, could not be pushed after it.
    """
    own = flow.work.own
    if own is None:
        return []
    others = [
        one for one in world.flows.values() if one is not flow and one.work.own and one.work.own.branch == own.branch
    ]
    if any(one.work.pull is not None for one in (flow, *others)):
        tries = own.rest.tries if own.rest else 0
        why = "it was pushed, and whoever works on it next goes on from there"
        return [TreeRests(flow.issue.id, own.branch, None, world.settings.trees.keep, tries, why)]
    if not is_shared(own.branch):
        return []
    if at_work := [one.issue.id for one in others if one.stage != "closed" and one.work.own and one.work.own.base]:
        return _rest_tree(world, flow, own, f"{min(at_work)} is not done on {own.branch}")
    times = [one.work.own.rest.due for one in others if one.work.own and one.work.own.rest and one.work.own.rest.due]
    if times and max(times) > world.now:
        return [TreeRests(flow.issue.id, own.branch, max(times), world.settings.trees.keep)]
    return []


def postpone_removal(world: World, earlier: Flow, flow: Flow, fact: TreeKept) -> list[Fact]:
    """It had to stay: it is looked at again after a while, each time a longer one."""
    if flow.work.own is None or flow.stage != "closed":
        return []
    return _rest_tree(world, flow, flow.work.own, fact.why)


def _rest_tree(world: World, flow: Flow, own: OwnTree, why: str) -> list[Fact]:
    tries, keep = own.rest.tries if own.rest else 0, world.settings.trees.keep
    if keep is None:
        return []
    later = world.now + AGAIN * 2 ** min(tries, MOST_DOUBLED)
    return [TreeRests(flow.issue.id, own.branch, later, keep, tries + 1, why)]


def going(world: World, flow: Flow) -> RemoveTree | None:
    """Give the command by which a tree whose time is over goes; None: it has time, or something of it is under way."""
    own, run, keep = flow.work.own, flow.run, world.settings.trees.keep
    if flow.stage != "closed" or own is None or own.rest is None or not own.rest.asked or keep is None:
        return None
    if flow.open or (run is not None and not run.forgettable):
        return None
    onto, commit = flow.work.landed or ("", "")
    key = f"{flow.issue.id}/tree/gone/{own.rest.asked}"
    return RemoveTree(key, flow.issue.id, own.branch, own.head, onto, commit, keep)


RULES: IssueRules = {IssueClosed: begins, TreeKept: postpone_removal}
