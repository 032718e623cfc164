"""Commands: what is to be done in the world. A command's journal record is the intent; its `key` is stable.

`tries` counts the earlier tries of the same key: a command with tries, or one found open after a crash, is probed
before it is carried out.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from ashep.core.facts import requests, resources, runs, tracker
from ashep.core.policy.policies import PermissionRule


@dataclass(frozen=True, slots=True)
class ClaimIssue:
    """Take the issue: assignee, `in_progress`, the first phase's label and our stamp in one write."""

    key: str
    issue: str
    stamp: tracker.Stamp
    add_labels: tuple[str, ...]
    remove_labels: tuple[str, ...]
    tries: int = 0


@dataclass(frozen=True, slots=True)
class WriteIssue:
    """One guarded write that gives the issue its posture: transition, question, parking, giving back, close."""

    key: str
    issue: str
    kind: Literal["work", "ask", "park", "give_back", "close"]
    if_status: str
    if_assignee: str | None
    stamp: tracker.Stamp
    status: str
    assignee: str | None
    add_labels: tuple[str, ...]
    remove_labels: tuple[str, ...]
    tries: int = 0


@dataclass(frozen=True, slots=True)
class TakeOffLabels:
    """Take refused answer labels off."""

    key: str
    issue: str
    labels: tuple[str, ...]
    tries: int = 0


@dataclass(frozen=True, slots=True)
class PostComment:
    """Post a comment; the key is its marker."""

    key: str
    issue: str
    name: str
    text: str
    tries: int = 0


@dataclass(frozen=True, slots=True)
class CreateIssue:
    """Create an issue that an agent asked for, under an id that is already known."""

    key: str
    issue: str
    id: str
    new: tracker.NewIssue
    stamp: tracker.Stamp
    parked: bool
    labels: tuple[str, ...]
    tries: int = 0


@dataclass(frozen=True, slots=True)
class ReadIssue:
    """Read the issue anew: a guard tripped, or it vanished from the list."""

    key: str
    issue: str
    tries: int = 0


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """Read who set the answer labels, and the comments."""

    key: str
    issue: str
    after: str = ""
    """Only comments behind our own of this name: a question's answers."""
    tries: int = 0


@dataclass(frozen=True, slots=True)
class ReadAuthors:
    """Read who made these changes of the issue."""

    key: str
    issue: str
    changes: tuple[tracker.Difference, ...]
    tries: int = 0


@dataclass(frozen=True, slots=True)
class OpenSession:
    """Open a session for a run, or make sure that the one to be reused is still there."""

    key: str
    issue: str
    run: str
    session_key: str
    """Stands in the session's metadata."""
    access: Literal["read", "write"]
    slug: str | None
    model: runs.Model | None
    reuse: str | None
    permissions: tuple[PermissionRule, ...] = ()
    """The user's rules, the first that fits decides; what the access forbids stays forbidden."""
    tries: int = 0
    directory: str | None = None
    """The issue's own work tree; None: the project's folder."""


@dataclass(frozen=True, slots=True)
class PreparePrompt:
    """Write the text of prompt n of the run: 1 the task (or that a person was there), then what was wrong with the
    outcome, then an extraction; and, of a stalled turn, a diagnosis.
    """

    key: str
    issue: str
    run: str
    n: int
    kind: Literal["task", "recover", "extract", "resume", "diagnose"]
    tries: int = 0


@dataclass(frozen=True, slots=True)
class SendPrompt:
    """Deliver a prompt under these ids."""

    key: str
    issue: str
    run: str
    n: int
    session: str
    message_id: str
    part_id: str
    blob: str
    slug: str | None
    model: runs.Model | None
    again: bool
    """The turn died: the same ids are sent again although the message stands."""
    tries: int = 0


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """Answer what the run's session asks."""

    key: str
    issue: str
    run: str
    request: str
    kind: Literal["permission", "question"]
    verdict: requests.Verdict
    answers: tuple[tuple[str, ...], ...] = ()
    message: str = ""
    tries: int = 0
    session: str = ""
    """Whose request it is."""


@dataclass(frozen=True, slots=True)
class StopTurn:
    """Abort what the run's session is doing and see that it stopped."""

    key: str
    issue: str
    run: str
    session: str
    tries: int = 0


