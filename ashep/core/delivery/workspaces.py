"""Where an issue is worked on: in the user's work tree, which all share, or in a tree and on a branch of its own."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from ashep.core.delivery.landing import checkout_changed, unwritable
from ashep.core.facts.delivery import Tree, TreeKept, TreePrepared, TreeRemoved, TreeRests, TreeSealed, TreeSeen
from ashep.core.facts.runs import RunWithdrawn
from ashep.core.facts.vocabulary import Fact, TreeLeft
from ashep.core.state.branches import branch_of, shared_branch
from ashep.core.state.delivery import Flaw, Rest, is_shared
from ashep.core.state.flow import Flow, with_work
from ashep.core.state.holds import Hold
from ashep.core.state.immutable import replace
from ashep.core.state.pending_intents import settle_intent
from ashep.core.state.timers import rested
from ashep.core.state.world import World, WorldFolds, WorldRules, put

if TYPE_CHECKING:
    from ashep.core.facts.tracker import Issue
    from ashep.core.policy.settings import Labels
    from ashep.core.state.run import Run


def user_tree(before: World, world: World, fact: TreeSeen) -> list[Fact]:
    """Decide what the sight of a work tree means for the run that left it."""
    flow = world.flows.get(fact.issue) if fact.issue else None
    if fact.moment != "before" or flow is None or flow.run is None or flow.run.id != fact.run or flow.run.ended:
        return []
    foreign = foreign_changes(world)
    others = (world.flows[issue].run for issue in world.indexes.live if issue != flow.issue.id)
    writing = any(run is not None and run.access == "write" for run in others)
    if not foreign or world.settings.worker.allow_dirty or writing:
        return []
    why = f"the work tree has changes that are not ashep's: {', '.join(foreign[:5])}"
    return [RunWithdrawn(flow.issue.id, flow.run.id, "tree_dirty", why)]


def foreign_changes(world: World) -> list[str]:
    """Tracked paths that are changed or staged by other than our own runs."""
    dirty = world.tree.dirty if world.tree else ()
    return [path for path, content in dirty if world.left_over.get(path, ("", ""))[0] != content]


Mode = Literal["worktree", "shared", "impossible", "unknown"]
"""impossible: own trees are asked for where none can be · unknown: the work tree was not read since the start."""


def mode(world: World) -> Mode:
    """Say where issues that are begun now are worked on."""
    tree = world.tree
    if world.settings.worker.workspace == "shared":
        return "shared"
    if tree is None:
        return "unknown"
    able = world.daemon is not None and world.daemon.trees
    return "worktree" if able and tree.head is not None else "impossible"


def has_base(world: World) -> bool:
    """Whether the work of issues that are begun now has a branch to land on, where it is to land."""
    landing, tree = world.settings.landing, world.tree
    return landing.mode == "branch" or landing.base is not None or (tree is not None and tree.branch is not None)


def own_trees(world: World) -> bool:
    """Whether issues that are begun now get trees of their own, or wait until they can."""
    return mode(world) != "shared"


def branch_for(issue: Issue, labels: Labels) -> str:
    """Give the branch on which an issue is worked on that has none yet: its own, or the one that its label names."""
    prefix = labels.branch_prefix
    names = (label.removeprefix(prefix) for label in issue.labels if label.startswith(prefix))
    shared = min((name for name in names if name.strip()), default=None)
    return branch_of(issue.id) if shared is None else shared_branch(shared)


def branch_at(world: World, flow: Flow) -> str:
    """Give the branch on which an issue is worked on, or would be."""
    return flow.work.own.branch if flow.work.own is not None else branch_for(flow.issue, world.settings.labels)


def branch_taken(world: World, flow: Flow, begun: frozenset[tuple[str, str]]) -> Hold | None:
    """Say who else is not done on the branch that an issue shares: unfinished work of another would land with it.

    Two may be at it all the same, where people or a lost state folder led them there: then the first goes on, as soon
    as no run of the other is at work. `begun`: branches on which others are begun just now.
    """
    branch, me = branch_at(world, flow), flow.issue.id
    if not is_shared(branch):
        return None
    now = {issue for name, issue in begun if name == branch}
    at_work, others = ({*on.get(branch, ()), *now} - {me} for on in (world.indexes.branch_runs, world.indexes.branches))
    if not others or (not at_work and flow.active and flow.work.own is not None and me < min(others)):
        return None
    return Hold("branch", f"{min(at_work or others)} is not done on the branch {branch}", branch)


def takers(world: World) -> list[str]:
    """Give the issues that have a slot: a turn of theirs may go on, or what it left is about to be sealed.

    Whose turn was seen stopped has none once the issue is nobody's to go on with, or its tree resists: others begin.
    """
    return [issue for issue in world.indexes.live if _has_slot(world, world.flows[issue])]


def _has_slot(world: World, flow: Flow) -> bool:
    run = flow.run
    if run is None or not run.ended or run.stop:
        return True
    goes_on = flow.stage in ("work", "person", "finishing") and make_after_key(run.id) not in dict(flow.tries)
    return goes_on and not is_held(world, flow)


def is_held(world: World, flow: Flow) -> bool:
    """Whether a person has the place in which a run was alone: what is done with it would end the server there."""
    return flow.takeover is not None and world.settings.isolated


def waits_for_person(world: World, flow: Flow) -> bool:
    """Whether all that is lacking of a run is what waits until the person who has its place is done with it."""
    run = flow.run
    over = run is not None and run.ended and not run.stop and run.tree_wanted in ("after", "again")
    quiet = not (flow.open or flow.look_again or flow.authors.busy or flow.unsaid or flow.unwritten)
    return over and is_held(world, flow) and quiet


def speaks_for_itself(world: World, run: Run) -> bool:
    """Whether what is written in a run's session may be its agent's own: whoever works alone in a place knows the
    password of the server there. A person takes the issue first (`ashep take`).
    """
    return world.settings.isolated and run.access == "write" and run.branch is not None


def make_after_key(run: str) -> str:
    """Give the key of what is done with a run's tree when the run is over."""
    return f"{run}/tree/after"


