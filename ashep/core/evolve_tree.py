"""How what was seen and made of work trees changes the World: a part of `evolve`."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from ashep.core.events import TreePrepared, TreeSealed, TreeSeen
from ashep.core.evolve_landing import checkout_changed
from ashep.core.evolve_run import done
from ashep.core.flow import Flow
from ashep.core.indexes import put
from ashep.core.model import Tree
from ashep.core.values import replace
from ashep.core.workspaces import is_shared

if TYPE_CHECKING:
    from ashep.core.world import World


def tree_seen(world: World, fact: TreeSeen) -> World:
    """The user's work tree was read."""
    if world.tree != fact.tree and (first := next(iter(world.landings), None)) is not None:
        world = put(world, first[1], checkout_changed(world.flows[first[1]]))
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


def own_tree(world: World, fact: TreePrepared | TreeSealed) -> World:
    """The issue's own tree was prepared or sealed."""
    flow = world.flows.get(fact.issue)
    if flow is None:
        return world
    flow = done(flow, fact.key, world.seq)
    if flow.own is None:
        return put(world, fact.issue, flow)
    if isinstance(fact, TreePrepared):
        # what others left on a branch that is shared is none of this issue's work
        base = (flow.own.base or fact.head) if is_shared(flow.own.branch) else fact.base
        own = dataclasses.replace(flow.own, path=fact.path, base=base, head=fact.head)
        flow = replace(flow, own=own, base=base)
    else:
        own = dataclasses.replace(flow.own, head=fact.head, tree=fact.tree, flags=fact.flags, files=fact.files)
        flow = replace(flow, own=own, commits=fact.commits)
    run = flow.run
    if run is not None and run.id == fact.run:
        writes = isinstance(fact, TreePrepared) and run.access == "write"
        before = Tree(present=True, head=fact.head) if writes else run.before
        flow = replace(flow, run=replace(run, before=before, tree_wanted="no"))
    return put(world, fact.issue, flow)
