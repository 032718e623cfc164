"""The endpoints that Claude Code's hooks call: who may, what they hear, and that what was said is kept before that.

Whatever goes wrong here lets Claude Code go on: a mistake of ours is a line in the wrapper's log, and never a prompt
that is stopped.
"""

import hmac
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Protocol, cast

import anyio
from anyio import to_thread
from anyio.streams.memory import MemoryObjectSendStream
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ashep.core.text import clean
from ashep.foreman.history import Entry
from ashep.foreman.launch import HEADER, bearer
from ashep.foreman.rules import Decision, Payload, Relaunch, Seen, blocked, decide, part, text, why_long
from ashep.foreman.settings import ForemanSettings
from ashep.foreman.transcript import Growing
from ashep.guard import refusal
from ashep.journal import paths
from ashep.redaction import Redaction

Topic = Callable[[Sequence[Entry], str, float], Awaitable[bool]]
"""Whether a prompt begins a new topic, by the recent entries, within so many seconds: unsure, slow or failing is no."""

MAX_BODY = 8 * 1024 * 1024
"""Bytes of what a hook may tell."""

_FILE = 1024 * 1024  # bytes of a file that is read for a hook

_EVENTS = {
    "/hook/session-start": ("SessionStart",),
    "/hook/user-prompt-submit": ("UserPromptSubmit", "UserPromptExpansion"),
    "/hook/exit-plan-mode": ("PostToolUse",),
    "/hook/subagent-pretool": ("PreToolUse",),
    "/hook/subagent-stop": ("SubagentStop", "PostToolUse", "PostToolUseFailure"),
    "/hook/stop": ("Stop",),
}
"""What each endpoint is told of; the first, where the payload does not say."""

_ONCE = frozenset({"host", "origin", "sec-fetch-site", HEADER.lower()})


class _History(Protocol):
    def append(self, entry: Entry) -> bool: ...
    def entries(self) -> Sequence[Entry]: ...
    def recent(self) -> Sequence[Entry]: ...
    def clear(self, at: datetime, session: str) -> object: ...


class _Web(Protocol):
    async def search(self, query: str) -> str: ...
    async def fetch(self, url: str, question: str = "") -> str: ...


