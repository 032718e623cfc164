"""Commands: what is to be done in the world. A command's journal record is the intent; its `key` is stable.

`tries` counts the earlier tries of the same key: a command with tries, or one found open after a crash, is probed
before it is executed.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from ashep.core.facts import requests, resources, runs, sources, tracker
from ashep.core.facts.delivery import Amendment, Ground
from ashep.core.policy.agents import Sandbox
from ashep.core.policy.policies import PermissionRule
from ashep.core.policy.runner_kinds import OPENCODE


@dataclass(frozen=True, slots=True)
class OfIssue:
    """A command about an issue."""

    key: str
    issue: str


@dataclass(frozen=True, slots=True)
class OfRun(OfIssue):
    """A command about a run of an issue."""

    run: str


@dataclass(frozen=True, slots=True)
class ClaimIssue(OfIssue):
    """Take the issue: assignee, `in_progress`, the first phase's label and our stamp in one write."""

    stamp: tracker.Stamp
    add_labels: tuple[str, ...]
    remove_labels: tuple[str, ...]
    tries: int = 0


@dataclass(frozen=True, slots=True)
class WriteIssue(OfIssue):
    """One guarded write that gives the issue its posture: transition, question, parking, giving back, close."""

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
class TakeOffLabels(OfIssue):
    """Take refused answer labels off."""

    labels: tuple[str, ...]
    tries: int = 0


@dataclass(frozen=True, slots=True)
class PostComment(OfIssue):
    """Post a comment; the key is its marker."""

    name: str
    text: str
    tries: int = 0


@dataclass(frozen=True, slots=True)
class CreateIssue(OfIssue):
    """Create an issue that an agent asked for, under an id that is already known."""

    id: str
    new: tracker.NewIssue
    stamp: tracker.Stamp
    parked: bool
    labels: tuple[str, ...]
    tries: int = 0


@dataclass(frozen=True, slots=True)
class ReadIssue(OfIssue):
    """Read the issue again: a guard tripped, or it vanished from the list."""

    tries: int = 0


@dataclass(frozen=True, slots=True)
class ReadAnswer(OfIssue):
    """Read who set the answer labels, and the comments."""

    after: str = ""
    """Only comments behind our own of this name: a question's answers."""
    tries: int = 0


@dataclass(frozen=True, slots=True)
class ReadAuthors(OfIssue):
    """Read who made these changes of the issue."""

    changes: tuple[tracker.Difference, ...]
    tries: int = 0


@dataclass(frozen=True, slots=True)
class OpenSession(OfRun):
    """Open a session for a run, or make sure that the one to be reused is still there."""

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
    sandbox: Sandbox | None = None
    """Where its agent runs; None: as config.yaml says."""
    runner: str = OPENCODE


@dataclass(frozen=True, slots=True)
class PreparePrompt(OfRun):
    """Write the text of prompt n of the run: 1 the task (or that a person was there), then what was wrong with the
    outcome, then an extraction; and, of a stalled turn, a diagnosis.
    """

    n: int
    kind: Literal["task", "recover", "extract", "resume", "diagnose", "continue"]
    tries: int = 0


@dataclass(frozen=True, slots=True)
class SendPrompt(OfRun):
    """Deliver a prompt under these ids."""

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
class AnswerRequest(OfRun):
    """Answer what the run's session asks."""

    request: str
    kind: Literal["permission", "question"]
    verdict: requests.Verdict
    answers: tuple[tuple[str, ...], ...] = ()
    message: str = ""
    tries: int = 0
    session: str = ""
    """Whose request it is."""


@dataclass(frozen=True, slots=True)
class StopTurn(OfRun):
    """Abort what the run's session is doing and see that it stopped."""

    session: str
    tries: int = 0


@dataclass(frozen=True, slots=True)
class ReadTree(OfRun):
    """Read the work tree before or after a write run."""

    moment: Literal["before", "after"]
    since: str | None
    """After: HEAD before the run."""
    tries: int = 0


@dataclass(frozen=True, slots=True)
class PrepareTree(OfRun):
    """See to it that the issue's own work tree stands."""

    branch: str
    base: str | None
    """Where the branch began; None: that is to be found now."""
    slot: int
    tries: int = 0
    ground: Ground = "own"
    seals: bool = False
    """What ashep itself writes when the run is over is to be committed, although it only reads."""
    fetch: str = ""
    """The branch that is fetched first: a new branch begins where that is at the remote."""


@dataclass(frozen=True, slots=True)
class SealTree(OfRun):
    """Commit what a run left in the issue's own work tree."""

    branch: str
    tries: int = 0
    amend: Amendment | None = None
    """What is done to that before anything follows from it."""


@dataclass(frozen=True, slots=True)
class RemoveTree(OfIssue):
    """Take the tree and the branch of a closed issue away, where the base holds all that is in them."""

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
class VerifyWork(OfIssue):
    """Execute on a commit what is to be checked, and see whether it differs from its base at all."""

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
class IntegrateWork(OfIssue):
    """Bring an issue's work onto the newest base, without moving anything."""

    branch: str
    head: str
    onto: str
    method: Literal["merge", "squash", "rebase"]
    message: str
    tries: int = 0


@dataclass(frozen=True, slots=True)
class MoveBase(OfIssue):
    """Move a branch from exactly one commit to another that holds it."""

    branch: str
    head: str
    onto: str
    old: str
    new: str
    tries: int = 0


@dataclass(frozen=True, slots=True)
class OpenPullRequest(OfIssue):
    """Push an issue's branch, forward only, and have a pull request ask people to merge it."""

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
class StopOrphan(OfIssue):
    """Stop the session of a run that another journal knew, where our server has it; `orphan` is that session's key."""

    orphan: str
    tries: int = 0
    branch: str | None = None
    """The branch in whose own tree that run may have been at work."""


@dataclass(frozen=True, slots=True)
class ReclaimIssue(OfIssue):
    """Have the tracker free the issue of a daemon whose lease ran out: it checks that once more."""

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

Command = IssueCommand | SendNotice | sources.SourceCommand
"""Everything that can be asked for."""

WRITES = (ClaimIssue, WriteIssue, TakeOffLabels, PostComment, CreateIssue, ReclaimIssue)
"""The commands that write to the issue in the tracker: at most one of them is open for an issue at any time."""
