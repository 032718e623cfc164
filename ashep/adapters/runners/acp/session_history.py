"""What an agent tells of a session when it loads it: whether a prompt of ours stands there, what follows it, and who
else wrote. And how our prompts are found again: by a line that names them.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ashep.adapters.runners.foreign_json import as_list, as_object

_KEY = re.compile(r"<!-- ashep:([\w.-]+) -->")
_OWN = re.compile(
    r"\[Request interrupted|Continue from where you left off|No response requested\.|This session is being continued|"
    r"<(?:task-notification|system-reminder|local-command|command-)"
)
"""How messages begin that Claude Code writes itself, where a turn was cut off, say (facts/claude-code.md 25, 30)."""

_MOST = 4000  # entries
_LONGEST = 512 * 1024  # characters of one


def keyed(message: str, text: str) -> str:
    """The text of a prompt with the line by which it is found again."""
    return f"{text}\n\n<!-- ashep:{message} -->"


def words_of(update: Mapping[str, Any]) -> str:
    """The text of a chunk; empty where it has none, or was not written for people to read."""
    content = as_object(update.get("content"))
    audience = as_list(as_object(content.get("annotations")).get("audience"))
    if audience and "user" not in audience:
        return ""
    text: object = content.get("text")
    return text if content.get("type") == "text" and isinstance(text, str) else ""


@dataclass(slots=True)
class _Entry:
    who: str
    id: str
    text: str = ""
    ends: bool = True

    @property
    def key(self) -> str:
        found = _KEY.findall(self.text) if self.who == "user" else []
        return str(found[-1]) if found else ""


class SessionHistory:
    """The history that was told."""

    def __init__(self) -> None:
        self._entries = list[_Entry]()

    def hear(self, update: Mapping[str, Any]) -> None:
        """Take in an update."""
        kind = str(update.get("sessionUpdate"))
        role = {"user_message_chunk": "user", "agent_message_chunk": "agent"}.get(kind)
        if role is not None:
            ident, last = str(update.get("messageId") or ""), self._entries[-1] if self._entries else None
            if last is None or last.who != role or last.id != ident:
                last = _Entry(role, ident)
                self._entries.append(last)
            last.text = (last.text + words_of(update))[-_LONGEST:]
        elif kind in ("tool_call", "tool_call_update"):
            ident, status = str(update.get("toolCallId")), update.get("status")
            known = next(
                (entry for entry in reversed(self._entries[-50:]) if entry.who == "tool" and entry.id == ident), None
            )
            if known is None:
                known = _Entry("tool", ident)
                self._entries.append(known)
            known.ends = status in ("completed", "failed") if status is not None else known.ends
        del self._entries[:-_MOST]

    def answer(self, message: str) -> str | None:
        """What was answered to our prompt, where that has ended; None: it has not, or the prompt is not there.

        The history does not say that a turn is over: it is where words stand last, and every tool has come to its end.
        Words that stand between two tools look the same; who is asked for its outcome once more then says it.
        """
        at = max((n for n, entry in enumerate(self._entries) if entry.key == message), default=None)
        behind = list[_Entry]()
        for one in self._entries[at + 1 :] if at is not None else ():
            if one.who == "user" and one.text:
                break
            behind.append(one)
        last = behind[-1] if behind and all(one.ends for one in behind) else None
        return (
            last.text if last is not None and last.who == "agent" and last.text and not _OWN.match(last.text) else None
        )

    def people(self) -> Iterator[tuple[str, str]]:
        """Messages that are none of ours, each with the message of ours that it stands behind."""
        ours = ""
        for n, entry in enumerate(self._entries):
            if entry.key:
                ours = entry.key
            elif ours and entry.who == "user" and entry.text.strip() and not _OWN.match(entry.text):
                yield ours, entry.id or f"person_{n}"
