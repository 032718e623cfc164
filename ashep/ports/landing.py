"""Port of landing: how the work of an issue comes to where the person wants it; and forges and remotes.

Two steps, each harmless to repeat. `integrate` makes the commit that could become the base's next one, and moves
nothing: what was made can be verified. `advance` moves the base to exactly that commit, if the base still is where it
was. A crash between or within them leaves what the next call recognises.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

ISSUE = "Ashep-Issue"
"""The trailer by which a commit on the base names the issue that it landed."""

HEAD = "Ashep-Head"
"""The trailer by which it names the last commit of the issue's branch that it holds."""

JOURNAL = "Ashep-Journal"
"""The trailer by which it names the head of the journal's chain at that time."""

Method = Literal["merge", "squash", "rebase"]
"""merge: a merge commit · squash: one commit on the base · rebase: the branch's commits again, one by one, on the base;
a branch that holds merges itself (of the base, say, to resolve a conflict) is squashed."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Work that is to land."""

    issue: str
    branch: str
    """Its branch, as `ashep/t-1`: names the result, and stands in what is told of a conflict."""
    head: str
    """The full id of the commit that is to land; the branch may have moved on."""
    base_branch: str
    message: str = ""
    """Subject and body of the commit that lands it (not of rebased ones); empty: a plain subject."""
    method: Method = "merge"
    journal: str = ""
    """The head of the journal's chain, for a trailer; empty: none."""


@dataclass(frozen=True, slots=True)
class Integrated:
    """The candidate on the newest base; nothing has moved yet."""

    base: str
    """The base's commit then: `old` of `advance`."""
    commit: str
    """`new` of `advance`. The same candidate on the same base is the same commit, whoever asks how often."""
    tree: str
    """Its git tree: what is to be verified."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """The candidate and the base contradict each other."""

    base: str
    """The base's commit then."""
    paths: tuple[str, ...]
    """Files in conflict, sorted; none where the two have no common history."""
    text: str
    """What contradicts what, with the hunks, capped: input for whoever resolves it."""


@dataclass(frozen=True, slots=True)
class AlreadyLanded:
    """The base holds all that the candidate brings."""

    base: str
    """The base's commit then."""


@dataclass(frozen=True, slots=True)
class Advanced:
    """The base holds the new commit."""

    base: str
    """The base's commit now: the new one, or one after it."""
    told: tuple[str, ...] = ()
    """What was found out of order and what was done about it, a sentence each."""


Code = Literal["moved", "dirty", "locked", "names", "failed", "protected", "gone"]
"""moved: the base is elsewhere, integrate again · dirty: the base is checked out, and what somebody has there is in the
way; wait for the person · locked: another git holds a lock, or left it · names: git writes files of such names to no
work tree · failed: git fails, whatever the person does there; try again a few times · protected: nobody moves this
branch but people · gone: there is no such branch."""


@dataclass(frozen=True, slots=True)
class MoveRefused:
    """The base was not moved, and nothing else changed."""

    code: Code
    why: str
    """In words for a person: what stands in the way, and where."""


class Landing(Protocol):
    """Brings commits onto a branch. It never forces: a base only ever moves to a commit that holds all that it held.

    Errors: `AshepError` where there is no such branch or commit, or the repository cannot be used, with the reason.
    Every call is bound in time. Only the one that owns the state folder calls `settle`, `integrate` or `advance`, and
    one at a time.
    """

    async def settle(self) -> None:
        """Finish or undo what an earlier life left half done; `advance` does so too. What a person changed stays."""
        ...

    async def tip(self, base_branch: str) -> str | None:
        """The branch's newest commit; None where there is no such branch."""
        ...

    async def landed(self, head: str, base_branch: str) -> bool:
        """Whether the base holds all that `head` brings, or held it once: the probe of a landing."""
        ...

    async def integrate(self, candidate: Candidate) -> Integrated | Conflict | AlreadyLanded:
        """Bring the candidate onto the newest base, in no work tree. The result is kept until `forget`."""
        ...

    async def advance(self, base_branch: str, old: str, new: str) -> Advanced | MoveRefused:
        """Move the base from exactly `old` to `new`, which holds `old`. Where the branch is checked out, the files
        there follow, if none that is to change differs from `old`; what is not in a commit is never overwritten.
        Repeating it is harmless: a base that holds `new` is `Advanced`.
        """
        ...

    async def forget(self, branch: str) -> None:
        """Let go of what `integrate` kept for a branch; nothing to forget is fine."""
        ...


