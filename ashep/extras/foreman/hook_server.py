"""The endpoints that Claude Code's hooks call: what was said is kept before they are answered, and nothing that goes
wrong here stops a prompt.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread
from anyio.streams.memory import MemoryObjectSendStream
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from ashep.core.text import clean
from ashep.extras.foreman.history import History, HistoryEntry
from ashep.extras.foreman.hook_rules import (
    HookDecision,
    Payload,
    Relaunch,
    Size,
    can_be_moved,
    decide,
    part,
    read_entry,
    text,
    why_long,
)
from ashep.extras.foreman.launch_args import CLEAR, HAND_OVER, HEADER, NAME, bearer
from ashep.extras.foreman.settings import ForemanSettings
from ashep.journal import durable_io
from ashep.redaction import Redaction
from ashep.request_guard import refusal

if TYPE_CHECKING:
    from ashep.extras.foreman.web_tools import WebTools

MAX_BODY = 8 * 1024 * 1024  # bytes of what a hook may tell
_HOOKS = ("session-start", "user-prompt-submit", "exit-plan-mode", "subagent-pretool", "subagent-stop", "stop")


@dataclass
class Desk:
    """What one wrapper has, and what its hooks write in."""

    history: History
    redaction: Redaction
    settings: ForemanSettings
    secret: str
    relaunches: MemoryObjectSendStream[Relaunch]
    """A buffer of one is enough: nothing is sent again before `begun`."""
    now: Callable[[], datetime]
    say: Callable[[str], None]
    """The wrapper's log."""
    is_new_topic: Callable[[Sequence[HistoryEntry], str, float], Awaitable[bool]] | None = None
    """Whether a prompt begins a new topic, by the recent entries, within so many seconds."""
    hand_over: Callable[[str], Awaitable[str]] | None = None
    web: WebTools | None = None
    morning: str = ""
    """What the person's next prompt carries; it may be set while the session runs."""
    session: str = ""
    """The main agent's session now: it follows `/clear` and `/resume`."""
    _sent: str | None = ""  # the prompt that the session was begun with, if any, until one comes; then None
    _turn: str = ""  # the id of the last prompt
    _ending: bool = False
    _fresh: bool = False  # nothing was done since it was begun again: to do so again would change nothing
    _lock: anyio.Lock = field(default_factory=anyio.Lock)

    def note_start(self, session: str, sent: str = "") -> None:
        """Say, before each start of a child, which session it has, if that is known, and which prompt it is sent."""
        self.session, self._sent = session, sent
        self._fresh, self._ending = self._ending, False

    async def hear(self, event: str, payload: Payload) -> Payload:
        """Take in what a hook tells, and give what it is answered; then what was said is kept."""
        session, prompt, turn = (text(payload, name) for name in ("session_id", "prompt", "prompt_id"))
        if session not in ("", self.session) and not text(payload, "agent_id"):
            self.session, self._sent = session, self._sent or ""  # nothing else tells of a `/clear` [75]
        if event == "UserPromptExpansion":
            return await self._obey(text(payload, "command_name"), text(payload, "command_args"))
        if event == "UserPromptSubmit" and self._sent and prompt.strip() == self._sent.strip():
            self._sent, self._turn = None, turn
            return {}  # it is kept since it was blocked, and CONTINUE is nobody's
        turns = event == "UserPromptSubmit" and await self._turns(prompt, turn)
        async with self._lock:
            topic = turns and not self._ending and session == self.session  # it was not begun again while we asked
            done = await to_thread.run_sync(self._keep, event, payload, topic)
            kinds = {entry.kind for entry in done.entries}
            self._turn = turn or self._turn
            self._fresh = self._fresh and not kinds & {"prompt", "asked"}
            if done.relaunch is not None:
                self.relaunches.send_nowait(done.relaunch)
                self._ending = True
            elif "prompt" in kinds and session == self.session:
                self._sent, carried, self.morning = None, self.morning, ""
                context = {"hookEventName": event, "additionalContext": carried}
                return {"hookSpecificOutput": context} if carried else {}
            return done.answer

    async def _turns(self, prompt: str, turn: str) -> bool:
        """Ask whether a new topic begins with a prompt: not with a first one, nor with one to a turn that runs [73]."""
        follows = self._sent is None and not self._ending and (not turn or turn != self._turn)
        if self.is_new_topic is None or not (self.settings.topics and follows and can_be_moved(prompt)):
            return False
        asked = self.history.recent(), self.redaction.text(prompt), self.settings.topic_timeout
        try:
            return await self.is_new_topic(*asked)
        except Exception as error:  # whatever it is, unsure is no, and the prompt goes on
            self.wrong("asking for a new topic", error)
            return False

    def _keep(self, event: str, payload: Payload, topic: bool) -> HookDecision:
        """Keep what was said, on the disk, and give what is done about it."""
        beside: Payload = {"plan": _read(text(part(payload, "tool_response"), "filePath")).decode(errors="replace")}
        if event == "SubagentStop":
            from ashep.adapters.runners.foreign_json import parse_object  # as below

            notes = _read(text(payload, "agent_transcript_path").removesuffix(".jsonl") + ".meta.json")
            beside = parse_object(notes) or {}
        entry = read_entry(event, payload, beside, text(payload, "session_id") or self.session, self.now())
        if entry is None:
            return HookDecision()
        long = ""
        if entry.kind == "asked" and not self._fresh:
            long = why_long(size_of(Path(text(payload, "transcript_path"))), self.settings.restart)
        done = decide(entry, topic=topic, ending=self._ending, long=long)
        for one in done.entries:
            self.history.append(one)
        return done

    async def _obey(self, command: str, arguments: str) -> Payload:
        if command == f"{NAME}:{CLEAR}":
            await to_thread.run_sync(self.history.clear, self.now(), self.session)
            reason = "The history is cleared from the next session on; this one still knows what it was told."
        elif command == f"{NAME}:{HAND_OVER}" and self.hand_over is not None:
            reason = clean(self.redaction.text(await self.hand_over(arguments)))
        else:
            return {}
        return {"decision": "block", "reason": reason}

    def wrong(self, what: str, error: Exception) -> str:
        """Write what went wrong into the log, and give it in words; nobody is stopped by it."""
        words = clean(self.redaction.text(f"{what}: {type(error).__name__}: {error}"))[:1000]
        self.say(words)
        return words