def slot_of(issue: str, known: frozenset[tuple[str, int]]) -> int:
    """Give the number that an issue has and nobody else, else the smallest that nobody has.

    An issue that comes back from a rest may find that another has been given its number.
    """
    taken = {number for other, number in known if other != issue}
    own = next((number for other, number in known if other == issue and number not in taken), None)
    return own if own is not None else next(number for number in range(len(taken) + 1) if number not in taken)


def tree_seen(world: World, fact: TreeSeen) -> World:
    """The user's work tree was read."""
    for _, _, issue in world.indexes.landings if world.tree != fact.tree else ():
        world = put(world, issue, checkout_changed(world.flows[issue]))
    dirty = dict(fact.tree.dirty)
    left = world.left_over
    if fact.moment != "look" or not any(is_writing(world.flows[issue]) for issue in world.indexes.live):
        # while a run writes, a look shows its work half-done: what it left is known when it is over
        for path in [path for path, (content, _) in left.items() if dirty.get(path) != content]:
            left = left.remove(path)
    flow = world.flows.get(fact.issue) if fact.issue else None
    run = flow.run if flow is not None and fact.moment == "after" else None
    if flow is not None and run is not None and run.id == fact.run and run.before is not None:
        before = dict(run.before.dirty)
        for path, content in dirty.items():
            if before.get(path) != content:
                left = left.insert(path, (content, flow.issue.id))
    world = replace(world, tree=fact.tree, left_over=left)
    return world if flow is None else put(world, flow.issue.id, _read(flow, fact))


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
        flow = with_work(flow, base=flow.work.base or fact.tree.head)
        return replace(flow, run=replace(run, before=fact.tree, tree_wanted="no"))
    fresh = tuple(commit for commit in fact.commits if commit not in flow.work.commits)
    flow = with_work(flow, commits=(*flow.work.commits, *fresh))
    return replace(flow, run=replace(run, tree_wanted="no"))


