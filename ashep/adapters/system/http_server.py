"""Connections of our HTTP servers: on one on which nothing is answered there is a bound in time, and of too many of
them the oldest is closed, so that whoever says nothing keeps nobody out.
"""

from asyncio import BaseTransport, TimerHandle
from collections.abc import Generator
from contextlib import contextmanager
from typing import ClassVar

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from ashep.request_guard import HEAD, HEADERS, MOST_WAITING


class Server(uvicorn.Server):
    """A server that leaves signals to its program."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Capture none."""
        yield


def make_server(application: ASGIApp, grace: int) -> Server:
    """Make what listens; `grace`: the seconds that requests under way get when it ends."""
    config = uvicorn.Config(
        application,
        log_level="critical",
        lifespan="off",
        ws="none",
        http=Connection,
        server_header=False,
        proxy_headers=False,  # nobody is believed who they ask for
        timeout_keep_alive=5,
        timeout_graceful_shutdown=grace,
    )
    return Server(config)


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
