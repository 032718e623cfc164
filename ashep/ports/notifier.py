"""Port of the notifier, which tells people, and the message that it is given.

Every adapter keeps this contract, the memory one included; `tests/conformance/test_notifier.py` runs one suite over
all of them.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote

from ashep.core.facts import records, resources
from ashep.core.policy.settings import NotifyTarget

TIMEOUT = 30.0
"""Seconds that a target has to take a message."""

SHOWN = 50
"""Notices that a message shows; the others are counted."""

VERSION = 1
"""The version of a message's JSON."""

_TITLES = {
    "waiting": ("waits for you", "wait for you"),
    "parked": ("is parked", "are parked"),
    "provider_down": ("server is away", "servers are away"),
    "budget": ("budget", "budgets"),
    "stopped_unexpectedly": ("ended without a word", "ended without a word"),
    "finding": ("finding of the audit", "findings of the audit"),
}


@dataclass(frozen=True, slots=True)
class Message:
    """What a target is told at once."""

    id: str
    """The same for each delivery of this message, and for no other."""
    title: str
    text: str
    """A line for each notice."""
    notices: tuple[resources.Notice, ...] = ()
    journal: str = ""
    """The journal's instance id: with it the ids of notices are unique."""
    again: bool = False
    """It may have been delivered before."""
    test: bool = False
    address: str | None = None
    """Where people reach the page; None: nobody knows, and nothing links there."""
    head: str = ""
    """The head of the journal's chain: `ashep journal verify --head` says whether it was written again since."""

    def as_json(self, source: str) -> dict[str, Any]:
        """Give it as plain JSON data; `source` names the project."""
        return {
            "v": VERSION, "id": self.id, "source": source, "title": self.title, "text": self.text,
            "again": self.again, "test": self.test, "journal": self.head,
            "notices": [
                {
                    "id": f"{self.journal}:{notice.id}", "seq": notice.cause, "event": notice.event,
                    "issue": notice.issue,
                    "about": notice.about, "at": records.format_time(notice.noted), "text": notice.text,
                } | ({"link": link} if (link := _link(self.address, notice)) else {})
                for notice in self.notices[:SHOWN]
            ],
        }  # fmt: skip


class Notifier(Protocol):
    """Tells people."""

    async def send(self, target: NotifyTarget, message: Message) -> None:
        """Hand a message to a target, within `TIMEOUT` seconds; nothing is left running after.

        Raises:
            NotSent: the target did not take it, or may not have. Its text holds no secret of the target's.

        """
        ...


def message_of(
    notices: Sequence[resources.Notice],
    journal: str,
    key: str,
    *,
    again: bool = False,
    address: str | None = None,
    head: str = "",
) -> Message:
    """Put notices into words; `address`: where people reach the page."""
    counts = Counter(notice.event for notice in notices)
    title = ", ".join(f"{count} {_TITLES[event][count > 1]}" for event, count in counts.items())
    lines = [f"- {notice.text} {_link(address, notice)}".rstrip() for notice in notices[:SHOWN]]
    if len(notices) > SHOWN:
        lines.append(f"- and {len(notices) - SHOWN} more: see `ashep status`")
    if head:
        lines.append(f"(journal {head})")
    text = "\n".join(lines)
    return Message(f"{journal}:{key}", title, text, tuple(notices), journal, again, address=address, head=head)


def _link(address: str | None, notice: resources.Notice) -> str:
    """The page of the notice's issue; it lets nobody in."""
    return f"{address}/issues/{quote(notice.issue, safe='')}" if address and notice.issue else ""
