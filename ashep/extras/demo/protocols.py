"""The two protocols that the scripted model speaks: what OpenCode asks it, and what Claude Code asks it.

A request of either is read into one form, and what is answered is said in pieces; both in OpenCode's words, so that one
script plays on either: `Call("write", {"filePath": …})` is a call of Claude Code's `Write` with a `file_path`.
"""

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, cast

Json = dict[str, Any]

SESSION_HEADERS = ("x-session-id", "x-claude-code-session-id")


def text_of(content: object) -> str:
    """The text of a message's content, whichever of its forms it has."""
    if isinstance(content, str):
        return content
    pieces = cast("list[Json]", content) if isinstance(content, list) else []
    return "\n".join(str(piece.get("text", "")) for piece in pieces if piece.get("type") == "text")


class Chat:
    """OpenCode's: chat completions of OpenAI's form, streamed."""

    ping = b": ping\n\n"
    """A sign of life that says nothing."""

    def __init__(self, body: Json) -> None:
        self.asked = body
        """The request in the form of chat completions, with tools by OpenCode's names."""
        self._calls = 0

    def begin(self, tokens: int) -> bytes:
        """Nothing stands before the first piece of an answer to so many tokens."""
        del tokens
        return b""

    def text(self, piece: str) -> bytes:
        """A delta of the content."""
        return self._chunk({"role": "assistant", "content": piece})

    def call(self, name: str, tool: str, arguments: Mapping[str, object]) -> bytes:
        """A whole call of a tool in one delta; `name` is the call's."""
        function = {"name": tool, "arguments": json.dumps(dict(arguments))}
        self._calls += 1
        call = {"index": self._calls - 1, "id": name, "type": "function", "function": function}
        return self._chunk({"tool_calls": [call]})

    def end(self, tokens: tuple[int, int], *, calls: bool, cut: bool = False) -> bytes:
        """The reason, the usage, and the mark of the end; `cut`: at the answer's greatest length."""
        usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
        finish = "length" if cut else "tool_calls" if calls else "stop"
        return self._chunk({}, finish=finish, usage=usage) + b"data: [DONE]\n\n"

    def error(self, status: int, message: str) -> Json:
        """An error by its message alone."""
        return {"error": {"message": message or f"scripted {status}", "type": "scripted", "code": None}}

    def _chunk(self, delta: Json, *, finish: str | None = None, usage: Json | None = None) -> bytes:
        body: Json = {
            "id": "chatcmpl-scripted",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": str(self.asked.get("model", "")),
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }
        if usage is not None:
            body["usage"] = usage
        return f"data: {json.dumps(body)}\n\n".encode()


_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_OURS = {"agent": "task"}
_REMINDER = "<system-reminder>"
"""How a text begins that Claude Code puts next to a prompt, into the same message."""


class Messages:
    """Claude Code's: the Messages API of Anthropic's, streamed."""

    ping = b'event: ping\ndata: {"type": "ping"}\n\n'

    def __init__(self, body: Json) -> None:
        tools = cast("list[Json]", body.get("tools") or [])
        self._tools = {_ours(tool): str(tool["name"]) for tool in tools}
        offered = [{"type": "function", "function": {**tool, "name": _ours(tool)}} for tool in tools]
        self.asked = {**body, "messages": _chat(body), "tools": offered}
        self._blocks = 0
        self._open = False

    def begin(self, tokens: int) -> bytes:
        """The message without content; a name of its own, since Claude Code puts together what has the same."""
        usage = {"input_tokens": tokens, "output_tokens": 1}
        message: Json = {"id": f"msg_{uuid.uuid4().hex}", "type": "message", "role": "assistant", "content": []}
        message |= {"model": self.asked.get("model"), "stop_reason": None, "stop_sequence": None, "usage": usage}
        return _event("message_start", message=message)

    def text(self, piece: str) -> bytes:
        """A delta of the block of text, which the first one opens."""
        block: Json = {"type": "text", "text": ""}
        begun = b"" if self._open else _event("content_block_start", index=self._blocks, content_block=block)
        self._open = True
        return begun + self._delta({"type": "text_delta", "text": piece})

    def call(self, name: str, tool: str, arguments: Mapping[str, object]) -> bytes:
        """A block of its own, with Claude Code's names of the tool and of its arguments."""
        ended = self._close()
        block: Json = {"type": "tool_use", "id": name, "name": self._tools.get(tool, tool), "input": {}}
        begun = _event("content_block_start", index=self._blocks, content_block=block)
        given = {re.sub("[A-Z]", lambda one: f"_{one[0].lower()}", key): value for key, value in arguments.items()}
        said = self._delta({"type": "input_json_delta", "partial_json": json.dumps(given)})
        self._open = True
        return ended + begun + said + self._close()

    def end(self, tokens: tuple[int, int], *, calls: bool, cut: bool = False) -> bytes:
        """The reason, the usage, and the mark of the end."""
        reason = "max_tokens" if cut else "tool_use" if calls else "end_turn"
        delta = {"stop_reason": reason, "stop_sequence": None}
        usage = {"input_tokens": tokens[0], "output_tokens": tokens[1]}
        return self._close() + _event("message_delta", delta=delta, usage=usage) + _event("message_stop")

    def error(self, status: int, message: str) -> Json:
        """An error of the kind that the status stands for."""
        error = {"type": _ERRORS.get(status, "api_error"), "message": message or f"scripted {status}"}
        return {"type": "error", "error": error, "request_id": "req_scripted"}

    def _delta(self, delta: Json) -> bytes:
        return _event("content_block_delta", index=self._blocks, delta=delta)

    def _close(self) -> bytes:
        if not self._open:
            return b""
        self._open = False
        self._blocks += 1
        return _event("content_block_stop", index=self._blocks - 1)


Wire = Chat | Messages
"""One request, and the pieces of its answer, each as it goes over the line."""


def _ours(tool: Json) -> str:
    name = str(tool["name"]).lower()
    return _OURS.get(name, name)


def _event(kind: str, **body: object) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind} | body)}\n\n".encode()


def _chat(body: Json) -> Sequence[Json]:
    """The conversation as chat completions have it: what the system says first, a message for each tool's result."""
    said: list[Json] = [{"role": "system", "content": text_of(body.get("system"))}]
    rest = list[Json]()
    for message in cast("list[Json]", body.get("messages", [])):
        content = message.get("content")
        if message["role"] == "system":
            said.append({"role": "system", "content": text_of(content)})
            continue
        blocks = cast("list[Json]", content) if isinstance(content, list) else [{"type": "text", "text": content}]
        texts = [str(block["text"]) for block in blocks if block.get("type") == "text"]
        said += [{"role": "system", "content": text} for text in texts if text.startswith(_REMINDER)]
        results = [block for block in blocks if block.get("type") == "tool_result"]
        rest += [{"role": "tool", "content": text_of(block.get("content"))} for block in results]
        spoken = [text for text in texts if not text.startswith(_REMINDER)]
        if message["role"] == "assistant" or spoken:
            rest.append({"role": message["role"], "content": "\n".join(spoken)})
    return [*said, *rest]
