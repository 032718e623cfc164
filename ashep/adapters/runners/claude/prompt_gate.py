"""The gate before every turn: no prompt reaches the model that the daemon has not written down as begun.

Claude Code asks it by a `UserPromptSubmit` hook over HTTP on loopback, and does not go on where it is refused, where
nobody answers, or where the answer is an error (`onFailure: block`; facts/claude-code.md 36, 37). What an attempt's
process knows, its secret, opens the gate for its own prompt and once; that a subagent of it has ended is no
prompt [39]. An agent can find the port: of a request without a secret the head alone is read, and connections have the
bounds of all our servers (`ashep.adapters.system.http_server`).
"""

import asyncio
import secrets
import socket
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ashep.adapters.runners.claude.jsonl import Event, text
from ashep.adapters.runners.claude.session_store import Attempt, SessionStore
from ashep.adapters.runners.foreign_json import parse_object
from ashep.adapters.system.http_server import make_server
from ashep.request_guard import HEAD, refusal

Begin = Callable[[str, str, str], Awaitable[bool]]
"""Makes durable that a turn begins, given its session, message and a sentence; says whether it may."""

_MOST = 4 * 1024 * 1024  # bytes of a question
_PATIENCE = 45.0  # seconds for the daemon to write it down; Claude Code waits longer
_NOTICE = "<task-notification>"
_CLOSE = {"connection": "close"}


class Gate:
    """The server; it listens from its making until it is closed. To be made where the event loop runs."""

    def __init__(self, store: SessionStore, begin: Begin) -> None:
        self._store, self._begin = store, begin
        self._once = threading.Lock()
        listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.address = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        application = Starlette(routes=[Route("/", self._answer, methods=["POST"])])
        self._server = make_server(application, 1)
        self._serving = asyncio.create_task(self._server.serve([listener]))

    async def close(self) -> None:
        """Let nothing through any more."""
        self._server.should_exit = True
        await self._serving

    async def _answer(self, request: Request) -> Response:
        """Answer a hook. Whatever is raised here is an error of the server, and so it does not begin."""
        if (refused := refusal("POST", request.headers)) is not None:  # a page that somebody's browser shows, say
            return Response(status_code=refused.status, headers=_CLOSE)
        if not 0 < int(request.headers.get("content-length", "0")) <= _MOST:
            return Response(status_code=413, headers=_CLOSE)
        name, secret = (request.headers.get(f"x-ashep-{part}", "") for part in ("turn", "secret"))
        reason = "this is no turn of ours"
        if (attempt := await anyio.to_thread.run_sync(self._attempt, name, secret)) is not None:
            with anyio.fail_after(HEAD):
                event = parse_object(await request.body()) or {}
            reason = await self._open(attempt, event)
        return JSONResponse({"decision": "block", "reason": reason} if reason else {}, headers=_CLOSE)

    def _attempt(self, name: str, secret: str) -> Attempt | None:
        """Give the attempt of this name, if that is its secret."""
        attempt = self._store.attempt(name)
        known = ""
        with suppress(OSError):
            known = (attempt.folder / "secret").read_text() if attempt is not None else ""
        return attempt if known and secrets.compare_digest(known.encode(), secret.encode()) else None

    async def _open(self, attempt: Attempt, event: Event) -> str:
        """Say why a prompt may not begin; empty: it may, and that is written down."""
        if (known := await anyio.to_thread.run_sync(self._note, attempt, event)) is not None:
            return known
        reason = "its process is about to ask the model"
        if attempt.number > 1:
            reason += f", at attempt {attempt.number}"
        begins = asyncio.ensure_future(self._begin(attempt.session, attempt.message, reason))
        # whatever goes wrong from here on, it may have been written down, and stays so
        await asyncio.wait({begins}, timeout=_PATIENCE)
        if not begins.result():
            await anyio.to_thread.run_sync((attempt.folder / "begun").unlink)
            return "it may not begin"
        return ""

    def _note(self, attempt: Attempt, event: Event) -> str | None:
        """Note that a turn begins; None: it is the daemon's to say whether it may, and otherwise as `_open` says."""
        if text(event, "session_id") != attempt.session:
            return "this is another session's turn"
        with self._once:
            if attempt.has("begun"):
                return "" if text(event, "prompt").startswith(_NOTICE) else "this turn has begun already"
            if attempt.has("aborted"):
                return "this turn was stopped"
            attempt.note("begun")
        return None
