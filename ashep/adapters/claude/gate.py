"""The gate before every turn: no prompt reaches the model that the daemon has not written down as begun.

Claude Code asks it by a `UserPromptSubmit` hook over HTTP on loopback, and does not go on where it is refused, where
nobody answers, or where the answer is an error (`onFailure: block`; facts/claude-code.md 36, 37). What an attempt's
process knows, its secret, opens the gate for its own prompt and once; that a subagent of it has ended is no
prompt [39]. An agent can find the port: who has shown no secret gets `HEAD` seconds and `HEAD_SIZE` bytes, and of more
than `MOST_WAITING` such connections the oldest is closed.
"""

import asyncio
import io
import json
import secrets
import socket
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic
from typing import Any, cast

from ashep.adapters.claude.lines import Event, event_of, text
from ashep.adapters.claude.store import Attempt, Store
from ashep.guard import HEAD, HEAD_SIZE, MOST_WAITING, refusal

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
        self._server = _Server(("127.0.0.1", 0), handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}/"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()

    def close(self) -> None:
        """Let nothing through any more. Blocks."""
        self._server.shutdown()
        self._server.server_close()

    async def _ask(self, session: str, message: str, why: str) -> bool:
        return await self._begin(session, message, why)

    def attempt(self, name: str, secret: str) -> Attempt | None:
        """Give the attempt of this name, if that is its secret."""
        attempt = self._store.attempt(name)
        known = ""
        with suppress(OSError):
            known = (attempt.folder / "secret").read_text() if attempt is not None else ""
        return attempt if known and secrets.compare_digest(known.encode(), secret.encode()) else None

    def opens(self, attempt: Attempt, event: Event) -> str:
        """Say why a prompt may not begin; empty: it may, and that is written down. In a thread of the server's."""
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


class _Server(ThreadingHTTPServer):
    """A thread for each connection, and a bound for those who have shown no secret."""

    daemon_threads, request_queue_size = True, 128

    def __init__(self, address: tuple[str, int], handler: type["_Handler"]) -> None:
        super().__init__(address, handler)
        self._waiting, self._changed = dict[socket.socket, float](), threading.Condition()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Begin a thread, once there is room for it."""
        with self._changed:
            self._waiting[request] = monotonic()
            while len(self._waiting) > MOST_WAITING:
                _end(next(iter(self._waiting)))
                self._changed.wait(1)
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """End what has waited too long."""
        with self._changed:
            for request in [one for one, since in self._waiting.items() if monotonic() - since > HEAD]:
                _end(request)

    def let_go(self, request: Any) -> None:
        """Count a connection no more: it has shown a secret, or is closed."""
        with self._changed:
            self._waiting.pop(request, None)
            self._changed.notify()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: whoever asks could fill the log."""

    def shutdown_request(self, request: Any) -> None:
        self.let_go(request)
        super().shutdown_request(request)


def _end(request: socket.socket) -> None:
    """Have whoever reads from a connection see its end; its thread closes it."""
    with suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)


class _Head(io.BufferedReader):
    """Lines of a bounded sum."""

    left = HEAD_SIZE

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(min(size or 0, self.left))
        self.left -= len(line)
        return line


class _Handler(BaseHTTPRequestHandler):
    gate: Gate
    protocol_version = "HTTP/1.1"
    timeout = HEAD

    def setup(self) -> None:
        super().setup()
        self.rfile = _Head(cast("io.BufferedReader", self.rfile).detach())

    def do_POST(self) -> None:
        status, body = 500, b"{}"
        with suppress(Exception):  # whatever goes wrong, it does not begin
            size, head = int(self.headers.get("content-length", "0")), {k.lower(): v for k, v in self.headers.items()}
            if (refused := refusal("POST", head)) is not None:  # a page that somebody's browser shows, say
                status = refused.status
            elif 0 < size <= _MOST:
                turn, secret = (self.headers.get(f"x-ashep-{name}", "") for name in ("turn", "secret"))
                why = "this is no turn of ours"
                if (attempt := self.gate.attempt(turn, secret)) is not None:
                    cast("_Server", self.server).let_go(self.request)
                    why = self.gate.opens(attempt, event_of(self.rfile.read(size)) or {})
                else:
                    self.rfile.read(min(size, HEAD_SIZE))  # else whoever asked may not see the answer
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