@dataclass
class Desk:
    """What one wrapper has, and what its hooks write in."""

    history: _History
    """`ashep.foreman.history.History`."""
    redaction: Redaction
    settings: ForemanSettings
    secret: str
    """That of this start: who does not bring it is told nothing."""
    relaunches: MemoryObjectSendStream[Relaunch]
    """A buffer of one is enough: nothing is sent again before `begun` says that the last one is done."""
    now: Callable[[], datetime]
    say: Callable[[str], None]
    """The wrapper's log."""
    is_new_topic: Topic | None = None
    """None: there is no small model."""
    hand_over: Callable[[str], Awaitable[str]] | None = None
    """What `/hand-over ARGUMENTS` answers."""
    web: _Web | None = None
    """`ashep.foreman.web.WebTools`."""
    morning: str = ""
    """What the person's first prompt carries; it may be set while the session runs, and is given once."""
    session: str = ""
    """The main agent's session now: it follows `/clear` and `/resume`."""
    _sent: str = ""
    _first: bool = True
    _ending: bool = False
    _worked: bool = True
    _starts: int = 0
    _prompt: str = ""
    _transcript: Growing | None = None
    _turn: anyio.Lock = field(default_factory=anyio.Lock)

    def begun(self, session: str, sent: str = "") -> None:
        """Say that a child is started (anew), with this session if it is known, and with this prompt if it gets one.

        Called right before each start. The first prompt is not asked about, and one that we sent is not kept twice.
        """
        self.session, self._sent = session, sent
        self._first, self._worked, self._ending = True, not self._ending, False
        self._starts += 1

    async def hear(self, event: str, payload: Payload) -> Mapping[str, object]:
        """Take in what a hook tells, and give what it is answered; then what was said is kept."""
        session = text(payload, "session_id")
        if session and session != self.session and not text(payload, "agent_id"):
            self._first = self._first or bool(self.session)  # nothing else says that there was a `/clear`
            self.session = session
        starts = self._starts
        async with self._turn:
            decision = decide(event, payload, await to_thread.run_sync(self._look, event, payload))
            if not decision.command and not decision.ask_topic:
                return await self._carry_out(decision, payload)
        if decision.command:
            return blocked(await self._obey(decision))
        topic = await self._asks(text(payload, "prompt"))
        async with self._turn:
            seen = await to_thread.run_sync(self._look, event, payload)
            # a session that was begun anew while we asked knows nothing of this prompt
            decision = decide(event, payload, replace(seen, topic=topic and starts == self._starts))
            return await self._carry_out(decision, payload)

    async def clear(self) -> int:
        """Clear the history, and say how many entries no session is told of any more."""
        async with self._turn:
            count = len(self.history.entries())
            await to_thread.run_sync(self.history.clear, self.now(), self.session)
        return count

    def _look(self, event: str, payload: Payload) -> Seen:
        """Give what is known, with what stands on the disk about this."""
        seen = Seen(
            self.session, self.now(), self._first, self._sent, self._prompt, self._ending,
            topics=self.settings.topics and self.is_new_topic is not None,
        )  # fmt: skip
        if event == "SubagentStop":
            about = _about(Path(text(payload, "agent_transcript_path").removesuffix(".jsonl") + ".meta.json"))
            depth = about.get("spawnDepth")
            return replace(seen, call=text(about, "toolUseId"), nested=isinstance(depth, int) and depth > 1)
        if event == "PreToolUse" and not text(payload, "agent_id") and self._worked:
            file = Path(text(payload, "transcript_path"))
            if self._transcript is None or self._transcript.file != file:
                self._transcript = Growing(file)
            return replace(seen, long=why_long(self._transcript.size(), self.settings.restart))
        if event in ("PostToolUse", "PostToolUseFailure"):
            call = text(payload, "tool_use_id")
            told = any(one.kind == "result" and one.call == call for one in self.history.entries())
            answer = part(payload, "tool_response")
            plan = "" if text(answer, "plan") else _read(Path(text(answer, "filePath"))).decode(errors="replace")
            return replace(seen, told=told, plan=plan)
        return seen

    async def _asks(self, prompt: str) -> bool:
        assert self.is_new_topic is not None
        seconds = self.settings.topic_timeout
        try:
            with anyio.move_on_after(seconds + 1):  # it keeps the time itself; this is for one that does not
                return await self.is_new_topic(self.history.recent(), self.redaction.text(prompt), seconds) is True
        except Exception as error:
            self.wrong("asking for a new topic", error)
        return False

    async def _carry_out(self, decision: Decision, payload: Payload) -> Mapping[str, object]:
        """Keep, tell of a relaunch, answer. Where it cannot be kept, nothing is stopped for its sake."""
        for entry in decision.entries:
            await to_thread.run_sync(self.history.append, entry)
        if decision.prompted:
            self._first, self._sent = False, ""
        self._worked = self._worked or decision.worked
        self._prompt = text(payload, "prompt_id") or self._prompt
        if decision.relaunch is not None:
            self.relaunches.send_nowait(decision.relaunch)
            self._ending = True
        if decision.worked and decision.prompted and self.morning:
            told, self.morning = self.morning, ""
            carried = {"hookEventName": "UserPromptSubmit", "additionalContext": told}
            return {**decision.answer, "hookSpecificOutput": carried}
        return decision.answer

    async def _obey(self, decision: Decision) -> str:
        """Do what a command of ours asks for, and say what came of it: no model is asked."""
        if decision.command == "clear":
            count = await self.clear()
            return (
                f"The history is cleared: no session that begins from now on is told of the {count} entries before "
                "this. The one that runs still knows what it was told; `ashep foreman --history` shows them all."
            )
        if self.hand_over is None:
            return "Nothing here can take a plan."
        return clean(self.redaction.text(await self.hand_over(decision.arguments)))

    def wrong(self, what: str, error: BaseException) -> str:
        """Write what went wrong into the log, and give it in words; nobody is stopped by it."""
        self.say(clean(self.redaction.text(f"{what}: {type(error).__name__}: {error}"))[:1000])
        return clean(self.redaction.text(f"{error}"))[:300] or type(error).__name__