def own_tree(world: World, fact: TreePrepared | TreeSealed | TreeLeft) -> World:
    """The issue's own tree was prepared or sealed, or left as it is."""
    flow = world.flows.get(fact.issue)
    if flow is None:
        return world
    if isinstance(fact, TreeLeft):
        return put(world, fact.issue, _fold_tree_left(flow, fact))
    flow = settle_intent(flow, fact.key, world.seq)
    if flow.work.own is None:
        return put(world, fact.issue, flow)
    if isinstance(fact, TreePrepared):
        # what others left on a branch that is shared is none of this issue's work; of one that another journal began
        # nobody knows how much is, so that all of it counts
        begins = fact.base if flow.counters.floor else fact.head
        base = (flow.work.own.base or begins) if is_shared(flow.work.own.branch) else fact.base
        read = fact.ground == "sealed"  # people are led to where the work is
        path, ground = (flow.work.own.path, fact.path) if read else (fact.path, "")
        own = dataclasses.replace(flow.work.own, path=path, ground=ground, base=base, head=fact.head)
        flow = with_work(flow, own=own, base=base)
    else:
        own = dataclasses.replace(
            flow.work.own, head=fact.head, tree=fact.tree, flags=fact.flags, files=fact.files, left=False
        )
        flow = with_work(flow, own=own, commits=fact.commits)
        if fact.unwritable:
            flow = with_work(flow, flaw=Flaw("names", unwritable(fact), ""))
        elif flow.work.flaw is not None and flow.work.flaw.kind == "names":
            flow = with_work(flow, flaw=None)
    run = flow.run
    if run is not None and run.id == fact.run:
        writes = isinstance(fact, TreePrepared) and (run.access == "write" or fact.seals)
        before = Tree(present=True, head=fact.head) if writes else run.before
        flow = replace(flow, run=replace(run, before=before, tree_wanted="no"))
    return put(world, fact.issue, flow)


def _fold_tree_left(flow: Flow, fact: TreeLeft) -> Flow:
    """Nothing waits for the tree any more, nor for the next try; whoever goes on begins where that run began."""
    run = flow.run
    if run is None or run.id != fact.run:
        return flow
    tries = tuple(item for item in flow.tries if item[0] != make_after_key(fact.run))
    own = flow.work.own
    if own is not None and run.branch is not None:
        own = dataclasses.replace(own, left=True)
    phase = run.phase if flow.active else flow.phase
    flow = replace(flow, run=replace(run, tree_wanted="no"), work=replace(flow.work, own=own), phase=phase, tries=tries)
    return replace(flow, effect_after=None, infra=0, infra_began=None)


def resting_tree(world: World, fact: TreeRests | TreeKept | TreeRemoved) -> World:
    """The tree of a closed issue has its time, was kept, or is gone."""
    flow = world.flows.get(fact.issue)
    if flow is None:
        return world
    if isinstance(fact, TreeRests):
        rest = None if fact.due is None else Rest(fact.due, fact.keep, fact.tries, fact.why)
        return put(world, fact.issue, rested(flow, rest))
    flow = settle_intent(flow, fact.key, world.seq)
    if isinstance(fact, TreeKept):
        rest = flow.work.own.rest if flow.work.own is not None else None
        return put(world, fact.issue, rested(flow, rest and dataclasses.replace(rest, asked=0, why=fact.why)))
    world = put(world, fact.issue, flow)
    for other in world.flows.values() if is_shared(fact.branch) else (flow,):
        if other.work.own is not None and other.work.own.branch == fact.branch:
            # who goes on with the issue begins at the base again; what is known of its work is kept
            gone = dataclasses.replace(
                other.work.own, path="", ground="", base="", since="", approved="", left=False, rest=None
            )
            world = put(world, other.issue.id, with_work(other, own=gone))
    return world


def slept(world: World, gap: timedelta) -> World:
    """The machine slept, or its clock was set: trees stand for so much longer, for nobody could use them meanwhile."""
    for issue in sorted(world.indexes.dues):
        flow = world.flows[issue]
        rest = flow.work.own.rest if flow.work.own is not None else None
        if flow.stage == "closed" and rest is not None and rest.due is not None:
            world = put(world, issue, rested(flow, dataclasses.replace(rest, due=rest.due + gap)))
    return world


RULES: WorldRules = {TreeSeen: user_tree}

FOLDS: WorldFolds = {
    TreeSeen: tree_seen,
    TreePrepared: own_tree,
    TreeSealed: own_tree,
    TreeLeft: own_tree,
    TreeRests: resting_tree,
    TreeKept: resting_tree,
    TreeRemoved: resting_tree,
}