@dataclass(frozen=True, slots=True)
class ReadTree:
    """Read the work tree before or after a write run."""

    key: str
    issue: str
    run: str
    moment: Literal["before", "after"]
    since: str | None
    """After: HEAD before the run."""
    tries: int = 0


@dataclass(frozen=True, slots=True)
class PrepareTree:
    """See to it that the issue's own work tree stands."""

    key: str
    issue: str
    run: str
    branch: str
    base: str | None
    """Where the branch began; None: that is to be found now."""
    slot: int
    tries: int = 0


@dataclass(frozen=True, slots=True)
class SealTree:
    """Commit what a run left in the issue's own work tree."""

    key: str
    issue: str
    run: str
    branch: str
    tries: int = 0


@dataclass(frozen=True, slots=True)
class RemoveTree:
    """Take the tree and the branch of a closed issue away, where the base holds all that is in them."""

    key: str
    issue: str
    branch: str
    head: str
    """The commit that was sealed last: what is after it is somebody else's."""
    onto: str
    """The branch that it landed on; empty: nobody here landed it."""
    commit: str
    """The commit of that branch with which it landed."""
    quiet: timedelta
    """For so long nothing in it must have changed."""
    tries: int = 0


@dataclass(frozen=True, slots=True)
class VerifyWork:
    """Carry out on a commit what is to be checked, and see whether it differs from its base at all."""

    key: str
    issue: str
    commit: str
    base: str
    """The commit that the work began from: its scripts are what checks run."""
    run: str = ""
    """Whose success is verified; empty: the work is about to land."""
    policy: str = ""
    phase: str = ""
    """Whose `checks` count; empty: those of all the policy's phases."""
    criteria: str = ""
    """The blob of the issue's own, as they were adopted."""
    adopt: bool = False
    """Those are not known yet: they are to be read now."""
    change: bool = False
    """Whether work that changes nothing falls short."""
    tries: int = 0


@dataclass(frozen=True, slots=True)
class IntegrateWork:
    """Bring an issue's work onto the newest base, without moving anything."""

    key: str
    issue: str
    branch: str
    head: str
    onto: str
    method: Literal["merge", "squash", "rebase"]
    message: str
    tries: int = 0


@dataclass(frozen=True, slots=True)
class MoveBase:
    """Move a branch from exactly one commit to another that holds it."""

    key: str
    issue: str
    branch: str
    head: str
    onto: str
    old: str
    new: str
    tries: int = 0


@dataclass(frozen=True, slots=True)
class OpenPullRequest:
    """Push an issue's branch, forward only, and have a pull request ask people to merge it."""

    key: str
    issue: str
    branch: str
    head: str
    since: str
    """The commit that the work began from."""
    base: str
    """The branch that it is to be merged into."""
    name: str
    """By which the pull request is found again."""
    title: str
    tries: int = 0


@dataclass(frozen=True, slots=True)
class StopOrphan:
    """Stop the session of a run that another journal knew, where our server has it; `orphan` is that session's key."""

    key: str
    issue: str
    orphan: str
    tries: int = 0
    branch: str | None = None
    """The branch in whose own tree that run may have been at work."""


@dataclass(frozen=True, slots=True)
class ReclaimIssue:
    """Have the tracker free the issue of a daemon whose lease ran out: it checks that once more."""

    key: str
    issue: str
    holder: str
    tries: int = 0


@dataclass(frozen=True, slots=True)
class SendNotice:
    """Tell a target of `notify` what is worth a person: all of it in one message."""

    key: str
    target: str
    notices: tuple[resources.Notice, ...]
    tries: int = 0


IssueCommand = (
    ClaimIssue | WriteIssue | TakeOffLabels | PostComment | CreateIssue | ReadIssue | ReadAnswer | OpenSession
    | PreparePrompt | SendPrompt | StopTurn | ReadTree | PrepareTree | SealTree | StopOrphan | ReclaimIssue
    | AnswerRequest | VerifyWork | IntegrateWork | MoveBase | OpenPullRequest | ReadAuthors | RemoveTree
)  # fmt: skip
"""What can be asked for about an issue."""

Command = IssueCommand | SendNotice
"""Everything that can be asked for."""

WRITES = (ClaimIssue, WriteIssue, TakeOffLabels, PostComment, CreateIssue, ReclaimIssue)
"""The commands that write to the issue in the tracker: at most one of them is open for an issue at any time."""
