"""What a process of Claude Code told on its standard output: the events of stream-json, read forward. Blocks.

The end is the last `result` behind which no other turn began, and it is judged by `is_error`, `terminal_reason` and
`num_turns`: `subtype` says success of failures (facts/claude-code.md 5-8). The pieces of a text that streams in are
signs of life; of what they hold only the usage counts, for a process that is killed tells no sum.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from ashep.adapters.runners.claude import provider_errors
from ashep.adapters.runners.claude.jsonl import Event, Lines, count_tokens, number, part, parts, strings, text, time_of
from ashep.adapters.runners.foreign_json import parse_object
from ashep.core.facts.runs import Refusal
from ashep.core.resources.providers import ABORTED
from ashep.ports.runner import MOST_TEXT, STOPPED

_PIECE = b'{"type":"stream_event"'
_USAGE = (b'"type":"message_start"', b'"type":"message_delta"')
_HEAD = 512  # bytes in which a piece says what it is
_SYNTHETIC = "<synthetic>"
_SPENT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_SAID = 4000  # characters of an error that are kept
_CALLS = 200  # calls at work that are kept
_CUT_ERROR, _CUT_REASON = "max_output_tokens", "max_turns"


@dataclass(frozen=True, slots=True)
class Result:
    """How a turn ended."""

    failed: bool
    reason: str
    """`terminal_reason`."""
    turns: int
    said: str
    """Its text, or its errors."""
    status: int | None
    cost: float
    """Of the session up to then, in the provider's currency."""
    tokens: int
    """The same."""


class Output:
    """A process's standard output, as far as it was read."""

    def __init__(self, file: Path) -> None:
        self._lines = Lines(file)
        self.result: Result | None = None
        """The end, where it has come."""
        self.asked = False
        """The model was asked, or is."""
        self.model: str | None = None
        """The model that answered last."""
        self.error = ""
        """Claude Code's word for the error that it shows as an answer."""
        self.retry: Refusal | None = None
        """The provider refused, and is asked again."""
        self.compacts = False
        """It makes the conversation shorter."""
        self.limits: Event | None = None
        """What it showed last of a subscription's quota."""
        self.agent_message_at: datetime | None = None
        """When the agent wrote last."""
        self.text = ""
        """The text of the last answer, at most its last `MOST_TEXT` characters."""
        self._of = ""
        self._calls: dict[str, str] = {}
        self._tokens = self._answer = 0

    def read(self) -> None:
        """Take in what was written since."""
        for _, line in self._lines:
            if line.startswith(_PIECE) and not any(word in line[:_HEAD] for word in _USAGE):
                self.retry = None
            elif (event := parse_object(line)) is not None:
                self._hear(event)

    @property
    def tool(self) -> tuple[str, str] | None:
        """The newest call that is at work, and its tool, by Claude Code's name."""
        return next(reversed(self._calls.items()), None)

    @property
    def tokens(self) -> int:
        """What the answers used, where no result gives the sum."""
        return self._tokens + self._answer

    @property
    def cut(self) -> bool:
        """Whether a limit cut off the last answer, after Claude Code itself went on as often as it does."""
        end = self.result
        return end is not None and end.failed and (self.error == _CUT_ERROR or end.reason == _CUT_REASON)

    def refusal(self) -> Refusal | None:
        """The provider's refusal that ended the turn."""
        end = self.result
        return (
            provider_errors.of_end(end.reason, end.status, self.error, end.said)
            if end is not None and end.failed
            else None
        )

    def failure(self) -> str | None:
        """The error that ended the turn, as `Name: message`."""
        end = self.result
        if end is None or not end.failed or self.cut:
            return None
        name = provider_errors.name_of(end.reason, api=end.status is not None)
        if name == ABORTED:
            return STOPPED
        said = (
            provider_errors.words(end.said) if name == "APIError" else end.said or end.reason or "it does not say why"
        )
        return f"{name}: {said}"

    def _hear(self, event: Event) -> None:
        kind, what = text(event, "type"), text(event, "subtype")
        if kind == "stream_event":
            self._count(part(event, "event"))
        elif kind == "assistant":
            self._answered(event)
        elif kind == "user":
            for block in parts(part(event, "message"), "content"):
                self._calls.pop(text(block, "tool_use_id"), None)
        elif kind == "result":
            self._end(event)
        elif kind == "system" and what == "init":  # a turn begins, perhaps behind another one's result [8]
            self.result = None
        elif kind == "system" and what == "api_retry":
            delay, status = timedelta(milliseconds=number(event, "retry_delay_ms")), int(number(event, "error_status"))
            self.retry = provider_errors.of_retry(
                status or None, text(event, "error"), delay, int(number(event, "attempt"))
            )
            self.asked = True
        elif kind == "rate_limit_event":
            self.limits = part(event, "rate_limit_info")
        elif kind == "system" and what == "status":
            self.compacts = text(event, "status") == "compacting"

    def _count(self, event: Event) -> None:
        self.retry, self.asked = None, True
        usage = part(part(event, "message") if event.get("type") == "message_start" else event, "usage")
        if event.get("type") == "message_start":
            self._tokens += self._answer + round(sum(number(usage, name) for name in _SPENT))
            self._answer = 0
        else:
            self._answer = max(self._answer, round(number(usage, "output_tokens")))

    def _answered(self, event: Event) -> None:
        message = part(event, "message")
        blocks, ident = parts(message, "content"), text(message, "id")
        self.asked, self.compacts = True, False
        for block in blocks:
            if text(block, "type") == "tool_use":
                self._calls[text(block, "id")] = text(block, "name")
        while len(self._calls) > _CALLS:
            del self._calls[next(iter(self._calls))]
        if text(event, "parent_tool_use_id"):  # a subagent's
            return
        self.error = text(event, "error")
        if self.error or text(message, "model") == _SYNTHETIC:
            self.text, self._of = "", ident
            return
        self.retry = None
        self.agent_message_at = time_of(event) or self.agent_message_at
        self.model = text(message, "model") or self.model
        said = "\n".join(text(block, "text") for block in blocks if text(block, "type") == "text")
        before = self.text if ident and ident == self._of else ""
        self.text, self._of = (f"{before}\n{said}" if before and said else before or said)[-MOST_TEXT:], ident

    def _end(self, event: Event) -> None:
        said = text(event, "result") or "\n".join(strings(event, "errors"))
        self.retry = None
        self._calls.clear()
        self.result = Result(
            failed=event.get("is_error") is True or text(event, "terminal_reason").startswith("aborted"),
            reason=text(event, "terminal_reason"),
            turns=int(number(event, "num_turns")),
            said=said[-_SAID:],
            status=int(number(event, "api_error_status")) or None,
            cost=number(event, "total_cost_usd"),
            tokens=count_tokens(event),
        )
