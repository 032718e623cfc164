"""Issues of a source in memory; `opens`, `labels` and the like play people there."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

import anyio.lowlevel

from ashep.errors import ForgeRefused
from ashep.ports.sources import SourceComment, SourceEvent, SourceHistory, SourceIssueRead


@dataclass
class StoredSourceIssue:
    """An issue with what happened to it."""

    read: SourceIssueRead
    history: SourceHistory = field(default_factory=SourceHistory)
    comments: list[SourceComment] = field(default_factory=list[SourceComment])


class MemorySource:
    """A repository. `rights`: what accounts may do, `writes` names the account of ashep's."""

    def __init__(self, clock: Callable[[], datetime], name: str = "acme/shop", account: str = "shepherd") -> None:
        self.name, self.rights = name, {"olga": "admin", "ann": "write", account: "admin", "eve": "read"}
        self.issues = dict[int, StoredSourceIssue]()
        self.reactions = dict[int, list[SourceEvent]]()
        self.pushed = dict[str, set[str]]()
        """The commits that branches hold."""
        self._now, self._account, self._ids, self._version = clock, account, 0, 0
        self._changed, self._taken = dict[int, int](), -1
        self._given = -1

    # --- people ---

    def opens(self, title: str, login: str = "olga", body: str = "Do it.", *, labelled: bool = True) -> int:
        """Somebody opens an issue; give its number."""
        number = len(self.issues) + 12
        url = f"memory:{self.name}/{number}"
        read = SourceIssueRead(number, url, title, "open", labelled=False, key=url)
        self.issues[number] = StoredSourceIssue(read, SourceHistory(title=title, body=body))
        self._touch(number)
        if labelled:
            self.labels(number, login)
        return number

    def labels(self, number: int, login: str, *, removed: bool = False, bot: bool = False) -> None:
        """Somebody sets the label, or takes it off."""
        event = None if removed else replace(self._event("event", login), bot=bot)
        self._put(number, history=replace(self.issues[number].history, label=event), labelled=not removed)

    def edits(self, number: int, body: str) -> None:
        """Somebody changes the text."""
        self._put(number, history=replace(self.issues[number].history, edited=self._now(), body=body))

    def ends(self, number: int, login: str, state: Literal["open", "closed", "gone"] = "closed") -> None:
        """Somebody closes it, opens it again, or deletes it."""
        reopening = self._event("event", login) if state == "open" else self.issues[number].history.reopened
        self._put(number, history=replace(self.issues[number].history, closer=login, reopened=reopening), state=state)

    def says(self, number: int, login: str, text: str) -> int:
        """Somebody comments; give the comment's number."""
        comment = SourceComment(self._event("comment", login), text)
        self.issues[number].comments.append(comment)
        self._put(number)
        return comment.number

    def rewrites(self, number: int, comment: int, text: str) -> None:
        """Somebody changes a comment."""
        stored = self.issues[number]
        stored.comments = [
            replace(item, text=text, edited=True) if item.number == comment else item for item in stored.comments
        ]
        self._put(number)

    def thumbs_up(self, comment: int, login: str) -> None:
        """Somebody likes a comment."""
        self.reactions.setdefault(comment, []).append(self._event("reaction", login))

    def ours(self, number: int) -> list[str]:
        """Give what we said."""
        return [item.text for item in self.issues[number].comments if item.event.login == self._account]

    def _event(self, kind: str, login: str) -> SourceEvent:
        self._ids += 1
        return SourceEvent(f"{kind}/{self._ids}", login, self._now())

    def _put(self, number: int, history: SourceHistory | None = None, **fields: object) -> None:
        stored = self.issues[number]
        stored.read = replace(stored.read, comments=len(stored.comments), **fields)  # pyright: ignore[reportArgumentType] - fields of it
        stored.history = history or stored.history
        self._touch(number)

    def _touch(self, number: int) -> None:
        self._version += 1
        self._changed[number] = self._version
        stored = self.issues[number]
        stored.read = replace(stored.read, updated=str(self._version))

    # --- the port ---

    async def changed(self, *, everything: bool = False) -> tuple[SourceIssueRead, ...] | None:
        """List them by when they changed."""
        await anyio.lowlevel.checkpoint()
        reads = {number: item.read for number, item in self.issues.items() if item.read.state != "gone"}
        everything = everything or self._taken < 0
        if everything:
            reads = [item for item in reads.values() if item.labelled and item.state == "open"]
        else:
            reads = [item for number, item in reads.items() if self._changed[number] > self._taken]
        self._given = self._version
        return tuple(reads) if reads or everything else None

    def confirm(self) -> None:
        """Go on from there."""
        self._taken = self._given

    async def issue(self, number: int) -> SourceIssueRead:
        """Read one."""
        await anyio.lowlevel.checkpoint()
        stored = self.issues.get(number)
        return stored.read if stored is not None else SourceIssueRead(number, "", "", "gone", labelled=False)

    async def history(self, number: int) -> SourceHistory:
        """Read what happened."""
        await anyio.lowlevel.checkpoint()
        return self.issues[number].history

    async def comments(self, number: int) -> tuple[SourceComment, ...]:
        """Read the comments."""
        await anyio.lowlevel.checkpoint()
        return tuple(self.issues[number].comments)

    async def thumbs(self, comment: int) -> tuple[SourceEvent, ...]:
        """Read who likes a comment."""
        await anyio.lowlevel.checkpoint()
        return tuple(self.reactions.get(comment, ()))

    async def permission(self, login: str) -> str:
        """Say what somebody may do."""
        await anyio.lowlevel.checkpoint()
        return self.rights.get(login, "none")

    async def account(self) -> str:
        """Say who we are."""
        return self._account

    async def say(self, number: int, text: str, mark: str, comment: int | None = None) -> SourceEvent:
        """Comment, or change our comment."""
        await anyio.lowlevel.checkpoint()
        stored, body = self.issues[number], f"{text}\n\n{mark}"
        if stored.read.state == "gone":
            raise ForgeRefused(f"there is no issue {number}", status=404)
        mine = [
            item for item in stored.comments if item.event.login == self._account and mark in item.text.splitlines()
        ]
        if not mine:
            self.says(number, self._account, body)
            return stored.comments[-1].event
        standing = next((item for item in mine if item.number == comment), mine[0])
        if standing.text != body:
            self.rewrites(number, standing.number, body)
        return standing.event

    async def close(self, number: int) -> None:
        """Close it."""
        await anyio.lowlevel.checkpoint()
        if self.issues[number].read.state == "open":
            self.ends(number, self._account)

    async def holds(self, branch: str, commit: str) -> bool:
        """Look for the commit."""
        await anyio.lowlevel.checkpoint()
        return commit in self.pushed.get(branch or "main", set())

    async def aclose(self) -> None:
        """Nothing is open."""