def routes(desk: Desk) -> list[Route]:
    """Give the endpoints: `/hook/…`, `/tool/…`, `/clear-history`."""
    desk.redaction.add(desk.secret)

    def hook(path: str, events: tuple[str, ...]) -> Route:
        async def heard(payload: Payload) -> Mapping[str, object]:
            event = text(payload, "hook_event_name") or events[0]
            return await desk.hear(event, payload) if event in events else {}

        return _route(desk, path, heard)

    async def search(told: Payload) -> Mapping[str, object]:
        return {"result": await desk.web.search(text(told, "query"))} if desk.web else _NO_WEB

    async def fetch(told: Payload) -> Mapping[str, object]:
        page = text(told, "url"), text(told, "question") or text(told, "prompt")
        return {"result": await desk.web.fetch(*page)} if desk.web else _NO_WEB

    async def clear(_: Payload) -> Mapping[str, object]:
        return {"cleared": await desk.clear()}

    others = {"/tool/web-search": search, "/tool/web-fetch": fetch, "/clear-history": clear}
    return [*map(hook, _EVENTS, _EVENTS.values()), *(_route(desk, path, one) for path, one in others.items())]


def _route(desk: Desk, path: str, answer: Callable[[Payload], Awaitable[Mapping[str, object]]]) -> Route:
    """Make an endpoint: who asks is judged by the head of the request, before anything else of it is looked at."""

    async def endpoint(request: Request) -> Response:
        _judge(desk, request)
        payload = await _body(request)
        try:
            return JSONResponse(await answer(payload))
        except Exception as error:
            said = desk.wrong(path, error)
            told = path == "/hook/user-prompt-submit"  # with each prompt, and not with all that comes of it
            return JSONResponse({"systemMessage": f"ashep foreman does not keep this: {said}"} if told else {})

    return Route(path, endpoint, methods=["POST"])


def _judge(desk: Desk, request: Request) -> None:
    twice = [name for name, count in Counter(request.headers.keys()).items() if count > 1 and name in _ONCE]
    if twice:
        raise HTTPException(400, f"{min(twice)} is given twice")
    if (refused := refusal(request.method, dict(request.headers))) is not None:
        raise HTTPException(refused.status, refused.why)
    if not hmac.compare_digest(request.headers.get(HEADER, "").encode(), bearer(desk.secret).encode()):
        raise HTTPException(401, "not with this secret")


async def _body(request: Request) -> Payload:
    """Read a payload, as far as it is one that may be read."""
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > MAX_BODY:
            raise HTTPException(413, f"more than {MAX_BODY} bytes", {"connection": "close"})
    try:
        return _object(bytes(data or b"{}"))
    except ValueError:
        raise HTTPException(400, "expected an object in JSON") from None


def _object(data: bytes) -> Payload:
    """Read an object in JSON. Raises `ValueError` where it is none."""
    try:
        found = json.loads(data)
    except RecursionError as error:
        raise ValueError("too deep") from error
    if not isinstance(found, dict):
        raise ValueError("no object")
    return cast("Payload", found)


_NO_WEB: Mapping[str, object] = {"error": "there are no web tools"}


def _about(file: Path) -> Payload:
    """Read what Claude Code notes of a subagent beside its transcript: the call that it was asked by, say [72]."""
    try:
        return _object(_read(file))
    except ValueError:
        return {}


def _read(file: Path) -> bytes:
    """Read the beginning of a file; nothing where there is no regular one under an absolute path."""
    if not file.is_absolute():
        return b""
    try:
        with paths.opened(file) as opened:
            return opened.read(_FILE)
    except (OSError, ValueError):  # no path may hold a zero
        return b""
