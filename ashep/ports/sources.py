"""Port of a source: issues that are kept elsewhere, which people change and comment there at any moment.

Errors, for every method: `ForgeUnavailable` (try again later, not before `retry_after` seconds; `unknown=True` after a
write whose fate is not known), `ForgeUnauthorized`, `ForgeRefused` (never try the same again). Every call and every
answer is bounded. Texts that come from it have lost control, bidirectional and invisible characters.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class SourceIssueRead:
    """An issue as the source lists it."""

    number: int
    url: str
    title: str
    state: Literal["open", "closed", "gone"]
    """gone: deleted, transferred, made a discussion, or nobody may see it any more."""
    labelled: bool
    """It has the label by which it is asked for."""
    key: str = ""
    """Identity that stays when the source gets another name; empty: its source and number are."""
    locked: bool = False
    comments: int = 0
    """How many there are."""
    updated: str = ""
    """Differs whenever anything of it has changed."""


@dataclass(frozen=True, slots=True)
class SourceEvent:
    """Something that an account did."""

    id: str
    """Stable, and of this event alone: `event/7`, `comment/8`, `reaction/9`."""
    login: str
    moment: datetime
    bot: bool = False


@dataclass(frozen=True, slots=True)
class SourceHistory:
    """What happened to an issue."""

    title: str = ""
    body: str = ""
    """The words as they were when `edited` was read; empty where `unknown` says why."""
    label: SourceEvent | None = None
    """Who set the label that is there, last; None: there is no record of it."""
    reopened: SourceEvent | None = None
    closer: str = ""
    edited: datetime | None = None
    """When title or text were changed last."""
    unknown: str = ""
    """Why nobody can say when they were changed; empty: it was read."""


@dataclass(frozen=True, slots=True)
class SourceComment:
    """A comment."""

    event: SourceEvent
    text: str
    edited: bool = False

    @property
    def number(self) -> int:
        """Its id as a number."""
        return int(self.event.id.rpartition("/")[2])


class Source(Protocol):
    """A place where issues are kept. Nothing here ever changes an issue's words, labels or assignee."""

    name: str
    """Which one it is: of a forge the repository, as `owner/name`."""

    async def changed(self, *, everything: bool = False) -> tuple[SourceIssueRead, ...] | None:
        """List the issues that changed since the last look that was confirmed. None: nothing has changed.

        `everything`, and where there was no look: all that carry the label and are open. One request where nothing has
        changed. An issue that is gone may be missing: `issue` tells.
        """
        ...

    def confirm(self) -> None:
        """What `changed` gave last is dealt with: the next one begins there."""
        ...

    async def issue(self, number: int) -> SourceIssueRead:
        """Read one."""
        ...

    async def history(self, number: int) -> SourceHistory:
        """Read who set the label, and when its words were changed."""
        ...

    async def comments(self, number: int) -> tuple[SourceComment, ...]:
        """Read all comments, the oldest first."""
        ...

    async def thumbs(self, comment: int) -> tuple[SourceEvent, ...]:
        """Read who gave a comment a thumbs-up."""
        ...

    async def permission(self, login: str) -> str:
        """Say what an account may do: `admin`, `write`, `read` or `none`. It is asked each time."""
        ...

    async def account(self) -> str:
        """Say as which account this writes."""
        ...

    async def say(self, number: int, text: str, mark: str, comment: int | None = None) -> SourceEvent:
        """Have a comment of ashep's, found by its number or by its mark, say this, and nothing else: repeating it is
        harmless. A comment of another account with this mark is not ours.
        """
        ...

    async def close(self, number: int) -> None:
        """Close it as done, unless it is closed."""
        ...

    async def holds(self, branch: str, commit: str) -> bool:
        """Whether the branch there holds the commit; an empty branch is the one that the source has by default."""
        ...

    async def aclose(self) -> None:
        """Let go of connections."""
        ...
