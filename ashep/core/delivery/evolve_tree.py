"""How what was seen and made of work trees changes the World: a part of `evolve`."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import TYPE_CHECKING

from ashep.core.delivery.evolve_landing import checkout_changed
from ashep.core.delivery.trees import Rest, after, is_shared
from ashep.core.facts.vocabulary import TreeKept, TreeLeft, TreePrepared, TreeRemoved, TreeRests, TreeSealed, TreeSeen
from ashep.core.policy.settings import Tree
from ashep.core.runs.folding import done
from ashep.core.state.flow import Flow
from ashep.core.state.frozen import replace
from ashep.core.state.indexes import put
from ashep.core.state.proof import Flaw
from ashep.core.state.timers import rested

if TYPE_CHECKING:
    from ashep.core.state.world import World


def tree_seen(world: World, fact: TreeSeen) -> World:
    """The user's work tree was read."""
    for _, _, issue in world.landings if world.tree != fact.tree else ():
        world = put(world, issue, checkout_changed(world.flows[issue]))
    dirty = dict(fact.tree.dirty)
    left = world.left_over
    if fact.moment != "look" or not any(is_writing(world.flows[issue]) for issue in world.live):
        # while a run writes, a look shows its work half-done: what it left is known when it is over
        for path in [path for path, (content, _) in left.items() if dirty.get(path) != content]:
            left = left.remove(path)
    flow = world.flows.get(fact.issue) if fact.issue else None
    if flow is None or flow.run is None or flow.run.id != fact.run:
        world = replace(world, tree=fact.tree, left_over=left)
        return world if flow is None else put(world, flow.issue.id, _read(flow, fact))
    if fact.moment == "after" and flow.run.before is not None:
        before = dict(flow.run.before.dirty)
        for path, content in dirty.items():
            if before.get(path) != content:
                left = left.insert(path, (content, flow.issue.id))
    world = replace(world, tree=fact.tree, left_over=left)
    return put(world, flow.issue.id, _read(flow, fact))


def is_writing(flow: Flow) -> bool:
    """Whether a write run of this flow is not settled, in the shared work tree."""
    run = flow.run
    return run is not None and run.access == "write" and not run.settled and run.branch is None


def _read(flow: Flow, fact: TreeSeen) -> Flow:
    """The work tree was read before or after this flow's run."""
    run = flow.run
    flow = replace(flow, open=tuple(c for c in flow.open if c.key != f"{fact.run}/tree/{fact.moment}"))
    if run is None or run.id != fact.run:
        return flow
    if fact.moment == "before":
        return replace(flow, run=replace(run, before=fact.tree, tree_wanted="no"), base=flow.base or fact.tree.head)
    fresh = tuple(commit for commit in fact.commits if commit not in flow.commits)
    return replace(flow, run=replace(run, tree_wanted="no"), commits=(*flow.commits, *fresh))


# --- a tree of its own --------------------------------------------------------------------------------------------


def unwritable(fact: TreeSealed) -> str:
    """Say which of the files that a run left land nowhere."""
    return f"git writes to no work tree what is called {', '.join(fact.unwritable)}"


def own_tree(world: World, fact: TreePrepared | TreeSealed | TreeLeft) -> World:
    """The issue's own tree was prepared or sealed, or left as it is."""
    flow = world.flows.get(fact.issue)
    if flow is None:
        return world
    if isinstance(fact, TreeLeft):
        return put(world, fact.issue, _left(flow, fact))
    flow = done(flow, fact.key, world.seq)
    if flow.own is None:
        return put(world, fact.issue, flow)
    if isinstance(fact, TreePrepared):
        # what others left on a branch that is shared is none of this issue's work; of one that another journal began
        # nobody knows how much is, so that all of it counts
        begins = fact.base if flow.floor else fact.head
        base = (flow.own.base or begins) if is_shared(flow.own.branch) else fact.base
        own = dataclasses.replace(flow.own, path=fact.path, base=base, head=fact.head)
        flow = replace(flow, own=own, base=base)
    else:
        own = dataclasses.replace(
            flow.own, head=fact.head, tree=fact.tree, flags=fact.flags, files=fact.files, left=False
        )
        flow = replace(flow, own=own, commits=fact.commits)
        if fact.unwritable:
            flow = replace(flow, flaw=Flaw("names", unwritable(fact), ""))
        elif flow.flaw is not None and flow.flaw.kind == "names":
            flow = replace(flow, flaw=None)
    run = flow.run
    if run is not None and run.id == fact.run:
        writes = isinstance(fact, TreePrepared) and run.access == "write"
        before = Tree(present=True, head=fact.head) if writes else run.before
        flow = replace(flow, run=replace(run, before=before, tree_wanted="no"))
    return put(world, fact.issue, flow)


def _left(flow: Flow, fact: TreeLeft) -> Flow:
    """Nothing waits for the tree any more, nor for the next try; whoever goes on begins where that run began."""
    run = flow.run
    if run is None or run.id != fact.run:
        return flow
    tries = tuple(item for item in flow.tries if item[0] != after(fact.run))
    own = dataclasses.replace(flow.own, left=True) if flow.own is not None and run.branch is not None else flow.own
    phase = run.phase if flow.active else flow.phase
    flow = replace(flow, run=replace(run, tree_wanted="no"), own=own, phase=phase, tries=tries)
    return replace(flow, effect_after=None, infra=0, infra_began=None)


def resting_tree(world: World, fact: TreeRests | TreeKept | TreeRemoved) -> World:
    """The tree of a closed issue has its time, was kept, or is gone."""
    flow = world.flows.get(fact.issue)
    if flow is None:
        return world
    if isinstance(fact, TreeRests):
        rest = None if fact.due is None else Rest(fact.due, fact.keep, fact.tries, fact.why)
        return put(world, fact.issue, rested(flow, rest))
    flow = done(flow, fact.key, world.seq)
    if isinstance(fact, TreeKept):
        rest = flow.own.rest if flow.own is not None else None
        return put(world, fact.issue, rested(flow, rest and dataclasses.replace(rest, asked=0, why=fact.why)))
    world = put(world, fact.issue, flow)
    for one in world.flows.values() if is_shared(fact.branch) else (flow,):
        if one.own is not None and one.own.branch == fact.branch:
            world = put(world, one.issue.id, _gone(one))
    return world


def slept(world: World, gap: timedelta) -> World:
    """The machine slept, or its clock was set: trees stand for so much longer, for nobody could use them meanwhile."""
    for issue in sorted(world.dues):
        flow = world.flows[issue]
        rest = flow.own.rest if flow.own is not None else None
        if flow.stage == "closed" and rest is not None and rest.due is not None:
            world = put(world, issue, rested(flow, dataclasses.replace(rest, due=rest.due + gap)))
    return world


def _gone(flow: Flow) -> Flow:
    """Whoever goes on with the issue begins at the base anew; what is known of its work is kept."""
    own = flow.own and dataclasses.replace(flow.own, path="", base="", since="", approved="", left=False, rest=None)
    return replace(flow, own=own)
