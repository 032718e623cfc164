"""The gate before every turn: no prompt reaches the model that the daemon has not written down as begun.

Claude Code asks it by a `UserPromptSubmit` hook over HTTP on loopback, and does not go on where it is refused, where
nobody answers, or where the answer is an error (`onFailure: block`; facts/claude-code.md 36, 37). What an attempt's
process knows, its secret, opens the gate for its own prompt and once; that a subagent of it has ended is no
prompt [39].
"""

import asyncio
import json
import secrets
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from ashep.adapters.claude.lines import Event, event_of, text
from ashep.adapters.claude.store import Store
from ashep.guard import refusal

Begin = Callable[[str, str, str], Awaitable[bool]]
"""Makes durable that a turn begins, given its session, message and a sentence; says whether it may."""

_MOST = 4 * 1024 * 1024  # bytes of a question
_PATIENCE = 45.0  # seconds for the daemon to write it down; Claude Code waits longer
_NOTICE = "<task-notification>"


class Gate:
    """The server; it listens from its making until it is closed. To be made where the event loop runs."""

    def __init__(self, store: Store, begin: Begin) -> None:
        self._store, self._begin = store, begin
        self._loop = asyncio.get_running_loop()
        self._once = threading.Lock()
        handler = type("Handler", (_Handler,), {"gate": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_port}/"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()

    def close(self) -> None:
        """Let nothing through any more. Blocks."""
        self._server.shutdown()
        self._server.server_close()

    async def _ask(self, session: str, message: str, why: str) -> bool:
        return await self._begin(session, message, why)

    def opens(self, name: str, secret: str, event: Event) -> str:
        """Say why a prompt may not begin; empty: it may, and that is written down. In a thread of the server's."""
        attempt = self._store.attempt(name)
        known = ""
        with suppress(OSError):
            known = (attempt.folder / "secret").read_text() if attempt is not None else ""
        if attempt is None or not known or not secrets.compare_digest(known.encode(), secret.encode()):
            return "this is no turn of ours"
        if text(event, "session_id") != attempt.session:
            return "this is another session's turn"
        with self._once:
            if attempt.has("begun"):
                return "" if text(event, "prompt").startswith(_NOTICE) else "this turn has begun already"
            if attempt.has("aborted"):
                return "this turn was stopped"
            attempt.note("begun")
        why = "its process is about to ask the model"
        if attempt.number > 1:
            why += f", at attempt {attempt.number}"
        begins = self._ask(attempt.session, attempt.message, why)
        try:
            may = asyncio.run_coroutine_threadsafe(begins, self._loop).result(_PATIENCE)
        except RuntimeError:
            begins.close()  # the loop is closed; whatever else goes wrong, it may have been written down, and stays so
            raise
        if not may:
            (attempt.folder / "begun").unlink()
        return "" if may else "it may not begin"


class _Handler(BaseHTTPRequestHandler):
    gate: Gate
    protocol_version = "HTTP/1.1"
    timeout = 10

    def do_POST(self) -> None:
        status, body = 500, b"{}"
        with suppress(Exception):  # whatever goes wrong, it does not begin
            size, head = int(self.headers.get("content-length", "0")), {k.lower(): v for k, v in self.headers.items()}
            if (refused := refusal("POST", head)) is not None:  # a page that somebody's browser shows, say
                status = refused.status
            elif 0 < size <= _MOST:
                event = event_of(self.rfile.read(size)) or {}
                turn, secret = (self.headers.get(f"x-ashep-{name}", "") for name in ("turn", "secret"))
                why = self.gate.opens(turn, secret, event)
                status, body = 200, json.dumps({"decision": "block", "reason": why} if why else {}).encode()
        with suppress(OSError):
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.send_header("connection", "close")
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""
