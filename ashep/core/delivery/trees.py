"""Where an issue is worked on: in the user's work tree, which all share, or in a tree and on a branch of its own."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal

from ashep.core.facts.file_map import FileMap
from ashep.core.state.branches import SHARED, branch_of, shared_branch
from ashep.core.state.holds import Hold

if TYPE_CHECKING:
    from ashep.core.policy.settings import Issue, Labels
    from ashep.core.state.flow import Flow
    from ashep.core.state.world import World


@dataclass(frozen=True, slots=True)
class Rest:
    """Until when the tree of a closed issue stands (`ashep.core.delivery.resting`)."""

    due: datetime | None
    keep: timedelta | None
    tries: int = 0
    why: str = ""
    """Why it was kept when it was to go."""
    asked: int = 0
    """The number at which its time was over: it is being looked at. 0: it is not."""


@dataclass(frozen=True, slots=True)
class OwnTree:
    """The work tree of an issue's own, as far as it is known."""

    branch: str
    slot: int
    """A small number that no other issue has which is being worked on: for ports and other scarce things."""
    path: str = ""
    """Where it stands; empty until it was prepared."""
    base: str = ""
    """The commit that the branch began from."""
    head: str = ""
    """The commit that the branch had when it was last looked at."""
    tree: str = ""
    """The git tree hash of `head`, once a run's work was sealed."""
    flags: tuple[str, ...] = ()
    """What its changes since the base touched, when it was sealed last."""
    files: FileMap | None = None
    """The files that they touched; None: it is not known."""
    approved: str = ""
    """The head that a person approved last."""
    since: str = ""
    """The commit of the branch that its work must fit, when the two were last brought together; empty: they never were.
    What its branch took in of that is not the issue's own. It is not asked for again: an agent can move branches."""
    left: bool = False
    """What its last run left there could not be sealed: `head` lacks it."""
    rest: Rest | None = None
    """Its issue is closed, and it has its time."""
    onto: str | None = None
    """The branch that the user's checkout had when it was prepared: the work is to go there. None: it had none."""

    @property
    def fits(self) -> str:
        """The commit that its work is compared with: since the two last were one, all is the issue's.

        It is one that the journal knows, and not the base branch as it stands: whoever may write to the repository,
        agents too, can move that to where nothing differs.
        """
        return self.since or self.base


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
    names = (
        label.removeprefix(labels.branch_prefix) for label in issue.labels if label.startswith(labels.branch_prefix)
    )
    shared = min((name for name in names if name.strip()), default=None)
    return branch_of(issue.id) if shared is None else shared_branch(shared)


def is_shared(branch: str) -> bool:
    """Whether several issues may be worked on there, one after the other."""
    return branch.startswith(SHARED)


def branch_at(world: World, flow: Flow) -> str:
    """Give the branch on which an issue is worked on, or would be."""
    return flow.own.branch if flow.own is not None else branch_for(flow.issue, world.settings.labels)


def branch_taken(world: World, flow: Flow, begun: frozenset[tuple[str, str]]) -> Hold | None:
    """Say who else is not done on the branch that an issue shares: unfinished work of another would land with it.

    Two may be at it all the same, where people or a lost state folder led them there: then the first goes on, as soon
    as no run of the other is at work. `begun`: branches on which others are begun just now.
    """
    branch, me = branch_at(world, flow), flow.issue.id
    if not is_shared(branch):
        return None
    now = {issue for name, issue in begun if name == branch}
    at_work, others = {*world.branch_runs.get(branch, ()), *now} - {me}, {*world.branches.get(branch, ()), *now} - {me}
    if not others or (not at_work and flow.active and flow.own is not None and me < min(others)):
        return None
    return Hold("branch", f"{min(at_work or others)} is not done on the branch {branch}", branch)


def takers(world: World) -> list[str]:
    """Give the issues that have a slot: a turn of theirs may go on, or what it left is about to be sealed.

    Whose turn was seen stopped has none once the issue is nobody's to go on with, or its tree resists: others begin.
    """
    return [issue for issue in world.live if _has_slot(world.flows[issue])]


def _has_slot(flow: Flow) -> bool:
    run = flow.run
    if run is None or not run.ended or run.stop:
        return True
    return flow.stage in ("work", "person", "finishing") and after(run.id) not in dict(flow.tries)


def after(run: str) -> str:
    """Give the key of what is done with a run's tree when the run is over."""
    return f"{run}/tree/after"


def slot_of(issue: str, known: frozenset[tuple[str, int]]) -> int:
    """Give the number that an issue has and nobody else, else the smallest that nobody has.

    An issue that comes back from a rest may find that another has been given its number.
    """
    taken = {number for other, number in known if other != issue}
    own = next((number for other, number in known if other == issue and number not in taken), None)
    return own if own is not None else next(number for number in range(len(taken) + 1) if number not in taken)
