"""A session's transcript, which Claude Code writes: who wrote in it, what it cost, and its text. Blocks.

`projects/<folder>/<session>.jsonl` in Claude Code's configuration; the folder's name is made from the work tree's in a
way that loses something, so it is looked for (facts/claude-code.md 20). A prompt of ours is known by its id; another
one is a person's unless Claude Code wrote it itself [30].
"""

import glob
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from ashep.adapters.runners.claude.jsonl import Event, Lines, count_tokens, number, part, parts, text, time_of
from ashep.adapters.runners.foreign_json import parse_object
from ashep.journal import durable_io
from ashep.ports.transcripts import TranscriptStep, format_steps, make_tool_step

_OWN = ("<task-notification>", "[Request interrupted", "Continue from where you left off", "<local-command-")
"""How a user's message begins that no person wrote."""

_OTHERS = frozenset({"system", "task_notification", "task-notification"})
"""What `promptSource`, `turnOrigin` or `origin.kind` say of the same."""

_TAIL = 8 * 1024 * 1024
"""Bytes of a transcript's end that are read for its text: the system prompt is recorded several times [22]."""


class UserMessage(NamedTuple):
    """A user's message."""

    uuid: str
    offset: int
    """Where it stands."""
    at: datetime | None = None
    """When it was written."""


class Spent(NamedTuple):
    """What a session has used up to an end."""

    cost: float = 0.0
    tokens: int = 0


def file_of(config: Path, session: str) -> Path | None:
    """The transcript of a session; None: it has none yet."""
    files = glob.glob(f"{glob.escape(str(config))}/projects/*/{glob.escape(session)}.jsonl")
    return Path(min(files)) if files else None


def grown(file: Path) -> int:
    """Bytes that stand in a session's transcript and in those of its subagents."""
    below = glob.glob(f"{glob.escape(str(file.with_suffix('')))}/subagents/agent-*.jsonl")
    total = 0
    for one in (file, *map(Path, below)):
        with suppress(OSError):
            total += one.stat().st_size
    return total


class Transcript:
    """A transcript, as far as it was read."""

    def __init__(self, file: Path) -> None:
        self._lines = Lines(file)
        self.file = file
        self.written: list[UserMessage] = []
        """The prompts in it, in order: people's and ours."""
        self.states: list[tuple[int, Spent]] = []
        """What the session had used up where a process of it ended, and where that stands."""

    @property
    def spent(self) -> Spent:
        """What the session has used up to its last end."""
        return self.states[-1][1] if self.states else Spent()

    @property
    def end(self) -> int:
        """How far it was read: the bytes of its whole lines."""
        return self._lines.offset

    def read(self) -> None:
        """Take in what was written since."""
        for offset, line in self._lines:
            if offset == 0:
                self.written, self.states = [], []
            if b'"user"' not in line and b'"cost-state"' not in line:
                continue
            event = parse_object(line) or {}
            if is_prompt(event):
                self.written.append(UserMessage(text(event, "uuid"), offset, time_of(event)))
            elif event.get("type") == "cost-state":
                self.states.append((offset, Spent(number(event, "totalCostUSD"), count_tokens(event))))

    def find_final_usage(self, since: int, uuid: str) -> Spent | None:
        """What the session had used up where this prompt's process ended, begun at a place; None: it wrote none."""
        until = next((one.offset for one in self.written if one.offset >= since and one.uuid != uuid), self.end)
        return next((spent for offset, spent in reversed(self.states) if since <= offset < until), None)

    def people(self, since: int, ours: Mapping[str, str], known: Collection[str]) -> tuple[str, ...]:
        """The ids of what people wrote behind a place; `known`: messages that are none of theirs."""
        behind = (one.uuid for one in self.written if one.offset >= since)
        return tuple(dict.fromkeys(uuid for uuid in behind if uuid not in ours and uuid not in known))

    def last_at(self, messages: Collection[str]) -> datetime | None:
        """When the last of these messages was written; None: that is not known."""
        return max((one.at for one in self.written if one.at is not None and one.uuid in messages), default=None)


def is_prompt(event: Event) -> bool:
    """Whether a record is a user's message that a person or we wrote."""
    if event.get("type") != "user" or not text(event, "uuid"):
        return False
    if any(
        event.get(name) is True for name in ("isMeta", "isCompactSummary", "isSidechain", "isVisibleInTranscriptOnly")
    ):
        return False
    sources = (text(event, "promptSource"), text(event, "turnOrigin"), text(part(event, "origin"), "kind"))
    if _OTHERS.intersection(sources):
        return False
    message = part(event, "message")
    if any(text(block, "type") == "tool_result" for block in parts(message, "content")):
        return False
    return not read_text(message).startswith(_OWN)


def read_text(message: Event) -> str:
    """The text of a message, or of a tool's answer."""
    blocks = parts(message, "content")
    return text(message, "content") or "\n".join(text(one, "text") for one in blocks if text(one, "type") == "text")


def read_steps(file: Path) -> list[TranscriptStep]:
    """Read the end of what was said and done in a session; calls of tools with what became of them."""
    steps, calls = list[TranscriptStep](), dict[str, int]()
    with suppress(OSError), durable_io.opened(file) as opened:
        opened.seek(max(0, opened.seek(0, 2) - _TAIL))
        for line in opened:
            if b'"user"' not in line and b'"assistant"' not in line:
                continue
            event = parse_object(line)
            if event is not None and event.get("isSidechain") is not True:
                _add_steps(event, steps, calls)
    return steps


def _add_steps(event: Event, steps: list[TranscriptStep], calls: dict[str, int]) -> None:
    """Add what a record says; `calls`: the places of calls in `steps`, by their ids."""
    message, written_at = part(event, "message"), time_of(event)
    role = "assistant" if event.get("type") == "assistant" else "user"
    if (role == "assistant" or is_prompt(event)) and (words := read_text(message)):
        steps.append(TranscriptStep(role, words, written_at=written_at))
    for block in parts(message, "content"):
        if text(block, "type") == "tool_use":
            calls[text(block, "id")] = len(steps)
            steps.append(make_tool_step(text(block, "name"), block.get("input"), "", written_at, failed=False))
        elif text(block, "type") == "tool_result" and (place := calls.get(text(block, "tool_use_id"))) is not None:
            call, failed = steps[place], block.get("is_error") is True
            steps[place] = make_tool_step(call.tool, call.arguments, read_text(block), call.written_at, failed=failed)


def tail(file: Path, limit: int) -> str:
    """The end of what was said in a session, at most so many characters."""
    return format_steps(read_steps(file), limit)