@dataclass(frozen=True, slots=True)
class PullRequest:
    """What a forge is asked to show to people."""

    key: str
    """Stable, of this landing alone: in the body as `ashep.core.delivery.pull_request_body.marker`, by which it is
    found.
    """
    branch: str
    base: str
    title: str
    body: str
    """With the marker; `ashep.core.delivery.pull_request_body.body` makes it."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A pull request that stands."""

    number: int
    url: str


Ci = Literal["none", "pending", "passing", "failing"]
"""What checks of the forge say of the newest commit. none: it has none."""


@dataclass(frozen=True, slots=True)
class PullRequestComment:
    """What somebody said of a pull request."""

    id: str
    """Stable, and of this remark alone."""
    kind: Literal["comment", "approved", "changes_requested"]
    by: str
    """Their name at the forge."""
    at: str
    """When, as the forge writes it (RFC 3339); empty where it does not say."""
    text: str = ""
    path: str | None = None
    """The file that it is about."""
    bot: bool = False
    """The forge says that it was no person."""


@dataclass(frozen=True, slots=True)
class PullState:
    """What became of a pull request."""

    state: Literal["open", "merged", "closed"]
    head: str
    """The newest commit of its branch at the forge."""
    by: str | None = None
    """Who merged or closed it, where the forge says so."""
    merged_as: str | None = None
    """The commit by which the base has it."""
    ci: Ci = "none"
    failing: tuple[str, ...] = ()
    """Names of the checks that failed, sorted."""
    failures: tuple[str, ...] = ()
    """What they say: each with its name, and its address where it has one."""
    said: tuple[PullRequestComment, ...] = ()
    """Everything that was said by who belongs to the repository, or is named in `landing.forge.people`, oldest first.

    What others say is left out, whatever it is, and so is what carries our marker, which is ours."""


class Forge(Protocol):
    """A place where people look at branches before they merge them. Nothing here ever merges or closes.

    Errors, for every method: `ForgeUnavailable` (try again later, not before `retry_after` seconds; `unknown=True`
    after a write whose fate is not known), `ForgeUnauthorized`, `ForgeRefused` (never try the same again).
    Every call and every answer is bounded.
    """

    async def find(self, key: str, branch: str, base: str) -> Opened | None:
        """The pull request of this key, whatever became of it; else an open one of this branch, whoever opened it."""
        ...

    async def open(self, request: PullRequest) -> Opened:
        """Open it, unless `find` finds one. Repeating it is harmless: there are never two for one branch."""
        ...

    async def state(self, number: int) -> PullState:
        """Read what became of it."""
        ...

    async def aclose(self) -> None:
        """Let go of connections."""
        ...


@dataclass(frozen=True, slots=True)
class Pushed:
    """The remote branch is at the commit."""

    head: str


@dataclass(frozen=True, slots=True)
class NotPushed:
    """Nothing was pushed."""

    code: Literal["theirs", "protected", "refused"]
    """theirs: the remote branch has commits that are not ours · protected: only people push there · refused: the
    remote said no."""
    why: str


class Remote(Protocol):
    """A remote of the repository. It is never forced, and no branch is ever deleted there.

    Errors: `ForgeUnavailable` where it does not answer, `AshepError` where there is no such commit or remote.
    """

    async def head(self, branch: str) -> str | None:
        """The commit at which the branch is there; None where there is no such branch."""
        ...

    async def push(self, branch: str, commit: str, base: str) -> Pushed | NotPushed:
        """Bring the branch to the commit, if that holds all that stands there; never the base. Harmless to repeat."""
        ...
