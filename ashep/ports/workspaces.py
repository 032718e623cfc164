"""Ports of the work trees, the user's and those of issues: what their adapters must keep."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from ashep.core.facts.delivery import Amendment, Ground, StoryLeft, Tree
from ashep.core.impact.changes import Diff


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of an issue."""

    sha: str
    subject: str


@dataclass(frozen=True, slots=True)
class Changes:
    """What an issue's runs changed."""

    commits: tuple[Commit, ...] = ()
    stat: str = ""
    """`git diff --stat` of them, capped."""
    left_over: tuple[str, ...] = field(default=())
    """Paths that its runs left changed and uncommitted."""
    diff: str = ""
    """The patches of its commits and of what was left over, capped: a reader of the tree has no shell to ask git."""


class WorkTree(Protocol):
    """The user's work tree; only read, never reset, stashed or committed to."""

    async def read(self) -> Tree:
        """HEAD and the dirty paths now; `present=False` outside a repository."""
        ...

    async def changes(
        self, base: str | None, issue: str, commits: tuple[str, ...], left_over: tuple[str, ...]
    ) -> Changes:
        """The commits after `base` whose trailer `Ashep-Run` names this issue, and `commits` themselves, with their
        patches; of the paths `left_over` those that are still changed and uncommitted, with theirs.
        """
        ...

    async def between(self, before: str | None, after: str | None) -> tuple[str, ...]:
        """Commit ids after `before` up to `after`, oldest first; empty where they are equal or unknown."""
        ...


# --- the work trees of issues ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prepared:
    """A tree in which a session can work."""

    path: str
    """The project's folder in it: its top, or the folder below that the project is in the repository."""
    base: str
    """The commit that the branch began from; it stays the same for as long as the branch is kept."""
    head: str
    """The commit that the branch has now."""


@dataclass(frozen=True, slots=True)
class SealedBranch:
    """A branch that holds everything that was worked in its tree."""

    head: str
    tree: str
    """The git tree hash of `head`."""
    commits: tuple[Commit, ...]
    """After the base, oldest first."""
    told: tuple[str, ...] = ()
    """What was found out of order and what was done about it, a sentence each; empty after a usual run."""
    saved: tuple[str, ...] = ()
    """Refs that hold what is not on the branch."""
    lacking: tuple[str, ...] = ()
    """Of `told` what the branch lacks, where it is, and what to do: a person is told."""
    unwritable: tuple[str, ...] = ()
    """Files on the branch that git, as the user has it, writes to no work tree: with them it cannot land."""


@dataclass(frozen=True, slots=True)
class Amended:
    """A sealed branch as it is to be."""

    head: str
    """What it has now: where nothing was to be done, what it had."""
    refused: tuple[str, ...] = ()
    """What was put back, a sentence each."""
    story: StoryLeft | None = None


@dataclass(frozen=True, slots=True)
class Removed:
    """What became of a tree that was taken away."""

    saved: tuple[str, ...] = ()
    """Refs that hold what was in it and on no branch."""
    freed: int = 0
    """Bytes on the disk."""


@dataclass(frozen=True, slots=True)
class Landed:
    """A branch whose work is done, and where it went."""

    branch: str
    head: str
    """What was sealed there last."""
    onto: str = ""
    """The branch that it landed on; empty: nobody here landed it."""
    commit: str = ""
    """That branch's commit with which it landed."""


@dataclass(frozen=True, slots=True)
class WorkspaceInfo:
    """A tree that stands."""

    branch: str
    path: str
    base: str
    head: str
    dirty: bool
    """Something in it is not committed; what git ignores does not count."""
    size: int
    """Bytes on the disk; what it shares with the repository, its history, does not count."""
    used: datetime
    """When it was last prepared or sealed."""
    merged: bool
    """The base branch holds all of its commits."""
    landed: bool = False
    """It does not, but has what they bring, squashed or rebased; or was seen to have it."""


