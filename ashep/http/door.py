"""Admission of connections, and how many: whoever has no token keeps nobody out who has one.

A connection on which nothing is answered has a bound in time, and the oldest of too many of them is closed; only
requests with the token count towards those that are worked on at once.
"""

from asyncio import BaseTransport, TimerHandle
from collections import Counter
from collections.abc import Callable, Collection
from typing import ClassVar

import h11
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from ashep.guard import HEAD, HEADERS, MOST_WAITING, Refusal, refusal

_ONCE = ("host", "origin", "sec-fetch-site", "authorization", "content-type")

AT_ONCE = 64
"""Requests with the token that are worked on at once; more are told to come again."""


class Connection(H11Protocol):
    """A connection that waits for a request no longer than `HEAD`, however slowly one comes."""

    _waiting: ClassVar[dict["Connection", TimerHandle]] = {}
    """Those on which nothing is answered, the one that has waited longest first."""

    def connection_made(self, transport: BaseTransport) -> None:
        """Begin."""
        super().connection_made(transport)  # pyright: ignore[reportArgumentType] - uvicorn names what asyncio gives it
        self._look()

    def data_received(self, data: bytes) -> None:
        """Read on."""
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._look()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, with what every answer carries."""
        head = [(b"content-type", b"text/plain"), (b"cache-control", b"no-store"), (b"connection", b"close"), *HEADERS]
        for event in (h11.Response(status_code=400, headers=head), h11.Data(data=msg.encode()), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        super().connection_lost(exc)
        self._let_go()

    def _look(self) -> None:
        answering = bool(self.cycle) and not self.cycle.response_complete  # None until the first request
        if answering or self.transport.is_closing():
            self._let_go()
        elif self not in self._waiting:
            self._waiting[self] = self.loop.call_later(HEAD, self._close)
            if len(self._waiting) > MOST_WAITING:
                next(iter(self._waiting))._close()

    def _let_go(self) -> None:
        if timer := self._waiting.pop(self, None):
            timer.cancel()

    def _close(self) -> None:
        self._let_go()
        self.transport.close()


class Guard:
    """Judges every request by its head before anything else is done for it (`ashep.guard`), and marks every answer."""

    def __init__(self, app: ASGIApp, origins: Collection[str], refuse: Callable[[Refusal], ASGIApp]) -> None:
        self._app, self._origins, self._refuse = app, frozenset(origins), refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request on, or refuse it."""
        if scope["type"] != "http":
            return
        given = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        twice = {name for name, count in Counter(name for name, _ in given).items() if count > 1 and name in _ONCE}
        refused = Refusal(400, f"{min(twice)} is given twice") if twice else None
        refused = refused or refusal(scope["method"], dict(given), self._origins)

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                told = [*message.get("headers", ())]
                kept = () if any(name == b"cache-control" for name, _ in told) else ((b"cache-control", b"no-store"),)
                message["headers"] = [*told, *HEADERS, *kept]
            await send(message)

        await (self._app if refused is None else self._refuse(refused))(scope, receive, marked)


class Door:
    """Counts the requests of those who have the token, and keeps no connection of others open behind its answer."""

    def __init__(self, app: ASGIApp, knows: Callable[[Scope], bool], refuse: ASGIApp) -> None:
        self._app, self._knows, self._refuse = app, knows, refuse
        self._inside = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or refuse it."""
        if scope["type"] != "http" or not self._knows(scope):

            async def last(message: Message) -> None:
                if message["type"] == "http.response.start":
                    message["headers"] = [*message.get("headers", ()), (b"connection", b"close")]
                await send(message)

            await self._app(scope, receive, last)
        elif self._inside >= AT_ONCE:
            await self._refuse(scope, receive, send)
        else:
            self._inside += 1
            try:
                await self._app(scope, receive, send)
            finally:
                self._inside -= 1
