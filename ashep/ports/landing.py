"""The port of landing: how the work of an issue comes to where the person wants it (see `ashep.ports.tracker` for the others).

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
class Refused:
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

    async def advance(self, base_branch: str, old: str, new: str) -> Advanced | Refused:
        """Move the base from exactly `old` to `new`, which holds `old`. Where the branch is checked out, the files
        there follow, if none that is to change differs from `old`; what is not in a commit is never overwritten.
        Repeating it is harmless: a base that holds `new` is `Advanced`.
        """
        ...

    async def forget(self, branch: str) -> None:
        """Let go of what `integrate` kept for a branch; nothing to forget is fine."""
        ...