class Workspaces(Protocol):
    """Work trees of issues, each with a branch of its own; several issues may share a branch, and then its tree.

    Every call but `list` holds its branch: calls for one branch, of other processes too, come one after the other, and
    those for different branches do not wait for each other. Every call can be made again after it was killed in the
    midst, and then does what was left. Each is bound in time; whatever ends it, no process of it is left.

    Nothing is ever lost: what `seal`, `restore` and `remove` take out of a tree or off a branch is reachable from refs
    below `refs/ashep/saved/<branch>/` before anything is deleted: commits that nothing else holds, the stash entries of
    the tree, the index, conflicts, and every file, ignored ones too. Not saved are files that the set-up made, as long
    as nothing changed them; a file that git takes for unchanged is kept as git has it, line ends and all. What cannot
    be saved is an error, and nothing is deleted then.

    Errors: `AshepError` with what a person can do; nothing is half done then that another call does not complete.
    """

    async def prepare(self, branch: str, base: str | None, slot: int, ground: Ground = "own") -> Prepared:
        """See to it that the branch and its tree stand, and that its set-up has been executed once.

        The branch begins at `base`; None: at the commit that the base branch has now. A branch that exists keeps its
        commits and its recorded base, whatever `base` says. A tree that stands is left exactly as it is. `slot` (0 to
        the number of runs at once - 1) is told to the set-up as `ASHEP_SLOT`.

        `ground`: "fresh" takes the tree away first, as `remove` does, so that nothing that a run left there stays;
        files that git ignores are not saved.
        "sealed" gives, instead of the tree, which need not stand, what the branch has now in a folder that nobody
        writes to: without a git, ignored files, a set-up, and links that lead out of it, and with the files that
        instruct agents as the base has them. It is made again each time, and goes when the tree is removed. Trees that
        share the repository, with whoever works in the others, are the same for all.

        Raises `AshepError`: no room on the disk (only where a tree is to be made), no commit to begin from, a step of
        the set-up failed, the branch is checked out elsewhere, something else is in the tree's place.
        """
        ...

    async def seal(self, branch: str, run: str, message: str) -> SealedBranch:
        """Commit what is uncommitted in the tree, with the trailer `Ashep-Run: <run>`; no commit for an unchanged tree.

        Files that git ignores are not committed, nor those of bd and of `.agent-shepherd/state`. A merge, rebase or the
        like that was left with conflicts is saved and ended, one without conflicts is committed. Where HEAD is not on
        the branch, the branch is brought to contain it, and HEAD back on the branch. `told` says all that.

        A file that git refuses is kept next to the branch, as it is, and keeps no other from being committed; a
        repository that was made in the tree's root, or whatever stands in the place of the tree, is moved next to it. A
        tree that is gone leaves the branch as it is: the next `prepare` makes it again. `lacking` says all that.

        Raises `TreeRefused` where HEAD and the branch went apart and cannot be merged: both are saved, and it says how
        to go on.
        """
        ...

    async def amend(self, branch: str, run: str, head: str, wanted: Amendment) -> Amended:
        """Put back on a branch that was just sealed at `head` what its run may not change, and write into its story.

        Of a run that changed what it may not its commits go off the branch, and are saved; the files that it may change
        are committed again. The sprint status next to a story is what it was at the last commit that the branch and
        `wanted.fits` have in common, unless the story is completed. The branch is sealed at what comes of it, its tree
        is as that. Doing it again changes nothing.
        """
        ...

    async def changes(self, branch: str, base: str) -> Changes:
        """Give exactly what lies between `base` and the branch: commits, oldest first, `stat` and `diff` capped."""
        ...

    async def restore(self, branch: str, head: str) -> tuple[str, ...]:
        """Set branch and tree to a commit, as before a retry, and give the refs that hold what was there otherwise.

        Files that git ignores stay as they are.
        """
        ...

    async def remove(self, branch: str, *, forget: bool = False, drop_ignored: bool = False) -> Removed:
        """Take the tree away; the branch stays, unless it is to be forgotten with its recorded base. No tree: nothing.

        `drop_ignored`: don't save files that git ignores. Without it, more of them than can be saved are an error.
        """
        ...

    async def retire(self, landed: Landed, quiet: timedelta) -> Removed:
        """Take a tree away whose issue is closed, its branch, and what lies next to it; where nothing is left: nothing.

        That the branch it landed on, or the base branch, holds the branch's commits, or what they brought where it is
        still at `head`, is looked at now, and both are still so when the branch goes. What is on no branch is saved.

        Raises `AshepError` with the reason, and nothing is removed, where the branch has other commits, something in
        the tree is uncommitted, was changed within `quiet`, is a mount, or somebody is in it.
        """
        ...

    async def list(self, landed: Mapping[str, str] | None = None) -> tuple[WorkspaceInfo, ...]:
        """Give every tree, by branch. `landed`: commits of branches that were seen to land, each with the base's commit
        that held its work then; it counts for as long as the base holds that one, whatever became of the work there.
        """
        ...


class Diffs(Protocol):
    """Reads what lies between two commits; writes nothing, and nothing that a commit holds steers it.

    Errors: `ProgramMissing` without git, `ProgramTimedOut`, and `AshepError` with git's words for everything else.
    """

    async def find(self, revision: str) -> str | None:
        """Give the full id of the commit that a revision names; None where it names none."""
        ...

    async def read(self, base: str, head: str) -> Diff:
        """Read what `head` changes since it and `base` last were one: what landing `head` on `base` would bring.

        For what really lands, give the commit that was integrated and the base that it was integrated onto. Files
        beyond the bounds of a call, and those that are no text, are named without their lines.
        """
        ...
