"""The ports of landing by pull request: the forge, where people look at it, and the remote that it is pushed to."""

from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class PullRequest:
    """What a forge is asked to show to people."""

    key: str
    """Stable, and of this landing alone: stands in the body as `ashep.core.delivery.pull_text.marker` and finds it again."""
    branch: str
    base: str
    title: str
    body: str
    """With the marker; `ashep.core.delivery.pull_text.body` makes it."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A pull request that stands."""

    number: int
    url: str


Ci = Literal["none", "pending", "passing", "failing"]
"""What checks of the forge say of the newest commit. none: it has none."""


@dataclass(frozen=True, slots=True)
class Said:
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
    said: tuple[Said, ...] = ()
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