def size_of(file: Path) -> Size:
    """Give the size of a transcript: of `user` and `assistant` records, since a short prompt makes 150 kB more [22]."""
    from ashep.adapters.runners.claude.jsonl import Lines, number, part  # half a second: not at the start
    from ashep.adapters.runners.foreign_json import parse_object

    held, size = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"), Size()
    for _, line in Lines(file):
        event = parse_object(line) or {}
        if event.get("type") in ("user", "assistant") and event.get("isSidechain") is not True:
            tokens = round(sum(number(part(part(event, "message"), "usage"), name) for name in held))
            size = Size(size.bytes + len(line) + 1, tokens or size.tokens)
    return size


def routes(desk: Desk) -> list[Route]:
    """Give the endpoints: `/hook/…`, `/clear-history`, and `/tool/…` where there are web tools."""
    desk.redaction.add(desk.secret)
    answers: dict[str, Callable[[Payload], Awaitable[object]]] = {
        **{f"/hook/{name}": lambda told: desk.hear(text(told, "hook_event_name"), told) for name in _HOOKS},
        "/clear-history": lambda _: desk.hear("UserPromptExpansion", {"command_name": f"{NAME}:{CLEAR}"}),
    }
    if (web := desk.web) is not None:
        answers["/tool/web-search"] = lambda told: web.search(text(told, "query"))
        answers["/tool/web-fetch"] = lambda told: web.fetch(text(told, "url"), text(told, "question"))

    async def endpoint(request: Request) -> JSONResponse:
        head, path = request.headers, request.url.path
        if any(len(head.getlist(name)) > 1 for name in ("host", "origin", "sec-fetch-site", HEADER)):
            return JSONResponse({"error": "a header comes twice"}, 400)
        refused = refusal(request.method, dict(head))  # before anything else of it is looked at
        if refused is not None:
            return JSONResponse({"error": refused.why}, refused.status)
        if not hmac.compare_digest(head.get(HEADER, "").encode(), bearer(desk.secret).encode()):
            return JSONResponse({"error": "not with this secret"}, 401)
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY:
                return JSONResponse({"error": "too long"}, 413, {"connection": "close"})
        try:
            done = await answers[path](json.loads(body))
            return JSONResponse({"result": done} if isinstance(done, str) else done)
        except Exception as error:  # whatever it is, nobody is stopped by it
            words = f"ashep foreman does not keep this: {desk.wrong(path, error)}"
            each = path == "/hook/user-prompt-submit"  # with each prompt, and not with all that comes of it
            return JSONResponse({"systemMessage": words} if each else {})

    return [Route(path, endpoint, methods=["POST"]) for path in answers]


def _read(path: str) -> bytes:
    """Read the beginning of a file; nothing where there is no regular one under an absolute path."""
    with suppress(OSError, ValueError), durable_io.opened(Path("/", path)) as file:  # no path may hold a zero
        return file.read(1024 * 1024)
    return b""
